"""Replay: violations that happen again, traces that pass or go another way, options that contradict, names that do not
fit, and files written without harm to others. Shape and hostile bytes are in `test_trace`.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from outlives.invariants.configuration import Configuration
from outlives.invariants.replay import Violation, replay, replay_on, write_trace
from outlives.invariants.trace_file import trace_bytes
from outlives.invariants.verdict import Step, Trace, Verdict
from outlives.model.contract import Action
from outlives.model.errors import BadTrace, Contradiction, UnknownName
from outlives.model.trace import parse_trace
from toy_models import CounterModel, LockModel
from trace_samples import BEGIN, MISS_WHY, changed, changed_meta, miss_trace, run_trace, stuck_trace

# --- it happens again -------------------------------------------------------------------------------------------------


def test_a_read_of_what_was_never_encoded_happens_again(tmp_path: Path) -> None:
    again = replay(write_trace(*miss_trace(), tmp_path / "miss"))
    assert again.outcome == "violated again"
    assert again.status == 1
    assert again.violations == (Violation("GATHER-AFTER-FREE", 3, MISS_WHY),)
    assert again.divergence is None
    assert [(row.property, row.verdict) for row in again.results] == [
        ("GATHER-AFTER-FREE", Verdict.VIOLATED),
        ("PROGRESS", Verdict.PASSED),
    ]
    assert again.trace.actions == BEGIN
    assert again.trace.steps == miss_trace()[0].steps
    assert again.trace.shortest == "shortest possible (as recorded)"
    assert again.trace.shrink == {"found_length": 9, "final_length": 3}


def test_a_stuck_request_is_stuck_again(tmp_path: Path) -> None:
    again = replay(write_trace(*stuck_trace(), tmp_path / "stuck"))
    assert again.outcome == "violated again"
    (found,) = again.violations
    assert (found.property, found.step) == ("PROGRESS", 3)
    assert "item1 [4,6) needs 2 slots, 0 of 2 are reclaimable" in found.why
    assert "end 4, computed 3, placeholders 0, look-ahead 1" in found.why


def test_a_progress_trace_cut_short_gets_its_fair_run_back() -> None:
    trace, configuration = stuck_trace()
    short = Trace(steps=trace.steps[:2], property="PROGRESS", why="")
    again = replay(parse_trace(trace_bytes(short, configuration)))
    assert again.violations[0].step == 1
    assert again.trace.actions == BEGIN
    assert again.trace.shrink["fair_from"] == 1
    assert again.trace.shortest == "as replayed"


def test_progress_is_judged_where_the_fair_run_began() -> None:
    trace, configuration = stuck_trace()
    long = Trace(steps=trace.steps, property="PROGRESS", why="", shrink={"fair_from": 1})
    again = replay(parse_trace(trace_bytes(long, configuration)))
    assert again.violations[0].step == 1
    assert again.divergence is None


def test_what_was_mended_passes_and_says_where_it_goes_another_way() -> None:
    again = replay(changed_meta(profile="0.33.0", guard="confirmed"))
    assert again.outcome == "passes"
    assert again.status == 0
    assert again.violations == ()
    assert again.divergence is not None
    assert again.divergence.step == 2
    assert str(again.divergence).startswith("from step 2, schedule() on it does not go as recorded: other values (")
    assert "steps: ('r0[0,4)',) in the file, ('r0[0,4); encode k0',) now" in again.divergence.changes
    assert "book.free: 4 in the file, 2 now" in again.divergence.changes
    assert str(again.divergence) in again.results[0].note
    assert again.trace.actions == BEGIN


def test_a_run_that_does_not_test_the_property_says_so() -> None:
    trace, configuration = miss_trace()
    again = replay(
        parse_trace(trace_bytes(Trace(steps=trace.steps[:2], property="GATHER-AFTER-FREE", why=""), configuration))
    )
    assert again.outcome == "passes"
    assert "never put to the test: no step at which a step read an item" in again.results[0].note


def test_another_property_that_is_violated_is_named() -> None:
    again = replay(changed_meta(property="PROGRESS"))
    assert again.outcome == "violates another property"
    assert again.status == 1
    assert [(row.property, row.verdict) for row in again.results] == [
        ("PROGRESS", Verdict.PASSED),
        ("GATHER-AFTER-FREE", Verdict.VIOLATED),
    ]


def test_a_recorded_property_outside_the_scenario_is_judged_too() -> None:
    assert [row.property for row in replay(changed_meta(property="SLOTS-ADD-UP")).results] == [
        "SLOTS-ADD-UP",
        "GATHER-AFTER-FREE",
        "PROGRESS",
    ]


# --- it goes another way ----------------------------------------------------------------------------------------------


def test_refusals_are_replayed_and_compared() -> None:
    configuration = Configuration(profile="0.17.1", scenario="chunk-end")
    actions = (Action.of("accept"), *BEGIN, Action.of("schedule"))
    trace = run_trace(configuration, "chunk-end", actions, "GATHER-AFTER-FREE")
    assert [step.refused for step in trace.steps] == [None, "pipeline-empty", None, None, None, "engine-dead"]
    again = replay(parse_trace(trace_bytes(trace, configuration)))
    assert again.divergence is None
    assert again.violations == (Violation("GATHER-AFTER-FREE", 4, MISS_WHY),)
    assert [step.refused for step in again.trace.steps] == [None, "pipeline-empty", None, None, None]

    def taken(root: dict[str, Any]) -> None:
        root["states"][1]["#meta"]["refused"] = None

    other = replay(changed(taken, (trace, configuration)))
    assert str(other.divergence) == (
        "from step 1, accept() on it does not go as recorded: it was taken then and is refused (pipeline-empty) now"
    )
    assert other.violated_again


def test_a_forged_value_is_found_in_the_initial_state() -> None:
    again = replay(changed(lambda root: root["states"][0]["r0"].update(computed={"#bigint": "7"}, more="x")))
    assert again.divergence is not None
    assert again.divergence.step == 0
    assert again.divergence.changes == ("r0.computed: 7 in the file, 0 now", "r0.more: 'x' in the file, nothing now")
    assert str(again.divergence).startswith("from the initial state on")
    assert again.trace.shortest == "as replayed"


def test_true_is_not_one() -> None:
    again = replay(changed(lambda root: root["states"][3]["r0"].update(drafts=False)))
    assert again.divergence is not None
    assert again.divergence.changes == ("r0.drafts: False in the file, 0 now",)


def test_many_changes_are_cut() -> None:
    many = {f"field{number}": True for number in range(40)}
    again = replay(changed(lambda root: root["states"][1].update(r0=many)))
    assert again.divergence is not None
    assert len(again.divergence.changes) == 13
    assert re.fullmatch(r"and 3\d more", again.divergence.changes[-1])


# --- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"profile": "0.17.1"},
        {"guard": "optimistic-after-advance"},
        {"scenario": "chunk-end"},
        {"reader": "checked"},
        {"without": ("preempt",)},
        {"policy": "fcfs"},
        {"policy": "both"},
        {"numbers": {"turns": (1, 2)}, "synchronous": False},
        {"numbers": {"slots": (4, 9), "requests": (1, 1), "items": (1, 2), "lead": (4, 4), "tail": (2, 2)}},
        {"guard": None, "relax": (), "numbers": {}, "split": False},
    ],
)
def test_options_that_repeat_the_trace_are_no_harm(options: dict[str, Any]) -> None:
    assert replay(changed_meta(), options).violated_again


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"profile": "0.33.0"}, "--profile 0.33.0 contradicts the file, which was made with profile 0.17.1"),
        ({"guard": "confirmed"}, "--guard confirmed contradicts .* guard optimistic-after-advance"),
        ({"relax": ("A1",)}, "--relax A1 contradicts the file, which was made with none"),
        ({"reader": "any"}, "--reader any contradicts the file, which was made with reader checked"),
        (
            {"without": ("look-ahead",)},
            "--without look-ahead contradicts the file, which was made with abort, kv-load-failure, preempt, "
            "reset-encoder-cache, reset-prefix-cache, sessions. Drop",
        ),
        ({"policy": "priority"}, "--policy priority contradicts the file, which was made with policy both"),
        ({"synchronous": True}, "--synchronous True contradicts the file, which was made with no synchronous"),
        ({"encoder_decoder": True}, "--encoder-decoder True contradicts .* with no encoder-decoder"),
        ({"numbers": {"turns": (2, 2)}}, "--turns 2..2 contradicts the file, which was made with 1"),
        ({"scenario": "adjacent"}, "--scenario adjacent contradicts"),
        ({"fault": "x.py:f"}, "--fault x.py:f contradicts the file, which was made with no fault"),
        ({"items_anywhere": True}, "--items-anywhere True contradicts the file, which was made with no items-anywhere"),
        ({"numbers": {"slots": (5, 9)}}, "--slots 5..9 contradicts the file, which was made with 4"),
        ({"numbers": {"requests": (2, 2)}}, "--requests 2..2 contradicts the file, which was made with 1"),
        ({"numbers": {"length": (3, 5)}}, "--length 3..5 contradicts the file, which was made with 2"),
    ],
)
def test_options_that_contradict_the_trace(options: dict[str, Any], words: str) -> None:
    with pytest.raises(Contradiction, match=words):
        replay(changed_meta(), options)


def test_an_unknown_option_lists_the_known_ones() -> None:
    with pytest.raises(UnknownName, match=r"unknown guard 'nobody'.*Known: .*confirmed"):
        replay(changed_meta(), {"guard": "nobody"})


def test_properties_may_be_chosen_beside_the_recorded_one() -> None:
    again = replay(changed_meta(), {"properties": ("IDLE-EXACT",)})
    assert [row.property for row in again.results] == ["GATHER-AFTER-FREE", "IDLE-EXACT"]


# --- models that are not ours -----------------------------------------------------------------------------------------


def _toy_trace(model: Any, actions: tuple[Action, ...], prop: str) -> Trace:
    (state, *_) = model.initial_states()
    steps = [Step(None, state)]
    for action in actions:
        state = model.next_state(state, action)
        steps.append(Step(action, state))
    return Trace(steps=tuple(steps), property=prop, why="over")


def test_another_model_replays_by_its_own_names() -> None:
    trace = _toy_trace(CounterModel(faulty=True, limit=3), (Action.of("add", amount=4),), "BELOW-LIMIT")
    content = trace_bytes(trace, None)
    assert json.loads(content)["vars"] == ["value", "limit"]
    again = replay_on(parse_trace(content), CounterModel(faulty=True, limit=3))
    assert again.violations == (Violation("BELOW-LIMIT", 1, "the value is 4, the limit 3"),)
    assert again.configuration is None
    mended = replay_on(parse_trace(content), CounterModel(faulty=False, limit=3))
    assert mended.outcome == "passes"
    assert "it was taken then and is refused (limit) now" in str(mended.divergence)
    with pytest.raises(BadTrace, match="names no profile: it is of a model that outlives does not have"):
        replay(parse_trace(content))
    with pytest.raises(BadTrace, match="unknown property 'BELOW-LIMIT'"):
        replay_on(parse_trace(content), LockModel(faulty=False))


def test_an_initial_state_is_judged_as_well() -> None:
    trace = _toy_trace(CounterModel(faulty=False, limit=-1), (), "BELOW-LIMIT")
    again = replay_on(parse_trace(trace_bytes(trace, None)), CounterModel(faulty=False, limit=-1))
    assert again.violations == (Violation("BELOW-LIMIT", 0, "the value is 0, the limit -1"),)
    assert again.trace.actions == ()
