"""Symbolic integers: the proxies on which plain Python functions run, and what they refuse.

Belongs here: `Number`, `Truth` and the errors of misuse. How a truth test forks is in `executor`.

A `Number` stands for an integer term, a `Truth` for a Boolean one. Arithmetic builds larger terms, and gives back plain
ints and bools where a term is constant. What would be silently wrong on a proxy (hashing, indexing, iteration,
formatting, isinstance, comparing the truth of a comparison with a number) raises `NotSymbolic`, which ends the whole
execution, even where the function swallows it. Not noticed: `is` between numbers.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, NoReturn, Protocol

import z3
from outlives.model.errors import OutlivesError

__all__ = ["NotSymbolic", "Number", "Run", "Truth", "current_run", "number_of", "symbol", "term_of", "truth_of"]


class NotSymbolic(OutlivesError):
    """A function did something with a symbolic number that has no faithful answer."""


class Run(Protocol):
    """What a proxy needs of the execution under way."""

    def decide(self, term: z3.BoolRef) -> bool:
        """The answer to a truth test on this path."""
        ...

    def fail(self, error: NotSymbolic) -> NoReturn:
        """Remember the misuse, so that a function that swallows every exception cannot hide it, and raise it."""
        ...


current_run: ContextVar[Run | None] = ContextVar("outlives_symbolic_run", default=None)


def _misuse(message: str) -> NoReturn:
    error = NotSymbolic(message)
    run = current_run.get()
    if run is not None:
        run.fail(error)
    raise error


def number_of(term: Any) -> Number | int:
    simple = z3.simplify(term)
    return int(simple.as_long()) if z3.is_int_value(simple) else Number(simple)


def truth_of(term: Any) -> Truth | bool:
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
        return number_of(self.term + self._other(other))

    __radd__ = __add__

    def __sub__(self, other: object) -> Any:
        return number_of(self.term - self._other(other))

    def __rsub__(self, other: object) -> Any:
        return number_of(self._other(other) - self.term)

    def __mul__(self, other: object) -> Any:
        if type(other) is Number:
            _misuse("a product of two symbolic numbers is not linear")
        return number_of(self.term * self._other(other))

    __rmul__ = __mul__

    def __floordiv__(self, other: object) -> Any:
        return number_of(self.term / self._divisor(other))

    def __mod__(self, other: object) -> Any:
        return number_of(self.term % self._divisor(other))

    def _divisor(self, other: object) -> Any:
        # Python rounds down, SMT-LIB rounds so that the remainder is not negative: the same for a positive divisor.
        if type(other) is not int or other <= 0:
            _misuse("a symbolic number can only be divided by a positive constant")
        return self._other(other)

    __rfloordiv__ = __rmod__ = _Proxy._refuse
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __invert__ = _Proxy._refuse

    def __neg__(self) -> Any:
        return number_of(-self.term)

    def __pos__(self) -> Number:
        return self

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    def __lt__(self, other: object) -> Any:
        return truth_of(self.term < self._other(other))

    def __le__(self, other: object) -> Any:
        return truth_of(self.term <= self._other(other))

    def __gt__(self, other: object) -> Any:
        return truth_of(self.term > self._other(other))

    def __ge__(self, other: object) -> Any:
        return truth_of(self.term >= self._other(other))

    def __eq__(self, other: object) -> Any:
        return False if other is None else truth_of(self.term == self._other(other))

    def __ne__(self, other: object) -> Any:
        return True if other is None else truth_of(self.term != self._other(other))

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
        return truth_of(z3.And(self.term, self._other(other)))

    def __or__(self, other: object) -> Any:
        return truth_of(z3.Or(self.term, self._other(other)))

    __rand__ = __and__
    __ror__ = __or__

    def __bool__(self) -> bool:
        run = current_run.get()
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
