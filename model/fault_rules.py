"""Rules as other schedulers, or earlier proposals, had them wrong: what the catalogue of faults plants.

Belongs here: one rule per fault, each the released rule with one thing changed. Which fault has which, and why,
is data in `faults`.
"""

from . import book, gate, lifetime, worker
from .lifetime import Counters
from .setup import Setup
from .state import WAITING, Book, Miss, Part, Request, State, Step, items_of
from .world import Gated, World

__all__ = [
    "allocate_each_occurrence",
    "clear_nothing",
    "deliver_as_live",
    "encode_before_drop",
    "end_turn_keeping_computed",
    "gate_charges_whole_item",
    "gate_needs_an_encode",
    "gate_plans_each_occurrence",
    "gather_own_encodes",
    "receive_by_placeholders",
]


def gate_plans_each_occurrence(
    world: World, setup: Setup, held: Book, request: Request, number: int, computed: int, count: int, limit: int
) -> Gated:
    """A further occurrence of a key that is planned in the same pass is planned as well."""
    gated = gate.gate(world, setup, held, request, number, computed, count, limit)
    return gated._replace(planned=gated.planned + gated.second, second=())


def allocate_each_occurrence(world: World, held: Book, key: str, size: int, request: int) -> Book:
    """A granted encode takes its slots, whether or not the key is in the book by now."""
    after = book.allocate(world, held, key, size, request)
    if book.find(held, key) is None:
        return after
    return after._replace(free=after.free - size, reclaimable=after.reclaimable - size)


def gate_needs_an_encode(
    world: World, setup: Setup, held: Book, request: Request, number: int, computed: int, count: int, limit: int
) -> Gated:
    """Where items lie in the window of an admission and none is to be encoded, the request gets no tokens."""
    gated = gate.gate(world, setup, held, request, number, computed, count, limit)
    asked = any(
        item.end > computed and item.start < computed + gated.tokens for item in items_of(setup, request, number)
    )
    if request.status == WAITING and asked and not gated.planned:
        return gated._replace(tokens=0)
    return gated


def gate_charges_whole_item(
    world: World, setup: Setup, held: Book, request: Request, number: int, computed: int, count: int, limit: int
) -> Gated:
    """Where the chunk ends inside an item, the whole item is counted against the slots once more."""
    gated = gate.gate(world, setup, held, request, number, computed, count, limit)
    end = computed + gated.tokens
    inside = sum(item.size for item in items_of(setup, request, number) if item.start < end < item.end)
    if gated.tokens <= 0 or inside == 0:
        return gated
    return gated._replace(book=gated.book._replace(reclaimable=gated.book.reclaimable - inside))


def clear_nothing(world: World, state: State) -> State:  # noqa: ARG001 -- one signature for the rule
    """The scheduler's book is reset, and the worker is not told."""
    return state


def gather_own_encodes(world: World, setup: Setup, shelf: tuple[str, ...], part: Part, back: int) -> tuple[Miss, ...]:
    """A step looks for what was encoded for its own request; what an earlier one brought is not looked for there."""
    others = {item.key for asked in setup.requests[: part.request] for item in asked.items}
    return worker.gather(world, setup, tuple(key for key in shelf if key not in others), part, back)


def deliver_as_live(c: Counters, tokens: int, stale: int, dropped: int, asynchronous: int) -> Counters:
    """A stale output that is delivered gives up placeholders like any other."""
    return lifetime.deliver(c, tokens, stale * dropped, dropped, asynchronous)


def receive_by_placeholders(c: Counters, count: int, isolate: int) -> tuple[Counters, int]:
    """An output is taken for stale where no placeholder is left, instead of by the stale share."""
    after, _ = lifetime.receive(c, count, isolate)
    return after, 1 if c.placeholders == 0 else 0


def end_turn_keeping_computed(c: Counters, settle: int) -> Counters:  # noqa: ARG001
    """A turn ends, its placeholders go and one output is to vanish; computed stays where it was."""
    return c._replace(placeholders=0, stale=c.in_flight)


def encode_before_drop(world: World, shelf: tuple[str, ...], step: Step) -> tuple[str, ...]:
    """The worker encodes first, and drops what it is told afterwards."""
    encoded = worker.shelve(world, shelf, step._replace(drop=()))
    return worker.shelve(world, encoded, step._replace(encode=()))
