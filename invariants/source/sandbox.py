"""The sandbox: the hooks that lifted code is rewritten to call, and the only things that it can reach.

Belongs here: what a lifted method may do. It reads attributes of stubs, calls what stubs and a short list of harmless
built-ins offer, and builds small lists, sets and dictionaries. Everything counts against a budget of ticks, so that no
loop, recursion or growing value can keep it running.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import partial
from types import CodeType
from typing import Any, Final

from ..proof.executor import Number
from .allowed import (
    BUILTINS,
    CONTAINERS,
    ITERABLE,
    LOGGER,
    METHODS,
    SCALARS,
    TICKS,
    Callee,
    OutOfBudget,
    Stopped,
    Stub,
    UnknownRead,
)
from .classes import ClassIndex, ClassSource, Function, module_constant
from .lift import lift
from .rewrite import HOOKS, NotLiftable

__all__ = ["Programs", "Sandbox"]

_DEPTH: Final = 40
_LARGEST_NUMBER: Final = 2**64


class Sandbox:
    """One run of a lifted method and of the methods of its class that it calls."""

    def __init__(self, index: ClassIndex, cls: ClassSource, attributes: Mapping[str, Any], programs: Programs) -> None:
        self.index = index
        self.cls = cls
        self.scheduler = Stub("self", attributes)
        self.programs = programs
        self.ticks = 0
        self.depth = 0

    def run(self, owner: ClassSource, function: Function, /, *arguments: Any, **named: Any) -> Any:
        """Call a method of the class with the scheduler's stub as `self`."""
        self.tick()
        self.depth += 1
        if self.depth > _DEPTH:
            raise OutOfBudget(f"its methods call each other more than {_DEPTH} deep")
        namespace: dict[str, Any] = {"__builtins__": {}}
        namespace |= {f".{name}": getattr(self, f"hook_{name}") for name in HOOKS}
        namespace[".global"] = lambda name: self.hook_global(name, owner)
        exec(self.programs.of(owner, function), namespace)
        result = namespace["lifted"](self.scheduler, *arguments, **named)
        self.depth -= 1
        return result

    def tick(self, count: int = 1) -> None:
        self.ticks += count
        if self.ticks > TICKS:
            raise OutOfBudget(f"it did not end within {TICKS} steps")

    # --- hooks: called by lifted code under names that source text cannot spell -------------------------------------

    def hook_tick(self) -> None:
        self.tick()

    def hook_read(self, value: Any, name: str) -> Any:
        self.tick()
        kind = type(value)
        if value is self.scheduler:
            return self._of_scheduler(name)
        if kind is Stub:
            return value.read(name)
        if kind in METHODS and name in METHODS[kind]:
            return Callee(name, getattr(value, name))
        what = "None" if value is None else f"a {kind.__name__.lower()}"
        raise UnknownRead(f"it reads .{name} of {what}, which the stubs do not know")

    def _of_scheduler(self, name: str) -> Any:
        if name in self.scheduler.attributes:
            return self.scheduler.read(name)
        found = self.index.find(self.cls, name)
        if found is not None:
            return self._method(*found)
        constant = self.index.class_constant(self.cls, name)
        if constant is not None:
            return _constant(constant)
        absent = self.index.absent_bases(self.cls)
        hint = f" (its base {', '.join(absent)} is not among the given files)" if absent else ""
        raise UnknownRead(f"it reads self.{name}, which the stubs do not know{hint}")

    def _method(self, owner: ClassSource, function: Function) -> Any:
        kinds = [item.id if isinstance(item, ast.Name) else "" for item in function.decorator_list]
        if not kinds:
            return Callee(function.name, lambda *given, **named: self.run(owner, function, *given, **named))
        error = NotLiftable(f"it uses {owner.name}.{function.name}, which has a decorator", function.lineno)
        error.file = str(owner.path)
        raise error

    def hook_call(self, function: Any, /, *arguments: Any, **named: Any) -> Any:
        self.tick()
        if type(function) is not Callee:
            raise UnknownRead("it calls something that the stubs do not know")
        return function.function(*arguments, **named)

    def hook_global(self, name: str, owner: ClassSource) -> Any:
        self.tick()
        if name == "logger":
            return LOGGER
        if name == "super":
            return Callee("super", lambda: self._above(owner))
        constant = module_constant(owner.file, name)
        if constant is not None:
            return _constant(constant)
        if name in BUILTINS:
            return Callee(name, BUILTINS[name])
        raise UnknownRead(f"it uses the global name {name}, which the stubs do not know")

    def _above(self, owner: ClassSource) -> Stub:
        methods: dict[str, Any] = {}
        for item in reversed(self.index.line_of(owner)[1:]):
            for name, function in item.methods.items():
                methods[name] = Stub.Later(partial(self._method, item, function))
        return Stub("super()", methods)

    def hook_value(self, value: Any) -> Any:
        """Measure a value that is about to be compared, joined, hashed or handed on: it must be small."""
        seen = 0
        pending = [value]
        while pending:
            seen += 1
            item = pending.pop()
            kind = type(item)
            if kind in CONTAINERS:
                if len(item) > TICKS:
                    raise OutOfBudget(f"it makes a collection of more than {TICKS} elements")
                pending.extend(item)
                if kind is dict:
                    pending.extend(item.values())
            elif kind is int:
                if abs(item) > _LARGEST_NUMBER:
                    raise OutOfBudget("it makes a number of more than 64 bits")
            elif kind is str:
                if len(item) > TICKS:
                    raise OutOfBudget(f"it makes a text of more than {TICKS} characters")
            elif kind not in SCALARS and kind not in ITERABLE:
                raise UnknownRead(f"it uses a value of a kind that the stubs do not know ({kind.__name__})")
            if seen > TICKS:
                raise OutOfBudget(f"it makes a collection of more than {TICKS} elements")
        self.tick(seen)
        return value

    def hook_number(self, value: Any) -> Any:
        if type(value) not in (int, bool, Number):
            raise UnknownRead(f"it does arithmetic on a value that is not a whole number ({type(value).__name__})")
        return self.hook_value(value)

    def hook_container(self, value: Any) -> Any:
        if type(value) not in (list, tuple, dict):
            raise UnknownRead("it takes an element of something that is not a plain list or dictionary")
        return self.hook_value(value)

    def hook_iterate(self, values: Any) -> Iterator[Any]:
        if type(values) not in ITERABLE:
            raise UnknownRead("it loops over something that is not a plain collection")
        for value in values:
            self.tick()
            yield value

    def hook_text(self, *_: Any) -> str:
        # The text itself is of no interest, and writing a symbolic number out would be wrong.
        self.tick()
        return "text"

    def hook_stop(self) -> None:
        raise Stopped


class Programs:
    """Lifted methods, each compiled once."""

    def __init__(self) -> None:
        self.code: dict[int, CodeType] = {}
        """By the identity of the parsed function."""

    def of(self, owner: ClassSource, function: Function) -> CodeType:
        """The compiled method; raises `NotLiftable`."""
        known = self.code.get(id(function))
        if known is None:
            try:
                known = self.code[id(function)] = lift(function, self.tag(owner))
            except NotLiftable as error:
                error.file = str(owner.path)
                raise
        return known

    @staticmethod
    def tag(owner: ClassSource) -> str:
        """What tracebacks call the file of a lifted method: not a path that anything else could have."""
        return f"lifted from {owner.path}"


def _constant(node: ast.Constant) -> Any:
    value = node.value
    if value is None or type(value) in (bool, str) or (type(value) is int and abs(value) <= _LARGEST_NUMBER):
        return value
    raise UnknownRead("it uses a constant that is not a number, a text, a truth value or None")
