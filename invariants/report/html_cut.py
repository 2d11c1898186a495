"""How a page stays below its cap: what is kept, level by level, and how the rest is told.

Belongs here: the limits, and the choice of the steps that are shown. A page is written with the first level that fits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from .content import Violation

__all__ = ["LEVELS", "MOST_BYTES", "Gap", "Limits", "kept"]

MOST_BYTES: Final = 2 * 1024 * 1024
"""Of one page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of each kind is shown."""

    first: int
    """Steps at the beginning of a trace."""
    last: int
    """Steps at its end."""
    events: int
    """Steps between these that the because-chain names."""
    violations: int
    rows: int
    """Of one table or list."""
    columns: int
    """Of one table."""
    cells: int
    """Of one table."""
    tables: int
    strips: int
    """Requests of one step."""
    items: int
    """Of one request."""
    changes: int
    """Changed fields of one step."""
    text: int
    """Characters of one field's value."""


LEVELS: Final = (
    Limits(first=40, last=80, events=24, violations=12, rows=1_000, columns=60, cells=6_000, tables=40, strips=8,
           items=32, changes=60, text=600),
    Limits(first=20, last=40, events=12, violations=8, rows=300, columns=40, cells=2_000, tables=20, strips=6,
           items=16, changes=30, text=300),
    Limits(first=6, last=14, events=6, violations=4, rows=80, columns=24, cells=600, tables=8, strips=4,
           items=12, changes=16, text=160),
    Limits(first=2, last=4, events=2, violations=1, rows=20, columns=8, cells=80, tables=2, strips=2,
           items=6, changes=8, text=80),
)  # fmt: skip
"""From the fullest to the poorest; the last one fits whatever comes, as every part of a page is bounded by it."""


class Gap(NamedTuple):
    """Steps that are not shown."""

    first: int
    last: int

    @property
    def words(self) -> str:
        """`steps 40 to 1939 are not shown here: 1,900 steps`."""
        count = self.last - self.first + 1
        return f"steps {self.first} to {self.last} are not shown here: {count:,} step{'' if count == 1 else 's'}"


def kept(violation: Violation, limits: Limits) -> tuple[int | Gap, ...]:
    """The numbers of the steps that are shown, in order, with a gap wherever some are left out.

    The first, the last, and the latest ones of those that the because-chain speaks of; a gap of one step is shown.
    """
    numbers = [line.number for line in violation.lines]
    if len(numbers) <= limits.first + limits.last:
        return tuple(numbers)
    told = [event.step for event in violation.story.events]
    cause = [] if violation.joined is None else [violation.joined[0]]
    named = [*dict.fromkeys([*cause, *reversed(told)])][: limits.events]
    chosen = {*numbers[: limits.first], *numbers[-limits.last :], *named} & {*numbers}
    return tuple(_with_gaps(numbers, chosen))


def _with_gaps(numbers: Sequence[int], chosen: set[int]) -> Iterator[int | Gap]:
    left_out: list[int] = []
    for number in [*numbers, None]:
        if number is not None and number not in chosen:
            left_out.append(number)
            continue
        if len(left_out) == 1:
            yield left_out[0]
        elif left_out:
            yield Gap(left_out[0], left_out[-1])
        left_out = []
        if number is not None:
            yield number
