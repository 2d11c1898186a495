"""`outlives explore`: every state of the named scopes, or of the numbers that were given, and what is known of them.

Belongs here: how far each scope is searched, what the searches add up to, and their statistics as tables. Which setups
are visited is in `scope_choice`, how states are found in the package `explore`; nothing is printed here but through the
reporter.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import time

from outlives.model.errors import BadModel
from outlives.model.scheduler import SchedulerModel
from outlives.model.world import World

from .agreement import GATHER, breaks_fact, disagreement, judged_by_others, keeps_assumptions, relation_says
from .combined import (
    at_best_of,
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
from .endings import ENDINGS, how_runs_end
from .explained import explained
from .explore import Bounds, Exploration
from .explore_stats import plain_statistics, statistics_tables
from .jobs import ScopeWork, scope_job, subject_model, user_files, whole
from .reached import reach_of, refused_in
from .report import Reporter, Run, Violation
from .report.reach import Reach
from .report.telling import count_of
from .scope_choice import Scopes
from .situations import SITUATIONS, routes_not_taken, told_untaken
from .trace_file import write_trace
from .verdict import Result, Trace, Verdict
from .workers import Job, ordered

__all__ = ["ExploreRun", "explore_scopes", "routes_of_scopes", "show_statistics"]


# --- the searches -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class ExploreRun:
    """What to search, how far, and what was found so far."""

    configuration: Configuration
    scopes: Scopes
    bounds: Bounds
    """States and depth for each scope; memory of the process; seconds of all scopes together."""
    folder: Path
    checkpoint: Path | None = None
    """One file for one scope, `FILE.SCOPE` for each of several."""
    save_every: float = 30.0
    """Seconds between two checkpoints."""
    workers: int = 1
    """Processes; 1: this one."""
    found: dict[str, Exploration] = field(default_factory=dict)
    """Scope -> its search, finished or stopped."""
    traces: dict[str, tuple[Trace, Path]] = field(default_factory=dict)
    """Property -> its shortest trace, and its file."""
    rows: list[Result] = field(default_factory=list)
    trouble: BadModel | None = None
    """What ended the run before all scopes were visited: rules that raise, or return what no rule may."""
    lost: dict[str, str] = field(default_factory=dict)
    """Scope -> why nothing is known of it: its process died."""
    interrupted: bool = False
    """Ctrl-C ended it."""


def explore_scopes(run: ExploreRun, reporter: Reporter) -> Run:
    """Search the scopes, each to its end or a bound. Ctrl-C ends the run with what is known."""
    world = run.configuration.world()
    model = subject_model(run.configuration, world, endings=True)
    jobs = _jobs(run)
    with reporter.progress(None, f"explore, {count_of(len(jobs), 'scope')}") as advance:
        try:
            for name, outcome in zip(run.scopes, ordered(jobs, run.workers, advance), strict=True):
                run.interrupted = run.interrupted or outcome.interrupted
                if outcome.lost:
                    run.lost[name] = outcome.lost
                if outcome.value is not None:
                    run.found[name] = whole(outcome.value, model)
        except KeyboardInterrupt:
            run.interrupted = True
        except BadModel as error:
            run.trouble = error
    _judge(run, world, model)
    return _report(run, world)


def _jobs(run: ExploreRun) -> list[Job]:
    seconds = run.bounds.seconds
    bounds = replace(run.bounds, seconds=None)
    until = None if seconds is None else time() + seconds
    return [
        Job(
            name=f"scope {name}",
            work=scope_job,
            about=ScopeWork(
                configuration=run.configuration,
                scope=name,
                states=tuple(states),
                bounds=bounds,
                until=until,
                checkpoint=_checkpoint(run, name),
                save_every=run.save_every,
                endings=True,
            ),
            weight=0,
            says_what_it_knows=True,
            user_files=user_files(run.configuration),
        )
        for name, states in run.scopes.items()
    ]


def _checkpoint(run: ExploreRun, name: str) -> Path | None:
    if run.checkpoint is None or len(run.scopes) == 1:
        return run.checkpoint
    return run.checkpoint.with_name(f"{run.checkpoint.name}.{name.replace(' ', '-').strip('()')}")


# --- what it adds up to -----------------------------------------------------------------------------------------------


def _judge(run: ExploreRun, world: World, model: SchedulerModel) -> None:
    """A row per property over all scopes, and each violation put to the other engines and written."""
    for row in combined(run.found, list(run.scopes), ENDINGS):
        run.rows.append(row if row.trace is None else replace(row, trace=_confirmed(run, world, model, row)))
    if run.lost and not run.found:
        run.rows += unanswered(run.configuration.judged(world), next(iter(run.lost.values())))


def _confirmed(run: ExploreRun, world: World, model: SchedulerModel, result: Result) -> Trace:
    assert result.trace is not None
    trace, rows = judged_by_others(model, result.trace)
    run.rows.extend(rows)
    # A planted fault may be outside what the relation describes; what the proof says to it, `check` tells.
    planted = run.configuration.fault is not None or ".py:" in run.configuration.profile
    if trace.property == GATHER and keeps_assumptions(world) and not planted:
        said = relation_says(world, trace)
        if said and not breaks_fact(said):
            run.rows.append(disagreement("exhaustive, proof", f"{GATHER}: {said}"))
    path = write_trace(trace, run.configuration, run.folder / f"exhaustive-{trace.property}")
    run.traces[trace.property] = trace, path
    return trace


def _report(run: ExploreRun, world: World) -> Run:
    unvisited = [name for name in run.scopes if name not in run.found and name not in run.lost]
    situations, _ = summed(run.found)
    complete = len(run.found) == len(run.scopes) and all(found.complete for found in run.found.values())
    missing = _open_here(run, world, situations) if complete else ()
    return Run(
        title=run.configuration.title(),
        results=tuple(sorted(run.rows, key=lambda row: row.verdict is Verdict.DISAGREE)),
        violations=tuple(_violations(run)),
        not_covered=(
            *stopped_scopes(run.found),
            *(f"scope {name}: {why}" for name, why in run.lost.items()),
            *(f"scope {name}: not begun" for name in unvisited),
            *order_of_arrivals(run.configuration, run.scopes),
        ),
        not_reached=(
            *never_fired(run.found),
            *(f"never: {each.phrase}" for each in SITUATIONS if not situations.get(each.name)),
        ),
        vacuous=tuple(told_untaken(missing, at_best_of(run.found), otherwise="visit a scope that takes it")),
        reach=None if run.interrupted else _reach(run, world),
        configuration=run.configuration.plain(),
        provenance={
            "states of each scope": {name: found.states for name, found in run.found.items()},
            "open routes and the scopes that take them": told_routes(routes_of_scopes(run, world), run.found),
            "states in which runs end": how_runs_end(run.found.values()),
        },
        out=str(run.folder),
        interrupted=run.interrupted,
    )


def _reach(run: ExploreRun, world: World) -> Reach:
    actions = tuple(subject_model(run.configuration, world).action_table)
    sides = [found.sides for found in run.found.values()]
    resumed = any(found.details.get("resumed") for found in run.found.values())
    return reach_of(world, actions, refused_in(run.found), sides, resumed=resumed)


def routes_of_scopes(run: ExploreRun, world: World) -> dict[str, list[str]]:
    """Open route -> the scopes in which it was taken."""
    taken = routes_taken(world, run.found, look_ahead=True)
    return {route: taken[route] for route in _open_here(run, world, {})}


def _open_here(run: ExploreRun, world: World, met: Mapping[str, int]) -> list[str]:
    """The routes that are open in a scope of this run, and of which no situation was met. Most scopes leave rare routes
    out; a run of those alone says nothing of them, and need not."""
    setups = [state.setup for states in run.scopes.values() for state in states]
    ahead = any(setup.look_ahead for setup in setups)
    routes = routes_not_taken(world, met, look_ahead=ahead)
    return [route for route in routes if any(world.opens(route, setup) for setup in setups)]


def _violations(run: ExploreRun) -> Iterator[Violation]:
    for trace, path in run.traces.values():
        command = run.configuration.replay_command(path)
        yield explained(trace, run.configuration, engine="exhaustive", replay=command, files=[str(path)])


def show_statistics(run: ExploreRun, reporter: Reporter) -> None:
    """What `--stats` adds."""
    for table in statistics_tables(run.found):
        reporter.table(table)
    reporter.data("statistics", {name: plain_statistics(found) for name, found in run.found.items()})
