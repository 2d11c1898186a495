"""Text and blocks of GitHub-flavoured Markdown: whatever a text holds, it is shown and does nothing.

Belongs here: escaping, code blocks, tables, folded parts, and fitting parts into a size. What a report consists of is
`markdown`'s.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from .clean import shown

__all__ = ["Part", "cell", "fenced", "fitted", "folded", "table", "text"]

_WRITTEN: Final = str.maketrans(
    {char: f"\\{char}" for char in "\\`*_{}[]<>|~&"} | {char: f"<span>{char}</span>" for char in "@#$"}
)
"""What is escaped by a backslash wherever it stands; and what begins mentions, references to issues and formulas, which
are found after Markdown is read, in plain text: an element of its own keeps them from being found."""
_SHORTCODE = re.compile(r":(?=[a-zA-Z0-9_+-]+:)")
_BEGINS = re.compile(r"(\d+)([.)])|([-+=])")
_LONGEST: Final = 4_000


def text(raw: object, longest: int = _LONGEST) -> str:
    """One line of text, as inline Markdown that may begin a line."""
    line = cell(raw, longest)
    found = _BEGINS.match(line)
    if found is None:
        return line
    begin = f"{found[1]}\\{found[2]}" if found[1] else f"\\{found[3]}"
    return begin + line[found.end() :]


def cell(raw: object, longest: int = _LONGEST) -> str:
    """One line of text, as inline Markdown that begins no line: of a table's cell, or behind other words."""
    clean = " ".join(shown(raw, longest).split())
    line = _SHORTCODE.sub("<span>:</span>", clean.translate(_WRITTEN))
    return line.replace("://", ":<span>//</span>").replace("www.", "www<span>.</span>")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    """A table of cells that are Markdown already; the columns named by number in `right` are aligned so."""
    rules = ["---:" if place in right else "---" for place in range(len(heads))]
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, rules, *rows)) + "\n"


def fenced(kind: str, lines: Iterable[str]) -> str:
    """A code block of these lines. Its fence is longer than any in them."""
    content = [shown(line, _LONGEST) for line in lines]
    longest = max((len(run) for line in content for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}{kind}", *content, fence]) + "\n"


def folded(title: str, body: str) -> str:
    """A part that is closed until somebody opens it. The title is no Markdown: it stands in HTML."""
    return f"<details>\n<summary>{escape(shown(title, 200))}</summary>\n\n{body}\n</details>\n"


# --- size -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a page, and how easily it can be done without."""

    name: str
    """What it is, for the sentence that says what was left out."""
    body: str
    rank: int = 0
    """Parts of a higher rank are left out first; those of rank 0 are not left out: the end of the page is."""


def fitted(parts: Sequence[Part], most: int) -> str:
    """The parts one under the other, in at most so many bytes; what was left out is said where it stood."""
    bodies = [part.body for part in parts]
    size = sum(_bytes(body) for body in bodies)
    # The easiest to do without go first, and of those the largest.
    easy = (at for at, part in enumerate(parts) if part.rank > 0)
    order = sorted(easy, key=lambda at: (-parts[at].rank, -_bytes(parts[at].body), at))
    for at in order:
        if size <= most:
            break
        gone = f"_Left out, for want of room: {text(parts[at].name, 100)}._\n"
        size += _bytes(gone) - _bytes(bodies[at])
        bodies[at] = gone
    page = "\n".join(bodies)
    if len(page.encode("utf-8")) <= most:
        return page
    end = "\n\n_The rest is left out, for want of room._\n"
    return page.encode("utf-8")[: most - len(end)].decode("utf-8", "ignore").rpartition("\n")[0] + end


def _bytes(body: str) -> int:
    return len(body.encode("utf-8")) + 1
