"""Engines check each other: what one of them found is put to the others, and where they differ the step is named.

Belongs here: each such comparison, as functions over traces and results. Who calls them is `check` and `explore_run`;
a disagreement is a row like any other, with the verdict that decides every mixed run (exit status 5).

- A violation of the exhaustive engine is taken again step by step by plain `next_state`, and judged as the machine
  judges (`machine_says`).
- A violation of the machine is searched for exhaustively, from the same numbers (`shortened`).
- A read of a missing key is put to the proof's relation: each step is one of its steps, and in the last one the
  relation does not find the key either; and what is proved must not be violated (`relation_differs`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from outlives.model.contract import Model, Property, Refusal
from outlives.model.world import World

from .machine_shrink import Witness, build_trace, cut_to_failure
from .verdict import Result, Trace, Verdict

__all__ = [
    "GATHER",
    "breaks_fact",
    "broken_by_itself",
    "disagreement",
    "judged_by_others",
    "keeps_assumptions",
    "machine_says",
    "relation_differs",
    "relation_says",
    "shortened",
]

GATHER = "GATHER-AFTER-FREE"
_NOTE = "one of the engines, or the relation that is proved about, is wrong: keep the trace"
_SHORTEST_STATES = 60_000
"""States that the search for a shorter trace may visit."""


def broken_by_itself(world: World) -> str:
    """Which assumption of the proof the profile breaks by itself, and how; empty where it keeps them all.

    A2 and A3: releases before 0.24.0 whose gate overlooks what the drafter's look-ahead reads. A4: under the priority
    policy no release tells the book that a victim's planned encodes were withdrawn. Beside them what the relation does
    not describe: outputs that a reset discards by count, turns that end with computed ahead of the truth.
    """
    switches = world.switches
    looks = switches.gate_look_ahead == 1 and switches.gate_shortcut == 0 and switches.whole_cut_look_ahead == 1
    if switches.tolerate_look_ahead == 0 and not looks:
        return "its gate overlooks what its drafter reads, so it breaks A2 and A3"
    if world.policy != "fcfs" and switches.withdraw_victim == 0:
        return "a victim of the same pass keeps its tokens in the step, which the proved relation does not describe"
    if world.policy != "fcfs" and switches.take_back_encodes == 0:
        return "the book keeps what a victim of the same pass had planned to encode, so it breaks A4"
    if world.opens("reset-prefix-cache") and switches.isolate_stale == 0:
        return "its prefix-cache reset discards outputs by count, which the proved relation does not describe"
    if world.opens("sessions") and switches.settle_turn == 0:
        return "its turns end with computed ahead of confirmed, which the proved relation does not describe"
    return ""


def keeps_assumptions(world: World) -> bool:
    """Whether the proof's assumptions are the profile's own to keep, and kept."""
    return not broken_by_itself(world)


def disagreement(engines: str, what: str) -> Result:
    """The row that says so. `engines` names both, e.g. `exhaustive, machine`."""
    return Result(engine=engines, property="ENGINES-AGREE", verdict=Verdict.DISAGREE, coverage=what, note=_NOTE)


# --- what the others say to a violation -------------------------------------------------------------------------------


def machine_says(model: Model[Any], prop: Property[Any], trace: Trace) -> str:
    """Why the machine does not see this violation: at which step it differs; empty where it sees the same.

    The machine's semantics are plain `next_state`, and each property judged at each step.
    """
    taken = _own(trace)
    state = trace.steps[0].state
    for number, step in enumerate(taken.steps[1:], 1):
        assert step.action is not None  # only the first step has none
        after = model.next_state(state, step.action)
        refused = after.reason if isinstance(after, Refusal) else None
        if refused != step.refused:
            return f"step {number}, {step.action}: {'taken' if refused is None else f'refused ({refused})'}"
        if refused is None:
            if after != step.state:
                return f"step {number}, {step.action}: next_state leads to another state"
            state = after
    cut = cut_to_failure(model, prop, Witness(None, trace.steps[0].state, taken.actions))
    last = f"step {len(taken.actions)}{f', {taken.actions[-1]}' if taken.actions else ''}"
    if cut is None:
        return f"{last}: {prop.name} holds there"
    if len(cut.actions) < sum(step.refused is None for step in taken.steps[1:]):
        return f"{last}: {prop.name} is false after {len(cut.actions)} actions already"
    return ""


def relation_says(world: World, trace: Trace) -> str:
    """Why this read of a missing key is impossible in the proof's relation, with the step; empty where it is possible.

    Meant for traces of GATHER-AFTER-FREE under a world whose windows are checked.
    """
    from .proof.lemmas import safe
    from .proof.projection import project, projected_items
    from .proof.tie import terms_of, untied

    for number, (before, step) in enumerate(pairwise(trace.steps), 1):
        assert step.action is not None
        difference = next(untied(world, before.state, step.action, step.state), None)
        if difference is not None:
            return f"step {number}, {step.action}, is no step of the proved relation: {difference}"
    if len(trace.steps) < 2:
        return ""
    state, last = trace.steps[-2].state, trace.steps[-1]
    executing = next((at for at, step in enumerate(state.steps) if step.executed == 0), None)
    for miss in last.state.misses:
        if miss.item in projected_items(state, miss.request):
            life = project(world, state, miss.request, miss.item, executing)
            if safe(terms_of(world, trace.steps[0].state.setup), life):
                return (
                    f"step {len(trace.actions)}, {last.action}: in the proved relation the step finds the key of "
                    f"r{miss.request}, item {miss.item}"
                )
    return ""


def judged_by_others(model: Model[Any], trace: Trace) -> tuple[Trace, list[Result]]:
    """A violation that the exhaustive engine found, put to the machine.

    Returns the trace as it is reported (for progress with the fair run that ends badly), and the disagreements.
    """
    prop = next(each for each in model.properties() if each.name == trace.property)
    said = machine_says(model, prop, trace)
    if said:
        return trace, [disagreement("exhaustive, machine", f"{prop.name}: the machine's replay differs at {said}")]
    if prop.kind == "progress" and "fair_from" not in trace.shrink:
        whole = build_trace(model, prop, Witness(None, trace.steps[0].state, trace.actions), shortest=trace.shortest)
        trace = replace(whole, shrink={**trace.shrink, "fair_from": whole.shrink["fair_from"]})
    return trace, []


def shortened(model: Model[Any], trace: Trace, states: int = _SHORTEST_STATES) -> tuple[Trace, list[Result]]:
    """A violation that the machine found: every shorter run from the same initial state, breadth-first.

    Returns a shorter trace, or this one with what is known about its length, and the disagreements: the exhaustive
    search covers runs of this length without meeting the violation, or meets one that the machine does not see.
    """
    from .explore import Bounds, shortest

    taken = _own(trace)
    length = sum(step.refused is None for step in taken.steps[1:])
    first = trace.steps[0].state
    found = shortest(model, trace.property, known=length, initial=[first], bounds=Bounds(states=states))
    if found.contradicts:
        last = f"step {length}{f', {taken.actions[-1]}' if taken.actions else ''}"
        what = (
            f"{trace.property}: the machine's trace violates it at {last}; the exhaustive search saw "
            f"{found.exploration.states:,} states, every run of {found.searched} actions from there, without it"
        )
        return trace, [disagreement("machine, exhaustive", what)]
    if found.trace is None or len(found.trace.actions) >= length:
        proved = found.trace is not None or found.searched >= length - 1
        badge = "shortest possible with these numbers" if proved else found.badge
        return replace(trace, shortest=badge), []
    shorter, rows = judged_by_others(model, found.trace)
    shrink = {**trace.shrink, **shorter.shrink, "final_length": len(found.trace.actions)}
    return replace(shorter, shortest="shortest possible with these numbers", shrink=shrink), rows


def _own(trace: Trace) -> Trace:
    """The trace without the fair run behind it."""
    fair_from = trace.shrink.get("fair_from")
    return trace if fair_from is None else replace(trace, steps=trace.steps[: fair_from + 1])


# --- proofs and violations --------------------------------------------------------------------------------------------


def relation_differs(world: World, results: Sequence[Result], traces: Iterable[tuple[str, Trace]]) -> Iterator[Result]:
    """Reads of a missing key, put to the proof and its relation; one row for each engine that disagrees.

    `traces` are the violations found, with the engine that found each. Where the proof says that nothing is read after
    it was freed, such a read is a disagreement, whatever the relation says to its steps. Where nothing is proved, a
    step that breaks a FACT of the relation is none: it is for the proof to bear its facts out, and it did not.
    """
    if not keeps_assumptions(world):
        return
    proved = any(row.engine == "proof" and row.verdict is Verdict.PROVED for row in results)
    for engine, trace in traces:
        if trace.property != GATHER or engine == "proof":
            continue
        said = relation_says(world, trace)
        if proved:
            every = f"every step up to {len(trace.actions)}, {trace.actions[-1]}, is one of the proved relation"
            yield disagreement(
                f"{engine}, proof", f"OUTLIVES is proved, but {engine} has a read of a missing key: {said or every}"
            )
        elif said and not breaks_fact(said):
            yield disagreement(f"{engine}, proof", f"{GATHER}: {said}")


def breaks_fact(difference: str) -> bool:
    """Whether a step is outside the relation only because of a fact that the proof has to bear out."""
    return "FACT: " in difference
