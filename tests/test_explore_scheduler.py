"""The scheduler itself, exhaustively: the fixed points of the protocol, and scopes small enough to be seen whole."""

import pytest
from fixed_points import FIXED_POINTS, SCENARIOS
from outlives.invariants.explore import breadth_first, shortest
from outlives.invariants.properties import scheduler_properties
from outlives.invariants.verdict import Verdict
from outlives.model.contract import Range
from outlives.model.profiles import PROFILES, RELEASED_RULES, profile_named
from outlives.model.scenarios import scenario_named
from outlives.model.scheduler import SchedulerModel
from outlives.model.setup import Scope
from outlives.model.world import World


def model(profile: str, scope: Scope, closed: frozenset[str] = frozenset()) -> SchedulerModel:
    behaviour = profile_named(profile)
    world = World(rules=RELEASED_RULES, switches=behaviour.switches, guard=behaviour.guard, closed=closed)
    return SchedulerModel(world, scope, scheduler_properties(world))


def test_every_profile_has_its_fixed_points() -> None:
    assert list(FIXED_POINTS) == list(PROFILES)


@pytest.mark.parametrize("profile", FIXED_POINTS)
def test_fixed_points_in_every_state(profile: str) -> None:
    said = []
    for name in SCENARIOS:
        scenario = scenario_named(name)
        found = breadth_first(model(profile, scenario.small, scenario.closed), properties=scenario.properties)
        assert found.complete
        verdicts = {result.property: result.verdict for result in found.results()}
        crash = verdicts["GATHER-AFTER-FREE"] is Verdict.VIOLATED
        stuck = verdicts["PROGRESS"] is Verdict.VIOLATED
        if not crash:
            assert verdicts["GATHER-AFTER-FREE"] is Verdict.EXHAUSTED
        if not crash and not stuck:
            assert verdicts["PROGRESS"] is Verdict.EXHAUSTED
            assert found.states == found.expanded > 20
        said.append("crash" if crash else "stuck" if stuck else "ok")
    assert " ".join(said) == FIXED_POINTS[profile]


def _two_items() -> Scope:
    base = {"r0_items": 2, "r0_lead0": 0, "r0_length0": 3, "r0_lead1": 0, "r0_length1": 2, "r0_tail": 1}
    base |= {"r0_outputs": 3, "slots": 4, "budget": 4, "encoder_budget": 0, "chunk_cap": 0, "drafts": 2}
    base |= {"look_ahead": 1, "depth": 2, "whole_items": 0, "strangers": 1}
    return Scope(items=Range(2, 2), drafts=Range(0, 2), strangers=Range(0, 1), base=base)


def test_repaired_holds_in_every_state_of_two_items_with_every_usual_route_open() -> None:
    found = breadth_first(model("repaired", _two_items()))
    assert found.complete
    assert found.states > 5_000
    assert found.never_fired == ("fail_kv_load", "reset_encoder_cache", "reset_prefix_cache")  # rare: not in this setup
    assert {result.verdict for result in found.results()} == {Verdict.EXHAUSTED}


def test_the_oldest_guard_crashes_there_and_the_trace_is_shortest() -> None:
    scope = scenario_named("chunk-end")
    found = shortest(model("0.20.0", scope.small, scope.closed), "GATHER-AFTER-FREE", known=9)
    assert found.trace is not None
    assert [action.name for action in found.trace.actions] == ["arrive", "schedule", "accept"]
    assert found.badge == "shortest possible"
