"""A counterexample of bounded checking, run on the executable model: what Z3 says happens must happen there.

Belongs here: the actions that a counterexample stands for, and their run. The model is told what to do and nothing of
what comes out; after every move its counters, references and book are compared with the numbers of the solver.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from outlives.model.contract import Action, Refusal
from outlives.model.lifetime import Guard
from outlives.model.profiles import PROFILES, REPAIRED, Profile
from outlives.model.scheduler import SchedulerModel, initial_state
from outlives.model.setup import RARE_ROUTES, Item, RequestSetup, Scope, Setup, Turn, key_name, request_name
from outlives.model.state import State
from outlives.model.world import World

from ..verdict import Step
from .bounded import Counterexample, Move
from .cells import Column
from .pipeline_routes import ROUTE_MOVES
from .projection import holds_progress

__all__ = ["Rerun", "rerun", "setup_of", "world_of"]

_REQUEST = request_name(0)
_KEY = key_name(0)


_SIMPLE = {
    "preempt": Action.of("preempt", request=_REQUEST),
    "reset": Action.of("reset_prefix_cache"),
    "reset-encoder": Action.of("reset_encoder_cache"),
    "turn-end": Action.of("finish", request=_REQUEST),
    "more-prompt": Action.of("continue_session", request=_REQUEST),
}
"""Moves that are one action without numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """What the model did."""

    steps: tuple[Step, ...]
    """From the initial state on; a refused action is the last one."""
    agrees: bool
    """The model did what the solver said, to the miss at the end."""
    difference: str
    """Where it did not: at which action, and how."""


def setup_of(counterexample: Counterexample) -> Setup:
    """The numbers of the run: one request, one item, a cache that holds just it, and outputs without an end. Each turn
    that ends is followed by another, and rare routes are open that the run takes."""
    length = counterexample.end - counterexample.start
    item = Item(counterexample.start, length, _KEY, length)
    taken = [move.name for move in counterexample.moves]
    prompts = [move.number for move in counterexample.moves if move.name == "more-prompt"]
    prompts += [1] * (taken.count("turn-end") - len(prompts))
    outputs = counterexample.prompt + sum(prompts) + (len(counterexample) + 1) * (counterexample.budget + 1)
    turns = tuple(Turn(prompt, outputs) for prompt in prompts)
    routes = {ROUTE_MOVES[name][0] for name in taken if name in ROUTE_MOVES}
    return Setup(
        requests=(RequestSetup(counterexample.prompt, outputs, (item,), turns=turns),),
        slots=length,
        budget=counterexample.budget,
        drafts=counterexample.most_drafts,
        depth=counterexample.depth,
        left_out=tuple(route for route in RARE_ROUTES if route not in routes),
    )


def world_of(guard: Guard, column: Column, profile: Profile = PROFILES[REPAIRED]) -> World:
    """The model's world for a cell of the table: the profile's rules and switches, the cell's guard and assumptions."""
    return World(
        rules=profile.rules,
        switches=profile.switches,
        guard=guard,
        relaxed=column.relaxed,
        reader=column.reader,
        closed=column.closed,
    )


def _actions(state: State, move: Move, oldest_drafts: int) -> Iterator[Action]:
    """The actions of one move in this state."""
    omit = {"omit": _KEY} if move.encoded == 0 else {}
    if move.name == "resume":
        yield Action.of("resume", request=_REQUEST, kept=move.number, **omit)
    elif move.name == "dispatch":
        if state.requests[0].drafts != move.number:
            yield Action.of("speculate", request=_REQUEST, drafts=move.number)
        yield Action.of("schedule", **omit)
    elif move.name == "output":
        yield Action.of("accept") if move.number == oldest_drafts else Action.of("reject", accepted=move.number)
    elif move.name == "go-on":
        yield Action.of("schedule", **omit)
    elif move.name == "kv-failure":
        yield Action.of("fail_kv_load", request=_REQUEST, valid=move.number)
    elif move.name in _SIMPLE:
        yield _SIMPLE[move.name]
    else:
        yield Action.of("evict", count=1)


def rerun(counterexample: Counterexample, world: World) -> Rerun:
    """Run the counterexample on the model, comparing as it goes. Total: a disagreement is a result, not an error."""
    model = SchedulerModel(world, Scope(requests=1))
    state = initial_state(setup_of(counterexample))
    steps = [Step(None, state)]

    def take(action: Action) -> str:
        nonlocal state
        after = model.next_state(state, action)
        if isinstance(after, Refusal):
            steps.append(Step(action, state, after.reason))
            return f"the model refuses {action}: {after.reason}"
        state = after
        steps.append(Step(action, state))
        return ""

    difference = take(Action.of("arrive", request=_REQUEST))
    drafts = 0
    for move in counterexample.moves:
        for action in _actions(state, move, drafts):
            difference = difference or take(action)
        difference = difference or _difference(state, move)
        drafts = move.after.first.flight.drafts
        if difference:
            return Rerun(steps=tuple(steps), agrees=False, difference=difference)
    back = {"back": counterexample.back} if counterexample.back else {}
    difference = take(Action.of("accept", **back))
    if not difference and not state.misses:
        difference = "the last step executes in the model, and finds what it reads"
    return Rerun(steps=tuple(steps), agrees=not difference, difference=difference)


def _difference(state: State, move: Move) -> str:
    """How the model's state differs from the solver's after this move; empty where it does not."""
    if state.misses:
        return f"in the model, {move.name} already reads a missing key"
    request, life = state.requests[0], move.after.life
    pairs = [
        ("counters", tuple(request.counters), tuple(life.counters)),
        ("running", int(holds_progress(state, 0)), life.running),
        ("referenced", int(0 in request.references), life.referenced),
        ("booked", int(any(entry.key == _KEY for entry in state.book.entries)), life.booked),
        ("steps in flight", len(state.steps), move.after.used),
    ]
    for what, ours, theirs in pairs:
        if ours != theirs:
            return f"after {move.name}, {what}: {ours} in the model, {theirs} in the solver's run"
    return ""
