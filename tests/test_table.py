"""`outlives table`: two engines a cell, none by hand, traces that replay; here the cells of the headline.

The whole table takes minutes: the campaign has it.
"""

import itertools
from pathlib import Path

import pytest
from command_runs import Run, runner
from outlives.invariants import table_run
from outlives.invariants.proof.cells import COLUMNS, ENCODER_RESET, Column
from outlives.invariants.proof.weakest import WEAKEST_COLUMNS, Weakest
from outlives.invariants.report.tables import headline_table
from outlives.invariants.table_run import TABLE_SETUPS, Judged, judge_cell
from outlives.invariants.verdict import Verdict
from outlives.model.lifetime import GUARDS

NUMBERS = {column.name: number for number, column in enumerate(COLUMNS)}


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(capsys)


RESET_ROW = (
    ("A1-A4", True, Verdict.PROVED, 0),
    ("A3 true", False, Verdict.PROVED, 0),
    ("A3 any", False, Verdict.VIOLATED, 6),
)


@pytest.mark.parametrize(("column", "anywhere", "verdict", "length"), RESET_ROW)
def test_an_encoder_cache_reset_has_a_row_of_its_own(
    column: str, anywhere: bool, verdict: Verdict, length: int
) -> None:
    judged = judge_cell((ENCODER_RESET, NUMBERS[column], anywhere))
    assert (judged.guard, judged.verdict, judged.note) == (ENCODER_RESET, verdict, "")
    assert judged.engines[1] == "exhaustive"
    assert (len(judged.trace.actions) if judged.trace else 0) == length
    assert judged.trace is None or "reset_encoder_cache" in {each.name for each in judged.trace.actions}


HEADLINE = (
    ("confirmed", "A1-A4", True, Verdict.PROVED),
    ("confirmed", "A3 any", True, Verdict.PROVED),
    ("confirmed", "A1", False, Verdict.VIOLATED),
    ("optimistic-at-output", "A3 any", True, Verdict.VIOLATED),
)


@pytest.mark.parametrize(("guard", "column", "anywhere", "verdict"), HEADLINE)
def test_headline_cells_are_judged_by_two_engines_that_agree(
    guard: str, column: str, anywhere: bool, verdict: Verdict
) -> None:
    judged = judge_cell((guard, NUMBERS[column], anywhere))
    assert (judged.guard, judged.column, judged.anywhere, judged.verdict) == (guard, column, anywhere, verdict)
    assert judged.note == ""
    assert len(judged.engines) == 2
    if verdict is Verdict.PROVED:
        assert judged.engines == ("proof", "exhaustive")
        assert judged.trace is None
    else:
        assert judged.engines == ("bounded checking", "exhaustive")
        assert judged.trace is not None
        assert judged.trace.property == "GATHER-AFTER-FREE"


@pytest.mark.parametrize(
    ("guard", "actions"),
    [("retain", 1), ("optimistic-before-advance", 1), ("confirmed-lookahead", 1), ("confirmed", 0)],
)
def test_a_safe_guard_may_hold_for_ever_what_is_needed(guard: str, actions: int) -> None:
    """Two items, one right behind the other, and room for one: two engines say whether every request ends."""
    judged = judge_cell((guard, NUMBERS["A1-A4"], False))
    assert (judged.verdict, judged.note) == (Verdict.PROVED, "")
    assert judged.stuck is not None
    assert judged.stuck.engines == ("exhaustive", "machine")
    assert (0 if judged.stuck.trace is None else len(judged.stuck.trace.actions)) == actions
    (row,) = headline_table([table_run._as_cell(judged)]).rows
    assert row[1] == ("proved (pe)" if actions == 0 else f"proved (pe) STUCK {actions} (em)")


def test_a_cell_whose_shortest_run_needs_other_numbers_is_visited_there() -> None:
    """What bounded checking finds with numbers of its own, the exhaustive engine finds with these, or sooner."""
    judged = judge_cell(("optimistic-at-output", NUMBERS["A3 any"], True))
    assert (judged.verdict, judged.engines) == (Verdict.VIOLATED, ("bounded checking", "exhaustive"))
    assert judged.trace is not None
    assert (len(judged.trace.actions), judged.shortest) == (8, True)


def test_the_setups_that_are_visited_whole_are_small_and_of_their_kind() -> None:
    for anywhere, setups in TABLE_SETUPS.items():
        for setup in setups:
            (asked,) = setup.requests
            past = [item for item in asked.items if item.end > asked.prompt]
            assert bool(past) is anywhere
            assert asked.prompt + asked.outputs <= 8
    assert {setup.depth for setups in TABLE_SETUPS.values() for setup in setups} == {2, 3}


def _cell(guard: str, verdict: Verdict, column: str, anywhere: bool, note: str = "") -> Judged:
    return Judged(guard=guard, column=column, anywhere=anywhere, verdict=verdict, engines=("proof",), trace=None,
                  shortest=False, coverage="", note=note)  # fmt: skip


@pytest.mark.parametrize(
    ("verdicts", "status"),
    [
        ((Verdict.PROVED,), 0),
        ((Verdict.PROVED, Verdict.VIOLATED), 0),
        ((Verdict.PROVED, Verdict.UNKNOWN), 3),
        ((Verdict.VIOLATED, Verdict.UNKNOWN, Verdict.DISAGREE), 5),
    ],
)
def test_a_violated_cell_is_an_answer_and_an_open_one_is_not(
    verdicts: tuple[Verdict, ...], status: int, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = itertools.count()

    def judged(work: tuple[str, int, bool], solvers: tuple[str, ...]) -> Judged:
        guard, number, anywhere = work
        return _cell(guard, verdicts[next(places) % len(verdicts)], COLUMNS[number].name, anywhere, "why")

    monkeypatch.setattr("outlives.invariants.table_run.judge_cell", judged)
    done = run("table", "--guard", "confirmed", "--guard", "retain", "--guard", "retain", "--json")
    assert done.status == done.object["exit_status"] == status
    tables = done.object["tables"]
    assert len(tables) == 2
    for table in tables.values():
        assert [row["guard"] for row in table["rows"]] == ["confirmed", "retain"]
        assert all(row[column.name] != "-" for row in table["rows"] for column in COLUMNS)


def test_without_a_guard_every_guard_is_judged(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int, bool]] = []

    def judged(work: tuple[str, int, bool], solvers: tuple[str, ...]) -> Judged:
        asked.append(work)
        return _cell(work[0], Verdict.PROVED, COLUMNS[work[1]].name, work[2])

    def climbed(column: Column, *, anywhere: bool, solvers: tuple[str, ...]) -> Weakest:
        guard = None if "A2" in column.relaxed else GUARDS["confirmed"]
        return Weakest(column=column, anywhere=anywhere, guard=guard, pinned="A1" in column.relaxed, obligations=7,
                       stops_at="COVERAGE / dispatch")  # fmt: skip

    monkeypatch.setattr("outlives.invariants.table_run.judge_cell", judged)
    monkeypatch.setattr("outlives.invariants.table_weakest.weakest_known", climbed)
    rows = run("table", "--json").object["tables"]["weakest-guards"]["rows"]
    assert [(row["assumptions"], row["items"]) for row in rows] == [
        (column.name, where) for column in WEAKEST_COLUMNS for where in ("in the prompt", "anywhere")
    ]
    named = {row["assumptions"]: row["weakest known safe guard"] for row in rows}
    assert (named["A3 any"], named["A1"], named["A2"]) == ("confirmed", "confirmed, with pins", "none")
    assert list(dict.fromkeys(row for row, _, _ in asked)) == [*GUARDS, ENCODER_RESET]
    assert len(asked) == (len(GUARDS) + 1) * len(COLUMNS) * 2


def test_a_violated_cells_trace_is_written_at_once_and_replays(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = ("optimistic-after-advance", NUMBERS["A3 any"], False)

    def judged(work: tuple[str, int, bool], solvers: tuple[str, ...]) -> Judged:
        if work == wanted:
            return judge_cell(work)
        assert len(list((tmp_path / ".outlives" / "table-0001").iterdir())) == (work > wanted)
        return _cell(work[0], Verdict.PROVED, COLUMNS[work[1]].name, work[2])

    monkeypatch.setattr("outlives.invariants.table_run.judge_cell", judged)
    assert run("table", "--guard", "optimistic-after-advance").status == 0
    (path,) = (tmp_path / ".outlives" / "table-0001").iterdir()
    assert path.name == "optimistic-after-advance--A3-any--prompt.itf.json"
    again = run("replay", path)
    assert again.status == 1
    assert "VIOLATED GATHER-AFTER-FREE" in again.out


def test_the_answer_does_not_depend_on_the_number_of_workers(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outlives.invariants.table_run.COLUMNS", COLUMNS[:1])
    said = []
    for workers in ("1", "2"):
        done = run("table", "--guard", "confirmed", "--workers", workers, "--out", workers)
        said.append(done.out.replace("2/table", "1/table"))
    assert said[0] == said[1]
    assert "proved" in said[0]
