"""How the terminal shows one violation.

Belongs here: the order and layout of its parts. For traces up to 8 steps they fit two screens.
"""

from typing import TYPE_CHECKING, Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from .content import Line, Violation

if TYPE_CHECKING:
    from .terminal import TerminalReporter

__all__ = ["KEPT_SPACE", "violation_parts"]

_FIRST, _LAST = 12, 24
"""Of a trace longer than both together, so many steps are shown at its beginning and at its end."""
_LABEL: Final = 9
KEPT_SPACE: Final = "\ue000"
"""Stands for a blank at which a line must not break. Of a private plane: text from outside never holds it (`clean`)."""
_KEPT_TOGETHER: Final = 40
"""A change of at most so many characters is not broken over two lines."""


def violation_parts(writer: "TerminalReporter", violation: Violation) -> list[RenderableType]:
    """The parts, one under the other; the command and the files follow as lines of their own."""
    by = f" ({violation.engine})" if violation.engine else ""
    parts: list[RenderableType] = [
        writer.text(f"VIOLATED {violation.property}{by}: {violation.badge}", "bold red"),
        "",
        Padding(writer.text(violation.story.headline, "bold"), (0, 0, 0, 2), expand=False),
        "",
    ]
    if violation.setup:
        parts += [_labelled(writer, "Setup", violation.setup), ""]
    parts += [_steps(writer, violation.lines), "", writer.text("Because", "bold")]
    chain = writer.grid(("", ""), head=False)
    for number, sentence in enumerate(violation.story.chain, start=1):
        chain.add_row(writer.text(f"  {number}."), writer.text(sentence))
    parts.append(chain)
    shrank = violation.shrink_words()
    if shrank:
        parts += ["", _labelled(writer, "Shrunk", shrank)]
    return parts


def _labelled(writer: "TerminalReporter", label: str, text: str) -> Table:
    table = writer.grid(("", ""), head=False)
    table.columns[0].min_width = _LABEL - 1
    table.padding = (0, 1, 0, 0)
    table.add_row(writer.text(label, "bold"), writer.text(text))
    return table


def _steps(writer: "TerminalReporter", lines: tuple[Line, ...]) -> Table:
    table = writer.grid(("step", "action", "what changed"))
    table.columns[0].justify = "right"
    table.columns[1].max_width = 36
    hidden = len(lines) - _FIRST - _LAST
    fair = False
    for line in lines:
        if hidden > 0 and _FIRST <= line.number < _FIRST + hidden:
            if line.number == _FIRST:
                table.add_row("", writer.text("…"), writer.text(f"{hidden} more steps, not shown here"))
            continue
        if line.fair and not fair:
            fair = True
            table.add_row("", "", writer.text("from here on the environment leaves the requests alone", "italic"))
        table.add_row(writer.text(str(line.number)), writer.text(line.action, "bold"), _changed(writer, line))
    return table


def _changed(writer: "TerminalReporter", line: Line) -> RenderableType:
    if line.refused is not None:
        return writer.text(f"refused: {line.refused}", "yellow")
    if not line.changes:
        return writer.text("" if line.number == 0 else "nothing", "dim")
    told = [writer.text(change.words()) for change in line.changes]
    kept = [each.plain.replace(" ", KEPT_SPACE) if len(each) <= _KEPT_TOGETHER else each.plain for each in told]
    return Text(", ".join(kept))
