"""The track of a token strip: bars, ticks, labels and shapes on a scale of positions.

Belongs here: the pieces that `html_strip` puts together.

Theory of operation
-------------------
Horizontal places are percentages and vertical ones pixels, so that a strip fills any width while its text keeps its
size: the same page is read on a telephone and on paper. What has a shape (flags, crosses) sits in an inner `svg` whose
corner is the place. The patterns and arrow heads are defined once per page (`DEFINITIONS`).
"""

from collections.abc import Iterable, Sequence
from typing import Final

from .html_markup import Child, Markup, gathered, number, tag
from .html_view import View
from .strip import Strip, StripItem

__all__ = ["CROSS", "DEFINITIONS", "FLAG", "arrow", "bar", "counter", "label", "positions", "shape", "tick", "track"]

FLAG: Final = "M0 0V-13L9 -9L0 -5"
CROSS: Final = "M-4 -4L4 4M-4 4L4 -4"

DEFINITIONS: Final = tag(
    "svg",
    tag(
        "defs",
        tag("pattern", tag("path", d="M-2 2L2 -2M0 8L8 0M6 10L10 6", class_="hatching"), id="hatch", width=8, height=8,
            patternUnits="userSpaceOnUse"),
        tag("marker", tag("path", d="M0 0L8 4L0 8z", class_="head"), id="arrow", viewBox="0 0 8 8", refX=7, refY=4,
            markerWidth=6, markerHeight=6, orient="auto-start-reverse"),
    ),
    width=0, height=0, class_="definitions", aria_hidden="true",
)  # fmt: skip
"""Patterns and arrow heads, once per page."""


def bar(view: View, low: int, high: int, top: float, height: float, kind: str, **more: str) -> Markup:
    """The positions [low, high) as a rectangle; nothing where none of them is in view."""
    left, right = view.at(low), view.at(high)
    if right <= left:
        return Markup("")
    return tag("rect", x=f"{number(left)}%", y=top, width=f"{number(right - left)}%", height=height, class_=kind,
               **more)  # fmt: skip


def tick(view: View, place: int, kind: str, top: float, bottom: float) -> Markup:
    """A line at a position; nothing where it is out of view."""
    if not view.has(place):
        return Markup("")
    x = f"{number(view.at(place))}%"
    return tag("line", x1=x, x2=x, y1=top, y2=bottom, class_=f"tick {kind}")


def label(place: float, y: float, words: Child, kind: str, *, after: bool, away: int = 5) -> Markup:
    """Text beside a place (per cent of the width), `away` pixels to its right (`after`) or to its left."""
    return tag("text", words, x=f"{number(place)}%", y=y, dx=away if after else -away, class_=kind,
               text_anchor=None if after else "end")  # fmt: skip


def counter(view: View, value: int, name: str, y: int, bottom: int) -> Markup:
    """A tick with its name and number; an arrow instead of the tick where it is out of view."""
    words = f"{name} {value}"
    if not view.has(value):
        words = f"← {words}" if value < view.low else f"{words} →"
    at = view.at(value)
    return gathered(tick(view, value, name, y - 10, bottom), label(at, y, words, f"name {name}", after=at < 55))


def positions(view: View, y: int) -> Markup:
    """The numbers of the ruler."""
    return gathered([
        tag("text", place, x=f"{number(view.at(place))}%", y=y, text_anchor="middle", class_="position")
        for place in view.labels
    ])  # fmt: skip


def shape(place: float, y: float, path: str, kind: str) -> Markup:
    """A small drawing whose origin is at the place."""
    return tag("svg", tag("path", d=path, class_=kind), x=f"{number(place)}%", y=y, class_="shape")


def arrow(left: float, top: float, right: float, bottom: float) -> Markup:
    """From one place to another."""
    return tag("line", x1=f"{number(left)}%", y1=top, x2=f"{number(right)}%", y2=bottom, class_="join",
               marker_end="url(#arrow)")  # fmt: skip


def track(strip: Strip, view: View, items: Sequence[StripItem], top: int, thick: int, lines: Iterable[int]) -> Markup:
    """Known tokens, items on them, the uncertain zone, what was missed, and the boxes of the readers."""
    parts: list[Markup] = [
        bar(view, view.low, view.high, top, thick, "nothing"),
        bar(view, view.low, strip.known, top, thick, "known"),
    ]
    for item in items:
        kind = f"item {'there' if item.on_shelf else 'gone'}"
        parts.append(bar(view, item.start, item.end, top + 1, thick - 2, kind))
    for place in lines:
        x = f"{number(view.at(place))}%"
        parts.append(tag("line", x1=x, x2=x, y1=top, y2=top + thick, class_="cell"))
    if strip.computed > strip.confirmed:
        parts.append(bar(view, strip.confirmed, strip.computed, top, thick, "uncertain", fill="url(#hatch)"))
    for each in strip.windows:
        for item in items:
            if item.number in each.missed:
                low, high = max(item.start, each.low), min(item.end, each.high)
                parts.append(bar(view, low, high, top, thick, "missing"))
    for each in strip.windows:
        wide = 2 if each.reader == "draft" else 4
        missed = " missed" if each.missed else ""
        parts.append(bar(view, each.low, each.high, top - wide, thick + 2 * wide, f"window {each.reader}{missed}"))
    return gathered(parts)
