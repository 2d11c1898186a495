"""The tie over a whole scope: every transition of every state that a scope has is a step of the proved relation.

Belongs here: the property of steps that says so, and its search. A random walk (`proof_row.tie_row`) samples; here
nothing is left out of the scope: each action in each state, seen for each request, each item of it, and each step in
flight that was told of the item.

What it makes of "one request and one item stand for many": in the scope's every run of two or three requests, what
happens to a pair of request and item is a run of the relation, move for move. That this is so for every scope is still
an argument (`docs/theory.md`).
"""

from collections.abc import Sequence

from outlives.model.contract import Action, Property
from outlives.model.scheduler import SchedulerModel
from outlives.model.setup import Scope
from outlives.model.state import State
from outlives.model.world import World

from ..explore import Bounds, Exploration, breadth_first
from .tie import untied

__all__ = ["TIED", "steps_are_proved_about", "tie_scope"]

TIED = "STEPS-ARE-PROVED-ABOUT"


def steps_are_proved_about(world: World) -> Property[State]:
    """Each executed action is a step of the relation, for each pair of request and item."""

    def difference(before: State, action: Action | None, after: State) -> str:
        if action is None:
            return ""
        return next(untied(world, before, action, after), "")

    return Property(
        name=TIED,
        phrase="each executed action is a step of the proved relation, for each request and item",
        holds=lambda before, action, after: difference(before, action, after) == "",
        explain=difference,
        situation=lambda _before, action, after: action is not None and not after.misses,
        situation_phrase="an action was executed",
        kind="step",
    )


def tie_scope(world: World, initial: Sequence[State], *, states: int | None = None) -> Exploration:
    """Hold every transition that can follow these states against the relation, up to so many states. A step that is
    none of the relation's is a trace under `TIED`, none shorter."""
    scope = Scope(requests=max(len(state.requests) for state in initial), anywhere=True)
    model = SchedulerModel(world, scope, (steps_are_proved_about(world),))
    return breadth_first(model, bounds=Bounds(states=states), initial=initial)
