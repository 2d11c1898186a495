"""The encoder gate: which encoder outputs a chunk needs, and how far the chunk may go without the rest.

Theory of operation
-------------------
The gate looks at the window [computed, computed + n + look-ahead) of one request. For every item that overlaps it, in
order: planned already in this call, nothing more; in the book, a reference at once; else there must be room, and an
encode is planned; else n is cut to where the item begins, and the gate stops. How the cut counts the look-ahead, and
which windows are short-cut, is where releases differ (`profiles.SWITCHES` names each switch and its source).
"""

from .cross import gate_at_start
from .setup import Setup
from .state import Book, Request, items_of
from .world import Gated, World

__all__ = ["gate"]


def gate(
    world: World, setup: Setup, book: Book, request: Request, number: int, computed: int, count: int, limit: int
) -> Gated:
    """Decide for `count` tokens from `computed` of request `number`; `limit` slots of encodes are left to the step."""
    if setup.encoder_decoder == 1:
        return gate_at_start(world, setup, book, request, number, computed, count, limit)
    switches = world.switches
    ahead = setup.look_ahead if switches.gate_look_ahead == 1 else 0
    references = request.references
    planned: list[int] = []
    second: list[int] = []
    planned_keys: set[str] = set()
    planned_slots = 0
    items = items_of(setup, request, number)
    for index, item in enumerate(items):
        if item.end <= computed:
            continue
        if item.start >= computed + count + ahead:
            break
        if "A2" in world.relaxed and index in request.seen:
            continue
        splits = setup.whole_items == 1 and _splits(world, item.start, item.end, computed, count)
        if not (splits and switches.whole_before_hit == 1):
            if item.key in planned_keys:
                if switches.second_reference == 1:
                    second.append(index)
                continue
            referenced = world.rules.hit(world, book, item.key, number)
            if referenced is not None:
                book = referenced
                if index not in references:
                    references = tuple(sorted((*references, index)))
                continue
        if splits:
            shift = ahead if switches.whole_cut_look_ahead == 1 else 0
            count = max(0, item.start - (computed + shift))
            break
        room = None
        if item.size <= limit - planned_slots:
            room = world.rules.make_room(world, book, item.size, planned_slots)
        if room is None:
            shift = ahead if switches.cut_look_ahead == 1 else 0
            count = min(count, max(0, item.start - (computed + shift)))
            break
        book = room
        if switches.gate_shortcut == 1 and item.start >= computed + count:
            continue
        planned.append(index)
        planned_keys.add(item.key)
        planned_slots += item.size
    return Gated(count, book, references, tuple(planned), tuple(second))


def _splits(world: World, start: int, end: int, computed: int, count: int) -> bool:
    """Whether the chunk would end inside an item that may not be split: one that starts after computed, or at it."""
    if computed + count >= end:
        return False
    return computed < start or (world.switches.whole_at_start == 1 and computed == start)
