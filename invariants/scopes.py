"""The named scopes that the exhaustive engine visits whole: small setups, each there for a reason.

Belongs here: data. A scope is given by its numbers, which are clamped into whatever ranges a run was given, so that
`--slots 4` holds for every engine.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

from outlives.model.contract import Range
from outlives.model.setup import Scope, Setup

__all__ = ["NAMED_SCOPES", "NamedScope"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedScope:
    """One setup, of which every state is visited."""

    name: str
    phrase: str
    numbers: Mapping[str, int]
    requests: int = 1
    """Visited only where the model has at least so many requests."""

    def own(self, scope: Scope, given: Container[str]) -> Scope:
        """The ranges of a run, wide enough for this scope's own numbers where the user gave none."""
        spans = {name: getattr(scope, name) for name in _PLAIN if name not in given}
        wide: dict[str, Any] = {
            name: Range(min(span.low, self.numbers[name]), max(span.high, self.numbers[name]))
            for name, span in spans.items()
        }
        return scope._replace(**wide)

    def misfit(self, setup: Setup) -> str:
        """What the scope is about and this setup, clamped into a run's ranges, has not; empty where it has it all."""
        about = [name for name, plain in _PLAIN.items() if self.numbers[name] != plain]
        wrong = [name for name in about if getattr(setup, name) != self.numbers[name]]
        return ", ".join(f"{name.replace('_', '-')} {self.numbers[name]}" for name in wrong)


_PLAIN = {"depth": 2, "whole_items": 0, "encoder_budget": 0, "chunk_cap": 0}
"""Numbers of a scope that is not about them. One that has another number here is: without it, it is no such scope."""


def _scope(name: str, phrase: str, items: tuple[tuple[int, int], ...], **numbers: int) -> NamedScope:
    """`items` as (text before it, length); `tail` counts where items lie in the prompt, `prompt` where anywhere."""
    named = {f"r0_{key}": numbers.pop(key) for key in ("tail", "outputs", "prompt") if key in numbers}
    named["r0_items"] = len(items)
    for number, (lead, length) in enumerate(items):
        named |= {f"r0_lead{number}": lead, f"r0_length{number}": length}
    plain = {**_PLAIN, "drafts": 1, "look_ahead": 1, "strangers": 0}
    return NamedScope(name=name, phrase=phrase, numbers={**plain, **named, **numbers})


def _many(name: str, phrase: str, items: tuple[tuple[tuple[int, int], ...], ...], **numbers: int) -> NamedScope:
    """Several requests, each with its items as (text before it, length); one output each unless said."""
    plain = {**_PLAIN, "drafts": 1, "look_ahead": 1, "strangers": 0}
    named: dict[str, int] = {}
    for request, each in enumerate(items):
        named |= {f"r{request}_items": len(each), f"r{request}_tail": 0, f"r{request}_outputs": 1}
        for number, (lead, length) in enumerate(each):
            named |= {f"r{request}_lead{number}": lead, f"r{request}_length{number}": length}
    return NamedScope(name=name, phrase=phrase, numbers={**plain, **named, **numbers}, requests=len(items))


NAMED_SCOPES = (
    _scope(
        "tight-cache",
        "two items a token apart, room for one, strangers take slots",
        ((0, 2), (1, 2)),
        tail=1,
        prompt=3,
        outputs=2,
        slots=3,
        budget=4,
        strangers=1,
    ),
    _scope(
        "many-drafts",
        "one item near the prompt's end, up to two drafts a step",
        ((0, 3),),
        tail=0,
        prompt=1,
        outputs=4,
        slots=3,
        budget=3,
        drafts=2,
    ),
    _scope(
        "adjacent-items",
        "two adjacent items, room for one, the look-ahead reaches from one into the other",
        ((1, 2), (0, 2)),
        tail=1,
        prompt=4,
        outputs=2,
        slots=2,
        budget=6,
    ),
    _scope(
        "chunk-end",
        "an item begins exactly where a chunk ends",
        ((3, 2),),
        tail=1,
        prompt=4,
        outputs=2,
        slots=3,
        budget=3,
        strangers=1,
    ),
    _scope(
        "whole-items",
        "an item as long as the budget that may not be chunked, one token after the start",
        ((1, 2),),
        tail=2,
        prompt=4,
        outputs=2,
        slots=2,
        budget=2,
        whole_items=1,
    ),
    _scope(
        "encoder-budget",
        "two items, one of which may be encoded per step",
        ((0, 2), (1, 2)),
        tail=0,
        prompt=3,
        outputs=2,
        slots=4,
        budget=8,
        encoder_budget=2,
        chunk_cap=3,
    ),
    _scope(
        "last-chunk",
        "an item up to the prompt's end, which is computed in chunks: the last one is in flight when it is confirmed",
        ((0, 2),),
        tail=0,
        prompt=2,
        outputs=4,
        slots=2,
        budget=1,
        drafts=0,
        look_ahead=0,
    ),
    _scope(
        "two-at-once",
        "two items that one pass encodes and one step reads",
        ((0, 2), (1, 1)),
        tail=0,
        prompt=3,
        outputs=1,
        slots=3,
        budget=6,
    ),
    _scope(
        "three-in-flight",
        "up to three steps in flight",
        ((0, 2),),
        tail=1,
        prompt=2,
        outputs=2,
        slots=2,
        budget=2,
        depth=3,
    ),
    _many(
        "withdrawn-encode",
        "a victim that has planned an encode in the very pass, a more urgent request after it",
        (((4, 2),), ((3, 1),)),
        r0_priority=1,
        slots=3,
        budget=6,
        chunk_cap=2,
        drafts=0,
        look_ahead=0,
    ),
    _many(
        "shared-key",
        "two requests with one key, room for one entry",
        (((0, 2),), ((1, 2),)),
        r0_tail=1,
        r1_tail=1,
        r1_key0=1,
        slots=2,
        budget=4,
        drafts=0,
        look_ahead=0,
    ),
    _many(
        "rivals",
        "two requests with a key each, room for one entry",
        (((0, 2),), ((1, 2),)),
        r0_tail=1,
        r1_tail=1,
        slots=2,
        budget=6,
        drafts=0,
    ),
)
"""Every named scope. Between them each open route is taken."""
