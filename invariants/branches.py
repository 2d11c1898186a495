"""Which sides of the rules' conditions a run takes: the rules write it down themselves while an engine runs.

Belongs here: what a condition is (`Condition`), which functions are the rules of a scheduler (`conditions_of`), and the
counting (`counted`). What a report says of it is in `reached`. How a module is rewritten is in `branch_probes`.

Theory of operation. Every rule is parsed, each of its conditions is made to set one of two names of its module, one for
true and one for false, and the code object so compiled takes the place of the function's own for as long as the engine
runs. So whoever holds the function, a `Rules` record or a module that imported it, runs the same rule, a few stores of
a constant slower, and every step of the run is counted, not a sample. A condition is named by its text, not by its
line, so that what is known of it outlives edits around it.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cache, partial
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any

from outlives.model import batch, book, cross, gate, lifetime, output, routes, worker
from outlives.model.lifetime import GUARDS, WEAKEST
from outlives.model.profiles import RELEASED_RULES
from outlives.model.world import Rules, World

from .branch_probes import PROBE, Probed, functions_inside, names_of, probed

__all__ = ["Condition", "Conditions", "Sides", "conditions_in", "conditions_of", "counted"]

_MODULES: tuple[ModuleType, ...] = (lifetime, book, gate, batch, output, worker, routes, cross)
"""Counters and guards, the book, the pass (gate, batch, output), the worker, the routes, encoder-decoder models."""
_OURS = frozenset(module.__name__ for module in _MODULES)
_NO_RULES = {"guard_named", "Guard.__post_init__", "_Pass.__init__"}
"""They look a name up, or check and hold data."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a rule, with two sides."""

    module: str
    function: str
    text: str
    """As the source has it, on one line."""
    number: int
    """Which of several with the same text in this function, from 1."""
    line: int
    """Where it is now, for people."""

    @property
    def key(self) -> str:
        """Its name: function and text, no line."""
        which = f" ({self.number})" if self.number > 1 else ""
        return f"{self.module}.{self.function}: {self.text}{which}"


@dataclass(frozen=True, slots=True)
class Conditions:
    """All conditions of the rules of one scheduler, in a fixed order."""

    each: tuple[Condition, ...]
    declared: tuple[Condition, ...]
    """Those that ask only what the profile and the assumptions say; they are not counted, for no run takes both."""
    functions: tuple[tuple[FunctionType, Probed], ...]
    """The rules, each with itself with probes."""
    places: tuple[tuple[int, int], ...]
    """Of each condition, which of the functions has it, and its place in the function's file."""
    not_counted: tuple[str, ...]
    """Rules whose source cannot be read or told apart: of their conditions nothing is known."""

    def untaken(self, taken: int) -> list[tuple[Condition, bool]]:
        """Condition and side, for each side that is not among those `taken` (see `counted`)."""
        sides = ((condition, side) for condition in self.each for side in (True, False))
        return [each for place, each in enumerate(sides) if not taken >> place & 1]


def conditions_of(world: World) -> Conditions:
    """The conditions of the rules that are in force in this world: ours, save the rules and guards whose place another
    one has taken; and a user's own, with the functions of their files that they call."""
    unread = [f"rule {name}" for name, rule in _chosen(world).items() if _plain(rule) is None]
    return conditions_in(_in_force(world), unread)


def conditions_in(rules: Iterable[FunctionType], not_counted: Iterable[str] = ()) -> Conditions:
    """The conditions of these functions; `not_counted` are other rules, which are no Python functions."""
    functions: list[tuple[FunctionType, Probed]] = []
    each: list[Condition] = []
    declared: list[Condition] = []
    places: list[tuple[int, int]] = []
    unread = list(not_counted)
    seen: set[tuple[int, int]] = set()
    for function in rules:
        code = function.__code__
        plain = function.__module__ in _OURS
        try:
            made = probed(code.co_filename, plain=plain).get((code.co_qualname, code.co_firstlineno))
        except (OSError, SyntaxError, ValueError):
            made = None
        module = function.__module__.rpartition(".")[2] if plain else Path(code.co_filename).stem
        if made is None or made.code.co_freevars != code.co_freevars:
            unread.append(f"{module}.{code.co_qualname}")
            continue
        functions.append((function, made))
        for found in made.conditions:
            if (id(function.__globals__), found.place) not in seen:  # a function inside another has them as well
                seen.add((id(function.__globals__), found.place))
                condition = Condition(module, made.name, found.text, found.number, found.line)
                if found.declared:
                    declared.append(condition)
                else:
                    each.append(condition)
                    places.append((len(functions) - 1, found.place))
    return Conditions(tuple(each), tuple(declared), tuple(functions), tuple(places), tuple(unread))


class Sides:
    """The counting under way."""

    def __init__(self, conditions: Conditions) -> None:
        self._conditions = conditions
        self._functions = conditions.functions
        self._kept = [function.__code__ for function, _ in self._functions]
        self._places = [(self._functions[at][0].__globals__, *names_of(place)) for at, place in conditions.places]
        self._counting = set(range(len(self._functions)))
        self._eased = False
        self.taken = 0
        """Bit 2n says that condition n was true once, bit 2n + 1 that it was false once; known once it is closed."""

    def open(self) -> None:
        """From now on the rules count."""
        for space, yes, no in self._places:
            space[yes], space[no] = False, True
        for function, made in self._functions:
            function.__globals__[PROBE] = _probe_of(function.__globals__)
            function.__code__ = made.code

    def rest(self) -> None:
        """The rules that have taken every side are as they were: there is nothing left to count in them."""
        waiting = {at for (at, _), side in zip(self._conditions.places, self._places, strict=True) if not _seen(*side)}
        for at in self._counting - waiting:
            self._functions[at][0].__code__ = self._kept[at]
        self._counting &= waiting

    def ease(self) -> None:
        """Once: take the probes away that have seen what they are for, so that what goes on is as fast as without. It
        compiles the rules again, which takes a twentieth of a second."""
        if self._eased:
            return
        self._eased = True
        taken: dict[str, set[tuple[int, bool]]] = {}
        for (at, place), (space, yes, no) in zip(self._conditions.places, self._places, strict=True):
            seen = taken.setdefault(self._functions[at][0].__code__.co_filename, set())
            seen |= {(place, side) for side, met in ((True, space[yes]), (False, not space[no])) if met}
        for at in self._counting:
            function, made = self._functions[at]
            seen = taken.get(made.code.co_filename, set())
            plain = function.__module__ in _OURS
            less = probed(made.code.co_filename, plain=plain, taken=frozenset(seen))
            function.__code__ = less[made.name, made.code.co_firstlineno].code

    def close(self) -> None:
        """The rules are as they were."""
        for (function, _), code in zip(self._functions, self._kept, strict=True):
            function.__code__ = code
            function.__globals__.pop(PROBE, None)
        for at, (space, yes, no) in enumerate(self._places):
            self.taken |= space.pop(yes, False) << 2 * at | (not space.pop(no, True)) << 2 * at + 1


def _seen(space: dict[str, Any], yes: str, no: str) -> bool:
    """Whether both sides were taken."""
    return bool(space[yes]) and not space[no]


@contextmanager
def counted(conditions: Conditions) -> Iterator[Sides]:
    """Count the sides that the rules take while this is open; they are known once it is closed."""
    sides = Sides(conditions)
    sides.open()
    try:
        yield sides
    finally:
        sides.close()


def _probe_of(space: dict[str, Any]) -> Callable[[int, Any], Any]:
    names = cache(names_of)

    def probe(place: int, value: Any) -> Any:
        if value is True:
            space[names(place)[0]] = True
        elif value is False:
            space[names(place)[1]] = False
        else:
            try:
                true = bool(value)
            except Exception:  # it has no truth, and nobody but us asks for it
                return value
            space[names(place)[not true]] = true
        return value

    return probe


# --- which functions are the rules ------------------------------------------------------------------------------------


def _chosen(world: World) -> dict[str, Any]:
    """Each rule by its name, and the condition of the guard."""
    return {each.name: getattr(world.rules, each.name) for each in fields(Rules)} | {
        "guard": world.guard_in_force.condition
    }


def _in_force(world: World) -> Iterator[FunctionType]:
    """Each once: those of our modules in the order of their sources, then a user's own."""
    chosen = _chosen(world).values()
    own = list(_own(chosen))
    released = {getattr(RELEASED_RULES, each.name) for each in fields(Rules)}
    replaceable = {*released, *(guard.condition for guard in (*GUARDS.values(), *WEAKEST.values()))}
    replaced = replaceable - {*chosen, *own}
    for module in _MODULES:
        for function in _functions_of(module):
            if function not in replaced and function.__qualname__ not in _NO_RULES:
                yield function
    yield from (function for function in own if function.__module__ not in _OURS)


def _functions_of(module: ModuleType) -> Iterator[FunctionType]:
    """The functions that a module defines, and the methods of its classes."""
    for value in vars(module).values():
        if getattr(value, "__module__", None) == module.__name__:
            for member in vars(value).values() if isinstance(value, type) else [value]:
                written = isinstance(member, FunctionType) and member.__code__.co_filename != "<string>"
                if written and member.__module__ == module.__name__:  # not what dataclasses and named tuples make
                    yield member


def _plain(rule: Any) -> FunctionType | None:
    """The function behind a rule: of a bound method, of a decorated one, of a partial call, of an object to call."""
    for _ in range(10):
        if isinstance(rule, FunctionType) and not hasattr(rule, "__wrapped__"):
            return rule
        if isinstance(rule, MethodType):
            rule = rule.__func__
        elif isinstance(rule, partial):
            rule = rule.func
        else:
            rule = getattr(rule, "__wrapped__", None) or vars(type(rule)).get("__call__")
    return None


def _own(chosen: Iterable[Any]) -> Iterator[FunctionType]:
    """The rules that are not ours, and the functions that they name, theirs and ours, in the order of the first use."""
    rules = [_plain(each) for each in chosen if getattr(each, "__module__", None) not in _OURS]
    waiting = [each for each in rules if each is not None]
    spaces = [each.__globals__ for each in waiting]
    met: set[FunctionType] = set()
    for function in waiting:  # grows while it is walked
        if function in met:
            continue
        met.add(function)
        yield function
        if function.__module__ not in _OURS:
            named = (_plain(each) for each in _named(function) if callable(each))
            waiting += [
                each
                for each in named
                if each is not None and (each.__module__ in _OURS or any(each.__globals__ is one for one in spaces))
            ]


def _named(function: FunctionType) -> Iterator[Any]:
    """What a function names: globals, and what it takes from modules of ours."""
    space = function.__globals__
    names = [name for code in (function.__code__, *functions_inside(function.__code__)) for name in code.co_names]
    for name in names:
        if name in space:
            yield space[name]
    for name in names:
        if isinstance(space.get(name), ModuleType) and space[name].__name__ in _OURS:
            yield from (getattr(space[name], other) for other in names if hasattr(space[name], other))
