"""How weak a guard may be: the weakest one known to be safe under each set of assumptions, and what shows it.

Belongs here: guards in order of how much they let go (`LADDER`), the first of them that is proved (`weakest_known`),
and the facts about *confirmed* (`threshold_facts`), each one question to the solver. What happens to an item that is
released too early, or kept too long, on the executable model is in `weakest_on_model`.

Theory of operation
-------------------
"Weakest known" is one step of a ladder: this guard is proved, and every weaker one of the ladder is not. More is shown
for *confirmed*. Let the item be begun (start < computed), not referenced, the request running, a place free. Then the
continuations

    evict the entry; dispatch a step, of any number of tokens; process the steps before it, whatever they accept;
    the step reads from end - 1

exist for all numbers, and end in a miss, exactly when computed - placeholders < end <= computed. Otherwise either no
reader gets below the item's end any more, or the gate looks at the item in the very pass that dispatches the reader.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import z3
from outlives.model import lifetime
from outlives.model.lifetime import GUARDS, WEAKEST, Counters, Guard, confirmed, guard_named

from ..verdict import Verdict
from .cells import COLUMNS, Column
from .executor import execute, symbol, term_of
from .lemmas import GOAL, LEMMAS, UPKEEP
from .life import PINS, Life, Terms
from .relation import TRANSITIONS
from .solvers import BUDGET, Decision, Solved, Tally, agreed, decide, fresh_context, solve
from .theorem import ProofReport, Relation, prove

__all__ = ["AT_ONCE", "LADDER", "WEAKEST_COLUMNS", "Fact", "Weakest", "decided", "ordered_by", "threshold_facts"]
__all__ += ["weakest_known"]


def _at_once(c: Counters, end: int, look_ahead: int) -> bool:  # noqa: ARG001 -- one signature for every guard
    return True


AT_ONCE: Final = Guard(
    name="at once",
    condition=_at_once,
    site="after-delivery",
    formula="always",
    released_in="no release",
    source="the weakest of all conditions",
)
"""Whatever is referenced is let go whenever the guard is asked: the baseline of safety."""

LADDER: Final[tuple[Guard, ...]] = (
    AT_ONCE,
    *(
        guard_named(name)
        for name in (
            "optimistic-at-output",
            "true-window",
            "confirmed-after-delivery",
            "confirmed",
            "confirmed-lookahead",
            "settled",
            "retain",
        )
    ),
)
"""From the one that lets everything go to the one that lets nothing go. Each condition implies the one before it, for
all counters that a run can have, save the look-ahead's and that of *settled*, which are not comparable."""

WEAKEST_COLUMNS: Final = (
    *COLUMNS[:4],
    Column(
        name="A1, A3 true",
        phrase="notices overtake steps in flight, readers begin at their true start",
        relaxed=frozenset({"A1", "A3"}),
        reader="true",
    ),
    *COLUMNS[4:],
)
"""The columns of the table, and A1 relaxed together with A3 as far as it goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weakest:
    """The weakest guard of the ladder that is proved under one set of assumptions."""

    column: Column
    anywhere: bool
    guard: Guard | None
    """None: not even *retain* is proved."""
    pinned: bool
    """It also takes references pinned while the request has stale steps in flight; without, no guard is proved."""
    obligations: int
    """Of the two proofs, asynchronous and synchronous."""
    stops_at: str
    """Where the proof of the next weaker guard stops: an obligation; empty where there is no weaker one."""
    contradicted: str = ""
    """An obligation on which solvers contradict each other, and what each says. Then no guard is named."""
    tally: Tally = field(default_factory=Tally)
    """Of every obligation on the way up."""

    @property
    def name(self) -> str:
        """The guard's name, and what it takes beside it."""
        if self.guard is None:
            return "none"
        return f"{self.guard.name}, with pins" if self.pinned else self.guard.name


def weakest_known(column: Column, *, anywhere: bool, solvers: Sequence[str] = ("z3",)) -> Weakest:
    """Climb the ladder, without pins and then with them, up to the first guard that is proved, by each solver."""
    pins = (frozenset[str](), PINS) if "A1" in column.relaxed else (frozenset[str](),)
    stops_at, tally = "", Tally()
    none = Weakest(column=column, anywhere=anywhere, guard=None, pinned=False, obligations=0, stops_at="")
    for pinned in pins:
        for guard in LADDER:
            reports = _reports(guard, column, anywhere, pinned, solvers)
            tally = tally.plus(*(report.tally for report in reports))
            failed = reports[-1].failed
            if not failed:
                proved = sum(len(report.obligations) for report in reports)
                found = replace(none, guard=guard, pinned=bool(pinned), obligations=proved)
                return replace(found, stops_at=stops_at, tally=tally)
            if reports[-1].verdict is Verdict.DISAGREE:
                return replace(none, contradicted=f"{guard.name}, {failed[0].name}: {failed[0].reason}", tally=tally)
            stops_at = failed[0].name
    return replace(none, stops_at=stops_at, tally=tally)


def _reports(
    guard: Guard, column: Column, anywhere: bool, pins: frozenset[str], solvers: Sequence[str]
) -> list[ProofReport]:
    """The proof, asynchronous and, where that goes through, synchronous."""
    early = 0 if "A1" in column.relaxed else 1
    assumed = replace(column.assumed(anywhere=anywhere, early_resume=early), pins=pins)
    reports: list[ProofReport] = []
    for asynchronous in (1, 0):
        terms = Terms(guard=guard, assumed=replace(assumed, asynchronous=asynchronous))
        reports.append(prove(terms, until_failure=True, solvers=solvers))
        if reports[-1].failed:
            break
    return reports


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence, and the solver's answer to its negation."""

    name: str
    phrase: str
    solved: Solved
    others: tuple[Decision, ...] = ()
    """The other solvers' answers."""

    @property
    def answer(self) -> str:
        """What all answers come to."""
        return agreed(self.solved, self.others)

    @property
    def proved(self) -> bool:
        """No numbers contradict it, by anybody's answer."""
        return self.answer == "unsat"

    @property
    def tally(self) -> Tally:
        """Who was asked, and what it cost."""
        return Tally.of(self.name, self.solved, self.others)


def decided(name: str, phrase: str, negated: list[Any], solvers: Sequence[str], budget: int = BUDGET) -> Fact:
    """The fact of which these formulas together are the negation, as each of the solvers sees it."""
    return Fact(name, phrase, *decide(negated, solvers, budget=budget))


def threshold_facts(terms: Terms, budget: int = BUDGET, solvers: Sequence[str] = ("z3",)) -> tuple[Fact, ...]:
    """What shows that *confirmed* is the weakest threshold for readers anywhere, and what its call site costs. For the
    relation's rules under these terms, whose lemmas are assumed."""
    assumed = replace(terms.assumed, reader="any")
    continuations = _continuations(replace(terms, assumed=assumed), budget, solvers)
    return (*continuations, _kept_for_nothing(terms, budget, solvers))


def _begun(terms: Terms, life: Life) -> bool:  # noqa: ARG001
    begun = life.there == 1 and life.start < life.counters.computed
    return begun and life.running == 1 and life.flight.active == 0


def _let_go(terms: Terms, life: Life) -> bool:
    return _begun(terms, life) and life.referenced == 0 and life.booked == 1


def _exposed(terms: Terms, life: Life) -> bool:  # noqa: ARG001
    return life.end > confirmed(life.counters) and life.end <= life.counters.computed


def _misses(terms: Terms, life: Life) -> bool:  # noqa: ARG001
    flight = life.flight
    return flight.present == 0 and life.start < flight.start + flight.tokens and life.end > flight.lowest


def _continuations(terms: Terms, budget: int, solvers: Sequence[str]) -> Iterator[Fact]:
    relation = Relation(terms)
    phases = {each.name: each.phases for each in TRANSITIONS}
    hypotheses = [relation.lemma(lemma) for lemma in LEMMAS]
    let_go, exposed = relation.formula("let go", _let_go), relation.formula("exposed", _exposed)
    going_on = relation.transition("evict, dispatch", (*phases["evict"], *phases["dispatch"]))
    tracked = symbol("?track", relation.context).term == 1
    count = symbol("?count", relation.context).term
    misses = going_on.moved(relation.formula("misses", _misses))
    released = [*hypotheses, let_go, tracked]
    flags = [z3.Int(f"?{name}", relation.context) for name in ("spared", "encoded", "ahead")]
    no_help = [flag == 0 for flag in flags]
    yield decided(
        "CONTINUATION",
        "whatever was begun and let go can be evicted, and a step of any length be dispatched next, where "
        "computed - placeholders < end <= computed",
        [*released, exposed, *no_help, count >= 1, z3.Not(going_on.enabled)],
        solvers,
        budget,
    )
    yield decided(
        "MISSED",
        "that step then reads from end - 1 what is not there",
        [*released, exposed, going_on.enabled, z3.Not(misses)],
        solvers,
        budget,
    )
    other = relation.transition("other output", phases["live-output"])
    kept = [other.moved(term) == term for term in _of_flight(relation.state)]
    outputs = [*hypotheses, (relation.state.flight.live == 1).term, other.enabled]
    own = symbol("?own", relation.context).term == 0
    yield decided(
        "STAYS-MISSED",
        "and the outputs of the steps before it change neither where it may begin nor what is on its shelf",
        [*outputs, own, z3.Not(z3.And(kept))],
        solvers,
        budget,
    )
    safe = going_on.moved(relation.lemma(GOAL))
    yield decided(
        "OTHERWISE-CHECKED",
        "everywhere else the next step finds the key, or does not read the item",
        [*released, z3.Not(exposed), going_on.enabled, z3.Not(safe)],
        solvers,
        budget,
    )


def _of_flight(life: Life) -> list[z3.ArithRef]:
    flight = life.flight
    return [value.term for value in (flight.present, flight.lowest, flight.start, flight.tokens)]  # type: ignore[attr-defined]


def _kept_for_nothing(terms: Terms, budget: int, solvers: Sequence[str]) -> Fact:
    """Inside output processing, before delivery, the guard still counts the output just accepted as promised."""
    context = fresh_context()
    counters = Counters(*(symbol(name, context) for name in Counters._fields))  # type: ignore[arg-type]
    end, tokens = symbol("end", context), symbol("tokens", context)
    before, after = GUARDS["confirmed"], WEAKEST["confirmed-after-delivery"]

    def otherwise() -> bool:
        if tokens < 0:
            return False
        later = terms.arithmetic.deliver(counters, tokens, 0, 0, 1)  # type: ignore[arg-type]
        kept = after.lets_go(later, end, 0, 0) and not before.lets_go(counters, end, 0, 0)  # type: ignore[arg-type]
        low = lifetime.confirmed(counters)
        inside = end > low and end <= low + tokens
        if kept:
            return not inside
        return bool(inside)

    return decided(
        "KEPT-FOR-NOTHING",
        "asked before delivery, as released, the guard keeps for nothing exactly what ends in "
        "(computed - placeholders, computed - placeholders + the tokens of this output]",
        [term_of(execute(otherwise, context=context).merge(), context)],
        solvers,
        budget,
    )


def ordered_by(weaker: Guard, stronger: Guard, where: Callable[[Life], bool], budget: int = BUDGET) -> Solved:
    """`unsat`: wherever UPKEEP and the queue's sums hold, and `where`, the stronger lets go only what the weaker
    does."""
    relation = Relation(Terms(guard=stronger))

    def only_one(terms: Terms, life: Life) -> bool:  # noqa: ARG001
        numbers = (life.counters, life.end, life.look_ahead, life.live_drafts)
        if where(life) and stronger.lets_go(*numbers):
            return not weaker.lets_go(*numbers)
        return False

    lemmas = [lemma for lemma in LEMMAS if lemma.name in (UPKEEP.name, "QUEUE", "NUMBERS", "TYPES")]
    return solve([*(relation.lemma(each) for each in lemmas), relation.formula("only one", only_one)], budget)
