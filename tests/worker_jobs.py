"""Pieces of work for the tests of workers: a process of its own has to be able to import them."""

import os
import signal
import time
from pathlib import Path
from typing import Any

from outlives.invariants.userfile import call_named
from outlives.invariants.workers import Partial, Tell
from outlives.model.errors import BadModel, UnknownName

__all__ = ["breaks", "counts", "dies", "has_id", "prints", "sleeps", "waits"]


def sleeps(about: tuple[float, Any], _tell: Tell) -> Any:
    """Take so long, then answer."""
    time.sleep(about[0])
    return about[1]


def has_id(_about: None, _tell: Tell) -> int:
    """The process that works."""
    time.sleep(0.2)
    return os.getpid()


def counts(most: int, tell: Tell) -> int:
    """Tell each step."""
    for done in range(1, most + 1):
        tell(done, f"step {done}" if done == most else "")
    return most


def prints(text: str, _tell: Tell) -> str:
    """As a user's file may."""
    print(text)
    return text


def breaks(how: str, _tell: Tell) -> None:
    """End in one of several ways."""
    if how == "model":
        raise BadModel("it breaks its contract.")
    if how == "name":
        raise UnknownName("rule", "fre", ["free"])
    if how == "ours":
        raise AssertionError("our own mistake")
    call_named(how, "fault", None)


def waits(folder: str, tell: Tell) -> Partial | str:
    """Work until it is interrupted, then say what is known."""
    (Path(folder) / f"begun-{os.getpid()}").touch()
    number = 0
    try:
        for number in range(6_000):
            time.sleep(0.01)
            tell(number)
    except KeyboardInterrupt:
        time.sleep(0.2)  # to sum up takes its time
        return Partial("known")
    return "whole"


def dies(after: float, _tell: Tell) -> None:
    """As when memory runs out."""
    time.sleep(after)
    os.kill(os.getpid(), signal.SIGKILL)
