"""Components as small integers, states as one integer each, and rules as tables that fill themselves.

Belongs here: the packing, and the memo of every move and follower. What is searched with them is in `interned.py`.

Theory of operation. Each distinct value of a component gets a number, in the order in which it is first met; a state
is the numbers of its components side by side in one integer, each in a field of its own width. A move is a
dictionary from the bits that it reads to its compiled branches, each of which is "keep these bits, set those"; a
missing key calls the rule. Widths are checked: a component with more values than its field can
number raises `TooNarrow`, and the search begins again with wider fields.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol

from outlives.model.contract import Action
from outlives.model.errors import BadModel

from .care import in_order, shown, told
from .components import Branch, ComponentModel, Follower, Gate, Move, Refused

__all__ = ["BranchJudge", "Compiled", "Entry", "MoveTable", "Packing", "TooNarrow", "move_tables"]


class TooNarrow(Exception):
    """A component has more values than its field can number. Never leaves this package."""

    def __init__(self, component: str) -> None:
        super().__init__(component)
        self.component = component


class Packing:
    """Between component values and bits."""

    def __init__(self, names: Sequence[str], widths: Mapping[str, int]) -> None:
        if len(set(names)) != len(names) or not names:
            raise BadModel(f"the model's components must have distinct names, at least one: {', '.join(names)}.")
        self.names = tuple(names)
        self.widths = {name: widths[name] for name in self.names}
        self.shifts, self.words = _placed(self.widths)
        self._fields = {name: (1 << self.widths[name]) - 1 for name in self.names}
        self.all = sum(self._fields[name] << self.shifts[name] for name in self.names)
        self._masks: dict[tuple[str, ...], int] = {}
        self._numbers: dict[str, dict[Hashable, int]] = {name: {} for name in self.names}
        self._values: dict[str, list[Hashable]] = {name: [] for name in self.names}

    def reader(self, names: Sequence[str]) -> Callable[[int], list[Hashable]]:
        """A function from a packed state to the values of these components."""
        fields = [(self._values[name], self.shifts[name], self._fields[name]) for name in names]
        return lambda packed: [values[packed >> shift & field] for values, shift, field in fields]

    def mask(self, names: tuple[str, ...], where: str) -> int:
        """The bits of these components. Raises `BadModel` for an unknown one, saying where it was named."""
        mask = self._masks.get(names)
        if mask is None:
            for name in names:
                if name not in self.shifts:
                    raise BadModel(f"{where} names the component {name!r}; the model has {', '.join(self.names)}.")
            mask = self._masks[names] = sum(self._fields[name] << self.shifts[name] for name in set(names))
        return mask

    def bits(self, name: str, value: Hashable) -> int:
        """A value's number, in its place."""
        numbers = self._numbers[name]
        number = numbers.get(value)
        if number is None:
            number = len(numbers)
            if number > self._fields[name]:
                raise TooNarrow(name)
            numbers[value] = number
            self._values[name].append(value)
        return number << self.shifts[name]

    def value(self, name: str, packed: int) -> Hashable:
        """The value of one component of a packed state (or of a part of one that has these bits)."""
        return self._values[name][packed >> self.shifts[name] & self._fields[name]]

    def pack(self, values: Sequence[Hashable]) -> int:
        """All components of a state as one integer."""
        if len(values) != len(self.names):
            raise BadModel(f"split gave {len(values)} values for the {len(self.names)} components of the model.")
        return sum(self.bits(name, value) for name, value in zip(self.names, values, strict=True))

    def unpack(self, packed: int, only: Sequence[str] | None = None) -> tuple[Any, ...]:
        """The components, in order; None in place of those that are not asked for."""
        return tuple(self.value(name, packed) if only is None or name in only else None for name in self.names)

    def saved(self) -> dict[str, Any]:
        """For a checkpoint: the widths, and the values in the order of their numbers."""
        return {"widths": dict(self.widths), "values": {name: list(values) for name, values in self._values.items()}}

    def restore(self, saved: Mapping[str, Any]) -> Callable[[int], int]:
        """Take up the values of a checkpoint; answers how a state packed there is packed here. Raises `ValueError`."""
        if list(saved["widths"]) != list(self.names) or list(saved["values"]) != list(self.names):
            raise ValueError("the components are others")
        there = Packing(self.names, saved["widths"])
        for name in self.names:
            for number, value in enumerate(saved["values"][name]):
                if self.bits(name, value) != number << self.shifts[name]:
                    raise ValueError(f"a value of {name} is there twice")
        return there.mover(self)

    def mover(self, other: "Packing") -> Callable[[int], int]:
        """How a state packed here is packed there, the values having the same numbers."""
        if self.widths == other.widths:
            return lambda packed: packed
        moved = [(self.shifts[name], self._fields[name], other.shifts[name]) for name in self.names]
        return lambda packed: sum((packed >> old & field) << new for old, field, new in moved)

    def with_widths(self, widths: Mapping[str, int]) -> "Packing":
        """The same values with the same numbers (shared with this one) in fields of other widths."""
        other = Packing(self.names, widths)
        other._numbers, other._values = self._numbers, self._values
        return other

    def sizes(self) -> dict[str, int]:
        """Component -> how many distinct values were met."""
        return {name: len(values) for name, values in self._values.items()}


def _placed(widths: Mapping[str, int]) -> tuple[dict[str, int], int]:
    """Where each field begins, and how many words of 64 bits that takes. A field that fits a word is within one."""
    shifts: dict[str, int] = {}
    room: list[int] = []
    for name, width in widths.items():
        word = next((word for word, free in enumerate(room) if width <= free), None)
        if word is None:
            shifts[name] = 64 * len(room)
            filled, rest = divmod(width, 64)
            room += [0] * filled + ([64 - rest] if rest else [])
        else:
            shifts[name] = 64 * word + 64 - room[word]
            room[word] -= width
    return shifts, len(room)


class BranchJudge(Protocol):
    """Whoever has properties to judge, as far as the tables need it."""

    def branch(
        self, action: Action, before: int, known: int, after: int, written: int, later: int
    ) -> tuple[tuple[Any, ...], list[str]]:
        """What to look at in each transition by this branch, and the situations that are plain from here.

        `before` has the `known` bits; `after` has the `written` ones save the `later` ones, which followers write.
        """
        ...


Compiled = tuple[Any, ...]
"""A branch as bits: (keep, bits, one follower table each). The state after is `before & keep | bits` and what the
followers add. A plain tuple, because it is taken apart once per transition."""


class Entry:
    """What a move does for one value of what it reads."""

    __slots__ = ("actions", "branches", "refused", "situations", "visits", "watched")

    def __init__(self) -> None:
        self.visits = 0
        self.branches: tuple[Compiled, ...] = ()
        self.actions: tuple[Action, ...] = ()
        """Of each branch."""
        self.refused: tuple[Refused, ...] = ()
        self.situations: tuple[str, ...] = ()
        """Properties that a visit puts to the test, once for each time that they stand here."""
        self.watched: tuple[tuple[Any, ...], ...] = ()
        """Of each branch, what has to look at each such transition; empty where nothing has to at any."""


_NOTHING = Entry()
"""The entry of every key for which a move has nothing; its visits mean nothing."""


class FollowerTable(dict[int, int]):
    """What a follower writes, by the bits that it reads, for one note."""

    def __init__(self, packing: Packing, follower: Follower, note: Hashable) -> None:
        super().__init__()
        self._packing = packing
        self._follower = follower
        self.note = note
        self._read = packing.reader(follower.reads)

    def __missing__(self, key: int) -> int:
        packing, follower = self._packing, self._follower
        values = self._read(key)
        try:
            written = follower.rule(self.note, *values)
        except Exception as error:
            raise BadModel(f"a follower's rule raised {told(error)} on {shown((self.note, *values))}.") from error
        if len(written) != len(follower.writes):
            raise BadModel(f"a follower writes {', '.join(follower.writes)} but gave {len(written)} values.")
        bits = self[key] = sum(packing.bits(name, value) for name, value in zip(follower.writes, written, strict=True))
        return bits

    def take(self, key: int) -> int:
        """What stands at a key, which is forgotten here: whoever takes it keeps it."""
        bits = self[key]
        del self[key]
        return bits


class Followers:
    """The tables of all followers of a search; moves that name the same follower share its tables."""

    def __init__(self, packing: Packing) -> None:
        self._packing = packing
        self._known: list[tuple[Follower, _Tables]] = []

    def tables(self, follower: Follower, where: str) -> "_Tables":
        """The tables of a follower; `where` is it named."""
        for known, tables in self._known:
            if known == follower:
                return tables
        found = _Tables(self._packing, follower, where)
        self._known.append((follower, found))
        return found

    def remembered(self) -> int:
        """How many results are remembered."""
        return sum(len(table) for _, each in self._known for table in each.by_note.values())


class _Tables:
    """A follower's tables, one per note."""

    def __init__(self, packing: Packing, follower: Follower, where: str) -> None:
        self.mask = packing.mask(follower.reads, where)
        self.by_note: dict[Hashable, FollowerTable] = {}
        self._packing = packing
        self._follower = follower

    def table(self, note: Hashable) -> FollowerTable:
        table = self.by_note.get(note)
        if table is None:
            table = self.by_note[note] = FollowerTable(self._packing, self._follower, note)
        return table


class GateTable(dict[int, bool]):
    """A move's gate, by the bits that it reads."""

    def __init__(self, packing: Packing, gate: Gate, where: str) -> None:
        super().__init__()
        self.mask = packing.mask(gate.reads, where)
        self._packing = packing
        self._gate = gate

    def __missing__(self, key: int) -> bool:
        values = [self._packing.value(name, key) for name in self._gate.reads]
        try:
            answer = self[key] = bool(self._gate.rule(*values))
        except Exception as error:
            raise BadModel(f"a gate's rule raised {told(error)} on {shown(tuple(values))}.") from error
        return answer


def _in_strict_order(outcomes: Sequence[Branch | Refused]) -> bool:
    """Whether the actions are in order already, no two of them equal."""
    try:
        return all(one.action < next_.action for one, next_ in pairwise(outcomes))
    except TypeError:  # one argument is a number here and a name there
        return False


class MoveTable(dict[int, Entry]):
    """A move's entries, by the bits that it reads. `judge` says what must be looked at in each branch."""

    def __init__(self, packing: Packing, move: Move, judge: BranchJudge, followers: Followers) -> None:
        super().__init__()
        where = f"the move of {', '.join(move.names)}"
        self.mask = packing.mask(move.reads, where)
        self.followers = followers
        self.calls = 0
        self._packing = packing
        self._read = packing.reader(move.reads)
        self._move = move
        self._judge = judge
        self._followers = [followers.tables(each, where) for each in move.followers]
        self._by_note: dict[Hashable, tuple[FollowerTable, ...]] = {}
        self.follower_masks = tuple(each.mask for each in self._followers)
        writes = [name for each in move.followers for name in each.writes]
        if len(set(writes)) != len(writes):
            raise BadModel(f"two followers of {where} write one component.")
        self._followed = packing.mask(tuple(writes), where)
        self.gate = None if move.gate is None else GateTable(packing, move.gate, where)

    def __missing__(self, key: int) -> Entry:
        values = self._read(key)
        self.calls += 1
        try:
            outcomes = list(self._move.rule(*values))
        except Exception as error:
            names = ", ".join(self._move.names)
            raise BadModel(f"the rule of {names} raised {told(error)} on {shown(tuple(values))}.") from error
        if not outcomes:
            self[key] = _NOTHING
            return _NOTHING
        entry = Entry()
        self._fill(entry, outcomes, key)
        self[key] = entry
        return entry

    def _fill(self, entry: Entry, outcomes: list[Branch | Refused], key: int) -> None:
        if len(outcomes) > 1 and not _in_strict_order(outcomes):
            by_action = {one.action: one for one in outcomes}
            if len(by_action) != len(outcomes):
                given = ", ".join(str(one.action) for one in outcomes)
                raise BadModel(f"a rule gave one action twice: {given}.")
            outcomes = [by_action[action] for action in in_order(by_action)]
        branches: list[Compiled] = []
        actions: list[Action] = []
        situations: list[str] = []
        watched: list[tuple[Any, ...]] = []
        for one in outcomes:
            action = one.action
            if action.name not in self._move.names:
                raise BadModel(f"a rule gave the action {action}; its move names {', '.join(self._move.names)}.")
            if isinstance(one, Refused):
                entry.refused += (one,)
                continue
            compiled, written = self._compile(one)
            branches.append(compiled)
            actions.append(action)
            watches, seen = self._judge.branch(action, key, self.mask, compiled[1], written, self._followed)
            watched.append(watches)
            situations += seen
        entry.branches, entry.actions, entry.situations = tuple(branches), tuple(actions), tuple(situations)
        if any(watched):
            entry.watched = tuple(watched)

    def _compile(self, branch: Branch) -> tuple[Compiled, int]:
        """The branch as bits, and which bits it writes."""
        packing = self._packing
        action, writes, note = branch
        written, bits = packing.mask(tuple(writes), "a branch"), 0
        for name, value in writes.items():
            bits += packing.bits(name, value)
        if written & self._followed:
            raise BadModel(f"the action {action} and one of its followers write the same component.")
        written |= self._followed
        followers = self._by_note.get(note)
        if followers is None:
            followers = self._by_note[note] = tuple(each.table(note) for each in self._followers)
        return (packing.all & ~written, bits, *followers), written

    def after(self, packed: int, branch: Compiled) -> int:
        """The state after a branch: what the search's loop has written out."""
        after: int = packed & branch[0] | branch[1]
        for mask, follower in zip(self.follower_masks, branch[2:], strict=True):
            after |= follower[packed & mask]
        return after

    def entry(self, packed: int) -> Entry | None:
        """What this move does in a state; None where its gate is shut."""
        if self.gate is not None and not self.gate[packed & self.gate.mask]:
            return None
        return self[packed & self.mask]

    def take(self, key: int) -> Entry:
        """The entry for a key, which is forgotten here: whoever takes it keeps it."""
        entry = self[key]
        del self[key]
        return entry

    def follower(self, place: int, note: Hashable) -> FollowerTable:
        """What the follower at this place writes after branches with this note."""
        return self._followers[place].table(note)

    def shares(self, place: int) -> int:
        """A number that followers at other places, or of other moves, have if and only if they share their tables."""
        return id(self._followers[place])


def move_tables(packing: Packing, model: ComponentModel, judge: BranchJudge) -> list[MoveTable]:
    """The moves' tables in the order of their actions' names. Raises `BadModel` where moves interleave."""
    moves = sorted(model.moves(), key=lambda move: sorted(move.names))
    last = ""
    for move in moves:
        names = sorted(move.names)
        if not names:
            raise BadModel("a move names no action.")
        if names[0] <= last:
            raise BadModel(f"moves interleave by name: {names[0]!r} is not after {last!r}; split a move.")
        last = names[-1]
    followers = Followers(packing)
    return [MoveTable(packing, move, judge, followers) for move in moves]
