"""Does a mutant do anything else at all? The same random walks as the original, state by state, wherever it can matter.

Belongs here: the configurations that are walked, and the walk. Nothing here says that a difference is wrong.

Theory of operation. A walk of a model is drawn from one seed: the same rules draw the same actions and reach the same
states. Every state is compared whole, what no observable shows included. So this tells apart whatever the walks meet,
and a mutant that is said to be equivalent has to pass them.
"""

import random
from collections.abc import Iterator, Mapping
from typing import Any

from outlives.model.contract import Refusal
from outlives.model.lifetime import GUARDS, WEAKEST
from outlives.model.profiles import PROFILES
from outlives.model.scheduler import SchedulerModel, initial_state
from outlives.model.setup import Item, RequestSetup, Setup, Turn

from .configuration import Configuration
from .subject.conform import IDLE, RUN_LENGTH, Drawer, drawn
from .subject.corners import Corner, corner

__all__ = ["CONFIGURATIONS", "otherwise", "taken"]

_RUNS = 30
_NUMBERS = {
    "chunk_cap": (0, 4),
    "depth": (1, 4),
    "drafts": (0, 3),
    "encoder_budget": (0, 6),
    "items": (1, 3),
    "requests": (3, 3),
    "turns": (1, 3),
}
_LONG = {
    "budget": (4, 10),
    "depth": (3, 4),
    "drafts": (2, 3),
    "items": (1, 3),
    "lead": (0, 2),
    "outputs": (4, 8),
    "requests": (3, 3),
    "slots": (6, 10),
    "turns": (1, 1),
}
"""Many drafts in flight while items are still held."""
_MORE: tuple[dict[str, Any], ...] = (
    {"relax": ("A1",)},
    {"relax": ("A1",), "profile": "0.13.0"},
    {"relax": ("A2",)},
    {"relax": ("A2",), "profile": "0.20.0"},
    {"relax": ("A4",)},
    {"reader": "any"},
    {"reader": "any", "encoder_decoder": True},
    {"reader": "true"},
    {"reader": "true", "encoder_decoder": True},
    {"reader": "true", "guard": "true-window", "items_anywhere": True, "numbers": _LONG},
    {"profile": "0.24.0", "guard": "true-window", "items_anywhere": True, "numbers": _LONG},
    {"split": True},
    {"arrivals": "any"},
    {"items_anywhere": True},
    {"items_anywhere": True, "synchronous": True},
    {"encoder_decoder": True},
    {"diffusion": True},
)


def _configurations() -> Iterator[tuple[str, Configuration]]:
    for profile in PROFILES:
        yield f"profile {profile}", Configuration(profile=profile, numbers=_NUMBERS)
        yield f"profile {profile}, synchronous", Configuration(profile=profile, numbers=_NUMBERS, synchronous=True)
    for guard in (*GUARDS, *WEAKEST):
        yield f"guard {guard}", Configuration(guard=guard, numbers=_NUMBERS)
    for more in _MORE:
        name = ", ".join(f"{name} {value}" for name, value in more.items() if name != "numbers")
        yield name, Configuration(**{"numbers": _NUMBERS, **more})


CONFIGURATIONS: Mapping[str, Configuration] = dict(_configurations())
"""Every profile, guard and assumption."""

_REPEATED = (Item(0, 1, "k0", 1), Item(1, 1, "k1", 1), Item(2, 1, "k0", 1))


def _chunked(*requests: tuple[str, int, int]) -> Setup:
    """Prompts of eight, computed by two at a time, with an item at 2: its key, the request's priority and outputs."""
    asked = tuple(RequestSetup(8, outputs, (Item(2, 1, key, 1),), urgency) for key, urgency, outputs in requests)
    return Setup(asked, slots=3, budget=6, encoder_budget=1, chunk_cap=2, depth=4, by_priority=1)


_ALL_RUN = ("arrive(request=r0)", "arrive(request=r1)", "arrive(request=r2)", "resume(request=r0, kept=0)")
_CORNERS: Mapping[str, tuple[Configuration, Corner]] = {
    "a failed admission, references by key": (
        Configuration(profile="0.20.0"),
        corner(
            Setup((RequestSetup(4, 2, _REPEATED),), slots=2, budget=8, depth=2),
            "arrive(request=r0)", "schedule()", "accept()", "preempt(request=r0)", "accept()",
            "schedule(short_at=r0, hit_r0=1)",
        ),
    ),
    "two encodes left out": (
        Configuration(relax=("A4",)),
        corner(
            Setup((RequestSetup(4, 1, (Item(0, 1, "k0", 1), Item(2, 1, "k1", 1))),), slots=2, budget=2, depth=4),
            "arrive(request=r0)", "schedule(omit=k0)", "schedule(omit=k1)",
        ),
    ),
    "a paused session and an old step that samples nothing": (
        Configuration(profile="0.17.1"),
        corner(
            Setup((RequestSetup(4, 1, (), 0, (Turn(1, 2),)),), slots=1, budget=4, depth=4),
            "arrive(request=r0)", "schedule()", "preempt(request=r0)", "schedule()", "accept()",
            "accept()", "accept()", "continue_session(request=r0)", "schedule()",
        ),
    ),
    "cross attention, read from before the start": (
        Configuration(reader="any", encoder_decoder=True),
        corner(
            Setup((RequestSetup(1, 3, (Item(0, 1, "k0", 1),)),), slots=1, budget=4, depth=2, encoder_decoder=1),
            "arrive(request=r0)", "schedule()", "schedule()", "accept()", "accept(back=1)",
        ),
    ),
    "an item of a later turn that nobody encodes": (
        Configuration(relax=("A4",)),
        corner(
            Setup((RequestSetup(1, 1, (), 0, (Turn(2, 2, (Item(0, 1, "k0", 1),)),)),), slots=1, budget=4, depth=2),
            "arrive(request=r0)", "schedule()", "accept()", "continue_session(request=r0)", "schedule(omit=k0)",
            "accept()",
        ),
    ),
    "an item read from before the start": (
        Configuration(reader="any", guard="optimistic-after-advance"),
        corner(
            Setup((RequestSetup(2, 4, (Item(0, 2, "k0", 2),)),), slots=2, budget=4, drafts=1, depth=3),
            "arrive(request=r0)", "schedule()", "evict(count=1)", "schedule()", "accept()", "accept(back=2)",
        ),
    ),
    "an encode handed over to who has no share yet": (
        Configuration(),
        corner(_chunked(("k0", 2, 2), ("k0", 0, 2), ("k2", 0, 2)), *_ALL_RUN, "schedule(short_at=r1)", "schedule()"),
    ),
    "an encode handed over to who has one": (
        Configuration(),
        corner(_chunked(("k0", 2, 2), ("k0", 0, 2), ("k0", 0, 2)), *_ALL_RUN, "schedule(short_at=r2)", "schedule()"),
    ),
    "a victim of 0.11.0 beside a rejection": (
        Configuration(profile="0.11.0"),
        corner(
            Setup((RequestSetup(1, 6, (), 2), RequestSetup(1, 6, (), 1), RequestSetup(12, 1, ())),
                  slots=1, budget=8, drafts=3, chunk_cap=2, depth=1, by_priority=1, synchronous=1),
            *_ALL_RUN, "accept()", "schedule(short_at=r2)", "reject(accepted=0)", "schedule()", "accept()",
        ),
    ),
}  # fmt: skip


def taken() -> dict[str, int]:
    """What each walk shows, as a number that is the same for the same walk in this process."""
    return dict(_ways())


def otherwise(right: Mapping[str, int]) -> str:
    """The first walk that is not what it was (`right`); "": none."""
    return next((f"goes another way: {name}" for name, way in _ways() if way != right[name]), "")


def _ways() -> Iterator[tuple[str, int]]:
    """Each walk, taken when it is asked for."""
    for name, configuration in CONFIGURATIONS.items():
        yield name, hash(tuple(_walk(configuration, name)))
    for name, each in _CORNERS.items():
        yield name, hash(tuple(_led(*each)))


def _walk(configuration: Configuration, name: str) -> Iterator[Any]:
    model = SchedulerModel(configuration.world(), configuration.scope())
    table = model.setup_table
    draw = Drawer(model, random.Random())
    for run in range(_RUNS):
        draw.choose = random.Random(f"{name} {run}")
        state = model.initial_state({number: drawn(span, draw.choose) for number, span in table.items()})
        taken = idle = 0
        while taken < RUN_LENGTH and idle < IDLE and model.within(state):
            action = draw(state)
            after = model.next_state(state, action)
            yield action, after
            if isinstance(after, Refusal):
                idle += 1
            else:
                state, taken, idle = after, taken + 1, 0


def _led(configuration: Configuration, run: Corner) -> Iterator[Any]:
    model = SchedulerModel(configuration.world(), configuration.scope())
    state = initial_state(run.setup)
    for action in run.actions:
        after = model.next_state(state, action)
        yield after
        state = state if isinstance(after, Refusal) else after
