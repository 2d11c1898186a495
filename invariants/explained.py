"""A trace with everything that is said about it: the story, the strips, what if, and where it comes from.

Belongs here: putting the parts together for a trace in memory (`explained`) and for a saved one (`explain_file`), which
may have been changed by hand. Every report of a violation is made of what comes from here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from outlives.model.contract import Property
from outlives.model.trace import Recorded, read_trace
from outlives.model.world import World

from .configuration import Configuration
from .observed import observed_trace
from .properties import OF_SUBJECTS, scheduler_properties
from .replay import NEVER_TESTED, Replay, replay
from .report.analysis import Analysis
from .report.content import Run, Violation, explain
from .report.facts import facts_of
from .report.story import Story
from .report.telling import count_of
from .run_record import provenance_of
from .verdict import Result, Trace, Verdict
from .whatif import what_if

__all__ = ["analysis_of", "explain_file", "explained", "replay_violation"]


def explained(
    trace: Trace,
    configuration: Configuration,
    *,
    engine: str,
    replay: str = "",
    files: Sequence[str] = (),
) -> Violation:
    """Everything about a trace of our model. Raises what a user's own rules raise."""
    world = configuration.world()
    violation = explain(trace, world=world, engine=engine, replay=replay, files=files)
    return replace(violation, analysis=analysis_of(trace, world, configuration.judged(world)))


def analysis_of(trace: Trace, world: World, judged: Sequence[Property[Any]]) -> Analysis:
    """Facts and what-if of a trace of our model; empty where its property is none of the scheduler's."""
    known = {prop.name: prop for prop in scheduler_properties(world)}
    if trace.property not in known:
        return Analysis()
    every = {prop.name: prop for prop in (*judged, known[trace.property]) if prop.name not in OF_SUBJECTS}
    return replace(what_if(trace, world, known[trace.property]), facts=facts_of(trace, world, tuple(every.values())))


# --- a saved trace ----------------------------------------------------------------------------------------------------


def explain_file(path: Path | str, given: Mapping[str, Any] | None = None) -> Run:
    """What there is to say about a trace file, as a run of its own: of one violation, or of a trace that passes.

    The file is taken again on the model that it names, so that what somebody changed in it by hand is asked, not
    believed. What was recorded of a real scheduler, and happens only there, is told from the recorded values.
    Raises `BadTrace`, and `Contradiction` for an option that does not agree.
    """
    recorded = read_trace(path)
    done = replay(recorded, given or {})
    name = str(path)
    if not done.violations and "subject" in recorded.meta:
        seen = observed_trace(recorded)
        if seen is not None:
            return _of_subject(recorded, done, seen, name)
    violation = replay_violation(done, name)
    rows, held, untested = _rows(done)
    return Run(
        title=f"{violation.property}, {done.outcome}: {_of(done)}",
        results=rows,
        violations=(violation,),
        configuration=_plain(done),
        not_covered=("any run but this one", *(f"{each}: never put to the test in this run" for each in untested)),
        notes=(f"{held} of the other properties hold in this run.",) if held else (),
    )


def _rows(done: Replay) -> tuple[tuple[Result, ...], int, tuple[str, ...]]:
    """The rows of what is violated and of what was recorded, how many other properties hold, and those that this run
    never put to the test. Where that is the recorded one, the run is vacuous."""
    rows, held, untested = [], 0, []
    for row in done.results:
        if row.note.startswith(NEVER_TESTED) and row.verdict is Verdict.PASSED:
            if row.property != done.recorded.property_name:
                untested.append(row.property)
                continue
            row = replace(row, verdict=Verdict.VACUOUS)
        elif row.verdict is Verdict.PASSED and row.property != done.recorded.property_name:
            held += 1
            continue
        rows.append(row)
    return tuple(rows), held, tuple(untested)


def replay_violation(done: Replay, name: str) -> Violation:
    """What a replay showed: the violation, or the trace as it passes, with how it differs from what was recorded."""
    configuration = done.configuration
    assert configuration is not None  # a file that names a model of ours
    recorded = done.recorded
    command = configuration.replay_command(Path(name))
    violation = explained(done.trace, configuration, engine="replay", replay=command, files=(name,))
    notes = [] if done.divergence is None else [_capital(str(done.divergence))]
    others = [each for each in done.violations if each.property != done.trace.property]
    notes += [f"Also violated: {each.property} at step {each.step}: {each.why}" for each in others]
    if not done.violations:
        steps = count_of(len(recorded.steps) - 1, "step")
        violation = replace(
            violation,
            outcome="passes",
            badge="the recorded actions, taken again",
            story=Story(headline=f"{recorded.property_name} holds in the {steps} of this trace.", events=()),
        )
    return replace(violation, notes=tuple(notes), provenance=provenance_of(recorded.meta), itf=recorded.text())


def _of_subject(recorded: Recorded, done: Replay, seen: Trace, name: str) -> Run:
    """A trace of a real scheduler that the model does not follow: what was recorded, and where the model differs."""
    violation = explain(seen, engine="recorded", files=(name,), replay=f"outlives replay {name} --subject vllm")
    notes = ["Told from what was recorded of the real scheduler: on the model of its profile nothing is violated."]
    notes += [] if done.divergence is None else [f"On the model, {done.divergence}"]
    violation = replace(violation, notes=tuple(notes), provenance=provenance_of(recorded.meta), itf=recorded.text())
    return Run(
        title=f"{violation.property}, as recorded: {_of(done)}",
        results=tuple(replace(row, note="on the model of the profile") for row in done.results),
        violations=(violation,),
        configuration=_plain(done),
        not_covered=("any run but this one", "the real scheduler as it is now: give replay --subject vllm"),
    )


def _of(done: Replay) -> str:
    return "" if done.configuration is None else done.configuration.title()


def _plain(done: Replay) -> Mapping[str, Any]:
    return {} if done.configuration is None else done.configuration.plain()


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
