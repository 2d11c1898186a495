"""`--subject vllm`: a real scheduler checked, compared with its profile, and given a trace; and what that adds up to.

Belongs here: the parent's side of each command. The work itself happens in a process of its own (`subject_jobs`); what
it found before it died, if it did, is taken from the run's folder.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any

from outlives.model.errors import BadModel, Contradiction, OutlivesError
from outlives.model.state import State
from outlives.model.trace import Recorded, read_trace
from outlives.model.world import World

from .configuration import Configuration
from .explained import analysis_of
from .known import EMPTY, FINDINGS, Known, settled
from .machine_settings import MachineSettings
from .properties import scheduler_properties
from .report import Reporter, Run, Violation, explain
from .report.witness import watch
from .run_record import stamped
from .situations import SITUATIONS, routes_not_taken, told_unmet, told_untaken
from .subject.guard import OUTSIDE, last_frame
from .subject.live import CACHING, NO_EXCEPTION, on_or_off
from .subject.own import SubjectChoice
from .subject.plain import caches
from .subject.run import unaskable
from .subject_jobs import (
    FRAMES,
    CheckWork,
    SubjectAnswer,
    SubjectFacts,
    about,
    check_job,
    facts_job,
)
from .subject_replay import ReplayAnswer, ReplayWork, replay_job
from .trace_file import installed_version, write_trace
from .verdict import Result, Trace, Verdict
from .workers import Job, Outcome, Tell, ordered

__all__ = ["apart", "check_subject", "facts_of", "facts_plain", "replay_on_subject", "told"]


def apart(name: str, work: Callable[[Any, Tell], Any], about_it: Any, reporter: Reporter, weight: int = 1) -> Outcome:
    """Do one piece of work in a process of its own."""
    job = Job(name=name, work=work, about=about_it, weight=weight, says_what_it_knows=True)
    with reporter.progress(weight or None, name) as advance:
        (outcome,) = ordered([job], 1, advance, apart=True)
    return outcome


# --- check ------------------------------------------------------------------------------------------------------------


def check_subject(
    choice: SubjectChoice,
    configuration: Configuration,
    settings: MachineSettings,
    seed: int,
    folder: Path,
    known: Known | None,
    reporter: Reporter,
) -> int:
    """Run the machine on the installed scheduler and report; returns the exit status."""
    work = CheckWork(
        choice=choice, configuration=configuration, settings=settings, seed=seed, folder=folder, known=known
    )
    try:
        outcome = apart("check", check_job, work, reporter, settings.cases)
    except BadModel as error:
        kept = _kept(folder)
        for violation in _kept_violations(kept):
            reporter.violation(violation)
        reporter.error(f"the scheduler cannot be gone on with: {error}{_where(kept, folder)}")
        return reporter.finish(2)
    answer: SubjectAnswer | None = outcome.value
    if answer is None:
        return _without_answer(outcome, folder, configuration, reporter)
    run = _report(answer, choice, settings, seed, folder, interrupted=outcome.interrupted)
    known = known or Known(path="", findings=())  # what is found is written down in any case, to begin such a file with
    run = stamped(settled(run, known, configuration.scenario, answer.seen, folder))
    reporter.run(run)
    reporter.data("subject", facts_plain(answer.facts))
    return reporter.finish(run.status)


def facts_plain(facts: SubjectFacts) -> dict[str, Any]:
    return {
        "vllm": facts.version,
        "classes": dict(facts.classes),
        "profile": facts.profile,
        "exact": facts.exact,
        "root": facts.root,
        CACHING: facts.prefix_caching,
        "not_observed": list(facts.unobserved),
        "closed": dict(facts.closed),
    }


def _report(
    answer: SubjectAnswer,
    choice: SubjectChoice,
    settings: MachineSettings,
    seed: int,
    folder: Path,
    *,
    interrupted: bool,
) -> Run:
    configuration, facts = answer.configuration, answer.facts
    world = configuration.world()
    violations = []
    traces: Counter[str] = Counter()
    for result in answer.results:
        if result.trace is not None:
            traces[result.property] += 1
            which = "" if traces[result.property] == 1 else f"-{traces[result.property]}"
            path = write_trace(
                result.trace,
                configuration,
                folder / f"machine-{result.property}{which}",
                about=about(facts, choice, caches(result.trace)),
            )
            command = f"{configuration.replay_command(path)} {choice.options()}"
            violations.append(told(result.trace, world, command, (str(path),)))
    ahead = answer.scope.look_ahead.high > 0
    vacuous: list[str] = []
    not_reached: list[str] = []
    if not interrupted:
        vacuous = told_untaken(routes_not_taken(world, answer.situations, look_ahead=ahead))
        not_reached = [f"action {name} never fired" for name, times in answer.fired.items() if not times]
        not_reached += told_unmet(world, answer.situations)
    asked = "" if configuration.scenario is None else f", scenario {configuration.scenario}"
    policy = "both policies" if world.policy == "both" else world.policy
    return Run(
        title=f"{facts.title()}, read as {facts.read_as()}, {policy}{asked}",
        results=answer.results,
        violations=tuple(violations),
        not_covered=tuple(_not_covered(answer, world)),
        not_reached=tuple(not_reached),
        vacuous=tuple(vacuous),
        configuration=configuration.plain(),
        provenance=_provenance(answer, settings, seed),
        out=str(folder),
        interrupted=interrupted,
    )


def told(trace: Trace, world: World, replay: str, files: Sequence[str]) -> Violation:
    """The violation with its story; where the release goes another way than the model, with the plain one. Where the
    model goes the same way, step by step, it answers for the release what other guards and numbers would do."""
    try:
        violation = explain(trace, world=world, engine="machine", replay=replay, files=files)
        alike = _on_the_model(trace)
        if watch(alike, world) is not None:
            violation = replace(violation, analysis=analysis_of(alike, world, scheduler_properties(world)))
        return violation
    except Exception:  # rules of the model meet a state that they never make themselves
        return explain(trace, engine="machine", replay=replay, files=files)


def _on_the_model(trace: Trace) -> Trace:
    """The trace with what was observed as plain states of the model."""
    steps = (replace(each, state=State._make(each.state)) if isinstance(each.state, State) else each
             for each in trace.steps)  # fmt: skip
    return replace(trace, steps=tuple(steps))


def _not_covered(answer: SubjectAnswer, world: World) -> Iterable[str]:
    facts, scope = answer.facts, answer.scope
    yield "other runs than those that were drawn: no engine but the machine can be asked of a real scheduler"
    yield f"more than {scope.requests} requests at a time: others are strangers that take slots and evict"
    yield "RELEASE-ONCE: it speaks of a rule of the model"
    if answer.complete is None and any(result.verdict is Verdict.VIOLATED for result in answer.results):
        yield f"what else violates a property that is violated: --known, with {EMPTY} to begin with, looks on"
    if answer.complete is False:
        yield f"what else there is to find: add what {FINDINGS} has to the file of --known, and run again"
    yield from (f"not observed: {each}" for each in facts.unobserved)
    if world.policy != "both":
        yield f"the {'fcfs' if world.policy == 'priority' else 'priority'} policy"
    drawn = {word for mode in scope.modes for word in mode.split("+")}
    others = [word for word in ("plain", "synchronous", "diffusion", "encoder-decoder") if word not in drawn]
    if others:
        yield f"other modes: {', '.join(others)}"
    yield from (f"route {route}: {why}" for route, why in facts.closed.items())
    yield from (f"route {route}: closed" for route in sorted(world.closed) if route not in facts.closed)
    short = answer.details["times KV blocks ran short unasked"]
    if short:
        yield f"KV blocks ran short {short:.0f} times although there were enough: what then happened was not told apart"


def _provenance(answer: SubjectAnswer, settings: MachineSettings, seed: int) -> dict[str, Any]:
    facts = answer.facts
    performed = answer.details["actions on the real scheduler, with fair runs and ways back"]
    rate = performed / max(answer.details["seconds of the machine"], 0.1)
    situations = {each.phrase: answer.situations.get(each.name, 0) for each in SITUATIONS}
    return {
        "outlives": installed_version("outlives") or "not installed",
        "vllm": facts.version,
        "from": facts.root,
        "seed": seed,
        "settings": settings.name,
        "prefix caching": facts.prefix_caching,
        "the machine": {**answer.details, "of these per second": round(rate)},
        "actions fired": dict(answer.fired),
        "situations met": situations,
    }


# --- a process that gave no answer ------------------------------------------------------------------------------------


def _kept(folder: Path) -> dict[Path, Recorded]:
    """The violations that were written down as they were found."""
    kept = {}
    for path in sorted(folder.glob("machine-*-unshrunk.itf.json")):
        try:
            kept[path] = read_trace(path)
        except OutlivesError:
            continue  # cut off in the middle
    return kept


def _kept_violations(kept: Mapping[Path, Recorded]) -> Iterable[Violation]:
    for path, recorded in kept.items():
        yield Violation(
            property=recorded.property_name,
            engine="machine",
            story=_story(recorded),
            badge="as found, not shrunk",
            setup="",
            lines=(),
            shrink={},
            why=str(recorded.meta.get("why", "")),
            replay=f"outlives replay {quote(str(path))} --subject vllm",
            files=(str(path),),
        )


def _story(recorded: Recorded) -> Any:
    from .report import Story

    return Story(headline=f"{recorded.property_name}: {recorded.meta.get('why', '')}", events=())


def _where(kept: Mapping[Path, Recorded], folder: Path) -> str:
    return f" What was found before is in {folder}." if kept else ""


def _without_answer(outcome: Outcome, folder: Path, configuration: Configuration, reporter: Reporter) -> int:
    """The process died, or was interrupted before it began. A hang that nothing could end is a violation."""
    if outcome.interrupted:
        raise KeyboardInterrupt
    kept = _kept(folder)
    died = last_frame(folder / FRAMES)
    hung = died.startswith("it hung")
    why = f"{outcome.lost}{': ' + died if died else ''}"
    results = [
        Result(
            engine="machine",
            property=NO_EXCEPTION.name,
            verdict=Verdict.VIOLATED if died and not died.startswith(OUTSIDE) else Verdict.UNKNOWN,
            coverage="the process of the scheduler ended in the middle of a run",
            note=f"an action did not come back: {died}" if hung else why,
        )
    ]
    results += [
        Result(engine="machine", property=each.property_name, verdict=Verdict.VIOLATED, coverage="as found, not shrunk")
        for each in kept.values()
        if each.property_name != NO_EXCEPTION.name
    ]
    run = Run(
        title="vLLM: the run was cut short, because the process of the scheduler ended",
        results=tuple(results),
        violations=tuple(_kept_violations(kept)),
        not_covered=("whatever would have come after",),
        configuration=configuration.plain(),
        out=str(folder),
    )
    reporter.run(run)
    return reporter.finish(run.status)


# --- replay and doctor ------------------------------------------------------------------------------------------------


def replay_on_subject(choice: SubjectChoice, path: Path, given: dict[str, Any], reporter: Reporter) -> int:
    """Give a trace to the installed scheduler, and say whether it happens there; returns the exit status."""
    reason = unaskable(read_trace(path), given)  # what is wrong with it is said before vLLM is loaded
    if reason:
        raise Contradiction(f"{path} cannot be asked of a real scheduler: {reason}.")
    outcome = apart("replay", replay_job, ReplayWork(choice=choice, path=path, given=given), reporter)
    answer: ReplayAnswer | None = outcome.value
    if answer is None:
        if outcome.interrupted:
            raise KeyboardInterrupt
        reporter.error(f"{path} on vLLM: {outcome.lost}.")
        return reporter.finish(2)
    facts = answer.facts
    reporter.data("subject", facts_plain(facts))
    caching = on_or_off(answer.caching)
    reporter.data(
        "replay", {"label": answer.label, "recorded": answer.recorded, "reason": answer.reason, CACHING: caching}
    )
    if answer.label == "not applicable":
        raise Contradiction(f"{path} cannot be asked of {facts.title()}: {answer.reason}.")
    if answer.violations and answer.trace is not None:
        world = Configuration(profile=facts.profile).world()
        reporter.violation(told(answer.trace, world, f"outlives replay {path} {choice.options()}", (str(path),)))
    reporter.say(f"{path}: {answer.label} on {facts.title()}, prefix caching {caching}.")
    others = [each for each in answer.violations if each.property != answer.recorded]
    if answer.label == "not reproduced":
        what = "another property is violated" if others else "nothing is violated"
        reporter.say(f"It was recorded as {answer.recorded}; {what} in its {answer.actions} actions.")
    if answer.divergence:
        reporter.say(answer.divergence)
    for each in answer.violations:
        reporter.say(f"{each.property} at step {each.step}: {each.why}")
    return reporter.finish(1 if answer.violations else 0)


def facts_of(choice: SubjectChoice, reporter: Reporter) -> SubjectFacts | str:
    """What the installed release is, or in one sentence why it cannot be asked."""
    try:
        outcome = apart("doctor", facts_job, choice, reporter)
    except OutlivesError as error:
        return str(error)
    facts: SubjectFacts | None = outcome.value
    if outcome.interrupted:
        raise KeyboardInterrupt
    return facts if facts is not None else outcome.lost
