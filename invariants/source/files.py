"""Which files are judged: paths given by the user become parsed source files, grouped by what belongs together.

Belongs here: finding, reading and parsing. A file is read as bytes and parsed, never imported. Whatever is wrong with
a path or a file is one `BadSource`, before anything is run.
"""

import ast
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from outlives.model.errors import OutlivesError

__all__ = ["LARGEST_FILE", "BadSource", "SourceFile", "SourceGroup", "gather"]

LARGEST_FILE: Final = 5_000_000
"""In bytes. The largest released scheduler file has under 200,000."""

_SCHEDULERS: Final = ("vllm/v1/core/sched", "v1/core/sched", "core/sched", "sched")
"""Where a folder may keep the scheduler: site-packages or an unpacked wheel, the package itself, or a folder in it."""


class BadSource(OutlivesError):
    """A path or file that cannot be read as the source of a scheduler."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One parsed file."""

    path: Path
    tree: ast.Module


@dataclass(frozen=True, slots=True)
class SourceGroup:
    """Files whose classes may inherit from each other: one package folder, or all files given one by one."""

    files: tuple[SourceFile, ...]


def gather(paths: Sequence[str | Path]) -> tuple[SourceGroup, ...]:
    """Read every path: a Python file, or a folder that holds vLLM's scheduler.

    Files given one by one form the first group, each folder a group of its own. Raises `BadSource` at the first path
    that is missing, is neither, or cannot be parsed.
    """
    if not paths:
        raise BadSource("no source was given; name Python files or a vllm package folder.")
    singles: list[Path] = []
    folders: list[list[Path]] = []
    for given in paths:
        path = Path(given)
        try:
            if path.is_dir():
                folders.append(_scheduler_files(path))
            elif not path.exists():
                raise BadSource(f"{_shown(path)} does not exist.")
            else:
                singles.append(path)
        except (OSError, ValueError) as error:
            raise BadSource(f"{_shown(path)} cannot be looked at: {_reason(error)}.") from error
    groups = [list(dict.fromkeys(singles))] if singles else []
    return tuple(SourceGroup(tuple(_read(path) for path in group)) for group in [*groups, *folders])


def _scheduler_files(folder: Path) -> list[Path]:
    for inner in _SCHEDULERS:
        place = folder / inner
        if place.is_dir():
            files = sorted(place.glob("*.py"))
            if files:
                return files
    if folder.name == "sched":
        files = sorted(folder.glob("*.py"))
        if files:
            return files
    raise BadSource(
        f"{folder} holds no vLLM scheduler: none of {', '.join(_SCHEDULERS)} is a folder in it with Python files. "
        "Give the vllm package folder, the folder that contains it, or the files themselves."
    )


def _read(path: Path) -> SourceFile:
    try:
        if not path.is_file():
            raise BadSource(f"{path} is neither a file nor a folder.")
        size = path.stat().st_size
        if size > LARGEST_FILE:
            raise BadSource(f"{path} has {size} bytes; a source file may have at most {LARGEST_FILE}.")
        with path.open("rb") as stream:
            text = stream.read(LARGEST_FILE + 1)
    except OSError as error:
        raise BadSource(f"{path} cannot be read: {_reason(error)}.") from error
    if len(text) > LARGEST_FILE:
        raise BadSource(f"{path} has more than {LARGEST_FILE} bytes.")
    if b"\0" in text:
        raise BadSource(f"{path} is not Python source: it holds zero bytes (a wheel must be unpacked).")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return SourceFile(path, ast.parse(text))
    except SyntaxError as error:
        where = f" at line {error.lineno}" if error.lineno else ""
        raise BadSource(f"{path} is not Python source that can be parsed: {error.msg}{where}.") from error
    except (RecursionError, MemoryError, ValueError) as error:
        raise BadSource(f"{path} cannot be parsed: {_reason(error)}.") from error


def _shown(path: Path) -> str:
    text = str(path) if len(str(path)) <= 200 else f"{str(path)[:197]}..."
    return text if text.isprintable() else repr(text)


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)[:200] or type(error).__name__
