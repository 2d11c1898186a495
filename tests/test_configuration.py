"""The record of a run: what its fields mean, what contradicts, and that its plain form comes back."""

import itertools
from typing import Any

import pytest
from outlives.invariants.configuration import Configuration
from outlives.model.contract import Range
from outlives.model.errors import Contradiction, OutlivesError, OutOfRange, UnknownName
from outlives.model.profiles import PROFILES
from outlives.model.scenarios import SCENARIOS

FULL: dict[str, Any] = {
    "profile": "0.24.0",
    "guard": "settled",
    "relax": ("A1", "A4"),
    "reader": "true",
    "without": ("abort",),
    "items_anywhere": True,
    "split": True,
    "arrivals": "any",
    "numbers": {"slots": (2, 4), "depth": (3, 3)},
}


def test_the_plain_form_comes_back() -> None:
    asked = Configuration(**FULL)
    again = Configuration.from_plain(asked.plain())
    assert again.plain() == asked.plain()
    assert again.world() == asked.world()
    assert again.scope() == asked.scope()


@pytest.mark.parametrize(("profile", "scenario"), list(itertools.product(PROFILES, [None, *SCENARIOS])))
def test_every_profile_in_every_scenario_comes_back(profile: str, scenario: str | None) -> None:
    asked = Configuration(profile=profile, scenario=scenario)
    again = Configuration.from_plain(asked.plain())
    assert (again.plain(), again.world(), again.scope()) == (asked.plain(), asked.world(), asked.scope())


@pytest.mark.parametrize(
    ("relax", "reader", "relaxed", "works_with"),
    [
        ((), None, set(), "checked"),
        ((), "checked", set(), "checked"),
        (("A3",), None, {"A3"}, "any"),
        (("A3",), "true", {"A3"}, "true"),
        ((), "true", {"A3"}, "true"),
        ((), "any", {"A3"}, "any"),
        (("A1", "A1"), None, {"A1"}, "checked"),
    ],
)
def test_a_reader_other_than_checked_relaxes_a3(
    relax: tuple[str, ...], reader: Any, relaxed: set[str], works_with: str
) -> None:
    asked = Configuration(relax=relax, reader=reader)
    assert asked.relaxed == relaxed
    assert (asked.world().reader, asked.world().relaxed) == (works_with, relaxed)
    assert Configuration.from_plain(asked.plain()).world() == asked.world()


def test_the_guard_that_is_asked_for_replaces_the_profiles() -> None:
    assert Configuration(profile="0.20.0").world().guard.name == "optimistic-at-output"
    assert Configuration(profile="0.20.0", guard="retain").world().guard.name == "retain"


def test_a_scenario_closes_its_routes_and_judges_its_properties() -> None:
    asked = Configuration(scenario="gap-one", without=("look-ahead",))
    world = asked.world()
    assert world.closed == SCENARIOS["gap-one"].closed | {"look-ahead"}
    assert [prop.name for prop in asked.judged(world)] == ["GATHER-AFTER-FREE", "PROGRESS"]
    alone = Configuration(scenario="gap-one", properties=("IDLE-EXACT",))
    assert [prop.name for prop in alone.judged(alone.world())] == ["IDLE-EXACT"]


def test_numbers_replace_the_ranges_of_their_names_and_no_others() -> None:
    plain, asked = Configuration().scope(), Configuration(numbers={"slots": (2, 4), "requests": (1, 1)}).scope()
    assert asked == plain._replace(slots=Range(2, 4), requests=1)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"profile": "none"}, UnknownName),
        ({"guard": "none"}, UnknownName),
        ({"relax": ("A5",)}, UnknownName),
        ({"reader": "none"}, UnknownName),
        ({"without": ("none",)}, UnknownName),
        ({"policy": "none"}, UnknownName),
        ({"scenario": "none"}, UnknownName),
        ({"properties": ("none",)}, UnknownName),
        ({"relax": ("A3",), "reader": "checked"}, Contradiction),
        ({"scenario": "gap-one", "numbers": {"slots": (1, 1)}}, Contradiction),
        ({"scenario": "gap-one", "items_anywhere": True}, Contradiction),
        ({"scenario": "gap-one", "synchronous": True}, Contradiction),
        ({"diffusion": True, "numbers": {"drafts": (0, 0)}}, Contradiction),
        ({"diffusion": True, "encoder_decoder": True}, Contradiction),
        ({"diffusion": True, "profile": "0.20.0"}, Contradiction),
        ({"encoder_decoder": True, "items_anywhere": True}, Contradiction),
        ({"encoder_decoder": True, "numbers": {"turns": (2, 2)}}, Contradiction),
        ({"encoder_decoder": True, "profile": "0.12.0"}, Contradiction),
        ({"without": ("sessions",), "numbers": {"turns": (2, 3)}}, Contradiction),
        ({"profile": "0.13.0", "numbers": {"turns": (2, 2)}}, Contradiction),
        ({"numbers": {"turns": (0, 1)}}, OutOfRange),
        ({"numbers": {"turns": (1, 5)}}, OutOfRange),
        ({"numbers": {"requests": (0, 0)}}, OutOfRange),
        ({"numbers": {"depth": (0, 2)}}, OutOfRange),
        ({"numbers": {"slots": (3, 2)}}, OutOfRange),
        ({"numbers": {"slots": (-1, 2)}}, OutOfRange),
        ({"numbers": {"slots": (0, 1 << 60)}}, OutOfRange),
        ({"numbers": {"depth": (1, 9)}}, OutOfRange),
        ({"numbers": {"items": (0, 9)}}, OutOfRange),
        ({"numbers": {"drafts": (0, 65)}}, OutOfRange),
    ],
    ids=str,
)
def test_what_cannot_hold_is_refused(fields: dict[str, Any], error: type[OutlivesError]) -> None:
    with pytest.raises(error):
        Configuration(**fields).world()


@pytest.mark.parametrize(
    "fields",
    [
        {"diffusion": True, "numbers": {"drafts": (0, 2)}},
        {"encoder_decoder": True, "synchronous": True, "numbers": {"turns": (1, 2)}},
        {"without": ("sessions",), "numbers": {"turns": (1, 2)}},
        {"profile": "0.11.0", "numbers": {"turns": (1, 2)}},
        {"policy": "priority", "synchronous": True, "numbers": {"turns": (2, 4), "requests": (3, 3)}},
    ],
    ids=str,
)
def test_modes_and_turns_that_can_hold_together_come_back(fields: dict[str, Any]) -> None:
    asked = Configuration(**fields)
    again = Configuration.from_plain(asked.plain())
    assert (again.plain(), again.world(), again.scope()) == (asked.plain(), asked.world(), asked.scope())
    for name in ("synchronous", "diffusion", "encoder_decoder"):
        assert getattr(asked.model().initial_state({}).setup, name) == fields.get(name, False)


def test_modes_that_the_numbers_exclude_are_not_drawn() -> None:
    assert set(Configuration().scope().modes) == {"plain", "synchronous", "diffusion", "encoder-decoder"}
    assert "diffusion" not in Configuration(numbers={"drafts": (0, 0)}).scope().modes
    assert "encoder-decoder" not in Configuration(items_anywhere=True).scope().modes


@pytest.mark.parametrize(
    ("name", "most"), [("turns", 4), ("items", 8), ("depth", 8), ("drafts", 64), ("slots", 1_000_000)]
)
def test_the_most_that_is_allowed_is_allowed(name: str, most: int) -> None:
    assert getattr(Configuration(numbers={name: (1, most)}).scope(), name) == Range(1, most)
