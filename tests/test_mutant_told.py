"""Runs led by hand: the model ends each as it is told, and the mutant that each is there for does not."""

import pytest
from outlives.invariants import mutant_battery
from outlives.invariants.mutant_battery import baseline_of, judge_mutant
from outlives.invariants.mutant_told import ended_otherwise, led, valued
from outlives.invariants.mutant_told_runs import TOLD
from outlives.invariants.mutants import mutant_named, planted
from outlives.model.contract import Refusal


@pytest.mark.parametrize("name", TOLD)
def test_the_model_ends_each_run_as_it_is_told(name: str) -> None:
    told = TOLD[name]
    assert told.right
    assert list(ended_otherwise(told)) == []


@pytest.mark.parametrize("name", TOLD)
def test_its_mutant_does_not(name: str) -> None:
    told = TOLD[name]
    with planted(mutant_named(told.against)):
        assert list(ended_otherwise(told)) != []
    assert list(ended_otherwise(told)) == [], "the mutant is gone again"


def test_a_value_has_a_name() -> None:
    state = list(led(TOLD["a victim of 0.11.0"]))[-1]
    assert not isinstance(state, Refusal)
    assert (valued(state, "r0.status"), valued(state, "r0.computed")) == ("waiting", 1)
    assert (valued(state, "steps[-1].r0.start"), valued(state, "steps[-1].r1.tokens")) == (3, 1)
    assert valued(state, "book.free") == 1


def test_it_is_a_stage_that_says_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutant_battery, "STAGES", {"told": mutant_battery.STAGES["told"]})
    judged = judge_mutant(mutant_named(TOLD["two rejections"].against), baseline_of({}, others=False))
    assert (judged.stage, judged.why) == ("told", "steps[-1].r0.rejected is 1, not 2: two rejections")
