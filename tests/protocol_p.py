"""The benchmark protocol P: requests with cached items, drafts and stale steps, small enough to count by hand.

Belongs here: the protocol as a model of its own, its scopes and its faults; no tests. It is a benchmark with known
counts, not the model of this project. Its rules are in `protocol_p_rules.py`: pure functions over three small things,
what the scheduler knows (`Desk`), what the worker holds, and one step in flight.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple

from outlives.invariants.explore.components import Branch, Follower, Gate, Look, Move, Refused
from outlives.model.contract import Action, Property, Refusal
from protocol_p_rules import (
    Desk,
    Due,
    Item,
    Record,
    Scope,
    Step,
    choices,
    correct,
    corrected,
    execute,
    finish,
    halve,
    only_stale,
    preempt,
    process,
    put,
    schedule,
    whole,
)

__all__ = ["LARGE", "SCOPES", "ProtocolP", "Scope"]

Worker = frozenset[int] | str
CRASHED = "crashed"
ITEMS_B: tuple[tuple[Item, ...], ...] = (((0, 3, 0), (6, 2, 1)), ((1, 3, 0),), ((1, 3, 2),))


class State(NamedTuple):
    """Everything."""

    desk: Desk
    worker: Worker
    queue: tuple[Step, ...]


class ProtocolP:
    """P as a model of the contract, and as a model of components; both run the rules above."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.requests = range(len(scope.items))
        self.dues = tuple(f"due{number}" for number in range(scope.depth))
        self.tolds = tuple(f"told{number}" for number in range(scope.depth))

    def initial_states(self) -> Iterable[State]:
        return [State(Desk(tuple(Record("N") for _ in self.requests)), frozenset(), ())]

    def within(self, state: State) -> bool:
        return state.worker != CRASHED

    def actions(self, state: State) -> Iterator[Action]:
        for r, record in enumerate(state.desk.records):
            if record.st == "N":
                yield Action.of("arrive", r=r)
            elif record.st != "F":
                yield Action.of("abort", r=r)
            if record.st == "R":
                yield Action.of("preempt", r=r)
        if len(state.queue) < self.scope.depth:
            yield Action.of("schedule")
        if state.queue and not self._finds_all(state.worker, state.queue[0]):  # type: ignore[arg-type]
            yield Action.of("miss")
        elif state.queue:
            yield from (action for action, _ in self._completions(state.desk, state.queue[0]))

    def next_state(self, state: State, action: Action) -> State | Refusal:
        desk, worker, queue = state
        r = int(action.get("r", 0))
        if action.name == "arrive":
            return State(put(desk, r, desk.records[r]._replace(st="W")), worker, queue)
        if action.name in ("abort", "preempt"):
            leave = finish if action.name == "abort" else preempt
            stale = only_stale(self.scope, r)
            return State(leave(self.scope, desk, r), worker, tuple(correct(step, stale) for step in queue))
        if action.name == "schedule":
            done = schedule(self.scope, desk)
            return Refusal("nothing-scheduled") if done is None else State(done[0], worker, (*queue, done[1]))
        if action.name == "miss":
            return State(desk, CRASHED, queue)
        after = execute(self.scope, worker, queue[0])  # type: ignore[arg-type]
        assert after is not None
        accepted = tuple(action.get(f"a{r}", None) for r in self.requests)  # type: ignore[arg-type]
        desk, corrections = process(self.scope, desk, queue[0], accepted)  # type: ignore[arg-type]
        return State(desk, after, tuple(correct(step, corrections) for step in queue[1:]))

    def properties(self) -> Sequence[Property[State]]:
        return [
            Property(
                name="GATHER",
                phrase="a step finds every item that it reads",
                holds=lambda _before, _action, after: after.worker != CRASHED,
                explain=lambda before, _action, _after: (
                    f"the worker holds {set(before.worker)} before {before.queue[0]}"
                ),
                situation=lambda _before, action, _after: action is not None and action.name in ("complete", "miss"),
                situation_phrase="a step was executed",
            )
        ]

    def _completions(self, desk: Desk, step: Step) -> Iterator[tuple[Action, Sequence[int | None]]]:
        for accepted in product(*choices(self.scope, desk, step)):
            chosen = {f"a{r}": a for r, a in enumerate(accepted) if a is not None}
            yield Action.of("complete", **chosen), accepted

    # --- by components ------------------------------------------------------------------------------------------
    #
    # A step is two components: what processing its output reads (`due`: k of each live entry), and the rest (`told`),
    # which only the worker reads. So the choice of a completion depends on the desk and one `due`, and on nothing else.

    @property
    def components(self) -> tuple[str, ...]:
        return ("desk", "worker", "flying", *self.dues, *self.tolds)

    @property
    def component_bits(self) -> Mapping[str, int]:
        return {"worker": 3, "flying": 3, **dict.fromkeys(self.dues, 8), **dict.fromkeys(self.tolds, 13)}

    def split(self, state: State) -> tuple[Any, ...]:
        halves = [halve(step) for step in state.queue] + [(None, None)] * (self.scope.depth - len(state.queue))
        dues, tolds = zip(*halves, strict=True)
        return (state.desk, state.worker, len(state.queue), *dues, *tolds)

    def join(self, values: tuple[Any, ...]) -> State:
        desk, worker, flying, *halves = values
        depth = self.scope.depth
        pairs = zip(halves[:depth], halves[depth:], strict=True)
        return State(desk, worker, tuple(whole(*pair) for pair in list(pairs)[: flying or 0]))

    def moves(self) -> Sequence[Move]:
        halves = list(zip(self.dues, self.tolds, strict=True))
        stay = tuple(Follower(reads=half, writes=half, rule=corrected) for half in halves)
        move_up = tuple(Follower(reads=later, writes=half, rule=corrected) for half, later in pairwise(halves))
        execution = Follower(reads=("worker", "told0"), writes=("worker",), rule=self._held)
        stale_too = ("told0",) if self.scope.fault == "bad_stale" else ()
        return [
            Move(names=("abort",), reads=("desk",), rule=self._abort, followers=stay),
            Move(names=("arrive",), reads=("desk",), rule=self._arrive),
            Move(
                names=("complete",),
                reads=("flying", "desk", "due0", *stale_too),
                rule=self._complete,
                followers=(execution, *move_up),
                gate=Gate(reads=("worker", "told0"), rule=self._finds_all),
            ),
            Move(names=("miss",), reads=("worker", "told0"), rule=self._miss),
            Move(names=("preempt",), reads=("desk",), rule=self._preempt, followers=stay),
            Move(names=("schedule",), reads=("desk", "flying"), rule=self._schedule),
        ]

    def looks(self) -> Mapping[str, Look]:
        return {"GATHER": Look(after=("worker",)), "within": Look(after=("worker",))}

    def _abort(self, desk: Desk) -> Iterator[Branch]:
        for r, record in enumerate(desk.records):
            if record.st in "WRP":
                yield Branch(Action.of("abort", r=r), {"desk": finish(self.scope, desk, r)}, only_stale(self.scope, r))

    def _arrive(self, desk: Desk) -> Iterator[Branch]:
        for r, record in enumerate(desk.records):
            if record.st == "N":
                yield Branch(Action.of("arrive", r=r), {"desk": put(desk, r, record._replace(st="W"))})

    def _preempt(self, desk: Desk) -> Iterator[Branch]:
        for r, record in enumerate(desk.records):
            if record.st == "R":
                after = preempt(self.scope, desk, r)
                yield Branch(Action.of("preempt", r=r), {"desk": after}, only_stale(self.scope, r))

    def _schedule(self, desk: Desk, flying: int) -> Iterator[Branch | Refused]:
        if flying < self.scope.depth:
            done = schedule(self.scope, desk)
            if done is None:
                yield Refused(Action.of("schedule"), "nothing-scheduled")
            else:
                due, told = halve(done[1])
                writes = {"desk": done[0], "flying": flying + 1, self.dues[flying]: due, self.tolds[flying]: told}
                yield Branch(Action.of("schedule"), writes)

    def _complete(self, flying: int, desk: Desk, due: Due, told: Step | None = None) -> Iterator[Branch]:
        if due is None:
            return
        step = whole(due, told)
        last = {self.dues[-1]: None, self.tolds[-1]: None}  # the followers move the others up
        for action, accepted in self._completions(desk, step):
            after, corrections = process(self.scope, desk, step, accepted)
            yield Branch(action, {"desk": after, "flying": flying - 1, **last}, corrections)

    def _held(self, _corrections: object, worker: frozenset[int], told: Step) -> tuple[frozenset[int] | None]:
        return (execute(self.scope, worker, told),)

    def _finds_all(self, worker: frozenset[int], told: Step | None) -> bool:
        return told is not None and execute(self.scope, worker, told) is not None

    def _miss(self, worker: frozenset[int], told: Step | None) -> Iterator[Branch]:
        if told is not None and not self._finds_all(worker, told):
            yield Branch(Action.of("miss"), {"worker": CRASHED})


def _scope(requests: int, outputs: int, drafts: int, depth: int, fault: str = "") -> Scope:
    return Scope(items=ITEMS_B[:requests], outputs=outputs, drafts=drafts, depth=depth, fault=fault)


SCOPES: Mapping[str, Scope] = {
    "s1": _scope(2, 3, 2, 2),
    "s2": _scope(3, 2, 1, 2),
    "s3": _scope(3, 3, 2, 2),
    "r2": _scope(2, 3, 2, 2, "bad_rule"),
    "t2": _scope(2, 3, 2, 2, "bad_stale"),
}
LARGE = _scope(3, 3, 2, 3)
