"""Where a property, a guard or an action stands in our source: the file within the repository, and the line.

Belongs here: from names to the functions behind them, and to their code objects. Names come from traces and may be
anything; one that nothing of ours has gives no place. Nothing is loaded from a user's file.
"""

from functools import cache
from inspect import isfunction
from pathlib import Path
from typing import Any, NamedTuple

from outlives.model.contract import Property
from outlives.model.lifetime import GUARDS
from outlives.model.profiles import PROFILES, RELEASED_RULES
from outlives.model.scheduler import SchedulerModel
from outlives.model.world import World

from ..properties import scheduler_properties
from ..subject.live import ALIKE, NO_EXCEPTION

__all__ = ["Place", "action_place", "guard_place", "known_properties", "place_of", "property_place"]


class Place(NamedTuple):
    """One function of ours."""

    path: str
    """Within the repository, with slashes: `model/lifetime.py`."""
    line: int
    """Where the function begins, from 1."""
    name: str


@cache
def known_properties() -> dict[str, Property[Any]]:
    """Every property that has a name of ours, those of real schedulers included."""
    repaired = PROFILES["repaired"]
    world = World(rules=RELEASED_RULES, switches=repaired.switches, guard=repaired.guard)
    return {prop.name: prop for prop in (*scheduler_properties(world), NO_EXCEPTION, ALIKE)}


def property_place(name: str) -> Place | None:
    """The predicate of the property."""
    prop = known_properties().get(name)
    return None if prop is None else place_of(prop.holds)


def guard_place(name: str) -> Place | None:
    """The condition of the guard."""
    guard = GUARDS.get(name)
    return None if guard is None else place_of(guard.condition)


def action_place(name: str) -> Place | None:
    """What the model does for the action."""
    handler = vars(SchedulerModel).get(f"_{name}")
    if not isfunction(handler) or handler.__code__.co_varnames[:3] != ("self", "state", "action"):
        return None
    return place_of(handler)


def place_of(function: Any) -> Place | None:
    """Where a function is written; of a lambda that only calls another function of ours, where that one is. None for
    what is not of our two rooms."""
    if not isfunction(function):
        return None
    if function.__name__ == "<lambda>":
        inside = [cell.cell_contents for cell in function.__closure__ or ()]
        called = [each for each in inside if isfunction(each)]
        if len(called) == 1:
            return place_of(called[0])
    path = _within(Path(function.__code__.co_filename))
    return None if path is None else Place(path, function.__code__.co_firstlineno, function.__name__)


@cache
def _within(path: Path) -> str | None:
    for folder, room in _rooms().items():
        if path.is_relative_to(folder):
            return f"{room}/{path.relative_to(folder).as_posix()}"
    return None


@cache
def _rooms() -> dict[Path, str]:
    """The folder of each package, as its code objects name it -> its folder in the repository."""
    model = Path(SchedulerModel.next_state.__code__.co_filename).parent
    return {model: "model", Path(place_of.__code__.co_filename).parent.parent: "invariants"}
