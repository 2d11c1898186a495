"""The statistics of exhaustive searches as tables: size, levels, actions, and how runs end.

Belongs here: what `outlives explore --stats` shows, made from `Exploration` records. The same numbers as plain values
are `Exploration.statistics`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from .combined import Searches
from .endings import ENDINGS, ends_of, shortest_way
from .explore import Exploration
from .report import DataTable

__all__ = ["plain_statistics", "statistics_tables"]


def statistics_tables(found: Searches) -> Iterator[DataTable]:
    """Four tables over these searches, by scope."""
    yield _sizes(found)
    yield _levels(found)
    yield _actions(found)
    yield _ends(found)


def plain_statistics(found: Exploration) -> dict[str, Any]:
    """The same numbers of one search as plain values, with a shortest way into each kind of bad ending."""
    told = found.statistics()
    for each in ("situations", "broken"):
        told[each] = {key: value for key, value in told[each].items() if key not in ENDINGS}
    for words, states in ends_of(found).items():
        told[words.replace(" ", "_")] = states
    told["shortest_ways"] = {
        words: [str(action) for action in found.traces[name].actions]
        for name, words in ENDINGS.items()
        if name in found.traces
    }
    return told


def _sizes(found: Searches) -> DataTable:
    return DataTable(
        name="search",
        title="Search",
        columns=("scope", "states", "transitions", "depth", "states/s", "seconds", "MiB", "bytes/state", "seen"),
        rows=tuple(
            (
                name,
                f"{each.states:,}",
                f"{each.transitions:,}",
                str(each.depth),
                f"{each.details['states_per_second']:,}",
                f"{each.seconds:.2f}",
                f"{each.memory / 2**20:,.0f}",
                f"{each.details['bytes_per_state']:,}",
                "every state" if each.complete else f"to depth {each.searched}",
            )
            for name, each in found.items()
        ),
        legend=("MiB: the whole process at the end of the search; depth: actions to the farthest new state",),
    )


def _levels(found: Searches) -> DataTable:
    return DataTable(
        name="levels",
        title="New states by distance from the initial states, 0 actions first",
        columns=("scope", "states per level"),
        rows=tuple((name, " ".join(f"{size:,}" for size in each.levels)) for name, each in found.items()),
    )


def _actions(found: Searches) -> DataTable:
    rows = []
    for name in sorted({name for each in found.values() for name in each.actions}):
        counts = {scope: each.actions[name] for scope, each in found.items() if name in each.actions}
        refused: dict[str, int] = {}
        for count in counts.values():
            for reason, times in count.refused.items():
                refused[reason] = refused.get(reason, 0) + times
        never = {
            scope: "always refused" if scope in counts and counts[scope].refused else "never offered"
            for scope in found
            if scope not in counts or not counts[scope].fired
        }
        rows.append(
            (
                name,
                f"{sum(count.fired for count in counts.values()):,}",
                ", ".join(f"{reason} {times:,}" for reason, times in sorted(refused.items())) or "-",
                _never(never, len(found)),
            )
        )
    return DataTable(
        name="actions",
        title="Actions, from every state that was gone on from",
        columns=("action", "fired", "refused", "never fired in"),
        rows=tuple(rows),
    )


def _never(never: Mapping[str, str], scopes: int) -> str:
    """Where an action never fired, and whether a guard was in its way: `anywhere (never offered)`."""
    whys = sorted(set(never.values()))
    told = []
    for why in whys:
        names = [scope for scope, each in never.items() if each == why]
        told.append(f"{'anywhere' if len(names) == scopes else ', '.join(names)} ({why})")
    return "; ".join(told) or "-"


def _ends(found: Searches) -> DataTable:
    rows = []
    ways = []
    for name, each in found.items():
        ends = ends_of(each)
        shown = [f"{ends[words]:,}" if words in ends else "not judged" for words in ENDINGS.values()]
        rows.append((name, f"{ends['nothing left to do']:,}", *shown, f"{each.outside:,}"))
        ways += [
            f"{name}: {words}, {shortest_way(each.traces[kind])}"
            for kind, words in ENDINGS.items()
            if kind in each.traces
        ]
    return DataTable(
        name="ends",
        title="States in which nothing happens any more, or not enough",
        columns=("scope", "nothing left to do", *ENDINGS.values(), "engine dead"),
        rows=tuple(rows),
        legend=(
            "nothing left to do: every action is refused, and no request is unfinished; that is no deadlock",
            "deadlocks: every action is refused while a request is unfinished",
            "standstills, stuck cycles: left alone by the environment, the scheduler comes to rest or goes round for "
            "ever, and an unfinished request never gets a token again (PROGRESS)",
            "engine dead: after a read of a missing key",
            *ways,
        ),
    )
