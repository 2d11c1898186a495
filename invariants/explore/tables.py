"""Rules as tables that fill themselves, over the packed states of `packing.py`.

Belongs here: the memo of every move, gate and follower. What is searched with them is in `interned.py`.

Theory of operation. A move is a dictionary from the bits that it reads to its compiled branches, each of which is
"keep these bits, set those"; a missing key calls the rule.
"""

from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Any, Protocol, cast

from outlives.model.contract import Action
from outlives.model.errors import BadModel

from .care import in_order, shown, told
from .components import Branch, ComponentModel, Follower, Gate, Move, Refused
from .packing import Packing

__all__ = ["BranchJudge", "Compiled", "Entry", "FollowerTable", "MoveTable", "move_tables"]


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
        """The table for what the follower hears."""
        table = self.by_note.get(note)
        if table is None:
            table = self.by_note[note] = FollowerTable(self._packing, self._follower, note)
        return table

    def heard(self, note: Any) -> Hashable:
        """What the follower hears of a note. Raises `BadModel` where there is no such place."""
        place = self._follower.hears
        if place is None:
            return cast(Hashable, note)
        if not isinstance(note, tuple) or not 0 <= place < len(note):
            raise BadModel(f"a follower hears place {place} of its move's notes; there is none in {shown(note)}.")
        return cast(Hashable, note[place])


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
        self.alike: tuple[MoveTable, ...] = ()
        """All moves that share this one's name, in their order, where there are others."""
        self._least: Action | None = None
        self._last: Action | None = None

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
        if self.alike:
            self._keep_order(outcomes[0].action, outcomes[-1].action)
        entry.branches, entry.actions, entry.situations = tuple(branches), tuple(actions), tuple(situations)
        if any(watched):
            entry.watched = tuple(watched)

    def _keep_order(self, least: Action, last: Action) -> None:
        """Raises `BadModel` where actions that share a name are not in the order of their moves."""
        self._least = least if self._least is None else in_order((self._least, least))[0]
        self._last = last if self._last is None else in_order((self._last, last))[1]
        place = next(place for place, other in enumerate(self.alike) if other is self)
        for before in self.alike[:place]:
            if before._last is not None and in_order((self._least, before._last))[0] == self._least:
                raise BadModel(f"moves interleave: {self._least} of a later move is not after {before._last}.")
        for after in self.alike[place + 1 :]:
            if after._least is not None and in_order((after._least, self._last))[0] == after._least:
                raise BadModel(f"moves interleave: {after._least} of a later move is not after {self._last}.")

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
            followers = self._by_note[note] = tuple(each.table(each.heard(note)) for each in self._followers)
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
        """What the follower at this place writes after branches of whose notes it hears this."""
        return self._followers[place].table(note)

    def shares(self, place: int) -> int:
        """A number that followers at other places, or of other moves, have if and only if they share their tables."""
        return id(self._followers[place])


def move_tables(packing: Packing, model: ComponentModel, judge: BranchJudge) -> list[MoveTable]:
    """The moves' tables in the order of their actions' names. Raises `BadModel` where moves interleave."""
    moves = sorted(model.moves(), key=lambda move: sorted(move.names))
    last = [""]
    for move in moves:
        names = sorted(move.names)
        if not names:
            raise BadModel("a move names no action.")
        if names[0] <= last[-1] and not (names == last and len(names) == 1):
            raise BadModel(f"moves interleave by name: {names[0]!r} is not after {last[-1]!r}; split a move.")
        last = names
    followers = Followers(packing)
    tables = [MoveTable(packing, move, judge, followers) for move in moves]
    for move, table in zip(moves, tables, strict=True):
        alike = tuple(other for each, other in zip(moves, tables, strict=True) if each.names == move.names)
        table.alike = alike if len(alike) > 1 else ()
    return tables
