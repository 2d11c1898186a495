"""`[tool.outlives]` of a project's `pyproject.toml`: what the command and the pytest plugin take from it.

Belongs here: which keys there are, of which type, for which commands, and how a mistake in the file is told. Options on
the command line win over the file. Nothing heavy is imported: the plugin reads this when pytest starts.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outlives.model.errors import OutlivesError, UnknownName

from .command_options import range_of

__all__ = ["KEYS", "BadProject", "Key", "Project", "find_project", "lines_of_keys", "read_project", "relative_to_file"]

SECTION = "tool.outlives"
_SUBJECT = frozenset({"check", "explore", "prove"})
_SAMPLED = frozenset({"check", "explore"})
_WORKED = _SAMPLED | {"table", "faults", "sweep"}


class BadProject(OutlivesError):
    """A `pyproject.toml` that cannot be read, or that has in `[tool.outlives]` what nobody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key of the section."""

    kind: str
    """`text`, `texts` (a text with commas, or an array), `whole` (a whole number), `span` (a number, or "LOW..HIGH"),
    `flag`."""
    phrase: str
    commands: frozenset[str] = frozenset()
    """Commands that take it; the pytest plugin takes what is not a span."""
    path: str = ""
    """`path`: a path; `file`: a path if it is `path.py:name`. Both are relative to the folder of the file."""


KEYS: Mapping[str, Key] = {
    "profile": Key(kind="text", phrase="the profile", commands=_SUBJECT, path="file"),
    "guard": Key(kind="text", phrase="the free condition", commands=_SUBJECT),
    "fault": Key(kind="text", phrase="a planted fault", commands=_SUBJECT, path="file"),
    "relax": Key(kind="texts", phrase="relaxed assumptions", commands=_SUBJECT),
    "reader": Key(kind="text", phrase="where a worker starts to read", commands=_SUBJECT),
    "without": Key(kind="texts", phrase="closed routes", commands=_SUBJECT | {"conform"}),
    "policy": Key(kind="text", phrase="the order of requests", commands=_SUBJECT | {"conform"}),
    "scenario": Key(kind="text", phrase="a fixed point", commands=_SAMPLED),
    "engine": Key(kind="texts", phrase="the engines", commands=frozenset({"check"})),
    "property": Key(kind="texts", phrase="the properties", commands=_SAMPLED),
    "settings": Key(kind="text", phrase="how hard the machine tries", commands=frozenset({"check"})),
    "cases": Key(kind="whole", phrase="runs of the machine", commands=frozenset({"check"})),
    "seed": Key(kind="whole", phrase="the seed", commands=_SUBJECT | {"conform", "faults"}),
    "known": Key(kind="text", phrase="known findings", commands=frozenset({"check"}), path="path"),
    "workers": Key(kind="whole", phrase="processes", commands=_WORKED),
    "executor": Key(kind="text", phrase="who does the items of a sweep", commands=frozenset({"sweep"})),
    "out": Key(kind="text", phrase="the folder of runs", commands=_SUBJECT | _WORKED | {"conform"}, path="path"),
    "formats": Key(
        kind="texts", phrase="formats of reports, filed", commands=_SAMPLED | {"conform", "sweep"}
    ),
    "database": Key(kind="text", phrase="Hypothesis's examples", commands=frozenset({"check"}), path="path"),
    "artifacts": Key(kind="text", phrase="OWNER/REPOSITORY of shared examples", commands=frozenset({"check"})),
    "observe": Key(kind="text", phrase="the folder of observations", commands=frozenset({"check"}), path="path"),
    "report": Key(kind="text", phrase="the folder of reports (pytest)", path="path"),
    "replay": Key(kind="flag", phrase="whether saved counterexamples come first (pytest)"),
    **{
        name: Key(kind="span", phrase="a number of the scope", commands=_SAMPLED)
        for name in ("requests", "turns", "items", "slots", "drafts", "depth", "budget", "encoder-budget", "chunk-cap",
                     "look-ahead")
    },
}  # fmt: skip
"""Every key, in the order in which they are listed."""

_MEANT = {
    "text": "a text",
    "texts": "a text, or an array of texts",
    "whole": "a whole number",
    "span": 'a whole number, or a text "LOW..HIGH"',
    "flag": "true or false",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The section of one file; empty where there is none."""

    file: Path | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    """Key -> its value: texts as a tuple, spans as a text, paths as seen from the current folder."""
    lines: Mapping[str, int] = field(default_factory=dict)
    """Key -> the line of the file that it is on, where that can be told."""

    def place(self, *names: str) -> str:
        """Where keys stand, for a message: file, line and section."""
        return f"{_place(self.file, self.lines, names)}, [{SECTION}], {', '.join(names)}"

    def of(self, command: str) -> Iterator[tuple[str, Any]]:
        """The keys that a command takes, with their values."""
        return ((name, value) for name, value in self.values.items() if command in KEYS[name].commands)

    def told(self, error: OutlivesError, used: Mapping[str, Any]) -> str:
        """The error, with the file and the key that it is about; unchanged where none of `used` came from the file."""
        if not used or self.file is None:
            return str(error)
        asked = error.name if isinstance(error, UnknownName) else None
        names = [name for name, value in used.items() if asked in _parts(value)]
        if not names:
            text = str(error)
            names = [name for name, value in used.items() if f"--{name}" in text or _said(value, text)]
        if not names:
            return str(error)
        return f"{self.place(*names)}: {error}"


def _parts(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, tuple) else (str(value),)


def _said(value: Any, text: str) -> bool:
    return any(repr(part) in text or (len(part) > 2 and part in text) for part in _parts(value))


def find_project(folder: Path) -> Path | None:
    """The nearest `pyproject.toml`: of this folder, or of one above it."""
    for place in (folder, *folder.parents):
        file = place / "pyproject.toml"
        try:
            if file.is_file():
                return file
        except OSError:
            continue
    return None


def read_project(folder: Path | None = None) -> Project:
    """The section of the nearest file. Raises `BadProject` with file and key."""
    begin = Path.cwd() if folder is None else folder
    file = find_project(begin)
    if file is None:
        return Project()
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise BadProject(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    if "outlives" not in text:
        return Project()
    import tomllib

    try:
        root = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadProject(f"{file} is not TOML: {error}.") from None
    tool = root.get("tool")
    section = tool.get("outlives", {}) if isinstance(tool, dict) else {}
    if not isinstance(section, dict):
        raise BadProject(f"{file}: [{SECTION}] must be a table.")
    lines = lines_of_keys(text, SECTION)
    return Project(
        file=file, values={name: _value(file, lines, name, value) for name, value in section.items()}, lines=lines
    )


_HEADER = re.compile(r"\s*\[\[?([\w .-]+)\]\]?\s*(?:#.*)?")
_KEY = re.compile(r"""\s*(["']?)([\w-]+)\1\s*=""")


def lines_of_keys(text: str, section: str = "") -> Mapping[str, int]:
    """On which line of a TOML file each key of a section stands, the part before any section being "". It is for
    messages: what is written in an unusual way has no line."""
    inside, lines = section == "", dict[str, int]()
    for number, line in enumerate(text.splitlines(), 1):
        header, key = _HEADER.fullmatch(line), _KEY.match(line)
        if header is not None:
            inside = header[1].replace(" ", "") == section
        elif key is not None and inside:
            lines.setdefault(key[2], number)
    return lines


def _place(file: Path | None, lines: Mapping[str, int], names: Sequence[str]) -> str:
    there = [str(lines[name]) for name in names if name in lines]
    return f"{file}, line {' and '.join(there)}" if there else str(file)


def _value(file: Path, lines: Mapping[str, int], name: str, value: Any) -> Any:
    where = f"{_place(file, lines, (name,))}, [{SECTION}]"
    if name not in KEYS:
        raise BadProject(f"{where}: {UnknownName('key', name, KEYS)}")
    key = KEYS[name]
    made = _typed(key.kind, value)
    if made is None:
        shown = repr(value) if len(repr(value)) <= 60 else repr(value)[:57] + "..."
        raise BadProject(f"{where}, {name} is {shown}; it must be {_MEANT[key.kind]}.")
    if key.kind == "span":
        try:
            range_of(name, made)
        except OutlivesError as error:
            raise BadProject(f"{where}, {name}: {error}") from None
    if key.path == "path" or (key.path == "file" and ".py:" in made):
        return relative_to_file(file, made)
    return made


def _typed(kind: str, value: Any) -> Any:
    """The value as the kind wants it, or None."""
    if kind == "flag":
        return value if type(value) is bool else None
    if kind == "whole":
        return value if type(value) is int else None
    if kind == "span":
        return str(value) if type(value) is int or isinstance(value, str) else None
    if kind == "text":
        return value if isinstance(value, str) and value else None
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",")]
    if not isinstance(value, list) or not all(isinstance(part, str) and part for part in value):
        return None
    return tuple(value)


def relative_to_file(file: Path, value: str) -> str:
    """A path of the file, as it is seen from the current folder."""
    if os.path.isabs(value):
        return value
    whole = file.parent / value
    try:
        near = os.path.relpath(whole)
    except (OSError, ValueError):
        return str(whole)
    return near if not near.startswith(os.pardir) or len(near) < len(str(whole)) else str(whole)
