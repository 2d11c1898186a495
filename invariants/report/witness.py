"""Watching a trace being taken again: which rule did what at which step, and with which numbers.

Belongs here: taking the trace's actions again with every rule of the scheduler recorded, and following the engine
steps from dispatch to output. What the record means for a violated property is told in the `story` files.

Theory of operation
-------------------
The rules are a record of named functions, so each can be wrapped without the model knowing. The recorded run must
reproduce the trace's states; where it does not (a trace of another scheduler), there is nothing to tell.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

from outlives.model.contract import Action, Refusal
from outlives.model.scheduler import SchedulerModel
from outlives.model.setup import Item, Scope
from outlives.model.state import State, Step, items_of
from outlives.model.world import Rules, World

from ..verdict import Trace

__all__ = ["Call", "Flight", "Moment", "Witness", "calls_of", "watch"]


class Call(NamedTuple):
    """One call of a rule."""

    at: int
    """Number of the trace's step."""
    rule: str
    arguments: tuple[Any, ...]
    result: Any
    callers: tuple["Call", ...]
    """The rules it was called from, outermost first (their results are None: not known yet)."""

    def caller(self, rule: str) -> "Call | None":
        """The call of that rule inside which this one happened."""
        return next((call for call in self.callers if call.rule == rule), None)


class Moment(NamedTuple):
    """One taken action of the trace."""

    at: int
    action: Action
    before: State
    after: State


@dataclass(slots=True, kw_only=True)
class Flight:
    """One engine step: from the pass that dispatched it to the processing of its output."""

    left_at: int
    """Number of the trace's step that dispatched it."""
    step: Step
    """As it left."""
    executed_at: int | None = None
    processed_at: int | None = None


@dataclass(slots=True, kw_only=True)
class Witness:
    """Everything that was seen."""

    world: World
    moments: list[Moment] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    flights: list[Flight] = field(default_factory=list)
    end: State
    """The last state of the trace."""

    def calls_to(self, rule: str, at: int | None = None) -> Iterator[Call]:
        """The calls of one rule, at one step or at any, in order."""
        return (call for call in self.calls if call.rule == rule and at in (None, call.at))

    def item(self, request: int, item: int) -> Item:
        """An item by number; those of later turns were there at least once, and are forgotten when a request ends."""
        states = (self.end, *(moment.before for moment in reversed(self.moments)))
        every = (items_of(state.setup, state.requests[request], request) for state in states)
        return next(items for items in every if item < len(items))[item]

    def action(self, at: int) -> Action:
        """The action of the trace's step with this number."""
        return next(moment.action for moment in self.moments if moment.at == at)


def calls_of(world: World, before: State, action: Action, at: int = 0) -> tuple[State | Refusal, list[Call]]:
    """Take one action with every rule recorded: what came of it, and the calls in the order in which they ended."""
    calls: list[Call] = []
    running: list[Call] = []

    def recorded(name: str, rule: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            callers = tuple(running)
            running.append(Call(at, name, arguments, None, callers))
            try:
                result = rule(*arguments)
            finally:
                running.pop()
            calls.append(Call(at, name, arguments, result, callers))
            return result

        return call

    named = {each.name: getattr(world.rules, each.name) for each in fields(Rules)}
    wrapped: dict[str, Any] = {name: rule and recorded(name, rule) for name, rule in named.items()}
    rules = Rules(**wrapped)
    watched = SchedulerModel(replace(world, rules=rules), Scope())
    return watched.next_state(before, action), calls


def watch(trace: Trace, world: World) -> Witness | None:
    """Take the trace again, watching. None where its states are not those of this scheduler."""
    states = [step.state for step in trace.steps]
    if not states or not all(isinstance(state, State) for state in states):
        return None
    seen = Witness(world=world, end=states[-1])
    flying: list[Flight] = []
    for at, step in enumerate(trace.steps[1:], start=1):
        if step.action is None or step.refused is not None:
            continue
        before = states[at - 1]
        after, calls = calls_of(world, before, step.action, at)
        if after != step.state:
            return None
        seen.calls += calls
        seen.moments.append(Moment(at, step.action, before, step.state))
        flying = _follow(seen, flying, at, step.action, before, step.state)
    return seen


def _follow(seen: Witness, flying: list[Flight], at: int, action: Action, before: State, after: State) -> list[Flight]:
    """Which engine step executed, was processed, or left at this step."""
    if any(True for _ in seen.calls_to("shelve", at)):
        flight = next((each for each in flying if each.executed_at is None), None)
        if flight is not None:
            flight.executed_at = at
    processed = 1 if action.name in ("accept", "reject", "fail_kv_load") and not after.misses else 0
    for flight in flying[:processed]:
        flight.processed_at = at
    flying = flying[processed:]
    left = len(after.steps) - (len(before.steps) - processed)
    for step in after.steps[len(after.steps) - left :] if left > 0 else ():
        flying.append(Flight(left_at=at, step=step))
        seen.flights.append(flying[-1])
    return flying
