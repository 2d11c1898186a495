"""A counterexample of bounded checking, run on the executable model: the same moves, by name, and the same miss.

Belongs here: the translation of the solver's moves into actions, and the verdict whether the model agrees. Where it
does not, one of the two encodings is wrong, and the run must say so (engines disagree).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from outlives.model.contract import Action, Property, Refusal
from outlives.model.scheduler import SchedulerModel, initial_state
from outlives.model.setup import Item, RequestSetup, Scope, Setup, key_name, request_name
from outlives.model.state import State
from outlives.model.world import World

from .proof.bounded import Counterexample
from .properties import scheduler_properties
from .verdict import Step, Trace

__all__ = ["Concrete", "run_concretely", "setup_of"]

_REQUEST = request_name(0)
_GATHER = "GATHER-AFTER-FREE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Concrete:
    """What the executable model made of a counterexample."""

    agrees: bool
    trace: Trace
    difference: str = ""
    """Where the model went another way, or that it did not miss."""


def setup_of(found: Counterexample) -> Setup:
    """The numbers of the counterexample as a setup with one item and room for it. Outputs are as many as it takes."""
    item = Item(found.start, found.end - found.start, key_name(0), found.end - found.start)
    outputs = (1 + found.most_drafts) * (len(found.moves) + 1)
    request = RequestSetup(found.prompt, outputs, (item,))
    return Setup((request,), slots=item.size, budget=found.budget, drafts=found.most_drafts, depth=2)


def run_concretely(found: Counterexample, world: World) -> Concrete:
    """Run it. It agrees where every move is taken and the last one misses the item."""
    setup = setup_of(found)
    world = replace(world, split=False)
    properties = scheduler_properties(world)
    model = SchedulerModel(world, Scope(), properties)
    state = initial_state(setup)
    steps = [Step(None, state)]
    difference = ""
    for action in _actions(found, steps):
        after = model.next_state(steps[-1].state, action)
        if isinstance(after, Refusal):
            difference = f"step {len(steps)}, {action}, is refused by the model: {after.reason}"
            break
        steps.append(Step(action, after))
    end: State = steps[-1].state
    if not difference and not end.misses:
        difference = f"after {len(steps) - 1} actions the model finds every key that it reads"
    gather = next(prop for prop in properties if prop.name == _GATHER)
    return Concrete(agrees=not difference, trace=_trace(gather, steps), difference=difference)


def _trace(gather: Property[State], steps: list[Step]) -> Trace:
    before, last = steps[-2 if len(steps) > 1 else -1], steps[-1]
    why = (
        ""
        if gather.holds(before.state, last.action, last.state)
        else gather.explain(before.state, last.action, last.state)
    )
    return Trace(
        steps=tuple(steps),
        property=_GATHER,
        why=why,
        shortest="shortest in moves of the relation (bounded checking)",
    )


def _actions(found: Counterexample, steps: list[Step]) -> Iterator[Action]:
    """One after the other: whether a dispatch needs a `speculate` depends on the drafts attached by then."""
    yield Action.of("arrive", request=_REQUEST)
    for move in found.moves:
        state: State = steps[-1].state
        left_out = {"omit": key_name(0)} if move.encoded == 0 else {}
        if move.name == "resume":
            yield Action.of("resume", request=_REQUEST, kept=move.number, **left_out)
        elif move.name == "dispatch":
            if state.requests[0].drafts != move.number:
                yield Action.of("speculate", request=_REQUEST, drafts=move.number)
            yield Action.of("schedule", **left_out)
        elif move.name == "preempt":
            yield Action.of("preempt", request=_REQUEST)
        elif move.name == "evict":
            yield Action.of("evict", count=1)
        else:
            drafts = sum(part.drafts for part in state.steps[0].parts if part.sampled == 1) if state.steps else 0
            rejects = move.number < drafts
            yield Action.of("reject", accepted=move.number) if rejects else Action.of("accept")
    yield Action.of("accept", **({"back": found.back} if found.back else {}))
