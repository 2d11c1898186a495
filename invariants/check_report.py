"""What a run of `check` adds up to: its rows, its violations, what it did not cover, and where it comes from.

Belongs here: turning what the engines answered into the `Run` that is reported. Which engines run on what, is in
`check`.
"""

from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outlives.model.profiles import RELEASED_RULES
from outlives.model.setup import MODE_WORDS, PLAIN
from outlives.model.world import ROUTES, Rules, World

from .agreement import breaks_fact, broken_by_itself, keeps_assumptions, relation_differs
from .combined import at_best_of, never_fired, order_of_arrivals, routes_taken, stopped_scopes, told_routes
from .explained import explained
from .jobs import subject_model
from .reached import reach_of, refused_in
from .report.content import Run, Violation
from .report.reach import Reach
from .report.stored_table import row_words, stored_tables
from .situations import SITUATIONS, routes_not_taken, told_unmet, told_untaken
from .trace_file import installed_version
from .verdict import Result, Trace, Verdict

if TYPE_CHECKING:
    from .check import CheckRun

__all__ = ["ENGINES", "OF_DECODERS", "SCOPE_STATES", "TIE_STEPS", "routes_of_scopes", "summary", "undescribed"]

ENGINES = ("machine", "exhaustive", "proof")
OF_DECODERS = "the proof is of decoder models, whose requests share entries"
SCOPE_STATES = {"quick": 20_000, "ci": 50_000, "nightly": 2_000_000}
"""Settings -> states of one scope that the exhaustive engine may visit; the named scopes have some 2,000 each."""
TIE_STEPS = 10_000
"""Steps of a random walk that are held against the proved relation."""


def undescribed(world: World, row: Result) -> Result:
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


def routes_of_scopes(run: "CheckRun", world: World) -> dict[str, list[str]]:
    """Open route -> the scopes in which the exhaustive engine took it."""
    return routes_taken(world, run.found, look_ahead=run.configuration.scope().look_ahead.high > 0)


def summary(run: "CheckRun", world: World) -> Run:
    run.results.extend(run.disagreements)
    if "proof" in run.done:
        differing = relation_differs(world, run.results, [each[:2] for each in run.traces])
        run.results.extend([undescribed(world, row) for row in differing])
    sampled = {"machine", "exhaustive"} & set(run.done)
    vacuous: list[str] = []
    not_reached: list[str] = []
    if sampled and not run.interrupted:
        ahead = run.configuration.scope().look_ahead.high > 0
        drawn = "machine" in run.engines
        vacuous += told_untaken(
            routes_not_taken(world, run.situations, look_ahead=ahead),
            run.at_best if drawn else at_best_of(run.found),
            otherwise=f"raise --cases (now {run.settings.cases:,})" if drawn else "ask the machine (--engine machine)",
        )
        not_reached += [*_never_fired(run), *told_unmet(world, run.situations)]
    made = Run(
        title=run.configuration.title(),
        results=tuple(run.results),
        violations=tuple(_violations(run)),
        not_covered=_not_covered(run, world),
        not_reached=tuple(not_reached),
        vacuous=tuple(vacuous),
        reach=_reach(run, world) if sampled and not run.interrupted else None,
        configuration=run.configuration.plain(),
        provenance=_provenance(run, world),
        budgets=_budgets(run),
        out=str(run.folder),
        interrupted=run.interrupted,
    )
    if made.status != 0 or world.rules.guard is not None or set(run.engines) != set(ENGINES):
        return made
    # A green run says what its guard is worth beside the others, and what it rests on.
    row = row_words(world.guard.name)
    return replace(made, tables=stored_tables(), notes=(row,) if row else ())


def _reach(run: "CheckRun", world: World) -> Reach:
    actions = tuple(subject_model(run.configuration, world).action_table)
    sides = [run.sides, *(each.sides for each in run.found.values())]
    return reach_of(world, actions, [*run.refused, *refused_in(run.found)], sides)


def _budgets(run: "CheckRun") -> str:
    """How much each engine was to try."""
    from .proof.solvers import BUDGET  # the solver takes long to load

    states = SCOPE_STATES.get(run.settings.name, SCOPE_STATES["ci"])
    told = {
        "machine": run.settings.words(),
        "exhaustive": f"up to {states:,} states a scope",
        "proof": f"{BUDGET:,} of rlimit a query, {TIE_STEPS:,} tied steps",
    }
    return "; ".join(f"{engine}: {told[engine]}" for engine in run.engines if engine in told)


def _never_fired(run: "CheckRun") -> list[str]:
    """Of an action that no engine took, the exhaustive one can say why."""
    never = [name for name, times in run.fired.items() if not times]
    told = never_fired(run.found) if "exhaustive" in run.done else [f"action {name} never fired" for name in never]
    return [line for line in told if line.split()[1] in never]


def _violations(run: "CheckRun") -> Iterable[Violation]:
    """Each violated property once, by its shortest trace; the other engines' files are named beside it."""
    by_property: dict[str, list[tuple[str, Trace, Path]]] = {}
    for engine, trace, path in run.traces:
        by_property.setdefault(trace.property, []).append((engine, trace, path))
    for found in by_property.values():
        engine, trace, path = min(found, key=lambda each: len(each[1].actions))
        files = [str(other) for _, _, other in found]
        command = run.configuration.replay_command(path)
        yield explained(trace, run.configuration, engine=engine, replay=command, files=files)


def _not_covered(run: "CheckRun", world: World) -> tuple[str, ...]:
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
    other = {"proof": OF_DECODERS} if run.configuration.encoder_decoder else {}
    left += [f"engine {engine}: {other.get(engine, 'not asked')}" for engine in ENGINES if engine not in run.engines]
    if "proof" in run.done and not keeps_assumptions(world):
        left.append(
            f"the tie of executed steps to the proved relation: of this profile, {broken_by_itself(world)} by itself; "
            "the proof speaks of the guard alone"
        )
    left += [f"engine {engine}: not finished" for engine in run.engines if engine not in run.done]
    return tuple(left)


def _left_out_by_options(run: "CheckRun", world: World) -> Iterable[str]:
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


def _others(run: "CheckRun") -> str:
    requests = run.configuration.scope().requests
    if requests == 1:
        return "more than one request at a time: others are strangers that take slots and evict"
    return f"more than {requests} requests at a time; the proof follows one request and one item among any others"


def _provenance(run: "CheckRun", world: World) -> dict[str, Any]:
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
