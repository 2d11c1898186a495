"""Ctrl-C that is not lost, and an end that is asked for otherwise (SIGTERM) taken as one.

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
from multiprocessing import parent_process
from types import FrameType
from typing import NoReturn

__all__ = ["ctrl_c_noticed", "was_pressed"]

_AGAIN_AFTER = 0.01
"""Seconds after which a dropped Ctrl-C is raised again, outside the callback."""
_pressed = threading.Event()


def was_pressed() -> bool:
    """Whether Ctrl-C was pressed (or the end asked for) since the command began: an error after it is its doing."""
    return _pressed.is_set()


@contextmanager
def ctrl_c_noticed() -> Iterator[None]:
    """While the context is open, Ctrl-C raises `KeyboardInterrupt` in this thread, wherever it hits; so does SIGTERM,
    with which CI services and `timeout` end a job, unless somebody handles it already."""
    _pressed.clear()
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's affair
        return
    handlers = {each: signal.signal(each, _interrupt) for each in _noticed()}
    hooks = sys.unraisablehook, threading.excepthook
    sys.unraisablehook, threading.excepthook = _unraisable, _in_a_thread
    try:
        yield
    finally:
        sys.unraisablehook, threading.excepthook = hooks
        for each, handler in handlers.items():
            signal.signal(each, handler)


def _noticed() -> Iterator[signal.Signals]:
    """Not Ctrl-C where a job in the background was started to ignore it, and SIGTERM where nobody else minds it. A
    worker is ended by SIGTERM, without more: its parent tells it of an interruption in another way."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        yield signal.SIGINT
    if parent_process() is None and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        yield signal.SIGTERM


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


def _in_a_thread(trouble: "threading.ExceptHookArgs") -> None:
    if not was_pressed():  # after it, a pool of workers that were ended too is surprised
        threading.__excepthook__(trouble)
