"""Known findings: which violations a project knows of already, so that only new ones fail its run.

Belongs here: the fingerprint of a violation, the file of `--known`, and what a run adds up to with it. A fingerprint is
(property, rule that failed, scenario class), none of which depends on numbers, names, seeds or the way there:

- the rule: for an exception its kind and the frame, without the line's number; for all else the action that broke the
  property and the property's own explanation, with every number and name taken out. Of progress, where nobody acts any
  more, the explanation alone.
- the class: the mode of the run (`plain`, `synchronous`, ...), or the named scenario.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from outlives.model.contract import Action, Property
from outlives.model.errors import BadUserFile, Unwritable
from outlives.model.setup import MODE_WORDS, PLAIN
from outlives.model.state import State

from .properties import OF_SUBJECTS
from .report.content import Run
from .verdict import Trace, Verdict

__all__ = ["EMPTY", "FINDINGS", "FORMAT", "Fingerprint", "Known", "fingerprint", "fingerprint_of", "read_known",
           "settled", "skipping", "write_findings"]  # fmt: skip

FORMAT = 1
FINDINGS = "findings.json"
"""What a run found, in the run's folder, in the form of a file of known findings."""
EMPTY = f'{{"format": {FORMAT}, "known": []}}'
"""A file of known findings without any."""
_MOST_BYTES = 10_000_000
_MEMBERS = ("property", "rule", "class")


class Fingerprint(NamedTuple):
    """What stays of a finding from run to run."""

    property: str
    rule: str
    scenario: str

    def __str__(self) -> str:
        return f"{self.property} [{self.scenario}] {self.rule}"

    def plain(self) -> dict[str, str]:
        """As it stands in a file."""
        return dict(zip(_MEMBERS, self, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The file of `--known`."""

    path: str
    findings: tuple[Fingerprint, ...]


# --- the fingerprint --------------------------------------------------------------------------------------------------

_NAMES = (
    (re.compile(r"\[[^\[\]()]*[\])]"), "[..]"),
    (re.compile(r"\br[0-9]+\b"), "r"),
    (re.compile(r"\bitem[0-9]+\b"), "item"),
    (re.compile(r"\bk[0-9]+\b"), "k"),
    (re.compile(r"(?<![\w.])-?[0-9][0-9,]*"), "N"),
)
_FRAME = re.compile(r"\.py:[0-9]+ in ")


def fingerprint_of(trace: Trace, scenario: str | None = None) -> Fingerprint:
    """The fingerprint of a violation by its trace."""
    last = trace.steps[-1]
    fair = "fair_from" in trace.shrink
    action = None if fair else last.action
    return fingerprint(trace.property, action, trace.why, trace.steps[0].state, scenario)


def fingerprint(name: str, action: Action | None, why: str, state: Any, scenario: str | None) -> Fingerprint:
    """The fingerprint of a property that an action made false (None: nobody acts any more) in a run that has this state
    in it; `why` is the property's own explanation."""
    words = _FRAME.sub(".py in ", why)
    for pattern, general in _NAMES:
        words = pattern.sub(general, words)
    words = _once(_once(words, "; "), ", ")
    raised = words.partition(" ended in ")[2] if name in OF_SUBJECTS else ""
    if raised:
        action, words = None, raised  # where it was raised says more than what asked for it
    rule = words if action is None or words.startswith(action.name) else f"{action.name}: {words}"
    return Fingerprint(name, rule, f"scenario {scenario}" if scenario else _mode(state))


def _once(words: str, between: str) -> str:
    """Parts that say the same of several requests or items, once: how many they are is a number as well. What is said
    of one item and another comes in any order."""
    first, *rest = dict.fromkeys(words.split(between))
    return between.join([first, *(sorted(rest) if between == "; " else rest)])


def _mode(state: Any) -> str:
    if not isinstance(state, State):
        return PLAIN
    return "+".join(word for word, name in MODE_WORDS.items() if getattr(state.setup, name) == 1) or PLAIN


# --- the file ---------------------------------------------------------------------------------------------------------


def read_known(where: str) -> Known:
    """Read a file of known findings. Raises `BadUserFile` with what is wrong with it."""
    path = Path(where)
    begin = f"begin with {EMPTY}, and add entries of {FINDINGS} of a run"
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise BadUserFile(f"--known {where}: more than {_MOST_BYTES // 10**6} MB is no list of findings.")
        text = path.read_text(encoding="utf-8")
        if not text.strip():
            raise BadUserFile(f"--known {where} is empty; {begin}.")
        root = json.loads(text)
    except FileNotFoundError:
        raise BadUserFile(f"--known {where}: there is no such file; {begin}.") from None
    except json.JSONDecodeError as error:
        raise BadUserFile(f"--known {where} is not JSON: {_words(error)}.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise BadUserFile(f"--known {where} cannot be read: {_words(error)}.") from None
    if not isinstance(root, dict) or not isinstance(root.get("known"), list):
        raise BadUserFile(f"--known {where} is no list of findings; {begin}.")
    if root.get("format") != FORMAT:
        raise BadUserFile(f"--known {where} is of format {str(root.get('format'))[:40]}; this outlives knows {FORMAT}.")
    findings = []
    for place, entry in enumerate(root["known"], start=1):
        values = [entry.get(name) if isinstance(entry, dict) else None for name in _MEMBERS]
        if not all(isinstance(value, str) for value in values):
            raise BadUserFile(f"--known {where}: entry {place} must have {', '.join(_MEMBERS)}, each of them a text.")
        findings.append(Fingerprint(*map(str, values)))
    return Known(path=where, findings=tuple(dict.fromkeys(findings)))


def write_findings(found: Iterable[Fingerprint], folder: Path) -> Path | None:
    """Write what a run found as a file of known findings; None where it found nothing. Raises `Unwritable`."""
    entries = [each.plain() for each in dict.fromkeys(found)]
    if not entries:
        return None
    path = folder / FINDINGS
    try:
        path.write_text(json.dumps({"format": FORMAT, "known": entries}, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise Unwritable(f"cannot write {path}: {error.strerror or error}.") from error
    return path


def _words(error: Exception) -> str:
    return " ".join(str(getattr(error, "strerror", None) or error).split())[:200]


# --- a run with it ----------------------------------------------------------------------------------------------------


def skipping(
    properties: Sequence[Property[State]], known: Known, scenario: str | None, seen: dict[Fingerprint, int]
) -> tuple[Property[State], ...]:
    """The same properties, true where what makes them false is known: so a run goes on to what is not. `seen` counts
    the known findings that were met."""
    return tuple(_skipping(prop, frozenset(known.findings), scenario, seen) for prop in properties)


def _skipping(
    prop: Property[State], known: frozenset[Fingerprint], scenario: str | None, seen: dict[Fingerprint, int]
) -> Property[State]:
    if not any(each.property == prop.name for each in known):
        return prop

    def holds(before: State, action: Action | None, after: State) -> bool:
        if prop.holds(before, action, after):
            return True
        if prop.kind == "state" and action is not None and not prop.holds(before, None, before):
            return True  # it was false before, and was judged there
        found = fingerprint(prop.name, action, prop.explain(before, action, after), before, scenario)
        if found not in known:
            return False
        seen[found] = seen.get(found, 0) + 1
        return True

    return replace(prop, holds=holds)


def settled(run: Run, known: Known | None, scenario: str | None, seen: Mapping[Fingerprint, int], folder: Path) -> Run:
    """The run's report once it is clear what is known, new, or gone; every finding goes into a file."""
    found = [
        fingerprint_of(result.trace, scenario)
        if result.verdict is Verdict.VIOLATED and result.trace is not None
        else None
        for result in run.results
    ]
    met = dict(seen)
    for each in filter(None, found):
        met[each] = met.get(each, 0) + 1
    if known is None:
        return run
    write_findings(met, folder)
    results = tuple(
        replace(result, known=str(each)) if each in known.findings else result
        for result, each in zip(run.results, found, strict=True)
    )
    new = {result.property for result in results if result.verdict is Verdict.VIOLATED and not result.known}
    judged = {result.property for result in run.results}
    gone = [each for each in known.findings if each not in met and each.property in judged and not run.interrupted]
    return replace(
        run,
        results=results,
        violations=tuple(each for each in run.violations if each.property in new),
        known=tuple(f"{each} (met {met[each]:,} times)" for each in known.findings if each in met),
        gone=tuple(str(each) for each in gone),
    )
