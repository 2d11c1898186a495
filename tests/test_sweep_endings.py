"""Sweeps that do not go as planned: workers that die, Ctrl-C, going on, crews that are gone or cannot be used."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest
from command_runs import Run, runner
from outlives.invariants import sweep_crew, sweep_run
from outlives.invariants.sweep_folder import begun, opened
from outlives.invariants.sweep_items import planned
from outlives.invariants.sweep_run import Sweep, sweep
from outlives.invariants.sweep_spec import spec_of
from sweep_runs import OUTLIVES, OWN, WITH_OWN, files_of, keys, spec_file


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(capsys)


# --- dying ------------------------------------------------------------------------------------------------------------


def test_an_item_whose_worker_died_is_tried_again_and_counted_once(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN.format(when="not mark.exists()"))
    said = run("sweep", spec_file(tmp_path, WITH_OWN), "--workers", "2", "--json", "--out", "out")
    assert (tmp_path / "died").read_text() == "x"
    assert (said.status, said.err) == (0, "")
    assert {row["coverage"] for row in said.object["results"]} == {"exhausted in 4 of 4 items"}
    assert len(list((tmp_path / "out/sweep-0001/items").iterdir())) == 4
    again = run("sweep", "s.toml", "--workers", "1", "--json", "--out", "2nd")
    assert again.out.replace("2nd/", "out/") == said.out


def test_an_item_whose_worker_always_dies_is_unknown_and_stays_undone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN.format(when="True"))
    said = run("sweep", spec_file(tmp_path, WITH_OWN), "--workers", "2", "--json", "--out", "out")
    assert (tmp_path / "died").read_text() == "x" * 3 * 2, "each of the two items three times"
    assert (said.status, said.err) == (3, "")
    row = next(row for row in said.object["results"] if row["verdict"] == "unknown")
    assert row["coverage"] == "2 of 4 items have no answer"
    assert row["note"].startswith("the worker died each of the 3 times that it was begun")
    assert said.object["notes"][-1] == "outlives sweep --resume out/sweep-0001"
    assert [row["A1-A4"] for row in said.object["tables"]["matrix"]["rows"]] == ["exhausted", "not done"]
    again = run("sweep", "--resume", "out/sweep-0001", "--workers", "1", "--json")
    assert again.status == 0, "this process is none that dies"
    assert again.object["tables"]["matrix"]["rows"][1]["A1-A4"] == "exhausted"


def test_rules_that_break_the_contract_are_told_and_the_rest_goes_on(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from dataclasses import replace\nfrom outlives.model.profiles import profile_named\n"
        "def advance(counters, count):\n    raise ValueError('no')\n"
        "base = profile_named('repaired')\nmine = replace(base, rules=replace(base.rules, advance=advance))\n"
    )
    name = spec_file(tmp_path, WITH_OWN)
    said = [run("sweep", name, "--workers", count, "--json", "--out", "out") for count in "12"]
    assert said[0].status == said[1].status == 3
    assert said[0].out.replace("-0001", "-0002") == said[1].out
    note = next(row["note"] for row in said[0].object["results"] if row["verdict"] == "unknown")
    assert "mine.py, line 4: " in note
    assert note.endswith("(mine.py:mine, guard own, A1-A4, last-chunk)")
    assert "notes" not in said[0].object, "it is answered: to go on would change nothing"


def workers_below(process: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            line = (path / "cmdline").read_bytes()
        except (OSError, ValueError):
            continue
        if parent == process and b"spawn_main" in line:
            found.append(int(path.name))
    return found


def started(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    """A sweep in a session of its own, in the folder, once two items are done."""
    folder.mkdir(exist_ok=True)
    spec_file(folder, LONGER)
    process = subprocess.Popen(
        [*OUTLIVES, "sweep", "s.toml", "--out", "out", "--json", *arguments],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    until = time.monotonic() + 300
    while len(list(folder.glob("out/sweep-0001/items/*.json"))) < 2 and process.poll() is None:
        assert time.monotonic() < until
        time.sleep(0.02)
    return process


LONGER = """
profiles = ["0.24.0"]
scopes = ["last-chunk", { scenario = "gap-one" }]
engines = ["machine"]
settings = "quick"
cases = 6
seeds = "1..16"
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, bytes]]:
    """What the longer sweep answers where nothing happens to it."""
    folder = tmp_path_factory.mktemp("undisturbed")
    out, err = started(folder, "--workers", "2").communicate(timeout=300)
    assert err == ""
    return out, files_of(folder / "out/sweep-0001")


def test_a_worker_that_is_killed_changes_no_byte(undisturbed: tuple[str, dict[str, bytes]], tmp_path: Path) -> None:
    process = started(tmp_path, "--workers", "2")
    victims = workers_below(process.pid)
    assert len(victims) == 2
    os.kill(victims[0], signal.SIGKILL)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (1, "")
    assert (out, files_of(tmp_path / "out/sweep-0001")) == undisturbed


@pytest.mark.parametrize(
    ("how", "count"),
    [(signal.SIGINT, "1"), (signal.SIGINT, "2"), (signal.SIGKILL, "2")],
    ids=["Ctrl-C, one", "Ctrl-C, two", "killed"],
)
def test_a_sweep_that_was_ended_goes_on_and_counts_nothing_twice(
    how: signal.Signals, count: str, undisturbed: tuple[str, dict[str, bytes]], tmp_path: Path
) -> None:
    process = started(tmp_path, "--workers", count)
    workers = workers_below(process.pid)
    os.killpg(process.pid, how) if how is signal.SIGINT else process.kill()
    out, err = process.communicate(timeout=300)
    items = tmp_path / "out/sweep-0001/items"
    done = {path.name: path.stat().st_mtime_ns for path in items.glob("*.json")}
    assert 2 <= len(done) < len(keys(LONGER))
    if how is signal.SIGINT:
        assert (process.returncode, err) == (130, "")
        report = json.loads(out)
        assert report["interrupted"]
        assert report["notes"] == [
            f"{len(done)} of {len(keys(LONGER))} items are done and stay done. To go on:",
            "outlives sweep --resume out/sweep-0001",
        ]
    until = time.monotonic() + 15
    while any(Path(f"/proc/{each}/exe").exists() for each in workers) and time.monotonic() < until:
        time.sleep(0.05)
    again = subprocess.run(
        [*OUTLIVES, "sweep", "s.toml", "--resume", "out/sweep-0001", "--json", "--workers", "2"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (again.stdout, files_of(tmp_path / "out/sweep-0001")) == undisturbed
    assert {name: (items / name).stat().st_mtime_ns for name in done} == done, "what was done is not done again"


# --- going on ---------------------------------------------------------------------------------------------------------


def test_a_damaged_or_foreign_file_is_done_again(run: Run, tmp_path: Path) -> None:
    said = run("sweep", spec_file(tmp_path), "--json", "--out", "out")
    folder = tmp_path / "out/sweep-0001"
    whole = files_of(folder)
    items = sorted((folder / "items").iterdir())
    items[0].write_bytes(items[0].read_bytes()[:-20])
    items[1].write_bytes(items[2].read_bytes())
    items[3].unlink()
    items[4].write_text("[]")
    items[5].write_text(json.dumps({**json.loads(items[5].read_text()), "answer": None}).replace('"answer"', '"none"'))
    *_, changed, lost = sorted((folder / "traces").iterdir())
    lost.unlink()
    changed.write_text(changed.read_text() + " ")
    again = run("sweep", "--resume", folder.relative_to(tmp_path), "--json")
    assert again.out == said.out
    assert files_of(folder) == whole


def test_what_cannot_be_gone_on_with(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "scopes = ['last-chunk']"
    run("sweep", spec_file(tmp_path, text), "--out", "out")
    other = spec_file(tmp_path, "scopes = ['chunk-end']", "other.toml")
    said = run("sweep", other, "--resume", "out/sweep-0001")
    assert (said.status, said.err) == (2, "outlives: other.toml is not what out/sweep-0001 was begun with; leave one "
                                          "of them out, or begin a new sweep.\n")  # fmt: skip
    folder, _ = opened(Path("out/sweep-0001"))
    said = run("sweep", "--resume", "out/sweep-0001")
    assert said.err == "outlives: another outlives sweep is at work in out/sweep-0001; let it end, or end it.\n"
    folder.release()
    assert run("sweep", "s.toml", "--resume", "out/sweep-0001").status == 0
    record = Path("out/sweep-0001/sweep.json")
    good = json.loads(record.read_text())
    for bad, words in (
        ("{", "is no record of a sweep"),
        ("[]", "is no record of a sweep"),
        (json.dumps({**good, "format": 9}), "is of format 9; this outlives knows 1."),
        (json.dumps({**good, "spec": {}}), "is no record of a sweep"),
        (json.dumps({**good, "made_with": {**good["made_with"], "hypothesis": "6.0"}}), "begun with hypothesis 6.0"),
    ):
        record.write_text(bad)
        said = run("sweep", "--resume", "out/sweep-0001")
        assert said.status == 2
        assert words in said.err
        assert said.err.count("\n") == 1


def test_items_of_a_users_file_that_changed_are_not_counted(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN.format(when="False"))
    run("sweep", spec_file(tmp_path, WITH_OWN), "--out", "out")
    (tmp_path / "mine.py").write_text(OWN.format(when="False") + "# another\n")
    said = run("sweep", "--resume", "out/sweep-0001", "--json")
    assert said.status == 0
    assert said.object["notes"] == ["Not counted: 2 finished items in the folder, of files that have changed since."]
    assert {row["coverage"] for row in said.object["results"]} == {"exhausted in 4 of 4 items"}


# --- crews ------------------------------------------------------------------------------------------------------------


class Gone(Executor):
    """Answers so many items, then is there no more."""

    def __init__(self, answers: int) -> None:
        self.executor: Executor = self
        self._left = answers
        self.ended = False

    def submit(self, work: Any, /, *about: Any, **_: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        if self._left:
            self._left -= 1
            future.set_result(work(*about))
        else:
            future.cancel()
        return future

    def room(self) -> int:
        return 2

    def died(self, error: BaseException | None) -> bool:
        return error is None

    def gone(self) -> str:
        return "" if self._left else "its scheduler does not answer any more"

    def end(self) -> None:
        self.ended = True


def test_a_crew_that_is_gone_leaves_what_is_done_and_the_command_to_go_on(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crew = Gone(2)
    monkeypatch.setattr(sweep_run, "crew_for", lambda *_: crew)
    name = spec_file(tmp_path, "profiles = ['0.33.0', 'repaired']\nscopes = ['last-chunk', 'chunk-end']")
    said = run("sweep", name, "--executor", "dask:tcp://there:1", "--out", "out", "--json")
    assert crew.ended
    assert said.status == 3
    row = next(row for row in said.object["results"] if row["engine"] == "sweep")
    assert row["coverage"] == "2 of 4 items have no answer"
    assert row["note"].startswith("the cluster is gone: its scheduler does not answer any more (")
    assert said.object["notes"] == [
        "2 of 4 items are done and stay done. To go on:",
        "outlives sweep --resume out/sweep-0001 --executor dask:tcp://there:1",
    ]
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    again = run("sweep", "--resume", "out/sweep-0001", "--workers", "1", "--json")
    assert again.status == 0
    assert {row["coverage"] for row in again.object["results"]} == {"exhausted in 4 of 4 items"}


def test_an_error_of_ours_is_raised_and_what_was_done_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(spec_of({"scopes": ["last-chunk", "chunk-end"]}, "s", tmp_path), "s")
    folder = begun(tmp_path, plan.spec)
    calls = iter([{"trouble": "none"}])
    monkeypatch.setattr(sweep_run, "perform", lambda _about: next(calls))
    with pytest.raises(StopIteration):
        sweep(Sweep(plan, folder), sweep_crew.Here(), lambda *_: None)
    assert len(folder.answers(plan.items.values())) == 1
    folder.release()


@pytest.mark.parametrize(
    ("fake", "words"),
    [
        ({}, "needs dask.distributed, which is not installed: install outlives[dask]."),
        ({"connect": OSError("no route")}, "no dask scheduler answers there within 10 s (OSError: no route)."),
        ({"workers": TimeoutError()}, "the cluster has no worker. Start some with: dask worker tcp://x:1"),
        ({"run": ModuleNotFoundError("No module named 'outlives'")}, "its workers cannot run outlives (ModuleNotFou"),
        ({"versions": {"hypothesis": "6.0"}}, "worker w1 has hypothesis 6.0, and here it is"),
        ({"digest": None}, "mine.py, and worker w1 has no such file. No file is sent to workers: put the same one"),
        ({"digest": "0"}, "mine.py, and worker w1 has another file of that name. No file is sent to workers"),
    ],
    ids=["not installed", "dead", "no worker", "not there", "another version", "no file", "another file"],
)
def test_a_cluster_that_cannot_be_used_is_told_before_anything_begins(
    fake: dict[str, Any], words: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(OWN.format(when="False"))
    made = _fake_dask(fake) if fake else None
    monkeypatch.setitem(sys.modules, "distributed", made)
    for name in ("distributed.comm", "distributed.comm.addressing"):
        monkeypatch.setitem(sys.modules, name, None if made is None else made.comm)
    said = run("sweep", spec_file(tmp_path, WITH_OWN), "--executor", "dask:tcp://x:1")
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith("outlives: --executor dask:tcp://x:1")
    assert words in said.err
    assert said.err.count("\n") == 1
    assert not (tmp_path / ".outlives").exists()


def _fake_dask(fake: dict[str, Any]) -> Any:
    class Client:
        status = "running"

        def __init__(self, *_: Any, **__: Any) -> None:
            _raise(fake.get("connect"))

        def wait_for_workers(self, *_: Any, **__: Any) -> None:
            _raise(fake.get("workers"))

        def run(self, work: Any, paths: tuple[str, ...]) -> dict[str, Any]:
            _raise(fake.get("run"))
            versions, digests = work(paths)
            if "digest" in fake:
                digests = dict.fromkeys(digests, fake["digest"])
            return {"w1": (versions | fake.get("versions", {}), digests)}

        def close(self, **_: Any) -> None:
            pass

    module, comm = type(sys)("distributed"), type(sys)("distributed.comm.addressing")
    module.Client, module.KilledWorker, module.comm = Client, RuntimeError, comm  # type: ignore[attr-defined]
    comm.get_address_host_port = lambda *_, **__: None  # type: ignore[attr-defined]
    return module


def _raise(error: Exception | None) -> None:
    if error is not None:
        raise error


def test_a_worker_with_another_file_leaves_the_item_undone(tmp_path: Path) -> None:
    own = tmp_path / "mine.py"
    own.write_text(OWN.format(when="False"))
    plan = planned(spec_of({"profiles": ["mine.py:mine"], "scopes": ["last-chunk"]}, "s", tmp_path), "s")
    own.write_text(own.read_text() + "# another\n")
    (tmp_path / "folder").mkdir()
    run = Sweep(plan, begun(tmp_path / "folder", plan.spec))
    sweep(run, sweep_crew.Here(), lambda *_: None)
    run.folder.release()
    assert not run.answers
    assert list(run.lost.values()) == [f"a worker has another {own} than the sweep was begun with."]
