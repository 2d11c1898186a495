"""The proof by induction: one named obligation per lemma and transition, each a query of its own.

Belongs here: extraction of the relation from its functions, the obligations, their verdicts, and the checks that the
proof is about something (`vacuity`). The relation is in `relation`, what is proved of it in `lemmas`.

Theory of operation
-------------------
Each transition and each lemma runs once on symbolic numbers, and comes back as a term over the fields of a state
(`executor`). For lemma L: `Init and not L`; for L and transition T: `all lemmas and T and not L after T`; at the end
`all lemmas and not the goal`. Each must be unsatisfiable. Each is solved in a fresh context with fixed seeds and a
budget in Z3's resource units, so that answers do not depend on order, load or hash seed. A transition that raises on
some path has an obligation of its own: that path must be unreachable.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import Any, Final

import z3

from ..verdict import Verdict
from .extract import Extracted, Extractor, rebuilt
from .lemmas import GOAL, Lemma, initial, lemma_sets
from .life import EMPTY, Life, Terms
from .relation import TRANSITIONS, transitions

__all__ = [
    "BUDGET",
    "Obligation",
    "ProofReport",
    "Relation",
    "Solved",
    "life_of",
    "obligation_formulas",
    "prove",
    "replays",
    "solve",
]

BUDGET: Final = 200_000
"""Z3 resource units per obligation: ten times what the costliest one needs."""


class Relation(Extractor):
    """The relation and its lemmas as terms of one context."""

    def __init__(self, terms: Terms) -> None:
        super().__init__(terms, EMPTY)

    @cached_property
    def transitions(self) -> tuple[Extracted, ...]:
        """Every open transition, extracted."""
        return tuple(self.transition(each.name, each.phases) for each in transitions(self.terms.assumed))

    def lemma(self, lemma: Lemma) -> Any:
        """The lemma as a term over the state before."""
        return self.formula(lemma.name, lemma.holds)


@dataclass(frozen=True, slots=True)
class Solved:
    """One answer of the solver."""

    answer: str
    """`unsat`, `sat` or `unknown`."""
    rlimit: int
    """Z3 resource units spent."""
    seconds: float
    reason: str = ""
    values: Mapping[str, int] = field(default_factory=dict)
    """Where sat: the numbers, by field (and `?choice`)."""
    smt2: str = ""


def solve(formulas: Iterable[Any], budget: int = BUDGET, *, seed: int = 0, text: bool = False) -> Solved:
    """Are these formulas satisfiable together? In a fresh context, with fixed seeds."""
    begun = perf_counter()
    context = z3.Context()
    solver = z3.SimpleSolver(ctx=context)
    solver.set("ctrl_c", False)  # the solver would take Ctrl-C for itself, and the run would go on
    solver.set("random_seed", seed)
    solver.set("rlimit", budget)
    solver.add(*(formula.translate(context) for formula in formulas))
    smt2 = solver.to_smt2() if text else ""
    answer = str(solver.check())
    spent = {key: value for key, value in solver.statistics()}.get("rlimit count", 0)  # noqa: C416
    values: dict[str, int] = {}
    if answer == "sat":
        model = solver.model()
        values = {name.name(): model[name].as_long() for name in model.decls() if z3.is_int_value(model[name])}
        values = dict(sorted(values.items()))
    reason = ""
    if answer == "unknown":
        reason = f"the resource limit of {budget} was reached" if spent >= budget else solver.reason_unknown()
    return Solved(answer, int(spent), perf_counter() - begun, reason, values, smt2)


@dataclass(frozen=True, slots=True)
class Obligation:
    """One cell of the grid: a lemma that must hold at the beginning, after a transition, or at the end (the goal)."""

    lemma: str
    transition: str
    """A transition's name, or `init`, or `goal`. Lemma `TOTAL` says that the transition raises nothing."""
    verdict: Verdict
    solved: Solved

    @property
    def name(self) -> str:
        """`LEMMA / transition`."""
        return f"{self.lemma} / {self.transition}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofReport:
    """The grid and what became of it."""

    terms: Terms
    lemmas: tuple[Lemma, ...]
    obligations: tuple[Obligation, ...]
    extraction_seconds: float
    solving_seconds: float
    paths: int

    @property
    def verdict(self) -> Verdict:
        """Proved where every obligation is. Otherwise unknown: an obligation that fails shows a state that may not be
        reachable; whether something bad happens is for bounded checking to say. Engines disagree where the plain
        functions do not do what the solver says."""
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
        """The most resource units that one obligation took."""
        return max((each.solved.rlimit for each in self.obligations), default=0)

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
            after = extracted.moved(claim)
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


def _verdict(relation: Relation, lemma: str, transition: str, solved: Solved, lemmas: Sequence[Lemma]) -> Verdict:
    if solved.answer == "unsat":
        return Verdict.PROVED
    if solved.answer == "sat":
        shown = replays(relation, lemma, transition, solved.values, lemmas)
        return Verdict.VIOLATED if shown else Verdict.DISAGREE
    return Verdict.UNKNOWN


def prove(
    terms: Terms,
    lemmas: Sequence[Lemma] | None = None,
    *,
    budget: int = BUDGET,
    seed: int = 0,
    text: bool = False,
    until_failure: bool = False,
) -> ProofReport:
    """Prove that the entry outlives its last reader, for this guard and these assumptions.

    `lemmas` defaults to the likeliest set for the assumptions, or the next ones where that does not do. `text` keeps
    each obligation as SMT-LIB2, for another solver. `until_failure` stops at the first obligation that fails.
    """
    sets = lemma_sets(terms.assumed) if lemmas is None else (tuple(lemmas),)
    begun = perf_counter()
    relation = Relation(terms)
    paths = sum(extracted.paths for extracted in relation.transitions)
    extraction = perf_counter() - begun
    reports = []
    for chosen in sets:
        begun = perf_counter()
        obligations = []
        for lemma, transition, formulas in obligation_formulas(relation, chosen):
            solved = solve(formulas, budget, seed=seed, text=text)
            verdict = _verdict(relation, lemma, transition, solved, chosen)
            obligations.append(Obligation(lemma, transition, verdict, solved))
            if until_failure and verdict is not Verdict.PROVED:
                break
        report = ProofReport(
            terms=terms,
            lemmas=chosen,
            obligations=tuple(obligations),
            extraction_seconds=extraction,
            solving_seconds=perf_counter() - begun,
            paths=paths,
        )
        if report.verdict is Verdict.PROVED:
            return report
        reports.append(report)
    return reports[-1]
