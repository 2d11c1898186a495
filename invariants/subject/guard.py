"""A bound around every action of a real scheduler: it may hang, exit, or fork, and the run goes on and says so.

Theory of operation
-------------------
A timer raises `Hung` inside an action that takes too long, which the subject keeps as its failure, like any exception.
Code that swallows even that, or never comes back to Python, is ended by a watchdog, a thread of its own, by way of
`faulthandler`, which writes the frames into a file and ends the process; whoever started it reads that file. `os._exit`
inside an action raises instead. A fork inside an action is a failure too: the copy ends as soon as it comes back from
the action.

Signals need the main thread: elsewhere, and where the system has no such timer, there is no bound.
"""

import faulthandler
import os
import signal
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import IO, NoReturn

from outlives.model.contract import Action, Refusal
from outlives.model.setup import Setup

from .release import Release
from .subject import Failure, Observation
from .vllm_subject import VllmSubject

__all__ = ["BOUND", "OUTSIDE", "GuardedSubject", "Hung", "guarded_process", "last_frame"]

BOUND = 10.0
"""Seconds that one action may take. A pass takes some 0.2 ms."""
_AFTER_FIRST = 0.25
"""Seconds, once a scheduler has been seen to hang: its trace is made smaller by many more tries."""
_PATIENCE = 3
"""Bounds that pass without any action coming back before the watchdog ends the process."""


class Hung(BaseException):
    """An action took longer than its bound. No `Exception`, so that few handlers swallow it."""


class Ended(SystemExit):
    """The scheduler called `os._exit`."""


class GuardedSubject(VllmSubject):
    """A live scheduler with a bound around each action."""

    def __init__(self, release: Release, closed: frozenset[str] = frozenset(), bound: float = BOUND) -> None:
        super().__init__(release, closed)
        self.bound = bound
        self.hung = 0
        self._timed = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
        self._inside = False
        self._process = os.getpid()
        if self._timed:
            signal.signal(signal.SIGALRM, self._ring)
        if _Watch.file is not None:
            faulthandler.disable()  # whoever was imported since may have put a handler of its own in its place
            faulthandler.enable(_Watch.file)

    def start(self, setup: Setup, *, caching: bool = False) -> Observation:
        """Begin anew, within the bound. Raises what the scheduler's constructor raises."""
        self._set(self.bound)
        try:
            return super().start(setup, caching=caching)
        finally:
            self._set(0)

    def take(self, action: Action) -> Refusal | None:
        """Take the action, within the bound."""
        forks = len(_forks)
        self._set(self.bound)
        try:
            refusal = super().take(action)
        finally:
            self._set(0)
            if os.getpid() != self._process:
                _exit(0)  # the copy of a fork, come back from the scheduler
        if len(_forks) > forks:
            self.failure = Failure("Forked: the scheduler made a copy of the process", _forks[-1])
            return None
        return refusal

    def _set(self, seconds: float) -> None:
        self._inside = seconds > 0
        _Watch.bound = self.bound
        _Watch.since = time.monotonic() if self._inside else None
        if self._timed:
            signal.setitimer(signal.ITIMER_REAL, seconds, seconds)

    def _ring(self, _number: int, _frame: FrameType | None) -> None:
        if self._inside:
            bound, self.bound = self.bound, min(self.bound, _AFTER_FIRST)
            self.hung += 1
            raise Hung(f"the action did not end within {bound:g} s")


# --- the process ------------------------------------------------------------------------------------------------------

_exit = os._exit
_forks: list[str] = []
"""Where the process was copied, while a guarded process runs."""


class _Watch(threading.Thread):
    """Ends the process where an action never comes back. Time that passes between actions says nothing: the machine
    may be busy, or asleep."""

    file: IO[str] | None = None
    since: float | None = None
    """When the action under way began."""
    bound = BOUND

    def __init__(self, file: IO[str]) -> None:
        super().__init__(daemon=True)
        self._file = file
        self._over = threading.Event()

    def run(self) -> None:
        """Look again and again, until the guarded part of the process is over."""
        while True:
            beat = max(_Watch.bound, 1.0)
            # Should this thread not get its turn any more, because code outside Python keeps all others from it.
            faulthandler.dump_traceback_later(2 * _PATIENCE * beat, exit=True, file=self._file)
            if self._over.wait(beat):
                return
            since = _Watch.since
            if since is not None and time.monotonic() - since > _PATIENCE * beat:
                faulthandler.dump_traceback_later(0.01, exit=True, file=self._file)
                time.sleep(60)

    def stop(self) -> None:
        """It is over."""
        self._over.set()
        self.join()
        faulthandler.cancel_dump_traceback_later()


@contextmanager
def guarded_process(frames: Path) -> Iterator[None]:
    """For a process of one's own: `os._exit` raises, forks are noticed, a crash or a hang leaves frames in a file."""
    global _watching_forks
    if not _hooked:
        _hooked.append(True)
        os.register_at_fork(before=_forked)
    with frames.open("w", encoding="utf-8") as file:
        faulthandler.enable(file)
        watch = _Watch(file)
        watch.start()
        _Watch.file, _watching_forks, os._exit = file, True, _raise
        try:
            yield
        finally:
            watch.stop()
            faulthandler.disable()
            _Watch.file, _watching_forks, os._exit = None, False, _exit
    if not frames.read_text(encoding="utf-8"):
        frames.unlink()


_hooked: list[bool] = []
_watching_forks = False


def _raise(status: int) -> NoReturn:
    raise Ended(f"os._exit({status})")


def _forked() -> None:
    if _watching_forks:
        frame = traceback.extract_stack()[-2]
        _forks.append(f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}: {frame.line}")


OUTSIDE = "it stood still outside an action"
"""What is said of a process that was ended though no action was under way: it says nothing of the scheduler."""


def last_frame(frames: Path) -> str:
    """What the watchdog or a crash left in the file, in one line; empty where nothing."""
    try:
        lines = [line.strip() for line in frames.read_text(encoding="utf-8").splitlines()]
    except OSError:
        return ""
    crash = next((line for line in lines if line.startswith("Fatal Python error")), "")
    # Of several threads the one that crashed is called so; the first that there was, which works, comes last.
    begins = [at for at, line in enumerate(lines) if line.startswith(("Current thread", "Thread"))]
    current = [at for at in begins if lines[at].startswith("Current thread")]
    begin = (current or begins[-1:] or [0])[0]
    place = next((line for line in lines[begin:] if line.startswith("File ")), "")
    inside = any(f'{Path(__file__).name}"' in line for line in lines[begin:])
    told = crash or (("it hung" if inside else OUTSIDE) if place else "")
    return "; ".join(part for part in (told, place) if part)
