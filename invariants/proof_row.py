"""The proof engine's answer about one configuration, as a row beside the other engines' rows."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from outlives.model.scheduler import SchedulerModel
from outlives.model.world import World

from .configuration import Configuration
from .machine import random_walk
from .proof.cells import Cell, Column, cell
from .proof.life import Arithmetic, Assumed, Terms
from .proof.on_model import rerun
from .proof.theorem import prove
from .proof.tie import untied
from .properties import scheduler_properties
from .verdict import Result, Trace, Verdict

__all__ = ["proof_row", "tie_row", "widest"]

_PROPERTY = "OUTLIVES"


def proof_row(configuration: Configuration, world: World) -> Result:
    """Whether the guard in force lets nothing go that is still read, under the configuration's assumptions.

    Proved for one request and one item among arbitrary others, unbounded numbers, any depth; else violated with a
    counterexample of bounded checking that was run on the executable model; else unknown.
    """
    column = Column(
        name="the run's",
        phrase="the assumptions of this run",
        relaxed=world.relaxed,
        reader=world.reader,
        closed=world.closed,
        encoder_reset=int(world.opens("reset-encoder-cache")),
    )
    guard = world.guard_in_force
    judged = cell(
        guard,
        column,
        anywhere=configuration.items_anywhere,
        arithmetic=Arithmetic.of(world.rules),
        switches=world.switches,
    )
    row = judged.result()
    row = replace(row, details={**row.details, "obligations": dict(_obligations(judged))})
    if judged.verdict is Verdict.PROVED and world.reader == "checked" and not world.relaxed:
        row = replace(row, note=_stronger(world))
    if judged.found is None:
        return replace(row, property=_PROPERTY)
    done = rerun(judged.found, world)
    gather = next(prop for prop in scheduler_properties(world) if prop.name == "GATHER-AFTER-FREE")
    before, last = done.steps[-2].state, done.steps[-1]
    why = done.difference or gather.explain(before, last.action, last.state)
    trace = Trace(
        steps=done.steps,
        property="GATHER-AFTER-FREE",
        why=why,
        shortest="shortest in moves of the relation, numbers up to 8 (bounded checking)",
    )
    if not done.agrees:
        return replace(row, property=_PROPERTY, verdict=Verdict.DISAGREE, note=done.difference, trace=trace)
    return replace(row, property=_PROPERTY, verdict=Verdict.VIOLATED, trace=trace)


def _obligations(judged: Cell) -> Iterator[tuple[str, str]]:
    """Each obligation of the proof, with its kind of scheduling, and its verdict."""
    for scheduling, report in (("asynchronous", judged.proof), ("synchronous", judged.synchronous)):
        for each in () if report is None else report.obligations:
            yield f"{each.name}, {scheduling}", str(each.verdict)


def widest(world: World) -> Terms:
    """The theorem with A3 relaxed as far as it goes for `repaired`: readers from confirmed on, items anywhere."""
    return Terms(
        guard=world.guard_in_force,
        arithmetic=Arithmetic.of(world.rules),
        assumed=Assumed(reader="any", anywhere=True).behaving(world.switches),
    )


def _stronger(world: World) -> str:
    """What more holds of this guard: the theorem with A3 relaxed as far as it goes, where that is proved too."""
    if prove(widest(world), until_failure=True).verdict is Verdict.PROVED:
        unless = ", no encoder-cache reset" if world.opens("reset-encoder-cache") else ""
        return f"also proved without A3: readers from confirmed on, items anywhere{unless}"
    return "not proved without A3: see outlives table"


def tie_row(model: SchedulerModel, world: World, steps: int, seed: int, advance: Callable[..., None]) -> Result:
    """A random walk of so many steps, each of which must be a step of the relation that the proof is about."""
    held = 0
    for before, action, after in random_walk(model, steps, seed):
        if action is None:
            continue
        difference = next(untied(world, before, action, after), None)
        if difference is not None:
            return Result(
                engine="tie",
                property="STEPS-ARE-PROVED-ABOUT",
                verdict=Verdict.DISAGREE,
                coverage=f"after {held:,} steps",
                note=f"{action} is no step of the proved relation: {difference}",
            )
        held += 1
        if held % 500 == 0:
            advance(held)
    return Result(
        engine="tie",
        property="STEPS-ARE-PROVED-ABOUT",
        verdict=Verdict.PASSED if held else Verdict.VACUOUS,
        coverage=f"{held:,} steps of a random walk",
    )
