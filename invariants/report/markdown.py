"""The Markdown writer, for pull requests and job summaries: the whole report in GitHub's flavour, at most 1 MiB.

Belongs here: which parts there are, in which order, and which are folded. How text and blocks are written is `gfm`'s,
the sequence diagram `mermaid`'s, the token strips `strip_text`'s. The bytes follow from the run.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final

from ..verdict import Result, Verdict
from .analysis import Analysis
from .content import DataTable, Line, Run, Violation
from .gfm import Part, cell, fenced, fitted, folded, table, text
from .mermaid import diagram
from .strip_text import marks_words, scale_of, strip_legend, strip_line

__all__ = ["MOST_BYTES", "markdown"]

MOST_BYTES: Final = 1 << 20
"""What a job summary takes."""
_FOLDED: Final = 12
"""Lists and tables of more lines than these are folded."""
_FIRST, _LAST = 60, 60
"""Of a trace longer than both together, so many steps are shown at its beginning and at its end."""
_JUDGED: Final = 24
"""Steps after which the state of each property is shown: the last ones."""
_CELL: Final = 400
"""Letters of one change, or of an action, in the table of the steps."""
_MOST_LINES: Final = 400
"""Lines of any other list."""


def markdown(run: Run) -> str:
    """The run as a Markdown page."""
    parts = [Part(name="the title", body=f"## {cell(f'outlives: {run.title}')}\n\n{_status(run)}\n")]
    for number, violation in enumerate(run.violations):
        # What happened is told of every violation; of the first, the rest of the report is the last to be cut.
        parts += [replace(each, rank=each.rank and each.rank + 10 * number) for each in _parts(violation)]
    parts += [Part(name=name, body=body, rank=rank) for name, body, rank in _about_run(run) if body]
    return fitted(parts, MOST_BYTES)


def _status(run: Run) -> str:
    counts: dict[str, int] = {}
    for result in run.results:
        counts[str(result.verdict)] = counts.get(str(result.verdict), 0) + 1
    told = f"{', '.join(f'{count} {verdict}' for verdict, count in counts.items())}. " if counts else ""
    return f"{text(told)} **Exit status {run.status}: {cell(run.meaning)}.**".strip()


# --- a violation ------------------------------------------------------------------------------------------------------


def _parts(violation: Violation) -> Iterator[Part]:
    verb = "VIOLATED" if violation.outcome == "violated" else violation.outcome
    by = f" ({violation.engine})" if violation.engine else ""
    head = [f"### {cell(f'{verb} {violation.property}{by}')}", "", f"**{cell(violation.story.headline)}**", ""]
    head += [f"_{cell(violation.badge)}_", ""] if violation.badge else []
    head += [f"{text(note)}\n" for note in violation.notes]
    head += [f"Setup: {cell(violation.setup)}", ""] if violation.setup else []
    yield Part(name="the headline", body="\n".join(head))
    for name, body, rank in (
        ("the token strips", _strips(violation), 4),
        ("the steps", _steps(violation), 5),
        ("the because-chain", _because(violation), 1),
        ("the sequence diagram", _diagram(violation), 6),
        ("the same steps under other guards", _counterfactuals(violation.analysis), 3),
        ("what may be another number", _freedoms(violation.analysis), 7),
        ("guard and properties after each step", _facts(violation.analysis), 8),
        ("how to replay", _replay(violation), 2),
        ("where it comes from", _folded_values("Where this trace comes from", violation.provenance), 9),
    ):
        if body:
            yield Part(name=f"{name} of {violation.property}", body=body, rank=rank)


def _strips(violation: Violation) -> str:
    if not violation.strips:
        return ""
    scale = scale_of(violation.strips)
    width = max(len(strip.request) for strip in violation.strips)
    lines = [
        f"{strip.step:>4} {strip.request:<{width}} {strip_line(strip, scale)}  {marks_words(strip)}".rstrip()
        for strip in violation.strips
    ]
    legend = f"{'':>{6 + width}}{strip_legend(violation.strips)}"
    return fenced("text", [*_middle_out(lines), legend])


def _middle_out(lines: Sequence[str]) -> list[str]:
    hidden = len(lines) - _FIRST - _LAST
    if hidden <= 0:
        return list(lines)
    return [*lines[:_FIRST], f"     ... {hidden} more lines, not shown here ...", *lines[-_LAST:]]


def _steps(violation: Violation) -> str:
    guards = {facts.step: facts.guards for facts in violation.analysis.facts}
    heads = ("step", "action", "what changed", *(("the guard",) if any(guards.values()) else ()))
    rows = []
    hidden = len(violation.lines) - _FIRST - _LAST
    fair = False
    for line in violation.lines:
        if hidden > 0 and _FIRST <= line.number < _FIRST + hidden:
            if line.number == _FIRST:
                rows.append(("", "…", f"{hidden} more steps, not shown here", "")[: len(heads)])
            continue
        if line.fair and not fair:
            fair = True
            rows.append(("", "", "_from here on the environment leaves the requests alone_", "")[: len(heads)])
        told = "<br>".join(cell(each.words(), _CELL) for each in guards.get(line.number, ()))
        rows.append((str(line.number), f"**{cell(line.action, _CELL)}**", _changed(line), told)[: len(heads)])
    body = table(heads, rows, right=(0,))
    return body if len(rows) <= _FOLDED else folded(f"The {len(violation.lines) - 1} steps", body)


def _changed(line: Line) -> str:
    if line.refused is not None:
        return f"refused: {cell(line.refused, _CELL)}"
    if not line.changes:
        return "" if line.number == 0 else "nothing"
    return "<br>".join(cell(change.words(), _CELL) for change in line.changes)


def _because(violation: Violation) -> str:
    if not violation.story.chain:
        return ""
    sentences = [f"{number}. {text(sentence)}" for number, sentence in enumerate(violation.story.chain, 1)]
    return "\n".join(["**Because**", "", *_most(sentences), ""])


def _diagram(violation: Violation) -> str:
    drawn = diagram(violation)
    return fenced("mermaid", drawn.rstrip("\n").split("\n")) if drawn else ""


def _counterfactuals(analysis: Analysis) -> str:
    parts = []
    if analysis.counterfactuals:
        rows = [
            (
                f"**{cell(each.guard)}** (this trace)" if each.own else cell(each.guard),
                cell(each.outcome),
                "nowhere" if each.differs_at is None else f"step {each.differs_at}: {cell(each.difference)}",
                "" if each.price is None else str(each.price),
            )
            for each in analysis.counterfactuals
        ]
        heads = ("the same steps under guard", "come to", "differ first at", "price in slot-steps")
        parts.append(table(heads, rows, right=(3,)))
    if analysis.neighbour is not None:
        parts.append(f"Nearest run that passes: {cell(analysis.neighbour.words())}.\n")
    return "\n".join(parts)


def _freedoms(analysis: Analysis) -> str:
    lines = [each.words() for each in analysis.freedoms]
    told = _list("What can be another number, and it fails all the same", lines)
    return told + "".join(f"\n{text(note)}\n" for note in analysis.notes)


def _facts(analysis: Analysis) -> str:
    """The state of each property after each of the last steps."""
    facts = [each for each in analysis.facts if each.judged][-_JUDGED:]
    names = dict.fromkeys(chain.from_iterable(each.judged for each in facts))
    marks = {"holds": "+", "not asked": "", "violated": "**X**"}
    rows = []
    for name in names:
        states = (each.judged.get(name, "not asked") for each in facts)
        rows.append((cell(name), *(marks.get(state, cell(state)) for state in states)))
    if not rows:
        return ""
    body = table(("after step", *(str(each.step) for each in facts)), rows)
    return folded("Each property after each step", f"{body}\n`+` it holds, **X** it is violated, empty: not asked.\n")


def _replay(violation: Violation) -> str:
    parts = []
    shrank = violation.shrink_words()
    if shrank:
        parts.append(f"Shrunk: {cell(shrank)}.\n")
    if violation.replay:
        parts.append(fenced("sh", [violation.replay]))
    if violation.files:
        parts.append(f"{'File' if len(violation.files) == 1 else 'Files'}: {', '.join(map(cell, violation.files))}\n")
    return "\n".join(parts)


# --- the run ----------------------------------------------------------------------------------------------------------


def _about_run(run: Run) -> Iterator[tuple[str, str, int]]:
    yield "the rows", _rows(run.results), 2
    yield "what else was said", _list("Notes", run.notes), 3
    yield "what makes the run vacuous", _list("What makes this run vacuous", run.vacuous), 3
    if run.known is not None:
        yield "known findings", _list("Known findings that were met", run.known), 4
        yield "known findings", _list("Known findings that were not met", run.gone), 4
    for each in run.tables:
        yield f"the table {each.name}", _data(each), 6
    yield "what was not covered", _list("Not covered", run.all_not_covered), 5
    yield "what was not reached", _list("Not reached", run.not_reached), 6
    if run.reach is not None:
        yield "how much of the rules was seen", f"{text(run.reach.words())}\n", 5
        for title, lines in run.reach.lists():
            yield title, _list(title, lines), 7
    yield "the configuration", _folded_values("Configuration", run.configuration), 8
    yield "the provenance", _folded_values("Versions, seed and budgets", run.provenance), 8


def _rows(results: Sequence[Result]) -> str:
    if not results:
        return ""
    green = (Verdict.PASSED, Verdict.EXHAUSTED, Verdict.PROVED)
    rows = []
    for row in results:
        verdict = cell(row.verdict) if row.verdict in green else f"**{cell(row.verdict)}**"
        told = f"known: {row.known}; {row.note}".rstrip("; ") if row.known else row.note
        rows.append((cell(row.property), cell(row.engine), verdict, cell(row.coverage), cell(told)))
    body = table(("property", "engine", "verdict", "covers", "note"), rows[:_MOST_LINES])
    if len(rows) > _MOST_LINES:
        body += f"\n{len(rows) - _MOST_LINES} more rows are not shown here.\n"
    return body if len(rows) <= 2 * _FOLDED else folded(f"The {len(rows)} rows", body)


def _data(data: DataTable) -> str:
    body = table([cell(each) for each in data.columns], [[cell(each) for each in row] for row in data.rows])
    body += "".join(f"\n{text(each)}\n" for each in data.legend)
    return folded(data.title, body)


def _list(title: str, sentences: Sequence[str]) -> str:
    if not sentences:
        return ""
    lines = [f"- {text(each)}" for each in sentences]
    if len(lines) <= _FOLDED // 2:
        return "\n".join([f"**{title}**", "", *lines, ""])
    return folded(f"{title} ({len(lines)})", "\n".join([*_most(lines), ""]))


def _most(lines: Sequence[str]) -> Iterable[str]:
    if len(lines) <= _MOST_LINES:
        return lines
    return [*lines[:_MOST_LINES], "", f"{len(lines) - _MOST_LINES} more are not shown here."]


def _folded_values(title: str, values: Mapping[str, Any]) -> str:
    if not values:
        return ""
    rows = [(cell(name), cell(_value(value))) for name, value in values.items()]
    return folded(title, table(("", ""), rows[:_MOST_LINES]))


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_value(member)}" for name, member in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_value, value))
    return "none" if value is None else str(value)
