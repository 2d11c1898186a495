"""The path-forking executor: runs plain Python functions on symbolic integers and returns every path through them.

Belongs here: the proxies (`Number`, `Truth`), `execute`, and what it returns (`Paths`, `Outcome`). Nothing here knows
about schedulers or caches; the functions that are run know nothing about Z3.

Theory of operation
-------------------
A `Number` stands for an integer term, a `Truth` for a Boolean one. Arithmetic builds larger terms, and gives back
plain ints and bools where a term is constant. When a function asks for the truth of a `Truth` (an `if`, an `and`,
`min`, `sorted`, ...), a solver says which answers are possible after the decisions taken so far. One answer: it is
taken. Two: true is taken first, and the function is later run again from scratch with the recorded decisions and
the other answer. So the function must be deterministic, and what it changes must be built anew in each run: let it
build its own stubs and return their record, and the record belongs to the path.

An exception that the function raises is the outcome of its path. What would be silently wrong on a proxy (hashing,
indexing, iteration, formatting, isinstance, comparing the truth of a comparison with a number) raises
`NotSymbolic`, which ends the whole execution, even where the function swallows it. Not noticed: `is` between numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, NoReturn

import z3
from outlives.model.errors import OutlivesError

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


class NotSymbolic(OutlivesError):
    """A function did something with a symbolic number that has no faithful answer."""


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


_current: ContextVar[_Run | None] = ContextVar("outlives_symbolic_run", default=None)


def _misuse(message: str) -> NoReturn:
    error = NotSymbolic(message)
    run = _current.get()
    if run is not None:
        run.fail(error)
    raise error


def _number(term: Any) -> Number | int:
    simple = z3.simplify(term)
    return int(simple.as_long()) if z3.is_int_value(simple) else Number(simple)


def _truth(term: Any) -> Truth | bool:
    simple = z3.simplify(term)
    if z3.is_true(simple):
        return True
    if z3.is_false(simple):
        return False
    return Truth(simple)


class _Proxy:
    """What both proxies refuse, because any answer would be wrong on some path."""

    __slots__ = ("term",)

    def __init__(self, term: Any) -> None:
        self.term = term

    def _refuse(self, *_: object) -> NoReturn:
        _misuse(f"a symbolic value ({self!r}) was used as an index, a key, a sequence, text or a machine number")

    __hash__ = _refuse
    __index__ = __int__ = __float__ = __complex__ = __round__ = __trunc__ = __floor__ = __ceil__ = _refuse
    __iter__ = __len__ = __contains__ = __getitem__ = __str__ = __format__ = _refuse
    __pow__ = __rpow__ = __truediv__ = __rtruediv__ = __lshift__ = __rlshift__ = _refuse
    __rshift__ = __rrshift__ = __divmod__ = __rdivmod__ = __matmul__ = __bytes__ = __reduce_ex__ = _refuse

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        # Reached only by isinstance(proxy, some other class), which would say "no".
        _misuse(f"isinstance() was asked about a symbolic value ({self!r})")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.term.sexpr()}>"


class Number(_Proxy):
    """A symbolic integer. `if number:` asks whether it is not 0, as for an int."""

    __slots__ = ()

    def _other(self, other: object) -> Any:
        if type(other) is Number:
            return other.term
        if type(other) is int or type(other) is bool:
            return z3.IntVal(int(other), self.term.ctx)
        _misuse(f"a symbolic number meets {type(other).__name__}, which is not a whole number")

    def __add__(self, other: object) -> Any:
        return _number(self.term + self._other(other))

    __radd__ = __add__

    def __sub__(self, other: object) -> Any:
        return _number(self.term - self._other(other))

    def __rsub__(self, other: object) -> Any:
        return _number(self._other(other) - self.term)

    def __mul__(self, other: object) -> Any:
        if type(other) is Number:
            _misuse("a product of two symbolic numbers is not linear")
        return _number(self.term * self._other(other))

    __rmul__ = __mul__

    def __floordiv__(self, other: object) -> Any:
        return _number(self.term / self._divisor(other))

    def __mod__(self, other: object) -> Any:
        return _number(self.term % self._divisor(other))

    def _divisor(self, other: object) -> Any:
        # Python rounds down, SMT-LIB rounds so that the remainder is not negative: the same for a positive divisor.
        if type(other) is not int or other <= 0:
            _misuse("a symbolic number can only be divided by a positive constant")
        return self._other(other)

    __rfloordiv__ = __rmod__ = _Proxy._refuse
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __invert__ = _Proxy._refuse

    def __neg__(self) -> Any:
        return _number(-self.term)

    def __pos__(self) -> Number:
        return self

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    def __lt__(self, other: object) -> Any:
        return _truth(self.term < self._other(other))

    def __le__(self, other: object) -> Any:
        return _truth(self.term <= self._other(other))

    def __gt__(self, other: object) -> Any:
        return _truth(self.term > self._other(other))

    def __ge__(self, other: object) -> Any:
        return _truth(self.term >= self._other(other))

    def __eq__(self, other: object) -> Any:
        return False if other is None else _truth(self.term == self._other(other))

    def __ne__(self, other: object) -> Any:
        return True if other is None else _truth(self.term != self._other(other))

    __hash__ = _Proxy._refuse

    def __bool__(self) -> bool:
        return bool(self != 0)


class Truth(_Proxy):
    """The truth of a comparison of symbolic numbers. It may be tested, and joined with `&` and `|`; nothing else."""

    __slots__ = ()

    def _arithmetic(self, *_: object) -> NoReturn:
        _misuse(f"the truth of a comparison ({self!r}) was used as a number, or compared")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _arithmetic
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = __pos__ = __abs__ = _arithmetic
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __xor__ = __rxor__ = __invert__ = _arithmetic
    __hash__ = _Proxy._refuse

    def _other(self, other: object) -> Any:
        if type(other) is Truth:
            return other.term
        if type(other) is bool:
            return z3.BoolVal(other, self.term.ctx)
        return self._arithmetic()

    def __and__(self, other: object) -> Any:
        return _truth(z3.And(self.term, self._other(other)))

    def __or__(self, other: object) -> Any:
        return _truth(z3.Or(self.term, self._other(other)))

    __rand__ = __and__
    __ror__ = __or__

    def __bool__(self) -> bool:
        run = _current.get()
        if run is None:
            raise NotSymbolic("the truth of a symbolic comparison was asked outside execute()")
        return run.decide(self.term)


def symbol(name: str, context: z3.Context) -> Number:
    """A symbolic integer of that name, unbounded."""
    return Number(z3.Int(name, context))


def term_of(value: object, context: z3.Context) -> Any:
    """The Z3 term of a number or truth value, symbolic or plain (a plain bool gives a Boolean term)."""
    if type(value) is Number or type(value) is Truth:
        return value.term
    if type(value) is bool:
        return z3.BoolVal(value, context)
    if type(value) is int:
        return z3.IntVal(value, context)
    raise NotSymbolic(f"{type(value).__name__} has no solver term; only whole numbers and truth values have one")


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
        return _number(z3.If(condition, term_of(yes, condition.ctx), term_of(no, condition.ctx)))
    if kinds <= {bool, Truth}:
        return _truth(z3.If(condition, term_of(yes, condition.ctx), term_of(no, condition.ctx)))
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
    token = _current.set(run)
    value, error = None, None
    try:
        value = function(*arguments)
    except (Exception, SystemExit) as raised:
        error = raised
    finally:
        _current.reset(token)
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
