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
from .checkpoint import Checkpoint
from .exploration import Exploration
from .judge import Judge, chosen
from .outcome import FOUND, NO_PARENT, Tally, compose

__all__ = ["breadth_first"]


def breadth_first(
    model: Model[Any],
    *,
    bounds: Bounds | None = None,
    listener: Listener | None = None,
    properties: Sequence[str] | None = None,
    checkpoint: Checkpoint | None = None,
    initial: Sequence[Any] | None = None,
    stop_when_found: bool = False,
) -> Exploration:
    """Every state of the model's scope, or as far as the bounds allow.

    `properties` restricts what is judged (None: all), `initial` replaces the model's initial states, `stop_when_found`
    ends the search once every judged property is violated. With a `checkpoint` the search goes on from its file if
    there is one, and keeps itself there. Raises `BadModel` where the model breaks its contract, `UnknownName` for an
    unknown property, `BadCheckpoint`. Ctrl-C ends the search like a bound, with `interrupted` set.
    """
    with seldom_collecting():
        return _Search(model, bounds or Bounds(), listener, properties, checkpoint, initial, stop_when_found).run()


class _Search:
    """One search and what it has found so far."""

    def __init__(
        self,
        model: Model[Any],
        bounds: Bounds,
        listener: Listener | None,
        properties: Sequence[str] | None,
        checkpoint: Checkpoint | None,
        initial: Sequence[Any] | None,
        stop_when_found: bool,
    ) -> None:
        self.stop_when_found = stop_when_found
        self.checkpoint = checkpoint
        self.careful = Careful(model, initial)
        self.judge = Judge(self.careful, chosen(model.properties(), properties))
        self.bounds = bounds
        self.meter = Meter(bounds, listener)
        self.tally = Tally()
        self.halfway = False
        """Inside the step from one consistent record to the next: not to be saved."""
        self.states: list[Any] = []
        self.seen: set[Any] = set()
        self.shared: dict[Any, Any] = {}
        self.fields: Any = None
        """The named tuple that states are, if they are one."""
        self.fired: dict[str, int] = {}
        self.refused: dict[str, dict[str, int]] = {}

    def run(self) -> Exploration:
        interrupted = False
        try:
            self._begin()
            stopped = self._levels()
        except KeyboardInterrupt:
            stopped, interrupted = "Ctrl-C", True
        if self.checkpoint is not None:
            if stopped is None:
                self.checkpoint.remove()
            elif not interrupted or not self.halfway:
                self._save()
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

    def _begin(self) -> None:
        if self.checkpoint is not None and self._restored(self.checkpoint):
            return
        initial = self.careful.initial_states()
        self.fields = type(initial[0]) if hasattr(initial[0], "_fields") else None
        for state in initial:
            self.judge.initial(state, self._admit(state, NO_PARENT))
        self.tally.levels.append(len(self.states))

    def _levels(self) -> str | None:
        """Search until nothing new is found (None) or a bound is met, which is named."""
        tally, states = self.tally, self.states
        while tally.done < len(states):
            if tally.done == tally.end:
                stop = tally.next_level(self.bounds.depth)
                if stop:
                    return stop
            level = len(tally.levels) - 2
            while tally.done < tally.end:
                self.halfway = True
                self._expand(tally.done)
                tally.levels[-1] = len(states) - tally.end
                self.halfway = False
                stop = self.meter.look(level, len(states), tally.transitions, len(states) - tally.done)
                if self.stop_when_found and self.judge.all_found:
                    return FOUND
                if stop:
                    return stop
                if self.checkpoint is not None and tally.done % 256 == 0 and self.checkpoint.due:
                    self._save()
            self.meter.tell(level, len(states), tally.transitions, len(states) - tally.done)
        return None

    def _save(self) -> None:
        assert self.checkpoint is not None
        self.checkpoint.save(
            self.careful.model,
            "plain",
            {
                "states": self.states,
                "tally": self.tally.saved(),
                "judge": self.judge.saved(),
                "fired": self.fired,
                "refused": self.refused,
            },
        )

    def _restored(self, checkpoint: Checkpoint) -> bool:
        saved = checkpoint.load(self.careful.model, "plain")
        if saved is None:
            return False
        try:
            self.states = list(saved["states"])
            self.seen = set(self.states)
            self.tally = Tally.restored(saved["tally"])
            self.judge.restore(saved["judge"])
            self.fired, self.refused = dict(saved["fired"]), dict(saved["refused"])
        except (KeyError, TypeError, ValueError) as error:
            raise checkpoint.refuse(f"its content does not fit ({type(error).__name__}: {error})") from error
        if not len(self.states) == len(self.seen) == self.tally.states:
            raise checkpoint.refuse("its states are not as many as it counts")
        self._verify(checkpoint)
        self.meter.resumed = len(self.states)
        return True

    def _verify(self, checkpoint: Checkpoint) -> None:
        """A sample of the states gone on from leads to known states only, and nothing else begins the search."""
        first = self.careful.initial_states()
        if self.states[: len(first)] != first:
            raise checkpoint.refuse("the model's initial states are others")
        for number in range(0, self.tally.done, max(1, self.tally.done // 100)):
            state = self.states[number]
            if self.careful.within(state):
                for action, after in self.careful.moves(state):
                    if not isinstance(after, Refusal) and after not in self.seen:
                        raise checkpoint.refuse(f"the model's {action} now leads to a state that it does not know")

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
        if self.fields is not None and isinstance(state, self.fields):
            # equal components of a named tuple are kept once
            state = state._make([self.shared.setdefault(part, part) for part in state])
        self.seen.add(state)
        self.states.append(state)
        self.tally.parents.append(parent)
        return len(self.states) - 1
