"""How runs end, counted over every state: deadlocks, standstills, stuck cycles, and what reports say of them."""

import json
from pathlib import Path
from typing import Any

import pytest
from outlives.invariants.command import main
from outlives.invariants.endings import CYCLE, DEADLOCK, STANDSTILL, ending_properties, ends_of, how_runs_end
from outlives.invariants.explore import Exploration, explore
from outlives.invariants.properties import scheduler_properties
from outlives.model.contract import Property
from outlives.model.scheduler import SchedulerModel
from outlives.model.state import State
from outlives.model.world import ROUTES, World
from worlds import FixedModel, action, fixed, run, setup, world

NUMBERS = setup([(1, 3), (3, 5)], prompt=6, slots=2, budget=6, drafts=1, look_ahead=1)
SHUT = tuple(route for route in ROUTES if route != "look-ahead")
FEW = tuple(route for route in SHUT if route not in ("preempt", "abort"))
STUCK = ("arrive(request=r0)", "schedule()", "accept()")


def counting(of: World) -> dict[str, Property[State]]:
    return {each.name: each for each in ending_properties(of, scheduler_properties(of))}


def searched(of: World) -> Exploration:
    model = FixedModel(of, [NUMBERS])
    model._properties = (*model._properties, *ending_properties(of, model._properties))
    return explore(model)


def test_a_deadlock_is_a_state_in_which_nothing_can_happen_although_somebody_waits() -> None:
    model = fixed("0.24.0", NUMBERS, closed=SHUT)
    deadlock = counting(model.world)[DEADLOCK]
    stuck, waiting, empty = run(model, *STUCK), run(model, STUCK[0]), run(model)
    assert not deadlock.holds(stuck, None, stuck)
    assert deadlock.holds(waiting, action(STUCK[0]), waiting)
    assert deadlock.holds(empty, None, empty)


def test_a_standstill_may_still_be_left_with_help_from_outside() -> None:
    model = fixed("0.24.0", NUMBERS, closed=FEW)
    properties = counting(model.world)
    stuck = run(model, *STUCK)
    assert properties[DEADLOCK].holds(stuck, None, stuck), "it can be aborted"
    assert not properties[STANDSTILL].holds(stuck, None, stuck)
    assert properties[CYCLE].holds(stuck, None, stuck)
    waiting = run(model, STUCK[0])
    assert properties[STANDSTILL].holds(waiting, None, run(model))


def test_a_scheduler_that_goes_round_without_a_request_is_a_stuck_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fair run takes a stranger's slot and gives it back, for ever: nobody is at rest, nobody gets on."""
    plain = SchedulerModel.fair_action

    def restless(model: SchedulerModel, state: State) -> Any:
        if state.steps or not state.waiting:
            return plain(model, state)
        return action(f"occupy(slots={1 - state.book.strangers})")

    monkeypatch.setattr(SchedulerModel, "fair_action", restless)
    of = world(closed=SHUT)
    model = FixedModel(of, [NUMBERS._replace(strangers=1)])
    model._properties = (*model._properties, *ending_properties(of, model._properties))
    found = explore(model)
    told = ends_of(found)
    assert told["stuck cycles"] == found.broken["PROGRESS"] > 0
    assert told["standstills"] == told["deadlocks"] == 0
    assert how_runs_end([found])["stuck cycles"] == f"{told['stuck cycles']:,} (shortest way: arrive(request=r0))"


def test_every_state_without_progress_is_a_standstill_or_a_stuck_cycle() -> None:
    for closed in (FEW, SHUT):
        found = searched(world("0.24.0", closed=closed))
        told = ends_of(found)
        assert told["standstills"] + told["stuck cycles"] == found.broken["PROGRESS"] > 0
        assert (told["deadlocks"] > 0) is (closed == SHUT)
        assert len(found.traces[STANDSTILL].actions) == len(found.traces["PROGRESS"].actions)
    sound = ends_of(searched(world(closed=FEW)))
    assert sound.pop("nothing left to do") > 0
    assert set(sound.values()) == {0}


def test_a_search_that_does_not_judge_progress_counts_deadlocks_alone() -> None:
    of = world("0.24.0")
    judged = [each for each in scheduler_properties(of) if each.name != "PROGRESS"]
    assert [each.name for each in ending_properties(of, judged)] == [DEADLOCK]


# --- reports ----------------------------------------------------------------------------------------------------------


def explored(tmp_path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    main(["explore", "--json", "--out", str(tmp_path / "out"), *options])
    report = json.loads(capsys.readouterr().out)
    assert isinstance(report, dict)
    return report


def test_the_report_says_how_many_and_the_shortest_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stuck = (
        "--profile",
        "0.24.0",
        "--scope",
        "adjacent-items",
        *(word for route in SHUT for word in ("--without", route)),
    )
    report = explored(tmp_path, capsys, *stuck, "--stats")
    told = report["statistics"]["adjacent-items"]
    ends = report["provenance"]["states in which runs end"]
    for words in ("deadlocks", "standstills"):
        way = ", ".join(told["shortest_ways"][words])
        assert ends[words] == f"{told[words]:,} (shortest way: {way})"
        assert told[words] > 0
    assert ends["stuck cycles"] == told["stuck_cycles"] == 0
    assert all(row["property"] not in (DEADLOCK, STANDSTILL, CYCLE) for row in report["results"])
    legend = report["tables"]["ends"]["legend"]
    assert f"adjacent-items: standstills, shortest way: {', '.join(told['shortest_ways']['standstills'])}" in legend


def test_what_is_not_judged_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = explored(tmp_path, capsys, "--scope", "two-at-once", "--property", "IDLE-EXACT", "--stats")
    (row,) = report["tables"]["ends"]["rows"]
    assert (row["deadlocks"], row["standstills"], row["stuck cycles"]) == ("0", "not judged", "not judged")


def test_an_action_that_never_fired_says_whether_its_guard_was_in_the_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A cache smaller than the item: the request is refused at its arrival, everywhere."""
    report = explored(tmp_path, capsys, "--scope", "adjacent-items", "--slots", "1", "--stats")
    lines = report["not_reached"]
    assert "action arrive never fired: its guard was never true (never-fits 1)" in lines
    assert "action accept never fired: no state offers it" in lines
    rows = {row["action"]: row["never fired in"] for row in report["tables"]["actions"]["rows"]}
    assert rows["arrive"] == "anywhere (always refused)"
    assert rows["accept"] == "anywhere (never offered)"
