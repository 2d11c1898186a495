"""The plain search: every state of a scope, level by level, over any model of the contract.

Belongs here: the reference. It asks the model for everything and remembers nothing but the states; the faster engine
in `interned.py` must give the same record, and tests compare the two.

Theory of operation. States are kept in the order of discovery and gone on from in that order. Actions of a state are
tried by name, then arguments. So by induction over the levels states stand in the order of their least traces, the
first state (or transition) that breaks a property has a shortest trace, and the least among the equally short. Nothing
of it depends on hash seeds: the dictionary of states is asked, never iterated.
"""

from array import array
from collections.abc import Sequence
from typing import Any

from outlives.model.contract import Action, Model, Refusal, TableModel

from ..verdict import Step, Trace
from .bounds import Bounds, Listener, Meter, remaining, resident_bytes
from .care import Careful
from .exploration import ActionCount, Exploration
from .judge import Finding, Judge, chosen

__all__ = ["Search", "breadth_first"]

SHORTEST = "shortest possible"
NO_PARENT = 0xFFFFFFFF


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
    return Search(model, bounds or Bounds(), listener, properties).run()


class Search:
    """One search and what it has found so far."""

    def __init__(
        self, model: Model[Any], bounds: Bounds, listener: Listener | None, properties: Sequence[str] | None
    ) -> None:
        self.careful = Careful(model)
        self.judge = Judge(self.careful, chosen(model.properties(), properties))
        self.bounds = bounds
        self.meter = Meter(bounds, listener)
        self.numbers: dict[Any, int] = {}
        """State -> its position in the order of discovery."""
        self.states: list[Any] = []
        self.parents = array("I")
        """For each state the position of the one from which it was first found."""
        self.levels: list[int] = []
        self.expanded = 0
        self.done = 0
        """States dealt with: gone on from, or outside the boundary."""
        self.outside = 0
        self.ends = 0
        self.transitions = 0
        self.deadlocks: int = 0
        self.deadlock: int | None = None
        self.fired: dict[str, int] = {}
        self.refused: dict[str, dict[str, int]] = {}

    def run(self) -> Exploration:
        """Search until nothing new is found or a bound is met."""
        stopped, interrupted = None, False
        try:
            stopped = self._levels()
        except KeyboardInterrupt:
            stopped, interrupted = "Ctrl-C", True
        return self._exploration(stopped, interrupted)

    def _levels(self) -> str | None:
        if not self.states:
            for state in self.careful.initial_states():
                self.judge.initial(state, self._admit(state, NO_PARENT))
            self.levels.append(len(self.states))
        while self.done < len(self.states):
            level = len(self.levels) - 1
            if self.bounds.depth is not None and level >= self.bounds.depth:
                return f"the bound of {self.bounds.depth} actions"
            end = sum(self.levels)
            self.levels.append(0)
            while self.done < end:
                self._expand(self.done)
                self.levels[-1] = len(self.states) - end
                stop = self.meter.look(level, len(self.states), self.transitions, len(self.states) - self.done)
                if stop:
                    return stop
            if not self.levels[-1]:
                self.levels.pop()
            self.meter.tell(level, len(self.states), self.transitions, len(self.states) - self.done)
        return None

    def _expand(self, index: int) -> None:
        state = self.states[index]
        if not self.careful.within(state):
            self.outside += 1
            self.done += 1
            return
        moves = self.careful.moves(state)
        went = False
        for action, after in moves:
            if isinstance(after, Refusal):
                reasons = self.refused.setdefault(action.name, {})
                reasons[after.reason] = reasons.get(after.reason, 0) + 1
                continue
            went = True
            self.transitions += 1
            self.fired[action.name] = self.fired.get(action.name, 0) + 1
            new = None
            if after not in self.numbers:
                new = self._admit(after, index)
            self.judge.transition(state, action, after, index, new)
        if not moves:
            self.ends += 1
        elif not went:
            self.deadlocks += 1
            if self.deadlock is None:
                self.deadlock = index
        self.expanded += 1
        self.done += 1

    def _admit(self, state: Any, parent: int) -> int:
        number = self.numbers[state] = len(self.states)
        self.states.append(state)
        self.parents.append(parent)
        return number

    def _exploration(self, stopped: str | None, interrupted: bool) -> Exploration:
        judge = self.judge
        while len(self.levels) > 1 and not self.levels[-1]:
            self.levels.pop()
        waiting = len(self.states) - self.done
        seconds = self.meter.seconds
        rate = len(self.states) / seconds if seconds else 0.0
        return Exploration(
            properties=judge.properties,
            states=len(self.states),
            transitions=self.transitions,
            levels=tuple(self.levels),
            expanded=self.expanded,
            outside=self.outside,
            ends=self.ends,
            deadlocks=self.deadlocks,
            deadlock=self._deadlock(),
            actions=self._actions(),
            situations=dict(judge.situations),
            broken=dict(judge.broken),
            traces={
                each.name: self._trace(each.name, judge.found[each.name])
                for each in judge.properties
                if each.name in judge.found
            },
            no_fair_run=judge.without_fair_run,
            stopped=stopped,
            interrupted=interrupted,
            left=remaining(self.levels[:-1], waiting, rate) if stopped else "",
            seconds=seconds,
            memory=resident_bytes(),
            details={"engine": "plain"},
        )

    def _actions(self) -> dict[str, ActionCount]:
        model = self.careful.model
        names = {*self.fired, *self.refused}
        if isinstance(model, TableModel):
            names |= set(model.action_table)
        return {
            name: ActionCount(fired=self.fired.get(name, 0), refused=dict(sorted(self.refused.get(name, {}).items())))
            for name in sorted(names)
        }

    def _deadlock(self) -> Trace | None:
        if self.deadlock is None:
            return None
        steps = self._path(self.deadlock)
        refused = [f"{action}: {after.reason}" for action, after in self.careful.moves(steps[-1].state)]
        return Trace(
            steps=tuple(steps),
            property="DEADLOCK",
            why=f"every action is refused: {', '.join(refused)}",
            shortest=SHORTEST,
        )

    def _trace(self, name: str, finding: Finding) -> Trace:
        each = next(one for one in self.judge.properties if one.name == name)
        steps = self._path(finding.number)
        before, action, after = steps[-1].state, steps[-1].action, steps[-1].state
        if finding.action is not None:
            action, after = finding.action, self.careful.next_state(before, finding.action)
            steps.append(Step(action, after))
        elif each.kind == "progress":
            action, after = None, self.judge.fair_end(before)
        elif len(steps) > 1:
            before = steps[-2].state
        why = self.judge.explain(each, before, action, after)
        return Trace(steps=tuple(steps), property=name, why=why, shortest=SHORTEST)

    def _path(self, index: int) -> list[Step]:
        chain = [index]
        while self.parents[chain[-1]] != NO_PARENT:
            chain.append(self.parents[chain[-1]])
        chain.reverse()
        steps = [Step(None, self.states[chain[0]])]
        for number in chain[1:]:
            steps.append(Step(self._least_action(steps[-1].state, self.states[number]), self.states[number]))
        return steps

    def _least_action(self, before: Any, after: Any) -> Action:
        for action, state in self.careful.moves(before):
            if state == after:
                return action
        raise self.careful.inconsistent(before, after)
