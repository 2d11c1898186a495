"""Which cells of `outlives table` are stuck: the guard lets nothing go that is read, and for ever holds what is needed.

Belongs here: a model that begins in given setups, those in which progress is judged, and the two engines that judge
it. A guard that never releases is always safe; this is its price.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from outlives.model.scheduler import SchedulerModel, initial_state
from outlives.model.setup import Item, RequestSetup, Scope, Setup, key_name
from outlives.model.state import State
from outlives.model.world import World

from .explore import Bounds, breadth_first
from .fair import FairJudge
from .machine import random_walk
from .properties import scheduler_properties
from .verdict import Trace, Verdict

__all__ = ["STUCK_SETUPS", "BegunIn", "Stuck", "judge_progress"]

_PROGRESS = "PROGRESS"
_STEPS = 1_000
"""Steps of the random walk that is to meet a stuck state by itself."""


def _setup(prompt: int, **numbers: Any) -> Setup:
    """Two items, one right behind the other, and a cache that has room for one of them."""
    items = tuple(Item(2 * number, 2, key_name(number), 2) for number in (0, 1))
    return Setup((RequestSetup(prompt, 4, items),), slots=2, budget=4, drafts=1)._replace(**numbers)


STUCK_SETUPS = {False: (_setup(4), _setup(4, look_ahead=1)), True: (_setup(1),)}
"""Items anywhere or not -> the setups in which progress is judged, without and with a drafter that looks ahead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stuck:
    """What is known of a cell's progress."""

    trace: Trace | None
    """The shortest run to a state from which a request never ends although the environment leaves it alone."""
    engines: tuple[str, ...]
    """Who says so: that there is such a state, or, in every state of the setups and in a random walk, that none is."""
    note: str
    """Where the engines contradict each other."""
    coverage: str


class BegunIn(SchedulerModel):
    """The model, begun in these setups, with one property to judge."""

    def __init__(self, world: World, anywhere: bool, name: str, setups: Sequence[Setup]) -> None:
        judged = tuple(prop for prop in scheduler_properties(world) if prop.name == name)
        super().__init__(world, Scope(anywhere=anywhere), judged)
        self._setups = setups

    def initial_states(self) -> Iterable[State]:
        return tuple(initial_state(setup) for setup in self._setups)


def judge_progress(world: World, anywhere: bool) -> Stuck:
    """Judge progress in the cell's setups: in every state, and again along a random walk."""
    model = BegunIn(world, anywhere, _PROGRESS, STUCK_SETUPS[anywhere])
    found = breadth_first(model, bounds=Bounds(states=100_000), properties=(_PROGRESS,))
    exhaustive = next(iter(found.results()))
    if exhaustive.verdict not in (Verdict.VIOLATED, Verdict.EXHAUSTED):
        return Stuck(trace=None, engines=(), note=f"progress: {exhaustive.verdict}", coverage=exhaustive.coverage)
    walked = _stuck_states(model)
    note = ""
    if walked > 0 and exhaustive.trace is None:
        note = "a random walk is stuck, and yet the exhaustive engine has no such state"
    engines = ["exhaustive"]
    if (walked > 0) is (exhaustive.trace is not None):
        engines.append("machine")
    return Stuck(trace=exhaustive.trace, engines=tuple(engines), note=note, coverage=exhaustive.coverage)


def _stuck_states(model: SchedulerModel) -> int:
    """How many states of a random walk are stuck, of those in which a request is unfinished."""
    (progress,) = model.properties()
    judge = FairJudge(model)
    return sum(
        not progress.holds(after, None, judge.run(after).end)
        for _, _, after in random_walk(model, _STEPS)
        if progress.situation(after, None, after)
    )
