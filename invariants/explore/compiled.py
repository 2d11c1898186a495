"""The compiled search: the same record as `interned.py`, a level at a time in loops compiled by numba.

Belongs here: the states, who is gone on from next, and what is judged. It takes a search over from `interned.py`, asks
`kernel.py` to go on from a few ten thousand states at a time, and answers the questions that it comes back with from
`compiled_tables.py`. Needs numpy and numba; imported only when a search is handed over.
"""

from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
from outlives.model.contract import Refusal

from . import kernel
from .compiled_tables import CompiledTables, grown, words
from .components import ComponentModel
from .handing_over import Unfit
from .jit import is_kept, works
from .judge import Finding
from .kernel import Array
from .outcome import Tally
from .packed_judge import PackedJudge
from .packing import Packing, TooNarrow
from .tables import Entry, MoveTable

__all__ = ["CompiledSearch", "kept", "works"]

_CHUNK = 1 << 14
"""States gone on from between two looks at bounds and properties."""
_COMPARE_EVERY = 1 << 12
"""One state of so many, the first of each chunk among them, is compared with the plain rules."""
_ROOM = 1 << 14
"""Rows with which the arrays begin."""
_MOST = 0xFFFFFFFE


def kept() -> bool:
    """Whether an earlier run left the machine code on disk, so that the search begins at once."""
    return all(is_kept(loop) for loop in (kernel.expand, kernel.walk))


class CompiledSearch:
    """One search, from the states that are known on. `tally` is kept up to date after every chunk."""

    def __init__(
        self,
        model: ComponentModel,
        packing: Packing,
        packed_judge: PackedJudge,
        moves: Sequence[MoveTable],
        tally: Tally,
        states: Sequence[int],
    ) -> None:
        room = _ROOM
        self.judge = packed_judge.judge
        self.tally = tally
        self.tables = CompiledTables(model, packing, packed_judge, moves, room)
        self.head = self.tables.head
        while room < len(states):
            room *= 2
        moved = map(packing.mover(self.tables.packing), states)
        self.states = np.zeros((room, 2), np.uint64)
        self.states[: len(states)] = np.array([words(packed) for packed in moved], np.uint64)
        self.parents = np.zeros(room, np.uint32)
        self.parents[: len(states)] = tally.parents
        self.seen = np.zeros(2 * room, np.uint64)
        kernel.reseed(self.states, len(states), self.seen)
        self._make_buffers(room)
        self.todo = np.zeros(_CHUNK, np.int64)
        self.spans = np.zeros((_CHUNK, 4), np.int64)
        self.used = np.zeros((_CHUNK, max(1, len(moves))), np.int32)
        self._first = 0
        """The number of the state with which `spans` begins."""
        counts = (len(states), tally.done, tally.transitions, tally.outside, tally.ends, tally.deadlocks)
        self.head[: len(counts)] = counts
        self.head[kernel.DEADLOCK] = -1 if tally.deadlock is None else tally.deadlock
        self._told = 0
        """Rows of the log that were judged."""
        self._judged = [len(states)] * (len(self.tables.looked) + 1)
        """How many states each property that says what it looks at has judged; the last: how many all others have."""

    # --- going on -----------------------------------------------------------------------------------------------------

    def chunk(self, limit: int) -> Sequence[int]:
        """Go on from the next states of this level, and judge what is new; `limit` as in `kernel.walk`. Answers which
        of these states are to be compared with the plain rules. Raises `Unfit` where the states no longer fit.
        """
        head = self.head
        first = int(head[kernel.DONE])
        end = min(first + _CHUNK, self.tally.end)
        self._expand(first, end)
        while head[kernel.DONE] < end and not 0 < limit <= head[kernel.STATES]:
            done = int(head[kernel.DONE])
            space = (self.states, self.parents, self.seen, self.touched, self.tables.visits, self.log)
            kernel.walk(head, self._found, self.tables.branches, space, first, end, limit)
            self.settle()
            if not self._make_room() and head[kernel.DONE] == done:
                raise RuntimeError("the compiled search does not get on: a fault of outlives, not of the model.")
        self._first = first
        return range(first, int(head[kernel.DONE]), _COMPARE_EVERY)

    def _expand(self, first: int, end: int) -> None:
        """Have everything in `out` that follows these states; questions that it takes are answered."""
        head = self.head
        widened = True
        while widened or head[kernel.TODO]:
            if widened:
                head[kernel.TODO] = end - first
                self.todo[: end - first] = np.arange(end - first)
                head[kernel.ROWS] = 0
            tables = self.tables
            kernel.expand(head, tables.plans, tables.answers, self._found, self.states, first, self.todo)
            widened = self._answer()

    @property
    def _found(self) -> tuple[Array, ...]:
        return (self.tables.out, self.tables.by, self.spans, self.used)

    def _answer(self) -> bool:
        """Answer what was asked; whether the fields had to be widened instead, so that it must be asked again."""
        try:
            self.tables.answer()
        except TooNarrow:
            known = self.head[kernel.STATES]
            self.tables.widen(self.states[:known])
            self._seen_anew(len(self.seen))
            return True
        return False

    def _make_room(self) -> bool:
        """Make room where the walk missed it; False where it did not."""
        head = self.head
        full = bool(head[kernel.FULL_STATES] or head[kernel.FULL_LOG])
        if head[kernel.FULL_LOG] and len(self.log) < 2 * int(self.spans[:, kernel.COUNT].max()):
            self._make_buffers(2 * len(self.log))
        if head[kernel.FULL_STATES]:
            needed = int(head[kernel.NEEDED])
            if needed > _MOST:
                raise Unfit(f"there are more than {_MOST:,} states")
            while len(self.states) < needed:
                self.states = grown(self.states, 2 * len(self.states))
                self.parents = grown(self.parents, 2 * len(self.parents))
            if 5 * needed > 3 * len(self.seen):
                self._seen_anew(2 * len(self.seen))
        head[kernel.FULL_STATES] = head[kernel.FULL_LOG] = 0
        return full

    def _seen_anew(self, rows: int) -> None:
        self.seen = np.zeros(0, np.uint64)  # the old one goes before the new one comes
        self.seen = np.zeros(rows, np.uint64)
        kernel.reseed(self.states, int(self.head[kernel.STATES]), self.seen)

    def _make_buffers(self, rows: int) -> None:
        """What a batch needs: where to look, and transitions that properties have to see."""
        self.log = np.zeros((rows, 4), np.uint64)
        self.touched = np.zeros((rows, 2), np.uint64)

    # --- judging ------------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Bring the tally and the judge up to date with what the loops did. May be called again after Ctrl-C."""
        head, tally, judge = self.head, self.tally, self.tables.packed_judge
        known = int(head[kernel.STATES])
        tally.parents = cast(Any, self.parents[:known])  # read by number only
        tally.done, tally.transitions = int(head[kernel.DONE]), int(head[kernel.TRANSITIONS])
        tally.outside, tally.ends = int(head[kernel.OUTSIDE]), int(head[kernel.ENDS])
        tally.deadlocks = int(head[kernel.DEADLOCKS])
        tally.deadlock = int(head[kernel.DEADLOCK]) if head[kernel.DEADLOCK] >= 0 else None
        tally.levels[-1] = known - tally.end
        for number, branch, lo, hi in self.log[self._told : head[kernel.LOGGED]].tolist():
            self._told += 1
            action, names = self.tables.watched[branch]
            for name in names:
                judge.watch(name).see(self._packed(number), action, lo | hi << 64, number)
        self._told = head[kernel.LOGGED] = 0
        for p in range(len(self.tables.looked)):
            self._judge(p)
        if judge.looks_at_whole_states:
            for number in range(self._judged[-1], known):
                self._judged[-1] = number + 1
                judge.whole_states([self._packed(number)], number)

    def _judge(self, p: int) -> None:
        """A property that says what it looks at, in the new states."""
        tables = self.tables
        while True:
            first, (g, part) = self._judged[p], tables.looked[p]
            still, broken, at = kernel.judge_states(
                self.head, tables.plans, tables.answers, self.states, first, g, part, p
            )
            if not still:
                break
            self._answer()
        self._judged[p] = int(self.head[kernel.STATES])
        if broken:
            self.judge.break_(tables.packed_judge.looked[p][0], Finding(at), broken)

    def after(self, number: int) -> dict[Any, Any]:
        """By the tables, what every action of a state of the last chunk leads to: a state or a refusal."""
        tables = self.tables
        first, count, uses, _ = self.spans[number - self._first].tolist()
        after = iter(tables.out[first : first + count].tolist())
        found: dict[Any, Any] = {}
        for entry in self.used[number - self._first, :uses].tolist():
            record = tables.records[entry]
            found.update({one.action: Refusal(one.reason) for one in record.refused})
            for action in record.actions:
                lo, hi = next(after)
                found[action] = tables.packed_judge.state(lo | hi << 64)
        return found

    # --- what was found ---------------------------------------------------------------------------------------------

    def state(self, number: int) -> Any:
        """A state by its number."""
        return self.tables.packed_judge.state(self._packed(number))

    def _packed(self, number: int) -> int:
        lo, hi = self.states[number].tolist()
        packed: int = lo | hi << 64
        return packed

    def entries(self) -> Iterator[Entry]:
        """Every entry that was visited, with its visits."""
        visits = self.tables.visits[: len(self.tables.records)].tolist()
        for entry, count in zip(self.tables.records, visits, strict=True):
            entry.visits = count
            if count:
                yield entry
