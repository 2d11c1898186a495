"""`outlives explore`: every state of the named scopes, or of the numbers that were given, and what is known of them.

Belongs here: how far each scope is searched, what the searches add up to, and their statistics as tables. Which setups
are visited is in `scope_choice`, how states are found in the package `explore`; nothing is printed here but through the
reporter.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Any

from outlives.model.contract import Action, Property, Refusal
from outlives.model.errors import BadModel
from outlives.model.scheduler import SchedulerModel
from outlives.model.state import ABSENT, FINISHED, State
from outlives.model.world import World

from .agreement import GATHER, breaks_fact, disagreement, judged_by_others, keeps_assumptions, relation_says
from .combined import combined, stopped_scopes, summed
from .configuration import Configuration
from .explore import Bounds, Checkpoint, Exploration, Progress, explore
from .explore_stats import statistics_tables
from .report import Reporter, Run, Violation, explain
from .scope_choice import Scopes
from .situations import SITUATIONS, routes_not_taken
from .trace_file import write_trace
from .verdict import Result, Trace, Verdict

__all__ = [
    "DEADLOCK",
    "ExploreRun",
    "deadlock_property",
    "explore_scopes",
    "show_statistics",
]

DEADLOCK = "DEADLOCK"
_TELL_EVERY = 5.0
"""Seconds between two lines of live progress."""


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
    found: dict[str, Exploration] = field(default_factory=dict)
    """Scope -> its search, finished or stopped."""
    traces: dict[str, tuple[Trace, Path]] = field(default_factory=dict)
    """Property -> its shortest trace, and its file."""
    rows: list[Result] = field(default_factory=list)
    trouble: BadModel | None = None
    """What ended the run before all scopes were visited: rules that raise, or return what no rule may."""

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it."""
        return any(each.interrupted for each in self.found.values())


def explore_scopes(run: ExploreRun, reporter: Reporter) -> Run:
    """Search the scopes one after the other, each to its end or a bound. Ctrl-C ends the run with what is known."""
    world = run.configuration.world()
    model = _model(run.configuration, world)
    begun = perf_counter()
    for number, (name, states) in enumerate(run.scopes.items(), 1):
        bounds = run.bounds
        if bounds.seconds is not None:
            # A scope that finds no time left is still begun, so that it is reported as stopped by the clock.
            bounds = replace(bounds, seconds=max(0.001, round(bounds.seconds - (perf_counter() - begun), 2)))
        title = f"explore {name} ({number} of {len(run.scopes)})"
        try:
            with reporter.progress(None, title) as advance:
                run.found[name] = explore(
                    model,
                    bounds=bounds,
                    initial=states,
                    listener=_teller(name, advance),
                    checkpoint=_checkpoint(run, name),
                )
        except BadModel as error:
            run.trouble = error
            break
        if run.interrupted:
            break
    _judge(run, world, model)
    return _report(run, world)


def _model(configuration: Configuration, world: World) -> SchedulerModel:
    judged = (*configuration.judged(world), *SITUATIONS, deadlock_property(world))
    return SchedulerModel(world, configuration.scope(), judged)


def _checkpoint(run: ExploreRun, name: str) -> Checkpoint | None:
    if run.checkpoint is None:
        return None
    path = run.checkpoint
    if len(run.scopes) > 1:
        path = path.with_name(f"{path.name}.{name.replace(' ', '-').strip('()')}")
    named = (run.configuration.profile, run.configuration.fault or "")
    files = [Path(each.rpartition(":")[0]).read_bytes() for each in named if ".py:" in each]
    digest = sha256(b"\0".join(files)).hexdigest()  # of a user's own rules, which may have changed since
    return Checkpoint(
        path, f"{run.configuration.plain()} {digest} {[state.setup for state in run.scopes[name]]}", every=30.0
    )


def _teller(name: str, advance: Any) -> Any:
    told = perf_counter()

    def tell(at: Progress) -> None:
        nonlocal told
        text = ""
        if perf_counter() - told >= _TELL_EVERY:
            told = perf_counter()
            text = (
                f"{name}: level {at.level}, {at.states:,} states, {at.waiting:,} waiting, {at.rate:,.0f} states/s, "
                f"{at.memory / 2**20:,.0f} MiB"
            )
        advance(at.states, text)

    return tell


def deadlock_property(world: World) -> Property[State]:
    """Counts the states in which a request is unfinished and nothing at all can happen. Not a verdict of its own: where
    nothing can happen there is no progress, which PROGRESS says; and that everything has finished is no deadlock."""
    model = SchedulerModel(world, Configuration().scope())

    def goes_on(_before: State, _action: Action | None, after: State) -> bool:
        if after.misses or all(request.status in (ABSENT, FINISHED) for request in after.requests):
            return True
        try:
            return any(not isinstance(model.next_state(after, action), Refusal) for action in model.actions(after))
        except Exception:  # a user's rules: the search meets the same action next, and tells it with its place
            return True

    return Property(
        name=DEADLOCK,
        phrase="something can happen while a request is unfinished",
        holds=goes_on,
        explain=lambda _before, _action, _after: "a request is unfinished, and every action is refused",
        situation=lambda _before, _action, _after: False,
        situation_phrase="a request was unfinished",
    )


# --- what it adds up to -----------------------------------------------------------------------------------------------


def _judge(run: ExploreRun, world: World, model: SchedulerModel) -> None:
    """A row per property over all scopes, and each violation put to the other engines and written."""
    for row in combined(run.found, list(run.scopes), [DEADLOCK]):
        run.rows.append(row if row.trace is None else replace(row, trace=_confirmed(run, world, model, row)))


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
    unvisited = [name for name in run.scopes if name not in run.found]
    situations, fired = summed(run.found)
    whole = not unvisited and all(found.complete for found in run.found.values())
    ahead = any(state.setup.look_ahead for states in run.scopes.values() for state in states)
    missing = routes_not_taken(world, situations, look_ahead=ahead) if whole else ()
    return Run(
        title=run.configuration.title(),
        results=tuple(sorted(run.rows, key=lambda row: row.verdict is Verdict.DISAGREE)),
        violations=tuple(_violations(run, world)),
        not_covered=(*stopped_scopes(run.found), *(f"scope {name}: not begun" for name in unvisited)),
        not_reached=(
            *(f"action {name} never fired" for name, times in fired.items() if not times),
            *(f"never: {each.phrase}" for each in SITUATIONS if not situations.get(each.name)),
        ),
        vacuous=tuple(
            f"open route {route} was never taken; close it with --without {route}, or visit a scope that takes it"
            for route in missing
        ),
        configuration=run.configuration.plain(),
        provenance={"states of each scope": {name: found.states for name, found in run.found.items()}},
        out=str(run.folder),
        interrupted=run.interrupted,
    )


def _violations(run: ExploreRun, world: World) -> Iterator[Violation]:
    for trace, path in run.traces.values():
        command = run.configuration.replay_command(path)
        yield explain(trace, world=world, engine="exhaustive", replay=command, files=[str(path)])


def show_statistics(run: ExploreRun, reporter: Reporter) -> None:
    """What `--stats` adds."""
    for table in statistics_tables(run.found, DEADLOCK):
        reporter.table(table)
    plain = {}
    for name, found in run.found.items():
        told = found.statistics()
        for each in ("situations", "broken"):
            told[each] = {key: value for key, value in told[each].items() if key != DEADLOCK}
        # What the engine calls a deadlock is any state in which every action is refused, all being finished or not.
        told["nothing_left_to_do"] = found.deadlocks + found.ends - found.broken[DEADLOCK]
        told["deadlocks"] = found.broken[DEADLOCK]
        plain[name] = told
    reporter.data("statistics", plain)
