"""The pieces of work of replays on a real scheduler: one trace, or many in one process, as plain data in and out.

Belongs here: the jobs, run by a process of its own. What is told of the answers is `subject_run`'s and the plugin's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outlives.model.errors import OutlivesError
from outlives.model.trace import Recorded, read_trace

from .configuration import Configuration
from .replay import Violation
from .subject.own import SubjectChoice
from .subject.plain import plain_trace
from .subject.release import Release
from .subject.run import replay_on_release
from .subject_jobs import SubjectFacts, released, standing_apart
from .verdict import Trace
from .workers import Tell

__all__ = ["ReplayAnswer", "ReplayWork", "replay_job", "replays_job"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayWork:
    """A trace file for a real scheduler."""

    choice: SubjectChoice
    path: Path
    given: Mapping[str, Any]
    """Options beside the trace, by field of `Configuration`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayAnswer:
    """What the real scheduler did with it."""

    facts: SubjectFacts
    label: str
    reason: str
    caching: bool
    """Whether the run has a prefix cache of its own, as it had where it was recorded."""
    recorded: str
    """The property that it was recorded as."""
    actions: int
    violations: tuple[Violation, ...] = ()
    divergence: str = ""
    trace: Trace | None = None


def replay_job(work: ReplayWork, _tell: Tell) -> ReplayAnswer:
    """Load the release and give it the actions of the trace."""
    with standing_apart(None):
        recorded = read_trace(work.path)
        release, _, facts = released(work.choice, Configuration())
        return _replayed(recorded, release, facts, work.given)


def replays_job(works: Sequence[ReplayWork], _tell: Tell) -> Sequence[ReplayAnswer | None]:
    """The same of many traces of one choice, in turn; None for one that cannot be read or asked."""
    with standing_apart(None):
        release, _, facts = released(works[0].choice, Configuration())
        answers: list[ReplayAnswer | None] = []
        for work in works:
            try:
                answers.append(_replayed(read_trace(work.path), release, facts, work.given))
            except OutlivesError:
                answers.append(None)
        return answers


def _replayed(recorded: Recorded, release: Release, facts: SubjectFacts, given: Mapping[str, Any]) -> ReplayAnswer:
    done = replay_on_release(recorded, release, given)
    replay = done.replay
    return ReplayAnswer(
        facts=facts,
        label=done.label,
        reason=done.reason,
        caching=done.caching,
        recorded=recorded.property_name,
        actions=len(recorded.steps) - 1,
        violations=() if replay is None else replay.violations,
        divergence="" if replay is None or replay.divergence is None else str(replay.divergence),
        trace=None if replay is None else plain_trace(replay.trace),
    )
