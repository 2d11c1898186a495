"""The proof engine's answer about one configuration, as a row beside the other engines' rows."""

from dataclasses import replace

from outlives.model.world import World

from .configuration import Configuration
from .proof.cells import Column, cell
from .proof.life import Arithmetic
from .proof.on_model import rerun
from .properties import scheduler_properties
from .verdict import Result, Trace, Verdict

__all__ = ["proof_row"]

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
    )
    guard = replace(world.guard, condition=world.condition)
    judged = cell(guard, column, anywhere=configuration.items_anywhere, arithmetic=Arithmetic.of(world.rules))
    row = judged.result()
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
