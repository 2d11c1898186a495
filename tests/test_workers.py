"""Work in several processes: the same answers in the same order, and nobody left behind, whatever happens."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import worker_jobs
from command_runs import Run, runner
from outlives.invariants import workers
from outlives.invariants.workers import Job, Outcome, ordered, workers_of
from outlives.model.errors import BadModel, BadUserFile, OutlivesError, OutOfRange, UnknownName

OUTLIVES = (sys.executable, "-m", "outlives.invariants.command")


def quiet(_done: int, _text: str = "") -> None:
    """Nobody looks at the progress."""


def job(work: Callable[..., Any], about: Any = None, **more: Any) -> Job:
    return Job(name=work.__name__, work=work, about=about, **more)


def done(jobs: Sequence[Job], count: int, advance: Any = quiet, **more: Any) -> list[Outcome]:
    outcomes = list(ordered(jobs, count, advance, **more))
    assert not multiprocessing.active_children()
    return outcomes


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(capsys)


# --- answers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 5])
def test_answers_come_in_the_order_of_the_jobs(count: int) -> None:
    jobs = [job(worker_jobs.sleeps, about) for about in ((0.4, "slow"), (0.0, "fast"), (0.1, None), (0.0, [1, 2]))]
    outcomes = done(jobs, count)
    assert [each.value for each in outcomes] == ["slow", "fast", None, [1, 2]]
    assert [each.job for each in outcomes] == jobs
    assert not any(each.interrupted or each.lost for each in outcomes)


def test_one_worker_or_one_job_is_this_process_and_two_are_others() -> None:
    three = [job(worker_jobs.has_id)] * 3
    assert {each.value for each in done(three, 1)} == {os.getpid()}
    assert done(three[:1], 8)[0].value == os.getpid()
    others = {each.value for each in done(three, 2)}
    assert os.getpid() not in others
    assert len(others) == 2


def test_any_executor_will_do_and_is_not_shut_down() -> None:
    jobs = [job(worker_jobs.sleeps, (0.1, "one")), job(worker_jobs.counts, 3), job(worker_jobs.breaks, "name")]
    with ThreadPoolExecutor(2) as threads:
        outcomes = ordered(jobs, 1, quiet, threads)
        assert [next(outcomes).value, next(outcomes).value] == ["one", 3]
        with pytest.raises(UnknownName, match="Did you mean 'free'"):
            next(outcomes)
        assert threads.submit(len, "open").result() == 4


def test_without_semaphores_this_process_does_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(workers, "Pool", refuse)
    assert {each.value for each in done([job(worker_jobs.has_id)] * 2, 2)} == {os.getpid()}


@pytest.mark.parametrize("count", [1, 2])
def test_progress_of_all_jobs_together_reaches_the_listener(count: int) -> None:
    heard: list[tuple[int, str]] = []
    jobs = [job(worker_jobs.counts, 40, weight=40), job(worker_jobs.sleeps, (0.5, None), weight=7)]
    done(jobs, count, lambda at, text="": heard.append((at, text)))
    assert [at for at, _ in heard] == sorted(at for at, _ in heard)
    assert heard[-1][0] == 47
    assert [text for _, text in heard if text] == ["step 40"]


def test_what_a_worker_prints_is_no_part_of_the_answer(capfd: pytest.CaptureFixture[str]) -> None:
    assert [each.value for each in done([job(worker_jobs.prints, "loud")] * 2, 2)] == ["loud"] * 2
    out, err = capfd.readouterr()
    assert (out, err) == ("", "loud\nloud\n")


@pytest.mark.parametrize("count", [1, 2])
def test_what_a_job_raises_is_raised_in_its_turn_and_the_rest_is_given_up(count: int, tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text("def rules(given):\n    return given.nothing\n")
    own = f"{tmp_path / 'rules.py'}:rules"
    for how, kind, words in (
        ("model", BadModel, "it breaks its contract."),
        ("name", UnknownName, "unknown rule 'fre'. Did you mean 'free'?"),
        ("ours", AssertionError, "our own mistake"),
        (own, BadUserFile, "line 2, raised AttributeError"),
    ):
        files = (own,) if how == own else ()
        jobs = [job(worker_jobs.sleeps, (0.3, "before")), job(worker_jobs.breaks, how, user_files=files)]
        outcomes = ordered([*jobs, job(worker_jobs.sleeps, (60, None))], count, quiet)
        assert next(outcomes).value == "before"
        with pytest.raises(kind, match=words.replace("?", r"\?")):
            next(outcomes)
        assert not multiprocessing.active_children()


def test_the_number_of_workers() -> None:
    assert workers_of(3) == 3
    assert workers_of(None) == 1, "as the tests have it; see below for a command of its own"
    for wrong in (0, -1, 65):
        with pytest.raises(OutOfRange, match="--workers is"):
            workers_of(wrong)
    script = "from outlives.invariants.workers import default_workers; print(default_workers())"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert int(said) == min(4, len(os.sched_getaffinity(0)))


# --- dying and Ctrl-C -------------------------------------------------------------------------------------------------


def test_a_worker_that_dies_is_told_and_what_was_answered_stays() -> None:
    jobs = [job(worker_jobs.sleeps, (0.0, "known")), job(worker_jobs.dies, 0.5), job(worker_jobs.sleeps, (60, "late"))]
    known, dead, late = done(jobs, 2)
    assert known.value == "known"
    for each in (dead, late):
        assert (each.value, each.interrupted) == (None, False)
        assert (
            each.lost
            == "a worker process died before it answered: killed, out of memory, or ended by the code that it ran"
        )


def interrupt_once(folder: Path, begun: int) -> None:
    """Press Ctrl-C, in a terminal of one process, once so many jobs have begun."""

    def press() -> None:
        until = time.monotonic() + 30
        while len(list(folder.glob("begun-*"))) < begun and time.monotonic() < until:
            time.sleep(0.02)
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    import threading

    threading.Thread(target=press, daemon=True).start()


def test_after_ctrl_c_workers_say_what_they_know(tmp_path: Path) -> None:
    patient = {"says_what_it_knows": True}
    jobs = [
        job(worker_jobs.sleeps, (0.0, "done")),
        job(worker_jobs.waits, str(tmp_path), **patient),
        job(worker_jobs.waits, str(tmp_path), **patient),
        job(worker_jobs.sleeps, (0.0, "never begun")),
    ]
    interrupt_once(tmp_path, 2)
    outcomes = done(jobs, 2)
    assert [(each.value, each.interrupted) for each in outcomes] == [
        ("done", False),
        ("known", True),
        ("known", True),
        (None, True),
    ]


def test_nobody_waits_for_a_job_that_has_nothing_to_say(tmp_path: Path) -> None:
    jobs = [job(worker_jobs.waits, str(tmp_path), says_what_it_knows=True), job(worker_jobs.sleeps, (60, None))]
    interrupt_once(tmp_path, 1)
    begun = time.monotonic()
    assert [each.value for each in done(jobs, 2)] == ["known", None]
    assert time.monotonic() - begun < 30


# --- commands ---------------------------------------------------------------------------------------------------------

FAULTS = Path(__file__).parent / "faults.py"


@pytest.mark.parametrize(
    "command",
    [
        ("check", "--cases", "40", "--scenario", "gap-one", "--profile", "0.24.0"),
        ("check", "--cases", "40", "--scenario", "chunk-end", "--fault", f"{FAULTS}:keep_references"),
        ("explore", "--profile", "0.24.0", "--scope", "adjacent-items", "--scope", "last-chunk", "--scope", "rivals"),
        ("explore", "--scope", "tight-cache", "--scope", "two-at-once", "--states", "500", "--property", "PROGRESS"),
    ],
    ids=["check", "fault", "explore", "bounded"],
)
def test_the_same_bytes_with_any_number_of_workers(command: tuple[str, ...], run: Run, tmp_path: Path) -> None:
    said, files = [], []
    for count in ("1", "2"):
        answered = run(*command, "--json", "--workers", count, "--out", count)
        said.append((answered.status, _timeless(json.loads(answered.out.replace(f'"{count}/', '"N/'))), answered.err))
        folder = next((tmp_path / count).glob("*-0001"))
        files.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert said[0] == said[1]
    assert files[0] == files[1]


def _timeless(value: Any) -> Any:
    """Without seconds, rates and memory."""
    if isinstance(value, dict):
        return {name: _timeless(each) for name, each in value.items() if "second" not in name and name != "memory"}
    if isinstance(value, list):
        return [_timeless(each) for each in value]
    if isinstance(value, str):
        for number in "12":
            value = value.replace(f" {number}/check-", " N/check-").replace(f" {number}/explore-", " N/explore-")
        return value.split(" states/s")[0].rsplit(", ", 1)[0] if " states/s" in value else value
    return value


BROKEN = """
from dataclasses import replace

def broken(rules):
    def advance(counters, count):
        raise {error}
    return replace(rules, advance=advance)
"""


@pytest.mark.parametrize("error", ["ValueError('no')", "SystemExit(7)"])
@pytest.mark.parametrize("command", ["check", "explore"])
def test_a_users_broken_rules_are_told_as_by_one_process(command: str, error: str, run: Run, tmp_path: Path) -> None:
    (tmp_path / "fault.py").write_text(BROKEN.format(error=error))
    arguments = (command, "--fault", "fault.py:broken", *(("--cases", "20") if command == "check" else ()))
    said = [run(*arguments, "--workers", count, "--out", "out") for count in ("1", "2")]
    assert said[0].status == said[1].status == 2
    assert said[0].err.replace("-0001", "") == said[1].err.replace("-0002", "")
    assert "fault.py, line 6: " in said[1].err
    assert "Traceback" not in said[1].err


@pytest.mark.parametrize("command", ["check", "explore", "table"])
def test_a_number_of_workers_that_is_none_is_bad_input(command: str, run: Run, tmp_path: Path) -> None:
    said = run(command, "--workers", "0")
    assert said.status == 2
    assert said.err == "outlives: --workers is 0; it must be from 1 to 64.\n"
    assert not (tmp_path / ".outlives").exists()


def children(process: int) -> dict[int, bytes]:
    """Its children that are workers, by their command line."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            line = (path / "cmdline").read_bytes()
        except (OSError, ValueError):
            continue
        if parent == process and b"spawn_main" in line:
            found[int(path.name)] = line
    return found


def alive(process: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


def worked(process: int) -> float:
    """Seconds of processor time so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def begun(folder: Path, *arguments: str) -> "tuple[subprocess.Popen[str], list[int]]":
    """A command in a session of its own, and its two workers, both at work for a while."""
    process = subprocess.Popen(
        [*OUTLIVES, *arguments, "--workers", "2", "--json"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until = time.monotonic() + 60
    while len(children(process.pid)) < 2 and process.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    working = list(children(process.pid))
    while min(map(worked, working), default=9) < 2 and process.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    return process, working


def gone(processes: Sequence[int]) -> bool:
    """Whether they are all gone before long."""
    until = time.monotonic() + 15
    while any(map(alive, processes)) and time.monotonic() < until:
        time.sleep(0.05)
    return not any(map(alive, processes))


LONG = ("--slots", "3..5", "--drafts", "1..3", "--depth", "3")
CHECK = ("check", "--settings", "nightly", "--engine", "machine", "--engine", "exhaustive")
EXPLORE = ("explore", "--scope", "three-in-flight", "--scope", "tight-cache", "--slots", "4..9", "--budget", "3..9",
           "--drafts", "0..3", "--depth", "3..4")  # fmt: skip


@pytest.mark.parametrize("everybody", [True, False], ids=["terminal", "parent alone"])
@pytest.mark.parametrize("command", [CHECK, EXPLORE], ids=lambda each: str(each[0]))
def test_ctrl_c_keeps_what_is_known_and_ends_every_worker(
    command: tuple[str, ...], everybody: bool, tmp_path: Path
) -> None:
    process, working = begun(tmp_path, *command)
    (os.killpg if everybody else os.kill)(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert len(working) == 2
    assert (process.returncode, err) == (130, "")
    report = json.loads(out)
    assert report["interrupted"]
    rows = [row for row in report["results"] if row["engine"] in ("machine", "exhaustive")]
    assert rows
    assert {row["verdict"] for row in rows} == {"unknown"}
    assert all(row["coverage"][:2] not in ("0 ", "no") for row in rows), "what was done by then"
    assert gone(working)


@pytest.mark.parametrize("everybody", [True, False], ids=["all of them", "parent alone"])
def test_to_be_asked_to_end_is_to_be_interrupted(everybody: bool, tmp_path: Path) -> None:
    process, working = begun(tmp_path, *CHECK)
    (os.killpg if everybody else os.kill)(process.pid, signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "")
    assert json.loads(out)["interrupted"]
    assert gone(working)


def test_a_worker_that_is_killed_is_unknown_in_words(tmp_path: Path) -> None:
    process, working = begun(tmp_path, *CHECK)
    os.kill(working[0], signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (3, "")
    report = json.loads(out)
    notes = {row["note"] for row in report["results"] if row["verdict"] == "unknown"}
    assert "a worker process died before it answered: killed, out of memory, or ended by the code that it ran" in notes
    assert not report["interrupted"]
    assert gone(working)


def test_no_worker_outlives_a_parent_that_is_killed(tmp_path: Path) -> None:
    process, working = begun(tmp_path, *EXPLORE)
    process.kill()
    process.communicate(timeout=60)
    assert len(working) == 2
    assert gone(working)


def test_every_kind_of_error_can_be_told_between_processes() -> None:
    for kind in OutlivesError.__subclasses__():
        error = kind.__new__(kind, "what went wrong")
        assert str(error) == "what went wrong"
