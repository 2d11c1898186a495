"""`outlives sweep`: specifications, the matrix, the same bytes with any number of workers, dying, Ctrl-C, going on."""

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest
from command_runs import Run, Said, runner
from outlives.invariants import sweep_crew, sweep_run
from outlives.invariants.sweep_folder import begun, opened
from outlives.invariants.sweep_items import canonical, planned
from outlives.invariants.sweep_run import Sweep, sweep
from outlives.invariants.sweep_spec import Spec, spec_of
from outlives.model.errors import BadUserFile, OutlivesError
from outlives.model.trace import read_trace

OUTLIVES = (sys.executable, "-m", "outlives.invariants.command")
EXAMPLE = Path(__file__).resolve().parent.parent / "docs/examples/sweep.toml"

SMALL = """
profiles = ["0.24.0", "repaired"]
guards = ["own", "confirmed"]
assumptions = ["A1-A4", "A3 any"]
scopes = ["last-chunk", { scenario = "gap-one" }]
engines = ["machine"]
settings = "quick"
cases = 8
seeds = [3, 4]
"""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(capsys)


def spec_file(folder: Path, text: str = SMALL, name: str = "s.toml") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return name


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file of a sweep's folder but the lock."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


# --- the specification ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("profile = ['0.24.0']", "s.toml: unknown key 'profile'. Did you mean 'profiles'? Known: title, profiles"),
        ("profiles = []", "s.toml: profiles is an empty list: leave the key out"),
        ("profiles = '0.24.0'", "s.toml: profiles must be a list of texts, not '0.24.0'."),
        ("profiles = [24]", "s.toml: profiles must be a list of texts, and 24 is none."),
        ("profiles = ['0.24']", "s.toml: profiles: unknown profile '0.24'. Did you mean '0.24.0'?"),
        ("profiles = ['0.24.0', '0.24.0']", "s.toml: profiles has '0.24.0' twice."),
        ("profiles = ['nowhere.py:mine']", "s.toml: profiles: there is no file"),
        ("guards = ['none']", "s.toml: guards: unknown guard 'none'."),
        ("assumptions = ['A5']", "s.toml: assumptions: unknown assumption 'A5'."),
        ("assumptions = ['A1 any']", "s.toml: assumptions has 'A1 any': after a list with A3"),
        ("scopes = ['rival']", "s.toml: scopes: unknown scope 'rival'. Did you mean 'rivals'?"),
        ("scopes = [3]", "s.toml: scopes is wrong in entry 1: it must be the name of a scope, or a table, not 3."),
        ("scopes = [{ slot = 3 }]", "s.toml: scopes: unknown key of a scope 'slot'. Did you mean 'slots'?"),
        ("scopes = [{ slots = true }]", "s.toml: scopes is wrong in entry 1: slots must be a number or a text"),
        ("scopes = [{ split = 1 }]", "s.toml: scopes is wrong in entry 1: split must be true or false, not 1."),
        ("scopes = [{ slots = 'x' }]", "s.toml: scopes: --slots 'x' is neither a number nor a range"),
        ("scopes = [{ slots = 2 }, { slots = 2 }]", "s.toml: scopes has 'slots 2' twice"),
        ("scopes = [{ depth = 99 }]", "s.toml: scopes: 'depth 99': --depth is 99; it must be from 1 to 8."),
        ("scopes = [{ scenario = 'gap-one', slots = 3 }]", "s.toml: scopes: 'scenario gap-one, slots 3' goes with"),
        ("seeds = []", "s.toml: seeds is an empty list"),
        ("seeds = [1.5]", "s.toml: seeds must be a list of whole numbers, and 1.5 is none."),
        ("seeds = [true]", "s.toml: seeds must be a list of whole numbers, and true is none."),
        ("seeds = [1, 2, 1]", "s.toml: seeds has 1 twice."),
        ("seeds = 7", "s.toml: seeds must be a list of numbers, or a text"),
        ("seeds = '1..9999999'", "s.toml: seeds is a range of 9,999,999 numbers; at most 100,000"),
        ("engines = ['machines']", "s.toml: engines: unknown engine 'machines'. Did you mean 'machine'?"),
        ("settings = 'fast'", "s.toml: settings: unknown settings 'fast'."),
        ("settings = ['quick']", "s.toml: settings must be a text, not ['quick']."),
        ("cases = 0", "s.toml: cases must be a number from 1 on, not 0."),
        ("cases = 100000000", "s.toml: cases: the number of cases is 100000000"),
        ("states = 'all'", "s.toml: states must be a number from 1 on, not 'all'."),
        ("properties = ['PROGRES']", "s.toml: properties: unknown property 'PROGRES'."),
        ("engines = ['proof']\nproperties = ['PROGRESS']", "s.toml: engines is the proof alone"),
        ("seeds = '1..60000'\nscopes = ['usual', { slots = 2 }]", "s.toml: the number of items is 120,000"),
        ("seeds = [1,", "s.toml is not TOML: "),
        ("seeds = [1]\nseeds = [2]", "s.toml is not TOML: "),
    ],
)
def test_what_is_wrong_with_a_specification_is_one_sentence_with_file_and_key(
    text: str, words: str, run: Run, tmp_path: Path
) -> None:
    said = run("sweep", spec_file(tmp_path, text))
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith(f"outlives: {words}")
    assert said.err.count("\n") == 1
    assert not (tmp_path / ".outlives").exists()


def test_a_file_that_cannot_be_read_and_commands_that_contradict(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bytes.toml").write_bytes(b"title = '\xff'")
    for arguments, words in (
        (("none.toml",), "none.toml: there is no such file"),
        (("bytes.toml",), "bytes.toml cannot be read: "),
        ((), "sweep needs a SPEC.toml, or --resume FOLDER"),
        (("--resume", "nowhere"), "--resume nowhere: there is no nowhere/sweep.json, so no sweep was begun there."),
        (("--resume", "x", "--out", "y"), "--resume FOLDER names the folder that the sweep has"),
        ((spec_file(tmp_path), "--workers", "0"), "--workers is 0; it must be from 1 to 64."),
        (("s.toml", "--executor", "ray"), "unknown executor 'ray'. Known: processes, dask:ADDRESS."),
        (("s.toml", "--executor", "dask:x", "--workers", "2"), "--workers is of processes"),
    ):
        said = run("sweep", *arguments)
        assert (said.status, said.out) == (2, "")
        assert said.err.startswith(f"outlives: {words}"), said.err
    assert not (tmp_path / ".outlives").exists()


def test_a_users_file_that_raises_is_told_with_file_and_key(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("x = 1\nraise ValueError('no')\n")
    said = run("sweep", spec_file(tmp_path, "profiles = ['mine.py:mine']"))
    assert said.status == 2
    assert said.err.startswith("outlives: s.toml: profiles: --profile ")
    assert "mine.py, line 2, raised ValueError: no" in said.err


def test_a_specification_comes_back_from_its_plain_form() -> None:
    text = SMALL.replace("{ scenario", '{ slots = "2..4", without = ["sessions"] }, { scenario')
    spec = spec_of(tomllib.loads(text), "s.toml", Path())
    assert Spec.from_plain(json.loads(canonical(spec.plain()))) == spec
    assert spec.seeds == (3, 4)
    assert spec.scopes[1].given == {"without": ("sessions",), "numbers": {"slots": (2, 4)}}


# --- items ------------------------------------------------------------------------------------------------------------


def keys(text: str) -> list[str]:
    return list(planned(spec_of(tomllib.loads(text), "s.toml", Path()), "s.toml").items)


def test_what_is_the_same_question_is_one_item() -> None:
    base = "profiles = ['repaired']\nengines = ['machine', 'exhaustive']\n"
    assert len(keys(base)) == 1
    assert keys(base + "guards = ['own', 'confirmed']") == keys(base), "which is its own"
    assert len(keys(base + "guards = ['own', 'settled']")) == 2
    assert len(keys(base + "seeds = [0, 1]")) == 2
    assert keys(base + "seeds = [0, 1]\nscopes = ['rivals']") == keys(base + "scopes = ['rivals']"), "nothing is drawn"
    plan = planned(spec_of(tomllib.loads(base + "seeds = [5, 6]"), "s.toml", Path()), "s.toml")
    assert [item.about["engines"] for item in plan.items.values()] == [["machine", "exhaustive"], ["machine"]]
    assert keys("profiles = ['repaired', '0.24.0']") == list(reversed(keys("profiles = ['0.24.0', 'repaired']")))


def test_the_key_of_an_item_is_the_same_in_every_process() -> None:
    assert keys("engines = ['machine']") == ["ac3fed064688"]


def test_a_users_file_that_changes_makes_other_items(tmp_path: Path) -> None:
    own = tmp_path / "mine.py"
    own.write_text("from outlives.model.profiles import profile_named\nmine = profile_named('repaired')\n")
    text = f"profiles = ['{own}:mine']"
    before = keys(text)
    assert before == keys(text)
    own.write_text(own.read_text() + "# changed\n")
    assert keys(text) != before


def test_what_a_release_does_not_have_is_no_item_but_is_told(run: Run, tmp_path: Path) -> None:
    text = "profiles = ['0.11.0', 'repaired']\nscopes = [{ name = 'd', diffusion = true, without = ['sessions'] }]\n"
    said = run("sweep", spec_file(tmp_path, text + "engines = ['machine']\ncases = 2\n"), "--json")
    rows = said.object["tables"]["matrix"]["rows"]
    assert rows[0]["A1-A4"] == "-"
    assert rows[1]["A1-A4"] != "-"
    assert any("1 cell that cannot be: --diffusion: profile 0.11.0" in each for each in said.object["not_covered"])
    said = run("sweep", spec_file(tmp_path, text.replace(", 'repaired'", "")))
    assert said.status == 2
    assert "s.toml: scopes: 'd' goes with nothing else in it: --diffusion" in said.err


# --- reports ----------------------------------------------------------------------------------------------------------


def test_the_report_is_the_same_with_any_number_of_workers(run: Run, tmp_path: Path) -> None:
    name = spec_file(tmp_path)
    said: list[Said] = []
    files = []
    for count in ("1", "2", "3"):
        said.append(run("sweep", name, "--json", "--workers", count, "--out", count))
        files.append(files_of(tmp_path / count / "sweep-0001"))
    assert said[0].err == ""
    for count, each in zip("123", said, strict=True):
        assert each.out.replace(f'"{count}/', '"N/').replace(f" {count}/", " N/") == said[0].out.replace(
            '"1/', '"N/'
        ).replace(" 1/", " N/")
    assert files[0] == files[1] == files[2]
    assert sum(name.startswith("items/") for name in files[0]) == len(keys(SMALL))


def test_matrix_rows_traces_and_status(run: Run, tmp_path: Path) -> None:
    said = run("sweep", spec_file(tmp_path), "--json", "--out", "out")
    report = said.object
    assert said.status == report["exit_status"] == 1
    matrix = {(row["profile"], row["guard"]): row for row in report["tables"]["matrix-1"]["rows"]}
    assert matrix["repaired", "own"]["A1-A4"] == "exhausted"
    matrix = {(row["profile"], row["guard"]): row for row in report["tables"]["matrix-2"]["rows"]}
    assert matrix["0.24.0", "own"]["A1-A4"] == "violated 1"
    assert matrix["repaired", "own"] == {"profile": "repaired", "guard": "own", "A1-A4": "passed", "A3 any": "passed"}
    violated = report["tables"]["violated"]["rows"]
    assert {row["property"] for row in violated} == {each["property"] for each in report["violations"]}
    for row in violated:
        trace = tmp_path / f"out/sweep-0001/traces/{row['item']}-{row['engine']}-{row['property']}.itf.json"
        recorded = read_trace(trace)
        assert (recorded.property_name, len(recorded.steps) - 1) == (row["property"], int(row["actions"]))
    rows = {(row["engine"], row["property"]): row for row in report["results"]}
    assert rows["machine", "PROGRESS"]["verdict"] == "violated"
    assert rows["machine", "GATHER-AFTER-FREE"]["verdict"] == "passed"
    assert report["title"] == ("sweep: 2 profiles x 2 guards x 2 sets of assumptions x 2 scopes x 2 seeds")


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("scopes = ['last-chunk']", 0),
        ("profiles = ['0.24.0', 'repaired']\nscopes = ['adjacent-items']", 1),
        ("scopes = ['two-at-once', 'tight-cache']\nstates = 500", 3),
        ("engines = ['machine']\ncases = 2", 4),
    ],
)
def test_the_exit_status_is_that_of_all_items_together(text: str, status: int, run: Run, tmp_path: Path) -> None:
    said = run("sweep", spec_file(tmp_path, text))
    assert said.status == status
    assert f"Exit status {status}: " in said.out


def test_an_answer_holds_nothing_that_differs_from_run_to_run(run: Run, tmp_path: Path) -> None:
    text = "scopes = ['tight-cache']\nstates = 500"
    run("sweep", spec_file(tmp_path, text), "--out", "out")
    run("sweep", "s.toml", "--out", "out")
    assert files_of(tmp_path / "out/sweep-0001") == files_of(tmp_path / "out/sweep-0002")
    assert "states/s" not in str(files_of(tmp_path / "out/sweep-0001"))


def test_the_example_of_the_page_runs(run: Run, tmp_path: Path) -> None:
    said = run("sweep", EXAMPLE, "--json")
    assert said.status == 1
    shown = (EXAMPLE.parent.parent / "sweep.md").read_text(encoding="utf-8")
    assert EXAMPLE.read_text(encoding="utf-8") in shown


# --- dying ------------------------------------------------------------------------------------------------------------

OWN = """
import multiprocessing, os, signal
from pathlib import Path
from outlives.model.profiles import profile_named

mine = profile_named("repaired")
mark = Path(__file__).with_name("died")
if multiprocessing.parent_process() is not None and {when}:
    mark.open("a").write("x")
    os.kill(os.getpid(), signal.SIGKILL)
"""
WITH_OWN = "profiles = ['repaired', 'mine.py:mine']\nscopes = ['last-chunk', 'chunk-end']\n"


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
    trace = min((folder / "traces").iterdir())
    trace.unlink()
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


def test_formats_go_into_the_folder(run: Run, tmp_path: Path) -> None:
    from outlives.invariants.report.writers import WRITERS

    written = [name for name in ("junit", "markdown", "html", "sarif") if _can_write(WRITERS[name])]
    options = [word for name in written for word in ("--format", name)]
    said = run("sweep", spec_file(tmp_path, "scopes = ['last-chunk']"), "--out", "out", *options)
    assert said.status == 0
    for name in written:
        assert (tmp_path / f"out/sweep-0001/report{WRITERS[name].ending}").read_text().count("last-chunk")


def _can_write(writer: Any) -> bool:
    try:
        return callable(writer.write)
    except ImportError:
        return False


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
    monkeypatch.setitem(sys.modules, "distributed.comm", None if made is None else made.comm)
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

    module, comm = type(sys)("distributed"), type(sys)("distributed.comm")
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


def test_errors_of_specifications_are_of_one_kind(tmp_path: Path) -> None:
    with pytest.raises(BadUserFile):
        spec_of({"seeds": []}, "s", tmp_path)
    assert issubclass(sweep_crew.DeadCluster, OutlivesError)
