"""What obligations are shown from, and counterexamples to induction as token strips."""

from pathlib import Path

import pytest
from command_runs import Run, runner
from outlives.invariants.proof.cores import GUARD, cores
from outlives.invariants.proof.lemmas import LEMMAS
from outlives.invariants.proof.life import Terms
from outlives.invariants.proof.theorem import prove
from outlives.invariants.report.proof_strip import induction_strips, strips_table
from outlives.model.lifetime import guard_named

CONFIRMED = Terms(guard=guard_named("confirmed"))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(capsys)


@pytest.fixture(scope="module")
def used():
    return {core.name: core.used for core in cores(CONFIRMED, LEMMAS)}


def test_every_obligation_has_a_core(used):
    assert len(used) == 211
    assert [name for name, names in used.items() if not names] == []


def test_the_reader_rests_on_coverage_and_the_shelf_but_not_on_the_guard(used):
    names = used["READER / dispatch"]
    assert {"COVERAGE", "REFERENCED-BOOKED", "BOOKED-SHELVED", "UPKEEP", "dispatch can happen"} <= set(names)
    assert GUARD not in names
    assert used["OUTLIVES / goal"] == ("READER",)


def test_the_guard_is_used_for_coverage_where_an_output_is_processed(used):
    assert {name for name, names in used.items() if GUARD in names} == {
        "COVERAGE / live-output",
        "COVERAGE / stale-output",
    }


def test_cores_name_what_a_transition_changes_and_keeps(used):
    assert "becomes counters.placeholders" in used["UPKEEP / preempt"]
    assert (
        "becomes booked" in used["REFERENCED-BOOKED / evict"] or "evict can happen" in used["REFERENCED-BOOKED / evict"]
    )
    assert any(name.startswith("keeps ") for names in used.values() for name in names)


@pytest.mark.campaign
def test_the_command_shows_them(run: Run):
    done = run("prove", "--cores", "--solvers", "z3", "--json")
    assert done.status == 0
    assert done.object["cores"]["OUTLIVES / goal"] == ["READER"]
    rows = {row["lemma"]: row for row in done.object["tables"]["cores-by-lemma"]["rows"]}
    assert rows["COVERAGE"]["guard used at"] == "live-output, stale-output"
    assert rows["OUTLIVES"]["lemmas used"] == "READER"


def test_a_counterexample_to_induction_is_two_strips():
    report = prove(Terms(guard=guard_named("optimistic-at-output")))
    (live,) = (each for each in report.failed if each.transition == "live-output")
    before, after = induction_strips(report, live)
    (item,), (later,) = before.items, after.items
    assert (before.step, after.step, item.place, later.marks) == (0, 1, "held", ("released",))
    assert later.place == "idle"
    # It is let go above confirmed, and below computed.
    assert after.confirmed < later.end <= after.computed
    proved = next(each for each in report.obligations if each not in report.failed)
    assert induction_strips(report, proved) == ()


def test_the_state_alone_at_the_goal():
    report = prove(CONFIRMED, [lemma for lemma in LEMMAS if lemma.name != "READER"])
    (goal,) = report.failed
    (strip,) = induction_strips(report, goal)
    assert [window.missed for window in strip.windows] == [(0,)]
    assert strip.plain()["windows"][0]["missed"] == [0]


def test_states_that_break_an_obligation_are_drawn_in_every_report():
    """The optimistic guard where readers may begin anywhere: the state before the output and the one after it, in which
    the item is let go past what is confirmed."""
    report = prove(Terms(guard=guard_named("optimistic-at-output")), LEMMAS)
    table = strips_table(report)
    assert table is not None
    assert table.columns[2] == "tokens"
    before, after = table.rows[:2]
    assert before[0] in {each.name for each in report.failed}
    assert (before[1], after[0], after[1]) == ("before", "", "after")
    assert len(before[2]) == len(after[2])
    assert strips_table(prove(CONFIRMED, LEMMAS)) is None
