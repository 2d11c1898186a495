"""Loading a user's own profile, fault or function from `path.py:name`. What is loaded is executed."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

from outlives.model.errors import BadUserFile

__all__ = ["load_named"]


def load_named(where: str, kind: str) -> Any:
    """The object `name` of the file in `path.py:name`; raises `BadUserFile` with the reason. The file is executed."""
    path_text, _, name = where.rpartition(":")
    if not path_text.endswith(".py") or not name:
        raise BadUserFile(f"--{kind} {where}: write it as path.py:name, e.g. my_{kind}s.py:{kind}.")
    path = Path(path_text)
    if not path.is_file():
        raise BadUserFile(f"--{kind} {where}: there is no file {path}.")
    spec = importlib.util.spec_from_file_location(f"outlives_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise BadUserFile(f"--{kind} {where}: {path} cannot be loaded as Python.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        line = getattr(error, "lineno", None) or _line_in(error, path)
        at = f", line {line}" if line else ""
        raise BadUserFile(f"--{kind} {where}: {path}{at} raised {type(error).__name__}: {error}") from error
    try:
        return getattr(module, name)
    except AttributeError:
        names = sorted(other for other in vars(module) if not other.startswith("_"))
        raise BadUserFile(f"--{kind} {where}: {path} has no {name!r}. It has: {', '.join(names)}.") from None


def _line_in(error: BaseException, path: Path) -> int | None:
    line = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
