"""`outlives check`: every engine on one configuration, and what that adds up to.

Belongs here: which engines run on what, how their answers are combined, and the checks of the engines against each
other. Nothing is printed here; the caller renders the `Run`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from outlives.model.errors import BadModel
from outlives.model.profiles import RELEASED_RULES
from outlives.model.scheduler import SchedulerModel
from outlives.model.world import Rules, World

from .agreement import breaks_fact, broken_by_itself, judged_by_others, keeps_assumptions, relation_differs, shortened
from .combined import combined, stopped_scopes, summed
from .configuration import Configuration
from .explore import Exploration
from .interrupt import was_pressed
from .machine import MachineInterrupted, MachineProgress, MachineRun, run_machine
from .machine_settings import MachineSettings
from .report.content import Run, Violation, explain
from .scope_choice import chosen_scopes
from .situations import SITUATIONS, closes, is_situation, routes_not_taken
from .trace_file import write_trace
from .verdict import Result, Trace, Verdict

__all__ = ["ENGINES", "CheckRun", "check"]

ENGINES = ("machine", "exhaustive", "proof")

Advance = Callable[..., None]
ProgressFactory = Callable[[int | None, str], AbstractContextManager[Advance]]

_SCOPE_STATES = {"quick": 20_000, "ci": 50_000, "nightly": 2_000_000}
"""Settings -> states of one scope that the exhaustive engine may visit; the named scopes have some 2,000 each."""
_TIE_STEPS = 10_000
"""Steps of a random walk that are held against the proved relation."""


@dataclass(slots=True)
class CheckRun:
    """A check under way: what is known so far, so that an interrupted run can be reported as well."""

    configuration: Configuration
    engines: Sequence[str]
    settings: MachineSettings
    seed: int
    folder: Path
    progress: ProgressFactory
    results: list[Result] = field(default_factory=list)
    traces: list[tuple[str, Trace, Path]] = field(default_factory=list)
    situations: dict[str, int] = field(default_factory=dict)
    fired: dict[str, int] = field(default_factory=dict)
    found: dict[str, Exploration] = field(default_factory=dict)
    """Scope -> what the exhaustive engine found in it."""
    disagreements: list[Result] = field(default_factory=list)
    """What one engine found and another cannot confirm."""
    done: list[str] = field(default_factory=list)
    interrupted: bool = False
    trouble: BadModel | None = None
    """What ended the run before all engines were done: rules that raise, or return what no rule may."""


def check(run: CheckRun) -> Run:
    """Run the engines one after the other. Ctrl-C ends the run with what is known by then, a user's broken rules too
    (`CheckRun.trouble`)."""
    world = run.configuration.world()
    stages: Mapping[str, Callable[[CheckRun, World], None]] = {
        "machine": _machine,
        "exhaustive": _exhaustive,
        "proof": _proof_and_tie,
    }
    try:
        for engine in ENGINES:
            if engine in run.engines:
                stages[engine](run, world)
                run.done.append(engine)
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


def _model(run: CheckRun, world: World) -> SchedulerModel:
    judged = (*run.configuration.judged(world), *SITUATIONS)
    return SchedulerModel(world, run.configuration.scope(), judged)


def _machine(run: CheckRun, world: World) -> None:
    model = _model(run, world)
    with run.progress(run.settings.cases, "machine") as advance:

        def tell(at: MachineProgress) -> None:
            advance(at.cases, at.text)

        try:
            seen = run_machine(
                model,
                settings=run.settings,
                seed=run.seed,
                out=run.folder,
                progress=tell,
                write_trace=lambda trace, path: _keep(write_trace(trace, run.configuration, path)),
            )
        except MachineInterrupted as stop:
            _take_machine(run, world, stop.partial)  # at once: no search for shorter traces
            raise
    _take_machine(run, world, seen)


def _keep(_path: Path) -> None:
    """The machine does not need the path of what was written before shrinking."""


def _take_machine(run: CheckRun, world: World, seen: MachineRun) -> None:
    for result in seen.results:
        if is_situation(result.property):
            continue
        trace = result.trace
        if trace is not None:
            if not seen.interrupted:
                trace, rows = shortened(_model(run, world), trace)
                run.disagreements.extend(rows)
            _write(run, "machine", trace)
        run.results.append(replace(result, trace=trace))
    _count(run.situations, seen.situations)
    _count(run.fired, seen.fired)


def _scope_states(run: CheckRun) -> int:
    """A fault may make the counters grow without end: the exhaustive engine then answers `unknown` in good time."""
    return _SCOPE_STATES.get(run.settings.name, _SCOPE_STATES["ci"])


def _exhaustive(run: CheckRun, world: World) -> None:
    from .explore import Bounds, explore

    model = _model(run, world)
    scopes = chosen_scopes(run.configuration, every_number=False)
    bounds = Bounds(states=_scope_states(run))
    interrupted = False
    with run.progress(len(scopes), "exhaustive") as advance:
        for number, (name, states) in enumerate(scopes.items()):
            run.found[name] = explore(model, bounds=bounds, initial=states)
            advance(number + 1)
            if run.found[name].interrupted:
                interrupted = True
                break
    _take_exhaustive(run, world, list(scopes))
    if interrupted:
        raise KeyboardInterrupt


def _take_exhaustive(run: CheckRun, world: World, scopes: Sequence[str]) -> None:
    situations, fired = summed(run.found)
    _count(run.situations, situations)
    _count(run.fired, fired)
    for result in combined(run.found, scopes):
        if result.trace is not None:
            trace, others = judged_by_others(_model(run, world), result.trace)
            run.disagreements.extend(others)
            _write(run, "exhaustive", trace)
            result = replace(result, trace=trace)
        run.results.append(result)


def _proof_and_tie(run: CheckRun, world: World) -> None:
    from .proof_row import proof_row, tie_row

    with run.progress(None, "proof"):
        result = proof_row(run.configuration, world)
    if result.trace is not None:
        _write(run, "proof", result.trace)
    run.results.append(result)
    if keeps_assumptions(world):
        with run.progress(_TIE_STEPS, "tie") as advance:
            tie = tie_row(_model(run, world), world, _TIE_STEPS, run.seed, advance)
        if tie.verdict is Verdict.DISAGREE and result.verdict is not Verdict.PROVED and breaks_fact(tie.note):
            tie = replace(tie, verdict=Verdict.UNKNOWN)  # the proof failed to bear that fact out: they agree
        run.results.append(_undescribed(world, tie))


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
        for route in routes_not_taken(world, run.situations, look_ahead=ahead):
            vacuous.append(f"open route {route} was never taken; close it with --without {route}, or raise --cases")
        not_reached += [f"action {name} never fired" for name, times in run.fired.items() if not times]
        not_reached += [
            f"never: {situation.phrase}"
            for situation in SITUATIONS
            if not run.situations.get(situation.name) and not closes(world, situation.name)
        ]
    return Run(
        title=run.configuration.title(),
        results=tuple(run.results),
        violations=tuple(_violations(run, world)),
        not_covered=_not_covered(run, world),
        not_reached=tuple(not_reached),
        vacuous=tuple(vacuous),
        configuration=run.configuration.plain(),
        provenance=_provenance(run),
        out=str(run.folder),
        interrupted=run.interrupted,
    )


def _violations(run: CheckRun, world: World) -> Iterable[Violation]:
    """Each violated property once, by its shortest trace; the other engines' files are named beside it."""
    by_property: dict[str, list[tuple[str, Trace, Path]]] = {}
    for engine, trace, path in run.traces:
        by_property.setdefault(trace.property, []).append((engine, trace, path))
    for found in by_property.values():
        engine, trace, path = min(found, key=lambda each: len(each[1].actions))
        files = [str(other) for _, _, other in found]
        yield explain(trace, world=world, engine=engine, replay=run.configuration.replay_command(path), files=files)


def _not_covered(run: CheckRun, world: World) -> tuple[str, ...]:
    items = "anywhere" if run.configuration.items_anywhere else "inside the prompt"
    left = [
        _others(run),
        f"the {'fcfs' if world.policy == 'priority' else 'priority'} policy",
        "resets, sessions, KV-load failure, encoder-decoder and synchronous mode",
        f"other item positions than {items}",
    ]
    left += stopped_scopes(run.found)
    left += [f"route {route}: closed" for route in sorted(world.closed)]
    left += [f"engine {engine}: not asked" for engine in ENGINES if engine not in run.engines]
    if "proof" in run.done and not keeps_assumptions(world):
        left.append(
            f"the tie of executed steps to the proved relation: of this profile, {broken_by_itself(world)} by itself; "
            "the proof speaks of the guard alone"
        )
    left += [f"engine {engine}: not finished" for engine in run.engines if engine not in run.done]
    return tuple(left)


def _others(run: CheckRun) -> str:
    requests = run.configuration.scope().requests
    if requests == 1:
        return "more than one request at a time: others are strangers that take slots and evict"
    return f"more than {requests} requests at a time; the proof follows one request and one item among any others"


def _provenance(run: CheckRun) -> dict[str, Any]:
    from importlib.metadata import PackageNotFoundError, version

    shown: dict[str, Any] = {}
    for package in ("outlives", "hypothesis", "z3-solver"):
        try:
            shown[package] = version(package)
        except PackageNotFoundError:
            shown[package] = "not installed"
    situations = {each.phrase: run.situations.get(each.name, 0) for each in SITUATIONS}
    return {
        **shown,
        "seed": run.seed,
        "settings": run.settings.name,
        **({"states of each scope": {name: found.states for name, found in run.found.items()}} if run.found else {}),
        **({"actions fired": dict(run.fired)} if run.fired else {}),
        **({"situations met": situations} if run.situations else {}),
    }
