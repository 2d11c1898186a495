"""What each obligation rests on: the names of the facts in the solver's unsatisfiable core.

Belongs here: an obligation taken apart into facts with readable names, and which of them the solver used. A core is
informative, not minimal: another run of another solver may do with other facts.

Theory of operation
-------------------
The state after a transition gets symbols of its own. What the transition makes of each field is a fact of its own,
`becomes FIELD`, or `keeps FIELD` where it does not touch it; so is each lemma, that the transition can happen, and
that the claim fails after it. The guard is not a part of the formula that could be named: it stands inside the update
of `referenced`. Whether it was used is asked by taking its answer for free: where the obligation then fails, it was.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import z3
from outlives.model.lifetime import Counters

from .executor import symbol
from .extract import Extracted, leaves
from .lemmas import GOAL, Lemma, initial
from .life import Terms
from .solvers import BUDGET, fresh_context, solve
from .theorem import Relation

__all__ = ["GUARD", "Core", "cores"]

GUARD: Final = "guard"
_FREE: Final = "?lets-go"


@dataclass(frozen=True, slots=True)
class Core:
    """What one obligation was shown from."""

    lemma: str
    transition: str
    used: tuple[str, ...]
    """Names of facts, lemmas first; empty where the obligation is not proved, or no core was found in the budget."""

    @property
    def name(self) -> str:
        """`LEMMA / transition`."""
        return f"{self.lemma} / {self.transition}"


def cores(terms: Terms, lemmas: Sequence[Lemma], budget: int = 10 * BUDGET) -> tuple[Core, ...]:
    """The core of every obligation of `theorem`, in its order, save those that say that nothing raises."""
    relation, free = Relation(terms), _with_a_free_guard(terms)
    found = []
    for lemma in lemmas:
        begin = [("the beginning", relation.formula("init", initial))]
        found.append(Core(lemma.name, "init", _core([*begin, *_fails(relation, lemma)], budget)))
        for extracted, freed in zip(relation.transitions, free.transitions, strict=True):
            used = _core([*_hypotheses(relation, lemmas), *_step(relation, extracted, lemma)], budget)
            if used and _differs(extracted, freed) and _needs_guard(free, freed, lemmas, lemma, budget):
                used = (*used, GUARD)
            found.append(Core(lemma.name, extracted.name, used))
    goal = _core([*_hypotheses(relation, lemmas), *_fails(relation, GOAL)], budget)
    return (*found, Core(GOAL.name, "goal", goal))


def _hypotheses(relation: Relation, lemmas: Sequence[Lemma]) -> Iterator[tuple[str, Any]]:
    for lemma in lemmas:
        yield lemma.name, relation.lemma(lemma)


def _fails(relation: Relation, lemma: Lemma) -> Iterator[tuple[str, Any]]:
    yield "the claim fails", z3.Not(relation.lemma(lemma))


def _step(relation: Relation, extracted: Extracted, lemma: Lemma) -> Iterator[tuple[str, Any]]:
    """The transition as named facts about the fields after it, and that the claim fails of these."""
    moved = {before.decl().name(): after for before, after in extracted.after}
    later = {name: z3.Int(f"{name}'", relation.context) for name in leaves(relation.state)}
    yield f"{extracted.name} can happen", extracted.enabled
    for name, value in leaves(relation.state).items():
        verb = "becomes" if name in moved else "keeps"
        yield f"{verb} {name}", later[name] == moved.get(name, value.term)
    pairs = [(value.term, later[name]) for name, value in leaves(relation.state).items()]
    yield "the claim fails", z3.Not(z3.substitute(relation.lemma(lemma), *pairs))


def _core(facts: Sequence[tuple[str, Any]], budget: int) -> tuple[str, ...]:
    """The names of the facts that cannot hold together, in the order given, without the claim itself."""
    context = fresh_context()
    solver = z3.SimpleSolver(ctx=context)
    solver.set("ctrl_c", False)  # the solver would take Ctrl-C for itself, and the run would go on
    solver.set("random_seed", 0)
    solver.set("rlimit", budget)
    solver.set("unsat_core", True)
    for name, fact in facts:
        solver.assert_and_track(fact.translate(context), z3.Bool(name, context))
    if solver.check() != z3.unsat:
        return ()
    used = {each.decl().name() for each in solver.unsat_core()}
    return tuple(name for name, _ in facts if name in used and name != "the claim fails")


def _with_a_free_guard(terms: Terms) -> Relation:
    """The same relation, with a guard that may answer anything."""
    made: list[Relation] = []

    def anything(c: Counters, end: int, look_ahead: int) -> bool:  # noqa: ARG001 -- one signature for every guard
        return bool(symbol(_FREE, made[0].context) == 1)

    made.append(Relation(replace(terms, guard=replace(terms.guard, condition=anything, counts_drafts=0))))
    return made[0]


def _differs(extracted: Extracted, freed: Extracted) -> bool:
    """Whether the transition asks the guard."""
    return any(_FREE in after.sexpr() for _, after in freed.after) and bool(extracted.after)


def _needs_guard(free: Relation, freed: Extracted, lemmas: Sequence[Lemma], lemma: Lemma, budget: int) -> bool:
    hypotheses = [fact for _, fact in _hypotheses(free, lemmas)]
    return solve([*hypotheses, freed.enabled, z3.Not(freed.moved(free.lemma(lemma)))], budget).answer != "unsat"
