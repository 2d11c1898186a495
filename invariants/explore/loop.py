"""The inner loop of the fast search, written out for the moves of one model.

Belongs here: the few lines that run once per state and transition. They are generated as text, because what differs
between models is how many moves there are and how many followers each has; a general loop over these numbers spends
more time on counting than on looking up. The text is made of numbers only, never of anything that a model says.
"""

from collections.abc import Callable, Sequence
from typing import Any

from .tables import MoveTable

__all__ = ["Loop", "loop_source", "written_out"]

Loop = Callable[[int, int, int], tuple[int, int]]
"""`loop(first, end, limit)`: go on from states number `first` up to `end`, or until `limit` states are known; answers
where it stopped and how many transitions were taken."""

_HEAD = """
def loop(first, end, limit):
    add, append, parent = seen.add, states.append, parents.append
    transitions = 0
    for number in range(first, end):
        if len(states) >= limit:
            return number, transitions
        state = states[number]
        if outside and state & within_mask in outside:
            skipped(number)
            continue
        before = transitions
"""
_MOVE = """
        entry = table{m}[state & {mask}]
        entry.visits += 1
        if branches := entry.branches:
            transitions += len(branches){keys}
            for {unpack} in branches:
                after = {after}
                if after not in seen:
                    add(after)
                    append(after)
                    parent(number)
            if entry.watched:
                watch(state, table{m}, entry, number)
"""
_TAIL = """
        if transitions == before:
            no_successor(state, number)
    return end, transitions
"""


def loop_source(moves: Sequence[MoveTable]) -> str:
    """The text of the loop for these moves."""
    parts = [_HEAD]
    for m, move in enumerate(moves):
        places = range(len(move.follower_masks))
        unpack = ["keep", "bits", *(f"f{place}" for place in places)]
        block = _MOVE.format(
            m=m,
            mask=move.mask,
            keys="".join(f"\n            k{place} = state & {move.follower_masks[place]}" for place in places),
            unpack=", ".join(unpack),
            after=" | ".join(["state & keep", "bits", *(f"f{place}[k{place}]" for place in places)]),
        )
        if move.gate is not None:
            indented = block.replace("\n", "\n    ").rstrip(" ")
            block = f"\n        if gate{m}[state & {move.gate.mask}]:{indented}"
        parts.append(block)
    return "".join([*parts, _TAIL])


def written_out(moves: Sequence[MoveTable], names: dict[str, Any]) -> Loop:
    """The loop as a function. `names` gives `states`, `parents`, `seen`, `outside`, `within_mask`, `skipped`,
    `watch` and `no_successor`, which it uses."""
    for m, move in enumerate(moves):
        names[f"table{m}"] = move
        names[f"gate{m}"] = move.gate
    exec(compile(loop_source(moves), "<the loop of the exhaustive search>", "exec"), names)
    loop: Loop = names["loop"]
    return loop
