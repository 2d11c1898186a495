"""The statistics of exhaustive searches as tables: size, levels, actions, and how runs end.

Belongs here: what `outlives explore --stats` shows, made from `Exploration` records. The same numbers as plain values
are `Exploration.statistics`.
"""

from collections.abc import Iterator

from .combined import Searches
from .report import DataTable

__all__ = ["statistics_tables"]

_PROGRESS = "PROGRESS"


def statistics_tables(found: Searches, deadlock: str) -> Iterator[DataTable]:
    """Four tables over these searches, by scope. `deadlock` is the property that counts deadlocks."""
    yield _sizes(found)
    yield _levels(found)
    yield _actions(found)
    yield _ends(found, deadlock)


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
        never = [scope for scope in found if scope not in counts or not counts[scope].fired]
        rows.append(
            (
                name,
                f"{sum(count.fired for count in counts.values()):,}",
                ", ".join(f"{reason} {times:,}" for reason, times in sorted(refused.items())) or "-",
                "anywhere" if len(never) == len(found) else ", ".join(never) or "-",
            )
        )
    return DataTable(
        name="actions",
        title="Actions, from every state that was gone on from",
        columns=("action", "fired", "refused", "never fired in"),
        rows=tuple(rows),
    )


def _ends(found: Searches, deadlock: str) -> DataTable:
    rows = []
    ways = []
    for name, each in found.items():
        judged = _PROGRESS in each.broken and _PROGRESS not in each.no_fair_run
        rows.append(
            (
                name,
                f"{each.deadlocks + each.ends - each.broken[deadlock]:,}",
                f"{each.broken[deadlock]:,}",
                f"{each.broken[_PROGRESS]:,}" if judged else "not judged",
                f"{each.outside:,}",
            )
        )
        if deadlock in each.traces:
            actions = ", ".join(map(str, each.traces[deadlock].actions))
            ways.append(f"{name}: a shortest way into a deadlock: {actions}")
    return DataTable(
        name="ends",
        title="States in which nothing happens any more, or not enough",
        columns=("scope", "nothing left to do", "deadlocks", "stuck", "engine dead"),
        rows=tuple(rows),
        legend=(
            "nothing left to do: every action is refused, and no request is unfinished; that is no deadlock",
            "deadlocks: every action is refused while a request is unfinished; stuck: the fair run from there never "
            "finishes a request (PROGRESS); engine dead: after a read of a missing key",
            *ways,
        ),
    )
