"""The planted faults, exhaustively: each is found, with its shortest depth, in a stated small scope."""

from dataclasses import replace

import pytest
from faults import FAULTS, Fault
from outlives.invariants.configuration import Configuration
from outlives.invariants.explore import shortest
from outlives.model.setup import Setup
from outlives.model.world import World
from worlds import FixedModel, setup

TWO_ITEMS = setup([(0, 2), (3, 5)], prompt=6, slots=3, budget=4, drafts=1, look_ahead=1, strangers=1)
ROOM_FOR_BOTH = setup([(0, 2), (3, 5)], prompt=5, slots=4, budget=8, drafts=1, look_ahead=1)
PAST_PROMPT = setup([(0, 3)], prompt=1, outputs=4, slots=3, budget=3, drafts=2, look_ahead=1)
LAST_CHUNK = setup([(0, 2)], prompt=2, outputs=4, slots=2, budget=1)

SHORTEST: dict[str, tuple[Setup, int]] = {
    "roll-back-computed-only": (PAST_PROMPT, 5),
    "forget-in-flight": (TWO_ITEMS, 3),
    "one-too-early": (LAST_CHUNK, 8),
    "forget-promises": (PAST_PROMPT, 8),
    "hit-stays-idle": (TWO_ITEMS, 5),
    "evict-keeps-slots": (TWO_ITEMS, 4),
    "gate-ignores-room": (TWO_ITEMS, 3),
    "keep-references": (TWO_ITEMS, 4),
    "encode-one-only": (ROOM_FOR_BOTH, 3),
    "drop-nothing": (TWO_ITEMS, 5),
}
"""Fault -> a scope in which it shows, and how many actions the shortest run to what it breaks has there. Without the
fault no run of that length breaks it."""


def _world(fault: Fault, *, faulty: bool) -> World:
    world = Configuration(**fault.configuration).world()
    return replace(world, rules=fault.plant(world.rules)) if faulty else world


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_each_fault_at_its_shortest_depth(fault: Fault) -> None:
    numbers, depth = SHORTEST[fault.name]
    anywhere = bool(fault.configuration.get("items_anywhere"))
    found = shortest(FixedModel(_world(fault, faulty=True), [numbers], anywhere=anywhere), fault.breaks)
    assert found.trace is not None
    assert found.badge == "shortest possible"
    assert len(found.trace.actions) == depth
    sound = shortest(FixedModel(_world(fault, faulty=False), [numbers], anywhere=anywhere), fault.breaks, known=depth)
    assert sound.trace is None
    assert sound.contradicts


def test_a_guard_one_too_early_needs_a_chunked_prompt() -> None:
    """Where the whole prompt is one step, the token that its output delivers confirms the position that is missing."""
    (fault,) = (each for each in FAULTS if each.name == "one-too-early")
    found = shortest(FixedModel(_world(fault, faulty=True), [PAST_PROMPT], anywhere=True), fault.breaks)
    assert found.trace is None
    assert found.exploration.complete
    assert found.exploration.states > 1_000
