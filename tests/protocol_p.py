"""The benchmark protocol P: requests with cached items, drafts and stale steps, small enough to count by hand.

Belongs here: the protocol as a model of its own, its scopes and its faults; no tests. It is a benchmark with known
counts, not the model of this project. Its rules are in `protocol_p_rules.py`: pure functions over the book, the pipe,
and one column per request; the plain search and the one by components run the same.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from outlives.invariants.explore.components import Branch, Follower, Gate, Look, Move, Refused
from outlives.model.contract import Action, Property, Refusal
from protocol_p_rules import (
    CRASHED,
    Book,
    Column,
    Head,
    Item,
    Need,
    Pipe,
    Record,
    Scope,
    arrive,
    execute,
    finds_all,
    finish,
    head,
    need,
    outputs,
    preempt,
    release,
    schedule,
    send,
    settle,
    take,
    unref_all,
    want,
)

__all__ = ["LARGE", "SCOPES", "ProtocolP", "Scope"]

ITEMS_B: tuple[tuple[Item, ...], ...] = (((0, 3, 0), (6, 2, 1)), ((1, 3, 0),), ((1, 3, 2),))


ALONE: Mapping[str, tuple[str, Callable[[Scope, Column], Column]]] = {
    "abort": ("WRP", finish),
    "arrive": ("N", arrive),
    "preempt": ("R", preempt),
}
"""Actions of one request: in which statuses, and what becomes of its column. It drops every item that it references."""


class State(NamedTuple):
    """Everything."""

    book: Book
    pipe: Pipe
    columns: tuple[Column, ...]


class ProtocolP:
    """P as a model of the contract, and as a model of components; both run the rules above."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.requests = range(len(scope.items))

    def initial_states(self) -> Iterable[State]:
        book = Book(tuple(frozenset[int]() for _ in self.requests))
        return [State(book, Pipe(), tuple(Column(Record("N")) for _ in self.requests))]

    def within(self, state: State) -> bool:
        return state.pipe.worker != CRASHED

    def actions(self, state: State) -> Iterator[Action]:
        book, pipe, columns = state
        for r, (record, _) in enumerate(columns):
            yield from (Action.of(name, r=r) for name, (where, _) in ALONE.items() if record.st in where)
        if len(pipe.steps) < self.scope.depth:
            yield Action.of("schedule")
        if pipe.steps and not finds_all(pipe, self._each(want, columns)):
            yield Action.of("miss")
        elif pipe.steps:
            yield from (_completion(chosen) for chosen, _ in outputs(self.scope, book, self._each(head, columns)))

    def next_state(self, state: State, action: Action) -> State | Refusal:
        book, pipe, columns = state
        r = int(action.get("r", 0))
        if action.name in ALONE:
            column = ALONE[action.name][1](self.scope, columns[r])
            return State(unref_all(self.scope, book, r), pipe, (*columns[:r], column, *columns[r + 1 :]))
        if action.name == "schedule":
            done = schedule(self.scope, book, self._each(need, columns))
            if done is None:
                return Refusal("nothing-scheduled")
            book, given, load = done
            taken = (take(self.scope, column, n) for column, n in zip(columns, given, strict=True))
            return State(book, send(pipe, load), tuple(taken))
        if action.name == "miss":
            return State(book, pipe._replace(worker=CRASHED), columns)
        accepted = tuple(action.get(f"a{r}", None) for r in self.requests)  # type: ignore[arg-type]
        freed = [dict(each)[a] for each, a in zip(self._each(head, columns), accepted, strict=True)]
        settled = (settle(self.scope, *each) for each in zip(columns, accepted, strict=True))  # type: ignore[arg-type]
        return State(release(self.scope, book, freed), execute(pipe), tuple(settled))

    def properties(self) -> Sequence[Property[State]]:
        return [
            Property(
                name="GATHER",
                phrase="a step finds every item that it reads",
                holds=lambda _before, _action, after: after.pipe.worker != CRASHED,
                explain=lambda before, _action, _after: (
                    f"the worker holds {set(before.pipe.worker)} before {before.pipe.steps[0]}"
                ),
                situation=lambda _before, action, _after: action is not None and action.name in ("complete", "miss"),
                situation_phrase="a step was executed",
            )
        ]

    def _each(self, view: Any, columns: tuple[Column, ...]) -> list[Any]:
        return [view(self.scope, column, r) for r, column in enumerate(columns)]

    # --- by components ------------------------------------------------------------------------------------------
    #
    # The book, the pipe, and of each request its column with the four things that decisions read of it. These follow
    # from the column, so they cost no states; whoever writes a column writes them along.

    @property
    def components(self) -> tuple[str, ...]:
        return ("book", "pipe", *(name for r in self.requests for name in _of(r)))

    @property
    def component_bits(self) -> Mapping[str, int]:
        widths = [{f"column{r}": 14, f"need{r}": 5, f"head{r}": 6, f"want{r}": 2, f"life{r}": 3} for r in self.requests]
        return {"book": 5, "pipe": 9} | {name: bits for each in widths for name, bits in each.items()}

    def split(self, state: State) -> tuple[Any, ...]:
        views = (self._views(r, column) for r, column in enumerate(state.columns))
        return (state.book, state.pipe, *(value for each in views for value in each))

    def join(self, values: tuple[Any, ...]) -> State:
        return State(values[0], values[1], values[2::5])

    def moves(self) -> Sequence[Move]:
        def column(r: int, rule: Any) -> Follower:
            return Follower(reads=(f"column{r}",), writes=_of(r), rule=partial(self._follow, r, rule), hears=r)

        def alone(name: str) -> list[Move]:
            return [
                Move(
                    names=(name,),
                    reads=("book", f"life{r}"),
                    rule=partial(self._alone, r, name),
                    followers=(replace(column(r, ALONE[name][1]), hears=0),),
                )
                for r in self.requests
            ]

        def followers(rule: Any, pipe: Follower) -> tuple[Follower, ...]:
            return (*(column(r, rule) for r in self.requests), pipe)

        wants, heads, needs = ([f"{view}{r}" for r in self.requests] for view in ("want", "head", "need"))
        sent = Follower(reads=("pipe",), writes=("pipe",), rule=partial(_moved, send), hears=len(self.requests))
        executed = Follower(reads=("pipe",), writes=("pipe",), rule=partial(_moved, execute), hears=len(self.requests))
        return [
            *alone("abort"),
            *alone("arrive"),
            Move(
                names=("complete",),
                reads=("book", *heads),
                rule=self._complete,
                followers=followers(settle, executed),
                gate=Gate(reads=("pipe", *wants), rule=_goes_well),
            ),
            Move(names=("miss",), reads=("pipe", *wants), rule=_miss),
            *alone("preempt"),
            Move(
                names=("schedule",),
                reads=("book", *needs),
                rule=self._schedule,
                followers=followers(take, sent),
                gate=Gate(reads=("pipe",), rule=self._has_room),
            ),
        ]

    def looks(self) -> Mapping[str, Look]:
        return {"GATHER": Look(after=("pipe",)), "within": Look(after=("pipe",))}

    def _follow(self, r: int, rule: Any, told: tuple[Any, ...], column: Column) -> tuple[Hashable, ...]:
        return self._views(r, rule(self.scope, column, *told))

    def _views(self, r: int, column: Column) -> tuple[Hashable, ...]:
        """The values of `_of(r)`."""
        return (column, *(view(self.scope, column, r) for view in (need, head, want)), column.record.st)

    def _alone(self, r: int, name: str, book: Book, life: str) -> Iterator[Branch]:
        if life in ALONE[name][0]:
            yield Branch(Action.of(name, r=r), {"book": unref_all(self.scope, book, r)}, ((),))

    def _has_room(self, pipe: Pipe) -> bool:
        return len(pipe.steps) < self.scope.depth

    def _schedule(self, book: Book, *needs: Need | None) -> Iterator[Branch | Refused]:
        done = schedule(self.scope, book, needs)
        if done is None:
            yield Refused(Action.of("schedule"), "nothing-scheduled")
        else:
            book, given, load = done
            yield Branch(Action.of("schedule"), {"book": book}, _each_told(given, load))

    def _complete(self, book: Book, *heads: Head) -> Iterator[Branch]:
        for accepted, after in outputs(self.scope, book, heads):
            yield Branch(_completion(accepted), {"book": after}, _each_told(accepted))


def _of(r: int) -> tuple[str, ...]:
    """The components of one request."""
    return (f"column{r}", f"need{r}", f"head{r}", f"want{r}", f"life{r}")


def _each_told(columns: Iterable[Any], *pipe: Any) -> tuple[tuple[Any, ...], ...]:
    """A note: what each column is told, and the pipe."""
    return (*((told,) for told in columns), pipe)


def _completion(accepted: Sequence[int | None]) -> Action:
    return Action.of("complete", **{f"a{r}": a for r, a in enumerate(accepted) if a is not None})


def _moved(rule: Any, told: tuple[Any, ...], pipe: Pipe) -> tuple[Pipe]:
    return (rule(pipe, *told),)


def _goes_well(pipe: Pipe, *wants: frozenset[int]) -> bool:
    return bool(pipe.steps) and finds_all(pipe, wants)


def _miss(pipe: Pipe, *wants: frozenset[int]) -> Iterator[Branch]:
    if pipe.steps and not finds_all(pipe, wants):
        yield Branch(Action.of("miss"), {"pipe": pipe._replace(worker=CRASHED)})


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
