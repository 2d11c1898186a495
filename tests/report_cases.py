"""Violations whose reports are checked word by word, built from the model: no engine and no clock is involved.

Belongs here: the runs behind the golden files and the sentence tests, no tests.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from outlives.invariants.explained import analysis_of
from outlives.invariants.machine_shrink import Witness, build_trace
from outlives.invariants.properties import scheduler_properties
from outlives.invariants.report.content import Run, Violation, explain
from outlives.invariants.report.reach import Reach
from outlives.invariants.verdict import Result, Trace, Verdict
from outlives.model.contract import Action, Range
from outlives.model.lifetime import GUARDS
from outlives.model.profiles import profile_named
from outlives.model.scenarios import SCENARIOS
from outlives.model.scheduler import SchedulerModel
from outlives.model.setup import Scope
from outlives.model.world import World

of = Action.of
ARRIVE, SCHEDULE, ACCEPT = of("arrive", request="r0"), of("schedule"), of("accept")


def world(profile: str = "repaired", guard: str | None = None, **changes: Any) -> World:
    """The world of a profile, with another guard if one is named."""
    chosen = profile_named(profile)
    fields: dict[str, Any] = {"rules": chosen.rules, "switches": chosen.switches}
    fields["guard"] = chosen.guard if guard is None else GUARDS[guard]
    return World(**{**fields, **changes})


def fixed(numbers: Mapping[str, int], **others: Any) -> Scope:
    """A scope of one setup."""
    return Scope(**{name: Range(value, value) for name, value in numbers.items()}, **others)


def trace_of(there: World, scope: Scope, actions: Sequence[Action], name: str = "GATHER-AFTER-FREE") -> Trace:
    """The trace of these actions, cut where the property fails."""
    model = SchedulerModel(there, scope, scheduler_properties(there))
    prop = next(prop for prop in model.properties() if prop.name == name)
    return build_trace(model, prop, Witness(None, model.initial_state({}), tuple(actions)))


ROLL_BACK = fixed(
    {"items": 1, "lead": 0, "length": 3, "prompt": 1, "outputs": 6, "slots": 4, "budget": 8, "drafts": 3,
     "look_ahead": 0, "depth": 2, "whole_items": 0, "strangers": 0},
    anywhere=True,
)  # fmt: skip
"""One item [0,3) that reaches past the prompt, of one token."""

ROLL_BACK_ACTIONS = (
    ARRIVE,
    SCHEDULE,
    of("speculate", request="r0", drafts=2),
    SCHEDULE,
    ACCEPT,
    of("evict", count=1),
    SCHEDULE,
    ACCEPT,
    of("accept", back=3),
)


def whole(trace: Trace, there: World, **more: Any) -> Violation:
    """The violation with everything that is said about it."""
    violation = explain(trace, world=there, **more)
    return replace(violation, analysis=analysis_of(trace, there, scheduler_properties(there)))


def chunk_end() -> Violation:
    """0.17.1: an item that starts where the chunk ends is never encoded in time."""
    there = world("0.17.1")
    trace = trace_of(there, SCENARIOS["chunk-end"].small, (ARRIVE, SCHEDULE, ACCEPT))
    told = whole(trace, there, engine="machine", replay="outlives replay .outlives/1/gather.itf.json",
                 files=(".outlives/1/gather.itf.json",))  # fmt: skip
    return replace(told, provenance={"outlives": "0.1.0", "profile": "0.17.1", "seed": 0, "never fired": "abort"})


def adjacent() -> Violation:
    """0.24.0: two adjacent items with room for one are stuck."""
    there = world("0.24.0")
    trace = trace_of(there, SCENARIOS["adjacent"].small, (ARRIVE,), "PROGRESS")
    return whole(trace, there, engine="exhaustive")


def roll_back() -> Violation:
    """A3 relaxed: the optimistic guard releases what a reader may go back to."""
    there = world(guard="optimistic-at-output", relaxed=frozenset({"A3"}), reader="any")
    return whole(trace_of(there, ROLL_BACK, ROLL_BACK_ACTIONS), there, engine="proof")


def row(name: str, verdict: Verdict, coverage: str, **more: Any) -> Result:
    """One result."""
    return Result(engine=more.pop("engine", "machine"), property=name, verdict=verdict, coverage=coverage, **more)


def green() -> Run:
    """Nothing is violated, by two engines."""
    covered = "1,200 runs, 45,000 steps"
    return Run(
        title="profile repaired, guard confirmed, A1 to A4 held",
        results=(
            row("GATHER-AFTER-FREE", Verdict.PASSED, covered),
            row("GATHER-AFTER-FREE", Verdict.PROVED, "unbounded numbers, any depth", engine="proof",
                not_covered=("several requests that share a key",)),
            row("PROGRESS", Verdict.EXHAUSTED, "every state of the scope: 4,512 states, 30,101 transitions, depth 18",
                engine="exhaustive"),
        ),
        not_covered=("the priority policy",),
        not_reached=("action occupy: never taken; raise --strangers",),
        reach=Reach(
            sides=41,
            of_sides=44,
            reasons=3,
            of_reasons=4,
            untaken=("book.make_room: book.idle (line 65): never false", "gate._splits: x == 1 (line 76): never asked"),
            ungiven=("never-fits (arrive) was never given",),
            declared=("gate.gate: switches.gate_look_ahead == 1",),
            refused={"evict": {"nothing-idle": 12}},
        ),
        provenance={"outlives": "0.1.0", "seed": 0},
        out=".outlives/1",
    )  # fmt: skip
