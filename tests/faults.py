"""Twenty deliberate faults: four each in counters, guards, book, pass and worker; eight of them need two requests.

Each is the released rules with one function replaced, the configuration in which it matters, and the property that it
breaks. A checker that misses one of them is not worth its green. By name they work on the command line as well:
`outlives check --fault tests/faults.py:drop_nothing`. Not among them: a worker that encodes before it drops. From
0.28.0 on that is none, since no notice names a key that is encoded again (`test_explore_faults` shows it).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from outlives.model import book, gate, lifetime, worker
from outlives.model.lifetime import Counters
from outlives.model.setup import Setup
from outlives.model.state import Book, Entry, Miss, Part, Request, State, Step, items_of
from outlives.model.world import Gated, Rules, World

__all__ = ["FAULTS", "Fault"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One planted fault."""

    name: str
    room: str
    phrase: str
    plant: Callable[[Rules], Rules]
    breaks: str
    """The property that is violated."""
    requests: int = 1
    """How many it needs: one that needs two is none as long as a request is alone."""
    configuration: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `Configuration` beside the profile."""


_ANY_READER: Mapping[str, Any] = {"relax": ("A3",), "items_anywhere": True}
_declared: list[Fault] = []


def _fault(
    room: str, rule: str, breaks: str, *, requests: int = 1, **configuration: Any
) -> Callable[[Callable[..., Any]], Callable[[Rules], Rules]]:
    """Declare a faulty rule; its name then stands for the function that plants it into rules."""

    def declare(function: Callable[..., Any]) -> Callable[[Rules], Rules]:
        def plant(rules: Rules) -> Rules:
            return replace(rules, **{rule: function})

        plant.__doc__ = function.__doc__
        _declared.append(
            Fault(
                name=function.__name__.replace("_", "-"),
                room=room,
                phrase=(function.__doc__ or "").strip(),
                plant=plant,
                breaks=breaks,
                requests=requests,
                configuration=configuration,
            )
        )
        return plant

    return declare


# --- counters -----------------------------------------------------------------------------------------------------


@_fault("counters", "roll_back", "PLACEHOLDERS-KEPT")
def roll_back_computed_only(c: Counters, rejected: int, stale: int) -> Counters:
    """Rejected drafts leave computed, but stay promised."""
    if stale == 1:
        return c
    return c._replace(computed=c.computed - rejected)


@_fault("counters", "reset", "PLACEHOLDERS-KEPT")
def reset_keeps_promises(c: Counters, isolate: int) -> Counters:
    """A prefix-cache reset forgets to take the promises back."""
    return c._replace(computed=0, stale=c.in_flight)


@_fault("counters", "fail_kv", "COUNTERS-SOUND")
def failed_load_keeps_promises(c: Counters, valid: int, settle: int) -> Counters:
    """Where KV blocks failed to load, what is in flight stays promised."""
    return lifetime.fail_kv(c, valid, settle)._replace(placeholders=c.placeholders)


@_fault("counters", "end_turn", "PROGRESS")
def turn_end_keeps_computed(c: Counters, settle: int) -> Counters:
    """A turn ends, and promised positions that will never be delivered stay computed."""
    return c._replace(placeholders=0, stale=c.in_flight)


# --- guards -------------------------------------------------------------------------------------------------------


@_fault("guards", "guard", "GATHER-AFTER-FREE", **_ANY_READER)
def one_too_early(c: Counters, end: int, look_ahead: int) -> bool:
    """Frees when the last position of the item is still unconfirmed."""
    return end - 1 <= c.computed - c.placeholders


@_fault("guards", "guard", "GATHER-AFTER-FREE", **_ANY_READER)
def forget_promises(c: Counters, end: int, look_ahead: int) -> bool:
    """Counts promised positions as confirmed."""
    return end <= c.computed


def _held_by_others(held: Book, key: str, number: int) -> bool:
    entry = book.find(held, key)
    return entry is not None and any(holder != number for holder in entry.holders)


@_fault("guards", "free_pass", "GATHER-AFTER-FREE", requests=2, relax=("A3",))
def relies_on_others(world: World, setup: Setup, held: Book, request: Request, number: int) -> tuple[Book, Request]:
    """Lets go of whatever another request holds as well, as if that one stayed."""
    items = items_of(setup, request, number)
    for item in request.references:
        if _held_by_others(held, items[item].key, number):
            held, request = world.rules.release(world, setup, held, request, number, item)
    return book.free_pass(world, setup, held, request, number)


@_fault("guards", "free_pass", "PROGRESS", requests=2)
def waits_for_others(world: World, setup: Setup, held: Book, request: Request, number: int) -> tuple[Book, Request]:
    """Keeps whatever another request still holds as well."""
    items = items_of(setup, request, number)
    for item in request.references:
        asked = items[item]
        if not _held_by_others(held, asked.key, number) and world.guard.condition(
            request.counters, asked.end, setup.look_ahead
        ):
            held, request = world.rules.release(world, setup, held, request, number, item)
    return held, request


# --- book ---------------------------------------------------------------------------------------------------------


@_fault("book", "hit", "IDLE-EXACT")
def hit_stays_idle(world: World, held: Book, key: str, request: int) -> Book | None:
    """A hit takes a reference, but the entry stays in the idle queue."""
    after = book.hit(world, held, key, request)
    return after if after is None else after._replace(idle=held.idle, reclaimable=held.reclaimable)


@_fault("book", "evict_oldest", "SLOTS-ADD-UP")
def evict_keeps_slots(world: World, held: Book) -> Book:
    """An eviction forgets to give the slots back."""
    return book.evict_oldest(world, held)._replace(free=held.free)


def _changed(held: Book, key: str, holders: tuple[int, ...]) -> tuple[Entry, ...]:
    """The entries, the one of that key held by others than before."""
    return tuple(entry._replace(holders=holders) if entry.key == key else entry for entry in held.entries)


@_fault("book", "release", "REFERENCES-MATCH", requests=2)
def release_drops_another(
    world: World, setup: Setup, held: Book, request: Request, number: int, item: int
) -> tuple[Book, Request]:
    """Of several that hold an entry, another one is dropped instead of who lets go."""
    key = items_of(setup, request, number)[item].key
    entry = book.find(held, key)
    after, request = book.release(world, setup, held, request, number, item)
    if entry is None or after == held or not _held_by_others(held, key, number):
        return after, request
    other = next(holder for holder in entry.holders if holder != number)
    return after._replace(entries=_changed(after, key, tuple(each for each in entry.holders if each != other))), request


@_fault("book", "hit", "SLOTS-ADD-UP", requests=2)
def hit_counts_each_holder(world: World, held: Book, key: str, request: int) -> Book | None:
    """Each further holder takes the slots of an entry out of the reclaimable ones again."""
    entry, after = book.find(held, key), book.hit(world, held, key, request)
    if entry is None or after is None or after == held:
        return after
    return after._replace(reclaimable=held.reclaimable - entry.size)


# --- pass ---------------------------------------------------------------------------------------------------------


@_fault("pass", "gate", "GATHER-AFTER-FREE")
def gate_ignores_room(
    world: World, setup: Setup, held: Book, request: Request, number: int, computed: int, count: int, limit: int
) -> Gated:
    """Where there is no room the chunk is not cut."""
    gated = gate.gate(world, setup, held, request, number, computed, count, limit)
    return gated._replace(tokens=count) if gated.tokens < count else gated


@_fault("pass", "drop_references", "NOTHING-LEFT")
def keep_references(world: World, setup: Setup, held: Book, request: Request, number: int) -> tuple[Book, Request]:
    """A request that loses its blocks or goes away keeps what it references."""
    return held, request


_Moved = tuple[tuple[str, int], ...]


@_fault("pass", "withdraw", "GATHER-AFTER-FREE", requests=2)
def withdraw_what_others_hold(
    world: World,
    held: Book,
    request: int,
    keys: tuple[str, ...],
) -> tuple[Book, _Moved]:
    """A victim's planned encodes are withdrawn, also those that another request has hit in the same pass."""
    for key in keys:
        entry = book.find(held, key)
        if entry is not None:
            held = held._replace(
                entries=tuple(other for other in held.entries if other.key != key),
                idle=tuple(other for other in held.idle if other != key),
                free=held.free + entry.size,
                reclaimable=held.reclaimable + (entry.size if entry.holders else 0),
            )
    return held, ()


@_fault("pass", "withdraw", "PLANNED-ENCODED", requests=2)
def withdrawn_stays_booked(
    world: World,
    held: Book,
    request: int,
    keys: tuple[str, ...],
) -> tuple[Book, _Moved]:
    """The book is not told that a victim's planned encodes were withdrawn (as in the releases)."""
    return held, ()


# --- worker -------------------------------------------------------------------------------------------------------


@_fault("worker", "shelve", "SHELF-AGREES")
def drop_nothing(world: World, shelf: tuple[str, ...], step: Step) -> tuple[str, ...]:
    """The worker never drops a key."""
    return worker.shelve(world, shelf, step._replace(drop=()))


@_fault("worker", "clear_shelf", "GATHER-AFTER-FREE")
def clear_at_once(world: World, state: State) -> State:
    """An encoder-cache reset empties the shelf out of band, overtaking the steps in flight."""
    return state._replace(shelf=())


@_fault("worker", "gather", "GATHER-AFTER-FREE", requests=2)
def look_under_own_name(world: World, setup: Setup, shelf: tuple[str, ...], part: Part, back: int) -> tuple[Miss, ...]:
    """Outputs are kept under the first request that has the key, and looked for under the one that reads."""
    others = {item.key for asked in setup.requests[: part.request] for item in asked.items}
    return worker.gather(world, setup, tuple(key for key in shelf if key not in others), part, back)


@_fault("worker", "shift_readers", "GATHER-AFTER-FREE", requests=2, reader="true")
def shift_every_reader(world: World, steps: tuple[Step, ...], number: int, rejected: int) -> tuple[Step, ...]:
    """Where drafts of one request are rejected, every request in flight begins so much lower."""
    for each in sorted({number} | {part.request for step in steps for part in step.parts}):
        steps = worker.shift_readers(world, steps, each, rejected)
    return steps


FAULTS = tuple(_declared)
"""In the order of the rooms: counters, guards, book, pass, worker."""
