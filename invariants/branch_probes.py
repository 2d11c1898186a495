"""Rewriting a module so that each condition of its functions writes down which way it went.

Belongs here: from the text of a file to code objects with probes in them. Whose they take the place of is in
`branches`.

Theory of operation. A condition is what an `if`, a `while`, a conditional expression or the `if` of a comprehension
tests, each operand of its `and`, `or` and `not`, and every comparison elsewhere: what a guard returns is one. Where
only its truth counts, `T` becomes `(T and (yes := True)) or (no := False)`, with both names global in its module, or
the two stores stand first in the two branches: a store of a constant for each time, and no call. Elsewhere, and where
no name may be bound, it becomes the call `probe(place, T)`, which gives back the very value. Nothing else changes,
lines stay where they were.
"""

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import CodeType
from typing import TypeVar

__all__ = ["PROBE", "Found", "Probed", "functions_inside", "names_of", "probed"]

Node = TypeVar("Node", bound=ast.AST)
_PREFIX = "_outlives_branch_"
PROBE = f"{_PREFIX}probe"
"""The global function that probes in the form of a call use."""
_DECLARED = {"relaxed": "world", "reader": "world", "site": "guard", "counts_drafts": "guard"}
"""What is the same in every state, by whose it is; and all of a world's `switches`."""


@dataclass(frozen=True, slots=True)
class Found:
    """One condition of a function of the file."""

    place: int
    """Among all conditions of the file: its names are `names_of(place)`."""
    text: str
    number: int
    line: int
    declared: bool
    """It asks for nothing but what a profile or the assumptions say once and for all: no run can change its answer, and
    it has no probe."""


@dataclass(frozen=True, slots=True)
class Probed:
    """One function of the file, with probes."""

    name: str
    """Its qualified name."""
    code: CodeType
    conditions: tuple[Found, ...]


def names_of(place: int) -> tuple[str, str]:
    """The two global names of a condition, for true and for false."""
    return f"{_PREFIX}{place}_yes", f"{_PREFIX}{place}_no"


@lru_cache(maxsize=200)
def probed(
    path: str, *, plain: bool = False, taken: frozenset[tuple[int, bool]] = frozenset()
) -> dict[tuple[str, int], Probed]:
    """Every function of a file, methods and lambdas included, by its qualified name and its first line. Functions that
    cannot be told apart so are left out.

    `plain`: its comparisons give True or False and nothing else. `taken`: sides, by place, that need no probe any more.
    Raises OSError, and SyntaxError and ValueError for what is no Python.
    """
    probes = _Probes(plain=plain, taken=taken)
    tree = ast.fix_missing_locations(probes.visit(ast.parse(Path(path).read_text(encoding="utf-8"), path)))
    codes: dict[tuple[str, int], list[CodeType]] = {}
    for code in functions_inside(compile(tree, path, "exec", dont_inherit=True)):
        codes.setdefault((code.co_qualname, code.co_firstlineno), []).append(code)
    made = {}
    for unit in probes.units:
        found = codes.get((unit.name, unit.line), ())
        if len(found) == 1:
            made[unit.name, unit.line] = Probed(unit.name, found[0], tuple(unit.found))
    return made


def functions_inside(code: CodeType) -> Iterator[CodeType]:
    """The code objects inside another, at any depth."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from functions_inside(constant)


@dataclass(slots=True)
class _Unit:
    """A function under way."""

    name: str
    line: int
    found: list[Found] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)
    """Names that it sets, which are to be global in it."""
    declared: frozenset[str] = frozenset()
    """Its names for something declared."""


class _Probes(ast.NodeTransformer):
    """Puts the probes in. What stands outside of functions runs once, at import, and is left alone."""

    def __init__(self, *, plain: bool, taken: frozenset[tuple[int, bool]]) -> None:
        self._plain = plain
        self._taken = taken
        self.units: list[_Unit] = []
        self._around: list[_Unit] = []
        """The functions that the node at hand is in, the innermost last."""
        self._prefix = ""
        self._may_bind = True
        """Whether a name may be bound here: not in a lambda, whose names are its own, nor in what a comprehension runs
        through, where it is no syntax."""
        self._places = 0

    # --- what has a name ---------------------------------------------------------------------------------------------

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        with self._inside(f"{self._prefix}{node.name}."):
            return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        line = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        unit = _Unit(f"{self._prefix}{node.name}", line, declared=_declared_names(node))
        self.units.append(unit)
        with self._inside(f"{unit.name}.<locals>.", unit):
            node.body = self._all(node.body)
        if unit.stored:
            node.body.insert(0, ast.copy_location(ast.Global(unit.stored), node))
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        unit = _Unit(f"{self._prefix}<lambda>", node.lineno)
        self.units.append(unit)
        with self._inside(f"{unit.name}.<locals>.", unit), self._without_binding():
            node.body = self.visit(node.body)
        return node

    @contextmanager
    def _inside(self, prefix: str, unit: _Unit | None = None) -> Iterator[None]:
        before = self._prefix, self._may_bind
        self._prefix, self._may_bind = prefix, True
        if unit is not None:
            self._around.append(unit)
        try:
            yield
        finally:
            self._prefix, self._may_bind = before
            if unit is not None:
                self._around.pop()

    @contextmanager
    def _without_binding(self) -> Iterator[None]:
        before, self._may_bind = self._may_bind, False
        try:
            yield
        finally:
            self._may_bind = before

    def _all(self, nodes: Sequence[Node]) -> list[Node]:
        return [self.visit(node) for node in nodes]

    # --- what only truth is asked of ---------------------------------------------------------------------------------

    def visit_If(self, node: ast.If) -> ast.AST:
        return self._branching(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        return self._branching(node)

    def _branching(self, node: ast.If | ast.While) -> ast.AST:
        if not self._around or _composed(node.test) or isinstance(node.test, ast.Constant):
            node.test = self._truth(node.test)
            node.body, node.orelse = self._all(node.body), self._all(node.orelse)
            return node
        place = self._condition(node.test)
        node.test = self._bare(node.test)
        node.body, node.orelse = self._all(node.body), self._all(node.orelse)
        for side, block in ((True, node.body), (False, node.orelse)):
            if self._needs(place, side):
                store = ast.Assign([self._name(place, side)], ast.Constant(side))
                block.insert(0, ast.copy_location(store, node))
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        node.test = self._truth(node.test)
        node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        with self._without_binding():
            node.iter = self.visit(node.iter)
        node.ifs = [self._truth(test) for test in node.ifs]
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        return node  # what never happens is no branch

    def _truth(self, test: ast.expr) -> ast.expr:
        """A test with its probes."""
        if not self._around or isinstance(test, ast.Constant):
            return self.visit(test)  # type: ignore[no-any-return]
        if isinstance(test, ast.BoolOp):
            test.values = [self._truth(value) for value in test.values]
            return test
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test.operand = self._truth(test.operand)
            return test
        place = self._condition(test)
        inner = self._bare(test)
        if not self._may_bind:
            return self._call(place, inner)
        for side, operator in ((True, ast.And()), (False, ast.Or())):
            if self._needs(place, side):
                store = ast.NamedExpr(self._name(place, side), ast.Constant(side))
                inner = ast.copy_location(ast.BoolOp(operator, [inner, store]), test)
        return inner

    def _needs(self, place: int, side: bool) -> bool:
        return place >= 0 and (place, side) not in self._taken

    def _name(self, place: int, side: bool) -> ast.Name:
        """The name that a side sets, which is global from now on."""
        name = names_of(place)[0 if side else 1]
        self._around[-1].stored.append(name)
        return ast.Name(name, ast.Store())

    def _bare(self, test: ast.expr) -> ast.expr:
        """What is inside a test, with its probes, the test itself without."""
        inner = self.generic_visit(test) if isinstance(test, ast.Compare) else self.visit(test)
        assert isinstance(inner, ast.expr)
        return inner

    # --- what a value is wanted of -----------------------------------------------------------------------------------

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        return self._value(node) if self._around else self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        *decided, last = node.values
        node.values = [*(self._decided(value) for value in decided), self.visit(last)]
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        node.operand = self._truth(node.operand) if isinstance(node.op, ast.Not) else self.visit(node.operand)
        return node

    def _decided(self, value: ast.expr) -> ast.expr:
        """An operand whose truth decides whether the next one counts, and which may be the value itself."""
        if not self._around or _composed(value) or isinstance(value, ast.Constant | ast.Compare):
            return self.visit(value)  # type: ignore[no-any-return]
        return self._value(value)

    def _value(self, value: ast.expr) -> ast.expr:
        if self._plain and isinstance(value, ast.Compare):
            return self._truth(value)
        place = self._condition(value)
        return self._call(place, self._bare(value))

    def _condition(self, test: ast.expr) -> int:
        """A condition of every function that it is in; its place, or -1 where it needs no probe."""
        place = self._places
        self._places += 1
        text, declared = " ".join(ast.unparse(test).split()), _declared(test, self._around[-1].declared)
        for unit in self._around:
            number = 1 + sum(other.text == text for other in unit.found)
            unit.found.append(Found(place, text, number, test.lineno, declared))
        return -1 if declared else place

    def _call(self, place: int, value: ast.expr) -> ast.expr:
        if not (self._needs(place, side=True) or self._needs(place, side=False)):
            return value
        made = ast.Call(ast.Name(PROBE, ast.Load()), [ast.Constant(place), value], [])
        return ast.copy_location(made, value)


def _composed(test: ast.expr) -> bool:
    return isinstance(test, ast.BoolOp) or (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not))


def _declared_names(function: ast.FunctionDef) -> frozenset[str]:
    """Local names that are given something declared, and nothing else: `settle = world.switches.settle_turn`."""
    stored = [node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    given = [node for node in ast.walk(function) if isinstance(node, ast.Assign) and len(node.targets) == 1]
    return frozenset(
        target.id
        for node in given
        for target in node.targets
        if isinstance(target, ast.Name) and stored.count(target.id) == 1 and _declared(node.value)
    )


def _declared(test: ast.expr, names: frozenset[str] = frozenset()) -> bool:
    """Whether every name in it leads to something declared: `switches.x == 1`, `"A1" in work.world.relaxed`."""
    chains = [node for node in ast.walk(test) if isinstance(node, ast.Attribute) and _same_everywhere(node)]
    inside = {name for chain in chains for name in ast.walk(chain) if isinstance(name, ast.Name)}
    every = [node for node in ast.walk(test) if isinstance(node, ast.Name)]
    return bool(every) and all(name in inside or name.id == "switches" or name.id in names for name in every)


def _same_everywhere(node: ast.Attribute) -> bool:
    owner = getattr(node.value, "attr", getattr(node.value, "id", ""))
    return node.attr == "switches" or (node.attr in _DECLARED and owner in (_DECLARED[node.attr], "self"))
