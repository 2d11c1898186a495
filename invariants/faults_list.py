"""`outlives faults --list`: the catalogue, its negatives, and the rows that it does not cover, as tables.

Belongs here: how a fault is shown, its scope in words among it. What engines find of it is in `faults_run`.
"""

from collections.abc import Iterable
from typing import Any

from outlives.model.fault_rows import NOT_COVERED
from outlives.model.faults import FAULTS, NEGATIVES, Fault

from .report import Reporter
from .report.content import DataTable

__all__ = ["NOTHING", "list_faults", "rows_of"]

NOTHING = "-"


def rows_of(fault: Fault) -> str:
    """The rows of the list of public faults that it stands for."""
    return ", ".join(str(row) for row in fault.rows) or NOTHING


def list_faults(reporter: Reporter) -> int:
    """The catalogue, its negatives and the rows that it does not cover, as tables."""
    reporter.table(
        DataTable(
            name="catalogue",
            title="Faults: what schedulers really had wrong",
            columns=("fault", "row", "mechanism", "source", "mended"),
            rows=tuple((each.name, rows_of(each), each.phrase, each.source, each.mended) for each in FAULTS.values()),
        )
    )
    reporter.table(
        DataTable(
            name="scopes",
            title="What each of them breaks, and the smallest scope that shows it",
            columns=("fault", "breaks", "smallest scope"),
            rows=tuple((each.name, each.breaks, _scope(each)) for each in FAULTS.values()),
        )
    )
    reporter.table(
        DataTable(
            name="negatives",
            title="Negatives: mended as faults, and not reachable under A1 to A4",
            columns=("change", "row", "mechanism", "source", "mended", "why it is no fault"),
            rows=tuple(
                (each.name, rows_of(each), each.phrase, each.source, each.mended, each.why_not)
                for each in NEGATIVES.values()
            ),
        )
    )
    reporter.table(
        DataTable(
            name="not-covered",
            title="Rows of the list of public faults that are not covered",
            columns=("row", "source", "about", "what the model lacks"),
            rows=tuple((str(row), each.source, each.about, each.lacks) for row, each in NOT_COVERED.items()),
        )
    )
    return reporter.finish(0)


def _scope(fault: Fault) -> str:
    """The setup of the fault in words: requests, items, and the numbers that are not the least."""
    if fault.scope is None:
        return NOTHING
    setup = fault.scope
    asked = []
    for request in setup.requests:
        items = ", ".join(f"[{item.start},{item.end})" for item in request.items)
        asked.append(f"prompt {request.prompt}{f', items {items}' if items else ''}, outputs {request.outputs}")
        asked += [f"then prompt {turn.prompt}, outputs {turn.outputs}" for turn in request.turns]
    numbers = [f"{name.replace('_', '-')} {value}" for name, value in _numbers(setup)]
    return f"{'; '.join(asked)}; {', '.join(numbers)}; {fault.actions} action{'s' * (fault.actions != 1)}"


def _numbers(setup: Any) -> Iterable[tuple[str, int]]:
    for name, value in setup._asdict().items():
        if isinstance(value, int) and value != 0:
            yield name, value
