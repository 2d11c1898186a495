"""Running a lifted method symbolically: for each item, the term under which it is released.

Belongs here: the way from a method to Z3 terms, and the same method run on plain numbers, with which every answer of
the solver is checked. What the method may do is in `sandbox`; what surrounds it is in `stubs`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import z3
from outlives.model.errors import OutlivesError

from ..proof.executor import NotSymbolic, Paths, execute, symbol, term_of
from ..proof.solvers import fresh_context
from .allowed import Stopped
from .classes import ClassIndex, ClassSource, Function
from .rewrite import NotLiftable
from .sandbox import Programs, Sandbox
from .stubs import World, symbols_for

__all__ = ["Method", "Release", "Unjudged", "released_on", "releases"]

_MAX_PATHS: Final = 256
_MAX_DECISIONS: Final = 120


class Unjudged(OutlivesError):
    """A method whose condition cannot be found; says why, in which file and at which line."""

    def __init__(self, why: str, file: str, line: int | None) -> None:
        place = f"{file}:{line}" if line else file
        super().__init__(f"{place}: {why}{'' if why.endswith('?') else '.'}")
        self.why = why
        self.file = file
        self.line = line


@dataclass(frozen=True, slots=True)
class Method:
    """The method to be judged: as the class `cls` has it, among the classes of its group."""

    index: ClassIndex
    cls: ClassSource
    function: Function
    programs: Programs


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What a symbolic run found, for a world with as many items as there are `terms`."""

    context: z3.Context
    values: Mapping[str, Any]
    """Symbols by name."""
    base: z3.BoolRef
    """Bounds of the symbols, and that the method does not raise."""
    terms: tuple[z3.BoolRef, ...]
    """For each item, when it is released."""
    paths: tuple[tuple[z3.BoolRef, frozenset[int]], ...]
    """The paths that do not raise: condition, and the items released on it."""
    atoms: tuple[z3.BoolRef, ...]
    """The comparisons that decided something, in the order in which they were met."""
    stops_at: int | None
    """The line of an assertion or `raise` of the method that some numbers reach: judged only where none does."""


class _Seen(NamedTuple):
    released: frozenset[int]
    stopped_at: int | None


def releases(method: Method, items: int, *, encoder_decoder: bool) -> Release:
    """Run the method on symbols. Raises `Unjudged` where some path reads something unknown or cannot be followed."""
    context = fresh_context()
    values = {item.name: symbol(item.name, context) for item in symbols_for(items)}
    bounds = _bounds(values, items)

    def once() -> _Seen:
        return _run(method, values, items, encoder_decoder)

    try:
        found = execute(once, context=context, assume=bounds, max_paths=_MAX_PATHS, max_decisions=_MAX_DECISIONS)
    except NotSymbolic as error:
        raise _unjudged(method, error) from error
    for outcome in found:
        if outcome.error is not None:
            raise _unjudged(method, outcome.error) from outcome.error
    stops = [outcome.value.stopped_at for outcome in found if outcome.value.stopped_at is not None]
    kept = tuple((o.condition, o.value.released) for o in found if o.value.stopped_at is None)
    terms = [term_of(bound, context) for bound in bounds]
    if stops:
        terms.append(_any([condition for condition, _ in kept], context))
    return Release(
        context=context,
        values=values,
        base=z3.And(*terms),
        terms=tuple(_any([c for c, items_of in kept if index in items_of], context) for index in range(items)),
        paths=kept,
        atoms=_atoms(found),
        stops_at=min(stops) if stops else None,
    )


def released_on(method: Method, numbers: Mapping[str, int], items: int, *, encoder_decoder: bool) -> frozenset[int]:
    """The items that the method releases on plain numbers (missing ones are at their lowest). Raises `Unjudged`."""
    values = {item.name: numbers.get(item.name, item.low) for item in symbols_for(items)}
    try:
        return _run(method, values, items, encoder_decoder).released
    except Exception as error:
        raise _unjudged(method, error) from error


def _run(method: Method, values: Mapping[str, Any], items: int, encoder_decoder: bool) -> _Seen:
    world = World(values, items, encoder_decoder=encoder_decoder)
    sandbox = Sandbox(method.index, method.cls, world.attributes, method.programs)
    owner, function = method.cls, method.function
    stopped_at = None
    try:
        sandbox.run(owner, function, world.request)
    except Stopped as stop:
        stopped_at = _place(stop, method)[1] or function.lineno
    return _Seen(frozenset(world.released), stopped_at)


def _bounds(values: Mapping[str, Any], items: int) -> list[Any]:
    bounds: list[Any] = []
    for item in symbols_for(items):
        bounds.append(values[item.name] >= item.low)
        if item.kind == "switch":
            bounds.append(values[item.name] <= 1)
    for index in range(items):
        bounds.append(values[f"embeddings {index}"] <= values[f"length {index}"])
        if index:  # items are listed in order and do not overlap
            before = values[f"start {index - 1}"] + values[f"length {index - 1}"]
            bounds.append(before <= values[f"start {index}"])
    return bounds


def _any(conditions: list[z3.BoolRef], context: z3.Context) -> z3.BoolRef:
    if not conditions:
        return z3.BoolVal(False, context)
    return conditions[0] if len(conditions) == 1 else z3.Or(*conditions)


def _atoms(found: Paths) -> tuple[z3.BoolRef, ...]:
    atoms: list[z3.BoolRef] = []
    for outcome in found:
        for decision in outcome.decisions:
            if not any(decision.term.eq(known) for known in atoms):
                atoms.append(decision.term)
    return tuple(atoms)


def _unjudged(method: Method, error: BaseException) -> Unjudged:
    file, line = _place(error, method)
    if isinstance(error, NotLiftable):
        return Unjudged(error.what, error.file or file, error.line or line)
    if isinstance(error, OutlivesError):
        return Unjudged(str(error).rstrip("."), file, line)
    if isinstance(error, RecursionError):
        return Unjudged("its calls or values are nested too deep", file, line)
    return Unjudged(f"it fails when run: {type(error).__name__}: {str(error)[:200]}".rstrip("."), file, line)


def _place(error: BaseException, method: Method) -> tuple[str, int | None]:
    """File and line of the innermost lifted code on the way to the error."""
    files = {Programs.tag(item): str(item.path) for item in method.index.classes}
    place: tuple[str, int | None] = (str(method.cls.path), method.function.lineno)
    step = error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if file in files:
            place = (files[file], step.tb_lineno)
        step = step.tb_next
    return place
