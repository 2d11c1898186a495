"""Whole reports, byte for byte. `OUTLIVES_UPDATE_GOLDEN=1 pytest tests/test_report_golden.py` writes them anew."""

import io
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from outlives.invariants.report.content import Cell, Run, Violation
from outlives.invariants.report.reporter import Reporter, reporter_for
from outlives.invariants.report.tables import headline_table, profiles_tables, scenarios_table
from outlives.invariants.verdict import Verdict
from report_cases import adjacent, chunk_end, green, roll_back, row

GOLDEN = Path(__file__).parent / "golden"
UPDATE = os.environ.get("OUTLIVES_UPDATE_GOLDEN") == "1"


def written(say: Callable[[Reporter], None], *, as_json: bool = False, status: int = 0) -> str:
    """What a reporter writes to a stream that is no terminal."""
    out = io.StringIO()
    reporter = reporter_for(as_json=as_json, out=out, err=io.StringIO())
    say(reporter)
    reporter.finish(status)
    return out.getvalue()


def violated(violation: Violation, coverage: str) -> Run:
    result = row(violation.property, Verdict.VIOLATED, coverage, engine=violation.engine)
    return Run(title="one violation", results=(result,), violations=(violation,))


def with_shrink(violation: Violation) -> Violation:
    shrink = {
        "found_length": 31,
        "found_actions": {"accept": 11, "arrive": 1, "evict": 4, "schedule": 15},
        "final_length": 3,
        "found_numbers": {"slots": 9, "budget": 7},
        "final_numbers": {"slots": 4, "budget": 7},
        "seconds": 0.12,
    }
    return replace(violation, shrink=shrink)


def vacuous() -> Run:
    note = "it never happened that drafts were rejected; more steps or a larger scope may reach it"
    result = row("COUNTERS-SOUND", Verdict.VACUOUS, "10 runs, 40 steps", note=note)
    return Run(title="profile repaired", results=(result,), vacuous=("abort: never taken; raise the number of runs",))


def unknown() -> Run:
    note = "stopped by a limit of 1,000 states; left: at least 300 states wait"
    return Run(title="profile repaired", results=(row("PROGRESS", Verdict.UNKNOWN, "1,000 states", note=note),))


def cells() -> list[Cell]:
    both = ("machine", "proof")
    return [
        Cell(guard="optimistic-at-output", assumptions="A1-A4", verdict=Verdict.PASSED, engines=("machine",)),
        Cell(guard="optimistic-at-output", assumptions="A3 any", verdict=Verdict.VIOLATED, engines=both, length=9,
             shortest=True, note="7 where the start is explained by rejected drafts"),
        Cell(guard="confirmed", assumptions="A1-A4", verdict=Verdict.PROVED, engines=both),
        Cell(guard="confirmed", assumptions="A3 any", verdict=Verdict.PROVED, engines=both),
        Cell(guard="confirmed", assumptions="A1", verdict=None),
    ]  # fmt: skip


CASES: dict[str, Callable[[], str]] = {
    "chunk-end.txt": lambda: written(lambda to: to.run(violated(with_shrink(chunk_end()), "3 runs, 9 steps"))),
    "chunk-end.json": lambda: written(lambda to: to.run(violated(chunk_end(), "3 runs")), as_json=True, status=1),
    "adjacent.txt": lambda: written(lambda to: to.run(violated(adjacent(), "every state of the scope: 9 states"))),
    "roll-back.txt": lambda: written(lambda to: to.violation(roll_back())),
    "green.txt": lambda: written(lambda to: to.run(green())),
    "vacuous.txt": lambda: written(lambda to: to.run(vacuous())),
    "unknown.txt": lambda: written(lambda to: to.run(unknown())),
    "headline.txt": lambda: written(lambda to: to.table(headline_table(cells()))),
    "profiles.txt": lambda: written(lambda to: [to.table(table) for table in profiles_tables()] and None),
    "scenarios.txt": lambda: written(lambda to: to.table(scenarios_table())),
}


@pytest.mark.parametrize("name", CASES)
def test_report_is_the_golden_one(name: str) -> None:
    text = CASES[name]()
    path = GOLDEN / name
    if UPDATE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{name} changed; OUTLIVES_UPDATE_GOLDEN=1 writes it anew"


@pytest.mark.parametrize("name", [name for name in CASES if name.endswith(".txt")])
def test_report_fits_100_columns_of_plain_ascii(name: str) -> None:
    lines = CASES[name]().splitlines()
    assert max(len(line) for line in lines) <= 100
    assert all(line.isascii() and line == line.rstrip() for line in lines)


@pytest.mark.parametrize("name", ["chunk-end.txt", "adjacent.txt", "roll-back.txt"])
def test_report_of_a_short_trace_fits_two_screens(name: str) -> None:
    assert len(CASES[name]().splitlines()) <= 90
