"""The last part of `outlives table`: for each set of assumptions, the weakest guard that is known to be safe.

Belongs here: the pieces of work, one for each set of assumptions and place of the items, and the table that comes of
them. The ladder of guards is in `proof.weakest`.
"""

from collections.abc import Iterator, Sequence

from .proof.weakest import LADDER, WEAKEST_COLUMNS, Weakest, weakest_known
from .report import DataTable
from .workers import Job, Outcome, Tell

__all__ = ["weakest_jobs", "weakest_table"]

_LEGEND = (
    "weakest known: proved, for unbounded numbers and any number of steps, asynchronous and synchronous scheduling; "
    "and no weaker one of the ladder is: " + ", ".join(guard.name for guard in LADDER),
    "at once: whatever is referenced may be let go whenever the guard is asked; what is still needed is encoded again",
    "with pins: what a preemption, a reset, a failed load or the end of a turn leaves to steps in flight stays pinned "
    "until their outputs are in; without pins none of the ladder is proved there",
    "none: not even never releasing",
)


def weakest_jobs(solvers: Sequence[str] = ("z3",)) -> list[Job]:
    """One piece of work for each row, decided by each of the solvers."""
    rows = [(number, anywhere) for number in range(len(WEAKEST_COLUMNS)) for anywhere in (False, True)]
    return [
        Job(name=f"weakest {number} {anywhere}", work=_job, about=(number, anywhere, tuple(solvers)))
        for number, anywhere in rows
    ]


def _job(work: tuple[int, bool, tuple[str, ...]], _tell: Tell) -> Weakest:
    number, anywhere, solvers = work
    return weakest_known(WEAKEST_COLUMNS[number], anywhere=anywhere, solvers=solvers)


def weakest_table(outcomes: list[Outcome]) -> DataTable:
    """A row for each set of assumptions. A piece of work that was lost says so."""
    return DataTable(
        name="weakest-guards",
        title="Weakest known safe guard, by assumptions",
        columns=("assumptions", "items", "weakest known safe guard", "condition", "obligations", "weaker stops at"),
        rows=tuple(_rows(outcomes)),
        legend=_LEGEND,
    )


def _rows(outcomes: list[Outcome]) -> Iterator[tuple[str, ...]]:
    for outcome in outcomes:
        number, anywhere, _ = outcome.job.about
        column, where = WEAKEST_COLUMNS[number], "anywhere" if anywhere else "in the prompt"
        if outcome.lost or outcome.value is None:
            yield column.name, where, "unknown", outcome.lost, "", ""
            continue
        found: Weakest = outcome.value
        if found.contradicted:
            yield column.name, where, "solvers contradict each other", found.contradicted, "", ""
            continue
        condition = "-" if found.guard is None else f"{found.guard.formula}, asked {found.guard.site}"
        yield column.name, where, found.name, condition, str(found.obligations or "-"), found.stops_at or "-"
