"""The catalogue of faults: each is shown by its smallest scope, and by nothing but itself; what is left out is said."""

from pathlib import Path

import pytest
from fault_scopes import lowered
from outlives.invariants.configuration import Configuration
from outlives.invariants.explore import Bounds, explore
from outlives.invariants.properties import PROPERTY_NAMES
from outlives.model.errors import Contradiction, UnknownName
from outlives.model.fault_rows import NOT_COVERED
from outlives.model.faults import FAULTS, NEGATIVES, Fault, fault_named
from outlives.model.profiles import PROFILES, RELEASED_RULES, Profile
from outlives.model.setup import Setup
from outlives.model.world import World
from worlds import FixedModel

REQUIRED = {*range(1, 5), 9, 10, *range(16, 20), 25, 29, *range(32, 36), *range(37, 40), 60}
ROWS = {*range(1, 8), 9, 10, *range(15, 20), *range(23, 66)}
"""Of the list of public faults; there is no row 8, 11 to 14 or 20 to 22."""
MANY = 20_000

each_fault = pytest.mark.parametrize("fault", FAULTS.values(), ids=lambda fault: fault.name)


def shortest(profile: Profile, fault: Fault, setup: Setup, states: int = MANY) -> int | None:
    """Actions of the shortest run to what the fault breaks, with the profile's behaviour and the fault's routes."""
    world = World(rules=profile.rules, switches=profile.switches, guard=profile.guard, closed=frozenset(fault.closed))
    found = explore(
        FixedModel(world, [setup]), bounds=Bounds(states=states), properties=[fault.breaks], stop_when_found=True
    )
    trace = found.traces.get(fault.breaks)
    assert trace is not None or found.complete
    return None if trace is None else len(trace.actions)


@each_fault
def test_its_smallest_scope_shows_it_in_so_many_actions(fault: Fault) -> None:
    assert fault.scope is not None
    assert shortest(fault.planted(PROFILES["repaired"]), fault, fault.scope) == fault.actions > 0


@each_fault
def test_without_it_and_with_what_stood_beside_it_the_scope_is_clean(fault: Fault) -> None:
    assert fault.scope is not None
    assert shortest(fault.beside_it(PROFILES["repaired"]), fault, fault.scope) is None


@each_fault
def test_no_number_of_its_scope_can_be_lowered(fault: Fault) -> None:
    """Lower, the violation is gone, or its shortest run longer, or it is there without the fault."""
    assert fault.scope is not None
    faulty, sound = fault.planted(PROFILES["repaired"]), fault.beside_it(PROFILES["repaired"])
    neighbours = list(lowered(fault.scope))
    assert neighbours or fault.scope.requests[0].prompt == 1
    for smaller in neighbours:
        actions = shortest(faulty, fault, smaller)
        assert actions is None or actions > fault.actions or shortest(sound, fault, smaller) is not None


def test_each_row_is_in_the_catalogue_or_said_to_be_left_out() -> None:
    shown = {row for fault in FAULTS.values() for row in fault.rows}
    negative = {row for fault in NEGATIVES.values() for row in fault.rows}
    assert shown >= REQUIRED
    assert negative == {5, 6}
    assert shown | negative | set(NOT_COVERED) == ROWS
    assert not (shown | negative) & set(NOT_COVERED)
    assert all(each.lacks and each.source and each.about for each in NOT_COVERED.values())


def test_each_fault_says_what_it_is() -> None:
    for fault in (*FAULTS.values(), *NEGATIVES.values()):
        assert fault.breaks in PROPERTY_NAMES
        assert all((fault.phrase, fault.source, fault.mended))
        assert fault.name == fault.name.lower().replace("_", "-")
        assert bool(fault.why_not) == (fault.name in NEGATIVES)
    for fault in FAULTS.values():
        for rule, function in fault.rules.items():
            assert function is not getattr(RELEASED_RULES, rule)
            assert function.__doc__


def test_a_known_fault_is_an_option_like_any_other() -> None:
    configuration = Configuration(fault="rejects-before-discarding")
    world = configuration.world()
    assert world.switches.discard_before_rejection == 0
    assert "preempt" in world.closed
    assert "--fault" not in configuration.replay_command(Path("x"))
    assert Configuration.from_plain(configuration.plain()).world() == world
    with pytest.raises(UnknownName, match="cut-stops-short"):
        Configuration(fault="cut-stop-short").world()
    assert fault_named("cut-stops-short").guard is None


def test_a_fault_that_changes_nothing_or_what_is_not_there_is_refused() -> None:
    said = {"name": "mine", "phrase": "x", "breaks": "PROGRESS"}
    with pytest.raises(Contradiction, match="changes nothing"):
        Fault(**said)  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="rule of fault mine"):
        Fault(**said, rules={"preemt": lambda c: c})  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="switch of fault mine"):
        Fault(**said, switches={"gate": 0})  # type: ignore[arg-type]
