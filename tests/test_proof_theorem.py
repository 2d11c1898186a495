"""The proof by induction: what is proved, what is not, why each lemma is there, and that it is about something."""

import subprocess
import sys
from dataclasses import replace

import pytest
from outlives.invariants.proof.evidence import differ, necessity, results, unchecked_read, vacuity
from outlives.invariants.proof.lemmas import COUNTERS, LEMMAS, MONOTONE
from outlives.invariants.proof.life import Arithmetic, Assumed, Terms
from outlives.invariants.proof.solvers import BUDGET
from outlives.invariants.proof.theorem import prove
from outlives.invariants.verdict import Verdict
from outlives.model import lifetime
from outlives.model.lifetime import GUARDS, guard_named

CONFIRMED = Terms(guard=guard_named("confirmed"))
ALWAYS = replace(guard_named("confirmed"), name="always", condition=lambda c, end, look_ahead: True)
OPTIMISTIC = ("optimistic-after-advance", "optimistic-before-advance", "optimistic-at-output")
CAREFUL = ("confirmed-lookahead", "confirmed", "settled", "retain")


@pytest.fixture(scope="module")
def theorem():
    return prove(CONFIRMED, text=True)


def test_the_theorem_is_proved_obligation_by_obligation(theorem):
    assert theorem.verdict is Verdict.PROVED
    # init and fourteen transitions for each of fourteen lemmas, and the goal
    assert len(theorem.obligations) == 14 * 15 + 1
    assert theorem.failed == ()
    assert theorem.grid()["CONFIRMED-MONOTONE"]["live-output"] is Verdict.PROVED
    assert theorem.grid()["TRUE-START"]["stale-output"] is Verdict.PROVED
    assert theorem.grid()["OUTLIVES"] == {"goal": Verdict.PROVED}


def test_the_budget_has_a_tenfold_margin(theorem):
    assert 0 < theorem.costliest < BUDGET / 10


def test_each_obligation_is_kept_as_smt_lib_text(theorem):
    assert all(each.solved.smt2.count("(assert") >= 2 for each in theorem.obligations)
    assert all("(check-sat)" in each.solved.smt2 for each in theorem.obligations)


def test_counters_stay_in_bounds_as_a_corollary():
    assert prove(CONFIRMED, (*LEMMAS, COUNTERS)).verdict is Verdict.PROVED


def test_a_tiny_budget_is_unknown_never_proved():
    report = prove(CONFIRMED, budget=50)
    assert report.verdict is Verdict.UNKNOWN
    assert "resource" in report.failed[0].solved.reason


@pytest.mark.parametrize("name", CAREFUL)
def test_careful_guards_are_safe_for_readers_anywhere_above_confirmed(name):
    assert prove(Terms(guard=guard_named(name))).verdict is Verdict.PROVED


@pytest.mark.parametrize("name", OPTIMISTIC)
def test_optimistic_guards_lose_coverage(name):
    report = prove(Terms(guard=guard_named(name)))
    assert report.verdict is Verdict.UNKNOWN
    assert {each.lemma for each in report.failed} == {"COVERAGE"}
    assert all(each.verdict is Verdict.VIOLATED for each in report.failed)


@pytest.mark.parametrize("assumed", [Assumed(reader="checked"), Assumed(reader="true", anywhere=False)])
@pytest.mark.parametrize("guard", [*GUARDS.values(), ALWAYS], ids=lambda guard: guard.name)
def test_where_windows_agree_or_items_lie_in_the_prompt_every_guard_is_safe(guard, assumed):
    assert prove(Terms(guard=guard, assumed=assumed)).verdict is Verdict.PROVED


@pytest.mark.parametrize("reader", ["checked", "true"])
@pytest.mark.parametrize("name", ["settled", "retain", "confirmed"])
def test_overtaking_notices_need_settled_and_references_that_stay(name, reader):
    closed = Assumed(reader=reader, relaxed=frozenset({"A1"}), leaves=0, early_resume=0)
    proved = Verdict.UNKNOWN if name == "confirmed" else Verdict.PROVED
    assert prove(Terms(guard=guard_named(name), assumed=closed)).verdict is proved
    with_preemption = replace(closed, leaves=1)
    assert prove(Terms(guard=guard_named(name), assumed=with_preemption)).verdict is Verdict.UNKNOWN


def test_with_notices_unordered_the_reader_may_miss():
    report = prove(Terms(guard=guard_named("confirmed"), assumed=Assumed(relaxed=frozenset({"A1"}))), LEMMAS)
    assert [each.name for each in report.failed] == ["READER / evict"]


def test_without_the_monotonicity_lemma_the_proof_fails():
    report = prove(CONFIRMED, [lemma for lemma in LEMMAS if lemma is not MONOTONE])
    assert {each.name for each in report.failed} == {"READER / dispatch"}


def test_every_lemma_is_necessary():
    broken = necessity(CONFIRMED, LEMMAS)
    assert list(broken) == [lemma.name for lemma in LEMMAS]
    assert all(broken.values()), broken
    assert broken["CONFIRMED-MONOTONE"] == "READER / dispatch"
    own = {name for name, cell in broken.items() if cell.startswith(f"{name} /")}
    assert own == {"STEP", "TRUE-START"}  # what the proof is asked for, and what a FACT of the relation rests on


def test_the_proof_is_about_something():
    checks = vacuity(CONFIRMED, LEMMAS)
    assert [check.name for check in checks if not check.possible] == []
    assert {"init", "lemmas", "enabled evict", "guard keeps", "guard lets go", "reads-below"} <= {
        c.name for c in checks
    }


def test_a_guard_that_never_lets_go_has_one_side():
    checks = {check.name: check.possible for check in vacuity(Terms(guard=guard_named("retain")), LEMMAS)}
    assert checks["guard keeps"] is True
    assert "guard lets go" not in checks
    assert checks["released"] is True


def test_contradicting_lemmas_are_vacuous():
    never = replace(COUNTERS, name="NEVER", holds=lambda terms, life: life.base > 1 and life.base < 1)
    lemmas = (*LEMMAS, never)
    rows = results(prove(CONFIRMED, lemmas), vacuity(CONFIRMED, lemmas))
    assert rows[-1].verdict is Verdict.VACUOUS


def test_confirmed_is_the_weakest_threshold_for_readers_anywhere():
    assert unchecked_read(CONFIRMED, LEMMAS).answer == "unsat"
    # Without upkeep the pipeline may have promised more than the placeholders say, and the threshold is too low.
    without = [lemma for lemma in LEMMAS if lemma.name != "UPKEEP"]
    assert unchecked_read(CONFIRMED, without).answer == "sat"


def test_confirmed_is_optimistic_at_output_where_nothing_is_promised():
    confirmed, optimistic = guard_named("confirmed"), guard_named("optimistic-at-output")
    assert differ(confirmed, optimistic, lambda c: c.placeholders == 0).answer == "unsat"


def test_without_drafts_asynchronous_scheduling_differs_by_one():
    # The output just accepted still counts as promised when the guard is asked, so placeholders are 1, not 0.
    confirmed, optimistic = guard_named("confirmed"), guard_named("optimistic-at-output")
    found = differ(confirmed, optimistic, lambda c: c.placeholders == 1)
    assert found.answer == "sat"
    assert found.values["end"] == found.values["computed"]


def preempt_that_keeps_placeholders(c, isolate):
    return c._replace(computed=0, stale=c.in_flight)


def advance_too_far(c, count):
    return c._replace(computed=c.computed + count + 1, in_flight=c.in_flight + count)


def roll_back_always(c, rejected, stale):
    return c._replace(computed=c.computed - rejected, placeholders=c.placeholders - rejected)


def deliver_forgets_placeholders(c, tokens, stale, dropped, asynchronous):
    return c._replace(known=c.known + tokens)


def receive_that_raises(c, count, isolate):
    if c.in_flight < count + 1:
        raise AssertionError("in flight would fall below one")
    return lifetime.receive(c, count, isolate)


@pytest.mark.parametrize(
    ("name", "fault", "lemma"),
    [
        ("preempt", preempt_that_keeps_placeholders, "WAITING"),
        ("advance", advance_too_far, "KNOWN-AHEAD"),
        ("roll_back", roll_back_always, "UPKEEP"),
        ("deliver", deliver_forgets_placeholders, "UPKEEP"),
        ("receive", receive_that_raises, "TOTAL"),
        ("reader_start", lambda start, rejected: start - rejected - 1, "TRUE-START"),
        ("admit", lambda c, kept: c._replace(computed=kept + 1), "CONFIRMED-MONOTONE"),
    ],
)
def test_a_replaced_rule_reaches_the_proof(name, fault, lemma):
    report = prove(replace(CONFIRMED, arithmetic=Arithmetic()._replace(**{name: fault})))
    assert report.verdict is Verdict.UNKNOWN
    assert lemma in {each.lemma for each in report.failed}


def test_a_promise_that_forgets_drafts_loses_upkeep():
    def forgets(c, drafts, base, asynchronous):
        after, sampled, promised = lifetime.promise(c, drafts, base, asynchronous)
        if sampled == 1:
            return after._replace(placeholders=after.placeholders - drafts), sampled, promised
        return after, sampled, promised

    report = prove(replace(CONFIRMED, arithmetic=Arithmetic(promise=forgets)))
    assert {"UPKEEP / dispatch", "UPKEEP / resume"} <= {each.name for each in report.failed}


def test_releases_before_stale_isolation_are_not_proved():
    report = prove(Terms(guard=guard_named("confirmed"), assumed=Assumed(isolate=0)))
    assert "UPKEEP / stale-output" in {each.name for each in report.failed}


def test_results_have_a_row_per_lemma(theorem):
    rows = results(theorem, vacuity(CONFIRMED, LEMMAS))
    assert [row.property for row in rows] == [lemma.name for lemma in LEMMAS] + ["OUTLIVES", "PROOF-NOT-VACUOUS"]
    assert {row.verdict for row in rows} == {Verdict.PROVED}
    broken = results(prove(Terms(guard=guard_named("optimistic-at-output"))))
    assert [(row.property, row.verdict) for row in broken if row.verdict is not Verdict.PROVED] == [
        ("COVERAGE", Verdict.UNKNOWN)
    ]


def test_answers_do_not_depend_on_the_hash_seed():
    script = (
        "from outlives.invariants.proof.theorem import prove\n"
        "from outlives.invariants.proof.life import Terms\n"
        "from outlives.model.lifetime import guard_named\n"
        "report = prove(Terms(guard=guard_named('optimistic-at-output')))\n"
        "print([(o.name, str(o.verdict), o.solved.rlimit, o.solved.values) for o in report.obligations])\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True, text=True
        ).stdout
        for seed in ("0", "1")
    }
    assert len(outputs) == 1
    assert "COVERAGE / live-output" in outputs.pop()
