"""Two real violations as traces, built by hand: their setups, actions and ends are known. No tests here."""

import json
from collections.abc import Callable
from typing import Any

from outlives.invariants.configuration import Configuration
from outlives.invariants.trace_file import trace_bytes
from outlives.invariants.verdict import Step, Trace
from outlives.model.contract import Action, Refusal
from outlives.model.scenarios import SCENARIOS
from outlives.model.trace import Recorded, parse_trace

__all__ = ["BEGIN", "MISS_WHY", "changed", "changed_meta", "miss_trace", "run_trace", "stuck_trace"]

BEGIN = (Action.of("arrive", request="r0"), Action.of("schedule"), Action.of("accept"))
MISS_WHY = "the draft of r0 reads [1,5) and needs item0 [4,6), whose key k0 is not on the worker's shelf"


def run_trace(
    configuration: Configuration, scenario: str, actions: tuple[Action, ...], prop: str, why: str = "as it was"
) -> Trace:
    """The states of these actions on the small setup of a scenario, as a trace of that property."""
    model = configuration.model(SCENARIOS[scenario].small)
    state = model.initial_state({})
    steps = [Step(None, state)]
    for action in actions:
        after = model.next_state(state, action)
        refused = after.reason if isinstance(after, Refusal) else None
        state = state if isinstance(after, Refusal) else after
        steps.append(Step(action, state, refused))
    shrink = {"found_length": 9, "final_length": 3, "seconds": 1.25, "setup": {"numbers": "base"}}
    return Trace(steps=tuple(steps), property=prop, why=why, shortest="shortest possible", shrink=shrink)


def miss_trace() -> tuple[Trace, Configuration]:
    """0.17.1, an item that starts where the chunk ends: the drafter reads it and it was never encoded."""
    configuration = Configuration(profile="0.17.1", scenario="chunk-end")
    return run_trace(configuration, "chunk-end", BEGIN, "GATHER-AFTER-FREE", MISS_WHY), configuration


def stuck_trace() -> tuple[Trace, Configuration]:
    """0.24.0, adjacent items with room for one: the first is never released, so the second never gets in."""
    configuration = Configuration(profile="0.24.0", scenario="adjacent")
    return run_trace(configuration, "adjacent", BEGIN, "PROGRESS"), configuration


def changed(change: Callable[[dict[str, Any]], object], sample: tuple[Trace, Configuration] | None = None) -> Recorded:
    """A sample's file (the miss, unless another is given) after a change of its JSON."""
    root = json.loads(trace_bytes(*(sample or miss_trace())))
    change(root)
    return parse_trace(json.dumps(root).encode(), "the file")


def changed_meta(**members: Any) -> Recorded:
    """The file of the miss with other members in its `#meta`."""
    return changed(lambda root: root["#meta"].update(members))
