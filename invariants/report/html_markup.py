"""Building HTML that cannot be broken by what it shows: text is escaped unless it was built here.

Belongs here: the one type of trusted text, and the functions that make it. Every other `str` that becomes part of a
page passes through `clean.shown` (control and direction characters become visible escapes) and `html.escape`.
"""

from collections.abc import Iterable
from html import escape
from typing import Final

from .clean import shown

__all__ = ["Child", "Markup", "gathered", "number", "tag", "text"]


class Markup(str):
    """Text that is HTML already. Only the functions of this file, and the assets of the page, become one."""

    __slots__ = ()


Child = str | int | None | Iterable["Child"]
"""What may stand in an element: markup as it is, other text escaped, None nothing, several one after the other."""

_LONGEST: Final = 600
"""Characters of one text; the JSON and the trace's file have all of it."""
_VOID: Final = frozenset({"meta", "link", "br"})
_ATTRIBUTES: Final = {"class_": "class", "for_": "for"}


def text(value: object, longest: int = _LONGEST) -> Markup:
    """Any value as visible text, cut in the middle where it is longer."""
    return Markup(escape(shown(value, longest)))


def gathered(*children: Child) -> Markup:
    """One after the other."""
    return Markup("".join(map(_markup, children)))


def tag(name: str, /, *children: Child, **attributes: str | int | float | bool | None) -> Markup:
    """An element. Attributes: `class_` is class, an underscore a hyphen; None and False are left out, True is bare."""
    told = "".join(
        f" {_name(key)}" if value is True else f' {_name(key)}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Markup(f"<{name}{told}>")
    return Markup(f"<{name}{told}>{''.join(map(_markup, children))}</{name}>")


def number(value: float) -> str:
    """At most two decimals, and none that are not needed, so that pages are small and the same everywhere."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if value % 1 else str(int(value))


def _markup(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str | int):
        return text(child)
    return "".join(map(_markup, child))


def _name(key: str) -> str:
    return _ATTRIBUTES.get(key, key.replace("_", "-"))


def _value(value: str | int | float) -> str:
    if isinstance(value, Markup):
        return value
    return number(value) if isinstance(value, int | float) else text(value, 2_000)
