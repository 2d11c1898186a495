"""Plain data on the page: sections, lists, tables, values by name, links to files.

Belongs here: what shows data without knowing what it is about.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import quote

from .clean import shown
from .content import DataTable
from .html_cut import Limits
from .html_markup import Child, Markup, gathered, tag, text

__all__ = ["bullets", "chip_of", "data_list", "data_table", "files_list", "section"]

_GOOD: Final = re.compile(r"proved|passed|exhausted|passes|\+$|yes$")
_BAD: Final = re.compile(r"UNSAFE|STUCK|DISAGREE|violated|engines disagree|X$|NO$")
_UNSURE: Final = re.compile(r"unknown|vacuous|\?$")
_DEEP: Final = 4
"""Values inside values; what is deeper is counted."""


def section(title: str, content: Markup, kind: str) -> Markup:
    """A part of the page with its heading."""
    return tag("section", tag("h3", title), content, class_=f"part {kind}")


def bullets(texts: Sequence[str], limits: Limits) -> Markup:
    """A list, and how many of it are left out."""
    more = len(texts) - limits.rows
    rows = [tag("li", each) for each in texts[: limits.rows]]
    return tag("ul", rows, tag("li", f"{more} more, not shown here") if more > 0 else None)


def chip_of(words: str) -> str:
    """The kind of a cell by its words: `good`, `bad`, `unsure`, or empty where it says no verdict."""
    if _BAD.match(words) or "UNSAFE" in words or "STUCK" in words:
        return "bad"
    return "good" if _GOOD.match(words) else "unsure" if _UNSURE.match(words) else ""


def data_table(table: DataTable, limits: Limits) -> Markup:
    """A table of plain text with its legend; cells that hold a verdict are coloured."""
    wide = len(table.columns) > limits.columns
    heads = (table.heads or table.columns)[: limits.columns]
    head = [
        tag("th", tag("abbr", short, title=full) if short != full else short, scope="col")
        for short, full in zip(heads, table.columns, strict=False)
    ]
    most = min(limits.rows, max(limits.cells // max(len(heads), 1), 1))
    rows = [_table_row(row[: limits.columns], limits) for row in table.rows[:most]]
    cut = []
    if wide:
        cut.append(f"{len(table.columns) - limits.columns} more columns are not shown here.")
    if len(table.rows) > most:
        cut.append(f"{len(table.rows) - most:,} more rows are not shown here.")
    body = gathered(
        tag("div", tag("table", tag("thead", tag("tr", head)), tag("tbody", rows)), class_="scroll", tabindex=0,
            role="group", aria_label=table.title),
        [tag("p", each, class_="quiet") for each in [*cut, *table.legend[: limits.rows]]],
    )  # fmt: skip
    return section(table.title, body, "data")


def _table_row(row: Sequence[str], limits: Limits) -> Markup:
    return tag(
        "tr",
        tag("th", text(row[0], limits.text), scope="row") if row else None,
        [tag("td", text(each, limits.text), class_=chip_of(each) or None) for each in row[1:]],
    )


def data_list(values: Mapping[str, Any], limits: Limits) -> Markup:
    """Values by name; what is inside a value is set in under it."""
    return tag("dl", _pairs(values, limits, count(1), 1))


def _pairs(values: Mapping[str, Any], limits: Limits, written: Iterator[int], depth: int) -> list[Markup]:
    """`written` counts the pairs of the whole list, which together are bounded."""
    pairs = []
    for place, (name, value) in enumerate(values.items()):
        if next(written) > limits.rows:
            pairs.append(tag("div", tag("dt", f"{len(values) - place} more"), tag("dd", "not shown here")))
            break
        pairs.append(tag("div", tag("dt", str(name)), tag("dd", _value(value, limits, written, depth))))
    return pairs


def _value(value: Any, limits: Limits, written: Iterator[int], depth: int) -> Child:
    if isinstance(value, Mapping):
        if depth >= _DEEP:
            return f"{len(value)} values"
        return tag("dl", _pairs(value, limits, written, depth + 1)) if value else "none"
    if isinstance(value, list | tuple | set | frozenset):
        several = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        return text(_listed(several, limits) or "none", 3 * limits.text)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return text(f"{value:,}" if isinstance(value, int) else value, limits.text)


def _listed(several: Sequence[Any], limits: Limits) -> str:
    """The first ones, as many as there is room for, and how many more there are."""
    told: list[str] = []
    room = 2 * limits.text
    for each in several:
        told.append(shown(each, limits.text))
        room -= len(told[-1])
        if room < 0:
            break
    more = len(several) - len(told)
    return ", ".join([*told, f"{more:,} more"] if more > 0 else told)


def files_list(files: Sequence[str], out: str, limits: Limits) -> Markup:
    """Names of files; those that stand beside the page, or in a folder beside it, are links."""
    return tag("ul", [tag("li", _file(each, out)) for each in files[: limits.rows]], class_="files")


def _file(name: str, out: str) -> Markup:
    inside = PurePosixPath(name)
    if out and inside.is_relative_to(out):
        inside = inside.relative_to(out)
        # `./` first: nothing in a name can become a scheme such as javascript:, or another host.
        if ".." not in inside.parts and inside.parts:
            path = quote(str(inside), safe="/", errors="replace")
            return tag("a", tag("code", name), href=Markup(f"./{path}"))
    return tag("code", name)
