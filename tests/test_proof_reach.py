"""Counterexamples to induction: reachable with a run that takes one there, or out of reach in every state visited."""

from dataclasses import replace

import pytest
from outlives.invariants.command import main
from outlives.invariants.configuration import Configuration
from outlives.invariants.proof.lemmas import LEMMAS, Lemma
from outlives.invariants.proof.life import Assumed, Terms
from outlives.invariants.proof.reach import as_property, reach
from outlives.invariants.proof.theorem import prove
from outlives.invariants.table_run import TABLE_SETUPS
from outlives.model.lifetime import GUARDS
from outlives.model.scheduler import SchedulerModel
from outlives.model.setup import Scope
from outlives.model.world import World

SETUPS = TABLE_SETUPS[True]


def world(guard: str = "confirmed") -> World:
    return Configuration(reader="any", items_anywhere=True, guard=guard).world()


def terms(guard: str = "confirmed") -> Terms:
    return Terms(guard=GUARDS[guard], assumed=Assumed())


def test_a_guard_that_counts_promises_breaks_coverage_where_a_run_gets() -> None:
    labels = reach(prove(terms("optimistic-at-output")), world("optimistic-at-output"), SETUPS)
    assert {each.obligation.split(" / ")[0] for each in labels} == {"COVERAGE"}
    for each in labels:
        assert each.label == "reachable"
        assert each.trace is not None
        assert [action.name for action in each.trace.actions] == ["arrive", "schedule", "schedule", "accept"]
        model = SchedulerModel(world("optimistic-at-output"), Scope(anywhere=True))
        state = each.trace.steps[0].state
        broken = as_property(next(one for one in LEMMAS if one.name == "COVERAGE"), terms(), model.world)
        for number, action in enumerate(each.trace.actions, 1):
            state = model.next_state(state, action)
            assert broken.holds(state, None, state) == (number < len(each.trace.actions))


@pytest.mark.parametrize("dropped", ["UPKEEP", "COVERAGE", "STALE-SHARE"])
def test_without_a_lemma_the_state_is_out_of_reach(dropped: str) -> None:
    report = prove(terms(), [lemma for lemma in LEMMAS if lemma.name != dropped])
    labels = reach(report, world(), SETUPS)
    assert [each.obligation for each in labels] == [each.name for each in report.failed]
    assert labels
    assert {each.label for each in labels} == {"unreachable within the scope"}
    assert all("in each of the 4," in each.words() for each in labels)


def test_a_lemma_that_is_too_strong_is_broken_by_a_run() -> None:
    strong = Lemma("STRONG", "nothing is promised", lambda terms, life: life.counters.placeholders == 0)
    labels = [each for each in reach(prove(terms(), [*LEMMAS, strong]), world(), SETUPS) if "STRONG" in each.obligation]
    assert {each.label for each in labels} == {"reachable"}
    assert "counters.placeholders 1" in labels[0].words()
    right = Lemma("RIGHT", "computed stays small", lambda terms, life: life.counters.computed <= 10**6)
    labels = [each for each in reach(prove(terms(), [*LEMMAS, right]), world(), SETUPS) if "RIGHT" in each.obligation]
    assert {each.label for each in labels} == {"unreachable within the scope"}


def test_confirmed_falls_where_a_fault_lets_it() -> None:
    """The ghost is not in the model's states: the lemma about it is judged by steps."""
    plain = world()

    def roll_back(counters, rejected, stale):
        after = plain.rules.roll_back(counters, rejected, stale)
        return after if rejected == 0 or stale == 1 else after._replace(computed=after.computed - 3)

    faulty = replace(plain, rules=replace(plain.rules, roll_back=roll_back))
    judged = as_property(next(one for one in LEMMAS if one.name == "CONFIRMED-MONOTONE"), terms(), faulty)
    assert judged.kind == "step"
    report = prove(replace(terms(), arithmetic=terms().arithmetic._replace(roll_back=roll_back)))
    labels = {each.obligation: each for each in reach(report, faulty, SETUPS)}
    fallen = labels["CONFIRMED-MONOTONE / live-output"]
    assert fallen.label == "reachable"
    assert fallen.trace is not None
    assert fallen.trace.actions[-1].name == "reject"


def test_a_proof_without_failures_has_no_labels() -> None:
    assert reach(prove(terms()), world(), SETUPS) == ()


def test_the_command_shows_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "--guard", "optimistic-at-output"]) == 1
    text = " ".join(capsys.readouterr().out.split())
    assert "States that break an obligation: can a run get there?" in text
    assert "COVERAGE / live-output reachable 4 actions: arrive(request=r0), schedule()," in text
