"""What a trace file says of the run that found it: written once the run is over, read back by every report.

Belongs here: the member `run` of a file's `#meta`, and the provenance that a report shows. Nothing in it differs
between two runs of the same question: no clock, no path outside the run.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from platform import python_version
from typing import Any

from outlives.model.errors import OutlivesError
from outlives.model.trace import read_trace

from .report.content import Run, Violation
from .trace_file import rewrite_meta

__all__ = ["provenance_of", "record_of", "stamped"]

_MOST = 400
"""Letters of a value that is read from a file; most lists are far shorter."""


def record_of(run: Run) -> dict[str, Any]:
    """What is kept of a run: versions, seed and settings, what was covered, what fired and what never did."""
    plain = {name: value for name, value in run.provenance.items() if isinstance(value, int | str) and name != "from"}
    fired = run.provenance.get("actions fired", {})
    record: dict[str, Any] = {"title": run.title, "python": python_version(), **plain}
    if run.budgets:
        record["budgets"] = run.budgets
    record["covered"] = [f"{row.property}, {row.engine}: {row.verdict}, {row.coverage}" for row in run.results]
    if fired:
        record["fired"] = dict(fired)
        record["never_fired"] = [name for name, times in fired.items() if not times]
    record["not_covered"] = list(run.all_not_covered)
    if run.interrupted:
        record["interrupted"] = True
    return record


def stamped(run: Run) -> Run:
    """The run, each of whose trace files now says from what kind of run it comes; a file that cannot be written stays
    as it was, since what was found is in it already."""
    record = record_of(run)
    return replace(run, violations=tuple(_stamped(each, record, run.out) for each in run.violations))


def _stamped(violation: Violation, record: Mapping[str, Any], out: str) -> Violation:
    own = [name for name in violation.files if out and Path(name).parent == Path(out)]
    for name in own:
        try:
            rewrite_meta(Path(name), {"run": record})
        except OutlivesError:
            continue
    if not violation.files:
        return violation
    try:
        recorded = read_trace(_shown(violation))
    except OutlivesError:
        return violation
    return replace(violation, provenance=provenance_of(recorded.meta), itf=recorded.text())


def _shown(violation: Violation) -> str:
    """The file of the trace that is shown: the one that the replay command names, or the first."""
    named = [name for name in violation.files if name in violation.replay]
    return (named or list(violation.files))[0]


def provenance_of(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Where a trace comes from, as its file has it: name to plain text or number, in the order of a report. Whatever a
    file says there is shown and nothing else; what it should not be is left out."""
    shown: dict[str, Any] = {"outlives": meta.get("outlives")}
    run = meta.get("run")
    run = run if isinstance(run, dict) else {}
    subject = meta.get("subject")
    if isinstance(subject, dict):
        shown["vllm"] = subject.get("vllm")
    shown |= {name: run.get(name) for name in ("python", "hypothesis", "z3-solver", "cvc5")}
    shown |= {name: meta.get(name) for name in ("profile", "guard")}
    relaxed = meta.get("relaxed")
    if isinstance(relaxed, list):
        shown["relaxed"] = ", ".join(map(str, relaxed)) or "nothing: A1-A4 hold"
    shown |= {name: meta.get(name) for name in ("reader", "policy", "scenario", "fault")}
    routes = meta.get("routes")
    if isinstance(routes, dict) and isinstance(routes.get("closed"), list):
        shown["closed routes"] = ", ".join(map(str, routes["closed"])) or "none"
    shown["scope"] = _scope(meta.get("scope"))
    shown |= {name: run.get(name) for name in ("seed", "settings", "budgets")}
    shown |= dict(_lists(run))
    return {name: value for name, value in shown.items() if isinstance(value, int | str) and value != ""}


def _scope(numbers: Any) -> str:
    """The ranges that were asked for: `slots 2 to 6, depth 1`; what is not named had its default."""
    if not isinstance(numbers, dict):
        return ""
    spans = [(name, span) for name, span in numbers.items() if isinstance(span, list) and len(span) == 2]
    told = (f"{name.replace('_', '-')} {low if low == high else f'{low} to {high}'}" for name, (low, high) in spans)
    return ", ".join(told) or "the default numbers"


def _lists(run: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    covered = run.get("covered")
    if isinstance(covered, list) and covered:
        yield "covered", _cut("; ".join(map(str, covered)))
    fired = run.get("fired")
    if isinstance(fired, dict) and fired:
        yield "actions fired", _cut("; ".join(f"{name} {times}" for name, times in fired.items()))
    never = run.get("never_fired")
    if isinstance(never, list):
        yield "never fired", _cut(", ".join(map(str, never))) or "none: every action did"


def _cut(text: str) -> str:
    return text if len(text) <= _MOST * 5 else text[: _MOST * 5] + "…"
