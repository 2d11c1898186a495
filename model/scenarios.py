"""The fixed points: setups in which releases are known to crash, to be stuck, or to be fine.

Belongs here: data only. Each scenario has one request, no abort, preemption or reset, and is judged on
gather-after-free and progress. Its numbers are drawn around the base, and the base itself is always tried; a small
equivalent of the same shape stands beside it for engines that visit every state.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .contract import Range
from .errors import UnknownName
from .setup import Scope
from .world import ROUTES

__all__ = ["SCENARIOS", "Scenario", "scenario_named"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A named setup: where its numbers are, and what it is about."""

    name: str
    phrase: str
    scope: Scope
    """Numbers around the base."""
    small: Scope
    """One small setup of the same shape."""
    closed: frozenset[str] = frozenset(ROUTES) - {"look-ahead"}
    properties: tuple[str, ...] = ("GATHER-AFTER-FREE", "PROGRESS")
    source: str = ""


def _scope(items: tuple[tuple[int, int], ...], prompt: int, slots: int, budget: int, whole: int, near: int) -> Scope:
    """A scope whose base is these items ([start, end) each) in a prompt, and whose ranges lie `near` around it."""
    base = {"r0_outputs": 2, "slots": slots, "budget": budget, "look_ahead": 1, "depth": 2, "whole_items": whole}
    base |= {"encoder_budget": 0, "chunk_cap": 0, "drafts": 1, "strangers": 0}
    end = 0
    for number, (start, stop) in enumerate(items):
        base |= {f"r0_lead{number}": start - end, f"r0_length{number}": stop - start}
        end = stop
    base["r0_tail"] = prompt - end
    length = base["r0_length0"]
    return Scope(
        items=Range(len(items), len(items)),
        lead=Range(0, 0),
        length=Range(max(1, length - near), length + near),
        tail=Range(max(0, base["r0_tail"] - near), base["r0_tail"] + near),
        outputs=Range(1, 2),
        slots=Range(max(1, slots - near), slots + near),
        budget=Range(max(1, budget - near), budget + near),
        drafts=Range(1, 1),
        look_ahead=Range(1, 1),
        whole_items=Range(whole, whole),
        strangers=Range(0, 0),
        base=base,
    )


def _scenario(
    name: str,
    phrase: str,
    source: str,
    items: tuple[tuple[int, int], ...],
    prompt: int,
    slots: int,
    budget: int,
    small: tuple[tuple[tuple[int, int], ...], int, int, int],
    whole: int = 0,
) -> Scenario:
    small_items, small_prompt, small_slots, small_budget = small
    return Scenario(
        name=name,
        phrase=phrase,
        source=source,
        scope=_scope(items, prompt, slots, budget, whole, near=3),
        small=_scope(small_items, small_prompt, small_slots, small_budget, whole, near=0),
    )


SCENARIOS: Mapping[str, Scenario] = MappingProxyType(
    {
        scenario.name: scenario
        for scenario in (
            _scenario(
                "chunk-end",
                "an item starts exactly where a chunk ends",
                "#29750, #30475, #51603",
                ((64, 96),),
                128,
                64,
                64,
                (((4, 6),), 8, 4, 4),
            ),
            _scenario(
                "adjacent",
                "two adjacent items, room for one",
                "#40707, #47738",
                ((10, 20), (20, 30)),
                40,
                12,
                64,
                (((2, 4), (4, 6)), 7, 2, 16),
            ),
            _scenario(
                "gap-one",
                "two items with a gap of one token, room for one",
                "vllm-ascend #17195",
                ((0, 5), (6, 11)),
                16,
                6,
                64,
                (((0, 2), (3, 5)), 6, 2, 16),
            ),
            _scenario(
                "whole-items",
                "items may not be chunked, and the budget ends inside one",
                "#32469, #34220",
                ((64, 96),),
                128,
                64,
                80,
                (((4, 7),), 9, 6, 5),
                whole=1,
            ),
        )
    }
)
"""The scenarios by name."""


def scenario_named(name: str) -> Scenario:
    """The scenario of that name; raises `UnknownName` with the known ones."""
    try:
        return SCENARIOS[name]
    except KeyError:
        raise UnknownName("scenario", name, SCENARIOS) from None
