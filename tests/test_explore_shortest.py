"""The bounded search after a violation: what it finds, and which badge a trace may carry."""

import pytest
from outlives.invariants.explore import Bounds, breadth_first, explore, shortest
from outlives.model.errors import UnknownName
from protocol_p import SCOPES, ProtocolP
from toy_models import CounterModel, Tally, TankModel


@pytest.mark.parametrize("fault", ["r2", "t2"])
def test_the_faults_of_the_benchmark_protocol_have_ten_actions(fault: str) -> None:
    found = shortest(ProtocolP(SCOPES[fault]), "GATHER", known=13)
    assert found.trace is not None
    assert len(found.trace.actions) == 10
    assert found.badge == found.trace.shortest == "shortest possible"
    assert found.trace.actions[-1].name == "miss"
    assert found.exploration.states < 6_000
    assert found.trace == breadth_first(ProtocolP(SCOPES[fault]), bounds=Bounds(depth=10)).traces["GATHER"]


def test_the_badge_says_how_far_it_was_searched() -> None:
    found = shortest(ProtocolP(SCOPES["r2"]), "GATHER", known=13, bounds=Bounds(states=300))
    assert found.trace is None
    assert found.searched == 7
    assert found.badge == "shrunk; not proved shortest (searched to depth 7)"
    assert not found.contradicts


def test_a_known_trace_is_shortest_when_every_shorter_run_is_judged() -> None:
    found = shortest(ProtocolP(SCOPES["r2"]), "GATHER", known=10, bounds=Bounds(depth=9))
    assert (found.trace, found.searched, found.badge, found.contradicts) == (None, 9, "shortest possible", False)


def test_one_level_less_is_not_enough() -> None:
    found = shortest(ProtocolP(SCOPES["r2"]), "GATHER", known=10, bounds=Bounds(depth=8))
    assert (found.trace, found.badge) == (None, "shrunk; not proved shortest (searched to depth 8)")


def test_a_known_violation_that_is_not_there_is_a_contradiction() -> None:
    assert shortest(CounterModel(faulty=False), "BELOW-LIMIT", known=3).contradicts
    assert shortest(ProtocolP(SCOPES["s1"]), "GATHER", known=5).contradicts


def test_it_begins_where_it_is_told() -> None:
    found = shortest(CounterModel(faulty=True, limit=12), "BELOW-LIMIT", initial=[Tally(9, 12)])
    assert found.trace is not None
    assert [str(action) for action in found.trace.actions] == ["add(amount=4)"]
    assert found.trace.steps[0].state == Tally(9, 12)


def test_progress_too() -> None:
    found = shortest(TankModel(stuck=True), "EMPTIES")
    assert found.trace is not None
    assert [action.name for action in found.trace.actions] == ["fill", "jam"]


def test_unknown_property() -> None:
    with pytest.raises(UnknownName, match="GATHER"):
        shortest(ProtocolP(SCOPES["s1"]), "GATHERS")


def test_explore_takes_the_engine_that_fits() -> None:
    assert explore(ProtocolP(SCOPES["s1"])).details["engine"] == "interned"
    assert explore(CounterModel(faulty=False)).details["engine"] == "plain"
