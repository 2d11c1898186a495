"""Ten deliberate faults: two each in counters, guards, book, pass and worker.

Each is the released rules with one function replaced, the configuration in which it matters, and the property that it
breaks. A checker that misses one of them is not worth its green. By name they work on the command line as well:
`outlives check --fault tests/faults.py:drop_nothing`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from outlives.model import book, gate, worker
from outlives.model.lifetime import Counters
from outlives.model.setup import Setup
from outlives.model.state import Book, Request, Step
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
    configuration: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `Configuration` beside the profile."""


_ANY_READER: Mapping[str, Any] = {"relax": ("A3",), "items_anywhere": True}
_declared: list[Fault] = []


def _fault(
    room: str, rule: str, breaks: str, **configuration: Any
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


@_fault("counters", "advance", "COUNTERS-SOUND")
def forget_in_flight(c: Counters, count: int) -> Counters:
    """A dispatch advances computed, but not the tokens in flight."""
    return c._replace(computed=c.computed + count)


# --- guards -------------------------------------------------------------------------------------------------------


@_fault("guards", "guard", "GATHER-AFTER-FREE", **_ANY_READER)
def one_too_early(c: Counters, end: int, look_ahead: int) -> bool:
    """Frees when the last position of the item is still unconfirmed."""
    return end - 1 <= c.computed - c.placeholders


@_fault("guards", "guard", "GATHER-AFTER-FREE", **_ANY_READER)
def forget_promises(c: Counters, end: int, look_ahead: int) -> bool:
    """Counts promised positions as confirmed."""
    return end <= c.computed


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


# --- worker -------------------------------------------------------------------------------------------------------


@_fault("worker", "shelve", "GATHER-AFTER-FREE")
def encode_one_only(world: World, shelf: tuple[str, ...], step: Step) -> tuple[str, ...]:
    """The worker runs the first encoder of a step and forgets the others."""
    return worker.shelve(world, shelf, step._replace(encode=step.encode[:1]))


@_fault("worker", "shelve", "SHELF-AGREES")
def drop_nothing(world: World, shelf: tuple[str, ...], step: Step) -> tuple[str, ...]:
    """The worker never drops a key."""
    return worker.shelve(world, shelf, step._replace(drop=()))


FAULTS = tuple(_declared)
"""In the order of the rooms: counters, guards, book, pass, worker."""
