"""Schedulers of one's own for the tests: one that works, and what others may do wrong."""

import contextlib
import ctypes
import os
import sys
import time
from typing import Any, ClassVar

from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler


class Plain(AsyncScheduler):
    """Nothing of its own."""


class Synchronous(Scheduler):
    """Nothing of its own."""


class Talks(AsyncScheduler):
    """Writes to standard output, in two ways."""

    def schedule(self, *rest: Any, **named: Any) -> Any:
        print("NOISE")
        os.write(1, b"NOISE\n")
        return super().schedule(*rest, **named)


class Odd(AsyncScheduler):
    """Does something odd in a pass once a request runs: before any exception that a release may have of its own."""

    first: ClassVar[int] = 0
    passes: ClassVar[int] = 0

    def schedule(self, *rest: Any, **named: Any) -> Any:
        Odd.passes += 1
        if self.running and Odd.passes > self.first:
            self.odd()
        return super().schedule(*rest, **named)

    def odd(self) -> None:
        raise NotImplementedError


class Asserts(Odd):
    def odd(self) -> None:
        assert not self.running, "one is too many"


class Exits(Odd):
    def odd(self) -> None:
        sys.exit(0)


class ExitsAtOnce(Odd):
    def odd(self) -> None:
        os._exit(0)


class Forks(Odd):
    def odd(self) -> None:
        os.fork()


class Hangs(Odd):
    def odd(self) -> None:
        while True:
            time.sleep(0.01)


class HangsForGood(Odd):
    """Late, so that something else is found before."""

    first = 900

    def odd(self) -> None:
        while True:
            with contextlib.suppress(BaseException):
                time.sleep(0.01)


class Crashes(Odd):
    """Likewise."""

    first = 900

    def odd(self) -> None:
        ctypes.string_at(0)


class CannotBeMade(AsyncScheduler):
    def __init__(self, *_rest: Any, **_named: Any) -> None:
        raise ValueError("not today")


class WithoutEncoderReset(AsyncScheduler):
    """A route less than its profile."""

    def __getattribute__(self, name: str) -> Any:
        if name == "reset_encoder_cache":
            raise AttributeError(name)
        return super().__getattribute__(name)


class NoScheduler:
    def schedule(self) -> None:
        """The one method that it has."""


NUMBER = 4
