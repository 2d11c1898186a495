"""The named scopes that the exhaustive engine visits whole: small setups, each there for a reason.

Belongs here: data. A scope is given by its numbers, which are clamped into whatever ranges a run was given, so that
`--slots 4` holds for every engine.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

from outlives.model.contract import Argument, Range
from outlives.model.setup import PLAIN, PLAIN_ROUTES, Scope, Setup, mode_numbers
from outlives.model.world import World

__all__ = ["NAMED_SCOPES", "NamedScope"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedScope:
    """One setup, of which every state is visited."""

    name: str
    phrase: str
    numbers: Mapping[str, Argument]
    requests: int = 1
    """Visited only where the model has at least so many requests; the setup has exactly these."""
    routes: str = PLAIN_ROUTES
    """The rare routes that are taken in it (see `Scope.routes`); it is about them."""
    mode: str = PLAIN
    weight: int = 1
    """How often a run of the machine begins with it, against the others: more where its corner is seldom met."""

    def own(self, scope: Scope, given: Container[str]) -> Scope:
        """The ranges of a run, wide enough for this scope's own numbers where the user gave none."""
        wide: dict[str, Any] = {"requests": self.requests, "routes": (self.routes,)}
        for name in _PLAIN:
            own = self.numbers[name]
            if name not in given and name != "by_priority" and isinstance(own, int):
                span = getattr(scope, name)
                wide[name] = Range(min(span.low, own), max(span.high, own))
        least = min(self.numbers[f"r{request}_items"] for request in range(self.requests))
        if "items" not in given and isinstance(least, int):
            wide["items"] = Range(min(least, scope.items.low), scope.items.high)
        if self.mode in scope.modes:
            wide["modes"] = (self.mode,)
        wide["turns"] = Range(1, scope.turns.high)
        return scope._replace(**wide)

    def misfit(self, setup: Setup, world: World) -> str:
        """What the scope is about and this setup, clamped into a run's ranges, has not; empty where it has it all."""
        about = [name for name, plain in _PLAIN.items() if self.numbers[name] != plain]
        wrong = [
            f"{name.replace('_', '-')} {self.numbers[name]}"
            for name in about
            if getattr(setup, name) != self.numbers[name]
        ]
        modes = mode_numbers(self.mode)
        if any(getattr(setup, name) != number for name, number in modes.items()):
            wrong.append(f"mode {self.mode}")
        if self.routes != PLAIN_ROUTES:
            wrong += [f"route {route}" for route in self.routes.split("+") if not world.opens(route, setup)]
        return ", ".join(wrong)


_PLAIN = {"depth": 2, "whole_items": 0, "encoder_budget": 0, "chunk_cap": 0, "by_priority": 0}
"""Numbers of a scope that is not about them. One that has another number here is: without it, it is no such scope."""

_SMALL: Mapping[str, Argument] = {"drafts": 1, "look_ahead": 1, "strangers": 0}


def _scope(
    name: str,
    phrase: str,
    *items: tuple[tuple[int, int], ...],
    routes: str = PLAIN_ROUTES,
    mode: str = PLAIN,
    weight: int = 1,
    **numbers: int,
) -> NamedScope:
    """The items of each request as (text before it, length). `tail` counts where items lie in the prompt, `prompt`
    where anywhere; `tail`, `prompt` and `outputs` without a request's name are those of each request."""
    each = {key: numbers.pop(key) for key in ("tail", "outputs", "prompt") if key in numbers}
    named: dict[str, Argument] = {}
    for request, own in enumerate(items):
        named |= {f"r{request}_items": len(own), f"r{request}_tail": 0, f"r{request}_outputs": 1}
        named |= {f"r{request}_{key}": number for key, number in each.items()}
        for number, (lead, length) in enumerate(own):
            named |= {f"r{request}_lead{number}": lead, f"r{request}_length{number}": length}
    return NamedScope(
        name=name,
        phrase=phrase,
        numbers={**_PLAIN, **_SMALL, **named, **numbers},
        requests=len(items),
        routes=routes,
        mode=mode,
        weight=weight,
    )


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
    _scope(
        "withdrawn-encode",
        "a victim that has planned an encode in the very pass, a more urgent request after it",
        ((4, 2),),
        ((3, 1),),
        by_priority=1,
        r0_priority=1,
        slots=3,
        budget=6,
        chunk_cap=2,
        drafts=0,
        look_ahead=0,
    ),
    _scope(
        "shared-key",
        "two requests with one key, room for one entry",
        ((0, 2),),
        ((1, 2),),
        r0_tail=1,
        r1_tail=1,
        r1_key0=1,
        slots=2,
        budget=4,
        drafts=0,
        look_ahead=0,
    ),
    _scope(
        "rivals",
        "two requests with a key each, room for one entry",
        ((0, 2),),
        ((1, 2),),
        r0_tail=1,
        r1_tail=1,
        slots=2,
        budget=6,
        drafts=0,
    ),
    _scope(
        "reset-beside-stale",
        "a prefix-cache reset, and a resume in the next pass beside the stale output; one item, drafts",
        ((0, 2),),
        routes="reset-prefix-cache",
        tail=1,
        outputs=2,
        slots=2,
        budget=2,
        look_ahead=0,
    ),
    _scope(
        "encoder-cache-reset",
        "the encoder cache is reset between the chunks of a prompt with two items",
        ((0, 2), (1, 2)),
        routes="reset-encoder-cache",
        tail=0,
        outputs=2,
        slots=3,
        budget=3,
        drafts=0,
        look_ahead=0,
    ),
    _scope(
        "failed-load",
        "KV blocks of a prefix fail to load, into and below an item; a later item may hold the room of an earlier one",
        ((0, 2), (1, 2)),
        routes="kv-load-failure",
        tail=0,
        outputs=2,
        slots=3,
        budget=5,
        drafts=1,
        look_ahead=0,
    ),
    _scope(
        "second-turn",
        "a session with an item in each turn, and room for one",
        ((0, 2),),
        routes="sessions",
        tail=0,
        outputs=2,
        r0_turns=2,
        r0_turn1_length=2,
        slots=2,
        budget=4,
        look_ahead=0,
    ),
    _scope(
        "reset-both",
        "both caches are reset, as before new weights are loaded",
        ((0, 2),),
        routes="reset-prefix-cache+reset-encoder-cache",
        tail=0,
        outputs=1,
        slots=2,
        budget=2,
        drafts=0,
        look_ahead=0,
    ),
    _scope(
        "turns-and-resets",
        "a session whose turns end beside steps in flight, and prefix-cache resets",
        ((0, 1),),
        routes="reset-prefix-cache+sessions",
        tail=1,
        outputs=2,
        r0_turns=2,
        r0_turn1_length=1,
        slots=1,
        budget=2,
        drafts=0,
        look_ahead=0,
    ),
    _scope(
        "load-and-turns",
        "a session's second turn, and KV blocks that fail to load",
        ((0, 1),),
        routes="kv-load-failure+sessions",
        tail=1,
        outputs=1,
        r0_turns=2,
        r0_turn1_length=1,
        slots=1,
        budget=3,
        drafts=0,
        look_ahead=0,
    ),
    _scope(
        "three-in-line",
        "three requests with a key each and room for one: who is stalled lets the others pass",
        ((0, 1),),
        ((0, 1),),
        ((1, 1),),
        tail=0,
        slots=1,
        budget=4,
        drafts=0,
        look_ahead=0,
        depth=1,
    ),
    _scope(
        "urgent-victims",
        "the least urgent of two requests is the victim, and may have been scheduled in the very pass",
        ((0, 2),),
        ((1, 1),),
        by_priority=1,
        r0_priority=1,
        tail=0,
        slots=3,
        budget=4,
        drafts=0,
        look_ahead=0,
    ),
    _scope(
        "urgent-resets",
        "priorities, a shared key and prefix-cache resets",
        ((0, 1),),
        ((0, 1),),
        routes="reset-prefix-cache",
        by_priority=1,
        r0_priority=1,
        r1_key0=1,
        tail=0,
        outputs=2,
        slots=1,
        budget=2,
        drafts=0,
        look_ahead=0,
        depth=1,
    ),
    _scope(
        "one-stage",
        "synchronous scheduling, one pipeline stage, two drafts",
        ((0, 2), (1, 1)),
        mode="synchronous",
        tail=0,
        outputs=3,
        slots=2,
        budget=4,
        drafts=2,
        depth=1,
    ),
    _scope(
        "two-stages",
        "synchronous scheduling, two pipeline stages, a prompt in chunks",
        ((0, 2), (1, 2)),
        mode="synchronous",
        tail=0,
        outputs=2,
        slots=2,
        budget=2,
        drafts=1,
        depth=2,
    ),
    _scope(
        "diffusion",
        "a model that samples nothing beside its drafts",
        ((0, 2),),
        mode="diffusion",
        tail=0,
        outputs=4,
        slots=2,
        budget=4,
        drafts=2,
        look_ahead=0,
    ),
    _scope(
        "encoder-decoder",
        "an encoder-decoder model: two requests, room for the outputs of one",
        ((0, 2),),
        ((0, 1),),
        mode="encoder-decoder",
        tail=1,
        slots=2,
        budget=4,
        drafts=0,
        look_ahead=0,
    ),
    _scope(
        "repeated-key",
        "two items of one request with one key",
        ((0, 2), (1, 2)),
        tail=0,
        outputs=2,
        r0_key1=1,
        slots=2,
        budget=3,
        drafts=0,
        look_ahead=0,
    ),
    _scope(
        "shared-and-own",
        "two requests need a shared item first and one of their own then, with room for one",
        ((0, 1), (0, 1)),
        ((0, 1), (0, 1)),
        tail=0,
        r1_key0=2,
        slots=1,
        budget=4,
        drafts=0,
        look_ahead=0,
    ),
    _scope(
        "shared-in-one-pass",
        "two requests reach a shared item in one pass, the less urgent one first",
        ((2, 1),),
        ((1, 1),),
        weight=4,
        by_priority=1,
        r0_priority=1,
        r1_key0=1,
        tail=0,
        slots=1,
        budget=2,
        chunk_cap=1,
        drafts=0,
        look_ahead=0,
    ),
    _scope(
        "drafts-beside-prompt",
        "one request decodes with a draft while the other computes its prompt in chunks",
        (),
        ((0, 1),),
        weight=2,
        r0_tail=1,
        r0_outputs=2,
        r1_tail=2,
        slots=1,
        budget=2,
        drafts=1,
        look_ahead=0,
    ),
    _scope(
        "no-room-to-pad",
        "a session's turn of one token, and no pass that has the room to pad it with drafts",
        ((0, 1),),
        routes="sessions",
        tail=0,
        r0_turns=2,
        slots=1,
        budget=1,
        drafts=1,
        look_ahead=0,
    ),
    _scope(
        "reset-mid-decode",
        "a prefix-cache reset while a step with a draft is in flight; then one pass is too short for what is known",
        ((0, 1),),
        routes="reset-prefix-cache",
        weight=8,
        tail=1,
        outputs=2,
        slots=1,
        budget=2,
        drafts=1,
        look_ahead=0,
    ),
    _scope(
        "victim-encodes",
        "a less urgent request encodes an item in each of two passes, and may be the victim of a more urgent one",
        ((2, 1), (0, 1)),
        ((0, 1),),
        weight=12,
        by_priority=1,
        r0_priority=1,
        tail=0,
        r1_tail=1,
        slots=3,
        budget=2,
        chunk_cap=1,
        drafts=0,
        look_ahead=0,
        depth=1,
    ),
)
"""Every named scope. Between them each open route is taken."""
