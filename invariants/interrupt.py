"""Ctrl-C that is not lost.

Python drops an exception that is raised inside a callback (a collection of garbage, an object's end), Ctrl-C among
them, and a library that is interrupted at an awkward moment may fail with an error of its own instead. Belongs here:
noticing both, for as long as a command runs.
"""

import _thread
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

__all__ = ["ctrl_c_noticed", "was_pressed"]

_AGAIN_AFTER = 0.01
"""Seconds after which a dropped Ctrl-C is raised again, outside the callback."""
_pressed = threading.Event()


def was_pressed() -> bool:
    """Whether Ctrl-C was pressed since the command began: an error after it is its doing."""
    return _pressed.is_set()


@contextmanager
def ctrl_c_noticed() -> Iterator[None]:
    """While the context is open, Ctrl-C raises `KeyboardInterrupt` in this thread, wherever it hits."""
    _pressed.clear()
    elsewhere = threading.current_thread() is not threading.main_thread()
    if elsewhere or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield  # signals are the main thread's affair, and a job in the background is started to ignore this one
        return
    handler, hook = signal.signal(signal.SIGINT, _interrupt), sys.unraisablehook
    sys.unraisablehook = _unraisable
    try:
        yield
    finally:
        sys.unraisablehook = hook
        signal.signal(signal.SIGINT, handler)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    _pressed.set()
    raise KeyboardInterrupt


def _unraisable(trouble: "sys.UnraisableHookArgs") -> None:
    if issubclass(trouble.exc_type, KeyboardInterrupt):
        again = threading.Timer(_AGAIN_AFTER, _thread.interrupt_main)
        again.daemon = True
        again.start()
    elif not was_pressed():  # after it, half-made objects of the solver complain at their end
        sys.__unraisablehook__(trouble)
