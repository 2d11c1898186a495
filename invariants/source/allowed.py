"""What lifted code may hold, read and call: stubs, small plain collections and a short list of harmless built-ins.

Belongs here: the values, as data. The hooks that enforce it are in `sandbox`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from outlives.model.errors import OutlivesError

from ..proof.executor import Number, Truth

__all__ = [
    "BUILTINS",
    "CONTAINERS",
    "ITERABLE",
    "LOGGER",
    "METHODS",
    "SCALARS",
    "TICKS",
    "Callee",
    "OutOfBudget",
    "Stopped",
    "Stub",
    "UnknownRead",
]

TICKS: Final = 5_000
"""Steps of one run (loop turns, reads, calls, values looked at). Released methods need under 200."""


class UnknownRead(OutlivesError):
    """Lifted code read or called something that the stubs do not know."""


class OutOfBudget(OutlivesError):
    """Lifted code did not come to an end within its budget."""


class Stopped(Exception):
    """The lifted code raised, or an assertion of its own failed."""


class Callee:
    """The only kind of value that lifted code can call."""

    __slots__ = ("function", "name")

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self.function = function


class Stub:
    """A stand-in for an object of the scheduler: a name for messages, and the attributes that it knows.

    An attribute is a value, or a `Stub.Later` that is asked each time it is read.
    """

    class Later:
        """An attribute that is worked out when it is read (it may fork)."""

        __slots__ = ("make",)

        def __init__(self, make: Callable[[], Any]) -> None:
            self.make = make

    __slots__ = ("attributes", "what")

    def __init__(self, what: str, attributes: Mapping[str, Any]) -> None:
        self.what = what
        self.attributes = attributes

    def read(self, name: str) -> Any:
        if name not in self.attributes:
            raise UnknownRead(f"it reads {self.what}.{name}, which the stubs do not know")
        value = self.attributes[name]
        return value.make() if type(value) is Stub.Later else value


METHODS: Final[Mapping[type, frozenset[str]]] = {
    list: frozenset({"append", "copy"}),
    set: frozenset({"add", "copy", "discard", "remove"}),
    dict: frozenset({"copy", "get", "items", "keys", "pop", "values"}),
    tuple: frozenset(),
}
"""Methods of plain containers; each adds at most one element, or is measured when its result is used."""

CONTAINERS: Final = (list, tuple, set, dict)
ITERABLE: Final[tuple[type, ...]] = (*CONTAINERS, range, type({}.items()), type({}.keys()), type({}.values()))
SCALARS: Final[tuple[type, ...]] = (int, bool, str, type(None), Number, Truth, Stub, Callee, range)


def _whole_number(value: Any = 0) -> Any:
    if type(value) is bool or type(value) is Truth:
        return 1 if value else 0
    if type(value) is int or type(value) is Number:
        return value
    raise UnknownRead("it makes a number of something that is not one")


def _joined(values: Any, start: Any = 0) -> Any:
    total = start
    for value in values:
        if type(value) not in (int, bool, Number) or type(total) not in (int, bool, Number):
            raise UnknownRead("it sums things that are not numbers")
        total = total + value
    return total


def _bounded_range(*bounds: Any) -> range:
    made = range(*bounds)
    if len(made) > TICKS:
        raise OutOfBudget(f"it makes a range of more than {TICKS} numbers")
    return made


BUILTINS: Final[Mapping[str, Callable[..., Any]]] = {
    "abs": abs,
    "all": all,
    "any": any,
    "bool": lambda value=False: True if value else False,  # noqa: SIM210 -- bool() of a proxy is the same question
    "dict": dict,
    "enumerate": lambda values, start=0: list(enumerate(values, start)),
    "int": _whole_number,
    "len": len,
    "list": list,
    "max": max,
    "min": min,
    "range": _bounded_range,
    "reversed": lambda values: list(reversed(values)),
    "set": set,
    "sorted": lambda values, *, reverse=False: sorted(values, reverse=reverse),
    "sum": _joined,
    "tuple": tuple,
    "zip": lambda *values: list(zip(*values, strict=False)),
}
"""The whitelist. None of them calls back, imports, opens, formats or reads an attribute by name."""

LOGGER: Final = Stub(
    "logger",
    {
        name: Callee(name, lambda *_, **__: None)
        for name in ("debug", "debug_once", "error", "exception", "info", "info_once", "warning", "warning_once")
    },
)
