"""The HTML writer: one self-contained page for a run, which asks the network for nothing.

Belongs here: the page around its parts, its Content-Security-Policy, and the cap. The parts are in the `html_` files,
style and script in `assets/`.

Theory of operation
-------------------
The page is complete without its script; the script makes stepping quick. Style and script are two files of this
package that no data enters, so their hashes can be allowed by name and everything else forbidden: whatever a name in a
trace holds, there is no way for it to run, load or send. (It could not anyway: see `html_markup`.) The same run gives
the same bytes.
"""

import base64
import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Final
from urllib.parse import quote

from .content import Run, Violation
from .html_cut import LEVELS, MOST_BYTES, Limits
from .html_markup import Child, Markup, gathered, tag, text
from .html_run import kind_of, overall, run_parts, verdict_counts
from .html_track import DEFINITIONS
from .html_violation import violation_article

__all__ = ["html"]

_COLOURS: Final = {"green": "#1a7f37", "red": "#cf222e", "amber": "#9a6700"}
_NAMED: Final = 60
"""Violations that are named though only the first few are shown in full."""


def html(run: Run) -> str:
    """The page of a run, at most 2 MB. Files of a violation that are in the run's folder (`out`), or in one below it,
    are links relative to that folder: the page belongs into it."""
    for limits in LEVELS:
        try:
            page = _page(run, limits)
        except _TooLarge:
            continue
        if len(page.encode()) <= MOST_BYTES:
            return page
    # Every part has a bound at the last level, and so their sum: a larger page is a fault of this writer.
    raise AssertionError(f"the poorest page has {len(page.encode()):,} bytes, more than {MOST_BYTES:,}")


class _TooLarge(Exception):
    """The parts so far are above the cap already: there is no need to write the rest."""


def _within_cap(parts: Iterable[Markup]) -> list[Markup]:
    kept, length = [], 0
    for part in parts:
        kept.append(part)
        length += len(part)
        if length > MOST_BYTES:
            raise _TooLarge
    return kept


@cache
def _asset(name: str) -> Markup:
    return Markup((files(__package__) / "assets" / name).read_text(encoding="utf-8"))


@cache
def _hash(name: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(_asset(name).encode()).digest()).decode()}'"


def _policy() -> str:
    return (
        f"default-src 'none'; style-src {_hash('report.css')}; script-src {_hash('report.js')}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _page(run: Run, limits: Limits) -> str:
    shown = run.violations[: limits.violations]
    articles = _within_cap(
        violation_article(each, f"v{number}", limits, run.out) for number, each in enumerate(shown, start=1)
    )
    kind = kind_of(run)
    head = tag(
        "head",
        Markup('<meta charset="utf-8">'),
        tag("meta", http_equiv="Content-Security-Policy", content=Markup(_policy())),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content="outlives"),
        tag("title", f"{_title(run)} – outlives"),
        tag("link", rel="icon", href=_icon(kind)),
        tag("style", _asset("report.css")),
    )
    body = tag(
        "body",
        tag("a", "Skip to the report", href="#report", class_="skip"),
        DEFINITIONS,
        _bar(run, kind),
        tag(
            "main",
            _contents(run.violations, limits) if len(run.violations) > 1 else None,
            articles,
            overall(run) if run.results and not run.violations else None,
            _whole(run, limits),
            id="report",
        ),
        tag("footer", "outlives: a cache entry must outlive its last reader. This page holds everything that it shows, "
                      "and asks the network for nothing."),
        tag("script", _asset("report.js")),
    )  # fmt: skip
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _title(run: Run) -> str:
    if run.violations:
        first = run.violations[0]
        return f"{first.property} {first.outcome}"
    return run.title


def _icon(kind: str) -> Markup:
    colour = _COLOURS[kind]
    drawn = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="4" '
        f'fill="{colour}"/><path d="M3 8h10M10 5v6" stroke="#fff" stroke-width="2"/></svg>'
    )
    return Markup(f"data:image/svg+xml,{quote(drawn)}")


def _bar(run: Run, kind: str) -> Markup:
    """The line on top: whose page it is, what was asked, and the answer."""
    counts = verdict_counts(run.results)
    answer = [
        tag("span", f"exit {run.status}", class_=f"chip {kind}"),
        tag("span", counts or None, class_="counts"),
    ]
    return tag("header", tag("b", "outlives", class_="brand"), tag("h1", text(run.title, 200)),
               answer if run.results else None, class_="bar")  # fmt: skip


def _contents(violations: tuple[Violation, ...], limits: Limits) -> Markup:
    rows: list[Child] = []
    for number, each in enumerate(violations[:_NAMED], start=1):
        words = text(each.story.headline, 300)
        name = tag("b", each.property)
        if number <= limits.violations:
            rows.append(tag("li", tag("span", tag("a", name, href=f"#v{number}"), " ", words)))
        else:
            rows.append(
                tag("li", tag("span", name, " ", words), " (not shown in full here; the file of its trace has it)")
            )
    more = len(violations) - _NAMED
    if more > 0:
        rows.append(tag("li", f"{more} more"))
    return tag("nav", tag("ol", rows), class_="contents", aria_label="Violations")


def _whole(run: Run, limits: Limits) -> Markup | None:
    parts = _within_cap(run_parts(run, limits))
    if not parts:
        return None
    heading = tag("h2", "The whole run") if run.violations else None
    said = overall(run) if run.results and run.violations else None
    return tag("section", heading, gathered(said), parts, class_="run", aria_label="The whole run")
