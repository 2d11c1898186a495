"""The records of a story, and small words that every story uses.

Belongs here: `Event`, `Story`, and how items, windows and guards are put into words with numbers.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from outlives.model.lifetime import Counters, confirmed
from outlives.model.setup import Item, request_name
from outlives.model.world import World

__all__ = ["Event", "Story", "confirmed_words", "count_of", "guard_words", "inequality_words", "item_words", "window"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One link of the because-chain."""

    kind: str
    """`planned`, `not-encoded`, `released`, `evicted`, `announced`, `dropped`, `cleared`, `credited`, `route`, `read`,
    `stuck`, `held`, `violated`."""
    step: int
    """Number of the trace's step at which it happened."""
    text: str
    """A sentence without its full stop."""
    numbers: Mapping[str, int | str] = field(default_factory=dict)
    """The numbers of the sentence, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """Why a trace violates its property."""

    headline: str
    """One sentence with the numbers."""
    events: tuple[Event, ...]

    @property
    def chain(self) -> tuple[str, ...]:
        """The because-chain: a sentence per event."""
        return tuple(f"{_capital(event.text)}." for event in self.events)

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        events = [
            {"kind": each.kind, "step": each.step, "text": each.text, "numbers": dict(each.numbers)}
            for each in self.events
        ]
        return {"headline": self.headline, "events": events}


_SENTENCE_STARTS = ("step ", "the ", "after ", "so ", "left ", "strangers ")


def _capital(text: str) -> str:
    """With a capital, unless it begins with a name."""
    return text[:1].upper() + text[1:] if text.startswith(_SENTENCE_STARTS) else text


def window(low: int, high: int) -> str:
    """`[3,7)`: from the first position to the one after the last."""
    return f"[{low},{high})"


def count_of(number: int, what: str) -> str:
    """`1 position`, `3 positions`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def item_words(request: int, number: int, item: Item) -> str:
    """`r0's item1 [4,6) (entry k1)`."""
    return f"{request_name(request)}'s item{number} {window(item.start, item.end)} (entry {item.key})"


_NAMES = re.compile(r"look-ahead|in flight|placeholders|computed|end")


def guard_words(world: World, counters: Counters, end: int, look_ahead: int) -> str:
    """The guard, its inequality and the same with its numbers: `guard confirmed: end <= computed - placeholders, that
    is 3 <= 4 - 4`. A replaced condition has no formula: its numbers are told."""
    guard = world.guard
    in_force = world.guard_in_force
    # Of a guard that counts drafts nobody here knows how many there were.
    known = in_force.counts_drafts == 0
    truth = ", which is false" if known and not in_force.lets_go(counters, end, look_ahead, 0) else ""
    numbers = inequality_words(world, counters, end, look_ahead)
    if world.rules.guard is not None:
        return f"the condition that replaces guard {guard.name}, with {numbers}{truth}"
    told = guard.formula if numbers == guard.formula else f"{guard.formula}, that is {numbers}{truth}"
    return f"guard {guard.name}: {told}"


def inequality_words(world: World, counters: Counters, end: int, look_ahead: int) -> str:
    """The guard's inequality with its numbers alone: `3 <= 4 - 4`; the formula where it has none."""
    values = {
        "end": end,
        "computed": counters.computed,
        "placeholders": counters.placeholders,
        "in flight": counters.in_flight,
        "look-ahead": look_ahead,
    }
    if world.rules.guard is not None:
        return ", ".join(f"{name} {value}" for name, value in values.items())
    return _NAMES.sub(lambda found: str(values[found.group()]), world.guard.formula)


def confirmed_words(counters: Counters) -> str:
    """`confirmed is 4 - 4 = 0`."""
    return f"confirmed is {counters.computed} - {counters.placeholders} = {confirmed(counters)}"
