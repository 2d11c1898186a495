"""What guards cost: slots held for nothing, counted by hand in small runs; and the formula of progress on a grid."""

from dataclasses import replace
from pathlib import Path

import pytest
from command_runs import Run, runner
from outlives.invariants import price_run
from outlives.invariants.price import PRICED, Price, price
from outlives.invariants.price_progress import (
    GRID,
    Point,
    confirmed_by_search,
    is_spoken_of,
    least_gap_factor,
    progresses,
)
from outlives.model.lifetime import GUARDS, WEAKEST

SCOPE = {scope.name: scope for scope in PRICED}
ANY = SCOPE["A3 any, in the prompt"]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(capsys)


def test_never_releasing_costs_the_item_in_every_pass_after_the_earliest_safe_release() -> None:
    # One pass computes prompt and item, and the output of each pass is in before the next: no drafts, one in flight.
    plain = replace(ANY, setup=ANY.setup._replace(budget=8, drafts=0, depth=1))
    # Known tokens 6, then 7 and 8: passes at computed 0, 6 and 7. From the second on the item of 4 slots is held.
    assert price(GUARDS["retain"], plain)[:3] == (8, 8, False)
    assert price(GUARDS["confirmed"], plain)[:3] == (0, 0, False)


def test_what_is_asked_at_outputs_alone_costs_one_pass_with_two_steps_in_flight() -> None:
    found = {name: price(GUARDS[name], ANY) for name in ("confirmed", "confirmed-lookahead", "retain")}
    # A chunk ends with the item, at 4: the look-ahead waits for the next one.
    assert {name: each[:3] for name, each in found.items()} == {
        "confirmed": (0, 4, False),
        "confirmed-lookahead": (4, 8, False),
        "retain": (8, 12, False),
    }


def test_a_guard_that_lets_go_too_early_is_called_early() -> None:
    scope = SCOPE["A3 any, anywhere"]
    assert price(GUARDS["optimistic-at-output"], scope).early
    assert not price(GUARDS["confirmed"], scope).early
    assert price(WEAKEST["true-window"], scope).early
    assert not price(WEAKEST["true-window"], SCOPE["A3 true, anywhere"]).early


@pytest.mark.parametrize(
    ("guard", "factors"),
    [
        ("confirmed", (0, 1)),
        ("confirmed-lookahead", (1, 2)),
        ("settled", (0, 1)),
        ("retain", (None, None)),
    ],
)
def test_the_gap_below_which_a_prompt_is_stuck(guard: str, factors: tuple[int | None, int | None]) -> None:
    assert tuple(least_gap_factor(GUARDS[guard], cut) for cut in (0, 1)) == factors


@pytest.mark.parametrize("guard", ["confirmed", "confirmed-lookahead", "retain"])
@pytest.mark.parametrize("cut", [0, 1])
def test_the_explorer_confirms_the_formula(guard: str, cut: int) -> None:
    points = tuple(point for point in GRID if point.first == 2 and point.budget == 3)
    judged = list(confirmed_by_search(GUARDS[guard], cut, points))
    assert [point for point, said, seen in judged if said is not seen] == []
    assert {seen for point, _, seen in judged if point.slots == 4} == {True}
    if (guard, cut) != ("confirmed", 0):
        assert {seen for point, _, seen in judged if point.slots == 3} >= {False}


def test_the_published_facts() -> None:
    """Two items of 576 slots, as in the thread; a look-ahead of one and of three."""
    for look_ahead in (1, 3):
        for gap in range(8):
            point = Point(look_ahead, gap, 576, 576, 576, 2048)
            assert progresses(GUARDS["confirmed"], 1, point) is (gap >= look_ahead)
            assert progresses(GUARDS["confirmed-lookahead"], 1, point) is (gap >= 2 * look_ahead)
            assert progresses(GUARDS["confirmed-lookahead"], 1, point._replace(slots=1152))
    assert not progresses(GUARDS["confirmed"], 0, Point(0, 9, 2, 5, 4, 8))


@pytest.mark.campaign
@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("cut", [0, 1])
def test_the_explorer_confirms_the_formula_on_the_whole_grid(guard: str, cut: int) -> None:
    judged = list(confirmed_by_search(GUARDS[guard], cut))
    assert len(judged) == (len(GRID) if is_spoken_of(GUARDS[guard]) else 0)
    assert [point for point, said, seen in judged if said is not seen] == []


def test_the_command_shows_both_tables(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(price_run, "price", lambda guard, scope: Price(1, None, True, 12))
    monkeypatch.setattr(price_run, "confirmed_by_search", lambda guard, cut: [(GRID[0], True, True)])
    done = run("table", "--price", "--guard", "confirmed-lookahead", "--json")
    assert done.status == 0
    assert done.object["tables"]["price"]["rows"][0]["A3 any, anywhere"] == "1 to no bound, early"
    row = done.object["tables"]["progress-formula"]["rows"][0]
    assert (row["chunk cut at the second item"], row["cut a look-ahead before it"]) == ("gap < L", "gap < 2L")
    monkeypatch.setattr(price_run, "confirmed_by_search", lambda guard, cut: [(GRID[0], True, False)])
    done = run("table", "--price", "--guard", "confirmed")
    assert done.status == 5
    assert "The explorer contradicts the formula: confirmed, cut 0: Point(" in done.out
