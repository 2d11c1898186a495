"""The whitelist of syntax, and the rewriting that puts every operation of a lifted method behind a hook.

Belongs here: one rule for each kind of statement and expression that is allowed; whatever has no rule is refused.
Refused are imports, lambdas, nested functions and classes, `global`, `try`, `with`, `del`, `yield`, private and dunder
names and the like. What remains keeps Python's own control flow, but each attribute, call, global name, index and
operand goes through a hook, whose name is not an identifier, so that no source text can spell it.
"""

import ast
from typing import Final, NoReturn

from outlives.model.errors import OutlivesError

__all__ = ["HOOKS", "NotLiftable", "Rewriter", "hook_statement", "plain_constant"]

HOOKS: Final = ("read", "call", "global", "value", "number", "container", "iterate", "tick", "text", "stop")
"""Hooks by name; lifted code calls each under its name with a dot before it."""
_LARGEST_CONSTANT: Final = 2**63

_STATEMENTS: Final = (
    ast.Return,
    ast.Assign,
    ast.AugAssign,
    ast.AnnAssign,
    ast.For,
    ast.While,
    ast.If,
    ast.Expr,
    ast.Pass,
    ast.Break,
    ast.Continue,
    ast.Assert,
    ast.Raise,
)
_ARITHMETIC: Final = (ast.Mult, ast.FloorDiv, ast.Mod)
_JOINING: Final = (ast.Add, ast.Sub, ast.BitOr, ast.BitAnd)
_COMPARISONS: Final = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn, ast.Is, ast.IsNot)


class NotLiftable(OutlivesError):
    """A method that is not run, because its source has something that is never run here; the line tells where."""

    def __init__(self, what: str, line: int | None) -> None:
        super().__init__(what)
        self.what = what
        self.line = line
        self.file: str | None = None


def plain_constant(value: object) -> bool:
    """Whether a constant is a number of at most 64 bits, a text, a truth value or None."""
    if type(value) is int:
        return abs(value) < _LARGEST_CONSTANT
    return value is None or type(value) in (bool, str)


def _hook(name: str, arguments: list[ast.expr], at: ast.AST) -> ast.Call:
    made = ast.Call(func=ast.Name(id=f".{name}", ctx=ast.Load()), args=arguments, keywords=[])
    return ast.fix_missing_locations(ast.copy_location(made, at))


def hook_statement(name: str, at: ast.AST) -> ast.stmt:
    """A statement that calls a hook without arguments, at the line of `at`."""
    return ast.copy_location(ast.Expr(value=_hook(name, [], at)), at)


def _refuse(what: str, node: ast.AST) -> NoReturn:
    raise NotLiftable(what, getattr(node, "lineno", None))


class Rewriter:
    """Rewrites statements and expressions; whatever has no rule here is refused."""

    def __init__(self, local: set[str]) -> None:
        self.local = local

    # --- statements -------------------------------------------------------------------------------------------

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        return [kept for statement in statements for kept in self.statement(statement)]

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        if not isinstance(node, _STATEMENTS):
            _refuse(f"it has a statement that is never run here ({type(node).__name__})", node)
        match node:
            case ast.Return():
                node.value = self.expression(node.value) if node.value is not None else None
            case ast.Expr():
                node.value = self.expression(node.value)
            case ast.Assign():
                node.value = self.expression(node.value)
                node.targets = [self.target(target) for target in node.targets]
            case ast.AnnAssign():
                if node.value is None:
                    return []
                made = ast.Assign(targets=[self.target(node.target)], value=self.expression(node.value))
                return [ast.copy_location(made, node)]
            case ast.AugAssign():
                return [self.augmented(node)]
            case ast.If():
                node.test = self.expression(node.test)
                node.body, node.orelse = self.block(node.body), self.block(node.orelse)
            case ast.While():
                node.test = self.expression(node.test)
                node.body = [hook_statement("tick", node), *self.block(node.body)]
                node.orelse = self.block(node.orelse)
            case ast.For():
                node.iter = _hook("iterate", [self.expression(node.iter)], node.iter)
                node.target = self.target(node.target)
                node.body, node.orelse = self.block(node.body), self.block(node.orelse)
            case ast.Assert():
                stop = hook_statement("stop", node)
                made_if = ast.If(test=self.expression(node.test), body=[ast.Pass()], orelse=[stop])
                return [ast.fix_missing_locations(ast.copy_location(made_if, node))]
            case ast.Raise():
                return [hook_statement("stop", node)]
        return [node]

    def augmented(self, node: ast.AugAssign) -> ast.stmt:
        # Only numbers: on a list, `a += b` changes the list that other names see as well.
        if not isinstance(node.target, ast.Name):
            _refuse("it changes something outside itself", node)
        if not isinstance(node.op, _ARITHMETIC + _JOINING):
            _refuse(f"it uses an operator that is never run here ({type(node.op).__name__})", node)
        old = ast.copy_location(ast.Name(id=node.target.id, ctx=ast.Load()), node)
        new = ast.BinOp(
            left=_hook("number", [old], node), op=node.op, right=_hook("number", [self.expression(node.value)], node)
        )
        target = ast.Name(id=node.target.id, ctx=ast.Store())
        return ast.fix_missing_locations(ast.copy_location(ast.Assign(targets=[target], value=new), node))

    def target(self, node: ast.expr) -> ast.expr:
        match node:
            case ast.Name():
                self.spelled(node.id, node)
            case ast.Tuple() | ast.List():
                node.elts = [self.target(item) for item in node.elts]
            case ast.Subscript():
                node.value = _hook("container", [self.expression(node.value)], node)
                node.slice = _hook("value", [self.expression(node.slice)], node)
            case ast.Attribute():
                _refuse(f"it assigns to .{node.attr}, so it changes something outside itself", node)
            case _:
                _refuse("it assigns in a way that is never run here", node)
        return node

    # --- expressions ------------------------------------------------------------------------------------------

    def expression(self, node: ast.expr) -> ast.expr:
        match node:
            case ast.Constant():
                if not plain_constant(node.value):
                    _refuse("it has a constant that is not a number, a text, a truth value or None", node)
                return node
            case ast.Name():
                self.spelled(node.id, node)
                if node.id in self.local:
                    return node
                return _hook("global", [ast.Constant(value=node.id)], node)
            case ast.Attribute():
                if node.attr.startswith("__"):
                    _refuse(f"it reads the private attribute {node.attr}", node)
                return _hook("read", [self.expression(node.value), ast.Constant(value=node.attr)], node)
            case ast.Call():
                return self.call(node)
            case ast.Subscript():
                if isinstance(node.slice, ast.Slice):
                    _refuse("it takes a slice", node)
                node.value = _hook("container", [self.expression(node.value)], node)
                node.slice = _hook("value", [self.expression(node.slice)], node)
                return node
            case ast.BinOp():
                return self.binary(node)
            case ast.UnaryOp():
                if isinstance(node.op, ast.Invert):
                    _refuse("it uses an operator that is never run here (Invert)", node)
                node.operand = self.expression(node.operand)
                if not isinstance(node.op, ast.Not):
                    node.operand = _hook("number", [node.operand], node)
                return node
            case ast.BoolOp():
                node.values = [self.expression(value) for value in node.values]
                return node
            case ast.Compare():
                return self.compare(node)
            case ast.IfExp():
                node.test, node.body = self.expression(node.test), self.expression(node.body)
                node.orelse = self.expression(node.orelse)
                return node
            case ast.NamedExpr():
                self.target(node.target)
                node.value = self.expression(node.value)
                return node
            case ast.List() | ast.Tuple():
                node.elts = [self.expression(item) for item in node.elts]
                return node
            case ast.Set():
                node.elts = [_hook("value", [self.expression(item)], item) for item in node.elts]
                return node
            case ast.Dict():
                return self.dictionary(node)
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp() | ast.DictComp():
                return self.comprehension(node)
            case ast.JoinedStr():
                parts = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
                return _hook("text", [self.expression(part) for part in parts], node)
        _refuse(f"it has an expression that is never run here ({type(node).__name__})", node)

    def call(self, node: ast.Call) -> ast.expr:
        if any(keyword.arg is None for keyword in node.keywords):
            _refuse("it unpacks a dictionary into a call", node)
        function = self.expression(node.func)
        arguments = [_hook("value", [self.expression(argument)], argument) for argument in node.args]
        made = _hook("call", [function, *arguments], node)
        for keyword in node.keywords:
            keyword.value = _hook("value", [self.expression(keyword.value)], keyword.value)
        made.keywords = node.keywords
        return made

    def binary(self, node: ast.BinOp) -> ast.expr:
        if not isinstance(node.op, _ARITHMETIC + _JOINING):
            _refuse(f"it uses an operator that is never run here ({type(node.op).__name__})", node)
        hook = "number" if isinstance(node.op, _ARITHMETIC) else "value"
        node.left = _hook(hook, [self.expression(node.left)], node.left)
        node.right = _hook(hook, [self.expression(node.right)], node.right)
        return node

    def compare(self, node: ast.Compare) -> ast.expr:
        for operator, right in zip(node.ops, node.comparators, strict=True):
            if not isinstance(operator, _COMPARISONS):
                _refuse("it compares in a way that is never run here", node)
            is_none = isinstance(right, ast.Constant) and right.value is None
            if isinstance(operator, ast.Is | ast.IsNot) and not is_none:
                _refuse("it uses `is` on something other than None, which has no meaning for numbers", node)
        node.left = _hook("value", [self.expression(node.left)], node.left)
        node.comparators = [_hook("value", [self.expression(right)], right) for right in node.comparators]
        return node

    def dictionary(self, node: ast.Dict) -> ast.expr:
        keys: list[ast.expr | None] = []
        for key in node.keys:
            if key is None:
                _refuse("it unpacks a dictionary", node)
            keys.append(_hook("value", [self.expression(key)], key))
        node.keys = keys
        node.values = [self.expression(value) for value in node.values]
        return node

    def comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp) -> ast.expr:
        for part in node.generators:
            if part.is_async:
                _refuse("it has an async comprehension", node)
            part.iter = _hook("iterate", [self.expression(part.iter)], part.iter)
            part.target = self.target(part.target)
            part.ifs = [self.expression(test) for test in part.ifs]
        if isinstance(node, ast.DictComp):
            node.key = _hook("value", [self.expression(node.key)], node.key)
            node.value = self.expression(node.value)
            return node
        node.elt = self.expression(node.elt)
        if isinstance(node, ast.SetComp):
            node.elt = _hook("value", [node.elt], node.elt)
        if isinstance(node, ast.GeneratorExp):
            # A list: nothing then runs later than where it is written, and every value is of a known kind.
            return ast.copy_location(ast.ListComp(elt=node.elt, generators=node.generators), node)
        return node

    def spelled(self, name: str, node: ast.AST) -> None:
        if name.startswith("__"):
            _refuse(f"it uses the private name {name}", node)
