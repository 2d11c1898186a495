"""Ctrl-C at any moment: what is known by then is printed, what was found is on disk, exit 130."""

import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_runs import Run, runner
from outlives.invariants import machine, proof_row, table_run
from outlives.invariants.explore import explore
from outlives.invariants.interrupt import ctrl_c_noticed, was_pressed
from outlives.invariants.proof import evidence, solvers
from outlives.model.worker import execute

CRASH = ("check", "--scenario", "chunk-end", "--profile", "0.20.0", "--cases", "20")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(capsys)


def stop_after(count: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which is interrupted at its call of that number."""
    calls = [0]

    def stopping(*arguments: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == count:
            raise KeyboardInterrupt
        return function(*arguments, **named)

    return stopping


@pytest.mark.parametrize("count", [1, 2, 30, 60])
@pytest.mark.parametrize("engine", ["machine", "exhaustive"])
def test_check_says_what_it_knows(engine: str, count: int, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outlives.model.scheduler.execute", stop_after(count, execute))
    said = run("check", "--engine", engine, "--cases", "40")
    assert said.status == 130
    assert "Exit status 130: interrupted; this is what was known by then." in " ".join(said.out.split())
    assert "Traceback" not in said.out + said.err
    assert "unknown" in said.out


def test_a_violation_found_before_is_told_and_on_disk(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "shrunk_trace", stop_after(1, machine.shrunk_trace))
    said = run(*CRASH, "--engine", "machine")
    assert said.status == 130
    assert "VIOLATED GATHER-AFTER-FREE (machine)" in said.out
    kept = [path.name for path in (tmp_path / ".outlives" / "check-0001").iterdir()]
    assert any("GATHER-AFTER-FREE" in name for name in kept)
    shown = next(line for line in said.out.splitlines() if line.startswith("Replay"))
    assert run(*shown.split()[2:]).status == 1


def test_engines_that_were_done_before_keep_their_rows(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof_row, "cell", stop_after(1, proof_row.cell))
    done = run(*CRASH, "--json")
    assert (done.status, done.object["interrupted"]) == (130, True)
    assert {row["engine"] for row in done.object["results"]} >= {"machine", "exhaustive"}
    assert "engine proof: not finished" in done.object["not_covered"]


def test_ctrl_c_ends_a_search_for_more_states(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outlives.model.scheduler.execute", stop_after(400, execute))
    done = run("check", "--engine", "exhaustive", "--json")
    assert done.status == 130
    assert any(row["verdict"] == "unknown" for row in done.object["results"])


def test_prove_shows_the_grid_that_is_whole(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outlives.invariants.proof_run.vacuity", stop_after(1, evidence.vacuity))
    said = run("prove")
    assert said.status == 130
    assert "Claim: with guard confirmed" in said.out
    assert "Interrupted: the proof above is whole" in said.out


def test_prove_that_knows_nothing_yet_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solvers, "solve", stop_after(3, solvers.solve))
    said = run("prove")
    assert (said.status, said.out) == (130, "")
    assert said.err == "outlives: interrupted before anything was known\n"


def test_table_shows_the_cells_that_are_judged(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_run, "judge_cell", stop_after(3, table_run.judge_cell))
    said = run("table", "--guard", "optimistic-after-advance")
    assert said.status == 130
    assert "Interrupted: 2 of 12 cells were judged by then." in said.out
    assert "optimistic-after-advance" in said.out


@pytest.mark.parametrize(
    ("module", "command"),
    [
        ("fault_jobs", ("faults", "--fault", "cut-stops-short", "--engine", "exhaustive")),
        ("mutant_battery", ("faults", "--mutant", "lifetime.advance: c.computed + count -> c.computed")),
    ],
)
def test_a_search_that_was_cut_short_is_no_answer(
    run: Run, monkeypatch: pytest.MonkeyPatch, module: str, command: tuple[str, ...]
) -> None:
    """The explorer ends with what it has; of a fault or a mutant that would say nothing."""

    def interrupted(model: Any, **named: Any) -> Any:
        named.pop("compiled", None)
        return replace(explore(model, **named), interrupted=True)

    monkeypatch.setattr(f"outlives.invariants.{module}.explore", interrupted)
    said = run(*command, "--workers", "1", "--json")
    assert said.status == 130
    answers = said.object["fault-answers"]["answers"] if module == "fault_jobs" else said.object["mutants"]["judged"]
    assert answers == []


# --- where Ctrl-C hits -----------------------------------------------------------------------------------------------


def press() -> None:
    signal.raise_signal(signal.SIGINT)


def test_ctrl_c_in_a_callback_is_not_lost(capsys: pytest.CaptureFixture[str]) -> None:
    class Ends:
        def __del__(self) -> None:
            press()

    def goes_on() -> None:
        Ends()  # Python drops what is raised at the end of an object
        for _ in range(200):
            time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt), ctrl_c_noticed():
        goes_on()
    assert "Traceback" not in capsys.readouterr().err


def test_what_fails_because_of_ctrl_c_is_an_interruption(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_arguments: Any, **_named: Any) -> None:
        try:
            press()
        except KeyboardInterrupt:
            raise AssertionError("a library at an awkward moment") from None

    monkeypatch.setattr(machine, "run_state_machine_as_test", fails)
    said = run("check", "--engine", "machine")
    assert said.status == 130
    assert "no answer. Exit status 130" in said.out
    monkeypatch.setattr("outlives.invariants.proof_run.prove", fails)
    assert run("prove")[::2] == (130, "outlives: interrupted before anything was known\n")


def test_the_handlers_are_put_back_and_an_ignored_ctrl_c_stays_ignored() -> None:
    before = signal.getsignal(signal.SIGINT), sys.unraisablehook
    with ctrl_c_noticed():
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert (signal.getsignal(signal.SIGINT), sys.unraisablehook) == before
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with ctrl_c_noticed():
            press()
        assert not was_pressed()
    finally:
        signal.signal(signal.SIGINT, before[0])


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda _number, _frame: None], ids=["ignored", "handled"])
def test_sigterm_is_an_interruption_unless_somebody_handles_it(handler: Any) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), ctrl_c_noticed():
        signal.raise_signal(signal.SIGTERM)
    assert was_pressed()
    assert signal.getsignal(signal.SIGTERM) == before
    signal.signal(signal.SIGTERM, handler)
    try:
        with ctrl_c_noticed():
            signal.raise_signal(signal.SIGTERM)
        assert not was_pressed()
    finally:
        signal.signal(signal.SIGTERM, before)


def test_what_breaks_in_a_thread_is_silent_only_after_an_interruption(capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> None:
        raise ValueError("a pool without workers")

    def in_a_thread() -> None:
        thread = threading.Thread(target=fails)
        thread.start()
        thread.join()

    before = threading.excepthook
    with ctrl_c_noticed():
        in_a_thread()
    assert "ValueError: a pool without workers" in capsys.readouterr().err
    with ctrl_c_noticed():
        with pytest.raises(KeyboardInterrupt):
            press()
        in_a_thread()
    assert capsys.readouterr().err == ""
    assert threading.excepthook == before


def test_a_failure_of_ours_is_not_hidden(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_arguments: Any, **_named: Any) -> None:
        raise AssertionError("ours")

    monkeypatch.setattr(machine, "run_state_machine_as_test", fails)
    with pytest.raises(AssertionError, match="ours"):
        run("check", "--engine", "machine")
