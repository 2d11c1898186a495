"""The inner loop of the fast search, written out for the moves of one model.

Belongs here: the few lines that run once per state and transition. They are generated as text, because what differs
between models is how many moves there are and how many followers each has; a general loop over these numbers spends
more time on counting than on looking up. The text is made of numbers only, never of anything that a model says.
"""

from collections.abc import Callable, Sequence
from typing import Any

from .tables import Entry, MoveTable

__all__ = ["Loop", "loop_source", "written_out"]

Loop = Callable[[int, int, int], tuple[int, int]]
"""`loop(first, end, limit)`: go on from states number `first` up to `end`, or until `limit` states are known; answers
where it stopped and how many transitions were taken."""

_HEAD = """
def loop(first, end, limit):
    add, append, parent = seen.add, states.append, parents.append
    transitions = 0
    for number in range(first, end):{limited}
        state = states[number]
        if outside and state & within_mask in outside:
            skipped(number)
            continue
        before = transitions
"""
_LIMITED = """
        if len(states) >= limit:
            return number, transitions"""
_MOVE = """
        if (entry := {entry}) is not None:{visit}
            for {unpack} in entry.branches:
                after = {after}
                if after not in seen:
                    add(after)
                    append(after)
                    parent(number)
            if entry.watched:
                watch(state, table{m}, entry, number)
"""
_VISIT = """
            entry.visits += 1
            transitions += len(entry.branches)"""
_BUNDLE = """
        bundle = bundle{m}[{key}]
        bundle.visits += 1
        transitions += bundle.branches
        {entries} = bundle.entries
"""
_TAIL = """
        if transitions == before:
            no_successor(state, number)
    return end, transitions
"""


class Bundle:
    """The entries of all moves that read the same components; None for a move that has nothing to do there."""

    __slots__ = ("branches", "entries", "visits")

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.visits = 0
        self.branches = sum(len(entry.branches) for entry in entries)
        self.entries = tuple(entry if entry.branches or entry.refused else None for entry in entries)


class BundleTable(dict[int, Bundle]):
    """The bundles of some moves, by the bits that they read."""

    def __init__(self, moves: Sequence[MoveTable]) -> None:
        super().__init__()
        self._moves = moves

    def __missing__(self, key: int) -> Bundle:
        found = self[key] = Bundle([move[key] for move in self._moves])
        return found

    def settle(self) -> None:
        """Hand the visits on to the entries, for whoever counts."""
        for bundle in self.values():
            for entry in bundle.entries:
                if entry is not None:
                    entry.visits += bundle.visits
            bundle.visits = 0


def _bundles(moves: Sequence[MoveTable]) -> list[list[int]]:
    """The numbers of the moves without a gate, by what they read."""
    bundles: dict[int, list[int]] = {}
    for m, move in enumerate(moves):
        if move.gate is None:
            bundles.setdefault(move.mask, []).append(m)
    return list(bundles.values())


def loop_source(moves: Sequence[MoveTable], limited: bool) -> str:
    """The text of the loop for these moves; `limited`: it is to stop at a number of states."""
    keys: dict[int, str] = {}

    def key(mask: int) -> str:
        return keys.setdefault(mask, f"k{len(keys)}")

    lines: list[str] = []
    entries: dict[int, str] = {}
    for members in _bundles(moves):
        first = members[0]
        if len(members) > 1:
            names = ", ".join(f"e{m}" for m in members)
            lines.append(_BUNDLE.format(m=first, key=key(moves[first].mask), entries=names))
            entries.update({m: f"e{m}" for m in members})
    for m, move in enumerate(moves):
        entry = f"table{m}[{key(move.mask)}]"
        if move.gate is not None:
            entry = f"{entry} if gate{m}[{key(move.gate.mask)}] else None"
        followers = [f"f{place}[{key(mask)}]" for place, mask in enumerate(move.follower_masks)]
        lines.append(
            _MOVE.format(
                m=m,
                entry=entries.get(m, entry),
                visit="" if m in entries else _VISIT,
                unpack=", ".join(["keep", "bits", *(f"f{place}" for place in range(len(followers)))]),
                after=" | ".join(["state & keep", "bits", *followers]),
            )
        )
    computed = "".join(f"        {name} = state & {mask}\n" for mask, name in keys.items())
    return "".join([_HEAD.format(limited=_LIMITED if limited else ""), computed, *lines, _TAIL])


def written_out(moves: Sequence[MoveTable], limited: bool, names: dict[str, Any]) -> tuple[Loop, list[BundleTable]]:
    """The loop as a function, and the bundles in which it counts visits. `names` gives what it uses: `states`,
    `parents`, `seen`, `outside`, `within_mask`, `skipped`, `watch` and `no_successor`."""
    for m, move in enumerate(moves):
        names[f"table{m}"] = move
        names[f"gate{m}"] = move.gate
    bundles = {members[0]: BundleTable([moves[m] for m in members]) for members in _bundles(moves)}
    names.update({f"bundle{first}": bundle for first, bundle in bundles.items()})
    exec(compile(loop_source(moves, limited), "<the loop of the exhaustive search>", "exec"), names)
    loop: Loop = names["loop"]
    return loop, list(bundles.values())
