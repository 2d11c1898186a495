"""Random scopes of the scheduler, and everything that the engines say to each of them, held against each other.

Belongs here: how a scope is drawn, and `agreement`; the tests are in `test_agreement.py`. A case is drawn from
its number alone, so that a figure can be had again.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from outlives.invariants.agreement import keeps_assumptions, machine_says, relation_says
from outlives.invariants.explore import Bounds, Exploration, explore
from outlives.invariants.machine_shrink import Witness, cut_to_failure, shrink_witness
from outlives.invariants.proof.cells import Column
from outlives.invariants.proof.life import Arithmetic, Terms
from outlives.invariants.proof.theorem import prove
from outlives.invariants.proof.tie import untied
from outlives.invariants.verdict import Trace, Verdict
from outlives.model.contract import Refusal
from outlives.model.lifetime import GUARDS
from outlives.model.profiles import PROFILES
from outlives.model.setup import RARE_ROUTES, Item, RequestSetup, Setup, key_name
from outlives.model.world import World
from worlds import FixedModel

__all__ = ["Agreed", "Case", "agreement", "drawn"]

GATHER = "GATHER-AFTER-FREE"
LEAST, MOST = 1_000, 2_500
"""States of a scope; a drawn one with fewer or more is left out, as saying too little or taking too long."""
ALL = 10
"""Times as many states may the scope have with executing and processing as two actions."""
WALKED = 200
"""Steps of the random walk that are held against the proved relation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One scope: a scheduler under assumptions, and one setup."""

    number: int
    profile: str
    guard: str
    relaxed: tuple[str, ...]
    reader: str
    closed: tuple[str, ...]
    anywhere: bool
    setup: Setup

    def model(self, *, split: bool = False) -> FixedModel:
        """The case as a model."""
        return FixedModel(self.world(split), [self.setup], anywhere=self.anywhere)

    def world(self, split: bool = False) -> World:
        """The case's world."""
        profile = PROFILES[self.profile]
        return World(
            rules=profile.rules,
            switches=profile.switches,
            guard=GUARDS[self.guard],
            relaxed=frozenset(self.relaxed),
            reader=self.reader,  # type: ignore[arg-type]
            closed=frozenset(self.closed) | frozenset(RARE_ROUTES),
            split=split,
            policy="fcfs",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreed:
    """What came of a case."""

    case: Case
    states: int
    split_states: int
    violated: tuple[str, ...]
    proved: bool
    tied: int
    """Steps held against the proved relation."""
    machine: int
    """Violations that a random walk met too."""
    disagreements: tuple[str, ...]


def drawn(number: int) -> Case:
    """The case of that number."""
    draw = random.Random(number)
    profile = draw.choice(list(PROFILES))
    guard = PROFILES[profile].guard.name if draw.random() < 0.5 else draw.choice(list(GUARDS))
    reader = draw.choice(("checked", "checked", "true", "any"))
    relaxed = {name for name in ("A1", "A2", "A4") if draw.random() < 0.12} | ({"A3"} if reader != "checked" else set())
    closed = tuple(route for route in ("preempt", "abort") if draw.random() < 0.25)
    anywhere = draw.random() < 0.4
    items = []
    end = 0
    for at in range(draw.choice((1, 1, 2))):
        start = end + draw.randint(0, 2)
        end = start + draw.randint(1, 3)
        items.append(Item(start, end - start, key_name(at), end - start))
    prompt = draw.randint(1, 5) if anywhere else end + draw.randint(0, 2)
    largest = max(item.length for item in items)
    whole = 0 if anywhere else draw.choice((0, 0, 1))
    setup = Setup(
        requests=(RequestSetup(prompt, draw.randint(2, 5), tuple(items)),),
        slots=largest + draw.randint(0, 3),
        budget=draw.randint(largest, 6) if whole else draw.randint(2, 6),
        drafts=draw.randint(0, 2),
        look_ahead=draw.randint(0, 1),
        depth=draw.choice((2, 2, 3)),
        whole_items=whole,
        strangers=draw.choice((0, 0, 1)),
    )
    names = tuple(sorted(relaxed))
    return Case(number=number, profile=profile, guard=guard, relaxed=names, reader=reader, closed=closed,
                anywhere=anywhere, setup=setup)  # fmt: skip


@cache
def _proved(guard: str, relaxed: tuple[str, ...], reader: str, closed: tuple[str, ...], anywhere: bool) -> bool:
    """As the command's proof engine asks it."""
    column = Column(name="", phrase="", relaxed=frozenset(relaxed), reader=reader, closed=frozenset(closed))  # type: ignore[arg-type]
    assumed = column.assumed(anywhere=anywhere, early_resume=0 if "A1" in relaxed else 1)
    return (
        prove(Terms(guard=GUARDS[guard], arithmetic=Arithmetic(), assumed=assumed), until_failure=True).verdict
        is Verdict.PROVED
    )


def agreement(case: Case) -> Agreed | None:
    """Everything about one case; None where its scope is too small or too large."""
    model = case.model()
    found = explore(model, bounds=Bounds(states=MOST))
    if not found.complete or found.states < LEAST:
        return None
    split = explore(case.model(split=True), bounds=Bounds(states=ALL * MOST))
    assert split.complete
    proved = _proved(case.guard, case.relaxed, case.reader, case.closed, case.anywhere)
    checked = keeps_assumptions(model.world)
    walked = list(_walk(case, WALKED)) if checked else []
    machine = {name: length for name, trace in found.traces.items() if (length := _machine(model, trace)) is not None}
    told = [
        *_replays(model, found),
        *_replays(case.model(split=True), split),
        *(["proved, and yet violated"] if proved and checked and GATHER in found.traces else []),
        *(f"{action}: {difference}" for action, difference in walked if difference),
        *_reduction(found, split),
        *(
            f"{name}: a random walk, shrunk, has {length} actions, the search {len(found.traces[name].actions)}"
            for name, length in machine.items()
            if length < len(found.traces[name].actions)
        ),
    ]
    return Agreed(
        case=case,
        states=found.states,
        split_states=split.states,
        violated=tuple(found.traces),
        proved=proved,
        tied=len(walked),
        machine=len(machine),
        disagreements=tuple(f"case {case.number}: {each}" for each in told),
    )


def _replays(model: FixedModel, found: Exploration) -> Iterator[str]:
    """Each violation is possible for the machine, and (of reads) for the proof's relation."""
    for prop in model.properties():
        trace = found.traces.get(prop.name)
        if trace is None:
            continue
        said = machine_says(model, prop, trace)
        if said:
            yield f"{prop.name}: the machine's replay differs at {said}"
        if prop.name == GATHER and keeps_assumptions(model.world):
            said = relation_says(model.world, trace)
            if said:
                yield f"{prop.name}: {said}"


def _reduction(found: Exploration, split: Exploration) -> Iterator[str]:
    """One action or two: the same verdicts, and shortest runs that differ by the added actions only."""
    if set(found.traces) != set(split.traces):
        yield f"merged violates {sorted(found.traces)}, split {sorted(split.traces)}"
    for name in found.traces.keys() & split.traces.keys():
        one, two = found.traces[name].actions, split.traces[name].actions
        outputs, processed = (sum(action.name in ("accept", "reject") for action in each) for each in (one, two))
        executed = sum(action.name == "execute" for action in two)
        # Where the engine dies in a step, that step is executed and not processed: merged, its output is one action.
        dead = bool(found.traces[name].steps[-1].state.misses)
        if len(two) > len(one) + outputs - int(dead):
            yield f"{name}: {len(one)} actions with {outputs} outputs merged, and yet {len(two)} split"
        # And every step before it has to be processed too, where two actions leave that for later.
        if len(one) > len(two) - (processed if dead else executed):
            yield f"{name}: {len(two)} actions with {executed} executions split, and yet {len(one)} merged"


def _walk(case: Case, steps: int) -> Iterator[tuple[str, str]]:
    """(action, why it is no step of the proved relation, or nothing) along random runs of so many steps in all."""
    model = case.model()
    draw = random.Random(case.number)
    (initial,) = model.initial_states()
    state = initial
    for _ in range(steps):
        offered = [(action, after) for action in model.actions(state)
                   if not isinstance(after := model.next_state(state, action), Refusal)]  # fmt: skip
        if not offered or state.misses:
            state = initial
            continue
        action, after = draw.choice(offered)
        yield str(action), next(untied(model.world, state, action, after), "")
        state = after


def _machine(model: FixedModel, known: Trace) -> int | None:
    """The length to which a violation that random runs meet shrinks; None where they meet none."""
    prop = next(each for each in model.properties() if each.name == known.property)
    draw = random.Random(7)
    (initial,) = model.initial_states()
    for _ in range(40):
        state, actions = initial, []
        for _ in range(25):
            offered = list(model.actions(state))
            if not offered:
                break
            action = draw.choice(offered)
            after = model.next_state(state, action)
            if not isinstance(after, Refusal):
                actions.append(action)
                state = after
        cut = cut_to_failure(model, prop, Witness(None, initial, tuple(actions)))
        if cut is not None:
            return len(shrink_witness(model, prop, cut, 300)[0].actions)
    return None
