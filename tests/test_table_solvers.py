"""What `outlives table` proves, by both solvers: every obligation of its cells, the weakest guards, and the formulas.

The cells and the climbs take minutes: the campaign has them, and prints the figures.
"""

import re
from pathlib import Path

import pytest
from command_runs import Run, runner
from outlives.invariants.price_progress import CUTS, factor_and_facts, is_spoken_of, least_gap_factor
from outlives.invariants.proof.cells import COLUMNS, ROWS, cell, row_of
from outlives.invariants.proof.life import Assumed, Terms
from outlives.invariants.proof.solvers import BUDGETS, Decision, Tally
from outlives.invariants.proof.weakest import WEAKEST_COLUMNS, threshold_facts, weakest_known
from outlives.invariants.report.tables import tally_words
from outlives.invariants.table_run import Judged, judge_cell
from outlives.invariants.verdict import Verdict
from outlives.model.lifetime import GUARDS, WEAKEST, guard_named

pytest.importorskip("cvc5", reason="cvc5 is not installed: pip install 'outlives[cvc5]'")

BOTH = ("z3", "cvc5")
GUARDS_PRICED = (*GUARDS, *WEAKEST)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(capsys)


def alike(tally: Tally, least: int) -> None:
    """So many questions at least were put to both, none of them was answered differently, or came near its budget."""
    assert tally.asked >= least
    assert tally.differing == ()
    assert tally.costly == ()
    assert tally.spent.keys() == set(BOTH)
    assert all(0 < units * 10 <= BUDGETS[solver] for solver, units in tally.spent.items())


@pytest.mark.campaign
@pytest.mark.parametrize("row", ROWS)
def test_both_decide_every_obligation_of_a_row_alike(row: str) -> None:
    """As `table` asks them: up to the first that fails, and of a proof also without promises. Without the search."""
    tally = Tally()
    for column in COLUMNS:
        for anywhere in (False, True):
            guard, assumed = row_of(row, column)
            judged = cell(guard, assumed, anywhere=anywhere, most_moves=0, solvers=BOTH)
            assert judged.verdict in (Verdict.PROVED, Verdict.UNKNOWN)
            tally = tally.plus(judged.tally)
    print(f"\n{row}: {tally_words(tally, BOTH)}")
    alike(tally, 1_000)


@pytest.mark.campaign
@pytest.mark.parametrize("column", WEAKEST_COLUMNS, ids=lambda column: column.name)
def test_both_climb_to_the_same_weakest_guard(column) -> None:
    tally = Tally()
    for anywhere in (False, True):
        found = weakest_known(column, anywhere=anywhere, solvers=BOTH)
        alone = weakest_known(column, anywhere=anywhere)
        assert (found.name, found.obligations, found.stops_at) == (alone.name, alone.obligations, alone.stops_at)
        assert found.contradicted == ""
        tally = tally.plus(found.tally)
    print(f"\nweakest guard, {column.name}: {tally_words(tally, BOTH)}")
    alike(tally, 100)


def test_both_decide_what_is_said_of_the_threshold_and_of_the_call_site_alike() -> None:
    terms = [Terms(guard=guard_named(name)) for name in ("confirmed", "confirmed-after-delivery")]
    terms.append(Terms(guard=guard_named("confirmed"), assumed=Assumed(reader="any", anywhere=True)))
    facts = [fact for each in terms for fact in threshold_facts(each, solvers=BOTH)]
    assert all(fact.proved for fact in facts)
    assert {each.solver for fact in facts for each in fact.others} == {"cvc5"}
    alike(Tally().plus(*(fact.tally for fact in facts)), 15)


def test_both_find_the_same_progress_formula() -> None:
    tally = Tally()
    for guard in filter(is_spoken_of, map(guard_named, GUARDS_PRICED)):
        for cut in CUTS:
            factor, facts = factor_and_facts(guard, cut, BOTH)
            assert factor == least_gap_factor(guard, cut)
            tally = tally.plus(*(fact.tally for fact in facts))
    print(f"\nprogress formula: {tally_words(tally, BOTH)}")
    alike(tally, 20)


def test_both_decide_a_cell_and_the_climb_beside_it_alike() -> None:
    judged = judge_cell(("confirmed", 0, False), BOTH)
    assert judged.verdict is Verdict.PROVED
    alike(judged.tally, 122)
    found = weakest_known(COLUMNS[0], anywhere=False, solvers=BOTH)
    assert found.name == "at once"
    alike(found.tally, found.obligations)


# --- and where they do not --------------------------------------------------------------------------------------------


@pytest.fixture
def contrary(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cvc5 that finds numbers for everything."""
    monkeypatch.setattr(
        "outlives.invariants.proof.solvers.decide_text",
        lambda smt2, budget, seed: Decision("cvc5", seed, "sat", 1, 0.0),
    )


def test_a_cell_on_which_they_contradict_each_other_says_who_says_what(contrary: None) -> None:
    judged = judge_cell(("confirmed", 0, False), BOTH)
    assert judged.verdict is Verdict.DISAGREE
    assert judged.note == "solvers contradict each other: TYPES / init: z3: unsat; cvc5, seed 0: sat"
    assert judged.tally.differing == ("TYPES / init",)


def test_the_table_ends_with_five_where_they_contradict_each_other_on_the_way_to_a_weakest_guard(
    run: Run, contrary: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = weakest_known(COLUMNS[0], anywhere=False, solvers=BOTH)
    assert found.guard is None
    assert found.contradicted == "at once, TYPES / init: z3: unsat; cvc5, seed 0: sat"

    def judged(work: tuple[str, int, bool], solvers: tuple[str, ...]) -> Judged:
        guard, number, anywhere = work
        return Judged(guard=guard, column=COLUMNS[number].name, anywhere=anywhere, verdict=Verdict.PROVED, engines=(),
                      trace=None, shortest=False, coverage="", tally=Tally(7, {"z3": 5}))  # fmt: skip

    monkeypatch.setattr("outlives.invariants.table_run.judge_cell", judged)
    done = run("table", "--solvers", "z3,cvc5")
    assert done.status == 5
    words = " ".join(done.out.split())
    cells, climbs = len(ROWS) * len(COLUMNS) * 2, len(WEAKEST_COLUMNS) * 2
    assert f"Obligations decided by z3 and cvc5: {7 * cells + climbs}, not alike: TYPES / init" in words


def test_what_is_asked_beside_the_induction_ends_with_five_too(run: Run, contrary: None) -> None:
    assert {fact.answer for fact in threshold_facts(Terms(guard=guard_named("confirmed")), solvers=BOTH)} == {
        "contradicted"
    }
    done = run("table", "--price", "--guard", "confirmed", "--solvers", "z3,cvc5")
    assert done.status == 5
    assert "Questions of the formula decided by z3 and cvc5" in done.out
    assert "not alike: confirmed, cut 0" in done.out


def test_the_table_is_decided_by_every_solver_that_is_installed_unless_it_is_told(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    price = ("table", "--price", "--guard", "confirmed", "--json")
    both, alone = run(*price).object, run(*price, "--solvers", "z3").object
    said = [re.sub(r"(z3|cvc5) \d[\d,]* of", r"\1 N of", note) for note in (*both["notes"], *alone["notes"])]
    assert said == [
        "Questions of the formula decided by z3 and cvc5: 3, all alike; resource units of the costliest one: z3 N of "
        "200,000, cvc5 N of 150,000; none takes more than a tenth of its budget.",
        "Questions of the formula decided by z3: 3; resource units of the costliest one: z3 N of 200,000; none takes "
        "more than a tenth of its budget.",
    ]
    assert both["tables"] == alone["tables"]
    done = run("table", "--solvers", "cvc5")
    assert done.status == 2
    assert "z3 writes the obligations" in done.err
    monkeypatch.setattr("outlives.invariants.proof.solvers.has_cvc5", lambda: False)
    without = run(*price).object
    missing = "Not covered: a second solver; cvc5 is not installed (pip install 'outlives[cvc5]')."
    assert without["notes"] == [*alone["notes"], missing]
