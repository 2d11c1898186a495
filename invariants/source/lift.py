"""Lifting: a method of a parsed file becomes code that can reach nothing but the hooks of `sandbox`.

Belongs here: signature, compilation and the refusals that concern a method as a whole. What happens to its statements
and expressions is in `rewrite`.
"""

import ast
import copy
from types import CodeType
from typing import Final

from .classes import Function
from .rewrite import NotLiftable, Rewriter, hook_statement, plain_constant

__all__ = ["LARGEST_METHOD", "lift"]

LARGEST_METHOD: Final = 5_000
"""In nodes of the syntax tree; released methods have under 200. Keeps what one step can build small."""


def lift(function: Function, file_tag: str) -> CodeType:
    """Check, rewrite and compile one method. `file_tag` is what tracebacks will call its file.

    The code, executed in a namespace of hooks, defines `lifted` there. Raises `NotLiftable` with the line of the first
    thing that is not on the whitelist.
    """
    if isinstance(function, ast.AsyncFunctionDef):
        raise NotLiftable("it is an async function", function.lineno)
    if function.decorator_list:
        raise NotLiftable("it has a decorator", function.decorator_list[0].lineno)
    if sum(1 for _ in ast.walk(function)) > LARGEST_METHOD:
        raise NotLiftable("it is too large to be a method that frees encoder inputs", function.lineno)
    try:
        rewritten = _rewrite(function)
        module = ast.Module(body=[rewritten], type_ignores=[])
        code: CodeType = compile(ast.fix_missing_locations(module), file_tag, "exec", dont_inherit=True)
    except (RecursionError, MemoryError, ValueError, SyntaxError) as error:
        raise NotLiftable(f"it cannot be compiled ({type(error).__name__})", function.lineno) from error
    return code


def _rewrite(function: ast.FunctionDef) -> ast.FunctionDef:
    arguments = copy.deepcopy(function.args)
    if arguments.vararg or arguments.kwarg:
        raise NotLiftable("it takes any number of arguments", function.lineno)
    for default in [*arguments.defaults, *arguments.kw_defaults]:
        if default is not None:
            _check_constant(default, function.lineno)
    names = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    for argument in names:
        argument.annotation = None
    local = {argument.arg for argument in names}
    for node in ast.walk(ast.Module(body=function.body, type_ignores=[])):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            local.add(node.id)
    rewriter = Rewriter(local)
    body = [hook_statement("tick", function.body[0])]
    body += [kept for statement in copy.deepcopy(function.body) for kept in rewriter.statement(statement)]
    made = ast.FunctionDef(name="lifted", args=arguments, body=body, decorator_list=[], returns=None, type_comment=None)
    if "type_params" in ast.FunctionDef._fields:  # Python 3.12 on
        vars(made)["type_params"] = []
    return ast.copy_location(made, function)


def _check_constant(node: ast.expr, line: int) -> None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    if not isinstance(node, ast.Constant) or not plain_constant(node.value):
        raise NotLiftable("a default value is not a plain constant", line)
