"""The path-forking executor: runs plain Python functions on symbolic integers and returns every path through them.

Belongs here: `execute`, and what it returns (`Paths`, `Outcome`). Nothing here knows about schedulers or caches; the
functions that are run know nothing about Z3.

Theory of operation
-------------------
When a function asks for the truth of a symbolic comparison (an `if`, an `and`, `min`, `sorted`, ...), a solver says
which answers are possible after the decisions taken so far. One answer: it is taken. Two: true is taken first, and the
function is later run again from scratch with the recorded decisions and the other answer. So the function must be
deterministic, and what it changes must be built anew in each run: let it build its own stubs and return their record,
and the record belongs to the path.

An exception that the function raises is the outcome of its path. What would be silently wrong on a symbolic number
raises `NotSymbolic` and ends the execution (`symbols`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, NoReturn

import z3

from .symbols import NotSymbolic, Number, Truth, current_run, number_of, symbol, term_of, truth_of

__all__ = [
    "ANYTHING",
    "Decision",
    "NotSymbolic",
    "Number",
    "Outcome",
    "Paths",
    "TooManyPaths",
    "Truth",
    "execute",
    "symbol",
    "term_of",
]

SOLVER_BUDGET: Final = 500_000
"""Z3 resource units for one feasibility question. Where it runs out both answers count as possible: sound."""


class TooManyPaths(NotSymbolic):
    """A function has more paths, or more decisions on one path, than the cap allows."""


class Decision(NamedTuple):
    """One truth test on a path: the term, the answer taken, and whether it was the only one possible."""

    term: z3.BoolRef
    taken: bool
    forced: bool


class _Run:
    """One run of the function: replays the recorded decisions, then takes new ones and notes where it forked."""

    def __init__(self, solver: z3.Solver, prefix: Sequence[Decision], depth: int) -> None:
        self.solver = solver
        self.prefix = prefix
        self.depth = depth
        self.decisions: list[Decision] = []
        self.misuse: NotSymbolic | None = None

    def decide(self, term: z3.BoolRef) -> bool:
        position = len(self.decisions)
        if position >= self.depth:
            self.fail(TooManyPaths(f"more than {self.depth} decisions on one path: an unbounded loop?"))
        if position < len(self.prefix):
            decision = self.prefix[position]
            if not decision.term.eq(term):
                self.fail(NotSymbolic("the function is not deterministic: run again, it asked another question"))
        else:
            possible = [answer for answer in (True, False) if self._possible(term, answer)]
            if not possible:  # only where the solver contradicts itself or an assumption is unsatisfiable
                self.fail(NotSymbolic("no answer to a truth test is possible: the assumptions contradict each other"))
            decision = Decision(term, possible[0], len(possible) == 1)
        self._assume(decision)
        return decision.taken

    def _assume(self, decision: Decision) -> None:
        self.decisions.append(decision)
        if not decision.forced:
            self.solver.add(decision.term if decision.taken else z3.Not(decision.term))

    def _possible(self, term: z3.BoolRef, answer: bool) -> bool:
        self.solver.push()
        self.solver.add(term if answer else z3.Not(term))
        verdict = self.solver.check()
        self.solver.pop()
        return bool(verdict != z3.unsat)

    def fail(self, error: NotSymbolic) -> NoReturn:
        # Remembered, so that a function that swallows every exception cannot hide it.
        self.misuse = self.misuse or error
        raise error


class _Anything:
    """The type of `ANYTHING`."""

    def __repr__(self) -> str:
        return "ANYTHING"


ANYTHING: Final = _Anything()
"""In a merge: on this path the value does not matter."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One path: the condition under which it is taken, and what the function returned or raised on it."""

    condition: z3.BoolRef
    decisions: tuple[Decision, ...]
    value: Any
    """What the function returned (None where it raised)."""
    error: Exception | SystemExit | None


@dataclass(frozen=True, slots=True)
class _Fork:
    term: z3.BoolRef
    if_true: _Tree
    if_false: _Tree


_Tree = _Fork | Outcome


@dataclass(frozen=True, slots=True)
class Paths:
    """All paths of one execution. Under the assumptions their conditions exclude each other and cover everything."""

    outcomes: tuple[Outcome, ...]
    tree: _Tree
    context: z3.Context

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.outcomes)

    def merge(self, select: Callable[[Outcome], Any] | None = None) -> Any:
        """One value for all paths: an if-then-else over the decisions, field by field.

        `select` says what of an outcome to take, or `ANYTHING`; without it the returned values are merged, and a path
        that raised is an error. Numbers, truth values, tuples and NamedTuples of one shape can be merged; anything
        else must be equal on all paths. Raises `NotSymbolic` otherwise.
        """
        return _merge_tree(self.tree, select or _returned)


def _returned(outcome: Outcome) -> Any:
    if outcome.error is not None:
        raise NotSymbolic(f"a path raises {type(outcome.error).__name__}: {outcome.error}") from outcome.error
    return outcome.value


def _merge_tree(tree: _Tree, select: Callable[[Outcome], Any]) -> Any:
    if isinstance(tree, Outcome):
        return select(tree)
    return _choose(tree.term, _merge_tree(tree.if_true, select), _merge_tree(tree.if_false, select))


def _choose(condition: z3.BoolRef, yes: Any, no: Any) -> Any:
    if yes is no or no is ANYTHING:
        return yes
    if yes is ANYTHING:
        return no
    kinds = {type(yes), type(no)}
    if kinds <= {int, Number}:
        return number_of(z3.If(condition, term_of(yes, condition.ctx), term_of(no, condition.ctx)))
    if kinds <= {bool, Truth}:
        return truth_of(z3.If(condition, term_of(yes, condition.ctx), term_of(no, condition.ctx)))
    if len(kinds) == 1 and issubclass(type(yes), tuple) and len(yes) == len(no):
        fields = [_choose(condition, a, b) for a, b in zip(yes, no, strict=True)]
        return type(yes)(*fields) if hasattr(yes, "_fields") else tuple(fields)
    if len(kinds) == 1 and not (kinds & {Number, Truth}) and yes == no:
        return yes
    raise NotSymbolic(f"paths return values of different shapes: {yes!r} and {no!r}")


def execute(
    function: Callable[..., Any],
    *arguments: Any,
    context: z3.Context,
    assume: Sequence[Truth | bool] = (),
    max_paths: int = 2_000,
    max_decisions: int = 400,
) -> Paths:
    """Run `function(*arguments)` on every feasible path.

    `assume` holds on every path; `context` is the one in which the symbols were made. Raises `TooManyPaths` beyond
    the caps and `NotSymbolic` where the function treats a symbolic value as a plain one, or where the assumptions
    contradict each other.
    """
    solver = z3.Solver(ctx=context)
    solver.set("ctrl_c", False)  # the solver would take Ctrl-C for itself, and the run would go on
    solver.set("random_seed", 0)
    solver.set("rlimit", SOLVER_BUDGET)
    solver.add(*(term_of(condition, context) for condition in assume))
    outcomes: list[Outcome] = []
    pending: list[tuple[Decision, ...]] = [()]
    while pending:
        if len(outcomes) >= max_paths:
            raise TooManyPaths(f"{getattr(function, '__name__', function)} has more than {max_paths} paths")
        prefix = pending.pop()
        solver.push()
        outcome = _run_once(function, arguments, _Run(solver, prefix, max_decisions), context)
        solver.pop()
        outcomes.append(outcome)
        # Deepest fork last, so that it is explored next: outcomes come out in depth-first order, true before false.
        for position in range(len(prefix), len(outcome.decisions)):
            decision = outcome.decisions[position]
            if not decision.forced:
                pending.append((*outcome.decisions[:position], decision._replace(taken=False)))
    return Paths(tuple(outcomes), _grow(outcomes, 0), context)


def _run_once(function: Callable[..., Any], arguments: tuple[Any, ...], run: _Run, context: z3.Context) -> Outcome:
    token = current_run.set(run)
    value, error = None, None
    try:
        value = function(*arguments)
    except (Exception, SystemExit) as raised:
        error = raised
    finally:
        current_run.reset(token)
    if run.misuse is not None:
        raise run.misuse
    free = [d.term if d.taken else z3.Not(d.term) for d in run.decisions if not d.forced]
    condition = z3.And(*free) if len(free) > 1 else free[0] if free else z3.BoolVal(True, context)
    return Outcome(condition, tuple(run.decisions), value, error)


def _grow(outcomes: Sequence[Outcome], depth: int) -> _Tree:
    """The decision tree of these outcomes, which share their first `depth` decisions."""
    if len(outcomes) == 1:
        return outcomes[0]
    decision = outcomes[0].decisions[depth]
    if decision.forced:
        return _grow(outcomes, depth + 1)
    taken = [outcome for outcome in outcomes if outcome.decisions[depth].taken]
    refused = [outcome for outcome in outcomes if not outcome.decisions[depth].taken]
    return _Fork(decision.term, _grow(taken, depth + 1), _grow(refused, depth + 1))
