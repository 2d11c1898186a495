"""From solver terms to a reader's words: a release condition as one inequality, or as a few joined ones.

Belongs here: simplifying by solver questions and writing linear terms down. Every simplification is kept only if the
solver says that it means the same, so what is printed is the condition, not a likeness of it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import z3

from .stubs import SYMBOLS
from .symbolic import Release

__all__ = ["Checker", "Condition", "condition_of"]

_BUDGET: Final = 500_000
"""Z3 resource units per question. Where it runs out, the simplification is not made."""
_SWITCHES: Final = frozenset(symbol.name for symbol in SYMBOLS if symbol.kind == "switch")
_ON_THE_RIGHT: Final = frozenset(symbol.name for symbol in SYMBOLS if symbol.kind == "counter")
_ORDER: Final = {name: place for place, name in enumerate(["end", "start", "length", *(s.name for s in SYMBOLS)])}
_MOST_PARTS: Final = 12

Linear = Mapping[str, int]
"""Coefficients by symbol; the constant is under the empty name."""


class Checker:
    """Solver questions under fixed bounds."""

    def __init__(self, base: z3.BoolRef) -> None:
        self.base = base

    def ask(self, *terms: Any) -> z3.CheckSatResult:
        """Whether the terms can hold together within the bounds; `unknown` where the budget ran out."""
        solver = z3.Solver(ctx=self.base.ctx)
        solver.set("ctrl_c", False)  # the solver would take Ctrl-C for itself, and the run would go on
        solver.set("random_seed", 0)
        solver.set("rlimit", _BUDGET)
        solver.add(self.base, *terms)
        return solver.check()

    def always(self, term: Any) -> bool:
        """Whether the term is proved for all numbers within the bounds."""
        return bool(self.ask(z3.Not(term)) == z3.unsat)

    def same(self, one: Any, other: Any) -> bool:
        """Whether two conditions are proved to mean the same within the bounds."""
        return self.always(one == other)


class Condition(NamedTuple):
    """A condition in words, and how it depends on a look-ahead of the scheduler's."""

    formula: str
    linear: Linear | None
    """L of `L <= 0`, where the condition is one inequality."""


def condition_of(release: Release, item: int) -> Condition:
    """What the release condition of one item says, in its shortest form found."""
    checker = Checker(release.base)
    term = release.terms[item]
    if checker.always(z3.Not(term)):
        return Condition("never", None)
    if checker.always(term):
        return Condition("always", None)
    for atom in release.atoms:
        for side in (atom, z3.Not(atom)):
            if checker.same(term, side):
                linear = _relation(side)
                return Condition(_literal(side), linear.form if linear and linear.kind == "<=" else None)
    merged = _over_switches(release, term, checker)
    if merged is not None:
        return Condition(_inequality(merged), merged)
    return Condition(_joined(release, item, checker), None)


# --- linear terms ---------------------------------------------------------------------------------------------------


class _Relation(NamedTuple):
    form: Linear
    kind: str
    """`<=`, `=` or `!=`, against 0."""


def _linear(term: Any) -> dict[str, int] | None:
    if z3.is_int_value(term):
        return {"": term.as_long()}
    if z3.is_const(term):
        return {term.decl().name(): 1}
    children = [_linear(child) for child in term.children()]
    if any(child is None for child in children):
        return None
    parts = [child for child in children if child is not None]
    if z3.is_add(term):
        return _sum(parts)
    if z3.is_sub(term):
        return _sum([parts[0], *(_times(part, -1) for part in parts[1:])])
    if term.decl().kind() == z3.Z3_OP_UMINUS:
        return _times(parts[0], -1)
    if z3.is_mul(term) and len(parts) == 2 and any(set(part) <= {""} for part in parts):
        number, other = sorted(parts, key=lambda part: not set(part) <= {""})
        return _times(other, number.get("", 0))
    return None


def _sum(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for name, factor in part.items():
            total[name] = total.get(name, 0) + factor
    return {name: factor for name, factor in total.items() if factor}


def _times(part: Mapping[str, int], factor: int) -> dict[str, int]:
    return {name: value * factor for name, value in part.items()}


_RELATIONS: Final[Mapping[int, Callable[[dict[str, int], dict[str, int]], _Relation]]] = {
    z3.Z3_OP_LE: lambda a, b: _Relation(_sum([a, _times(b, -1)]), "<="),
    z3.Z3_OP_GE: lambda a, b: _Relation(_sum([b, _times(a, -1)]), "<="),
    z3.Z3_OP_LT: lambda a, b: _Relation(_sum([a, _times(b, -1), {"": 1}]), "<="),
    z3.Z3_OP_GT: lambda a, b: _Relation(_sum([b, _times(a, -1), {"": 1}]), "<="),
    z3.Z3_OP_EQ: lambda a, b: _Relation(_sum([a, _times(b, -1)]), "="),
}


def _relation(term: Any) -> _Relation | None:
    if z3.is_not(term):
        inner = _relation(term.arg(0))
        if inner is None:
            return None
        if inner.kind == "<=":
            return _Relation(_sum([_times(inner.form, -1), {"": 1}]), "<=")
        return _Relation(inner.form, "!=" if inner.kind == "=" else "=")
    make = _RELATIONS.get(term.decl().kind())
    if make is None or not z3.is_arith(term.arg(0)):
        return None
    left, right = _linear(term.arg(0)), _linear(term.arg(1))
    return make(left, right) if left is not None and right is not None else None


def _over_switches(release: Release, term: Any, checker: Checker) -> Linear | None:
    """One inequality in which a switch adds a constant (the look-ahead of a drafter that may be off)."""
    for name in sorted(_SWITCHES):
        symbol = release.values[name].term
        sides = []
        for setting in (0, 1):
            at = Checker(z3.And(release.base, symbol == setting))
            fitting = (
                relation.form
                for atom in release.atoms
                for side in (atom, z3.Not(atom))
                if (relation := _relation(side)) is not None and relation.kind == "<=" and at.same(term, side)
            )
            sides.append(next(fitting, None))
        off, on = sides
        if off is None or on is None:
            continue
        difference = _sum([on, _times(off, -1)])
        if set(difference) == {""}:
            form = _sum([off, {name: difference[""]}])
            if checker.same(term, _term(form, release) <= 0):
                return form
    return None


def _term(form: Linear, release: Release) -> Any:
    total: Any = z3.IntVal(form.get("", 0), release.context)
    for name, factor in form.items():
        if name:
            total = total + factor * release.values[name].term
    return total


# --- writing down ---------------------------------------------------------------------------------------------------


def _joined(release: Release, item: int, checker: Checker) -> str:
    """A disjunction of conjunctions over the paths, with everything left out that makes no difference."""
    parts = [_literals(condition) for condition, released in release.paths if item in released]
    if len(parts) > _MOST_PARTS:
        return f"a condition of {len(parts)} paths, too long to be written down"
    term = release.terms[item]
    for place, part in enumerate(parts):
        for literal in list(part):
            fewer = [other for other in part if other is not literal]
            if checker.same(term, _either([*parts[:place], fewer, *parts[place + 1 :]], release.context)):
                part = parts[place] = fewer
    for part in list(parts):
        fewer_parts = [other for other in parts if other is not part]
        if fewer_parts and checker.same(term, _either(fewer_parts, release.context)):
            parts = fewer_parts
    written = [" and ".join(_literal(literal) for literal in part) for part in parts]
    if len(written) == 1:
        return written[0]
    return " or ".join(f"({text})" if " and " in text else text for text in written)


def _literals(condition: Any) -> list[Any]:
    return list(condition.children()) if z3.is_and(condition) else [condition]


def _either(parts: Sequence[Sequence[Any]], context: z3.Context) -> Any:
    return z3.Or([z3.And(list(part)) if part else z3.BoolVal(True, context) for part in parts])


def _literal(term: Any) -> str:
    relation = _relation(term)
    if relation is None:
        return str(term).replace("\n", " ")
    named = [name for name in relation.form if name]
    if len(named) == 1 and named[0] in _SWITCHES:
        zero = relation.form.get("", 0) == 0
        is_off = zero if relation.kind in ("=", "<=") else not zero
        return f"not {named[0]}" if is_off else named[0]
    return _inequality(relation.form, relation.kind)


def _inequality(form: Linear, sign: str = "<=") -> str:
    """`L <= 0` (or `=`, `!=`) with item and look-ahead on the left, counters on the right."""
    whole = _with_end(form)
    left = {name: factor for name, factor in whole.items() if name and name not in _ON_THE_RIGHT}
    right = {name: -factor for name, factor in whole.items() if name in _ON_THE_RIGHT}
    constant = whole.get("", 0)
    turned = ">=" if sign == "<=" else sign
    if not left:
        # only counters: `computed >= 1` reads better than `1 <= computed`
        if all(factor < 0 for factor in right.values()):
            return f"{_side(_times(right, -1))} {sign} {-constant}"
        return f"{_side(right)} {turned} {constant}"
    first = min(left, key=_place)
    if left[first] < 0:
        left, right, constant, sign = _times(left, -1), _times(right, -1), -constant, turned
    if not right:
        return f"{_side(left)} {sign} {-constant}"
    if constant > 0:
        left[""] = constant
    elif constant < 0:
        right[""] = -constant
    return f"{_side(left)} {sign} {_side(right)}"


def _with_end(form: Linear) -> dict[str, int]:
    """Replace start + length of an item by its end; an item's number is left out where it is the first."""
    whole = dict(form)
    for name in list(whole):
        if name.startswith("start "):
            index = name.removeprefix("start ")
            length = f"length {index}"
            if whole.get(length) == whole[name]:
                whole[f"end {index}"] = whole.pop(name)
                del whole[length]
    return {name.removesuffix(" 0"): factor for name, factor in whole.items()}


def _place(name: str) -> tuple[int, str]:
    return (_ORDER.get(name, 3), name) if name else (len(_ORDER) + 1, name)


def _side(form: Linear) -> str:
    text = ""
    for name in sorted(form, key=lambda name: (form[name] < 0, _place(name))):
        factor = form[name]
        size = abs(factor)
        if not name:
            part = str(size)
        elif name in _SWITCHES:
            part = f"({size} if {name})"
        else:
            part = name if size == 1 else f"{size} * {name}"
        if text:
            text += f" {'-' if factor < 0 else '+'} {part}"
        else:
            text = f"-{part}" if factor < 0 else part
    return text or "0"
