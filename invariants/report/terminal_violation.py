"""How the terminal shows one violation.

Belongs here: the order and layout of its parts. For traces up to 8 steps they fit two screens, so what the page and the
pull request show at length (every property after every step, every number that may be another one) is cut short here.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from .analysis import Analysis, Counterfactual, StepFacts
from .content import Line, Violation
from .strip import Strip
from .strip_text import marks_words, scale_of, strip_legend, strip_line
from .telling import count_of

if TYPE_CHECKING:
    from .terminal import TerminalReporter

__all__ = ["KEPT_SPACE", "violation_parts"]

_FIRST, _LAST = 12, 24
"""Of a trace longer than both together, so many steps are shown at its beginning and at its end."""
_STRIPS: Final = 12
"""Lines of token strips."""
_FROM: Final = ("outlives", "vllm", "profile", "guard", "relaxed", "reader", "seed", "never fired")
"""What the terminal shows of where a trace comes from; the rest is in the file and in the other formats."""
_LABEL: Final = 9
KEPT_SPACE: Final = "\ue000"
"""Stands for a blank at which a line must not break. Of a private plane: text from outside never holds it (`clean`)."""
_KEPT_TOGETHER: Final = 40
"""A change of at most so many characters is not broken over two lines."""


def violation_parts(writer: "TerminalReporter", violation: Violation) -> list[RenderableType]:
    """The parts, one under the other; the command and the files follow as lines of their own."""
    by = f" ({violation.engine})" if violation.engine else ""
    passes = violation.outcome == "passes"
    head = f"{'PASSES' if passes else 'VIOLATED'} {violation.property}{by}: {violation.badge}"
    parts: list[RenderableType] = [
        writer.text(head, "bold green" if passes else "bold red"),
        "",
        Padding(writer.text(violation.story.headline, "bold"), (0, 0, 0, 2), expand=False),
        "",
    ]
    if violation.setup:
        parts += [_labelled(writer, "Setup", violation.setup), ""]
    parts += [*_strips(writer, violation), _steps(writer, violation)]
    if violation.story.events:
        parts += ["", writer.text("Because", "bold")]
        chain = writer.grid(("", ""), head=False)
        for number, sentence in enumerate(violation.story.chain, start=1):
            chain.add_row(writer.text(f"  {number}."), writer.text(sentence))
        parts.append(chain)
    parts += _what_if(writer, violation.analysis)
    parts += [] if violation.analysis.counterfactuals else [""]
    parts += [_labelled(writer, "Note", note) for note in violation.notes]
    shrank = violation.shrink_words()
    if shrank:
        parts.append(_labelled(writer, "Shrunk", shrank))
    if violation.provenance:
        told = "; ".join(f"{name} {value}" for name, value in violation.provenance.items() if name in _FROM)
        parts.append(_labelled(writer, "From", told))
    return parts


def _strips(writer: "TerminalReporter", violation: Violation) -> list[RenderableType]:
    """One line per step that moved something of the request that the violation is about."""
    strips = [each for each in violation.strips if each.request == _subject(violation)]
    if not strips:
        return []
    scale = scale_of(strips)
    table = writer.grid(("step", f"tokens of {strips[0].request}", "what was read, and what became of items"))
    table.columns[0].justify = "right"
    table.columns[1].no_wrap = True
    kept = _shown_strips(strips)
    for strip in kept:
        line = strip_line(strip, scale, ascii_only=writer.plain).replace(" ", KEPT_SPACE)
        table.add_row(writer.text(str(strip.step)), Text(line), writer.text(marks_words(strip)))
    hidden = len(strips) - len(kept)
    legend = strip_legend(kept, ascii_only=writer.plain)
    legend += f"; {count_of(hidden, 'step')} without a change left out" if hidden else ""
    return [table, Padding(writer.text(legend, "dim"), (0, 0, 0, 2), expand=False), ""]


def _subject(violation: Violation) -> str:
    """The request that the story is about: the one whose item was missed, or the first that the headline names."""
    for strip in violation.strips:
        if any(window.missed for window in strip.windows):
            return strip.request
    names = [strip.request for strip in violation.strips]
    told = re.findall(r"\br[0-9]+\b", violation.story.headline)
    return next((name for name in (*told, *names) if name in names), "")


def _shown_strips(strips: Sequence[Strip]) -> list[Strip]:
    """Without those that look as the one before, and of many the last ones."""
    kept: list[Strip] = []
    for strip in strips:
        same = kept and kept[-1]._replace(step=0, windows=(), in_flight=0) == strip._replace(step=0, in_flight=0)
        if not same and strip.status not in ("absent", "finished"):
            kept.append(strip)
    return kept[-_STRIPS:]


def _what_if(writer: "TerminalReporter", analysis: Analysis) -> list[RenderableType]:
    parts: list[RenderableType] = []
    if analysis.counterfactuals:
        table = writer.grid(("the same steps under", "what becomes of them", "slot-steps"))
        table.columns[0].max_width = 42
        table.columns[2].justify = "right"
        for names, each in _alike(analysis.counterfactuals):
            price = "" if each.own else f"{each.price:+d}"
            told = each.outcome if each.own else f"{each.outcome}; {each.first_other()}"
            table.add_row(writer.text(names), writer.text(told, "red" if each.violated else "green"),
                          writer.text(price))  # fmt: skip
        parts += ["", table, ""]
    if analysis.neighbour is not None:
        parts.append(_labelled(writer, "Nearest", analysis.neighbour.words()))
    free = [each.name.removeprefix("setup: ") for each in analysis.freedoms if each.any]
    if free:
        told = f"every value that was tried fails alike: {', '.join(free)}"
        parts.append(_labelled(writer, "Any", told))
    parts += [_labelled(writer, "Note", note) for note in analysis.notes]
    return parts


def _alike(counterfactuals: Sequence[Counterfactual]) -> list[tuple[str, Counterfactual]]:
    """Guards of which the same is to be said, together."""
    groups: dict[tuple[object, ...], list[Counterfactual]] = {}
    for each in counterfactuals:
        key = (each.own, each.outcome, each.differs_at, each.difference, each.price)
        groups.setdefault(key, []).append(each)
    return [
        (", ".join(each.guard for each in group) + (" (its own)" if group[0].own else ""), group[0])
        for group in groups.values()
    ]


def _labelled(writer: "TerminalReporter", label: str, text: str) -> Table:
    table = writer.grid(("", ""), head=False)
    table.columns[0].min_width = _LABEL - 1
    table.padding = (0, 1, 0, 0)
    table.add_row(writer.text(label, "bold"), writer.text(text))
    return table


def _steps(writer: "TerminalReporter", violation: Violation) -> Table:
    lines = violation.lines
    facts = {each.step: each for each in violation.analysis.facts}
    told: set[str] = set()
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
        table.add_row(writer.text(str(line.number)), writer.text(line.action, "bold"),
                      _changed(writer, line, facts.get(line.number), told))  # fmt: skip
    return table


def _changed(writer: "TerminalReporter", line: Line, facts: StepFacts | None, told: set[str]) -> RenderableType:
    """`told` are the properties that an earlier step violated already; those of this step are added."""
    if line.refused is not None:
        return writer.text(f"refused: {line.refused}", "yellow")
    if not line.changes:
        return writer.text("" if line.number == 0 else "nothing", "dim")
    moved = [writer.text(change.words()) for change in line.changes]
    kept = [each.plain.replace(" ", KEPT_SPACE) if len(each) <= _KEPT_TOGETHER else each.plain for each in moved]
    text = Text(", ".join(kept))
    if facts is not None:
        for guard in facts.guards:
            text.append(f"\nguard, {writer.text(guard.words()).plain}", "italic")
        for name in facts.violated():
            if name not in told:
                told.add(name)
                text.append(f"\nviolates {writer.text(name).plain}", "bold red")
    return text
