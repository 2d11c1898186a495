"""What holds after each step of a trace: the free condition as it was asked, with its numbers, and every property.

Belongs here: reading them from the recorded calls of the rules and from the properties' own predicates.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from outlives.model.contract import Property
from outlives.model.setup import request_name
from outlives.model.state import items_of
from outlives.model.world import World

from ..verdict import Trace
from .analysis import GuardLine, StepFacts
from .telling import inequality_words
from .witness import Witness, watch

__all__ = ["facts_of"]


def facts_of(trace: Trace, world: World, properties: Sequence[Property[Any]]) -> tuple[StepFacts, ...]:
    """The facts of each step, the initial state included."""
    seen = watch(trace, world)
    fair_from = trace.shrink.get("fair_from")
    facts = []
    for number, step in enumerate(trace.steps):
        before = trace.steps[number - 1].state if number else step.state
        judged = {}
        for prop in properties:
            if prop.kind == "progress":
                ends_badly = prop.name == trace.property and number == fair_from
                judged[prop.name] = "violated" if ends_badly else "not asked"
            elif step.refused is not None:
                judged[prop.name] = "not asked"
            else:
                judged[prop.name] = _judged(prop, before, step.action, step.state)
        guards = () if seen is None else tuple(_guards(seen, number))
        facts.append(StepFacts(step=number, guards=guards, judged=judged))
    return tuple(facts)


def _judged(prop: Property[Any], before: Any, action: Any, after: Any) -> str:
    if not prop.holds(before, action, after):
        return "violated"
    return "holds" if prop.situation(before, action, after) else "not asked"


def _guards(seen: Witness, at: int) -> Iterable[GuardLine]:
    """The condition once for each item that the request referenced when it was asked."""
    for call in seen.calls_to("free_pass", at):
        world, setup, _book, request, number, *drafts = call.arguments
        if setup.encoder_decoder == 1:
            continue
        items = items_of(setup, request, number)
        after = call.result[1].references
        for item in request.references:
            end = items[item].end
            yield GuardLine(
                request=request_name(number),
                item=item,
                guard=world.guard.name,
                inequality=inequality_words(world, request.counters, end, setup.look_ahead),
                holds=world.guard_in_force.lets_go(request.counters, end, setup.look_ahead, *(drafts or (0,))) is True,
                held=item in after,
            )
