"""Why the model may refuse each of its actions: the reasons, read from its source, so that a run can say which it met.

Belongs here: reading them. A reason is the text of a `Refusal("...")` in an action's handler, or in a function that the
handler names; what becomes of the counts is in `reached`.
"""

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import FunctionType

from outlives.model import scheduler
from outlives.model.contract import Refusal
from outlives.model.scheduler import SchedulerModel

__all__ = ["refusal_reasons"]


def refusal_reasons(actions: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """Each reason that can be given for refusing one of these actions -> those actions, both in the model's order."""
    found: dict[str, list[str]] = {}
    for action in actions:
        for reason in _of_action(action):
            found.setdefault(reason, []).append(action)
    return {reason: tuple(names) for reason, names in found.items()}


@cache
def _of_action(action: str) -> tuple[str, ...]:
    handler = scheduler._HANDLERS.get(action)
    return tuple(dict.fromkeys(_of_function(handler, set()))) if isinstance(handler, FunctionType) else ()


def _of_function(function: FunctionType, met: set[FunctionType]) -> Iterator[str]:
    """The reasons in a function and in those of the model that it names, in the order of the source."""
    if function in met:
        return
    met.add(function)
    for node in ast.walk(_source(function)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            reason = node.args[0]
            if function.__globals__.get(node.func.id) is Refusal and isinstance(reason, ast.Constant):
                yield str(reason.value)
        for other in _named(node, function):
            if isinstance(other, FunctionType) and other.__module__.startswith("outlives.model"):
                yield from _of_function(other, met)


def _named(node: ast.AST, function: FunctionType) -> Iterator[object]:
    if isinstance(node, ast.Name):
        yield function.__globals__.get(node.id)
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        yield vars(SchedulerModel).get(node.attr)


def _source(function: FunctionType) -> ast.AST:
    """The function's own tree."""
    path = inspect.getsourcefile(function)
    assert path is not None
    name, line = function.__name__, function.__code__.co_firstlineno
    return next(
        node
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.FunctionDef)
        and node.name == name
        and line in (node.lineno, *(each.lineno for each in node.decorator_list))
    )


@cache
def _tree(path: str) -> ast.Module:
    return ast.parse(Path(path).read_text(encoding="utf-8"))
