"""What if: the same steps under other guards and with other numbers, with the right answers written in."""

from dataclasses import replace
from pathlib import Path

import pytest
from outlives.invariants.explained import analysis_of
from outlives.invariants.properties import scheduler_properties
from outlives.invariants.replay import replay
from outlives.invariants.report.analysis import Analysis, Counterfactual, Freedom
from outlives.invariants.verdict import Step, Trace
from outlives.invariants.whatif import what_if
from outlives.model.lifetime import GUARDS
from report_cases import adjacent, chunk_end, roll_back, world

REGRESSIONS = Path(__file__).parent / "regressions"


def saved(name: str) -> Analysis:
    done = replay(REGRESSIONS / f"2026-11-30-{name}.itf.json")
    assert done.configuration is not None
    there = done.configuration.world()
    prop = next(prop for prop in scheduler_properties(there) if prop.name == done.recorded.property_name)
    return what_if(done.trace, there, prop)


def by_guard(analysis: Analysis) -> dict[str, Counterfactual]:
    return {each.guard: each for each in analysis.counterfactuals}


def test_every_guard_is_asked_and_the_own_one_is_known() -> None:
    found = by_guard(roll_back().analysis)
    assert list(found) == list(GUARDS)
    assert [name for name, each in found.items() if each.own] == ["optimistic-at-output"]
    assert found["optimistic-at-output"].differs_at is None
    assert found["optimistic-at-output"].price == 0


def test_other_guards_of_a_rejected_draft() -> None:
    """Item0 takes 3 slots. The optimistic guard lets it go at step 4 of 8, the careful ones keep it to the end or to
    step 8: four or five steps of 3 slots, 12 or 15 slot-steps."""
    found = by_guard(saved("45347-roll-back-a3"))
    assert {name: each.violated for name, each in found.items()} == {
        "optimistic-after-advance": True,
        "optimistic-before-advance": False,
        "optimistic-at-output": True,
        "confirmed-lookahead": False,
        "confirmed": False,
        "settled": False,
        "retain": False,
    }
    confirmed = found["confirmed"]
    assert confirmed.outcome == "passes, 1 of 8 steps refused"
    assert confirmed.first_other() == "from step 4: r0.references is item0:k0, not none"
    assert {name: each.price for name, each in found.items()} == {
        "optimistic-after-advance": -3,
        "optimistic-before-advance": 6,
        "optimistic-at-output": 0,
        "confirmed-lookahead": 12,
        "confirmed": 12,
        "settled": 12,
        "retain": 15,
    }


def test_a_stuck_request_is_followed_into_its_fair_run() -> None:
    """0.24.0 waits for the look-ahead, which the cut forbids; confirmed lets item0 go at step 3, of 5 slots."""
    found = by_guard(saved("gap-one-0.24.0"))
    assert found["confirmed"].outcome == "passes"
    assert found["confirmed"].first_other() == "from step 3: r0.references is none, not item0:k0"
    assert found["confirmed"].price == -5
    assert found["retain"].outcome == "violated at step 1"
    assert found["retain"].first_other() == "nothing differs"


def test_the_nearest_run_that_passes_differs_in_one_number() -> None:
    stuck, missed = saved("gap-one-0.24.0").neighbour, saved("45347-roll-back-a3").neighbour
    assert stuck is not None
    assert stuck.words() == "setup: look-ahead 0 instead of 1 passes (every step is taken)"
    assert missed is not None
    assert missed.words() == "setup: budget 3 instead of 2 passes (every step is taken)"


def test_numbers_that_may_be_others() -> None:
    found = {each.name: each for each in saved("gap-one-0.24.0").freedoms}
    assert found["setup: slots"].still == (5, 7, 8, 9)  # with 10 there is room for both; an item takes 5
    assert 10 in found["setup: slots"].tried
    assert not found["setup: slots"].any
    assert found["setup: depth"].any
    assert found["setup: r0.item1.start"].still == (5,)


def test_words_of_a_freedom() -> None:
    free = Freedom(name="setup: depth", value=2, still=(1, 3, 4), tried=(1, 3, 4))
    assert free.words() == "setup: depth 2: fails alike with any (tried: 1 to 4)"
    some = Freedom(name="step 3, reject: accepted", value=0, still=(1,), tried=(1, 2))
    assert some.words() == "step 3, reject: accepted 0: fails alike with 1"


def test_the_guard_is_told_where_it_is_asked_with_its_numbers() -> None:
    facts = {each.step: each for each in roll_back().analysis.facts}
    (line,) = facts[5].guards
    assert line.words() == "r0 item0: 3 <= 4 is true"
    assert not line.held
    assert [step for step, each in facts.items() if each.guards] == [5]
    (stuck,) = {each.step: each for each in adjacent().analysis.facts}[3].guards
    assert stuck.words() == "r0 item0: 4 + 1 <= 3 - 0 is false"
    assert stuck.held


def test_each_property_is_judged_at_each_step() -> None:
    facts = chunk_end().analysis.facts
    assert [each.judged["GATHER-AFTER-FREE"] for each in facts] == ["not asked", "not asked", "not asked", "violated"]
    moved = roll_back().analysis.facts
    assert moved[5].judged["GATHER-AFTER-FREE"] == "holds"
    stuck = adjacent().analysis.facts
    assert [each.step for each in stuck if each.judged["PROGRESS"] == "violated"] == [1]


def test_a_long_trace_is_asked_about_guards_alone() -> None:
    told = roll_back()
    assert told.analysis.notes == ()
    there = world(guard="optimistic-at-output", relaxed=frozenset({"A3"}), reader="any")
    done = replay(REGRESSIONS / "2026-11-30-45347-roll-back-a3.itf.json")
    idle = replace(done.trace.steps[5], refused="nothing-idle")
    steps = (*done.trace.steps[:-1], *[idle] * 60, done.trace.steps[-1])
    trace = Trace(steps=steps, property=done.trace.property, why=done.trace.why)
    found = analysis_of(trace, there, ())
    assert found.freedoms == ()
    assert found.notes == ("which numbers matter was not asked: the trace has more than 60 actions",)
    assert len(found.counterfactuals) == len(GUARDS)


def test_nothing_is_asked_of_a_model_that_is_not_ours() -> None:
    trace = Trace(steps=(Step(None, 3),), property="GATHER-AFTER-FREE", why="3 is 3")
    there = world()
    prop = next(prop for prop in scheduler_properties(there) if prop.name == "GATHER-AFTER-FREE")
    assert what_if(trace, there, prop) == Analysis()


@pytest.mark.parametrize("name", ["45347-roll-back-a3", "withdrawn-encode-0.33.0", "session-lost-0.32.0"])
def test_asking_takes_less_than_a_second(name: str) -> None:
    from time import process_time

    began = process_time()
    saved(name)
    assert process_time() - began < 1
