"""Loading a user's own profile, fault or function from `path.py:name`, and calling it. What is loaded is executed.

Belongs here: everything that a user's file may do wrong while it is loaded or called, turned into one sentence. What
its rules do wrong in the middle of a run is the engines' to report (`BadModel`).
"""

import importlib.util
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from outlives.model.errors import BadUserFile

from .interrupt import was_pressed

__all__ = ["call_named", "load_named", "place_in_file", "place_in_files", "placed"]

_loaded: dict[tuple[str, int, int], ModuleType] = {}
"""(path, time of change, size) -> the module: a file is executed once a process, however often it is asked for."""


def load_named(where: str, kind: str) -> Any:
    """The object `name` of the file in `path.py:name`; raises `BadUserFile` with the reason. The file is executed."""
    path_text, _, name = where.rpartition(":")
    if not path_text.endswith(".py") or not name:
        raise BadUserFile(f"--{kind} {where}: write it as path.py:name, e.g. my_{kind}s.py:{kind}.")
    path = Path(path_text)
    try:
        if not path.is_file():
            raise BadUserFile(f"--{kind} {where}: there is no file {path}.")
        found = path.stat()
    except (OSError, ValueError) as error:
        raise BadUserFile(f"--{kind} {where}: {path} cannot be read: {error}.") from error
    _refuse_to_end_the_process()
    key = (str(path.resolve()), found.st_mtime_ns, found.st_size)
    module = _loaded.get(key)
    if module is None:
        module = _loaded[key] = _execute(path, f"--{kind} {where}")
    try:
        return getattr(module, name)
    except AttributeError:
        names = sorted(other for other in vars(module) if not other.startswith("_"))
        has = f"It has: {', '.join(names)}." if names else "It defines nothing."
        raise BadUserFile(f"--{kind} {where}: {path} has no {name!r}. {has}") from None


def call_named(where: str, kind: str, *arguments: Any) -> Any:
    """What the function `path.py:name` makes of the arguments; raises `BadUserFile` where it raises or is none."""
    function: Callable[..., Any] = load_named(where, kind)
    if not callable(function):
        raise BadUserFile(f"--{kind} {where} is {type(function).__name__}, not a function.")
    try:
        return function(*arguments)
    except BaseException as error:  # whatever a user's file raises, an exit and a class of its own among it
        if was_pressed():
            raise
        raise BadUserFile(f"--{kind} {where}{_line(error, where)} raised {_words(error)}") from error


def placed(error: BaseException, files: Iterable[str]) -> str:
    """The error in words, after the place in the first of these files (`path.py:name`) that is on the way to it."""
    place = place_in_files(error, files)
    return f"{place}: {error}" if place else str(error)


def place_in_files(error: BaseException, files: Iterable[str]) -> str:
    """`place_in_file` of the first of these files that is on the way to an error; empty where none is."""
    return next(filter(None, (place_in_file(error, where) for where in files)), "")


def place_in_file(error: BaseException | None, where: str) -> str:
    """`path, line N` of the innermost line of that file (`path.py:name`) on the way to an error; empty where none is.

    Looks through what the error was raised from as well.
    """
    path = Path(where.rpartition(":")[0])
    place = ""
    while error is not None:
        trace = error.__traceback__
        while trace is not None:
            if _same(trace.tb_frame.f_code.co_filename, path):
                place = f"{path}, line {trace.tb_lineno}"
            trace = trace.tb_next
        error = error.__cause__
    return place


def _execute(path: Path, asked: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"outlives_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise BadUserFile(f"{asked}: {path} cannot be loaded as Python.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        line = f", line {error.lineno}" if error.lineno else ""
        raise BadUserFile(f"{asked}: {path}{line} is not Python: {error.msg}.") from error
    except BaseException as error:
        if was_pressed():
            raise
        raise BadUserFile(f"{asked}: {path}{_line(error, f'{path}:')} raised {_words(error)}") from error
    return module


def _refuse_to_end_the_process() -> None:
    """From now on `os._exit` raises: a rule that ended the process would end it without a word, and with a status of
    its own choice. Not in a worker, whose end is noticed."""
    if multiprocessing.parent_process() is None:
        os._exit = _raise


def _raise(status: int) -> NoReturn:
    raise RuntimeError(f"os._exit({status}) was called")


def _line(error: BaseException, where: str) -> str:
    place = place_in_file(error, where)
    return f", line {place.rpartition(' ')[2]}," if place else ""


def _words(error: BaseException) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _same(name: str, path: Path) -> bool:
    try:
        return os.path.samefile(name, path)
    except (OSError, ValueError):
        return False
