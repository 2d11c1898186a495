"""`outlives check`: every engine on one configuration, and what that adds up to.

Belongs here: which engines run on what, how their answers are combined, and the checks of the engines against each
other. Nothing is printed here; the caller renders the `Run`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from outlives.model.errors import BadModel, Contradiction
from outlives.model.profiles import RELEASED_RULES
from outlives.model.setup import MODE_WORDS, PLAIN
from outlives.model.world import ROUTES, Rules, World

from .agreement import breaks_fact, broken_by_itself, judged_by_others, keeps_assumptions, relation_differs
from .combined import (
    combined,
    never_fired,
    order_of_arrivals,
    routes_taken,
    stopped_scopes,
    summed,
    told_routes,
    unanswered,
)
from .configuration import Configuration
from .explained import explained
from .explore import Bounds, Exploration
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
from .report.content import Run, Violation
from .scope_choice import Scopes, chosen_scopes
from .situations import SITUATIONS, told_unmet, told_untaken
from .trace_file import installed_version, write_trace
from .verdict import Result, Trace, Verdict
from .workers import Job, Outcome, ordered

__all__ = ["ENGINES", "CheckRun", "check", "routes_of_scopes"]

ENGINES = ("machine", "exhaustive", "proof")
_OF_DECODERS = "the proof is of decoder models, whose requests share entries"

Advance = Callable[..., None]
ProgressFactory = Callable[[int | None, str], AbstractContextManager[Advance]]

_SCOPE_STATES = {"quick": 20_000, "ci": 50_000, "nightly": 2_000_000}
"""Settings -> states of one scope that the exhaustive engine may visit; the named scopes have some 2,000 each."""
_TIE_STEPS = 10_000
"""Steps of a random walk that are held against the proved relation."""
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
            raise Contradiction(f"{_OF_DECODERS}; take another engine, or drop --encoder-decoder.")
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
    return _summary(run, world)


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
    bounds = Bounds(states=_SCOPE_STATES.get(run.settings.name, _SCOPE_STATES["ci"]))
    for name, states in run.scopes.items():
        scope = ScopeWork(configuration=about, scope=name, states=tuple(states), bounds=bounds)
        jobs.append(Job(name=name, work=scope_job, about=scope, weight=_SHARE, says_what_it_knows=True))
    if "proof" in run.engines:
        proof = ProofWork(configuration=about, steps=_TIE_STEPS, seed=run.seed)
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
    run.results.append(_undescribed(world, tie))


def _unanswered(engine: str, name: str, why: str) -> Result:
    return Result(engine=engine, property=name, verdict=Verdict.UNKNOWN, coverage="nothing", note=why)


def _undescribed(world: World, row: Result) -> Result:
    """A rule of the user's own may do what the proved relation does not describe: then the proof says nothing about it,
    which is unknown, not a disagreement of engines. Counters and guards are the proof's: there it stays one, unless a
    fact that the relation takes from the pipeline is broken."""
    from .proof.life import Arithmetic

    own = {
        name.name for name in fields(Rules) if getattr(world.rules, name.name) is not getattr(RELEASED_RULES, name.name)
    }
    beyond = own - {*Arithmetic._fields, "guard"}
    said = row.note or row.coverage
    if row.verdict is not Verdict.DISAGREE or not (beyond or (own and breaks_fact(said))):
        return row
    note = f"a rule of yours does what the proof does not describe, so it does not speak of it: {said}"
    return replace(row, verdict=Verdict.UNKNOWN, note=note)


def routes_of_scopes(run: CheckRun, world: World) -> dict[str, list[str]]:
    """Open route -> the scopes in which the exhaustive engine took it."""
    return routes_taken(world, run.found, look_ahead=run.configuration.scope().look_ahead.high > 0)


# --- what it adds up to -------------------------------------------------------------------------------------------


def _count(sums: dict[str, int], more: Mapping[str, int]) -> None:
    for name, times in more.items():
        sums[name] = sums.get(name, 0) + times


def _write(run: CheckRun, engine: str, trace: Trace) -> None:
    path = write_trace(trace, run.configuration, run.folder / f"{engine}-{trace.property}")
    run.traces.append((engine, trace, path))


def _summary(run: CheckRun, world: World) -> Run:
    run.results.extend(run.disagreements)
    if "proof" in run.done:
        differing = relation_differs(world, run.results, [each[:2] for each in run.traces])
        run.results.extend([_undescribed(world, row) for row in differing])
    sampled = {"machine", "exhaustive"} & set(run.done)
    vacuous: list[str] = []
    not_reached: list[str] = []
    if sampled and not run.interrupted:
        ahead = run.configuration.scope().look_ahead.high > 0
        vacuous += told_untaken(world, run.situations, look_ahead=ahead)
        not_reached += [*_never_fired(run), *told_unmet(world, run.situations)]
    return Run(
        title=run.configuration.title(),
        results=tuple(run.results),
        violations=tuple(_violations(run)),
        not_covered=_not_covered(run, world),
        not_reached=tuple(not_reached),
        vacuous=tuple(vacuous),
        configuration=run.configuration.plain(),
        provenance=_provenance(run, world),
        out=str(run.folder),
        interrupted=run.interrupted,
    )


def _never_fired(run: CheckRun) -> list[str]:
    """Of an action that no engine took, the exhaustive one can say why."""
    never = [name for name, times in run.fired.items() if not times]
    told = never_fired(run.found) if "exhaustive" in run.done else [f"action {name} never fired" for name in never]
    return [line for line in told if line.split()[1] in never]


def _violations(run: CheckRun) -> Iterable[Violation]:
    """Each violated property once, by its shortest trace; the other engines' files are named beside it."""
    by_property: dict[str, list[tuple[str, Trace, Path]]] = {}
    for engine, trace, path in run.traces:
        by_property.setdefault(trace.property, []).append((engine, trace, path))
    for found in by_property.values():
        engine, trace, path = min(found, key=lambda each: len(each[1].actions))
        files = [str(other) for _, _, other in found]
        command = run.configuration.replay_command(path)
        yield explained(trace, run.configuration, engine=engine, replay=command, files=files)


def _not_covered(run: CheckRun, world: World) -> tuple[str, ...]:
    items = "anywhere" if run.configuration.items_anywhere else "inside the prompt"
    left = [
        _others(run),
        f"other item positions than {items}",
        *_left_out_by_options(run, world),
    ]
    left += order_of_arrivals(run.configuration)
    left += stopped_scopes(run.found)
    left += [f"scope {name}: {why}" for name, why in run.lost.items()]
    left += [f"route {route}: closed" for route in sorted(world.closed)]
    other = {"proof": _OF_DECODERS} if run.configuration.encoder_decoder else {}
    left += [f"engine {engine}: {other.get(engine, 'not asked')}" for engine in ENGINES if engine not in run.engines]
    if "proof" in run.done and not keeps_assumptions(world):
        left.append(
            f"the tie of executed steps to the proved relation: of this profile, {broken_by_itself(world)} by itself; "
            "the proof speaks of the guard alone"
        )
    left += [f"engine {engine}: not finished" for engine in run.engines if engine not in run.done]
    return tuple(left)


def _left_out_by_options(run: CheckRun, world: World) -> Iterable[str]:
    """The policy and the modes that the options exclude, and the routes that the release does not have."""
    for name, about in run.configuration.properties_of_others().items():
        yield f"property {name}: it is about {about}"
    if world.policy != "both":
        yield f"the {'fcfs' if world.policy == 'priority' else 'priority'} policy"
    scope = run.configuration.scope()
    drawn = {word for mode in scope.modes for word in mode.split("+")}
    others = [word for word in (PLAIN, *MODE_WORDS) if word not in drawn]
    if others:
        yield f"other modes: {', '.join(others)}"
    for route in ROUTES:
        if route not in world.closed and not world.opens(route):
            yield f"route {route}: this release does not have it"
    if scope.turns.high == 1 and world.opens("sessions"):
        yield "sessions: requests have one turn"


def _others(run: CheckRun) -> str:
    requests = run.configuration.scope().requests
    if requests == 1:
        return "more than one request at a time: others are strangers that take slots and evict"
    return f"more than {requests} requests at a time; the proof follows one request and one item among any others"


def _provenance(run: CheckRun, world: World) -> dict[str, Any]:
    packages = ("outlives", "hypothesis", "z3-solver")
    shown: dict[str, Any] = {package: installed_version(package) or "not installed" for package in packages}
    scopes = {
        "states of each scope": {name: found.states for name, found in run.found.items()},
        "open routes and the scopes that take them": told_routes(routes_of_scopes(run, world), run.found),
    }
    situations = {each.phrase: run.situations.get(each.name, 0) for each in SITUATIONS}
    return {
        **shown,
        "seed": run.seed,
        "settings": run.settings.name,
        **(scopes if run.found else {}),
        **({"actions fired": dict(run.fired)} if run.fired else {}),
        **({"situations met": situations} if run.situations else {}),
    }
