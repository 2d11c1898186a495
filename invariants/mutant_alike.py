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
from outlives.model.scheduler import SchedulerModel

from .configuration import Configuration
from .mutant_told import led
from .mutant_told_runs import TOLD
from .subject.conform import IDLE, RUN_LENGTH, Drawer, drawn

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
    for name, told in TOLD.items():
        yield name, hash(tuple(led(told)))


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
