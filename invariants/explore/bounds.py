"""How far a search may go, and how it says how far it is: bounds, the meter that watches them, progress lines.

Belongs here: everything about limits in states, levels, memory and time, and the estimate of what is left.
"""

import gc
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from outlives.model.errors import Contradiction, OutOfRange

__all__ = ["Bounds", "Listener", "Meter", "Progress", "remaining", "resident_bytes", "seldom_collecting"]

_LOOK_EVERY = 256
"""States between two looks at the clock and the memory: looking costs about as much as one state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Where a search stops by itself. None means no bound; a search that stops at one answers `unknown`.

    Raises `OutOfRange` for a bound that allows nothing.
    """

    states: int | None = None
    """Distinct states, the initial ones included."""
    depth: int | None = None
    """Actions from an initial state: states this far away are judged but not gone on from."""
    memory: int | None = None
    """Resident bytes of the whole process."""
    seconds: float | None = None
    """Wall-clock time, the time before a checkpoint not counted."""

    def __post_init__(self) -> None:
        for what, value, low in (("states", self.states, 1), ("depth", self.depth, 0), ("memory", self.memory, 1)):
            if value is not None and value < low:
                raise OutOfRange(f"the bound on {what}", value, low, None)
        if self.seconds is not None and not self.seconds > 0:
            raise Contradiction(f"the bound on seconds is {self.seconds:g}; it must be above 0.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One line of live progress."""

    level: int
    """Actions from an initial state to the states that are being gone on from."""
    states: int
    transitions: int
    waiting: int
    """States found and not yet gone on from."""
    seconds: float
    memory: int
    """Resident bytes of the whole process."""
    resumed: int = 0
    """States that came from a checkpoint."""

    @property
    def rate(self) -> float:
        """States per second since the search began (or went on from a checkpoint)."""
        return (self.states - self.resumed) / self.seconds if self.seconds > 0 else 0.0


Listener = Callable[[Progress], None]


def resident_bytes() -> int:
    """The memory that this process holds now (its highest so far where the system does not tell)."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return highest if sys.platform == "darwin" else highest * 1024


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Python's cycle collector looks at all that a search holds again and again, and finds nothing: states and tables
    have no cycles. It runs seldom inside (a model's own rubbish is still found)."""
    before = gc.get_threshold()
    gc.set_threshold(500_000, 100, 1_000)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class Meter:
    """Watches bounds and clock on behalf of a search, and calls its listener now and then."""

    def __init__(self, bounds: Bounds, listener: Listener | None, every: float = 0.5) -> None:
        self.bounds = bounds
        self._listener = listener
        self._every = every
        self._began = time.perf_counter()
        self._told = self._began
        self.memory = resident_bytes()
        """What the process held before the search."""
        self.resumed = 0
        """States that came from a checkpoint."""
        self._countdown = 0
        self._watching = listener is not None or bounds.memory is not None or bounds.seconds is not None

    @property
    def seconds(self) -> float:
        """Since this search began."""
        return time.perf_counter() - self._began

    def look(self, level: int, states: int, transitions: int, waiting: int, done: int = 1) -> str | None:
        """Called after every `done` states gone on from: None, or the bound that stops the search, in words."""
        if self.bounds.states is not None and states >= self.bounds.states and waiting:
            return f"the bound of {self.bounds.states:,} states"
        if not self._watching:
            return None
        self._countdown -= done
        if self._countdown > 0:
            return None
        self._countdown = _LOOK_EVERY
        now = time.perf_counter()
        if self.bounds.seconds is not None and now - self._began >= self.bounds.seconds:
            return f"the bound of {self.bounds.seconds:g} seconds"
        if self.bounds.memory is not None and resident_bytes() >= self.bounds.memory:
            return f"the bound of {self.bounds.memory / 2**20:,.0f} MiB"
        if self._listener is not None and now - self._told >= self._every:
            self._told = now
            self.tell(level, states, transitions, waiting)
        return None

    def tell(self, level: int, states: int, transitions: int, waiting: int) -> None:
        """One progress line, now."""
        if self._listener is not None:
            self._listener(
                Progress(
                    level=level,
                    states=states,
                    transitions=transitions,
                    waiting=waiting,
                    seconds=self.seconds,
                    memory=resident_bytes(),
                    resumed=self.resumed,
                )
            )


def remaining(levels: Sequence[int], waiting: int, rate: float) -> str:
    """An honest sentence about what is left: a floor always, a figure only where the levels already shrink.

    `levels` are the sizes of the levels completed so far, `waiting` the states not gone on from, `rate` in states
    per second. State spaces of this kind grow level by level, pass a peak, and shrink; before the peak nobody knows.
    """
    floor = f"at least the {waiting:,} states that wait"
    if len(levels) < 4 or rate <= 0:
        return f"{floor}; too early for an estimate"
    recent = [after / before for before, after in zip(levels[-4:-1], levels[-3:], strict=True) if before]
    factor = (recent[0] * recent[1] * recent[2]) ** (1 / 3) if len(recent) == 3 else 1.0
    if factor >= 0.98:
        return f"{floor}; the last levels grow by a factor of {factor:.2f} each, so there is no estimate yet"
    more = waiting / (1 - factor)
    return (
        f"{floor}; if the last levels' factor of {factor:.2f} holds, about {more:,.0f} states more, "
        f"{more / rate:,.0f} s at {rate:,.0f} states/s"
    )
