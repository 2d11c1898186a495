"""The token strip as SVG: positions from left to right, and on them what lies, what is sure, and what was read.

Belongs here: how one strip is drawn, large (the selected step) and small (a row of the step table), and in words.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from outlives.model.state import FINISHED

from .clean import shown
from .html_markup import Child, Markup, gathered, tag
from .html_track import CROSS, FLAG, arrow, bar, counter, label, positions, shape, tick, track
from .html_view import Past, View
from .strip import Strip, StripItem, Window
from .telling import count_of, window

__all__ = ["PLACES", "Cause", "large_strip", "ruler", "small_strip", "strip_words"]

_NAME: Final = 18
"""Characters of a key in the drawing; the line under it has all."""
_SPOKEN: Final = 80
"""Characters of a key in the strip's description."""
_THICK, _LANE, _SMALL = 30, 31, 26
"""Pixels: the track's height, a lane below it, a strip of the table."""
PLACES: Final = {
    "absent": "not in the book",
    "held": "held by this request",
    "other": "held by another request",
    "idle": "idle in the book",
    "evicted": "evicted, the worker not told yet",
}


class Cause(NamedTuple):
    """The strip of the step that led to this one, which is drawn above it."""

    strip: Strip
    past: Past
    words: str
    """`step 5: released`."""


def large_strip(strip: Strip, view: View, ident: str, past: Past, items: int, cause: Cause | None = None) -> Markup:
    """The strip of the selected step, with names: a figure with its description."""
    drawn = strip.items[:items]
    lead = 14 if cause is None else 72
    top = lead + 46
    over = strip.status == FINISHED
    lanes = _lanes(strip, drawn, view, top + _THICK + 14, past)
    parts: list[Child] = [
        tag("title", f"Token strip of {strip.request} after step {strip.step}", id=f"{ident}t"),
        tag("desc", strip_words(strip, past, items), id=f"{ident}d"),
        positions(view, 12),
        None if cause is None else _lead(cause, view, 20, items),
        track(strip, view, drawn, top, _THICK, view.cells),
        None if cause is None else _joins(cause, strip, drawn, view, 64, top),
        None if over else counter(view, strip.computed, "computed", lead + 14, top + _THICK + 5),
        None if over else counter(view, strip.confirmed, "confirmed", lead + 30, top + _THICK + 5),
        lanes.drawn,
    ]
    return tag("svg", *parts, class_="strip large", role="img", width="100%", height=lanes.bottom,
               aria_labelledby=f"{ident}t {ident}d")  # fmt: skip


def small_strip(strip: Strip, view: View, past: Past, items: int) -> Markup:
    """The strip in a row of the step table: the same without names, which are its description."""
    drawn = strip.items[:items]
    ticks = None
    if strip.status != FINISHED:
        ticks = [tick(view, strip.confirmed, "confirmed", 1, _SMALL - 1),
                 tick(view, strip.computed, "computed", 1, _SMALL - 1)]  # fmt: skip
    name = f"{strip.request} after step {strip.step}: {strip_words(strip, past, items)}"
    return tag("svg", tag("title", name), track(strip, view, drawn, 6, _SMALL - 10, view.labels),
               ticks, _marks(drawn, view, 6, _SMALL - 10),
               class_="strip small", role="img", width="100%", height=_SMALL)  # fmt: skip


def ruler(view: View) -> Markup:
    """The positions alone: the head of the table's column of strips."""
    return tag("svg", positions(view, 12), class_="strip", width="100%", height=16, aria_hidden="true")


def strip_words(strip: Strip, past: Past, items: int) -> str:
    """The strip in sentences, for those who do not see it."""
    told = [
        f"{count_of(strip.known, 'token')} known, {strip.computed} computed, {strip.confirmed} confirmed, "
        f"{strip.in_flight} in flight"
    ]
    for item in strip.items[:items]:
        marks = ", ".join(item.marks)
        before = past.released.get(item.number)
        place = PLACES.get(item.place, item.place)
        told.append(
            f"item{item.number} {window(item.start, item.end)} key {shown(item.key, _SPOKEN)}: {place}, "
            f"{'' if item.on_shelf else 'not '}on the worker's shelf{f'; {marks} in this step' if marks else ''}"
            f"{f'; released at step {before}' if before is not None and before != strip.step else ''}"
        )
    for each in strip.windows:
        reader = "the drafter read" if each.reader == "draft" else "the target read"
        missed = ", ".join(f"item{number}" for number in each.missed)
        told.append(f"{reader} {window(each.low, each.high)}{f' and found nothing of {missed}' if missed else ''}")
    return "; ".join(told)


# --- the step that led here -------------------------------------------------------------------------------------------


def _lead(cause: Cause, view: View, top: int, items: int) -> Markup:
    """The earlier strip, without lanes: what was sure then, and the flag where the item was let go."""
    strip = cause.strip
    drawn = strip.items[:items]
    short = [count for number, count in cause.past.short.items() if _has(drawn, number, "released")]
    words = f"{cause.words}, {short[0]} short of confirmed" if short else cause.words
    return gathered(
        tag("text", words, x=0, y=top + 14, class_="name release"),
        track(strip, view, drawn, top + 22, 16, view.cells),
        tick(view, strip.confirmed, "confirmed", top + 17, top + 42),
        tick(view, strip.computed, "computed", top + 17, top + 42),
        _marks(drawn, view, top + 22, 16),
    )


def _has(items: Iterable[StripItem], number: int, mark: str) -> bool:
    return any(item.number == number and mark in item.marks for item in items)


def _joins(cause: Cause, strip: Strip, items: Sequence[StripItem], view: View, top: int, bottom: int) -> list[Markup]:
    """An arrow from each item that was let go then to the positions of it that are needed now."""
    drawn = []
    for item in items:
        for each in strip.windows:
            if item.number in each.missed:
                low, high = max(item.start, each.low), min(item.end, each.high)
                released = _has(cause.strip.items, item.number, "released")
                middle = (view.at(low) + view.at(high)) / 2
                start = view.at(item.end) if released else middle
                drawn.append(arrow(start, top, middle, bottom - 1))
    return drawn


# --- lanes ------------------------------------------------------------------------------------------------------------


class _Lanes(NamedTuple):
    drawn: list[Markup]
    bottom: int


def _lanes(strip: Strip, items: Sequence[StripItem], view: View, top: int, past: Past) -> _Lanes:
    """A lane per item, which names it, and one per reader."""
    drawn: list[Markup] = []
    for item in items:
        drawn.append(_item_lane(item, strip, view, top, past))
        top += _LANE + (14 if "released" in item.marks and view.at(item.end) >= 50 else 0)
    for each in strip.windows:
        drawn.append(_window_lane(each, items, view, top))
        top += _LANE
    return _Lanes(drawn, top)


def _item_lane(item: StripItem, strip: Strip, view: View, top: int, past: Past) -> Markup:
    """The item's name under its positions, and the flag where it was let go."""
    start, end = view.at(item.start), view.at(item.end)
    middle = (start + end) / 2
    key = item.key if len(item.key) <= _NAME else f"{item.key[: _NAME - 1]}…"
    left = middle < 55
    parts: list[Markup] = [
        bar(view, item.start, item.end, top, 6, f"lane {'there' if item.on_shelf else 'gone'}"),
        label(start if left else end, top + 19, f"item{item.number} {key}", "name item-name", after=left, away=0),
    ]
    step = past.released.get(item.number)
    if step is not None:
        parts.append(shape(end, top + 6, FLAG, f"flag{'' if step == strip.step else ' past'}"))
    if step == strip.step:
        short = past.short.get(item.number, 0)
        parts.append(bar(view, item.end - short, item.end, top, 6, "short"))
        words = f"released, {short} short of confirmed" if short else "released"
        parts.append(label(end, top + (4 if end < 50 else 33), words, "name release", after=end < 50, away=14))
    if "evicted" in item.marks:
        parts += [
            shape(middle, top + 3, CROSS, "cross"),
            label(end, top + 19, "evicted", "name evict", after=end < 75),
        ]
    return gathered(parts)


def _window_lane(each: Window, items: Sequence[StripItem], view: View, top: int) -> Markup:
    """The reader's name under what it read, and how much of it was not there."""
    missed = " missed" if each.missed else ""
    words = f"{'drafter' if each.reader == 'draft' else 'target'} reads {window(each.low, each.high)}"
    parts: list[Markup] = [bar(view, each.low, each.high, top, 6, f"lane {each.reader}{missed}")]
    for item in items:
        if item.number in each.missed:
            low, high = max(item.start, each.low), min(item.end, each.high)
            parts.append(bar(view, low, high, top, 6, "lane missing"))
            words += (
                f", {high - low} missing" if len(each.missed) == 1 else f", {high - low} of item{item.number} missing"
            )
    left = view.at(each.low) < 40
    place = view.at(each.low if left else each.high)
    parts.append(label(place, top + 19, words, f"name {each.reader}{missed}", after=left, away=0))
    return gathered(parts)


def _marks(items: Sequence[StripItem], view: View, top: int, thick: int) -> Markup:
    """Flags and crosses on a track without lanes."""
    drawn: list[Markup] = []
    for item in items:
        if "released" in item.marks:
            drawn.append(shape(view.at(item.end), top + thick, FLAG, "flag"))
        if "evicted" in item.marks:
            drawn.append(shape((view.at(item.start) + view.at(item.end)) / 2, top + thick / 2, CROSS, "cross"))
    return gathered(drawn)
