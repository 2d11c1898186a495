"""How the loops of `kernel.py` are compiled, and where the machine code is kept.

Belongs here: the only import of numba. It is imported with `kernel.py`, when a search is handed over and not before.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import config, njit

__all__ = ["compiled", "inlined", "is_kept", "works"]

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


def works() -> bool:
    """Whether numba compiles at all: it can be told not to."""
    return not getattr(config, "DISABLE_JIT", 0)


def compiled(function: _Kernel) -> _Kernel:
    """By numba, kept on disk where that is possible: beside the file, in the user's cache folder, or where
    NUMBA_CACHE_DIR says."""
    try:
        return cast(_Kernel, njit(cache=True)(function))
    except RuntimeError:  # no folder to keep it in
        return cast(_Kernel, njit(function))


def inlined(function: _Kernel) -> _Kernel:
    """By numba, written into whoever calls it: a call would hand over every array anew."""
    return cast(_Kernel, njit(inline="always")(function))


def is_kept(kernel: Any) -> bool:
    """Whether an earlier run left the machine code of a loop on disk."""
    folder = kernel.stats.cache_path
    name = f"{kernel.py_func.__module__.rpartition('.')[2]}.{kernel.py_func.__name__}"
    return bool(folder) and any(Path(folder).glob(f"{name}-*.nbi"))
