"""The searches of several scopes as one answer: a row per property, sums, and what is left.

Belongs here: what `check` and `explore` both say about a set of scopes, each searched on its own.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from outlives.model.contract import Property
from outlives.model.state import State
from outlives.model.world import World

from .configuration import Configuration
from .explore import Exploration
from .furthest import Furthest, furthest
from .scope_choice import Scopes
from .situations import ROUTE_SITUATIONS, is_situation, routes_not_taken
from .verdict import Result, Verdict

__all__ = [
    "Searches",
    "at_best_of",
    "combined",
    "never_fired",
    "order_of_arrivals",
    "routes_taken",
    "stopped_scopes",
    "summed",
    "told_routes",
    "unanswered",
]

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
    if worst.verdict is Verdict.VACUOUS:
        worst = _vacuous(worst, found)
    # Of a stopped search the report says once, among what is not covered, how far it got and what is left.
    stopped = worst.verdict is Verdict.UNKNOWN and worst.note.startswith("stopped by")
    return replace(
        worst,
        coverage=_coverage(rows, worst, found, scopes),
        note="" if stopped else worst.note,
        details={**worst.details, "scopes": [f"{name} {each.states:,}" for name, each in found.items()]},
    )


def _vacuous(row: Result, found: Searches) -> Result:
    """How far all searches together got."""
    prop = next(each for search in found.values() for each in search.properties if each.name == row.property)
    way = at_best_of(found)[prop.name]
    note = way.note(prop.situation_phrase, "take a larger scope")
    return replace(row, note=note, details={**row.details, **way.plain()})


def at_best_of(found: Searches) -> dict[str, Furthest]:
    """Of each property and situation that was never met: how far all searches together got towards it."""
    situations, _ = summed(found)
    properties = next((search.properties for search in found.values()), ())
    return {
        prop.name: furthest(prop, properties, lambda names: situations[names[-1]])
        for prop in properties
        if not situations[prop.name]
    }


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


def unanswered(properties: Iterable[Property[State]], why: str, engine: str = "exhaustive") -> list[Result]:
    """A row for each property, of which an engine can say nothing: why, in words."""
    return [
        Result(engine=engine, property=each.name, verdict=Verdict.UNKNOWN, coverage="nothing", note=why)
        for each in properties
    ]


def never_fired(found: Searches) -> list[str]:
    """A line for each action that no state of any scope takes: none offers it, or its guard is never true."""
    names = sorted({name for each in found.values() for name in each.actions})
    lines = []
    for name in names:
        counts = [each.actions[name] for each in found.values() if name in each.actions]
        if any(count.fired for count in counts):
            continue
        reasons: dict[str, int] = {}
        for count in counts:
            for reason, times in count.refused.items():
                reasons[reason] = reasons.get(reason, 0) + times
        told = ", ".join(f"{reason} {times:,}" for reason, times in sorted(reasons.items()))
        why = f"its guard was never true ({told})" if told else "no state offers it"
        lines.append(f"action {name} never fired: {why}")
    return lines


def routes_taken(world: World, found: Searches, *, look_ahead: bool) -> dict[str, list[str]]:
    """Open route -> the scopes in which it is taken. `look_ahead`: whether any setup has a drafter that reads ahead."""
    taken = {}
    for route in routes_not_taken(world, {}, look_ahead=look_ahead):  # where nothing was met: all that are open
        met = ROUTE_SITUATIONS[route]
        taken[route] = [
            name for name, each in found.items() if any(each.situations.get(situation) for situation in met)
        ]
    return taken


def told_routes(taken: Mapping[str, Sequence[str]], found: Searches) -> dict[str, str]:
    """The same in words: `every scope but last-chunk`."""
    told = {}
    for route, scopes in taken.items():
        others = [name for name in found if name not in scopes]
        if not scopes:
            told[route] = "in none"
        elif len(others) < len(scopes):
            told[route] = f"in every one but {', '.join(others)}" if others else "in every one"
        else:
            told[route] = f"in {', '.join(scopes)}"
    return told


def order_of_arrivals(configuration: Configuration, scopes: Scopes | None = None) -> list[str]:
    """A line where the order of arrivals was fixed and that is no sound reduction: several requests under priority.

    `scopes` are all that was visited; None: whatever the configuration draws.
    """
    if scopes is None:
        risky = configuration.scope().requests > 1 and configuration.policy != "fcfs"
    else:
        setups = [state.setup for states in scopes.values() for state in states]
        risky = any(len(setup.requests) > 1 and setup.by_priority == 1 for setup in setups)
    if configuration.arrivals == "any" or not risky:
        return []
    return ["requests of equal priority that arrive in another order than they are numbered: --arrivals any"]


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
