"""The fast search: the same record as `breadth.py`, over models that show their components.

Belongs here: the search over packed states. The tables that stand for the rules are in `tables.py`.

Theory of operation. As in `breadth.py`, in the same order; a state is one integer, going on from it is a look into one
table per move. The rules run only where a table has a gap. For safety against a rule that reads more than it says, the
answers for a sample of states are compared with `next_state` while the search runs.
"""

from collections.abc import Sequence
from typing import Any

from outlives.model.contract import Model, Refusal
from outlives.model.errors import BadModel

from .bounds import Bounds, Listener, Meter, seldom_collecting
from .care import Careful, shown
from .components import ComponentModel
from .exploration import Exploration
from .judge import Judge, chosen
from .loop import Loop, written_out
from .outcome import NO_PARENT, Tally, compose
from .packed_judge import PackedJudge
from .tables import Entry, MoveTable, Packing, TooNarrow, move_tables

__all__ = ["interned_search"]

_WIDTH = 16
"""Bits that number a component's values at first; a component that needs more gets twice as many."""
_CHUNK = 256
"""States gone on from between two looks at bounds and properties."""
_COMPARE_FIRST = 64
"""Chunks up to this one have their first state compared with the plain rules ..."""
_COMPARE_EVERY = 16
"""... and afterwards every so many-th chunk."""


def interned_search(
    model: Model[Any],
    *,
    bounds: Bounds | None = None,
    listener: Listener | None = None,
    properties: Sequence[str] | None = None,
    width: int = _WIDTH,
) -> Exploration:
    """As `breadth_first`, for a model that is also a `ComponentModel`; the same record, save seconds and details.

    `width` is how many bits number a component's values at first; where they do not suffice the search begins again
    with more. Raises `BadModel` also where components and `next_state` disagree.
    """
    if not isinstance(model, ComponentModel):
        raise BadModel("the model shows no components (split, join, moves, looks); use breadth_first.")
    meter = Meter(bounds or Bounds(), listener)
    widths = {name: getattr(model, "component_bits", {}).get(name, width) for name in model.components}
    with seldom_collecting():
        while True:
            try:
                return _Search(model, meter, properties, widths).run()
            except TooNarrow as narrow:
                widths[narrow.component] *= 2


class _Search:
    """One search and what it has found so far."""

    def __init__(self, model: Any, meter: Meter, properties: Sequence[str] | None, widths: dict[str, int]) -> None:
        self.model = model
        self.careful = Careful(model)
        self.judge = Judge(self.careful, chosen(model.properties(), properties))
        self.meter = meter
        self.tally = Tally()
        self.packing = Packing(model.components, widths)
        self.packed_judge = PackedJudge(model, self.packing, self.judge)
        self.moves = move_tables(self.packing, model, self.packed_judge)
        self.states: list[int] = []
        self.seen: set[int] = set()
        self.outside: set[int] = set()
        """What the boundary looks at, where it says no."""
        self.inside: set[int] = set()
        self.chunks = 0

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
            lambda number: self.packed_judge.state(self.states[number]),
            self._counts(),
            stopped,
            interrupted,
            self._details(),
        )

    def _levels(self) -> str | None:
        tally, states, depth = self.tally, self.states, self.meter.bounds.depth
        for state in self.careful.initial_states():
            packed = self.packing.pack(self.model.split(state))
            if self.packed_judge.state(packed) != state:
                raise BadModel(f"join(split(state)) is not the state: {shown(state)}.")
            self.seen.add(packed)
            states.append(packed)
            tally.parents.append(NO_PARENT)
            self.judge.initial(state, len(states) - 1)
        tally.levels.append(len(states))
        loop, limit = self._loop(), self.meter.bounds.states or 1 << 62
        while tally.done < len(states):
            level, end = len(tally.levels) - 1, len(states)
            if depth is not None and level >= depth:
                return f"the bound of {depth} actions"
            tally.levels.append(0)
            while tally.done < end:
                first, done = len(states), tally.done
                self._boundary(states[done : min(done + _CHUNK, end)])
                self._compare(states[done])
                tally.done, taken = loop(done, min(done + _CHUNK, end), limit)
                tally.transitions += taken
                self.packed_judge.new_states(states[first:], first)
                tally.levels[-1] = len(states) - end
                waiting = len(states) - tally.done
                stop = self.meter.look(level, len(states), tally.transitions, waiting, tally.done - done)
                if stop:
                    return stop
            self.meter.tell(level, len(states), tally.transitions, len(states) - tally.done)
        return None

    def _loop(self) -> Loop:
        return written_out(
            self.moves,
            {
                "states": self.states,
                "parents": self.tally.parents,
                "seen": self.seen,
                "outside": self.outside,
                "within_mask": self.packed_judge.within_mask,
                "skipped": self._skip,
                "no_successor": self._no_successor,
                "watch": self._watch,
            },
        )

    def _skip(self, number: int) -> None:  # noqa: ARG002
        self.tally.outside += 1

    def _watch(self, state: int, table: MoveTable, entry: Entry, number: int) -> None:
        """Judge the transitions of a move that its table alone does not decide."""
        for branch, action, watches in zip(entry.branches, entry.actions, entry.watched, strict=True):
            if watches:
                after = table.after(state, branch)
                for watch in watches:
                    watch.see(state, action, after, number)

    def _no_successor(self, state: int, number: int) -> None:
        tally = self.tally
        if not any(entry.refused for table in self.moves if (entry := table.entry(state))):
            tally.ends += 1
            return
        tally.deadlocks += 1
        if tally.deadlock is None:
            tally.deadlock = number

    def _boundary(self, states: Sequence[int]) -> None:
        """Ask the boundary once per value of what it looks at."""
        judge = self.packed_judge
        if judge.within is None:
            for packed in states:
                if not self.careful.within(judge.state(packed)):
                    self.outside.add(packed)
            return
        for key in set(map(judge.within_mask.__and__, states)) - self.inside - self.outside:
            inside = self.careful.within(judge.state(key, judge.within.after))
            (self.inside if inside else self.outside).add(key)

    def _compare(self, packed: int) -> None:
        """Hold the tables' answer for one state against the model's own."""
        self.chunks += 1
        if self.chunks > _COMPARE_FIRST and self.chunks % _COMPARE_EVERY:
            return
        state = self.packed_judge.state(packed)
        if not self.careful.within(state):
            return
        plain: dict[Any, Any] = dict(self.careful.moves(state))
        tabled: dict[Any, Any] = {}
        for table in self.moves:
            entry = table.entry(packed)
            if entry is None:
                continue
            tabled.update({one.action: Refusal(one.reason) for one in entry.refused})
            for action, branch in zip(entry.actions, entry.branches, strict=True):
                tabled[action] = self.packed_judge.state(table.after(packed, branch))
        if plain != tabled:
            action = min(each for each in {*plain, *tabled} if plain.get(each) != tabled.get(each))
            raise BadModel(
                f"components and next_state disagree on action {action} in state {shown(state)}: by components "
                f"{shown(tabled.get(action, 'not offered'), 200)}, by next_state "
                f"{shown(plain.get(action, 'not offered'), 200)}. A rule may read more than its move says."
            )

    def _counts(self) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
        fired: dict[str, int] = {}
        refused: dict[str, dict[str, int]] = {}
        for table in self.moves:
            for entry in table.values():
                if not entry.visits:
                    continue
                for action in entry.actions:
                    fired[action.name] = fired.get(action.name, 0) + entry.visits
                for one in entry.refused:
                    reasons = refused.setdefault(one.action.name, {})
                    reasons[one.reason] = reasons.get(one.reason, 0) + entry.visits
                for name in entry.situations:
                    self.judge.situations[name] += entry.visits
        return fired, refused

    def _details(self) -> dict[str, Any]:
        return {
            "engine": "interned",
            "components": self.packing.sizes(),
            "rule_calls": sum(table.calls for table in self.moves),
            "table_entries": sum(len(table) + table.followed() for table in self.moves),
        }
