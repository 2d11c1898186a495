"""What each release violates under A1 to A4, with everything open: data for the tests and for `docs/findings.md`.

Belongs here: per release each violated property with the length of its shortest trace over all scopes and the first
scope that has it, and the search that must find exactly this. A property that is not named is violated in no state that
was visited; where a search ends at `MOST_STATES` that is not every state (`ENDLESS`).
"""

from collections.abc import Mapping
from typing import NamedTuple

from outlives.invariants.configuration import Configuration
from outlives.invariants.explore import Bounds, explore
from outlives.invariants.scope_choice import chosen_scopes

__all__ = ["ENDLESS", "MOST_STATES", "RELEASE_SETS", "Seen", "Shortest", "look", "table"]

MOST_STATES = 20_000
"""Of one scope. The largest that ends has some 17,000."""


class Shortest(NamedTuple):
    """The shortest trace to a violation."""

    actions: int
    scope: str


class Seen(NamedTuple):
    """What a search of every scope saw."""

    shortest: Mapping[str, Shortest]
    endless: tuple[str, ...]
    """Scopes in which counters drift without end: the search stopped at `MOST_STATES`."""
    states: int


_CRASH, _STUCK = "GATHER-AFTER-FREE", "PROGRESS"
_WITHDRAWN = {"PLANNED-ENCODED": Shortest(4, "withdrawn-encode"), "SHELF-AGREES": Shortest(6, "withdrawn-encode")}
_FAILED_LOAD = {"COUNTERS-SOUND": Shortest(3, "failed-load"), "PLACEHOLDERS-KEPT": Shortest(3, "failed-load")}
_FALLS = {"CONFIRMED-MONOTONE": Shortest(7, "reset-beside-stale")}
_SLOTS = {"SLOTS-ADD-UP": Shortest(2, "encoder-decoder")}
_TWICE = {"RELEASE-ONCE": Shortest(2, "encoder-decoder")}
_REPEATED = {"REFERENCES-MATCH": Shortest(4, "repeated-key")}
_TIGHT = {_STUCK: Shortest(1, "tight-cache")}
_EARLY = {
    _CRASH: Shortest(3, "chunk-end"),
    _STUCK: Shortest(1, "adjacent-items"),
    **_WITHDRAWN,
    **_FAILED_LOAD,
    **_FALLS,
}
_LATE = {_CRASH: Shortest(6, "shared-in-one-pass"), **_WITHDRAWN, **_FAILED_LOAD, **_SLOTS, **_TWICE}

RELEASE_SETS: Mapping[str, Mapping[str, Shortest]] = {
    "0.11.0": {
        _CRASH: Shortest(3, "tight-cache"),
        "PLACEHOLDERS-KEPT": Shortest(4, "three-in-flight"),
    },
    "0.12.0": {**_EARLY, _CRASH: Shortest(3, "whole-items")},
    "0.13.0": {**_EARLY, **_SLOTS, "SHELF-AGREES": Shortest(3, "encoder-decoder")},
    "0.17.1": {**_EARLY, **_SLOTS},
    "0.20.0": {**_EARLY, **_SLOTS, **_TWICE},
    "0.24.0": {**_LATE, **_TIGHT, **_FALLS, **_REPEATED},
    "0.27.0": {**_LATE, **_TIGHT, **_REPEATED},
    "0.28.0": {**_LATE, **_TIGHT, **_REPEATED},
    "0.29.0": {**_LATE, **_TIGHT},
    "0.32.0": {**_LATE, **_TIGHT},
    "0.33.0": {**_LATE, _STUCK: Shortest(1, "whole-items")},
    "repaired": {},
}
"""Profile -> property -> its shortest trace. Found by the engine, then read against the released source."""

ENDLESS: Mapping[str, tuple[str, ...]] = {
    "0.17.1": ("turns-and-resets",),
    "0.20.0": ("turns-and-resets",),
    "0.24.0": ("reset-beside-stale", "reset-mid-decode"),
}
"""Profile -> scopes that are not visited whole."""


def look(profile: str) -> Seen:
    """Search every scope of a profile, the named ones as `outlives check` chooses them: both policies, every route and
    mode."""
    configuration = Configuration(profile=profile)
    model = configuration.model()
    shortest: dict[str, Shortest] = {}
    endless: list[str] = []
    states = 0
    scopes = dict(chosen_scopes(configuration, every_number=False))
    for scope, initial in scopes.items():
        found = explore(model, bounds=Bounds(states=MOST_STATES), initial=initial)
        states += found.states
        if not found.complete:
            endless.append(scope)
        for name, trace in found.traces.items():
            if name not in shortest or len(trace.actions) < shortest[name].actions:
                shortest[name] = Shortest(len(trace.actions), scope)
    return Seen(shortest, tuple(endless), states)


def table() -> str:
    """The sets as the table of `docs/findings.md`: release by property, the shortest trace and its scope."""
    names = list(dict.fromkeys(name for found in RELEASE_SETS.values() for name in found))
    lines = ["| release | " + " | ".join(names) + " |", "| --- |" + " --- |" * len(names)]
    for profile, found in RELEASE_SETS.items():
        cells = [f"{found[name].actions} {found[name].scope}" if name in found else "" for name in names]
        lines.append(f"| {profile} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
