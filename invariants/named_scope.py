"""A named scope: one small setup of which every state is visited, and what it is about.

Belongs here: the record, how its numbers meet the ranges of a run, and the short form in which scopes are written down.
The scopes themselves are in `scopes` and `corner_scopes`.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

from outlives.model.contract import Argument, Range
from outlives.model.setup import PLAIN, PLAIN_ROUTES, Scope, Setup, mode_numbers
from outlives.model.world import World

__all__ = ["NamedScope", "scope_of"]


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


def scope_of(
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
