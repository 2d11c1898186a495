"""The proof by induction: one named obligation per lemma and transition, each a query of its own.

Belongs here: extraction of the relation from its functions, the obligations, their verdicts, and the checks that the
proof is about something (`vacuity`). The relation is in `relation`, what is proved of it in `lemmas`.

Theory of operation
-------------------
Each transition and each lemma runs once on symbolic numbers, and comes back as a term over the fields of a state
(`executor`). For lemma L: `Init and not L`; for L and transition T: `all lemmas and T and not L after T`; at the end
`all lemmas and not the goal`. Each must be unsatisfiable. Each is solved in a fresh context with fixed seeds and a
budget in resource units, so that answers do not depend on order, load or hash seed; and, where it is asked for, once
more under other seeds and by cvc5 (`solvers`), whose answers must be the same. A transition that raises on some path
has an obligation of its own: that path must be unreachable.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Any

import z3

from ..verdict import Verdict
from .extract import Extracted, Extractor, rebuilt
from .lemma_sets import lemma_sets
from .lemmas import GOAL, Lemma, initial
from .life import EMPTY, Life, Terms
from .relation import TRANSITIONS, transitions
from .solvers import BUDGET, BUDGETS, Decision, Solved, Tally, agreed, decide, most_spent, spent_on

__all__ = [
    "Obligation",
    "ProofReport",
    "Relation",
    "life_of",
    "obligation_formulas",
    "prove",
    "replays",
]


class Relation(Extractor):
    """The relation and its lemmas as terms of one context."""

    def __init__(self, terms: Terms) -> None:
        super().__init__(terms, EMPTY)
        self._after: dict[tuple[str, str], Any] = {}

    @cached_property
    def transitions(self) -> tuple[Extracted, ...]:
        """Every open transition, extracted."""
        return tuple(self.transition(each.name, each.phases) for each in transitions(self.terms.assumed))

    def lemma(self, lemma: Lemma) -> Any:
        """The lemma as a term over the state before."""
        return self.formula(lemma.name, lemma.holds)

    def lemma_after(self, lemma: Lemma, extracted: Extracted) -> Any:
        """The same of the state after one of the transitions; moved once per name, as it is extracted."""
        key = (lemma.name, extracted.name)
        if key not in self._after:
            self._after[key] = extracted.moved(self.lemma(lemma))
        return self._after[key]


@dataclass(frozen=True, slots=True)
class Obligation:
    """One cell of the grid: a lemma that must hold at the beginning, after a transition, or at the end (the goal)."""

    lemma: str
    transition: str
    """A transition's name, or `init`, or `goal`. Lemma `TOTAL` says that the transition raises nothing."""
    verdict: Verdict
    solved: Solved
    """Z3's answer under the first seed."""
    others: tuple[Decision, ...] = ()
    """Its answers under the other seeds, and those of the other solvers."""

    @property
    def name(self) -> str:
        """`LEMMA / transition`."""
        return f"{self.lemma} / {self.transition}"

    @property
    def differing(self) -> tuple[Decision, ...]:
        """The answers that are not Z3's first one."""
        return tuple(each for each in self.others if each.answer != self.solved.answer)

    @property
    def reason(self) -> str:
        """Why it is not decided, or who contradicts whom; empty where there is nothing to say."""
        if self.differing:
            return "; ".join([f"z3: {self.solved.answer}", *map(str, self.differing)])
        return self.solved.reason

    def spent(self) -> dict[str, int]:
        """The most resource units of one query, by solver."""
        return spent_on(self.solved, self.others)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofReport:
    """The grid and what became of it."""

    terms: Terms
    lemmas: tuple[Lemma, ...]
    obligations: tuple[Obligation, ...]
    extraction_seconds: float
    solving_seconds: float
    paths: int
    solvers: tuple[str, ...] = ("z3",)
    """Who decided each obligation."""
    seeds: int = 1
    """Under how many seeds each."""
    earlier: tuple["ProofReport", ...] = ()
    """What became of the sets of lemmas that were tried before this one, and did not do."""

    @property
    def verdict(self) -> Verdict:
        """Proved where every obligation is. Otherwise unknown: an obligation that fails shows a state that may not be
        reachable; whether something bad happens is for bounded checking to say. Engines disagree where the plain
        functions do not do what the solver says, or solvers contradict each other."""
        if any(obligation.verdict is Verdict.DISAGREE for obligation in self.obligations):
            return Verdict.DISAGREE
        proved = all(obligation.verdict is Verdict.PROVED for obligation in self.obligations)
        return Verdict.PROVED if proved and self.obligations else Verdict.UNKNOWN

    @property
    def failed(self) -> tuple[Obligation, ...]:
        """The obligations that are not proved; a violated one carries the state in `solved.values`."""
        return tuple(each for each in self.obligations if each.verdict is not Verdict.PROVED)

    @property
    def costliest(self) -> int:
        """The most resource units of Z3 that one obligation took."""
        return self.spent().get("z3", 0)

    def spent(self) -> dict[str, int]:
        """The most resource units that one obligation took, by solver."""
        return most_spent(*(each.spent() for each in self.obligations))

    @property
    def over_a_tenth(self) -> tuple[Obligation, ...]:
        """The obligations of which a query took more than a tenth of its budget: the next change may tip them over."""
        return tuple(
            each
            for each in self.obligations
            if any(units * 10 > BUDGETS[solver] for solver, units in each.spent().items())
        )

    @property
    def tally(self) -> Tally:
        """Of every obligation that was put to the solvers, those of the sets of lemmas tried before included."""
        asked = [*(each for report in self.earlier for each in report.obligations), *self.obligations]
        return Tally().plus(*(Tally.of(each.name, each.solved, each.others) for each in asked))

    def grid(self) -> dict[str, dict[str, Verdict]]:
        """Lemma -> transition -> verdict."""
        rows: dict[str, dict[str, Verdict]] = {}
        for each in self.obligations:
            rows.setdefault(each.lemma, {})[each.transition] = each.verdict
        return rows


def obligation_formulas(
    relation: Relation, lemmas: Sequence[Lemma], assumed_lemmas: Sequence[Lemma] | None = None
) -> Iterable[tuple[str, str, list[Any]]]:
    """(lemma, transition, what must be unsatisfiable) of every obligation, in a fixed order."""
    hypotheses = [relation.lemma(lemma) for lemma in (lemmas if assumed_lemmas is None else assumed_lemmas)]
    begin = relation.formula("init", initial)
    for lemma in lemmas:
        claim = relation.lemma(lemma)
        yield lemma.name, "init", [begin, z3.Not(claim)]
        for extracted in relation.transitions:
            after = relation.lemma_after(lemma, extracted)
            yield lemma.name, extracted.name, [*hypotheses, extracted.enabled, z3.Not(after)]
    for extracted in relation.transitions:
        if not z3.is_false(extracted.raises):
            yield "TOTAL", extracted.name, [*hypotheses, extracted.raises]
    yield GOAL.name, "goal", [*hypotheses, z3.Not(relation.lemma(GOAL))]


def life_of(values: Mapping[str, int]) -> Life:
    """The concrete state with these field values; fields without one (the solver did not care) are 0."""
    life: Life = rebuilt(EMPTY, lambda path: values.get(path, 0))
    return life


def replays(
    relation: Relation, lemma: str, transition: str, values: Mapping[str, int], lemmas: Sequence[Lemma]
) -> bool:
    """Whether the plain functions, run on the solver's numbers, show what the solver says: the lemma fails."""
    terms, before = relation.terms, life_of(values)
    claims = {each.name: each.holds for each in (*lemmas, GOAL)}
    if transition == "init":
        return bool(initial(terms, before)) and not claims[lemma](terms, before)
    if transition == "goal":
        return not claims[lemma](terms, before)
    taken = next(each for each in TRANSITIONS if each.name == transition)
    try:
        after = taken.apply(terms, before, **{name: values.get(f"?{name}", 0) for name in taken.choices})
    except Exception:  # the arithmetic may be a user's: whatever it raises is what obligation TOTAL is about
        return lemma == "TOTAL"
    return isinstance(after, Life) and lemma in claims and not claims[lemma](terms, after)


def _verdict(
    relation: Relation, lemma: str, transition: str, solved: Solved, lemmas: Sequence[Lemma], others: Sequence[Decision]
) -> Verdict:
    early = {"contradicted": Verdict.DISAGREE, "unknown": Verdict.UNKNOWN, "unsat": Verdict.PROVED}
    answer = agreed(solved, others)
    if answer in early:
        return early[answer]
    shown = replays(relation, lemma, transition, solved.values, lemmas)
    return Verdict.VIOLATED if shown else Verdict.DISAGREE


def prove(
    terms: Terms,
    lemmas: Sequence[Lemma] | None = None,
    *,
    budget: int = BUDGET,
    seed: int = 0,
    text: bool = False,
    until_failure: bool = False,
    solvers: Sequence[str] = ("z3",),
    seeds: int = 1,
    relation: Relation | None = None,
) -> ProofReport:
    """Prove that the entry outlives its last reader, for this guard and these assumptions.

    `lemmas` defaults to the likeliest set for the assumptions, or the next ones where that does not do. `text` keeps
    each obligation as SMT-LIB2, for another solver. `until_failure` stops at the first obligation that fails. Each of
    the `solvers` decides each obligation under `seeds` seeds, from `seed` on; all must give the same answer, and where
    two contradict each other no other lemmas are tried. `relation`: of these terms, where one is at hand.
    """
    sets = lemma_sets(terms.assumed) if lemmas is None else (tuple(lemmas),)
    begun = perf_counter()
    relation = Relation(terms) if relation is None else relation
    paths = sum(extracted.paths for extracted in relation.transitions)
    extraction = perf_counter() - begun
    reports: list[ProofReport] = []
    for chosen in sets:
        begun = perf_counter()
        obligations = []
        for lemma, transition, formulas in obligation_formulas(relation, chosen):
            solved, others = decide(formulas, solvers, range(seed, seed + seeds), budget, text=text)
            verdict = _verdict(relation, lemma, transition, solved, chosen, others)
            obligations.append(Obligation(lemma, transition, verdict, solved, others))
            if until_failure and verdict is not Verdict.PROVED:
                break
        report = ProofReport(
            terms=terms,
            lemmas=chosen,
            obligations=tuple(obligations),
            extraction_seconds=extraction,
            solving_seconds=perf_counter() - begun,
            paths=paths,
            solvers=tuple(solvers),
            seeds=seeds,
            earlier=tuple(reports),
        )
        if report.verdict in (Verdict.PROVED, Verdict.DISAGREE):
            return report
        reports.append(report)
    return reports[-1]
