"""The tables of the compiled search: answers of rules as numpy arrays, which grow, widen, and fill when asked.

Belongs here: everything between the rules in Python (asked through the tables of `tables.py`) and the arrays that the
loops of `kernel.py` read. Needs numpy and numba; imported only when a search is handed over.
"""

from collections.abc import Hashable, Sequence

import numpy as np
from outlives.model.contract import Action

from . import kernel
from .components import ComponentModel
from .handing_over import Unfit
from .kernel import Array
from .packed_judge import PackedJudge
from .packing import Packing
from .tables import Entry, FollowerTable, MoveTable, move_tables

__all__ = ["WORDS", "CompiledTables", "grown", "words"]

WORDS = 2
_WORD = (1 << 64) - 1
_NOTES = 2
"""Rows of notes to begin with."""
_MARGINS = (4, 3, 2, 1)
"""Bits that a field gets beyond what it needs now: the first of these with which a state fits."""


def words(packed: int) -> tuple[int, int]:
    """A packed state as the two words of the arrays."""
    return packed & _WORD, packed >> 64


def grown(old: Array, rows: int, fill: int | None = None) -> Array:
    """The array with more rows; the new ones hold `fill`, or anything."""
    new = np.empty((rows, *old.shape[1:]), old.dtype)
    new[: len(old)] = old
    if fill is not None:
        new[len(old) :] = fill
    return new


class CompiledTables:
    """Every answer of the rules so far. `room` is how many rows the arrays begin with, a power of two.

    What the tables of `packed_judge` and `moves` know is used where their packing suits.
    """

    def __init__(
        self,
        model: ComponentModel,
        packing: Packing,
        packed_judge: PackedJudge,
        moves: Sequence[MoveTable],
        room: int,
    ) -> None:
        self.model = model
        self.head = np.zeros(kernel.HEAD, np.int64)
        self.head[kernel.DEADLOCK] = -1
        self._calls = 0
        self.groups = np.zeros((room, 4), np.uint64)
        self.parts = np.full(room, kernel.UNKNOWN, np.int32)
        self.followers = np.zeros((room, 4), np.uint64)
        self.entries = np.zeros((room, 4), np.int32)
        self.visits = np.zeros(room, np.int64)
        self.branches = np.zeros((room, 3), np.uint64)
        self.keeps = np.zeros((0, 2), np.uint64)
        self._keeps: dict[int, int] = {}
        self.misses = np.zeros((room, 6), np.uint64)
        self.out = np.zeros((room, 2), np.uint64)
        self.by = np.zeros(room, np.int64)
        self.records: list[Entry] = [Entry()]
        """By their numbers in `entries`; number 0 is that of nothing to do."""
        self.branch_count = 0
        self.watched: dict[int, tuple[Action, tuple[str, ...]]] = {}
        """Number of a branch -> properties that must see each transition by it."""
        if fits(packing):
            self._take_up(packing, packed_judge, moves)
        else:
            self._take_up_anew(self._compact(packing), packed_judge)
        self._numbers: dict[Hashable, int] = {}
        self._notes: list[tuple[Hashable, ...]] = []
        """What each follower of a move hears of a note, by the note's number."""
        most = max((len(move.follower_masks) for move in moves), default=0)
        self.heard = np.zeros((_NOTES, max(1, most)), np.uint32)
        """The same as numbers; those that share their answers have the same number for the same."""
        self._heard: dict[Hashable, int] = {}

    # --- the plan ---------------------------------------------------------------------------------------------------

    def _take_up_anew(self, packing: Packing, before: PackedJudge) -> None:
        packed_judge = PackedJudge(self.model, packing, before.judge)
        self._take_up(packing, packed_judge, move_tables(packing, self.model, packed_judge))

    def _take_up(self, packing: Packing, packed_judge: PackedJudge, moves: Sequence[MoveTable]) -> None:
        """Everything that depends on where the fields are."""
        self.packing = packing
        self.packed_judge = packed_judge
        self.moves = moves
        sizes: dict[int, int] = {}
        eager: set[int] = set()
        """Groups that most states have a look into: those of the boundary, and of moves without a gate, and gates."""

        def part(mask: int, soon: bool) -> tuple[int, int]:
            """A place for one more answer in the group of this mask: which group, which place."""
            sizes[mask] = sizes.get(mask, 0) + 1
            eager.update({mask} if soon else ())
            return list(sizes).index(mask), sizes[mask] - 1

        part(packed_judge.within_mask, True)  # the first of all
        plan: list[tuple[int, ...]] = []
        self.follower_of: list[tuple[int, int]] = []
        shared: dict[int, int] = {}
        follower_groups: list[int] = []
        self._alike: dict[tuple[int, int], int] = {}
        """Move and place of a follower -> a number that those have in common that share their answers."""
        for m, move in enumerate(moves):
            gate = (-1, 0) if move.gate is None else part(move.gate.mask, True)
            open_ = move.gate is None
            plan.append((*gate, *part(move.mask, open_), len(follower_groups), len(move.follower_masks)))
            for place, mask in enumerate(move.follower_masks):
                alike = shared.setdefault(move.shares(place), len(shared))
                follower_groups.append(part(mask, open_)[0])
                self.follower_of.append((m, place))
                self._alike[m, place] = alike
        self.looked = [part(mask, False) for _, _, mask, _, _ in packed_judge.looked]
        self.plan = np.array(plan, np.int64).reshape(-1, 6)
        self.follower_groups = np.array(follower_groups, np.int64)
        self.masks = np.array([words(mask) for mask in sizes], np.uint64)
        self.sizes = np.array(list(sizes.values()), np.int64)
        self.eager = np.array([mask in eager for mask in sizes], np.bool_)
        self.bases = np.zeros((kernel.BATCH, len(sizes)), np.int64)

    @property
    def plans(self) -> tuple[Array, ...]:
        """What the loops read of the plan, in their order."""
        return (self.plan, self.follower_groups, self.masks, self.sizes, self.eager, self.bases)

    @property
    def answers(self) -> tuple[Array, ...]:
        """The tables that the loops read, in their order."""
        return (
            self.groups,
            self.parts,
            self.entries,
            self.branches,
            self.keeps,
            self.followers,
            self.heard,
            self.misses,
        )

    # --- questions ----------------------------------------------------------------------------------------------------

    def answer(self) -> None:
        """Answer all that was asked, and make room where it was missing. Raises `TooNarrow`; then nothing changed."""
        head = self.head
        rows = self.misses[: head[kernel.MISSES]].tolist()
        if rows:
            self._answer(rows)
        head[kernel.MISSES] = 0
        if head[kernel.FULL_MISSES]:
            self.misses = grown(self.misses, 2 * len(self.misses))
        if head[kernel.FULL_PARTS]:
            self.parts = grown(self.parts, 2 * len(self.parts), kernel.UNKNOWN)
        if head[kernel.FULL_GROUPS]:
            self._new_groups(2 * len(self.groups))
        if head[kernel.FULL_FOLLOWERS]:
            self._new_followers(2 * len(self.followers))
        if head[kernel.FULL_OUT]:
            self.out, self.by = grown(self.out, 2 * len(self.out)), grown(self.by, 2 * len(self.by))
        head[kernel.FULL_GROUPS : kernel.FULL_OUT + 1] = 0

    def _answer(self, rows: list[list[int]]) -> None:
        places, answers, written, results = [], [], [], []
        new = _New(len(self.records), self.branch_count)
        for kind, which, place, lo, hi, note in rows:
            key = lo | hi << 64
            if kind == kernel.MOVE:
                entry = self.moves[which].take(key)
                places.append(place)
                answers.append(self._number(new, which, entry) if entry.branches or entry.refused else 0)
            elif kind == kernel.FOLLOWER:
                m, position = self.follower_of[which]
                bits = self.moves[m].follower(position, self._notes[note][position]).take(key)
                written.append(place)
                results.append(words(bits))
            else:
                places.append(place)
                answers.append(int(self._yes(kind, which, key)))
        self._add(new)
        self.parts[places] = answers
        if written:
            self.followers[written, 1:3] = np.array(results, np.uint64)
            self.followers[written, 3] = kernel.READY

    def _yes(self, kind: int, which: int, key: int) -> bool:
        if kind == kernel.GATE:
            gate = self.moves[which].gate
            assert gate is not None
            return gate[key]
        return self.packed_judge.inside(key) if kind == kernel.WITHIN else self.packed_judge.holds(which, key)

    def _number(self, new: "_New", m: int, entry: Entry) -> int:
        """Write the entry down; its number."""
        first = new.first_branch + len(new.branches) // 3
        for b, (branch, action) in enumerate(zip(entry.branches, entry.actions, strict=True)):
            watches = entry.watched[b] if entry.watched else ()
            if watches:
                new.watched[first + b] = (action, tuple(watch.each.name for watch in watches))
            note = self._note(m, branch[2:]) if len(branch) > 2 else 0
            about = self._keep(branch[0]) | (1 << kernel.WATCHED if watches else 0) | note << int(kernel.NOTE)
            bits = branch[1]
            new.branches += (bits & _WORD, bits >> 64, about)
        new.entries += (first, len(entry.branches), 1 if entry.refused else 0, m)
        entry.branches = entry.watched = ()  # they stand in the arrays now
        new.records.append(entry)
        return new.first_entry + len(new.records) - 1

    def _note(self, m: int, followers: Sequence[FollowerTable]) -> int:
        """The number of a note of move m, of which these are the followers' tables."""
        notes = tuple(follower.note for follower in followers)
        number = self._numbers.setdefault((m, notes), len(self._notes))
        if number == len(self._notes):
            self._notes.append(notes)
            if number == len(self.heard):
                self.heard = grown(self.heard, 2 * number)
            for place, note in enumerate(notes):
                self.heard[number, place] = self._heard.setdefault((self._alike[m, place], note), len(self._heard))
        return number

    def _keep(self, keep: int) -> int:
        """Which of `keeps` these bits are: there is one for each set of components that branches write."""
        number = self._keeps.get(keep)
        if number is None:
            number = self._keeps[keep] = len(self._keeps)
            if number >> kernel.WATCHED:
                raise Unfit(f"branches write more than {number:,} different sets of components")
            self.keeps = np.array([words(each) for each in self._keeps], np.uint64)
        return number

    def _add(self, new: "_New") -> None:
        """Put new entries and their branches into the arrays."""
        end, b_end = len(self.records) + len(new.records), self.branch_count + len(new.branches) // 3
        while len(self.entries) < end:
            self.entries = grown(self.entries, 2 * len(self.entries))
            self.visits = grown(self.visits, 2 * len(self.visits), 0)
        while len(self.branches) < b_end:
            self.branches = grown(self.branches, 2 * len(self.branches))
        self.entries[len(self.records) : end] = np.array(new.entries, np.int32).reshape(-1, 4)
        self.branches[self.branch_count : b_end] = np.array(new.branches, np.uint64).reshape(-1, 3)
        self.records += new.records
        self.watched.update(new.watched)
        self.branch_count = b_end

    # --- growing ------------------------------------------------------------------------------------------------------

    def _new_groups(self, rows: int) -> None:
        old, self.groups = self.groups, np.zeros((rows, 4), np.uint64)
        kernel.rehash_groups(old, self.groups)

    def _new_followers(self, rows: int) -> None:
        old, self.followers = self.followers, np.zeros((rows, 4), np.uint64)
        self.head[kernel.FOLLOWERS] = kernel.rehash_followers(old, self.followers)

    def widen(self, states: Array) -> None:
        """Give the fields new widths, in the tables and in these states. Raises `Unfit`."""
        self._calls = self.rule_calls
        old = self.packing
        new = self._compact(old)
        _move(old, new, states)
        for array, lo in ((self.groups, 0), (self.followers, 1), (self.branches, 0)):
            _move(old, new, array[:, lo : lo + 2])
        _move(old, new, self.keeps, whole=True)
        self._keeps = {lo | hi << 64: number for number, (lo, hi) in enumerate(self.keeps.tolist())}
        self.head[kernel.MISSES] = 0
        self.parts[self.parts == kernel.ASKED] = kernel.UNKNOWN
        self._take_up_anew(new, self.packed_judge)
        self._new_groups(len(self.groups))
        self._new_followers(len(self.followers))

    @staticmethod
    def _compact(packing: Packing) -> Packing:
        for margin in _MARGINS:
            widths = {name: size.bit_length() + margin for name, size in packing.sizes().items()}
            new = packing.with_widths(widths)
            if fits(new):
                return new
        sizes = ", ".join(f"{name} {size:,}" for name, size in packing.sizes().items())
        raise Unfit(f"a state does not fit {64 * WORDS} bits (values by component: {sizes})")

    # --- what is known ----------------------------------------------------------------------------------------------

    @property
    def rule_calls(self) -> int:
        """How often a rule of a move was asked."""
        return self._calls + sum(table.calls for table in self.moves)

    @property
    def remembered(self) -> int:
        """How many answers of moves and followers stand in the tables."""
        return len(self.records) - 1 + int(self.head[kernel.FOLLOWERS])


class _New:
    """Entries on their way into the arrays."""

    def __init__(self, first_entry: int, first_branch: int) -> None:
        self.first_entry = first_entry
        self.first_branch = first_branch
        self.entries: list[int] = []
        self.branches: list[int] = []
        self.records: list[Entry] = []
        self.watched: dict[int, tuple[Action, tuple[str, ...]]] = {}


def fits(packing: Packing) -> bool:
    """Whether its states are two words, with no field across the border."""
    return packing.words <= WORDS and max(packing.widths.values()) <= 64


def _move(old: Packing, new: Packing, rows: Array, whole: bool = False) -> None:
    """Put the fields of these two columns where `new` has them. `whole`: fields are all ones or all noughts."""
    moved = np.zeros(rows.shape, np.uint64)
    for name in old.names:
        (word, shift), (to, up) = divmod(old.shifts[name], 64), divmod(new.shifts[name], 64)
        field = rows[:, word] >> np.uint64(shift) & np.uint64((1 << old.widths[name]) - 1)
        if whole:
            field = (field != 0) * np.uint64((1 << new.widths[name]) - 1)
        moved[:, to] |= field << np.uint64(up)
    rows[:] = moved
