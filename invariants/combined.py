"""The searches of several scopes as one answer: a row per property, sums, and what is left.

Belongs here: what `check` and `explore` both say about a set of scopes, each searched on its own.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from .explore import Exploration
from .situations import is_situation
from .verdict import Result, Verdict

__all__ = ["Searches", "combined", "stopped_scopes", "summed"]

Searches = Mapping[str, Exploration]
"""Scope -> its search, finished or stopped."""

_ORDER = (Verdict.VIOLATED, Verdict.UNKNOWN, Verdict.EXHAUSTED, Verdict.VACUOUS)


def combined(found: Searches, scopes: Sequence[str], uncounted: Iterable[str] = ()) -> list[Result]:
    """A row per property over all scopes: the worst that any of them answered, with the shortest trace.

    `scopes` are all that were to be searched; one that is missing in `found` leaves every property at best unknown.
    Rows of situations, and of the properties named in `uncounted`, only count, and are left out.
    """
    left_out = set(uncounted)
    by_property: dict[str, list[Result]] = {}
    for each in found.values():
        for row in each.results():
            if not is_situation(row.property) and row.property not in left_out:
                by_property.setdefault(row.property, []).append(row)
    return [_row(rows, found, scopes) for rows in by_property.values()]


def _row(rows: Sequence[Result], found: Searches, scopes: Sequence[str]) -> Result:
    worst = min(rows, key=lambda row: (_ORDER.index(row.verdict), len(row.trace.actions) if row.trace else 0))
    if len(rows) < len(scopes) and worst.verdict is not Verdict.VIOLATED:
        worst = replace(worst, verdict=Verdict.UNKNOWN, note="")
    # Of a stopped search the report says once, among what is not covered, how far it got and what is left.
    stopped = worst.verdict is Verdict.UNKNOWN and worst.note.startswith("stopped by")
    return replace(
        worst,
        coverage=_coverage(rows, worst, found, scopes),
        note="" if stopped else worst.note,
        details={**worst.details, "scopes": [f"{name} {each.states:,}" for name, each in found.items()]},
    )


def _coverage(rows: Sequence[Result], worst: Result, found: Searches, scopes: Sequence[str]) -> str:
    if len(scopes) == 1:
        return worst.coverage
    whole = [name for name, each in found.items() if each.complete]
    states = sum(each.states for each in found.values())
    if worst.verdict is Verdict.VIOLATED:
        broken = sum(row.verdict is Verdict.VIOLATED for row in rows)
        return f"violated in {broken} of {len(scopes)} scopes; {states:,} states"
    if len(whole) == len(scopes):
        return f"every state of {len(whole)} scopes: {states:,} states"
    return f"every state of {len(whole)} of {len(scopes)} scopes; {states:,} states in all"


def stopped_scopes(found: Searches) -> list[str]:
    """A line for each search that was stopped: how far it got, at what rate, and an honest estimate of what is left."""
    return [
        f"scope {name}: stopped by {each.stopped} at depth {each.searched}, {each.states:,} states, "
        f"{each.details['states_per_second']:,} states/s; left: {each.left}"
        for name, each in found.items()
        if not each.complete
    ]


def summed(found: Searches) -> tuple[dict[str, int], dict[str, int]]:
    """How often each situation arose, and how often each action fired, over all scopes."""
    situations: dict[str, int] = {}
    fired: dict[str, int] = {}
    for each in found.values():
        for name, times in each.situations.items():
            situations[name] = situations.get(name, 0) + times
        for name, count in each.actions.items():
            fired[name] = fired.get(name, 0) + count.fired
    return situations, fired
