"""The plain search: every state of a scope, level by level, over any model of the contract.

Belongs here: the reference. It asks the model for everything and remembers nothing but the states; the faster engine
in `interned.py` must give the same record, and tests compare the two.

Theory of operation. States are kept in the order of discovery and gone on from in that order. Actions of a state are
tried by name, then arguments. So by induction over the levels states stand in the order of their least traces, the
first state (or transition) that breaks a property has a shortest trace, and the least among the equally short. Nothing
of it depends on hash seeds: the dictionary of states is asked, never iterated.
"""

from collections.abc import Sequence
from typing import Any

from outlives.model.contract import Model, Refusal

from .bounds import Bounds, Listener, Meter, seldom_collecting
from .care import Careful
from .exploration import Exploration
from .judge import Judge, chosen
from .outcome import NO_PARENT, Tally, compose

__all__ = ["breadth_first"]


def breadth_first(
    model: Model[Any],
    *,
    bounds: Bounds | None = None,
    listener: Listener | None = None,
    properties: Sequence[str] | None = None,
) -> Exploration:
    """Every state of the model's scope, or as far as the bounds allow.

    `properties` restricts what is judged (None: all). Raises `BadModel` where the model breaks its contract and
    `UnknownName` for an unknown property. Ctrl-C ends the search like a bound, with `interrupted` set.
    """
    with seldom_collecting():
        return _Search(model, bounds or Bounds(), listener, properties).run()


class _Search:
    """One search and what it has found so far."""

    def __init__(
        self, model: Model[Any], bounds: Bounds, listener: Listener | None, properties: Sequence[str] | None
    ) -> None:
        self.careful = Careful(model)
        self.judge = Judge(self.careful, chosen(model.properties(), properties))
        self.bounds = bounds
        self.meter = Meter(bounds, listener)
        self.tally = Tally()
        self.states: list[Any] = []
        self.seen: set[Any] = set()
        self.fired: dict[str, int] = {}
        self.refused: dict[str, dict[str, int]] = {}

    def run(self) -> Exploration:
        stopped, interrupted = None, False
        try:
            stopped = self._levels()
        except KeyboardInterrupt:
            stopped, interrupted = "Ctrl-C", True
        return compose(
            self.careful,
            self.judge,
            self.tally,
            self.meter,
            self.states.__getitem__,
            (self.fired, self.refused),
            stopped,
            interrupted,
            {"engine": "plain"},
        )

    def _levels(self) -> str | None:
        """Search until nothing new is found (None) or a bound is met, which is named."""
        tally, states = self.tally, self.states
        for state in self.careful.initial_states():
            self.judge.initial(state, self._admit(state, NO_PARENT))
        tally.levels.append(len(states))
        while tally.done < len(states):
            level, end = len(tally.levels) - 1, len(states)
            if self.bounds.depth is not None and level >= self.bounds.depth:
                return f"the bound of {self.bounds.depth} actions"
            tally.levels.append(0)
            while tally.done < end:
                self._expand(tally.done)
                tally.levels[-1] = len(states) - end
                stop = self.meter.look(level, len(states), tally.transitions, len(states) - tally.done)
                if stop:
                    return stop
            self.meter.tell(level, len(states), tally.transitions, len(states) - tally.done)
        return None

    def _expand(self, number: int) -> None:
        """Try every action of a state."""
        tally, state = self.tally, self.states[number]
        tally.done += 1
        if not self.careful.within(state):
            tally.outside += 1
            return
        moves = self.careful.moves(state)
        taken = 0
        for action, after in moves:
            if isinstance(after, Refusal):
                reasons = self.refused.setdefault(action.name, {})
                reasons[after.reason] = reasons.get(after.reason, 0) + 1
                continue
            taken += 1
            self.fired[action.name] = self.fired.get(action.name, 0) + 1
            new = None if after in self.seen else self._admit(after, number)
            self.judge.transition(state, action, after, number, new)
        tally.transitions += taken
        if not moves:
            tally.ends += 1
        elif not taken:
            tally.deadlocks += 1
            if tally.deadlock is None:
                tally.deadlock = number

    def _admit(self, state: Any, parent: int) -> int:
        self.seen.add(state)
        self.states.append(state)
        self.tally.parents.append(parent)
        return len(self.states) - 1
