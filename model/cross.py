"""Encoder-decoder models (Whisper): what takes the place of the gate and the book's sharing.

Theory of operation
-------------------
Nothing is shared. All items of a request are checked where its computed is 0, an item's slots are taken when its encode
is granted, and its output is read by the step that encodes it and by no other (cross attention keeps what it needs).
So the worker may drop a key one pass after its encode, and the slots are credited when an output is processed with
computed > 0, and at finish, abort, preemption and failed admission. Released managers credit at each of these
occasions, whether or not the item still holds slots; `repaired` credits what is held.
"""

from .setup import Setup
from .state import Book, Entry, Request, items_of
from .world import Gated, World

__all__ = ["credit", "gate_at_start", "notice", "take_slots"]


def gate_at_start(
    world: World, setup: Setup, book: Book, request: Request, number: int, computed: int, count: int, limit: int
) -> Gated:
    """All items of the request, at its start or not at all; `limit` slots of encodes are left to the step."""
    del world
    if computed > 0:
        return Gated(count, book, request.references, ())
    items = items_of(setup, request, number)
    slots = 0
    for item in items:
        slots += item.size
        if slots > limit or slots > book.free:
            return Gated(0, book, request.references, ())
    return Gated(count, book, request.references, tuple(range(len(items))))


def take_slots(book: Book, key: str, size: int, request: int) -> Book:
    """A granted encode takes its slots."""
    entry = Entry(key, size, (request,))
    return book._replace(
        entries=tuple(sorted((*(other for other in book.entries if other.key != key), entry))),
        free=book.free - size,
        reclaimable=book.reclaimable - size,
    )


def credit(world: World, setup: Setup, book: Book, request: Request, number: int, item: int) -> tuple[Book, Request]:
    """The slots of an item are credited, and nobody holds them any more."""
    subject = items_of(setup, request, number)[item]
    held = item in request.references
    if not held and world.switches.credit_once == 1:
        return book, request
    request = request._replace(references=tuple(other for other in request.references if other != item))
    return (
        book._replace(
            entries=tuple(other for other in book.entries if other.key != subject.key),
            free=book.free + subject.size,
            reclaimable=book.reclaimable + subject.size,
        ),
        request,
    )


def notice(world: World, book: Book, encode: tuple[str, ...]) -> tuple[Book, tuple[str, ...]]:
    """What the step that leaves tells the worker to drop: what the pass before it had encoded, or, as long as releases
    told it with the encode itself, that."""
    if world.switches.drop_after_use == 1:
        return book._replace(due=tuple(sorted(set(encode)))), book.due
    return book, tuple(sorted(set(encode)))
