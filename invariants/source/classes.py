"""Classes of a group of files, found by name: their methods, constants and bases.

Belongs here: looking things up in parsed source, as Python would, as far as names alone can tell. Nothing is run.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .files import SourceFile, SourceGroup

__all__ = ["ClassIndex", "ClassSource", "Function", "dotted_tail", "module_constant"]

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class ClassSource:
    """A class definition and the file that it stands in."""

    file: SourceFile
    node: ast.ClassDef

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def path(self) -> Path:
        return self.file.path

    @cached_property
    def methods(self) -> dict[str, Function]:
        """Methods of its own body by name; of several with one name the last, as in Python."""
        return {item.name: item for item in self.node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)}

    @cached_property
    def assigned(self) -> dict[str, ast.expr]:
        """What its body assigns to plain names."""
        return _assignments(self.node.body)


class ClassIndex:
    """The classes of one group of files."""

    def __init__(self, group: SourceGroup) -> None:
        self.classes = [
            ClassSource(file, node)
            for file in group.files
            for node in ast.walk(file.tree)
            if isinstance(node, ast.ClassDef)
        ]

    def with_method(self, method: str) -> Iterator[ClassSource]:
        """Classes whose own body defines the method or assigns something to its name, in file order."""
        for item in self.classes:
            if method in item.methods or method in item.assigned:
                yield item

    def line_of(self, start: ClassSource) -> list[ClassSource]:
        """The class and those of its bases that the given files hold, nearest first (depth first)."""
        found: list[ClassSource] = []
        pending = [start]
        while pending:
            item = pending.pop(0)
            if item in found:
                continue
            found.append(item)
            bases = [self._base(item, name) for name in _base_names(item.node)]
            pending[:0] = [base for base in bases if base is not None]
        return found

    def absent_bases(self, start: ClassSource) -> list[str]:
        """Names of bases, anywhere in its line, that the given files do not hold exactly once."""
        return [name for item in self.line_of(start) for name in _base_names(item.node) if not self._base(item, name)]

    def find(self, start: ClassSource, method: str, *, above: bool = False) -> tuple[ClassSource, Function] | None:
        """The method as `start` (or, with `above`, what is above it) inherits it."""
        for item in self.line_of(start)[1 if above else 0 :]:
            if method in item.methods:
                return item, item.methods[method]
        return None

    def class_constant(self, start: ClassSource, name: str) -> ast.Constant | None:
        """A constant that the class or a base assigns to that name in its body."""
        for item in self.line_of(start):
            value = item.assigned.get(name)
            if isinstance(value, ast.Constant):
                return value
        return None

    def _base(self, item: ClassSource, name: str) -> ClassSource | None:
        named = [other for other in self.classes if other.name == name and other.node is not item.node]
        near = [other for other in named if other.file is item.file]
        chosen = near or named
        return chosen[0] if len(chosen) == 1 else None


def module_constant(file: SourceFile, name: str) -> ast.Constant | None:
    """A constant that the module assigns to that name, once and at its top level."""
    value = _assignments(file.tree.body).get(name)
    return value if isinstance(value, ast.Constant) else None


def dotted_tail(node: ast.expr) -> str:
    """The last name of `a.b.c`, or "" where the expression is something else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Name):
        return node.id
    return ""


def _base_names(node: ast.ClassDef) -> list[str]:
    names = [dotted_tail(base.value if isinstance(base, ast.Subscript) else base) for base in node.bases]
    return [name for name in names if name and name not in ("object", "ABC", "Generic", "Protocol")]


def _assignments(body: list[ast.stmt]) -> dict[str, ast.expr]:
    found: dict[str, ast.expr] = {}
    for item in body:
        if isinstance(item, ast.Assign):
            for target in item.targets:
                if isinstance(target, ast.Name):
                    found[target.id] = item.value
        elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and item.value is not None:
            found[item.target.id] = item.value
    return found
