"""Runs led by hand, and what is right at their end: how they are written down, and how they are asked.

Belongs here: the record, and how a value of a state is named. The runs are data, in `mutant_told_runs`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from outlives.model.contract import Refusal
from outlives.model.scheduler import SchedulerModel, initial_state

from .configuration import Configuration
from .subject.corners import Corner

__all__ = ["Told", "ended_otherwise", "led", "valued"]


@dataclass(frozen=True, slots=True)
class Told:
    """One run."""

    why: str
    """What is right, in a sentence."""
    configuration: Configuration
    run: Corner
    right: Mapping[str, Any]
    """At the end: `r0.computed`, `steps[-1].r0.start` (of the request's part), `book.idle`, ... -> its value."""
    against: str
    """A mutant that ends otherwise; others may."""


def led(told: Told) -> Iterator[Any]:
    """What each action of the run leads to: a state, or a refusal."""
    model = SchedulerModel(told.configuration.world(), told.configuration.scope())
    state = initial_state(told.run.setup)
    for action in told.run.actions:
        after = model.next_state(state, action)
        yield after
        state = state if isinstance(after, Refusal) else after


def ended_otherwise(told: Told) -> Iterator[str]:
    """What is not as it is told, in words."""
    state = None
    for action, after in zip(told.run.actions, led(told), strict=True):
        if isinstance(after, Refusal):
            yield f"{action} is refused: {after.reason}"
            return
        state = after
    for name, right in told.right.items():
        value = valued(state, name)
        if value != right:
            yield f"{name} is {value}, not {right}"


def valued(state: Any, name: str) -> Any:
    """A value of a state by its name."""
    value = state
    for part in name.split("."):
        request, step = re.fullmatch(r"r(\d+)", part), re.fullmatch(r"steps\[(-?\d+)\]", part)
        if step is not None:
            value = value.steps[int(step[1])]
        elif request is None:
            value = getattr(value if hasattr(value, part) else value.counters, part)
        elif hasattr(value, "parts"):
            value = next(each for each in value.parts if each.request == int(request[1]))
        else:
            value = value.requests[int(request[1])]
    return value
