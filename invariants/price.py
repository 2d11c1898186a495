"""What a guard costs in slots: how long it holds what nobody will read unchecked any more.

Belongs here: the count over the whole state graph of a scope (`price`), and the scopes in which it is taken.

Theory of operation
-------------------
A baseline guard says from when on an item may go: the weakest one known to be safe under the assumptions at hand. A
slot-step is one slot that is held in one pass although the baseline would have let it go: the pass could have used it.
Every state of the scope is visited under the guard that is asked about, with no preemption, abort, stop token or prefix
hit, so that runs differ in drafts, acceptance and order alone. `least` and `most` are over all runs from the beginning
to the end of the request: exact, the shortest and the longest way through the graph. Where the guard lets an item go
before the baseline does, it is `early` there: cheaper, and not known to be safe.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from outlives.model.book import live_drafts
from outlives.model.contract import Refusal
from outlives.model.lifetime import WEAKEST, Guard
from outlives.model.profiles import PROFILES
from outlives.model.scheduler import SchedulerModel, initial_state
from outlives.model.setup import RARE_ROUTES, Item, RequestSetup, Scope, Setup, key_name
from outlives.model.state import RUNNING, State, items_of
from outlives.model.world import World

from .proof.weakest import AT_ONCE

__all__ = ["PRICED", "Price", "Priced", "price"]

_CLOSED: Final = frozenset({"preempt", "abort"})
_MOST_STATES: Final = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A scope in which guards are priced, under assumptions that have a weakest known safe guard."""

    name: str
    baseline: Guard
    setup: Setup
    anywhere: bool


class Price(NamedTuple):
    """What one guard costs in one scope."""

    least: int
    """Slot-steps, in the run that is held up least."""
    most: int | None
    """And in the one that is held up most; None: there is no bound."""
    early: bool
    """In some state it lets go what the baseline keeps."""
    states: int


def _setup(end: int, prompt: int, outputs: int, budget: int, drafts: int, look_ahead: int) -> Setup:
    item = Item(0, end, key_name(0), end)
    asked = RequestSetup(prompt, outputs, (item,))
    return Setup((asked,), slots=end, budget=budget, drafts=drafts, look_ahead=look_ahead, left_out=RARE_ROUTES)


PRICED: tuple[Priced, ...] = (
    Priced(name="A1-A4, in the prompt", baseline=AT_ONCE, setup=_setup(4, 6, 3, 2, 1, 1), anywhere=False),
    Priced(
        name="A3 any, in the prompt",
        baseline=WEAKEST["confirmed-after-delivery"],
        setup=_setup(4, 6, 3, 2, 1, 1),
        anywhere=False,
    ),
    Priced(
        name="A3 any, anywhere",
        baseline=WEAKEST["confirmed-after-delivery"],
        setup=_setup(3, 1, 5, 4, 2, 1),
        anywhere=True,
    ),
    Priced(name="A3 true, anywhere", baseline=WEAKEST["true-window"], setup=_setup(3, 1, 5, 4, 2, 1), anywhere=True),
)
"""In each, one item; the cache has room for it alone."""


def held_for_nothing(state: State, baseline: Guard) -> int:
    """Slots of entries that requests reference although the baseline would let them go, as the state stands."""
    slots = 0
    for number, request in enumerate(state.requests):
        if request.status == RUNNING:
            drafts = live_drafts(state.steps, number)
            items = items_of(state.setup, request, number)
            for index in request.references:
                if baseline.lets_go(request.counters, items[index].end, state.setup.look_ahead, drafts):
                    slots += items[index].size
    return slots


def _let_go_early(before: State, after: State, baseline: Guard) -> bool:
    """A running request dropped a reference that the baseline keeps, before and after."""
    for number, (was, now) in enumerate(zip(before.requests, after.requests, strict=True)):
        if was.status == now.status == RUNNING:
            items = items_of(after.setup, now, number)
            drafts = live_drafts(after.steps, number)
            for index in set(was.references) - set(now.references):
                if not baseline.lets_go(now.counters, items[index].end, after.setup.look_ahead, drafts):
                    return True
    return False


def price(guard: Guard, scope: Priced) -> Price:
    """What the guard costs in the scope. Raises `ValueError` where the scope is too large to be seen whole."""
    profile = PROFILES["repaired"]
    world = World(
        rules=profile.rules,
        switches=profile.switches,
        guard=guard,
        relaxed=frozenset({"A3"}),
        reader="true",
        closed=_CLOSED,
    )
    model = SchedulerModel(world, Scope(anywhere=scope.anywhere))
    first = initial_state(scope.setup)
    edges: dict[State, list[tuple[int, State]]] = {}
    early = False
    front = [first]
    while front:
        state = front.pop()
        if state in edges:
            continue
        if len(edges) >= _MOST_STATES:
            raise ValueError(f"{scope.name} has more than {_MOST_STATES:,} states")
        edges[state] = []
        held = held_for_nothing(state, scope.baseline)
        for after in _following(model, state):
            edges[state].append((held if len(after.steps) > len(state.steps) else 0, after))
            early = early or _let_go_early(state, after, scope.baseline)
            front.append(after)
    least, most = _extremes(edges, first)
    return Price(least=least, most=most, early=early, states=len(edges))


def _following(model: SchedulerModel, state: State) -> Iterator[State]:
    for action in model.actions(state):
        if action.name == "finish" or action.get("kept", 0) != 0:
            continue  # no stop token and no prefix hit: runs compute everything, so that they can be compared
        after = model.next_state(state, action)
        if not isinstance(after, Refusal) and after != state and not after.misses:
            yield after


def _extremes(edges: dict[State, list[tuple[int, State]]], first: State) -> tuple[int, int | None]:
    """The least and the most weight of a way from the first state to one without a way on.

    States that lead to each other are one knot (what an environment may choose again and again), and knots come here
    last one first, so that whatever follows a knot is known. A knot with weight inside has no most.
    """
    least: dict[int, int] = {}
    most: dict[int, int | None] = {}
    knot_of: dict[State, int] = {}
    for number, knot in enumerate(_knots(edges, first)):
        knot_of |= dict.fromkeys(knot, number)
        onwards = [(weight, knot_of[after]) for state in knot for weight, after in edges[state]]
        out = [(weight, after) for weight, after in onwards if after != number]
        least[number] = min((weight + least[after] for weight, after in out), default=0)
        ways = [None if (rest := most[after]) is None else weight + rest for weight, after in out]
        endless = None in ways or any(weight > 0 for weight, after in onwards if after == number)
        most[number] = None if endless else max((way for way in ways if way is not None), default=0)
    return least[knot_of[first]], most[knot_of[first]]


def _knots(edges: dict[State, list[tuple[int, State]]], first: State) -> Iterator[list[State]]:
    """Strongly connected components, each after those that it leads to (Tarjan, without recursion)."""
    index: dict[State, int] = {first: 0}
    low: dict[State, int] = {first: 0}
    open_states, still = [first], {first}
    work = [(first, iter(edges[first]))]
    while work:
        state, ways = work[-1]
        for _, after in ways:
            if after not in index:
                index[after] = low[after] = len(index)
                open_states.append(after)
                still.add(after)
                work.append((after, iter(edges[after])))
                break
            if after in still:
                low[state] = min(low[state], index[after])
        else:
            work.pop()
            if work:
                parent = work[-1][0]
                low[parent] = min(low[parent], low[state])
            if low[state] == index[state]:
                at = open_states.index(state)
                knot, open_states = open_states[at:], open_states[:at]
                still -= set(knot)
                yield knot
