"""What an engine answers: verdicts, results and traces as plain values, and the exit status they add up to.

Belongs here: only what every engine, report and command shares. Engines build these; reports read them.
"""

import builtins
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from outlives.model.contract import Action

__all__ = ["EXIT_STATUS", "Result", "Step", "Trace", "Verdict", "exit_status"]


class Verdict(StrEnum):
    """What was found out. Each says what it covers; `unknown` and `vacuous` are never green."""

    PROVED = "proved"
    """For unbounded numbers and any number of steps, under the named assumptions."""
    EXHAUSTED = "exhausted"
    """In every state of the stated scope."""
    PASSED = "passed"
    """In every one of the sampled runs, and nothing more."""
    VIOLATED = "violated"
    UNKNOWN = "unknown"
    """A budget ran out, or a solver gave up; the coverage says how far it got."""
    VACUOUS = "vacuous"
    """Nothing false was seen, but the situation that the property speaks of never arose."""
    DISAGREE = "engines disagree"


EXIT_STATUS: Mapping[Verdict, int] = {
    Verdict.DISAGREE: 5,
    Verdict.VIOLATED: 1,
    Verdict.UNKNOWN: 3,
    Verdict.VACUOUS: 4,
    Verdict.PROVED: 0,
    Verdict.EXHAUSTED: 0,
    Verdict.PASSED: 0,
}
"""In the order in which they decide a mixed run: the first that occurs gives the status."""


def exit_status(verdicts: Iterable[Verdict]) -> int:
    """The exit status of a run with these verdicts (no verdict at all is vacuous: 4)."""
    seen = set(verdicts)
    if not seen:
        return EXIT_STATUS[Verdict.VACUOUS]
    return next(status for verdict, status in EXIT_STATUS.items() if verdict in seen)


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a trace: the action (None for the initial state), the state after it, and its refusal if any."""

    action: Action | None
    state: Any
    refused: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A run that shows something: from an initial state, by named actions, to the state where a property fails."""

    steps: tuple[Step, ...]
    property: str
    why: str
    """The property's own explanation, in words and numbers."""
    shortest: str = "shrunk; not proved shortest"
    """The badge: `shortest possible`, or how far a shorter one was searched for."""
    shrink: Mapping[str, Any] = field(default_factory=dict)
    """How it shrank: `found_length`, `found_actions` (by name), `final_length`, `found_numbers`, `final_numbers`,
    `seconds`, as far as known."""

    @builtins.property  # the field above has the name of the decorator
    def actions(self) -> tuple[Action, ...]:
        """The actions, in order, refused ones included."""
        return tuple(step.action for step in self.steps if step.action is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One row of a report: one property (or obligation, or table cell) judged by one engine."""

    engine: str
    property: str
    verdict: Verdict
    coverage: str
    """What the verdict covers, e.g. "300 runs, 11,204 steps" or "unbounded numbers, any depth"."""
    trace: Trace | None = None
    note: str = ""
    """What to do next: what never occurred and which option to raise, why the solver gave up, and the like."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Plain values for `--json`: counts, seconds, seeds."""
    not_covered: Sequence[str] = ()
    known: str = ""
    """Of a violation that the user knows already, its fingerprint (`known`): it does not fail the run."""
