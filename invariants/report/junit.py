"""The JUnit XML writer (the xunit2 form that pytest writes): one test case per property and engine.

Belongs here: which row becomes what. A violation is a failure. Unknown, vacuous and disagreeing rows are errors and not
skipped cases, because whoever reads such files takes a skipped case for green; only a violation that the user knows of
already is skipped. A file without failure and error is a run with exit status 0, and the other way round: `outlives
table`, of which a violated cell is an answer, has green cases.

The bytes follow from the run: no clock and no host name is written. Text is made safe by `clean`, which leaves none of
the characters that XML 1.0 forbids.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from ..verdict import Result, Verdict
from .clean import shown
from .content import Run, Violation

__all__ = ["junit"]

_GREEN: Final = frozenset({Verdict.PASSED, Verdict.EXHAUSTED, Verdict.PROVED})
_LONGEST: Final = 2_000
"""Letters of one name or message."""
_STEPS: Final = 200
"""Steps of a trace that are listed; of a longer one the first and the last."""


class _Case(NamedTuple):
    """One test case."""

    kind: str
    """`failure`, `error`, `skipped`; empty: green."""
    where: str
    name: str
    message: str = ""
    text: str = ""


def junit(run: Run) -> str:
    """The run as a JUnit XML file."""
    cases = _settled(list(_cases(run)), run)
    counts = {kind: sum(1 for case in cases if case.kind == kind) for kind in ("error", "failure", "skipped")}
    numbers = {
        "errors": counts["error"],
        "failures": counts["failure"],
        "skipped": counts["skipped"],
        "tests": len(cases),
    }
    lines = ['<?xml version="1.0" encoding="utf-8"?>', '<testsuites name="outlives">']
    lines.append(f"<testsuite {_attributes({'name': f'outlives: {run.title}', **numbers})}>")
    lines += _properties(run)
    for case in cases:
        lines += _written(case)
    rest = [
        f"{run.meaning}.",
        *run.notes,
        *_listed("Not covered", run.all_not_covered),
        *_listed("Not reached", run.not_reached),
    ]
    lines += [f"<system-out>{_text(chr(10).join(rest))}</system-out>", "</testsuite>", "</testsuites>"]
    return "\n".join(lines) + "\n"


def _cases(run: Run) -> Iterator[_Case]:
    rows, alone = run.paired()
    for result, own in rows:
        yield _row(result, own)
    for violation in alone:
        kind, message = ("", "") if violation.outcome == "passes" else ("failure", violation.story.headline)
        yield _Case(kind, _class(violation.engine), violation.property, message, _told(violation) if kind else "")
    for route in run.vacuous:
        yield _Case("error", _class("routes"), route, f"{Verdict.VACUOUS}: {route}")
    if run.interrupted:
        yield _Case("error", _class("run"), "interrupted", run.meaning)


def _settled(cases: list[_Case], run: Run) -> list[_Case]:
    """The cases as the exit status has them: green at 0, and otherwise at least one that is not."""
    if run.status == 0:
        cases = [case if case.kind == "skipped" else case._replace(kind="") for case in cases]
        return cases or [_Case("", _class("tables"), table.name) for table in run.tables] or [_ending(run, "")]
    green = not any(case.kind in ("failure", "error") for case in cases)
    return [*cases, _ending(run, "error")] if green else cases


def _ending(run: Run, kind: str) -> _Case:
    return _Case(kind, _class("run"), f"exit status {run.status}", run.meaning)


def _row(result: Result, violation: Violation | None) -> _Case:
    name, where = result.property, _class(result.engine)
    covers = f"covers: {result.coverage}"
    if result.verdict in _GREEN:
        return _Case("", where, name)
    if result.known:
        return _Case("skipped", where, name, f"known: {result.known}")
    if result.verdict is Verdict.VIOLATED:
        headline = result.note or f"{name} is violated" if violation is None else violation.story.headline
        told = covers if violation is None else f"{_told(violation)}\n\n{covers}"
        return _Case("failure", where, name, headline, told)
    return _Case("error", where, name, ": ".join(filter(None, (str(result.verdict), result.note))), covers)


def _told(violation: Violation) -> str:
    """The because-chain, the steps, and how to take them again."""
    lines = [violation.story.headline, f"({violation.badge})", ""]
    lines += [f"{number}. {sentence}" for number, sentence in enumerate(violation.story.chain, 1)]
    lines += [*violation.notes, ""] + ([f"Setup: {violation.setup}"] if violation.setup else [])
    hidden = len(violation.lines) - _STEPS
    for line in violation.lines:
        if hidden > 0 and _STEPS // 2 <= line.number < _STEPS // 2 + hidden:
            if line.number == _STEPS // 2:
                lines.append(f"... {hidden} more steps, not shown here ...")
            continue
        what = f"refused: {line.refused}" if line.refused else ", ".join(change.words() for change in line.changes)
        lines.append(f"step {line.number}: {line.action}{': ' if what else ''}{what}")
    if violation.replay:
        lines += ["", f"Replay: {violation.replay}"]
    return "\n".join(shown(line, _LONGEST) for line in lines)


def _written(case: _Case) -> Iterator[str]:
    kind, where, name, message, text = case
    head = f"<testcase {_attributes({'classname': where, 'name': name})}"
    if not kind:
        yield f"{head} />"
        return
    attributes = {"message": message} if kind == "skipped" else {"type": _type(kind, message), "message": message}
    inside = f">{_text(text)}</{kind}>" if text else " />"
    yield f"{head}>"
    yield f"<{kind} {_attributes(attributes)}{inside}"
    yield "</testcase>"


def _type(kind: str, message: str) -> str:
    """A word to filter by: `violated`, `unknown`, `vacuous`, `engines disagree`."""
    if kind == "failure":
        return str(Verdict.VIOLATED)
    return next((str(each) for each in Verdict if message.startswith(str(each))), "run")


def _properties(run: Run) -> Iterator[str]:
    named = {**_flat("configuration", run.configuration), **_flat("", run.provenance)}
    if named:
        yield "<properties>"
        for name, value in named.items():
            yield f"<property {_attributes({'name': name, 'value': value})} />"
        yield "</properties>"


def _flat(name: str, value: Any) -> dict[str, str]:
    if isinstance(value, Mapping):
        found: dict[str, str] = {}
        for member, inside in value.items():
            found |= _flat(f"{name}.{member}" if name else str(member), inside)
        return found
    if isinstance(value, list | tuple):
        return {name: ", ".join(map(str, value))}
    return {name: "" if value is None else str(value)}


def _class(engine: str) -> str:
    """Readers take dots for packages."""
    return f"outlives.{engine.replace('.', '_') or 'trace'}"


def _listed(title: str, sentences: Iterable[str]) -> list[str]:
    told = [f"  - {shown(each, _LONGEST)}" for each in sentences]
    return [f"{title}:", *told] if told else []


def _attributes(values: Mapping[str, object]) -> str:
    return " ".join(f"{name}={quoteattr(shown(value, _LONGEST))}" for name, value in values.items())


def _text(text: str) -> str:
    """Lines of clean text."""
    return "\n".join(escape(shown(line, 2 * _LONGEST)) for line in text.split("\n"))
