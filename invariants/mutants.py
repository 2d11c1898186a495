"""Mutants of the model's own rules, made from their source: each is one function with one small thing changed.

Belongs here: making them, and putting one in the place of its function for as long as it is judged. How they are judged
is in `mutant_battery`.

Theory of operation. A function of the model is parsed, one node of its tree is changed, and the result is compiled. Its
code object then takes the place of the original's, so that whoever holds the function, a `Rules` record or a module
that imported it, runs the mutant. A mutant is named by what was changed, never by its line, so that what is known of it
outlives edits around it.
"""

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import NamedTuple

from outlives.model import batch, book, gate, lifetime, output, worker
from outlives.model.errors import Contradiction

__all__ = ["MODULES", "Mutant", "mutant_named", "mutants", "planted"]

MODULES: dict[str, ModuleType] = {
    "lifetime": lifetime,
    "book": book,
    "gate": gate,
    "batch": batch,
    "output": output,
    "worker": worker,
}
"""Counters and guards, the book, the pass (gate, batch, output), the worker."""

_COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_NOT_RULES = {"guard_named"}
"""It looks a name up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One function with one thing changed."""

    module: str
    function: str
    operator: str
    """What kind of change it is."""
    before: str
    after: str
    number: int
    """Which of several with the same texts, from 1."""
    line: int
    """Where it is now, for people."""
    tree: ast.FunctionDef

    @property
    def key(self) -> str:
        """Its name: function and expression, no line."""
        which = f" ({self.number})" if self.number > 1 else ""
        return f"{self.module}.{self.function}: {self.before} -> {self.after}{which}"


Change = tuple[str, str, str, int, Callable[[ast.AST], None]]
"""Operator, text before, text after, line, and what changes a copy's node in place."""


@cache
def mutants(module: str) -> tuple[Mutant, ...]:
    """Every mutant of a module's functions, in the order of its source."""
    path = Path(str(MODULES[module].__file__))
    made: list[Mutant] = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name not in _NOT_RULES:
            made += _of_function(module, node)
    return tuple(made)


def mutant_named(key: str) -> Mutant:
    """The mutant of that key; raises `Contradiction` where there is none any more."""
    module = key.partition(".")[0]
    made = {each.key: each for each in mutants(module)} if module in MODULES else {}
    if key not in made:
        near = get_close_matches(key, made, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise Contradiction(
            f"there is no mutant {key[:80]!r}.{hint} Take one that outlives faults --mutants --json lists: its key is "
            f"module.function: code -> code, the module one of {', '.join(MODULES)}."
        )
    return made[key]


@contextmanager
def planted(mutant: Mutant) -> Iterator[None]:
    """The mutant in the place of its function."""
    original = getattr(MODULES[mutant.module], mutant.function)
    assert isinstance(original, FunctionType)
    whole = ast.fix_missing_locations(ast.Module([mutant.tree], []))
    names = dict(vars(MODULES[mutant.module]))
    exec(compile(whole, f"<mutant {mutant.key}>", "exec"), names)
    kept = original.__code__
    original.__code__ = names[mutant.function].__code__
    try:
        yield
    finally:
        original.__code__ = kept


def _of_function(module: str, function: ast.FunctionDef) -> Iterator[Mutant]:
    seen: Counter[tuple[str, str]] = Counter()
    body = _without_docstring(function)
    for at, node in enumerate(ast.walk(body)):
        for operator, before, after, line, change in _changes(node):
            mutated = copy.deepcopy(body)
            change(_nth(mutated, at))
            seen[before, after] += 1
            yield Mutant(
                module=module,
                function=function.name,
                operator=operator,
                before=before,
                after=after,
                number=seen[before, after],
                line=line,
                tree=mutated,
            )


def _without_docstring(function: ast.FunctionDef) -> ast.FunctionDef:
    bare = copy.deepcopy(function)
    if ast.get_docstring(bare) is not None:
        bare.body = bare.body[1:]
    bare.returns = None
    for argument in (*bare.args.posonlyargs, *bare.args.args, *bare.args.kwonlyargs):
        argument.annotation = None
    return bare


def _nth(tree: ast.AST, at: int) -> ast.AST:
    return next(node for number, node in enumerate(ast.walk(tree)) if number == at)


def _text(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())


def _short(statement: ast.stmt) -> str:
    """The head of a compound statement, the whole of another."""
    return ast.unparse(statement).partition("\n")[0]


# --- what can be changed ----------------------------------------------------------------------------------------------


def _changes(node: ast.AST) -> Iterator[Change]:
    """Every change of this node itself."""
    if isinstance(node, ast.Compare):
        yield from _compared(node)
    elif isinstance(node, ast.BinOp):
        yield from _term(node)
    elif isinstance(node, ast.BoolOp):
        yield from _condition(node)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "negation", _text(node), _text(node.operand), node.lineno, _becomes(node.operand)
    elif isinstance(node, ast.IfExp):
        for side in (node.body, node.orelse):
            yield "choice", _text(node), _text(side), node.lineno, _becomes(side)
    elif isinstance(node, ast.Call):
        yield from _called(node)
    elif isinstance(node, ast.Subscript):
        yield from _indexed(node)
    for name in ("body", "orelse"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield from _statements(name, block)


def _becomes(other: ast.AST) -> Callable[[ast.AST], None]:
    """Change a node into a copy of another expression, in place."""

    def change(node: ast.AST) -> None:
        new = copy.deepcopy(other)
        node.__class__ = new.__class__
        node.__dict__ = new.__dict__

    return change


def _rewritten(operator: str, node: ast.expr, change: Callable[[ast.AST], None]) -> Change:
    after = copy.deepcopy(node)
    change(after)
    return operator, _text(node), _text(after), node.lineno, change


def _compared(node: ast.Compare) -> Iterator[Change]:
    for at, op in enumerate(node.ops):
        other = _COMPARE[type(op)]

        def change(target: ast.AST, at: int = at, other: type[ast.cmpop] = other) -> None:
            assert isinstance(target, ast.Compare)
            target.ops[at] = other()

        yield _rewritten("comparison", node, change)


def _term(node: ast.BinOp) -> Iterator[Change]:
    if isinstance(node.op, ast.Add | ast.Sub | ast.BitOr):
        yield "dropped term", _text(node), _text(node.left), node.lineno, _becomes(node.left)
        if isinstance(node.op, ast.Add):
            yield "dropped term", _text(node), _text(node.right), node.lineno, _becomes(node.right)


def _condition(node: ast.BoolOp) -> Iterator[Change]:
    for at in range(len(node.values)):
        left = [value for number, value in enumerate(node.values) if number != at]
        rest = left[0] if len(left) == 1 else ast.BoolOp(copy.deepcopy(node.op), copy.deepcopy(left))
        yield "dropped condition", _text(node), _text(rest), node.lineno, _becomes(rest)


def _called(node: ast.Call) -> Iterator[Change]:
    if isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
        other = "max" if node.func.id == "min" else "min"

        def swap(target: ast.AST) -> None:
            assert isinstance(target, ast.Call)
            target.func = ast.Name(other, ast.Load())

        yield _rewritten("bound", node, swap)
    if isinstance(node.func, ast.Attribute) and node.func.attr == "_replace":
        for at, keyword in enumerate(node.keywords):
            if keyword.arg is None:
                continue

            def drop(target: ast.AST, at: int = at) -> None:
                assert isinstance(target, ast.Call)
                del target.keywords[at]

            yield _rewritten("skipped update", node, drop)


def _indexed(node: ast.Subscript) -> Iterator[Change]:
    index = node.slice
    if isinstance(index, ast.Constant) and isinstance(index.value, int):
        other = index.value + 1 if index.value >= 0 else 0

        def shift(target: ast.AST) -> None:
            assert isinstance(target, ast.Subscript)
            target.slice = ast.Constant(other)

        yield _rewritten("index", node, shift)
    elif isinstance(index, ast.UnaryOp) and isinstance(index.operand, ast.Constant):

        def first(target: ast.AST) -> None:
            assert isinstance(target, ast.Subscript)
            target.slice = ast.Constant(0)

        yield _rewritten("index", node, first)


_SWAPPED = (ast.Assign, ast.AugAssign, ast.Expr, ast.If, ast.For)


def _statements(name: str, block: list[ast.stmt]) -> Iterator[Change]:
    for at, statement in enumerate(block):
        if isinstance(statement, ast.AugAssign | ast.Expr | ast.Continue | ast.Break) or _updates(statement):

            def skip(target: ast.AST, at: int = at) -> None:
                getattr(target, name)[at] = ast.Pass()

            yield "skipped update", _text(statement), "pass", statement.lineno, skip
        if at + 1 < len(block) and _order_matters(statement, block[at + 1]):

            def swap(target: ast.AST, at: int = at) -> None:
                lines = getattr(target, name)
                lines[at], lines[at + 1] = lines[at + 1], lines[at]

            one, two = _short(statement), _short(block[at + 1])
            yield "swapped updates", f"{one}; {two}", f"{two}; {one}", statement.lineno, swap


def _order_matters(first: ast.stmt, second: ast.stmt) -> bool:
    """Whether two statements touch something in common, and could be run the other way round at all."""
    if not (isinstance(first, _SWAPPED) and isinstance(second, _SWAPPED)):
        return False
    one, two = _touched(first), _touched(second)
    fresh = one.bound - one.read  # the first use of a name cannot come before its value
    return bool((one.bound & (two.read | two.bound)) | (two.bound & one.read)) and not fresh & two.read


class _Touched(NamedTuple):
    bound: set[str]
    read: set[str]


def _touched(statement: ast.stmt) -> _Touched:
    names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    if isinstance(statement, ast.AugAssign):
        read |= bound
    return _Touched(bound, read)


def _updates(statement: ast.stmt) -> bool:
    """Whether it gives something that is there already another value: an attribute, an element, or a name that its
    own right side reads."""
    if not isinstance(statement, ast.Assign):
        return False
    names = {node.id for node in ast.walk(statement.value) if isinstance(node, ast.Name)}
    targets = [each for target in statement.targets for each in ast.walk(target)]
    return any(
        isinstance(each, ast.Attribute | ast.Subscript) or (isinstance(each, ast.Name) and each.id in names)
        for each in targets
    )
