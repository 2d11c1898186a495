"""The fair run: what a model does from a reached state once the environment no longer gets in the way.

Belongs here: running it and saying how it ended. What a good end is, a `progress` property says; who is fair to whom,
the model says (`FairModel`). Every engine judges progress with these functions, so that they mean the same by it.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from outlives.model.contract import Action, FairModel, Model, Property, Refusal
from outlives.model.errors import BadModel

__all__ = ["FairEnd", "FairJudge", "FairRun", "fair_run", "progress_holds"]

State = TypeVar("State")
_MEMORY = 100_000  # states whose fair end is remembered before the memory starts anew; bounds memory, not meaning


class FairEnd(StrEnum):
    """Why a fair run ended."""

    DONE = "nothing left to do"
    REPEATS = "the state repeats"
    REFUSED = "the next action is refused"
    BOUND = "the bound was exceeded"


@dataclass(frozen=True, slots=True)
class FairRun(Generic[State]):
    """One fair run: the actions taken and the state after each, in order, and why it ended."""

    start: State
    actions: tuple[Action, ...]
    states: tuple[State, ...]
    reason: FairEnd

    @property
    def end(self) -> State:
        """The state where it ended; the start where no action was taken."""
        return self.states[-1] if self.states else self.start


def fair_run(model: Model[State], state: State) -> FairRun[State]:
    """Apply the model's fair action until none is left, it is refused, the state repeats or the bound is exceeded.

    A refused fair action leaves the state as it was, so the run would stay there for ever: it ends there.
    Raises BadModel where the model has no fair run.
    """
    return FairJudge(model).run(state)


def progress_holds(model: Model[State], prop: Property[State], state: State) -> bool:
    """Whether a `progress` property holds from this state."""
    return prop.holds(state, None, fair_run(model, state).end)


class FairJudge(Generic[State]):
    """Fair runs from many states of one model; a good end is remembered for every state on the way to it.

    Only ends with nothing left to do are remembered, with the number of actions to go, so that a state's own bound is
    still kept: where a run repeats or runs out of its bound, the end depends on where it began.
    """

    def __init__(self, model: Model[State]) -> None:
        if not isinstance(model, FairModel):
            raise BadModel("a progress property needs a fair run: the model must have fair_action and fair_bound.")
        self._model = model
        self._fair: FairModel = model
        self._done: dict[State, tuple[State, int]] = {}

    def end(self, state: State) -> State:
        """Where the fair run from this state ends."""
        known = self._done.get(state)
        if known is not None and known[1] <= self._fair.fair_bound(state):
            return known[0]
        return self.run(state, shortcut=True).end

    def run(self, start: State, *, shortcut: bool = False) -> FairRun[State]:
        """The fair run from this state; with `shortcut` it jumps to a remembered end (right end, fewer steps shown)."""
        bound = self._fair.fair_bound(start)
        actions: list[Action] = []
        states: list[State] = []
        seen = {start}
        state = start
        left = 0
        while True:
            known = self._done.get(state) if shortcut else None
            if known is not None and len(actions) + known[1] <= bound:
                reason, left = FairEnd.DONE, known[1]
                break
            action = self._fair.fair_action(state)
            if action is None:
                reason = FairEnd.DONE
                break
            if len(actions) >= bound:
                reason = FairEnd.BOUND
                break
            after = self._model.next_state(state, action)
            if isinstance(after, Refusal):
                reason = FairEnd.REFUSED
                break
            actions.append(action)
            states.append(after)
            state = after
            if state in seen:
                reason = FairEnd.REPEATS
                break
            seen.add(state)
        if reason is FairEnd.DONE:
            end = self._done[state][0] if left else state
            self._remember([start, *states], end, left)
            if left:
                states.append(end)
        return FairRun(start, tuple(actions), tuple(states), reason)

    def _remember(self, path: list[State], end: State, left: int) -> None:
        if len(self._done) > _MEMORY:
            self._done.clear()
        for position, state in enumerate(path):
            self._done[state] = (end, left + len(path) - 1 - position)
