"""The because-chain: for each way to violate a property, what the sentences must say, with their numbers."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from outlives.invariants.report.content import explain
from outlives.invariants.report.story import Story, tell
from outlives.invariants.report.witness import watch
from outlives.invariants.verdict import Step, Trace
from outlives.model.contract import Action, Range
from outlives.model.lifetime import Counters
from outlives.model.scenarios import SCENARIOS
from outlives.model.setup import Scope
from outlives.model.world import World
from report_cases import (
    ACCEPT,
    ARRIVE,
    ROLL_BACK,
    ROLL_BACK_ACTIONS,
    SCHEDULE,
    adjacent,
    chunk_end,
    fixed,
    of,
    roll_back,
    trace_of,
    world,
)

ONE_ITEM = fixed(
    {"items": 1, "lead": 0, "length": 2, "tail": 2, "outputs": 2, "slots": 2, "budget": 4, "drafts": 0,
     "look_ahead": 0, "depth": 2, "whole_items": 0, "strangers": 2}
)  # fmt: skip
"""Item [0,2) in a prompt of 4 that one pass takes whole."""
SINGLE_TOKENS = ONE_ITEM._replace(budget=Range(1, 1), depth=Range(3, 3))
"""The same, one token a pass and three steps in flight."""


def story(there: World, scope: Scope, actions: Sequence[Action], name: str = "GATHER-AFTER-FREE") -> Story:
    return tell(trace_of(there, scope, actions, name), there)


def kinds(told: Story) -> list[tuple[str, int]]:
    return [(event.kind, event.step) for event in told.events]


# --- never encoded ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "scenario", "reason"),
    [
        ("0.11.0", "chunk-end", "the gate knows no look-ahead: it looked at [0,4), and item0 starts at 4"),
        ("0.17.1", "chunk-end", "the gate's shortcut left item0 out: no position of it is in [0,4)"),
        ("0.11.0", "adjacent", "the gate cut the chunk from 7 to 4 tokens, to end at 4: item1 [4,6) needs to encode"),
        ("0.12.0", "whole-items", "item0 [4,7) may not be split, and the chunk of 5 tokens would end at 5"),
    ],
)
def test_a_reader_past_the_gate(profile: str, scenario: str, reason: str) -> None:
    told = story(world(profile), SCENARIOS[scenario].small, (ARRIVE, SCHEDULE, ACCEPT))
    assert kinds(told) == [("not-encoded", 2), ("read", 3)]
    assert reason in told.chain[0]
    assert "the drafter read [1,5) at step 3 and needed 1 position of it" in told.headline


def test_an_encode_that_left_too_late_is_told_from_one_that_never_left() -> None:
    scope = SCENARIOS["chunk-end"].small
    assert "was never encoded" in story(world("0.17.1"), scope, (ARRIVE, SCHEDULE, ACCEPT)).headline
    late = story(world("0.17.1"), scope, (ARRIVE, SCHEDULE, SCHEDULE, ACCEPT)).headline
    assert "was not encoded in time" in late
    assert "its encode left only at step 3" in late


def test_an_encode_that_the_environment_left_out() -> None:
    there = world(relaxed=frozenset({"A4"}))
    told = story(there, ONE_ITEM, (ARRIVE, of("schedule", omit="k0"), ACCEPT))
    assert "step 2 planned k0 for r0, but the environment left the encode out (A4 relaxed)" in told.headline
    assert "the target read [0,4)" in told.headline


# --- released ---------------------------------------------------------------------------------------------------------


def test_a_release_by_the_guard_tells_how_far_short_it_was() -> None:
    told = roll_back().story
    assert kinds(told) == [
        ("planned", 2),
        ("released", 5),
        ("evicted", 6),
        ("announced", 7),
        ("not-encoded", 7),
        ("read", 9),
    ]
    assert "at step 5 by guard optimistic-at-output: end <= computed, that is 3 <= 4" in told.headline
    assert "3 positions short of confirmed" in told.headline
    assert told.events[1].numbers == {"computed": 4, "placeholders": 4, "in_flight": 3, "end": 3, "short": 3}
    assert told.events[-1].numbers["back"] == 3


def test_a_preempted_entry_is_dropped_ahead_of_the_notice() -> None:
    actions = (ARRIVE, SCHEDULE, SCHEDULE, ACCEPT, of("preempt", request="r0"), of("evict", count=1), ACCEPT)
    told = story(world(guard="retain", relaxed=frozenset({"A1"})), SINGLE_TOKENS, actions)
    assert "was released at step 5 by preemption, and the worker lost it at step 6, ahead of the" in told.headline
    assert ("dropped", 6) in kinds(told)
    assert "because it was preempted" in told.chain[2]


def test_a_right_release_with_a_notice_that_overtakes() -> None:
    actions = (ARRIVE, SCHEDULE, SCHEDULE, ACCEPT, of("evict", count=1), ACCEPT)
    told = story(world(guard="confirmed", relaxed=frozenset({"A1"})), SINGLE_TOKENS, actions)
    assert "that is 2 <= 2 - 0, with all of it confirmed, and the worker lost it at step 5" in told.headline
    assert "the target read [1,2) at step 6" in told.headline


def test_a_replaced_guard_is_told_by_its_numbers_and_not_by_the_formula() -> None:
    def careless(c: Counters, end: int, look_ahead: int) -> bool:
        return end <= c.computed

    base = world(relaxed=frozenset({"A3"}), reader="any")
    there = replace(base, rules=replace(base.rules, guard=careless))
    told = story(there, ROLL_BACK, ROLL_BACK_ACTIONS)
    assert "by the condition that replaces guard confirmed, with end 3, computed 4, placeholders 4" in told.headline


# --- stuck --------------------------------------------------------------------------------------------------------


def test_a_stuck_request_tells_the_cut_and_the_holder() -> None:
    told = adjacent().story
    assert "r0 is stuck at 3 of 7 known tokens (running): item1 [4,6) needs 2 slots, and 0 of 2" in told.headline
    assert "the cut leaves 4 - (3 + 1) = 0 of the tokens before it" in told.chain[0]
    assert "end + look-ahead <= computed - placeholders, that is 4 + 1 <= 3 - 0, which is false" in told.chain[1]
    assert "refused (nothing-scheduled)" in told.chain[2]


# --- everything else -------------------------------------------------------------------------------------------------


def test_another_property_is_told_by_its_own_explanation_and_the_step() -> None:
    there = world(relaxed=frozenset({"A4"}))
    told = story(there, ONE_ITEM, (ARRIVE, of("schedule", omit="k0")), "PLANNED-ENCODED")
    assert told.headline.startswith("PLANNED-ENCODED is violated at step 2, schedule(omit=k0): the book has k0")
    assert told.chain[0] == "k0 entered the book for r0."


def test_a_trace_of_another_scheduler_is_told_by_its_own_explanation() -> None:
    actions = (ARRIVE, SCHEDULE, ACCEPT)
    trace = trace_of(world("0.17.1"), SCENARIOS["chunk-end"].small, actions)
    assert watch(trace, world("0.17.1")) is not None
    assert watch(trace, world("repaired")) is None
    told = tell(trace, world("repaired"))
    assert told.headline.startswith("GATHER-AFTER-FREE is violated at step 3, accept(): the draft of r0 reads [1,5)")


def test_watching_changes_no_state() -> None:
    there = world(guard="optimistic-at-output", relaxed=frozenset({"A3"}), reader="any")
    trace = trace_of(there, ROLL_BACK, ROLL_BACK_ACTIONS)
    seen = watch(trace, there)
    assert seen is not None
    assert [moment.after for moment in seen.moments] == [step.state for step in trace.steps[1:]]
    assert [(each.left_at, each.executed_at, each.processed_at) for each in seen.flights] == [
        (2, 5, 5),
        (4, 8, 8),
        (7, 9, None),
    ]


def test_refused_steps_are_shown_and_change_nothing() -> None:
    trace = trace_of(world("0.17.1"), SCENARIOS["chunk-end"].small, (ARRIVE, ARRIVE, SCHEDULE, ACCEPT))
    shown = explain(trace, world=world("0.17.1"))
    assert (shown.lines[2].refused, shown.lines[2].changes) == ("already-arrived", ())
    assert "at step 3 the gate's shortcut" in shown.story.headline


def test_steps_of_the_fair_run_are_marked() -> None:
    assert [line.fair for line in adjacent().lines] == [False, False, True, True]
    assert not any(line.fair for line in chunk_end().lines)


def test_a_trace_without_steps_still_has_a_headline() -> None:
    empty = Trace(steps=(Step(None, 0),), property="P", why="")
    assert tell(empty).headline == "P is violated at the initial state: the model gives no explanation."
