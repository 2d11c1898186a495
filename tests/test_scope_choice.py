"""Which setups an exhaustive run visits, and several scopes' searches as one answer."""

import pytest
from outlives.invariants.combined import combined, order_of_arrivals, routes_taken, stopped_scopes, summed, told_routes
from outlives.invariants.configuration import Configuration
from outlives.invariants.explore import Bounds, Exploration, explore
from outlives.invariants.jobs import subject_model
from outlives.invariants.scope_choice import chosen_scopes
from outlives.invariants.scopes import NAMED_SCOPES
from outlives.invariants.verdict import Verdict
from outlives.model.errors import Contradiction
from outlives.model.world import ROUTES
from worlds import world

FITTING = [scope.name for scope in NAMED_SCOPES]


def test_without_every_number_a_scope_is_one_setup_with_the_nearest_numbers() -> None:
    asked = Configuration(numbers={"slots": (4, 6)})
    nearest = chosen_scopes(asked, every_number=False)
    assert set(nearest) <= set(FITTING)
    assert all(len(states) == 1 for states in nearest.values())
    own = {scope.name: scope.numbers["slots"] for scope in NAMED_SCOPES}
    for name, (state,) in nearest.items():
        assert state.setup.slots == max(4, min(6, own[name]))
    every = chosen_scopes(asked)
    assert [state.setup.slots for state in every["tight-cache"]] == [4, 5, 6]
    assert nearest["tight-cache"][0] in every["tight-cache"]


def test_without_numbers_both_choices_are_the_same() -> None:
    assert chosen_scopes(Configuration()) == chosen_scopes(Configuration(), every_number=False)
    assert list(chosen_scopes(Configuration())) == FITTING


def test_many_setups_are_refused_only_where_each_is_visited() -> None:
    wide = Configuration(numbers={"slots": (1, 1000), "budget": (1, 1000)})
    assert chosen_scopes(wide, every_number=False)
    with pytest.raises(Contradiction, match="1,000,000 setups of each scope"):
        chosen_scopes(wide)


def test_a_scenario_is_its_small_equivalent_either_way() -> None:
    asked = Configuration(scenario="gap-one", profile="0.24.0")
    assert chosen_scopes(asked) == chosen_scopes(asked, every_number=False)
    assert list(chosen_scopes(asked)) == ["gap-one (small)"]


# --- one answer -------------------------------------------------------------------------------------------------------


def searches(profile: str = "repaired", **bounds: int) -> dict[str, Exploration]:
    chosen = chosen_scopes(Configuration(), ["adjacent-items", "last-chunk"])
    about = Configuration(profile=profile)
    model = subject_model(about, about.world())
    return {name: explore(model, initial=states, bounds=Bounds(**bounds)) for name, states in chosen.items()}


def test_every_scope_to_its_end_is_exhausted() -> None:
    found = searches()
    rows = combined(found, list(found))
    states = sum(each.states for each in found.values())
    assert {row.verdict for row in rows} == {Verdict.EXHAUSTED}
    assert {row.coverage for row in rows} == {f"every state of 2 scopes: {states:,} states"}
    assert stopped_scopes(found) == []
    situations, fired = summed(found)
    assert fired["arrive"] == sum(each.actions["arrive"].fired for each in found.values())
    assert situations["PROGRESS"] == sum(each.situations["PROGRESS"] for each in found.values())


def test_a_scope_that_is_missing_leaves_everything_unknown() -> None:
    found = searches()
    rows = combined(found, [*found, "another"])
    assert {row.verdict for row in rows} == {Verdict.UNKNOWN}
    assert rows[0].coverage.startswith("every state of 2 of 3 scopes; ")


def test_a_violation_is_worse_than_all_else_and_its_trace_the_shortest() -> None:
    found = searches("0.24.0")
    (row,) = [row for row in combined(found, [*found, "another"]) if row.property == "PROGRESS"]
    assert row.verdict is Verdict.VIOLATED
    assert row.coverage.startswith("violated in 1 of 3 scopes; ")
    lengths = [len(each.traces["PROGRESS"].actions) for each in found.values() if "PROGRESS" in each.traces]
    assert row.trace is not None
    assert len(row.trace.actions) == min(lengths)


def test_a_stopped_scope_says_how_far_at_what_rate_and_what_is_left() -> None:
    found = searches(states=800)
    assert {row.verdict for row in combined(found, list(found))} == {Verdict.UNKNOWN}
    (line,) = stopped_scopes(found)
    assert line.startswith("scope adjacent-items: stopped by the bound of 800 states at depth ")
    assert " states/s; left: at least the " in line


def test_what_only_counts_has_no_row() -> None:
    found = searches()
    assert "PROGRESS" not in [row.property for row in combined(found, list(found), ["PROGRESS"])]


def test_each_open_route_names_the_scopes_that_take_it() -> None:
    found = searches()
    taken = routes_taken(world(), found, look_ahead=True)
    assert list(taken) == list(ROUTES)
    assert taken["preempt"] == taken["abort"] == ["adjacent-items", "last-chunk"]
    assert taken["look-ahead"] == ["adjacent-items"], "the other has no look-ahead"
    assert taken["sessions"] == [], "both have one turn"
    assert "abort" not in routes_taken(world(closed=("abort",)), found, look_ahead=True)
    assert "look-ahead" not in routes_taken(world(), found, look_ahead=False)
    told = told_routes(taken, found)
    assert (told["abort"], told["look-ahead"], told["sessions"]) == ("in every one", "in adjacent-items", "in none")
    three = told_routes({"abort": list(found)}, {**found, "another": found["last-chunk"]})
    assert three == {"abort": "in every one but another"}


def test_a_fixed_order_of_arrivals_is_said_where_it_is_no_sound_reduction() -> None:
    several = {"requests": (2, 2)}
    assert order_of_arrivals(Configuration(numbers=several))
    assert not order_of_arrivals(Configuration(numbers=several, policy="fcfs"))
    assert not order_of_arrivals(Configuration(numbers=several, arrivals="any"))
    urgent = Configuration(policy="priority")
    assert not order_of_arrivals(urgent, chosen_scopes(urgent, ["last-chunk"])), "one request"
    assert order_of_arrivals(urgent, chosen_scopes(urgent, ["rivals"]))
