"""From where a method is called, and which other calls release entries without being judged.

Belongs here: questions answered by reading the parsed files of a group. Nothing is run, so the answers go by names: a
call is found by the name of what it calls, whatever object it is called on.
"""

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from .classes import ClassIndex, dotted_tail
from .files import SourceFile, SourceGroup

__all__ = ["CallSite", "OtherRelease", "call_sites", "other_releases"]

_AFTER_DISPATCH: Final = "_update_after_schedule"
_AT_OUTPUT: Final = "update_from_output"
_ELSEWHERE: Final = "elsewhere"
_ADVANCED: Final = "num_computed_tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSite:
    """One call of the judged method."""

    function: str
    """The calling function, with its class: `Scheduler.update_from_output`."""
    file: str
    line: int
    site: str
    """`after-advance`, `before-advance`, `at-output` (the sites of the guards), or `elsewhere`."""
    on_self: bool = False
    """The method is called on `self`: only a class of the same family can be meant."""
    via: tuple[str, ...] = ()
    """The functions above it up to the one that decides the site, where that is not the calling function."""

    @property
    def words(self) -> str:
        """The site as a sentence fragment."""
        return {
            "after-advance": "right after dispatch, after computed has been advanced",
            "before-advance": "right after dispatch, before computed is advanced",
            "at-output": "when an output is processed",
        }.get(self.site, "at a place that is not known as a site of a guard")


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherRelease:
    """A call or an override that releases, or changes when something is released, and is not judged."""

    function: str
    file: str
    line: int
    what: str


@dataclass(frozen=True, slots=True)
class _Function:
    name: str
    qualified: str
    file: SourceFile
    node: ast.FunctionDef | ast.AsyncFunctionDef

    def calls(self) -> Iterator[ast.Call]:
        """Calls of its own body, without those of functions defined in it."""
        return (node for node in _own_nodes(self.node) if isinstance(node, ast.Call))


def call_sites(group: SourceGroup, method: str) -> tuple[CallSite, ...]:
    """Every call of the method in the group, in file and line order, with its site.

    Where the calling function is not a site itself, its callers are looked at, and theirs: one line for each site
    that is reached.
    """
    callers: dict[str, list[tuple[_Function, int]]] = {}
    on_self: set[tuple[str, int]] = set()
    for function in _functions(group):
        for call in function.calls():
            if isinstance(call.func, ast.Attribute) and call.func.attr != function.name:
                callers.setdefault(call.func.attr, []).append((function, call.lineno))
                if call.func.attr == method and isinstance(call.func.value, ast.Name) and call.func.value.id == "self":
                    on_self.add((str(function.file.path), call.lineno))
    found = [site for function, line in callers.get(method, []) for site in _climb(callers, function, line)]
    found = [replace(site, on_self=(site.file, site.line) in on_self) for site in found]
    return tuple(sorted(found, key=lambda site: (site.file, site.line, site.site, site.via)))


def _climb(callers: Mapping[str, list[tuple[_Function, int]]], function: _Function, line: int) -> list[CallSite]:
    """The sites from which this call is reached, nearest first; `elsewhere` where there is none."""

    def site(kind: str, via: tuple[str, ...]) -> CallSite:
        return CallSite(function=function.qualified, file=str(function.file.path), line=line, site=kind, via=via)

    found: dict[str, CallSite] = {}
    seen = {function.name}
    pending: list[tuple[_Function, int, tuple[str, ...]]] = [(function, line, ())]
    while pending:
        step, at, via = pending.pop(0)
        kind = _site(step, at)
        if kind != _ELSEWHERE:
            found.setdefault(kind, site(kind, via))
            continue
        for caller, above in callers.get(step.name, []):
            if caller.name not in seen or _site(caller, above) != _ELSEWHERE:
                seen.add(caller.name)
                pending.append((caller, above, (*via, caller.qualified)))
    return list(found.values()) or [site(_ELSEWHERE, ())]


def _site(function: _Function, line: int) -> str:
    if function.name == _AT_OUTPUT:
        return "at-output"
    lines = [node.lineno for node in _own_nodes(function.node) if isinstance(node, ast.stmt) and _advances(node)]
    if not lines:
        lines = [call.lineno for call in function.calls() if dotted_tail(call.func) == _AFTER_DISPATCH]
        if function.name == _AFTER_DISPATCH and not lines:
            return _ELSEWHERE
    if not lines or function.name not in (_AFTER_DISPATCH, "schedule"):
        return _ELSEWHERE
    return "after-advance" if min(lines) < line else "before-advance"


def _advances(node: ast.stmt) -> bool:
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, ast.Add) and dotted_tail(node.target) == _ADVANCED
    if isinstance(node, ast.Assign):
        # `request.num_computed_tokens = request.num_computed_tokens + n`: an advance written out
        told = {dotted_tail(target) for target in node.targets if isinstance(target, ast.Attribute)}
        return _ADVANCED in told and isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.Add)
    return False


def other_releases(
    group: SourceGroup, index: ClassIndex, judged: Collection[int], method: str
) -> tuple[OtherRelease, ...]:
    """What else releases in the group. `judged` are the identities of the parsed functions that were lifted."""
    functions = list(_functions(group))
    helpers = {function.name for function in functions if id(function.node) in judged} - {method}
    found: list[OtherRelease] = []
    touching: set[int] = set(judged)
    for function in functions:
        if id(function.node) in judged:
            continue
        for call in function.calls():
            what = _releasing(call, helpers)
            if what:
                found.append(_other(function, call.lineno, what))
            if what or (isinstance(call.func, ast.Attribute) and call.func.attr == method):
                touching.add(id(function.node))
    for item in index.classes:
        for name, node in item.methods.items():
            above = index.find(item, name, above=True)
            if above and id(above[1]) in touching and id(node) not in judged and name != method:
                shown = f"overrides {above[0].name}.{name}"
                found.append(
                    OtherRelease(function=f"{item.name}.{name}", file=str(item.path), line=node.lineno, what=shown)
                )
    return tuple(sorted(found, key=lambda other: (other.file, other.line, other.what)))


def _other(function: _Function, line: int, what: str) -> OtherRelease:
    return OtherRelease(function=function.qualified, file=str(function.file.path), line=line, what=what)


def _releasing(call: ast.Call, helpers: Collection[str]) -> str:
    if not isinstance(call.func, ast.Attribute):
        return ""
    name = call.func.attr
    if name == "free_encoder_input":
        return "calls free_encoder_input: one item"
    if name in helpers:
        return f"calls {name}: one item"
    of_the_manager = "encoder_cache" in dotted_tail(call.func.value)
    if name == "free" and of_the_manager:
        return "calls the manager's free: every item of a request"
    if name == "reset" and of_the_manager:
        return "calls the manager's reset: the whole cache"
    return ""


def _functions(group: SourceGroup) -> Iterator[_Function]:
    for file in group.files:
        pending: list[tuple[ast.AST, str]] = [(file.tree, "")]
        while pending:
            node, prefix = pending.pop()
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                    qualified = prefix + child.name
                    yield _Function(child.name, qualified, file, child)
                    pending.append((child, f"{qualified}."))
                elif isinstance(child, ast.ClassDef):
                    pending.append((child, f"{prefix}{child.name}."))
                else:
                    pending.append((child, prefix))


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    pending = list(ast.iter_child_nodes(function))
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            pending.extend(ast.iter_child_nodes(node))
