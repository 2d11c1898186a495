"""A scheduler of one's own, as `docs/own-scheduler.md` uses it: a profile and a fault."""

from dataclasses import replace

from outlives.model import book
from outlives.model.lifetime import Counters, Guard
from outlives.model.profiles import profile_named
from outlives.model.setup import Setup
from outlives.model.state import Book, Request
from outlives.model.world import Rules, World


def half_confirmed(c: Counters, end: int, look_ahead: int) -> bool:
    """Frees one position before confirmed reaches the end of the item."""
    return end - 1 <= c.computed - c.placeholders


mine = replace(
    profile_named("0.33.0"),
    name="mine",
    guard=Guard(
        name="half-confirmed",
        condition=half_confirmed,
        site="at-output",
        formula="end - 1 <= computed - placeholders",
        released_in="no release",
        source="docs/own-scheduler.md",
    ),
)
"""0.33.0 with a free condition of our own: `--profile docs/examples/own_scheduler.py:mine`."""


def forget_to_release(
    world: World, setup: Setup, held: Book, request: Request, number: int, item: int
) -> tuple[Book, Request]:
    """The request drops its reference, but the book keeps the request among the holders of the entry."""
    return held, book.release(world, setup, held, request, number, item)[1]


def leak(rules: Rules) -> Rules:
    """A planted fault: `--fault docs/examples/own_scheduler.py:leak`."""
    return replace(rules, release=forget_to_release)
