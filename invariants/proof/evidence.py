"""Why to believe a proof: it is about something, each lemma is needed, and what it says as rows of a report.

Belongs here: satisfiability checks (`vacuity`), the table of what breaks without each lemma (`necessity`), the
comparison of two guards by the solver (`differ`), and the conversion to results.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import z3
from outlives.model.lifetime import Counters, Guard, confirmed

from ..verdict import Result, Verdict
from .executor import execute, symbol, term_of
from .lemmas import READER, Lemma, initial
from .life import Life, Terms
from .solvers import BUDGET, Solved, fresh_context, solve
from .theorem import ProofReport, Relation, obligation_formulas, prove

__all__ = ["Check", "differ", "judge", "necessity", "results", "unchecked_read", "vacuity"]


@dataclass(frozen=True, slots=True)
class Check:
    """Something that must be possible, for a proof to be about anything."""

    name: str
    phrase: str
    solved: Solved

    @property
    def possible(self) -> bool:
        """Whether the solver found a state."""
        return self.solved.answer == "sat"


def _released_early(terms: Terms, life: Life) -> bool:  # noqa: ARG001
    begun = life.there == 1 and life.running == 1 and life.start < life.counters.computed
    return begun and life.referenced == 0 and life.booked == 0 and life.counters.placeholders > 0


def _rolled_back(terms: Terms, life: Life) -> bool:  # noqa: ARG001
    return life.flight.active == 1 and life.flight.true_start < life.flight.start


def _reads_below(terms: Terms, life: Life) -> bool:  # noqa: ARG001
    flight = life.flight
    return flight.active == 1 and life.end <= flight.start and life.end > flight.lowest


_SITUATIONS: tuple[tuple[str, str, Callable[[Terms, Life], bool]], ...] = (
    ("released", "a begun item was released and evicted while outputs are promised", _released_early),
    ("rolled-back", "a step in flight truly starts below the scheduler's start", _rolled_back),
    ("reads-below", "a step in flight may read an item that the gate did not look at", _reads_below),
)


def vacuity(
    terms: Terms, lemmas: Sequence[Lemma], budget: int = BUDGET, relation: Relation | None = None
) -> tuple[Check, ...]:
    """Init, the lemmas together, each transition, each lemma's premise, both sides of the guard and the situations
    that the theorem is about: each must be satisfiable. (Satisfiable together with the lemmas, not: reached.)
    `relation`: of these terms, where one is at hand."""
    relation = Relation(terms) if relation is None else relation
    hypotheses = [relation.lemma(lemma) for lemma in lemmas]
    checks = [Check("init", "a life can begin", solve([relation.formula("init", initial)], budget))]
    checks.append(Check("lemmas", "the lemmas hold together", solve(hypotheses, budget)))
    for extracted in relation.transitions:
        solved = solve([*hypotheses, extracted.enabled], budget)
        checks.append(Check(f"enabled {extracted.name}", f"{extracted.name} can happen", solved))
    for lemma in lemmas:
        if lemma.premise is not None:
            premise = relation.formula(f"premise of {lemma.name}", lemma.premise)
            phrase = f"{lemma.name} speaks of something"
            checks.append(Check(f"premise {lemma.name}", phrase, solve([*hypotheses, premise], budget)))
    for name, phrase, holds in _SITUATIONS:
        checks.append(Check(name, phrase, solve([*hypotheses, relation.formula(name, holds)], budget)))
    checks.extend(_guard_sides(relation, hypotheses, budget))
    return tuple(checks)


def _guard_sides(relation: Relation, hypotheses: list[z3.BoolRef], budget: int) -> list[Check]:
    def lets_go(terms: Terms, life: Life) -> bool:
        return terms.guard.lets_go(life.counters, life.end, life.look_ahead, life.live_drafts)

    def asked(terms: Terms, life: Life) -> bool:  # noqa: ARG001
        return life.running == 1 and life.referenced == 1

    condition = relation.formula("guard", lets_go)
    holds = [*hypotheses, relation.formula("asked", asked)]
    checks = [Check("guard keeps", "the guard keeps a referenced item", solve([*holds, z3.Not(condition)], budget))]
    if not z3.is_false(condition):  # a guard that never lets go has one side
        checks.append(Check("guard lets go", "the guard lets a referenced item go", solve([*holds, condition], budget)))
    return checks


def necessity(
    terms: Terms, lemmas: Sequence[Lemma], budget: int = BUDGET, relation: Relation | None = None
) -> dict[str, str]:
    """Lemma -> an obligation that fails without it; empty where none does.

    Without it: it is neither assumed nor shown. Where the others can do without it, its own obligations are tried: a
    lemma that says what the proof is asked for (TRUE-START) or bears out a FACT of the relation (STEP).
    `relation`: of these terms, where one is at hand.
    """
    relation = Relation(terms) if relation is None else relation
    broken = {}
    for dropped in lemmas:
        rest = [lemma for lemma in lemmas if lemma is not dropped]
        cells = list(obligation_formulas(relation, lemmas, rest))
        others = [cell for cell in reversed(cells) if cell[0] != dropped.name and cell[1] != "init"]
        own = [cell for cell in cells if cell[0] == dropped.name and cell[1] != "init"]
        failing = (cell for cell in (*others, *own) if solve(cell[2], budget).answer != "unsat")
        first = next(failing, None)
        broken[dropped.name] = "" if first is None else f"{first[0]} / {first[1]}"
    return broken


def differ(first: Guard, second: Guard, where: Callable[[Counters], bool], budget: int = BUDGET) -> Solved:
    """Counters within `where` for which the two conditions differ: `unsat` means that they are equal there."""
    context = fresh_context()
    counters = Counters(*(symbol(name, context) for name in Counters._fields))  # type: ignore[arg-type]
    end, ahead, drafts = (symbol(name, context) for name in ("end", "look_ahead", "drafts"))

    def different() -> bool:
        if not where(counters) or ahead < 0:
            return False
        one, other = first.lets_go(counters, end, ahead, drafts), second.lets_go(counters, end, ahead, drafts)  # type: ignore[arg-type]
        if one:
            return not other
        return bool(other)

    return solve([term_of(execute(different, context=context).merge(), context)], budget)


def unchecked_read(terms: Terms, lemmas: Sequence[Lemma], budget: int = BUDGET) -> Solved:
    """Is *confirmed* the weakest threshold for readers anywhere? `unsat`: yes, in a running request whose item is begun
    (start < computed) and which can be dispatched again, the next step may read the item without the gate having looked
    at it exactly when confirmed < end <= computed. So releasing it then would be wrong, and keeping it longer is not
    needed: what ends above computed is looked at again."""
    relation = Relation(terms)
    dispatch = next(extracted for extracted in relation.transitions if extracted.name == "dispatch")
    life = relation.state
    reads = dispatch.moved(relation.formula("premise of READER", READER.premise or READER.holds))
    unseen = (life.end <= life.counters.computed).term
    exposed = z3.And((life.end > confirmed(life.counters)).term, unseen)
    choices = [symbol(f"?{name}", relation.context).term == 1 for name in ("count", "track")]
    begun = [(life.there == 1).term, (life.start < life.counters.computed).term]
    situation = [(life.flight.active == 0).term, *begun, dispatch.enabled]
    hypotheses = [relation.lemma(lemma) for lemma in lemmas]
    return solve([*hypotheses, *situation, *choices, z3.And(reads, unseen) != exposed], budget)


def judge(terms: Terms, *, budget: int = BUDGET, seed: int = 0) -> tuple[ProofReport, tuple[Check, ...]]:
    """The proof together with the checks that it is about something."""
    report = prove(terms, budget=budget, seed=seed)
    return report, vacuity(terms, report.lemmas, budget)


def results(report: ProofReport, checks: Sequence[Check] = ()) -> list[Result]:
    """One row per lemma (and the goal), and one for vacuity."""
    rows = []
    phrases = {lemma.name: lemma.phrase for lemma in report.lemmas}
    for lemma, cells in report.grid().items():
        rows.append(_row(report, lemma, cells, phrases.get(lemma, "")))
    if checks:
        impossible = [check.name for check in checks if check.solved.answer == "unsat"]
        undecided = [check.name for check in checks if check.solved.answer == "unknown"]
        verdict = Verdict.VACUOUS if impossible else Verdict.UNKNOWN if undecided else Verdict.PROVED
        note = f"not possible: {', '.join(impossible)}" if impossible else ""
        coverage = f"{len(checks)} situations that the proof speaks of are possible"
        if impossible or undecided:
            coverage = f"{len(checks)} situations, {len(impossible)} impossible, {len(undecided)} undecided"
        rows.append(Result(engine="proof", property="PROOF-NOT-VACUOUS", verdict=verdict, coverage=coverage, note=note))
    return rows


def _row(report: ProofReport, lemma: str, cells: dict[str, Verdict], phrase: str) -> Result:
    own = [each for each in report.obligations if each.lemma == lemma]
    failed = [each for each in own if each.verdict is not Verdict.PROVED]
    worst = Verdict.PROVED
    for verdict in (Verdict.DISAGREE, Verdict.UNKNOWN, Verdict.VIOLATED):
        if worst is Verdict.PROVED and any(each.verdict is verdict for each in failed):
            # A lemma that a transition breaks is not a violation: its state may be out of reach.
            worst = Verdict.UNKNOWN if verdict is Verdict.VIOLATED else verdict
    details = {
        "phrase": phrase,
        "obligations": {
            each.transition: {
                "verdict": str(each.verdict),
                "rlimit": each.solved.rlimit,
                "seconds": round(each.solved.seconds, 4),
                "state": dict(each.solved.values),
            }
            for each in own
        },
    }
    return Result(
        engine="proof",
        property=lemma,
        verdict=worst,
        coverage=f"unbounded numbers, any depth; {len(cells)} obligations",
        note=f"not shown: {', '.join(each.transition for each in failed)}" if failed else "",
        details=details,
    )
