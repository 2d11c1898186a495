"""The planted faults, each in a stated small scope: there it is found exhaustively, with its shortest depth, and it is
the only thing wrong; one that needs two requests is none as long as a request is alone; the machine finds most."""

from dataclasses import replace

import pytest
from faults import FAULTS, Fault
from outlives.invariants.configuration import Configuration
from outlives.invariants.explore import Exploration, explore, shortest
from outlives.invariants.machine import machine_profile, run_machine
from outlives.invariants.scope_choice import chosen_scopes
from outlives.invariants.scopes import NAMED_SCOPES
from outlives.invariants.verdict import Verdict
from outlives.model import worker
from outlives.model.setup import RARE_ROUTES, Item, RequestSetup, Setup
from outlives.model.state import Step
from outlives.model.world import World
from worlds import FixedModel, setup


def _asks(*items: tuple[int, int, str], prompt: int, outputs: int = 1, priority: int = 0) -> RequestSetup:
    """A request with items (start, tokens, key), each of as many slots as tokens."""
    made = tuple(Item(start, length, key, length) for start, length, key in items)
    return RequestSetup(prompt, outputs, made, priority)


def _both(one: RequestSetup, other: RequestSetup, *, slots: int, budget: int, **numbers: int) -> Setup:
    return Setup((one, other), slots, budget, left_out=RARE_ROUTES, **numbers)


TWO_ITEMS = setup([(0, 2), (3, 5)], prompt=6, slots=3, budget=4, drafts=1, look_ahead=1, strangers=1)
PAST_PROMPT = setup([(0, 3)], prompt=1, outputs=4, slots=3, budget=3, drafts=2, look_ahead=1)
LAST_CHUNK = setup([(0, 2)], prompt=2, outputs=4, slots=2, budget=1)

SHARED_LAST_CHUNK = _both(
    _asks((0, 2, "k0"), prompt=2, outputs=3), _asks((0, 2, "k0"), prompt=2), slots=2, budget=2, chunk_cap=1
)
"""Both compute a shared item in chunks: the last one is in flight when one of them is done with it."""
_NARROW = {"budget": 2, "chunk_cap": 1, "by_priority": 1}
VICTIM_ENCODES = _both(_asks((2, 1, "k0"), prompt=3, priority=1), _asks((1, 1, "k1"), prompt=2), slots=2, **_NARROW)
"""A prefix of r0 may be in the KV cache: both then reach their items in one pass, the less urgent one first."""

SHORTEST: dict[str, tuple[Setup | str, int]] = {
    "roll-back-computed-only": (PAST_PROMPT, 5),
    "reset-keeps-promises": ("reset-both", 4),
    "failed-load-keeps-promises": ("load-and-turns", 3),
    "turn-end-keeps-computed": ("second-turn", 2),
    "one-too-early": (LAST_CHUNK, 8),
    "forget-promises": (PAST_PROMPT, 8),
    "relies-on-others": (SHARED_LAST_CHUNK, 10),
    "waits-for-others": ("shared-and-own", 2),
    "hit-stays-idle": (TWO_ITEMS, 5),
    "evict-keeps-slots": (TWO_ITEMS, 4),
    "release-drops-another": ("shared-key", 4),
    "hit-counts-each-holder": ("shared-key", 3),
    "gate-ignores-room": (TWO_ITEMS, 3),
    "keep-references": (TWO_ITEMS, 4),
    "withdraw-what-others-hold": ("shared-in-one-pass", 6),
    "withdrawn-stays-booked": (VICTIM_ENCODES, 4),
    "drop-nothing": (TWO_ITEMS, 5),
    "clear-at-once": ("encoder-cache-reset", 8),
    "look-under-own-name": ("shared-key", 4),
    "shift-every-reader": ("drafts-beside-prompt", 9),
}
"""Fault -> a scope in which it shows (numbers, or the name of one), and how many actions the shortest run to what it
breaks has there. Of progress: the actions up to the state from which the fair run gets stuck."""


MACHINE = {
    "roll-back-computed-only": 100,
    "reset-keeps-promises": 100,
    "failed-load-keeps-promises": 100,
    "turn-end-keeps-computed": 100,
    "one-too-early": 500,
    "forget-promises": 1_500,
    "waits-for-others": 100,
    "hit-stays-idle": 500,
    "evict-keeps-slots": 100,
    "release-drops-another": 100,
    "hit-counts-each-holder": 100,
    "gate-ignores-room": 100,
    "keep-references": 200,
    "drop-nothing": 100,
    "clear-at-once": 100,
    "look-under-own-name": 100,
    "withdraw-what-others-hold": 200,
    "withdrawn-stays-booked": 200,
    "shift-every-reader": 1_500,
}
"""Fault -> runs within which the machine finds it in the same scope. It does not find `relies-on-others` within the
1,500 of its `ci` settings."""


def _numbers(fault: Fault) -> Setup:
    scope, _ = SHORTEST[fault.name]
    if isinstance(scope, Setup):
        return scope
    ((state,),) = chosen_scopes(Configuration(**fault.configuration), [scope], every_number=False).values()
    return state.setup


def _world(fault: Fault, *, faulty: bool) -> World:
    world = Configuration(**fault.configuration).world()
    return replace(world, rules=fault.plant(world.rules)) if faulty else world


def _model(fault: Fault, numbers: Setup, *, faulty: bool) -> FixedModel:
    anywhere = bool(fault.configuration.get("items_anywhere"))
    return FixedModel(_world(fault, faulty=faulty), [numbers], anywhere=anywhere)


def _clean(found: Exploration) -> bool:
    return found.complete and not found.traces


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_each_fault_at_its_shortest_depth(fault: Fault) -> None:
    found = shortest(_model(fault, _numbers(fault), faulty=True), fault.breaks)
    assert found.trace is not None
    assert found.badge == "shortest possible"
    assert len(found.trace.actions) == SHORTEST[fault.name][1]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_nothing_else_is_wrong_in_its_scope(fault: Fault) -> None:
    found = explore(_model(fault, _numbers(fault), faulty=False))
    assert _clean(found)
    assert found.situations[fault.breaks] > 0


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.campaign if runs > 500 else ()) for name, runs in MACHINE.items()]
)
def test_the_machine_finds_it_there(name: str) -> None:
    (fault,) = (each for each in FAULTS if each.name == name)
    settings = machine_profile("ci").changed(cases=MACHINE[name], first_only=True, shrink_replays=0)
    model = _model(fault, _numbers(fault), faulty=True)
    (row,) = run_machine(model, settings=settings, properties=[fault.breaks], seed=0).results
    assert row.verdict is Verdict.VIOLATED


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.requests == 2], ids=lambda fault: fault.name)
def test_a_fault_that_needs_two_requests_is_none_for_each_of_them_alone(fault: Fault) -> None:
    numbers = _numbers(fault)
    assert len(numbers.requests) == 2
    for request in numbers.requests:
        assert _clean(explore(_model(fault, numbers._replace(requests=(request,)), faulty=True)))


@pytest.mark.campaign
@pytest.mark.parametrize("scope", [scope.name for scope in NAMED_SCOPES if scope.requests == 1])
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.requests == 2], ids=lambda fault: fault.name)
def test_no_named_scope_of_one_request_shows_a_fault_that_needs_two(fault: Fault, scope: str) -> None:
    (states,) = chosen_scopes(Configuration(**fault.configuration), [scope], every_number=False).values()
    (state,) = states
    # A reset of the encoder cache violates with A3 relaxed, whatever the rules.
    faulty, sound = (explore(_model(fault, state.setup, faulty=each)) for each in (True, False))
    assert faulty.complete
    assert faulty.broken == sound.broken


def test_the_other_faults_are_shown_with_one_request() -> None:
    assert {len(_numbers(fault).requests) for fault in FAULTS if fault.requests == 1} == {1}


def test_a_guard_one_too_early_needs_a_chunked_prompt() -> None:
    """Where the whole prompt is one step, the token that its output delivers confirms the position that is missing."""
    (fault,) = (each for each in FAULTS if each.name == "one-too-early")
    found = shortest(_model(fault, PAST_PROMPT, faulty=True), fault.breaks)
    assert found.trace is None
    assert found.exploration.complete
    assert found.exploration.states > 1_000


def _encode_first(world: World, shelf: tuple[str, ...], step: Step) -> tuple[str, ...]:
    encoded = worker.shelve(world, shelf, step._replace(drop=()))
    return worker.shelve(world, encoded, step._replace(encode=()))


@pytest.mark.parametrize(
    ("filtered", "shown"), [(1, []), (0, ["GATHER-AFTER-FREE", "PLANNED-ENCODED", "SHELF-AGREES"])]
)
def test_a_worker_that_encodes_first_matters_only_where_notices_name_what_came_back(
    filtered: int, shown: list[str]
) -> None:
    world = Configuration().world()
    world = replace(world, switches=replace(world.switches, filter_readded=filtered))
    assert _clean(explore(FixedModel(world, [TWO_ITEMS])))
    found = explore(FixedModel(replace(world, rules=replace(world.rules, shelve=_encode_first)), [TWO_ITEMS]))
    assert found.complete
    assert sorted(found.traces) == shown
