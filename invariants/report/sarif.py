"""The SARIF 2.1.0 writer: for code scanning, which shows a trace step by step as a code flow.

Belongs here: what of a run becomes which member. A rule is a property; a result is a violation, or a row that says
unknown, vacuous or that engines disagree; green rows are no results. A violation lies at the condition of the guard
that let the entry go, where one did, else at the property's own predicate; each step at what the model does for its
action. So every place is a line of this repository, and none depends on where it is installed.

Limits, of the file and of those who show it: `_MOST_STEPS` locations of one flow, `_MOST_RESULTS` results, and
`_MOST_BYTES` bytes. What is left out is said where it is left out. The bytes follow from the run.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ..verdict import Result, Verdict
from .clean import shown
from .content import Line, Run, Violation
from .source_lines import Place, action_place, guard_place, known_properties, property_place

__all__ = ["sarif"]

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_MOST_STEPS: Final = 1_000
_MOST_RESULTS: Final = 5_000
_MOST_BYTES: Final = 10_000_000
_LONGEST: Final = 2_000
"""Letters of one message."""
_ROUTE: Final = "ROUTE-NEVER-TAKEN"
_LEVELS: Final[Mapping[Verdict, str]] = {
    Verdict.VIOLATED: "error",
    Verdict.DISAGREE: "error",
    Verdict.VACUOUS: "warning",
    Verdict.UNKNOWN: "note",
}
"""Verdicts that are results; the others are green."""

_Json = dict[str, Any]


def sarif(run: Run) -> str:
    """The run as a SARIF file."""
    most = _MOST_STEPS
    while True:
        text = json.dumps(_log(run, most), indent=1) + "\n"
        if len(text) <= _MOST_BYTES or most <= 1:
            return text
        most //= 2


def _log(run: Run, most: int) -> _Json:
    rules = _Rules()
    every = list(_results(run, rules, most))
    results, left = every[:_MOST_RESULTS], len(every) - _MOST_RESULTS
    notes = [_notification("note", each) for each in run.notes]
    notes += [_notification("not covered", each) for each in run.all_not_covered]
    notes += [_notification("not reached", each) for each in run.not_reached]
    notes += [_notification("left out", f"{left} more results")] if left > 0 else []
    driver: _Json = {"name": "outlives", "rules": rules.written}
    version = run.provenance.get("outlives")
    if version:
        driver["version"] = shown(version, 100)
    invocation: _Json = {
        "executionSuccessful": not run.interrupted,
        "exitCode": run.status,
        "exitCodeDescription": run.meaning,
    }
    if notes:
        invocation["toolExecutionNotifications"] = notes
    written: _Json = {
        "tool": {"driver": driver},
        "automationDetails": {"id": "outlives/"},
        "invocations": [invocation],
        "columnKind": "unicodeCodePoints",
        "results": results,
        "properties": {"title": shown(run.title), "configuration": _plain(run.configuration)},
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [written]}


class _Rules:
    """The rules of the results, in the order in which they are first needed."""

    def __init__(self) -> None:
        self.written: list[_Json] = []
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self.written)
            self.written.append(_rule(name))
        return self._numbers[name]


def _rule(name: str) -> _Json:
    prop = known_properties().get(name)
    if name == _ROUTE:
        phrase, more = "every route that is open is taken", "A route that is never taken makes the run vacuous."
    elif prop is not None:
        phrase, more = prop.phrase, f"It is put to the test when {prop.situation_phrase}."
    else:
        phrase, more = shown(name, 200), ""
    text = _message(f"It must hold that {phrase}." if prop is not None or name == _ROUTE else phrase)
    rule: _Json = {"id": shown(name, 200), "shortDescription": text, "fullDescription": text}
    rule["help"] = _message(" ".join(filter(None, (text["text"], more))))
    rule["defaultConfiguration"] = {"level": "error"}
    rule["properties"] = {"tags": ["cache-lifetime"]}
    return rule


# --- results ----------------------------------------------------------------------------------------------------------


def _results(run: Run, rules: _Rules, most: int) -> Iterator[_Json]:
    rows, alone = run.paired()
    for row, own in rows:
        if own is not None:
            result = _violated(run, own, rules, most)
        elif row.verdict in _LEVELS:
            result = _of_row(run, row, rules)
        else:
            continue
        if row.known:
            justified = f"known: {shown(row.known, _LONGEST)}"
            result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": justified}]
        yield result
    for violation in alone:
        yield _violated(run, violation, rules, most)
    for route in run.vacuous:
        found = _result(_ROUTE, Verdict.VACUOUS, route, None, rules)
        yield found | {"partialFingerprints": _fingerprint(run, _ROUTE, route.partition(":")[0], ())}


def _result(name: str, verdict: Verdict, text: str, place: Place | None, rules: _Rules) -> _Json:
    result: _Json = {"ruleId": shown(name, 200), "ruleIndex": rules.number(name), "level": _LEVELS[verdict]}
    result["message"] = _message(text)
    result["locations"] = [_location(place or Place("model/scheduler.py", 1, ""))]
    return result


def _of_row(run: Run, row: Result, rules: _Rules) -> _Json:
    text = f"{row.property}, {row.engine}: {row.verdict}. It covers: {row.coverage}."
    result = _result(row.property, row.verdict, f"{text} {row.note}".strip(), property_place(row.property), rules)
    return result | {"partialFingerprints": _fingerprint(run, row.property, f"{row.engine}: {row.verdict}", ())}


def _violated(run: Run, violation: Violation, rules: _Rules, most: int) -> _Json:
    told = " ".join([violation.story.headline, f"({violation.badge})", *violation.notes])
    result = _result(violation.property, Verdict.VIOLATED, told, _cause(run, violation), rules)
    if violation.outcome == "passes":
        result |= {"kind": "pass", "level": "none"}
    names = tuple(line.name for line in violation.lines if not line.fair)
    result["partialFingerprints"] = _fingerprint(run, violation.property, "", names)
    release = None if violation.joined is None else violation.joined[0]
    if release is not None and release < len(violation.lines):
        line = violation.lines[release]
        what = " ".join(_told_by_step(violation).get(release, (line.action,)))
        place = action_place(line.name) or property_place(violation.property)
        result["relatedLocations"] = [_location(place, f"Step {release}. {what}", number=1)]
    result["codeFlows"] = [
        {"message": _message(_steps_words(violation)), "threadFlows": [{"locations": list(_flow(violation, most))}]}
    ]
    result["properties"] = {"engine": shown(violation.engine, 200), "because": _shown(violation.story.chain)}
    more = {"setup": violation.setup, "replay": violation.replay, "shrunk": violation.shrink_words()}
    result["properties"] |= {name: shown(text, _LONGEST) for name, text in more.items() if text}
    if violation.provenance:
        result["properties"]["provenance"] = _plain(violation.provenance)
    return result


def _cause(run: Run, violation: Violation) -> Place | None:
    """The condition that let an entry go, where one did; else the predicate that is false."""
    if any(event.kind == "released" for event in violation.story.events):
        guard = violation.provenance.get("guard", run.configuration.get("guard"))
        place = guard_place(guard) if isinstance(guard, str) else None
        if place is not None:
            return place
    return property_place(violation.property)


def _steps_words(violation: Violation) -> str:
    return f"The trace, {len(violation.lines) - 1} steps from its initial state. {violation.setup}".strip()


# --- the code flow ----------------------------------------------------------------------------------------------------


def _flow(violation: Violation, most: int) -> Iterator[_Json]:
    """A location per step; of a longer trace its beginning and its end, with a location that says what is left out."""
    lines = violation.lines
    hidden = 0 if len(lines) <= most else len(lines) - most + 1
    first = len(lines) if hidden == 0 else most // 2
    joined = violation.joined
    told = _told_by_step(violation)
    fallback = property_place(violation.property)
    for place, line in enumerate(lines):
        if first <= place < first + hidden:
            if place == first:
                yield {
                    "location": _location(fallback, f"{hidden} more steps, not shown here"),
                    "importance": "essential",
                }
            continue
        essential = line.number in told or line.number == len(lines) - 1
        yield {
            "location": _location(action_place(line.name) or fallback, _line_words(line, told.get(line.number, ()))),
            "executionOrder": line.number + 1,
            "importance": "essential" if essential else "important",
            "kinds": ["release" if joined is not None and line.number == joined[0] else "call"],
        }


def _told_by_step(violation: Violation) -> dict[int, list[str]]:
    """Step -> the sentences of the because-chain about it."""
    told: dict[int, list[str]] = {}
    for event, sentence in zip(violation.story.events, violation.story.chain, strict=True):
        told.setdefault(event.step, []).append(sentence)
    return told


def _line_words(line: Line, sentences: Iterable[str]) -> str:
    what = f"refused: {line.refused}" if line.refused else ", ".join(change.words() for change in line.changes)
    return " ".join([f"Step {line.number}, {line.action}{': ' if what else ''}{what}.", *sentences])


def _location(place: Place | None, text: str = "", *, number: int | None = None) -> _Json:
    location: _Json = {} if number is None else {"id": number}
    if place is not None:
        location["physicalLocation"] = {
            "artifactLocation": {"uri": place.path, "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": place.line},
        }
        if place.name:
            location["logicalLocations"] = [{"name": place.name, "kind": "function"}]
    if text:
        location["message"] = _message(text)
    return location


# --- texts ------------------------------------------------------------------------------------------------------------

_LINK = re.compile(r"\[([^\[\]]*)\](?=\()")


def _message(text: str) -> _Json:
    """A message; brackets that a viewer would take for a link are escaped."""
    return {"text": _LINK.sub(r"\\[\1\\]", shown(text, _LONGEST))}


def _notification(kind: str, text: str) -> _Json:
    return {"level": "note", "message": _message(f"{kind}: {text}")}


def _fingerprint(run: Run, name: str, what: str, actions: Iterable[str]) -> _Json:
    """Stays the same as long as the same actions break the same property of the same subject, whatever the numbers and
    the lines of the source."""
    about = [run.configuration.get(member) for member in ("profile", "guard", "reader", "relaxed", "fault")]
    content = json.dumps([name, what, _plain(about), list(actions)]).encode("ascii")
    return {"primaryLocationLineHash": f"{hashlib.sha256(content).hexdigest()[:16]}:1"}


def _shown(texts: Iterable[str]) -> list[str]:
    return [shown(each, _LONGEST) for each in texts]


def _plain(value: Any) -> Any:
    """As JSON values with clean text."""
    if isinstance(value, Mapping):
        return {shown(name, 200): _plain(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, bool | int | float) else shown(value)
