"""Runs that are not drawn: corners that random ones hardly ever meet, for the recorded walks.

Belongs here: data, and how a run is written down.
"""

from typing import NamedTuple

from outlives.model.contract import Action
from outlives.model.setup import Item, RequestSetup, Setup, Turn

__all__ = ["CORNERS", "Corner", "corner"]


class Corner(NamedTuple):
    """A setup, and what is done in it."""

    setup: Setup
    actions: tuple[Action, ...]


def corner(setup: Setup, *actions: str) -> Corner:
    """The actions as they are shown: `resume(request=r0, kept=2)`. Every route is open."""
    made = []
    for text in actions:
        name, _, rest = text.rstrip(")").partition("(")
        pairs = [pair.strip().split("=") for pair in rest.split(",") if pair]
        made.append(Action(name, tuple((key, int(value) if value.isdecimal() else value) for key, value in pairs)))
    return Corner(setup._replace(left_out=()), tuple(made))


_LATE = RequestSetup(1, 4, (), 0)
_LONG = RequestSetup(12, 2, (), 0)
CORNERS: tuple[tuple[str, Corner], ...] = (
    # A victim that stands before the request in want, and was not scheduled in the pass: two stand behind.
    ("0.1", corner(
        Setup((RequestSetup(1, 1, (), 2), _LATE, _LATE, _LATE), slots=1, budget=16, depth=4, by_priority=1),
        "arrive(request=r0)", "schedule()", "arrive(request=r1)", "arrive(request=r2)", "arrive(request=r3)",
        "schedule()", "schedule(short_at=r1)", "accept()", "accept()", "accept()", "schedule()",
    )),
    # An admission that fails with two entries referenced, of which the second has an earlier occurrence.
    ("0.23", corner(
        Setup((RequestSetup(4, 2, (Item(0, 1, "k0", 1), Item(1, 1, "k1", 1), Item(2, 1, "k0", 1))),),
              slots=2, budget=8, depth=2),
        "arrive(request=r0)", "schedule()", "accept()", "preempt(request=r0)", "schedule(short_at=r0, hit_r0=1)",
        "schedule()", "accept()", "accept()",
    )),
    # An output that is stale by then crosses the end of a turn.
    ("0.32", corner(
        Setup((RequestSetup(1, 2, (), 0, (Turn(1, 2),)),), slots=1, budget=8, drafts=3, depth=3, by_priority=1),
        "arrive(request=r0)", "schedule()", "accept()", "schedule()", "preempt(request=r0)", "accept()", "accept()",
        "continue_session(request=r0)", "resume(request=r0, kept=0)", "schedule()", "accept()",
    )),
    # A stop token ends a turn while the next step is in flight.
    ("0.32", corner(
        Setup((RequestSetup(1, 4, (), 0, (Turn(1, 2),)),), slots=1, budget=8, drafts=1, depth=3, by_priority=1),
        "arrive(request=r0)", "schedule()", "schedule()", "accept()", "finish(request=r0)",
        "continue_session(request=r0)", "schedule()", "accept()", "accept()", "schedule()", "accept()",
    )),
    # An output crosses the end of a turn while the next step is in flight.
    ("0.32", corner(
        Setup((RequestSetup(1, 4, (), 0, (Turn(1, 2),)),), slots=1, budget=8, drafts=3, depth=3, by_priority=1),
        "arrive(request=r0)", "schedule()", "schedule()", "accept()", "schedule()", "accept()", "accept()",
        "continue_session(request=r0)", "schedule()", "accept()", "schedule()", "accept()",
    )),
    # A victim that was scheduled in the very pass gives back its tokens: the last one gets them.
    ("0.1", corner(
        Setup((RequestSetup(1, 6, (), 2), _LONG, _LONG), slots=1, budget=4, chunk_cap=2, depth=4, by_priority=1),
        "arrive(request=r0)", "schedule()", "arrive(request=r1)", "arrive(request=r2)", "schedule()",
        "schedule(short_at=r1)", "accept()", "accept()", "accept()", "schedule()", "accept()",
    )),
    # And the slots of its encode.
    ("0.1", corner(
        Setup((RequestSetup(6, 2, (Item(2, 1, "k0", 1),), 2), RequestSetup(8, 2, (Item(3, 1, "k1", 1),)),
               RequestSetup(8, 2, (Item(2, 1, "k2", 1),))),
              slots=3, budget=6, encoder_budget=1, chunk_cap=2, depth=4, by_priority=1),
        "arrive(request=r0)", "arrive(request=r1)", "arrive(request=r2)", "resume(request=r0, kept=0)",
        "schedule(short_at=r1)", "accept()", "schedule()", "accept()", "accept()",
    )),
    # Who holds blocks is admitted before who waited longer.
    ("0.32", corner(
        Setup((RequestSetup(1, 1, (), 0, (Turn(2, 2),)), RequestSetup(3, 2, ())), slots=1, budget=1, depth=2),
        "arrive(request=r0)", "schedule()", "accept()", "arrive(request=r1)", "continue_session(request=r0)",
        "schedule()", "accept()", "schedule()", "accept()",
    )),
)  # fmt: skip
"""The first release on which it is taken, and the run."""
