"""Conformance: a profile and the real release take the same actions, and every observable is compared after each.

Theory of operation
-------------------
Two schedulers side by side are again a model of the contract: its state is the pair, its one property that the two are
alike. So the machine that draws runs, the shrinker and the traces serve here unchanged. A pair that differs is over:
nothing is compared after the first difference, which is named with the field and both values.

What is compared: per request status, computed, placeholders, in flight, stale, known, drafts and references; running in
order; waiting in the order in which it is served; the book's entries with holders, the idle order, evicted keys, free
and reclaimable slots; for each step in flight its parts (start, tokens, drafts, whether it samples, promises, lowest,
first, live), planned encodes and announced keys; the worker's shelf; misses; and whether an action was
refused, and why.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, NamedTuple

from outlives.model.contract import Action, Argument, Choice, Property, Range, Refusal
from outlives.model.describe import describe
from outlives.model.scheduler import SchedulerModel, initial_state
from outlives.model.setup import Scope, Setup, request_name
from outlives.model.state import FINISHED, State, items_of
from outlives.model.world import World

from ..machine_shrink import Witness, cut_to_failure, shrunk_trace
from ..verdict import Trace
from .live import ALIKE, CACHING, Observed, SubjectModel, on_or_off, with_hits
from .subject import Failure, Subject
from .vllm_routes import SHARED_BLOCK

__all__ = ["ALIKE", "IDLE", "RUN_LENGTH", "Conformance", "Difference", "Drawer", "Pair", "PairModel", "conform"]
__all__ += ["differences", "drawn", "observables"]


class Difference(NamedTuple):
    """One observable that is not the same in both."""

    field: str
    """E.g. `r0.computed`, `book.idle`, `steps[1].parts`, `refused`."""
    model: str
    real: str

    def __str__(self) -> str:
        return f"{self.field}: {self.model} in the model, {self.real} in the release"


class Pair(NamedTuple):
    """The two states after the same actions."""

    model: State
    real: Observed
    differs: tuple[Difference, ...] = ()

    @property
    def setup(self) -> Setup:
        """The numbers of both."""
        return self.model.setup


def differences(
    model: State, real: State, *, held_first: bool = True, items_known: bool = True
) -> tuple[Difference, ...]:
    """Every observable that differs.

    `held_first`: waiting requests that hold KV blocks are served first. `items_known` is False where a release keeps
    only who references a key, not with which of its items: then a request's references are compared by key.
    """
    if model == real:
        return ()
    return tuple(
        Difference(name, _text(mine), _text(theirs))
        for (name, mine), (_, theirs) in zip(
            observables(model, held_first, items_known), observables(real, held_first, items_known), strict=True
        )
        if mine != theirs
    )


def observables(state: State, held_first: bool, items_known: bool) -> Iterator[tuple[str, Any]]:
    """Every observable of a state, named. Both flags as in `differences`."""
    setup = state.setup
    for number, request in enumerate(state.requests):
        name = request_name(number)
        yield f"{name}.status", request.status
        for part, value in request.counters._asdict().items():
            yield f"{name}.{part}", value
        references: Any = request.references
        if not items_known:
            references = sorted({items_of(setup, request, number)[item].key for item in references})
        yield f"{name}.references", references
        if request.status != FINISHED:
            yield f"{name}.drafts", request.drafts
            yield f"{name}.decoding", request.decoding
            yield f"{name}.drop", request.drop if request.counters.stale > 0 else 0
            for part in ("turn", "extra", "limit", "frames", "lost"):
                yield f"{name}.{part}", getattr(request, part)
        else:
            yield from ((f"{name}.{part}", 0) for part in _OF_LIVING)
    yield "running", state.running
    waiting = list(state.waiting)
    if setup.by_priority == 1:
        waiting.sort(key=lambda number: (setup.requests[number].priority, number))
    if held_first:
        waiting.sort(key=lambda number: state.requests[number].counters.computed == 0)
    yield "waiting", tuple(waiting)
    for part in ("entries", "idle", "evicted", "free", "reclaimable", "strangers", "due"):
        yield f"book.{part}", getattr(state.book, part)
    yield "steps in flight", len(state.steps)
    for place in range(8):
        step = state.steps[place] if place < len(state.steps) else None
        for part in ("parts", "encode", "drop", "executed", "clear"):
            value = None if step is None else getattr(step, part)
            if part == "parts" and step is not None:
                value = tuple(each._replace(rejected=0) for each in step.parts)
            yield f"steps[{place}].{part}", value
    yield "shelf", state.shelf
    yield "misses", state.misses


_OF_LIVING = ("drafts", "decoding", "drop", "turn", "extra", "limit", "frames", "lost")
"""Of a request that is over, these say nothing."""


def _text(value: Any) -> str:
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return f"({', '.join(_text(each) for each in value)})"
    return str(value)


def foretold(before: State, after: State, failure: Failure) -> bool:
    """Whether an exception of the release is what the model shows as a state: a counter below zero is, in the release,
    a failed assertion. The run ends there, and nothing differs.

    Wider than it need be in one place: of a request that finishes with the very output that takes its placeholders
    below zero the model keeps no counters, so there its finishing is enough. And an admission that is padded and then
    cut by the chunk cap ends the engine from 0.32.0 on (finding 16), where the model shows one that was cut.
    """
    if not failure.what.startswith("AssertionError"):
        return False
    if _CUT_AFTER_PADDING in failure.where and _padded_and_cut(after):
        return True
    if any(min(request.counters) < 0 for request in after.requests):
        return True
    ended = any(
        old.status != FINISHED and new.status == FINISHED
        for old, new in zip(before.requests, after.requests, strict=True)
    )
    return ended and "num_output_placeholders >= 0" in failure.where


_CUT_AFTER_PADDING = "num_new_tokens == 1 + self.num_spec_tokens"


def _padded_and_cut(after: State) -> bool:
    """Whether the pass admitted somebody who lacked one token, where padding does not fit under the chunk cap."""
    setup = after.setup
    if not after.steps or not 0 < setup.chunk_cap <= setup.drafts:
        return False
    admitted = [part for part in after.steps[-1].parts if part.first > 0]
    return any(part.sampled == 1 and part.tokens == 1 + part.drafts <= setup.chunk_cap for part in admitted)


class PairModel(SchedulerModel):
    """A model and a subject as one. Which actions are worth trying, the model says."""

    def __init__(self, subject: Subject, world: World, scope: Scope, *, items_known: bool = True) -> None:
        super().__init__(world, scope)
        self.real = SubjectModel(subject, world, scope)
        self._items_known = items_known

    def properties(self) -> Sequence[Property[Any]]:
        """That the two are alike."""
        return (ALIKE,)

    def initial_states(self) -> Iterable[Any]:
        """The start of the scope's lowest numbers."""
        return (self.initial_state({}),)

    def initial_state(self, arguments: Mapping[str, Argument]) -> Any:
        """Both at the start of the setup with these numbers."""
        numbers = self.settled(arguments)
        return self.begin(super().initial_state(numbers).setup, caching=numbers.get(CACHING) == on_or_off(True))

    def settled(self, arguments: Mapping[str, Argument]) -> Mapping[str, Argument]:
        """As the real scheduler's."""
        return self.real.settled(arguments)

    @property
    def setup_table(self) -> Mapping[str, Range | Choice]:
        """The numbers of a run, those of the real scheduler alone among them."""
        return self.real.setup_table

    def begin(self, setup: Setup, *, caching: bool = False) -> Pair:
        """Both at the start of this setup; the release with a prefix cache of its own or without."""
        return self._pair(initial_state(setup), self.real.begin(setup, caching=caching))

    def within(self, state: Any) -> bool:
        """Nothing is compared after the first difference, nor on a dead engine."""
        return not state.differs and self.real.within(state.real)

    def actions(self, state: Any) -> Iterator[Action]:
        """Those of the model."""
        return super().actions(state.model)

    def fair_action(self, state: Any) -> Action | None:
        """That of the model."""
        if state.differs:
            return None
        return _FairView(self).fair_action(state.model)

    def next_state(self, state: Any, action: Action) -> Any:
        """Both take the action. What a prefix cache of the release's own answered in it, the model is told."""
        if not self.within(state):
            return Refusal("over")
        real = self.real.next_state(state.real, action)
        if isinstance(real, Refusal) and real.reason == SHARED_BLOCK:
            return real
        told = with_hits(action, self.real.last_hits) if state.real.caching else action
        model = super().next_state(state.model, told)
        if isinstance(model, Refusal) or isinstance(real, Refusal):
            mine = model.reason if isinstance(model, Refusal) else "taken"
            theirs = real.reason if isinstance(real, Refusal) else "taken"
            if mine == theirs:
                return Refusal(mine)
            if isinstance(real, Observed) and real.failure is not None:
                theirs = str(real.failure)
            after = state.model if isinstance(model, Refusal) else model
            seen = real if isinstance(real, Observed) else state.real
            return Pair(after, seen, (Difference("refused", mine, theirs),))
        assert isinstance(real, Observed)
        return self._pair(model, real, state.model)

    def describe(self, state: Any) -> Mapping[str, Any]:
        """The model's state as plain values, and what differs."""
        differs = {"differs": tuple(map(str, state.differs))} if state.differs else {}
        return {**describe(state.model), **differs}

    def _pair(self, model: State, real: Observed, before: State | None = None) -> Pair:
        if real.failure is not None:
            if before is not None and foretold(before, model, real.failure):
                return Pair(model, real)
            return Pair(model, real, (Difference("exception", "none", str(real.failure)),))
        held_first = self.world.switches.held_first == 1
        found = differences(model, real, held_first=held_first, items_known=self._items_known)
        return Pair(model, real, found)


class _FairView(SchedulerModel):
    """The plain model behind a pair, for its fair action."""

    def __init__(self, pair: PairModel) -> None:
        super().__init__(pair.world, pair.scope)


_ENDS = ("abort", "finish")
"""Actions that end a request: drawn less often, so that runs get somewhere."""
RUN_LENGTH = 60
"""Actions that a run takes at most."""
IDLE = 25
"""A run ends after so many refused ones in a row."""


@dataclass(slots=True)
class Conformance:
    """What a conformance run saw."""

    steps: int = 0
    """Compared actions, refused ones not counted."""
    runs: int = 0
    refused: int = 0
    seconds: float = 0.0
    fired: Counter[str] = field(default_factory=Counter)
    after: Counter[str] = field(default_factory=Counter)
    """Compared steps taken after each of these had happened in the run: rejection, in-pass preemption, ..."""
    trace: Trace | None = None
    """The first difference, shrunk; None: there was none."""
    differs: tuple[Difference, ...] = ()
    caching: bool = False
    """The release has a prefix cache of its own in that trace."""


def conform(
    model: PairModel,
    steps: int,
    seed: int = 0,
    *,
    run_length: int = RUN_LENGTH,
    shrink: int = 3000,
    tell: Callable[[int], None] = lambda _: None,
) -> Conformance:
    """Random runs of both, until `steps` actions were compared or something differs. `tell` hears how many were."""
    choose = random.Random(seed)
    record = Conformance()
    began = perf_counter()
    draw = Drawer(model, choose)
    while record.steps < steps:
        setup = {name: drawn(span, choose) for name, span in model.setup_table.items()}
        begin = state = model.initial_state(setup)
        record.runs += 1
        tell(record.steps)
        taken: list[Action] = []
        met: set[str] = set()
        idle = 0
        while len(taken) < run_length and idle < IDLE and model.within(state):
            action = draw(state)
            after = model.next_state(state, action)
            if isinstance(after, Refusal):
                record.refused += 1
                idle += 1
                continue
            idle = 0
            met |= _happened(state, action, after)
            taken.append(action)
            record.steps += 1
            record.fired[action.name] += 1
            record.after.update(met)
            state = after
        if state.differs:
            found = Witness(tuple(setup.items()), begin, tuple(taken))
            small = cut_to_failure(model, ALIKE, found)
            if small is not None:
                record.trace = shrunk_trace(model, ALIKE, small, shrink, found)
                record.differs = record.trace.steps[-1].state.differs
                record.caching = record.trace.steps[0].state.real.caching
            else:
                record.differs = state.differs
            break
    record.seconds = perf_counter() - began
    return record


class Drawer:
    """Draws the next action: half of the time any one of the table, else one that the model offers here; what ends a
    request comes seldom, so that runs get somewhere."""

    def __init__(self, model: SchedulerModel, choose: random.Random) -> None:
        self.model, self.choose = model, choose
        self.table = model.action_table
        weights = model.action_weights
        self.names = [name for name in self.table for _ in range(weights.get(name, 1)) if name not in _ENDS]
        self.weights = {name: 0.1 if name in _ENDS else float(weights.get(name, 1)) for name in self.table}

    def __call__(self, state: Any) -> Action:
        choose = self.choose
        if choose.random() < 0.5:
            by_name: dict[str, list[Action]] = {}
            for action in self.model.actions(state):
                by_name.setdefault(action.name, []).append(action)
            if by_name:
                names = list(by_name)
                name = choose.choices(names, [self.weights.get(name, 1.0) for name in names])[0]
                return choose.choice(by_name[name])
        name = choose.choice(self.names)
        return Action(name, tuple((each, drawn(span, choose)) for each, span in self.table[name].items()))


def drawn(span: Any, choose: random.Random) -> Argument:
    """A number of the range, or one of the names."""
    return choose.randint(span.low, span.high) if isinstance(span, Range) else choose.choice(span.names)


def _happened(before: Pair, action: Action, after: Pair) -> set[str]:
    """The situations after which conformance is counted."""
    met = set()
    if any(hit > 0 for _, hit in after.real.hits):
        met.add("prefix hit")
    if action.name == "reject":
        met.add("rejection")
    if action.name in ("abort", "resume", "preempt"):
        met.add(action.name)
    if len(after.model.book.evicted) > len(before.model.book.evicted):
        met.add("eviction")
    if action.name in ("schedule", "resume"):
        if after.model.steps and after.model.steps[-1].drop:
            met.add("eviction")
        was = set(before.model.running)
        if any(number in was for number in after.model.waiting):
            met.add("in-pass preemption")
    return met
