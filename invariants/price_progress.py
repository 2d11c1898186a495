"""How small a cache, and how small a gap between two items, may be for a prompt to be computed to its end.

Belongs here: the formula, what the solver says of it for all numbers, and the grid on which the explorer confirms it.

Theory of operation
-------------------
Two items, the second `gap` tokens behind the first, and a cache that has not room for both. The gate cuts the chunk
before the second item: at its start, or a look-ahead before it, as most releases do (`cut`). There computed stays until
the first item is let go, with nothing promised and nothing in flight. So the prompt is computed to its end exactly if
the guard lets an item go that ends `gap - cut * look-ahead` below computed:

    gap >= (cut + own) * look-ahead

where `own` is 1 for a guard that counts the look-ahead itself. So the smallest cache is the larger of the two items
where the gap is that large, and both together where it is not. With a guard that never lets go both have to fit. Of a
guard that is asked before the advance the formula does not speak: whether it is asked once more before the last chunk
depends on the budget.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from outlives.model.lifetime import Counters, Guard
from outlives.model.profiles import PROFILES
from outlives.model.setup import RARE_ROUTES, Item, RequestSetup, Setup, key_name
from outlives.model.world import World

from .explore import Bounds, breadth_first
from .proof.executor import execute, symbol, term_of
from .proof.solvers import fresh_context
from .proof.weakest import Fact, decided
from .table_stuck import BegunIn

__all__ = ["CUTS", "GRID", "Point", "confirmed_by_search", "factor_and_facts", "is_spoken_of", "least_gap_factor"]
__all__ += ["progresses", "setup_of"]

CUTS: Final = (0, 1)
"""The chunk is cut at the second item's start (`repaired`, 0.33.0), or a look-ahead before it."""
_MOST_FACTOR: Final = 2
_MOST_STATES: Final = 50_000


class Point(NamedTuple):
    """Where the formula is put to the test."""

    look_ahead: int
    gap: int
    first: int
    """Slots and tokens of the first item."""
    second: int
    slots: int
    budget: int


GRID: Final = tuple(
    Point(look_ahead, gap, first, second, slots, budget)
    for look_ahead in (0, 1, 2)
    for gap in range(6)
    for first, second in ((2, 2), (1, 3))
    for slots in (3, 4)
    for budget in (3, 16)
)
"""Room for one of the items, or for both; budgets in which the prompt takes several passes, and one."""


def least_gap_factor(guard: Guard, cut: int) -> int | None:
    """The number f of the formula: stuck exactly if gap < f * look-ahead, where there is room for one item. Found and
    proved by the solver for all numbers; None: stuck with every gap."""
    return factor_and_facts(guard, cut)[0]


def factor_and_facts(guard: Guard, cut: int, solvers: Sequence[str] = ("z3",)) -> tuple[int | None, tuple[Fact, ...]]:
    """The same, by each of the solvers, with what was asked of them: of one number after the other, whether it is f."""
    facts = []
    for factor in range(_MOST_FACTOR + 1):
        facts.append(_is_the_factor(guard, cut, factor, solvers))
        if facts[-1].proved:
            return factor, tuple(facts)
    return None, tuple(facts)


def _is_the_factor(guard: Guard, cut: int, factor: int, solvers: Sequence[str]) -> Fact:
    context = fresh_context()
    end, gap, ahead, known = (symbol(name, context) for name in ("end", "gap", "look_ahead", "known"))

    def otherwise() -> bool:
        if end < 1 or gap < 0 or ahead < 0 or gap < cut * ahead - end:
            return False
        resting = Counters(end + gap - cut * ahead, 0, 0, 0, known)  # type: ignore[arg-type]
        if guard.lets_go(resting, end, ahead, 0):  # type: ignore[arg-type]
            return bool(gap < factor * ahead)
        return bool(gap >= factor * ahead)

    negated = [term_of(execute(otherwise, context=context).merge(), context)]
    name = f"{guard.name}, cut {cut}, gap >= {factor}L"
    return decided(name, "the prompt is computed to its end exactly then", negated, solvers)


def progresses(guard: Guard, cut: int, point: Point) -> bool:
    """What the formula says of a point."""
    if max(point.first, point.second) > point.slots:
        return False
    if point.first + point.second <= point.slots:
        return True
    factor = least_gap_factor(guard, cut)
    return factor is not None and point.gap >= factor * point.look_ahead


def setup_of(point: Point) -> Setup:
    """The numbers of a run there: one request whose second item ends its prompt."""
    second = point.first + point.gap
    items = (
        Item(0, point.first, key_name(0), point.first),
        Item(second, point.second, key_name(1), point.second),
    )
    prompt = second + point.second
    return Setup(
        (RequestSetup(prompt, 1, items),),
        slots=point.slots,
        budget=point.budget,
        look_ahead=point.look_ahead,
        left_out=RARE_ROUTES,
    )


def is_spoken_of(guard: Guard) -> bool:
    """Whether the formula is about the guard: it is asked where computed has come to rest."""
    return guard.site != "before-advance"


def confirmed_by_search(guard: Guard, cut: int, points: tuple[Point, ...] = GRID) -> Iterator[tuple[Point, bool, bool]]:
    """For each point: what the formula says, and what every state of the run's setup says. Nothing where the formula
    does not speak of the guard."""
    if not is_spoken_of(guard):
        return
    profile = PROFILES["repaired"]
    world = World(
        rules=profile.rules,
        switches=replace(profile.switches, cut_look_ahead=cut),
        guard=guard,
        closed=frozenset({"preempt", "abort"}),
    )
    factor = least_gap_factor(guard, cut)
    for point in points:
        room = point.first + point.second <= point.slots
        said = room or (factor is not None and point.gap >= factor * point.look_ahead)
        model = BegunIn(world, False, "PROGRESS", [setup_of(point)])
        found = breadth_first(model, bounds=Bounds(states=_MOST_STATES), properties=("PROGRESS",))
        yield point, said, not found.traces
