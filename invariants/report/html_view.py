"""Which positions the strips of one trace show, and what became of its items so far.

Belongs here: the range (one for all steps of a trace, so that nothing jumps), its ticks, and the past of each strip.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from .content import Violation
from .strip import Strip

__all__ = ["Past", "View", "pasts_of", "view_of"]

_WHOLE: Final = 48
"""Up to so many positions all are shown."""
_MOST_CELLS: Final = 64
_MOST_LABELS: Final = 12


class View(NamedTuple):
    """The positions [low, high)."""

    low: int
    high: int
    whole: int
    """The last position of the run that anything is said about, plus one."""

    def at(self, position: int) -> float:
        """Where a position begins, in per cent of the width; the nearer edge where it is out of view."""
        return 100 * (min(max(position, self.low), self.high) - self.low) / (self.high - self.low)

    def has(self, position: int) -> bool:
        """Whether it is in view (the end of the range is)."""
        return self.low <= position <= self.high

    @property
    def words(self) -> str:
        """What is shown, where it is not everything; else empty."""
        if self.low == 0 and self.high >= self.whole:
            return ""
        return f"Strips show positions {self.low} to {self.high} of {self.whole}."

    @property
    def cells(self) -> range:
        """Where lines are drawn: between all positions while they are few, else at the labels."""
        return range(self.low, self.high + 1) if self.high - self.low <= _MOST_CELLS else self.labels

    @property
    def labels(self) -> range:
        """Positions whose number is written: a round step, at most a dozen."""
        step = next(step for step in _round_steps() if (self.high - self.low) / step <= _MOST_LABELS)
        return range(-(-self.low // step) * step, self.high + 1, step)


def _round_steps() -> Iterator[int]:
    size = 1
    while True:
        yield from (size, 2 * size, 5 * size)
        size *= 10


class Past(NamedTuple):
    """What happened to the items of one request up to a step, that step included."""

    released: Mapping[int, int]
    """Item -> the last step that released it, unless it was referenced again."""
    short: Mapping[int, int]
    """Item -> how many positions of it were not confirmed when it was released."""


def view_of(violation: Violation) -> View:
    """Everything, or where it would be tiny, the surroundings of what the failure is about."""
    whole = max((_points(strip)[-1] for strip in violation.strips), default=1)
    if whole <= _WHOLE:
        return View(0, max(whole, 1), whole)
    steps = violation.joined or ()
    focus = [strip for strip in violation.strips if strip.step in steps] or violation.strips[-1:]
    near = sorted({point for strip in focus for point in _matter(strip)} or {0, whole})
    margin = max((near[-1] - near[0]) // 6, 4)
    low, high = max(near[0] - margin, 0), min(near[-1] + margin, whole)
    return View(low, high, whole) if 2 * (high - low) < whole else View(0, whole, whole)


def _points(strip: Strip) -> list[int]:
    """Every position that a strip speaks of, in order."""
    told = [0, strip.known, strip.computed, strip.confirmed]
    told += [place for item in strip.items for place in (item.start, item.end)]
    return sorted(told + [place for each in strip.windows for place in (each.low, each.high)])


def _matter(strip: Strip) -> Iterator[int]:
    """The positions of what happened: marked items, what was read and missed, and how far things are."""
    yield from (strip.computed, strip.confirmed)
    for item in strip.items:
        if {"released", "missed"} & {*item.marks}:
            yield from (item.start, item.end)
    for each in strip.windows:
        if each.missed:
            yield from (each.low, each.high)


def pasts_of(violation: Violation) -> dict[tuple[int, str], Past]:
    """The past of each strip, by step and request."""
    short = {
        (event.step, event.numbers["end"]): event.numbers["short"]
        for event in violation.story.events
        if event.kind == "released" and "end" in event.numbers and "short" in event.numbers
    }
    found: dict[tuple[int, str], Past] = {}
    for request in dict.fromkeys(strip.request for strip in violation.strips):
        own = [strip for strip in violation.strips if strip.request == request]
        found |= {(strip.step, request): past for strip, past in zip(own, _pasts(own, short), strict=True)}
    return found


def _pasts(strips: Sequence[Strip], short: Mapping[tuple[int, int | str], int | str]) -> Iterator[Past]:
    released: dict[int, int] = {}
    missing: dict[int, int] = {}
    for strip in strips:
        for item in strip.items:
            if "referenced" in item.marks or "released" in item.marks:
                released.pop(item.number, None)
                missing.pop(item.number, None)
            if "released" in item.marks:
                released[item.number] = strip.step
                count = short.get((strip.step, item.end), 0)
                if isinstance(count, int) and count > 0:
                    missing[item.number] = count
        yield Past(dict(released), dict(missing))
