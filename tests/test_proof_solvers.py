"""Two solvers and several seeds: one answer to each obligation, within a tenth of its budget; or the run says so."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from command_runs import Run, runner
from outlives.invariants.proof import solvers as solvers_module
from outlives.invariants.proof.lemma_sets import lemma_sets
from outlives.invariants.proof.life import Assumed, Terms
from outlives.invariants.proof.solvers import BUDGETS, Decision, decide_text, missing_solvers, solvers_named
from outlives.invariants.proof.theorem import prove
from outlives.invariants.report.tables import proof_table
from outlives.invariants.verdict import Verdict
from outlives.model.errors import Contradiction, UnknownName
from outlives.model.lifetime import guard_named

pytest.importorskip("cvc5", reason="cvc5 is not installed: pip install 'outlives[cvc5]'")

CONFIRMED = Terms(guard=guard_named("confirmed"))
BOTH = ("z3", "cvc5")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(capsys)


@pytest.fixture(scope="module")
def several():
    return prove(CONFIRMED, solvers=BOTH, seeds=3)


def test_two_solvers_agree_on_every_obligation_under_every_seed(several):
    assert several.verdict is Verdict.PROVED
    assert len(several.obligations) == 211
    for each in several.obligations:
        asked = [("z3", 0), *((other.solver, other.seed) for other in each.others)]
        assert sorted(asked) == [(solver, seed) for solver in sorted(BOTH) for seed in range(3)]
        assert {other.answer for other in each.others} == {"unsat"}


def test_no_obligation_takes_more_than_a_tenth_of_its_budget(several):
    assert BUDGETS == {"z3": 200_000, "cvc5": 150_000}
    assert several.over_a_tenth == ()
    assert all(0 < units <= BUDGETS[solver] / 10 for solver, units in several.spent().items())
    assert several.spent().keys() == set(BOTH)
    assert "none takes more than a tenth of its budget" in proof_table(several).legend


def test_z3_under_five_seeds():
    report = prove(CONFIRMED, seeds=5)
    assert report.verdict is Verdict.PROVED
    assert report.over_a_tenth == ()
    assert {len(each.others) for each in report.obligations} == {4}


ALONE = """
from resource import RUSAGE_SELF, getrusage
from outlives.invariants.proof.life import Terms
from outlives.invariants.proof.theorem import prove
from outlives.model.lifetime import guard_named
before = getrusage(RUSAGE_SELF)
print(prove(Terms(guard=guard_named("confirmed")), solvers=("z3", "cvc5")).verdict)
after = getrusage(RUSAGE_SELF)
print(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, after.ru_minflt - before.ru_minflt)
"""


def test_the_whole_proof_by_both_takes_less_than_five_seconds_and_faults_no_memory_in_again():
    """In a process of its own: what the C library gives back depends on what was freed before. Seconds are the
    processor's, of the program and of the system on its behalf. Without `fresh_context` it faults in 880,000 pages."""
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=True)
    verdict, seconds, faults = done.stdout.split()
    assert verdict == "proved"
    assert float(seconds) < 5
    assert int(faults) < 200_000


def test_ci_is_not_green_without_cvc5(run: Run, monkeypatch: pytest.MonkeyPatch):
    """This file skips itself there; `.ci/run` proves by both before any test, and `set -e` ends it."""
    lines = (Path(__file__).parents[1] / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert "set -euo pipefail" in lines
    at = next(number for number, line in enumerate(lines) if "/outlives" in line and " prove " in line)
    assert at < next(number for number, line in enumerate(lines) if line.startswith('"$work/venv/bin/pytest"'))
    words = shlex.split(lines[at])
    assert words[0] == "$work/venv/bin/outlives"
    monkeypatch.setattr("outlives.invariants.proof.solvers.has_cvc5", lambda: False)
    done = run(*words[1:])
    assert done.status == 2
    assert "cvc5 is not installed (pip install 'outlives[cvc5]')" in done.err


def test_both_find_the_same_obligations_wanting():
    report = prove(Terms(guard=guard_named("optimistic-at-output")), solvers=BOTH)
    assert report.verdict is Verdict.UNKNOWN
    assert {each.lemma for each in report.failed} == {"COVERAGE"}
    assert all(each.verdict is Verdict.VIOLATED and each.differing == () for each in report.failed)
    assert {other.answer for each in report.failed for other in each.others} == {"sat"}


def says(answer, reason=""):
    """A cvc5 that gives this answer to everything."""
    return lambda smt2, budget, seed: Decision("cvc5", seed, answer, 1, 0.0, reason)


def test_solvers_that_contradict_each_other_are_told_and_end_with_five(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("outlives.invariants.proof.solvers.decide_text", says("sat"))
    done = run("prove", "--solvers", "z3,cvc5")
    assert done.status == 5
    assert "Proof by induction: engines disagree" in done.out
    assert "TYPES / init is engines disagree: z3: unsat; cvc5, seed 0: sat" in done.out
    assert "0 of 211 obligations proved" in done.out


def test_a_contradiction_is_not_forgotten_over_other_lemmas_that_would_do(monkeypatch: pytest.MonkeyPatch):
    terms = Terms(guard=guard_named("confirmed"), assumed=Assumed(reader="true"))
    weak, strong = lemma_sets(terms.assumed)
    assert prove(terms, strong).verdict is Verdict.PROVED
    said = iter(["sat"])
    monkeypatch.setattr(
        "outlives.invariants.proof.solvers.decide_text",
        lambda smt2, budget, seed: Decision("cvc5", seed, next(said, "unsat"), 1, 0.0),
    )
    report = prove(terms, solvers=BOTH, until_failure=True)
    assert (report.verdict, report.lemmas, report.earlier) == (Verdict.DISAGREE, weak, ())
    assert report.tally.differing == ("TYPES / init",)


def test_obligations_of_lemmas_that_did_not_do_are_counted():
    terms = Terms(guard=guard_named("optimistic-at-output"), assumed=Assumed(reader="true"))
    report = prove(terms, solvers=BOTH, until_failure=True)
    assert [each.verdict for each in (*report.earlier, report)] == [Verdict.UNKNOWN, Verdict.UNKNOWN]
    assert report.tally.asked == sum(len(each.obligations) for each in (*report.earlier, report))
    assert (report.tally.differing, report.tally.costly) == ((), ())


def test_a_second_solver_that_gives_up_leaves_it_unknown(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("outlives.invariants.proof.solvers.decide_text", says("unknown", "it was tired"))
    report = prove(CONFIRMED, solvers=BOTH, until_failure=True)
    assert report.verdict is Verdict.UNKNOWN
    assert report.failed[0].reason == "z3: unsat; cvc5, seed 0: unknown (it was tired)"


def test_seeds_that_contradict_each_other_disagree(monkeypatch: pytest.MonkeyPatch):
    true_solve = solvers_module.solve

    def moody(formulas, budget, *, seed=0, text=False):
        return true_solve(formulas if seed == 0 else [], budget, seed=seed, text=text)

    monkeypatch.setattr("outlives.invariants.proof.solvers.solve", moody)
    assert prove(CONFIRMED, seeds=2, until_failure=True).verdict is Verdict.DISAGREE


def test_a_small_budget_and_a_text_that_is_none_are_unknown(several):
    smt2 = max(several.obligations, key=lambda each: each.spent()["cvc5"]).solved.smt2
    assert smt2.startswith("(set-logic QF_LIA)")
    assert decide_text(smt2).answer == "unsat"
    spent = decide_text(smt2, 1_000)
    assert (spent.answer, spent.reason) == ("unknown", "the resource limit of 1000 was reached")
    broken = decide_text("(assert (= 1")
    assert broken.answer == "unknown"
    assert broken.reason


def test_what_is_written_is_what_both_have_decided(run: Run, tmp_path: Path):
    done = run("prove", "--smt2", tmp_path / "texts", "--json")
    proof = done.object["proofs"][0]
    assert (done.status, proof["solvers"], proof["seeds"]) == (0, ["z3", "cvc5"], 1)
    assert proof["budgets"] == {"z3": 200_000, "cvc5": 150_000}
    assert {each["decisions"][0]["solver"] for each in proof["obligations"]} == {"cvc5"}
    texts = sorted((tmp_path / "texts").iterdir())
    assert len(texts) == 211
    assert decide_text(texts[0].read_text(encoding="utf-8")).answer == "unsat"


def test_solvers_are_asked_for_by_name(run: Run, monkeypatch: pytest.MonkeyPatch):
    assert solvers_named("cvc5, z3") == BOTH
    with pytest.raises(UnknownName, match=r"unknown solver 'cvc4'\. Did you mean 'cvc5'\?"):
        solvers_named("cvc4")
    with pytest.raises(Contradiction, match="z3 writes the obligations"):
        solvers_named("cvc5")
    done = run("prove", "--seeds", "0")
    assert done.status == 2
    assert "--seeds is 0" in done.err
    done = run("prove", "--solvers", "z3", "--source", ".")
    assert (done.status, "drop --solvers" in done.err) == (2, True)
    monkeypatch.setattr("outlives.invariants.proof.solvers.has_cvc5", lambda: False)
    with pytest.raises(Contradiction, match=r"cvc5 is not installed \(pip install 'outlives\[cvc5\]'\)"):
        solvers_named("z3,cvc5")
    assert missing_solvers(("z3",))
    done = run("prove")
    assert done.status == 0
    assert "Not covered: a second solver; cvc5 is not installed" in done.out
    assert "decided by z3; resource units of the costliest one: z3 " in done.out
