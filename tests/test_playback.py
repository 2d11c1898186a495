"""Playback: what an action changed, what is refused, and whether a property holds to the end of the run."""

import pytest
from outlives.invariants.playback import Action, NotAsked, Playback
from outlives.model.errors import BadModel, BadTrace, Contradiction, UnknownName

of = Action.of
ADJACENT = {
    "requests": [
        {
            "prompt": 6,
            "outputs": 2,
            "items": [
                {"start": 0, "length": 2, "key": "k0", "size": 2},
                {"start": 3, "length": 2, "key": "k1", "size": 2},
            ],
        }
    ],
    "slots": 2,
    "budget": 16,
    "drafts": 1,
    "look_ahead": 1,
}
"""Two items a token apart, room for one."""
SHORT = {
    "requests": [{"prompt": 8, "outputs": 2, "items": [{"start": 4, "length": 2, "key": "k0", "size": 2}]}],
    "slots": 4,
    "budget": 4,
    "drafts": 1,
    "look_ahead": 1,
}
"""An item that begins where the first chunk ends."""


def playback(**more: object) -> Playback:
    given = {"property": "PROGRESS", "setup": ADJACENT, "profile": "0.24.0", **more}
    return Playback(**given)  # type: ignore[arg-type]


def test_an_action_shows_what_it_changed() -> None:
    run = playback()
    assert run.title == "profile 0.24.0, guard confirmed-lookahead"
    assert run.values["r0.status"] == "absent"
    assert run.take(of("arrive", request="r0")) == {"r0.status": "waiting", "r0.known": 6}
    assert (run.values["r0.status"], run.values["r0.known"]) == ("waiting", 6)


def test_a_refused_action_shows_why_and_changes_nothing() -> None:
    run = playback()
    before = run.values
    assert run.take(of("accept")) == "pipeline-empty"
    assert run.take(of("no such thing")) == "unknown-action"
    assert run.values == before


def test_progress_is_judged_from_where_the_run_is_left_alone() -> None:
    run = playback()
    run.take(of("arrive", request="r0"))
    found = run.judge()
    assert not found.holds
    assert found.why.startswith("PROGRESS is violated, left alone from step 1 on: r0 gets no further token")
    repaired = playback(profile="repaired")
    repaired.take(of("arrive", request="r0"))
    assert (repaired.judge().holds, repaired.judge().asked) == (True, True)


@pytest.mark.parametrize(("fair_from", "step"), [(None, 2), (1, 1)])
def test_the_fair_part_of_a_trace_is_judged_from_its_beginning(fair_from: int | None, step: int) -> None:
    run = playback(fair_from=fair_from)
    run.take(of("arrive", request="r0"))
    run.take(of("schedule"))
    assert f"left alone from step {step} on" in run.judge().why


def test_other_properties_are_judged_at_each_step_and_on_to_the_end() -> None:
    run = playback(property="GATHER-AFTER-FREE", setup=SHORT, profile="0.17.1")
    for action in (of("arrive", request="r0"), of("schedule"), of("accept")):
        run.take(action)
    assert run.judge().why.startswith("GATHER-AFTER-FREE is violated, step 3, accept(): ")
    short = playback(property="GATHER-AFTER-FREE", setup=SHORT, profile="0.17.1")
    short.take(of("arrive", request="r0"))
    assert "step 4 (of the fair run that follows), accept(): " in short.judge().why


def test_a_refused_action_counts_as_a_step() -> None:
    run = playback(property="GATHER-AFTER-FREE", setup=SHORT, profile="0.17.1")
    for action in (of("accept"), of("arrive", request="r0"), of("schedule"), of("accept")):
        run.take(action)
    assert run.judge().why.startswith("GATHER-AFTER-FREE is violated, step 4, accept(): ")


def test_a_run_that_puts_nothing_to_the_test_says_so() -> None:
    found = playback(property="GATHER-AFTER-FREE").judge()
    assert (found.holds, found.asked, found.situation) == (True, False, "a step read an item")


def test_options_are_those_of_a_configuration() -> None:
    assert playback(options={"relax": ["A1"], "without": ["preempt"]}).judge().holds
    with pytest.raises(UnknownName, match="unknown assumption 'A9'"):
        playback(options={"relax": ["A9"]})
    with pytest.raises(Contradiction):
        playback(options={"relax": ["A3"], "reader": "checked"})


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"subject": "tpu"}, UnknownName, "unknown subject 'tpu'"),
        ({"property": "P"}, UnknownName, "unknown property 'P'"),
        ({"profile": "9.9"}, UnknownName, "unknown profile"),
        ({"guard": "g"}, UnknownName, "unknown guard 'g'"),
        ({"setup": {}}, BadTrace, "the test: the setup lacks requests"),
        ({"property": "CONFORMS"}, NotAsked, "CONFORMS is not asked of subject model"),
        ({"property": "NO-EXCEPTION"}, NotAsked, "NO-EXCEPTION is not asked of subject model"),
        ({"subject": "vllm", "options": {"relax": ["A1"]}}, NotAsked, "the run relaxes A1"),
    ],
)
def test_what_cannot_be_asked_is_said(given: dict[str, object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        playback(**given)


RAISES = """
from dataclasses import replace
def broken(rules):
    def advance(counters, count):
        raise ValueError("mine")
    return replace(rules, advance=advance)
"""


def test_a_rule_of_ones_own_that_raises_is_named(tmp_path) -> None:
    (tmp_path / "rules.py").write_text(RAISES, encoding="utf-8")
    run = playback(options={"fault": f"{tmp_path / 'rules.py'}:broken"})
    run.take(of("arrive", request="r0"))
    with pytest.raises(BadModel, match="ValueError: mine"):
        run.take(of("schedule"))
    with pytest.raises(BadModel, match="ValueError: mine"):
        run.judge()
