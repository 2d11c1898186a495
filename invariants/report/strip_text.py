"""The token strip as one line of text, for terminals and for Markdown.

Belongs here: which character stands for what, and how a long strip is made to fit. Two columns stand for a position
where there is room, so that ticks and windows can lie between positions; one otherwise, or one for several positions.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from .strip import Strip, StripItem
from .telling import window

__all__ = ["StripScale", "marks_words", "scale_of", "strip_legend", "strip_line"]

_WIDEST: Final = 64
"""Columns of a strip."""


class _Alphabet(NamedTuple):
    """Confirmed, computed but not confirmed, not computed: outside of items, and inside of them."""

    outside: str
    inside: str


_PLAIN: Final = _Alphabet("-~.", "#%o")
_RICH: Final = _Alphabet("─╌·", "█▒░")


class StripScale(NamedTuple):
    """How positions become columns. One scale for a whole trace, so that its strips stand under each other."""

    positions: int
    """Positions that are drawn, from 0."""
    columns: int
    """Columns of a position: 2 or 1."""
    step: int
    """Positions of a column, where columns is 1."""


def scale_of(strips: Iterable[Strip]) -> StripScale:
    """The scale into which all of these fit."""
    ends = [1]
    for strip in strips:
        ends += [strip.known, strip.computed, *(item.end for item in strip.items), *(w.high for w in strip.windows)]
    positions = max(ends)
    if 2 * positions <= _WIDEST:
        return StripScale(positions, 2, 1)
    return StripScale(positions, 1, -(-positions // _WIDEST))


def strip_line(strip: Strip, scale: StripScale, *, ascii_only: bool = False) -> str:
    """The strip: `--:-[#%%%|)~..R`. Marks stand before the position at which they lie."""
    alphabet = _PLAIN if ascii_only else _RICH
    cells = [_cell(strip, first, scale.step, alphabet) for first in range(0, scale.positions, scale.step)]
    marks = _marks(strip)
    if scale.columns == 2:
        drawn = [f"{marks.get(place, cell)}{cell}" for place, cell in enumerate(cells)]
        return "".join(drawn) + marks.get(scale.positions, "")
    line = list(cells)
    for place, mark in marks.items():
        line[min(place // scale.step, len(line) - 1)] = mark
    return "".join(line)


def _cell(strip: Strip, first: int, step: int, alphabet: _Alphabet) -> str:
    """What a column shows: of several positions the first that lies in an item, else the first."""
    inside = [at for at in range(first, first + step) if any(item.start <= at < item.end for item in strip.items)]
    at = inside[0] if inside else first
    return (alphabet.inside if inside else alphabet.outside)[
        0 if at < strip.confirmed else 1 if at < strip.computed else 2
    ]


def _marks(strip: Strip) -> dict[int, str]:
    """Position -> the mark before it; where several meet, the one that says most."""
    marks: dict[int, str] = {}
    if strip.computed:
        marks[strip.computed] = "|"
    if strip.confirmed != strip.computed:
        marks[strip.confirmed] = ":"
    for reader in reversed(strip.windows):
        low, high = ("[", ")") if reader.reader == "target" else ("{", "}")
        marks[reader.low], marks[reader.high] = low, high
    for item in strip.items:
        for mark, letter in (("evicted", "E"), ("released", "R")):
            if mark in item.marks:
                marks[item.end] = letter
    return marks


def marks_words(strip: Strip) -> str:
    """What the step did to the items and what was read, in a few words: `item0 released; target reads [2,4), misses
    item0`."""
    told = [f"{_named(item)} {' and '.join(item.marks)}" for item in strip.items if _shown(item)]
    for reader in strip.windows:
        name = "drafter" if reader.reader == "draft" else reader.reader
        missed = f", misses {' '.join(f'item{number}' for number in reader.missed)}" if reader.missed else ""
        told.append(f"{name} reads {window(reader.low, reader.high)}{missed}")
    return "; ".join(told)


def _shown(item: StripItem) -> bool:
    return any(mark in item.marks for mark in ("released", "evicted", "encoded", "dropped", "planned"))


def _named(item: StripItem) -> str:
    return f"item{item.number}"


def strip_legend(strips: Sequence[Strip], *, ascii_only: bool = False) -> str:
    """What the characters that occur mean: `-# confirmed, ~% only computed, .o to come (#%o: of an item); ...`."""
    alphabet = _PLAIN if ascii_only else _RICH
    pairs = [outside + inside for outside, inside in zip(alphabet.outside, alphabet.inside, strict=True)]
    zones = ", ".join(
        f"{pair} {word}" for pair, word in zip(pairs, ("confirmed", "only computed", "to come"), strict=True)
    )
    marks = {mark for strip in strips for item in strip.items for mark in item.marks}
    readers = {reader.reader for strip in strips for reader in strip.windows}
    parts = ["| computed, : confirmed"]
    parts += ["[) target"] if "target" in readers else []
    parts += ["{} drafter"] if "draft" in readers else []
    parts += ["R released"] if "released" in marks else []
    parts += ["E evicted"] if "evicted" in marks else []
    return f"{zones} ({alphabet.inside}: of an item); {', '.join(parts)}"
