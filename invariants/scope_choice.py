"""Which setups an exhaustive run visits: the named scopes that fit its numbers, or a scenario's small equivalent.

Belongs here: the one set of rules by which `check` and `explore` choose, and what is said where a choice cannot be
had. The scopes themselves are data, in `scopes`.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from outlives.model.contract import Argument
from outlives.model.errors import Contradiction, UnknownName
from outlives.model.scheduler import SchedulerModel, initial_state
from outlives.model.state import State

from .configuration import Configuration
from .scopes import NAMED_SCOPES

__all__ = ["Scopes", "chosen_scopes"]

Scopes = Mapping[str, Sequence[State]]
"""Scope -> the initial states that are visited from, each of another setup."""

_MOST_SETUPS = 10_000


def chosen_scopes(
    configuration: Configuration, names: Sequence[str] = (), *, every_number: bool = True
) -> dict[str, tuple[State, ...]]:
    """The scopes to visit: the named ones (all that fit where none is named), or a scenario's small equivalent.

    Numbers that the user gave take the place of a scope's own. Of a range each number is visited; without
    `every_number` only the one nearest to the scope's own. Scopes that come to the same setups are visited once, and
    one whose subject the numbers exclude is left out. Raises `UnknownName`, `Contradiction`.
    """
    known = {each.name: each for each in NAMED_SCOPES}
    for name in names:
        if name not in known:
            raise UnknownName("scope", name, known)
    scenario = configuration.scenario_record()
    if scenario is not None:
        if names:
            raise Contradiction(f"scenario {scenario.name} fixes its numbers; drop --scope.")
        return {f"{scenario.name} (small)": (initial_state(scenario.small.setup({"numbers": "base"})),)}
    world, ranges = configuration.world(), configuration.scope()
    most = ranges.requests if "requests" in configuration.numbers else max(each.requests for each in known.values())
    for name in names:
        if known[name].requests > most:
            many = known[name].requests
            raise Contradiction(f"scope {name} has {many} requests; add --requests {many}.")
    fitting = [name for name, each in known.items() if each.requests <= most]
    seen: set[tuple[State, ...]] = set()
    scopes: dict[str, tuple[State, ...]] = {}
    for name in dict.fromkeys(names or fitting):
        named = known[name]
        # The ranges of the run clamp each number, so a scope's own number becomes the nearest that was given.
        model = SchedulerModel(world, named.own(ranges, configuration.numbers))
        numbers = _numbers(configuration, named.numbers) if every_number else (named.numbers,)
        every = dict.fromkeys(model.initial_state(each) for each in numbers)
        states = tuple(state for state in every if not named.misfit(state.setup, world))
        if not states:
            if name in names:
                needed = named.misfit(next(iter(every)).setup, world)
                raise Contradiction(f"scope {name} is about {needed}, which the numbers of this run exclude.")
            continue
        if states not in seen:
            seen.add(states)
            scopes[name] = states
    return scopes


def _numbers(configuration: Configuration, own: Mapping[str, Argument]) -> Iterator[Mapping[str, Argument]]:
    given = {
        {"items": "r0_items", "turns": "r0_turns"}.get(name, name): range(low, high + 1)
        for name, (low, high) in configuration.numbers.items()
        if name != "requests"
    }
    count = math.prod(len(span) for span in given.values())
    if count > _MOST_SETUPS:
        raise Contradiction(
            f"the ranges given make {count:,} setups of each scope; at most {_MOST_SETUPS:,} are visited. "
            "Narrow a range."
        )
    for values in product(*given.values()):
        yield {**own, **dict(zip(given, values, strict=True))}
