"""From what a search has in its arrays to the record that it answers: traces, counts by action, the estimate.

Belongs here: the last step of both engines, so that a trace and a count mean the same in both.
"""

from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from outlives.model.contract import Action, TableModel

from ..verdict import Step, Trace
from .bounds import Meter, remaining, resident_bytes
from .care import Careful
from .exploration import ActionCount, Exploration
from .judge import Finding, Judge

__all__ = ["FOUND", "NO_PARENT", "SHORTEST", "Tally", "compose"]

SHORTEST = "shortest possible"
FOUND = "the first violation"
"""Why a search stops that was asked for nothing more."""
NO_PARENT = 0xFFFFFFFF
"""The parent of an initial state. So one search holds at most 4,294,967,295 states."""


class Tally:
    """The counts of a search, kept in the order of discovery; both engines fill it."""

    def __init__(self) -> None:
        self.parents = array("I")
        """For each state the number of the one from which it was first found."""
        self.levels: list[int] = []
        """New states by distance; the last may be unfinished."""
        self.end = 0
        """States of all levels but the last: those to be dealt with before the next level begins."""
        self.done = 0
        """States dealt with, in order: gone on from, or outside the boundary."""
        self.outside = 0
        self.ends = 0
        self.transitions = 0
        self.deadlocks = 0
        self.deadlock: int | None = None
        """The first state in which every action is refused."""

    @property
    def states(self) -> int:
        return len(self.parents)

    def next_level(self, depth: int | None) -> str | None:
        """Begin the next level, every state of the last one being dealt with; or the bound on depth, in words."""
        if depth is not None and len(self.levels) > depth:
            return f"the bound of {depth} actions"
        self.end = self.states
        self.levels.append(0)
        return None

    def saved(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {**vars(self), "parents": self.parents.tobytes(), "levels": list(self.levels)}

    @classmethod
    def restored(cls, saved: Mapping[str, Any]) -> "Tally":
        """From a checkpoint. Raises `ValueError` where the numbers do not fit together."""
        tally = cls()
        if set(saved) != set(vars(tally)):
            raise ValueError("the counts are not those of this version")
        for name, value in saved.items():
            setattr(tally, name, value)
        tally.parents = array("I", saved["parents"])
        if sum(tally.levels) != tally.states or not 0 <= tally.done <= tally.end <= tally.states:
            raise ValueError("the levels do not add up")
        return tally


def compose(
    careful: Careful,
    judge: Judge,
    tally: Tally,
    meter: Meter,
    state: Callable[[int], Any],
    counts: tuple[Mapping[str, int], Mapping[str, Mapping[str, int]]],
    stopped: str | None,
    interrupted: bool,
    details: Mapping[str, Any],
) -> Exploration:
    """The record of a search. `state` gives a state by its number; `counts` are what fired and was refused, by name."""
    levels = list(tally.levels)
    while len(levels) > 1 and not levels[-1]:
        levels.pop()
    seconds = meter.seconds
    memory = resident_bytes()
    rate = (tally.states - meter.resumed) / seconds if seconds else 0.0

    def path(number: int) -> list[Step]:
        return _path(careful, tally.parents, state, number)

    return Exploration(
        properties=judge.properties,
        states=tally.states,
        transitions=tally.transitions,
        levels=tuple(levels),
        expanded=tally.done - tally.outside,
        outside=tally.outside,
        ends=tally.ends,
        deadlocks=tally.deadlocks,
        deadlock=None if tally.deadlock is None else _deadlock(careful, path(tally.deadlock)),
        actions=_actions(careful, *counts),
        situations=dict(judge.situations),
        broken=dict(judge.broken),
        traces={
            each.name: _violation(careful, judge, each.name, path, judge.found[each.name])
            for each in judge.properties
            if each.name in judge.found
        },
        no_fair_run=judge.without_fair_run,
        stopped=stopped,
        interrupted=interrupted,
        left=remaining(levels[:-1], tally.states - tally.done, rate) if stopped else "",
        seconds=seconds,
        memory=memory,
        details={
            **details,
            "states_per_second": round(rate),
            "bytes_per_state": round(max(0, memory - meter.memory) / max(1, tally.states)),
            "resumed": meter.resumed,
        },
    )


def _actions(
    careful: Careful, fired: Mapping[str, int], refused: Mapping[str, Mapping[str, int]]
) -> dict[str, ActionCount]:
    names = {*fired, *refused}
    if isinstance(careful.model, TableModel):
        names |= set(careful.model.action_table)
    return {
        name: ActionCount(fired=fired.get(name, 0), refused=dict(sorted(refused.get(name, {}).items())))
        for name in sorted(names)
    }


def _deadlock(careful: Careful, steps: Sequence[Step]) -> Trace:
    refused = [f"{action}: {after.reason}" for action, after in careful.moves(steps[-1].state)]
    why = f"every action is refused: {', '.join(refused)}"
    return Trace(steps=tuple(steps), property="DEADLOCK", why=why, shortest=SHORTEST)


def _violation(careful: Careful, judge: Judge, name: str, path: Callable[[int], list[Step]], finding: Finding) -> Trace:
    each = next(one for one in judge.properties if one.name == name)
    steps = path(finding.number)
    before, action, after = steps[-1].state, steps[-1].action, steps[-1].state
    if finding.action is not None:
        action, after = finding.action, careful.next_state(before, finding.action)
        steps.append(Step(action, after))
    elif each.kind == "progress":
        action, after = None, judge.fair_end(before)
    elif len(steps) > 1:
        before = steps[-2].state
    return Trace(steps=tuple(steps), property=name, why=judge.explain(each, before, action, after), shortest=SHORTEST)


def _path(careful: Careful, parents: Sequence[int], state: Callable[[int], Any], number: int) -> list[Step]:
    chain = [number]
    while parents[chain[-1]] != NO_PARENT:
        chain.append(parents[chain[-1]])
    chain.reverse()
    steps = [Step(None, state(chain[0]))]
    for each in chain[1:]:
        after = state(each)
        steps.append(Step(_least_action(careful, steps[-1].state, after), after))
    return steps


def _least_action(careful: Careful, before: Any, after: Any) -> Action:
    for action, state in careful.moves(before):
        if state == after:
            return action
    raise careful.inconsistent(before, after)
