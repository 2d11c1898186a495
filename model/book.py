"""The book: who references which entry, which are idle, which were evicted. Rules of the encoder-cache manager.

Theory of operation
-------------------
An entry is in the book from the moment its encode is granted. A request references it item by item; when nobody does,
the entry is idle: still there, and evictable, oldest first. Releasing is three events: the reference goes; later,
under pressure, the entry is evicted; later still the worker is told, with the next step.

    free slots + slots of all entries + slots held by strangers = capacity
    reclaimable = free slots + slots of idle entries
"""

from bisect import bisect_left

from .cross import credit
from .setup import Setup
from .state import Book, Entry, Request, State, Step, items_of
from .world import World

__all__ = ["allocate", "announce", "ask_guard", "drop_references", "empty_book", "evict_oldest", "find", "free_pass"]
__all__ += ["emptied", "hit", "live_drafts", "make_room", "release", "withdraw"]


def empty_book(slots: int) -> Book:
    """The book before anything was encoded."""
    return Book(entries=(), idle=(), evicted=(), free=slots, reclaimable=slots)


def find(book: Book, key: str) -> Entry | None:
    """The entry of that key, or None."""
    for entry in book.entries:
        if entry.key == key:
            return entry
    return None


def _with_entry(book: Book, entry: Entry) -> tuple[Entry, ...]:
    """The entries with this one in the place of the one of the same key, or added in order."""
    at = bisect_left(book.entries, entry.key, key=lambda other: other.key)
    same = at < len(book.entries) and book.entries[at].key == entry.key
    return book.entries[:at] + (entry,) + book.entries[at + (1 if same else 0) :]


def hit(world: World, book: Book, key: str, request: int) -> Book | None:  # noqa: ARG001
    """Take a reference to an entry that is in the book, which leaves the idle queue; None where it is not there."""
    entry = find(book, key)
    if entry is None:
        return None
    if request in entry.holders:
        return book
    if not entry.holders:
        book = book._replace(
            idle=tuple(other for other in book.idle if other != key), reclaimable=book.reclaimable - entry.size
        )
    return book._replace(entries=_with_entry(book, entry._replace(holders=tuple(sorted((*entry.holders, request))))))


def make_room(world: World, book: Book, size: int, planned: int) -> Book | None:
    """Room for `size` slots beside the `planned` ones of this pass, evicting idle entries oldest first; None: no room.

    Evictions are decided here, before KV blocks are asked for, and never undone.
    """
    if size + planned > book.reclaimable:
        return None
    while book.free < size + planned and book.idle:
        book = world.rules.evict_oldest(world, book)
    return book


def evict_oldest(world: World, book: Book) -> Book:  # noqa: ARG001
    """The oldest idle entry goes; the worker is told with the next step."""
    key = book.idle[0]
    entry = find(book, key)
    size = 0 if entry is None else entry.size
    return book._replace(
        entries=tuple(other for other in book.entries if other.key != key),
        idle=book.idle[1:],
        evicted=(*book.evicted, key),
        free=book.free + size,
    )


def allocate(world: World, book: Book, key: str, size: int, request: int) -> Book:
    """A granted encode enters the book, referenced by its request."""
    there = world.rules.hit(world, book, key, request)
    if there is not None:
        return there
    return book._replace(
        entries=_with_entry(book, Entry(key, size, (request,))),
        free=book.free - size,
        reclaimable=book.reclaimable - size,
    )


def release(world: World, setup: Setup, book: Book, request: Request, number: int, item: int) -> tuple[Book, Request]:
    """The request drops its reference to one item; releasing it again changes nothing.

    From 0.29.0 the entry is held until the last referenced occurrence of the key goes (`last_occurrence`). Up to 0.20.0
    references are by key: one occurrence stands for all (`item_references`).
    """
    if setup.encoder_decoder == 1:
        return credit(world, setup, book, request, number, item)
    items = items_of(setup, request, number)
    key = items[item].key
    if world.switches.item_references == 0:
        references = tuple(other for other in request.references if items[other].key != key)
        if references == request.references:
            return book, request
    else:
        if item not in request.references:
            return book, request
        references = tuple(other for other in request.references if other != item)
    request = request._replace(references=references)
    if world.switches.last_occurrence == 1 and any(items[other].key == key for other in references):
        return book, request
    entry = find(book, key)
    if entry is None or number not in entry.holders:
        return book, request
    holders = tuple(other for other in entry.holders if other != number)
    book = book._replace(entries=_with_entry(book, entry._replace(holders=holders)))
    if not holders:
        book = book._replace(idle=(*book.idle, key), reclaimable=book.reclaimable + entry.size)
    return book, request


def drop_references(world: World, setup: Setup, book: Book, request: Request, number: int) -> tuple[Book, Request]:
    """All references of the request go at once: preemption, finish, abort, a failed admission."""
    for item in _held(world, setup, request, number):
        book, request = world.rules.release(world, setup, book, request, number, item)
    return book, request


def _held(world: World, setup: Setup, request: Request, number: int) -> tuple[int, ...]:
    """The items that a release is about: the referenced ones. Released managers of encoder-decoder models do
    not look."""
    if setup.encoder_decoder == 1 and world.switches.credit_once == 0:
        return tuple(range(len(items_of(setup, request, number))))
    return request.references


def _asked(world: World, setup: Setup, book: Book, request: Request, number: int) -> tuple[int, ...]:
    """The items that the guard is asked about: the referenced ones; where references are by key, all of its keys."""
    if world.switches.item_references == 1:
        return request.references
    held = {entry.key for entry in book.entries if number in entry.holders}
    return tuple(index for index, item in enumerate(items_of(setup, request, number)) if item.key in held)


def free_pass(
    world: World, setup: Setup, book: Book, request: Request, number: int, drafts: int = 0
) -> tuple[Book, Request]:
    """Ask the guard for every referenced item and release those it lets go. Encoder-decoder models have a branch of
    their own: everything, once computed > 0. `drafts`: those of its live steps in flight, for a guard that counts
    them."""
    if setup.encoder_decoder == 1:
        if request.counters.computed > 0:
            return world.rules.drop_references(world, setup, book, request, number)
        return book, request
    items = items_of(setup, request, number)
    guard = world.guard_in_force
    for item in _asked(world, setup, book, request, number):
        lets_go = guard.lets_go(request.counters, items[item].end, setup.look_ahead, drafts)
        if lets_go is True:
            book, request = world.rules.release(world, setup, book, request, number, item)
        elif lets_go is not False:
            raise TypeError(f"a guard must return True or False, not {lets_go!r:.60}")
    return book, request


def ask_guard(world: World, state: State, book: Book, request: Request, number: int) -> tuple[Book, Request]:
    """The free pass over the request's references. Only a guard that counts drafts is told of the steps in flight."""
    if world.guard.counts_drafts == 1:
        drafts = live_drafts(state.steps, number)
        return world.rules.free_pass(world, state.setup, book, request, number, drafts)
    return world.rules.free_pass(world, state.setup, book, request, number)


def live_drafts(steps: tuple[Step, ...], number: int) -> int:
    """The drafts of the request's live steps in flight, which their outputs may still reject."""
    parts = [part for step in steps for part in step.parts if part.request == number and part.live == 1]
    return sum(part.drafts for part in parts if part.sampled == 1)


def withdraw(world: World, book: Book, request: int, keys: tuple[str, ...]) -> tuple[Book, tuple[tuple[str, int], ...]]:
    """A victim's part of the pass is withdrawn, with the encodes `keys` that it had planned; its references are gone.

    No release tells the book: the entry stays, idle or held by whoever hit it in this very pass, and nobody encodes
    it. `repaired` takes an entry that nobody else holds out of the book again; one that others hold is still encoded,
    on behalf of the first of them: those come back as (key, request).
    """
    moved = []
    if world.switches.take_back_encodes == 1:
        for key in keys:
            entry = find(book, key)
            if entry is None:
                continue
            others = [holder for holder in entry.holders if holder != request]
            if others:
                moved.append((key, others[0]))
                continue
            book = book._replace(
                entries=tuple(other for other in book.entries if other.key != key),
                idle=tuple(other for other in book.idle if other != key),
                free=book.free + entry.size,
            )
    return book, tuple(moved)


def emptied(book: Book, slots: int) -> Book:
    """The book after an encoder-cache reset: nothing is there, nobody is told of it key by key."""
    del book
    return empty_book(slots)


def announce(world: World, book: Book) -> tuple[Book, tuple[str, ...]]:
    """What the next step tells the worker to drop: the keys evicted since the last one.

    From 0.28.0 a key that has entered the book again meanwhile is left out (#52482).
    """
    drop = book.evicted
    if not drop:
        return book, ()
    if world.switches.filter_readded == 1:
        drop = tuple(key for key in drop if find(book, key) is None)
    return book._replace(evicted=()), drop
