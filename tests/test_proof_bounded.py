"""Bounded checking: shortest runs to a miss, the model agreeing with the solver, and the cells of the table."""

from dataclasses import replace

import pytest
from outlives.invariants.proof.bounded import search
from outlives.invariants.proof.cells import COLUMNS, cell
from outlives.invariants.proof.life import Arithmetic, Assumed, Terms
from outlives.invariants.proof.on_model import rerun, setup_of, world_of
from outlives.invariants.verdict import Verdict
from outlives.model.lifetime import guard_named

COLUMN = {column.name: column for column in COLUMNS}


def found(guard, column, *, anywhere, **bounds):
    terms = Terms(guard=guard_named(guard), assumed=COLUMN[column].assumed(anywhere=anywhere))
    return search(terms, **bounds).found


def names(counterexample):
    return [(move.name, move.number) for move in counterexample.moves]


@pytest.fixture(scope="module")
def overtaken():
    return found("confirmed", "A1", anywhere=False)


@pytest.fixture(scope="module")
def rolled_back():
    return found("optimistic-at-output", "A3 true", anywhere=True)


def test_an_overtaking_notice_beats_confirmed_in_five_actions(overtaken):
    # Two chunks of a prefill: placeholders are 0, so the item is released while the second chunk is still to be read.
    assert names(overtaken) == [("resume", 0), ("dispatch", 0), ("output", 0), ("evict", 0)]
    assert (overtaken.start, overtaken.end, overtaken.prompt, overtaken.budget) == (0, 2, 3, 1)
    assert len(overtaken) == 5
    assert [move.tokens for move in overtaken.moves] == [1, 1, 0, 0]
    assert (overtaken.reader.start, overtaken.reader.present) == (1, 0)


def test_rejected_drafts_beat_the_optimistic_guard_in_seven_actions(rolled_back):
    assert len(rolled_back) == 7
    assert (rolled_back.start, rolled_back.end, rolled_back.prompt) == (0, 3, 1)
    assert rolled_back.reader.true_start == rolled_back.end - 1
    assert rolled_back.reader.start == rolled_back.end
    assert rolled_back.back == 0


def test_the_model_agrees_with_the_solver(overtaken, rolled_back):
    for counterexample, guard, column in (
        (overtaken, "confirmed", "A1"),
        (rolled_back, "optimistic-at-output", "A3 true"),
    ):
        again = rerun(counterexample, world_of(guard_named(guard), COLUMN[column]))
        assert again.difference == ""
        assert again.agrees
        last = again.steps[-1].state
        assert [(miss.item, miss.reader) for miss in last.misses] == [(0, "target")]


def test_a_model_with_another_guard_disagrees(rolled_back):
    again = rerun(rolled_back, world_of(guard_named("confirmed"), COLUMN["A3 true"]))
    assert not again.agrees
    assert again.difference == "after output, referenced: 1 in the model, 0 in the solver's run"


def test_a_model_with_another_reader_finds_what_it_reads(rolled_back):
    again = rerun(rolled_back, world_of(guard_named("optimistic-at-output"), COLUMN["A1-A4"]))
    assert again.difference == "the last step executes in the model, and finds what it reads"


def test_a_move_that_the_model_refuses_is_a_disagreement(overtaken):
    late = replace(overtaken, moves=(overtaken.moves[0], overtaken.moves[3]))
    again = rerun(late, world_of(guard_named("confirmed"), COLUMN["A1"]))
    assert again.difference == "the model refuses evict(count=1): nothing-idle"


def test_wrong_numbers_are_a_disagreement(overtaken):
    first = overtaken.moves[0]
    counters = first.after.life.counters._replace(computed=9)
    wrong = replace(first, after=first.after._replace(life=first.after.life._replace(counters=counters)))
    again = rerun(replace(overtaken, moves=(wrong,)), world_of(guard_named("confirmed"), COLUMN["A1"]))
    assert again.difference.startswith("after resume, counters: (1, 0, 1, 0, 3) in the model, (9, 0, 1, 0, 3) in")


def test_readers_anywhere_say_how_far_back_they_begin():
    counterexample = found("optimistic-after-advance", "A3 any", anywhere=False)
    again = rerun(counterexample, world_of(guard_named("optimistic-after-advance"), COLUMN["A3 any"]))
    assert counterexample.back == 1
    assert str(again.steps[-1].action) == "accept(back=1)"
    assert again.agrees


def test_a_left_out_encode_is_missed_at_once():
    counterexample = found("retain", "A4", anywhere=False)
    assert [(move.name, move.encoded) for move in counterexample.moves] == [("resume", 0)]
    again = rerun(counterexample, world_of(guard_named("retain"), COLUMN["A4"]))
    assert [str(step.action) for step in again.steps[1:]] == [
        "arrive(request=r0)",
        "resume(request=r0, kept=0, omit=k0)",
        "accept()",
    ]
    assert again.agrees


def test_an_item_that_is_not_looked_at_again_is_missed_after_a_preemption():
    counterexample = found("retain", "A2", anywhere=False)
    assert {"preempt", "evict"} <= {move.name for move in counterexample.moves}
    assert rerun(counterexample, world_of(guard_named("retain"), COLUMN["A2"])).agrees


@pytest.mark.campaign
def test_three_steps_in_flight_beat_what_two_do_not():
    # Released at a dispatch that begins at the item's end, while the step before it is the first that samples.
    terms = Terms(guard=guard_named("optimistic-before-advance"), assumed=COLUMN["A3 any"].assumed(anywhere=False))
    counterexample = search(terms, depth=3, most_moves=6).found
    assert len(counterexample) == 7
    assert setup_of(counterexample).depth == 3
    assert rerun(counterexample, world_of(terms.guard, COLUMN["A3 any"])).agrees


def test_nothing_is_found_where_there_is_nothing():
    searched = search(Terms(guard=guard_named("confirmed"), assumed=Assumed(early_resume=0)), most_moves=4)
    assert (searched.found, searched.searched, searched.exhausted) == (None, 4, False)


def test_a_small_budget_is_exhausted_not_safe():
    terms = Terms(guard=guard_named("confirmed"), assumed=COLUMN["A1"].assumed(anywhere=False))
    searched = search(terms, budget=1_000)
    assert searched.found is None
    assert searched.exhausted


def test_the_same_search_finds_the_same_run(overtaken):
    assert found("confirmed", "A1", anywhere=False) == overtaken


def test_a_cell_is_proved_where_the_proof_goes_through():
    judged = cell(guard_named("confirmed"), COLUMN["A3 any"], anywhere=True)
    assert (judged.verdict, judged.search) == (Verdict.PROVED, None)
    assert judged.result().coverage == "unbounded numbers, any depth; obligations: asynchronous 211, synchronous 76"


def test_a_cell_is_violated_with_its_run():
    judged = cell(guard_named("settled"), COLUMN["A1"], anywhere=False)
    assert judged.verdict is Verdict.VIOLATED
    assert "preempt" in {move.name for move in judged.found.moves}
    assert judged.result().details["actions"][0] == "resume(0)"


def test_a_cell_that_neither_engine_decides_is_unknown():
    judged = cell(guard_named("confirmed"), COLUMN["A1"], anywhere=False, most_moves=2)
    assert judged.verdict is Verdict.UNKNOWN
    bound = "where the bound on actions was reached"
    assert judged.coverage == f"not proved; no miss within 3 actions, {bound}"
    assert judged.result().note == "the proof stops at HELD-IN-FLIGHT / live-output"


def test_a_replaced_rule_reaches_the_search():
    one_below = Arithmetic(reader_start=lambda start, rejected: start - rejected - 1)
    terms = Terms(
        guard=guard_named("confirmed"), arithmetic=one_below, assumed=COLUMN["A3 true"].assumed(anywhere=False)
    )
    counterexample = search(terms, most_moves=5).found
    assert counterexample.reader.true_start == counterexample.reader.start - 1


def test_columns_cover_each_assumption_once():
    assert [column.name for column in COLUMNS] == [
        "A1-A4",
        "A3 true",
        "A3 any",
        "A1",
        "A2",
        "A4",
    ]
