"""`outlives check`: every engine on one configuration, and what that adds up to.

Belongs here: which engines run on what, how their answers are combined, and the checks of the engines against each
other. Nothing is printed here; the caller renders the `Run`.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from outlives.model.errors import BadModel, Contradiction
from outlives.model.world import World

from .agreement import breaks_fact, judged_by_others, keeps_assumptions
from .check_report import ENGINES, OF_DECODERS, SCOPE_STATES, TIE_STEPS, routes_of_scopes, summary, undescribed
from .combined import (
    combined,
    summed,
    unanswered,
)
from .configuration import Configuration
from .explore import Bounds, Exploration
from .furthest import Furthest
from .interrupt import was_pressed
from .jobs import (
    MachineAnswer,
    MachineWork,
    ProofWork,
    ScopeWork,
    machine_job,
    proof_job,
    scope_job,
    subject_model,
    tie_job,
    user_files,
    whole,
)
from .known import Fingerprint, Known
from .machine_settings import MachineSettings
from .reached import Refused
from .report.content import Run
from .scope_choice import Scopes, chosen_scopes
from .trace_file import write_trace
from .verdict import Result, Trace, Verdict
from .workers import Job, Outcome, ordered

__all__ = ["ENGINES", "CheckRun", "check", "routes_of_scopes"]

Advance = Callable[..., None]
ProgressFactory = Callable[[int | None, str], AbstractContextManager[Advance]]

_SHARE = 50
"""What a scope, the proof and the tie count for on the progress line, where the machine counts its cases."""


@dataclass(slots=True)
class CheckRun:
    """A check under way: what is known so far, so that an interrupted run can be reported as well."""

    configuration: Configuration
    engines: Sequence[str]
    settings: MachineSettings
    seed: int
    folder: Path
    progress: ProgressFactory
    workers: int = 1
    """Processes; 1: this one."""
    known: Known | None = None
    """Findings that the machine passes over, to what is not known."""
    seen: dict[Fingerprint, int] = field(default_factory=dict)
    """Those of them that it met."""
    results: list[Result] = field(default_factory=list)
    traces: list[tuple[str, Trace, Path]] = field(default_factory=list)
    situations: dict[str, int] = field(default_factory=dict)
    fired: dict[str, int] = field(default_factory=dict)
    refused: list[Refused] = field(default_factory=list)
    """The machine's refusals."""
    at_best: dict[str, Furthest] = field(default_factory=dict)
    """Situation that the machine never met -> how far it got towards it."""
    sides: int = 0
    """Sides of the rules' conditions that the machine took, as bits."""
    found: dict[str, Exploration] = field(default_factory=dict)
    """Scope -> what the exhaustive engine found in it."""
    scopes: Scopes = field(default_factory=dict)
    """Scope -> where the exhaustive engine begins."""
    lost: dict[str, str] = field(default_factory=dict)
    """Scope -> why nothing is known of it: its process died."""
    disagreements: list[Result] = field(default_factory=list)
    """What one engine found and another cannot confirm."""
    finished: set[str] = field(default_factory=set)
    """Names of the jobs that were done to their end."""
    interrupted: bool = False
    trouble: BadModel | None = None
    """What ended the run before all engines were done: rules that raise, or return what no rule may."""

    @property
    def done(self) -> list[str]:
        """The engines that were done to their end."""
        jobs = {"machine": ["machine"], "exhaustive": list(self.scopes), "proof": ["proof"]}
        return [engine for engine in self.engines if set(jobs[engine]) <= self.finished]


def check(run: CheckRun) -> Run:
    """Run the engines, each independent piece of work in a process of its own where there is more than one worker.

    Answers are taken in a fixed order, whichever is there first. Ctrl-C ends the run with what is known by then, a
    user's broken rules too (`CheckRun.trouble`).
    """
    world = run.configuration.world()
    if run.configuration.encoder_decoder:
        run.engines = tuple(engine for engine in run.engines if engine != "proof")
        if not run.engines:
            raise Contradiction(f"{OF_DECODERS}; take another engine, or drop --encoder-decoder.")
    run.scopes = chosen_scopes(run.configuration, every_number=False) if "exhaustive" in run.engines else {}
    jobs = _jobs(run, world)
    scopes_left = len(run.scopes)
    try:
        with run.progress(sum(job.weight for job in jobs), "check") as advance:
            for outcome in ordered(jobs, run.workers, advance):
                _take(run, world, outcome)
                if outcome.job.work is scope_job:
                    scopes_left -= 1
                    if scopes_left == 0:
                        _take_exhaustive(run, world)
    except KeyboardInterrupt:
        run.interrupted = True
    except Exception as error:
        if was_pressed():
            run.interrupted = True
        elif isinstance(error, BadModel):
            run.trouble = error
        else:
            raise
    return summary(run, world)


# --- the engines --------------------------------------------------------------------------------------------------


def _jobs(run: CheckRun, world: World) -> list[Job]:
    """The pieces of work, in the order in which their answers are taken; what takes longest begins first."""
    about = run.configuration
    files = user_files(about)
    jobs = []
    if "machine" in run.engines:
        machine = MachineWork(configuration=about, settings=run.settings, seed=run.seed, folder=run.folder,
                              known=run.known)  # fmt: skip
        jobs.append(
            Job(name="machine", work=machine_job, about=machine, weight=run.settings.cases, says_what_it_knows=True)
        )
    # A fault may make the counters grow without end: the exhaustive engine then answers `unknown` in good time.
    bounds = Bounds(states=SCOPE_STATES.get(run.settings.name, SCOPE_STATES["ci"]))
    for name, states in run.scopes.items():
        scope = ScopeWork(configuration=about, scope=name, states=tuple(states), bounds=bounds)
        jobs.append(Job(name=name, work=scope_job, about=scope, weight=_SHARE, says_what_it_knows=True))
    if "proof" in run.engines:
        proof = ProofWork(configuration=about, steps=TIE_STEPS, seed=run.seed)
        jobs.append(Job(name="proof", work=proof_job, about=proof, weight=_SHARE))
        if keeps_assumptions(world):
            jobs.append(Job(name="tie", work=tie_job, about=proof, weight=_SHARE))
    return [replace(job, user_files=files) for job in jobs]


def _take(run: CheckRun, world: World, outcome: Outcome) -> None:
    run.interrupted = run.interrupted or outcome.interrupted
    if not outcome.interrupted and not outcome.lost:
        run.finished.add(outcome.job.name)
    if outcome.job.work is machine_job:
        _take_machine(run, world, outcome)
    elif outcome.job.work is scope_job:
        if outcome.value is not None:
            run.found[outcome.job.name] = whole(outcome.value, subject_model(run.configuration, world))
        elif outcome.lost:
            run.lost[outcome.job.name] = outcome.lost
    elif outcome.job.work is proof_job:
        _take_proof(run, outcome)
    else:
        _take_tie(run, world, outcome)


def _take_machine(run: CheckRun, world: World, outcome: Outcome) -> None:
    if outcome.lost:
        run.results += unanswered(run.configuration.judged(world), outcome.lost, "machine")
    seen: MachineAnswer | None = outcome.value
    if seen is None:
        return
    run.disagreements.extend(seen.disagreements)
    run.seen.update(seen.seen)
    for result in seen.results:
        if result.trace is not None:
            _write(run, "machine", result.trace)
        run.results.append(result)
    _count(run.situations, seen.situations)
    _count(run.fired, seen.fired)
    run.refused.append(seen.refused)
    run.at_best.update(seen.at_best)
    run.sides |= seen.sides


def _take_exhaustive(run: CheckRun, world: World) -> None:
    situations, fired = summed(run.found)
    _count(run.situations, situations)
    _count(run.fired, fired)
    for result in combined(run.found, list(run.scopes)):
        if result.trace is not None:
            trace, others = judged_by_others(subject_model(run.configuration, world), result.trace)
            run.disagreements.extend(others)
            _write(run, "exhaustive", trace)
            result = replace(result, trace=trace)
        run.results.append(result)
    if run.lost and not run.found:
        run.results += unanswered(run.configuration.judged(world), next(iter(run.lost.values())))


def _take_proof(run: CheckRun, outcome: Outcome) -> None:
    if outcome.lost:
        run.results.append(_unanswered("proof", "OUTLIVES", outcome.lost))
    result: Result | None = outcome.value
    if result is not None:
        if result.trace is not None:
            _write(run, "proof", result.trace)
        run.results.append(result)


def _take_tie(run: CheckRun, world: World, outcome: Outcome) -> None:
    if outcome.lost:
        run.results.append(_unanswered("tie", "STEPS-ARE-PROVED-ABOUT", outcome.lost))
    tie: Result | None = outcome.value
    if tie is None:
        return
    proved = any(row.engine == "proof" and row.verdict is Verdict.PROVED for row in run.results)
    if tie.verdict is Verdict.DISAGREE and not proved and breaks_fact(tie.note):
        tie = replace(tie, verdict=Verdict.UNKNOWN)  # the proof failed to bear that fact out: they agree
    run.results.append(undescribed(world, tie))


def _unanswered(engine: str, name: str, why: str) -> Result:
    return Result(engine=engine, property=name, verdict=Verdict.UNKNOWN, coverage="nothing", note=why)


# --- what it adds up to -------------------------------------------------------------------------------------------


def _count(sums: dict[str, int], more: Mapping[str, int]) -> None:
    for name, times in more.items():
        sums[name] = sums.get(name, 0) + times


def _write(run: CheckRun, engine: str, trace: Trace) -> None:
    path = write_trace(trace, run.configuration, run.folder / f"{engine}-{trace.property}")
    run.traces.append((engine, trace, path))
