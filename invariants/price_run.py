"""`outlives table --price`: what each guard costs, in slots held for nothing and in cache that a prompt needs.

Belongs here: the tables, and what is said where the explorer contradicts the formula. The counts are in `price`, the
formula in `price_progress`.
"""

from collections.abc import Sequence

from outlives.model.lifetime import Guard, guard_named

from .price import PRICED, Price, price
from .price_progress import CUTS, confirmed_by_search, factor_and_facts, is_spoken_of
from .proof.solvers import Tally
from .proof.weakest import Fact
from .report import DataTable, Reporter
from .report.content import setup_words
from .report.tables import tally_notes
from .verdict import Verdict, exit_status

__all__ = ["price_table", "progress_table", "show_prices"]


def show_prices(guards: Sequence[str], reporter: Reporter, solvers: Sequence[str] = ("z3",)) -> int:
    """Both tables; returns the exit status: 5 where a search contradicts the formula, or solvers each other. Each of
    the solvers decides the formula."""
    with reporter.progress(2 * len(guards), "price") as advance:
        prices = []
        for number, name in enumerate(guards, start=1):
            prices.append([price(guard_named(name), scope) for scope in PRICED])
            advance(number, name)
        reporter.table(price_table(guards, prices))
        factors: list[tuple[int | str | None, ...]] = []
        points, contradicted = 0, []
        facts: list[Fact] = []
        for number, name in enumerate(guards, start=1):
            guard = guard_named(name)
            factors.append(tuple(_factor(guard, cut, solvers, facts) for cut in CUTS))
            for cut in CUTS:
                for point, said, seen in confirmed_by_search(guard, cut):
                    points += 1
                    if said is not seen:
                        contradicted.append(f"{name}, cut {cut}: {point}")
            advance(len(guards) + number, name)
    reporter.table(progress_table(guards, factors, points - len(contradicted), points))
    for each in contradicted:
        reporter.say(f"The explorer contradicts the formula: {each}.")
    tally = Tally().plus(*(fact.tally for fact in facts))
    for note in tally_notes("Questions of the formula", tally, solvers):
        reporter.say(note)
    contradicted += [fact.name for fact in facts if fact.answer == "contradicted"]
    return reporter.finish(exit_status([Verdict.DISAGREE if contradicted else Verdict.EXHAUSTED]))


def price_table(guards: Sequence[str], prices: Sequence[Sequence[Price]]) -> DataTable:
    """A row for each guard, a column for each scope."""
    scopes = [
        f"{scope.name}: held longer than by {scope.baseline.name} ({scope.baseline.formula}); every state, at most "
        f"{max((row[at].states for row in prices), default=0):,} of: {setup_words(scope.setup)}"
        for at, scope in enumerate(PRICED)
    ]
    return DataTable(
        name="price",
        title="Price: slot-steps that a guard holds beyond the earliest safe release, least to most over all runs",
        columns=("guard", *(scope.name for scope in PRICED)),
        rows=tuple((name, *map(_words, row)) for name, row in zip(guards, prices, strict=True)),
        legend=(
            *scopes,
            "a slot-step: one slot that one pass could not use; runs to the end without preemption, abort, stop token "
            "or prefix hit, drafts and their acceptance free; early: in some state it lets go what the baseline keeps",
            "a price says nothing of safety: a guard that is UNSAFE after a preemption alone looks safe here",
        ),
    )


def _words(found: Price) -> str:
    most = "no bound" if found.most is None else str(found.most)
    span = most if str(found.least) == most else f"{found.least} to {most}"
    return f"{span}, early" if found.early else span


def progress_table(
    guards: Sequence[str], factors: Sequence[Sequence[int | str | None]], confirmed: int, points: int
) -> DataTable:
    """A row for each guard: the gap below which a prompt is stuck with room for one of two items."""
    return DataTable(
        name="progress-formula",
        title="Two items, room for the larger one alone: the prompt is never computed to its end exactly if",
        columns=("guard", "chunk cut at the second item", "cut a look-ahead before it"),
        rows=tuple((name, *map(_condition, row)) for name, row in zip(guards, factors, strict=True)),
        legend=(
            "gap: tokens between the two items; L: the look-ahead. Where it is not stuck the smallest cache is the "
            "larger item, else both together; proved of the guard for all numbers, with nothing promised or in flight",
            f"confirmed by every state of {confirmed:,} of {points:,} setups: gap 0 to 5, L 0 to 2, room for one item "
            "and for both, prompts in one pass and in several",
        ),
    )


def _factor(guard: Guard, cut: int, solvers: Sequence[str], facts: list[Fact]) -> int | str | None:
    """What stands in the table; what was asked for it goes to the facts."""
    if not is_spoken_of(guard):
        return "depends on the budget"
    factor, asked = factor_and_facts(guard, cut, solvers)
    facts += asked
    return factor


def _condition(factor: int | str | None) -> str:
    if isinstance(factor, str):
        return factor
    if factor is None:
        return "always"
    return {0: "never", 1: "gap < L"}.get(factor, f"gap < {factor}L")
