"""The command's options, filled from `[tool.outlives]` where the command line says nothing.

Belongs here: which options were given, and how a key's value becomes an option's. What the file may say is in
`project`.
"""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from .project import KEYS, Project, read_project

__all__ = ["filled", "layers_of"]

_LAYERS = ("database", "artifacts", "observe")
_WITHOUT_OPTION = (*_LAYERS, "formats")
"""Keys without an option of their own. (`--format` prints, unless `--out` is typed too; `formats` is of files.)"""


_PROCESSES = "processes"
"""As in `sweep_crew`, which is heavy to import."""


class _NotGiven:
    """Stands for a default until it is clear that the command line says nothing."""

    def __init__(self, default: Any) -> None:
        self.default = default


def filled(parser: argparse.ArgumentParser, given: Sequence[str]) -> tuple[argparse.Namespace, Project, dict[str, Any]]:
    """The options, the project, and which of its keys were taken. Raises `BadProject`, and the parser's errors."""
    commands = next(each.choices for each in parser._actions if isinstance(each, argparse._SubParsersAction))
    for command in commands.values():
        for action in command._actions:
            if action.dest.replace("_", "-") in KEYS and not isinstance(action, argparse._AppendAction):
                action.default = _NotGiven(action.default)
    options = parser.parse_args(given)
    silent = {name for name, value in vars(options).items() if isinstance(value, _NotGiven) or value is None}
    options.out_typed = "out" in vars(options) and "out" not in silent
    for name, value in list(vars(options).items()):
        if isinstance(value, _NotGiven):
            setattr(options, name, value.default)
    project = read_project()
    used: dict[str, Any] = {}
    for key, value in project.of(options.command):
        name = key.replace("-", "_")
        if key in _WITHOUT_OPTION or (name in silent and not _beside(key, options, silent, project)):
            setattr(options, name, _as_option(key, value))
            used[key] = value
    return options, project, used


def _beside(key: str, options: argparse.Namespace, silent: set[str], project: Project) -> bool:
    """Whether what is typed leaves no room for a key: a scenario has its own numbers, files are judged as they are, a
    real scheduler has one engine, a sweep that goes on has its folder, and a cluster has its own workers."""
    if options.command == "sweep":
        cluster = options.executor or ("workers" in silent and project.values.get("executor")) or _PROCESSES
        taken = {
            "out": options.resume is not None,
            "executor": "workers" not in silent,
            "workers": cluster != _PROCESSES,
        }
        return taken[key]
    if getattr(options, "source", None):
        return key not in ("out",)
    if KEYS[key].kind == "span":
        return "scenario" not in silent
    return key in ("engine", "profile", "guard", "fault") and getattr(options, "subject", None) == "vllm"


def _as_option(key: str, value: Any) -> Any:
    if key == "relax":
        return ",".join(value)
    return list(value) if KEYS[key].kind == "texts" else value


def layers_of(options: argparse.Namespace) -> Mapping[str, Any]:
    """Where Hypothesis's examples and observations go, as far as the project says: fields of `MachineSettings`. Raises
    `BadUserFile` for a folder that is not there, and `Contradiction`."""
    from pathlib import Path

    from .machine_database import check_layers

    fields: dict[str, Any] = {}
    for name in _LAYERS:
        value = getattr(options, name, None)
        if value is not None:
            check_layers(name, value)
            fields[name] = value if name == "artifacts" else Path(value)
    return fields
