"""Each repair of `repaired` is needed: with it alone taken back, the shortest trace comes back in the stated scope.

Belongs here: per repair the released source that it mends, the scope, and what is violated in it. Lines are those of
0.33.0, of `vllm/v1/core/sched/scheduler.py` unless said.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest
from outlives.invariants.configuration import Configuration
from outlives.invariants.explore import Exploration, explore
from outlives.invariants.scope_choice import chosen_scopes
from outlives.invariants.verdict import Verdict
from outlives.model.profiles import PROFILES, SWITCHES
from outlives.model.setup import RARE_ROUTES, Item, RequestSetup, Setup, Turn
from worlds import FixedModel, setup, world

_SHORT_OF_LOADS = tuple(route for route in RARE_ROUTES if route != "kv-load-failure")
_SHORT_OF_TURNS = tuple(route for route in RARE_ROUTES if route != "sessions")


def _session(first: RequestSetup, **numbers: int) -> Setup:
    return Setup((first,), left_out=_SHORT_OF_TURNS, **numbers)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """One repair, in one scope."""

    switch: str
    lines: str
    """The released lines that do, or leave out, what the repair mends."""
    scope: str | Setup
    """The name of a named scope, or the numbers of a smaller one."""
    violated: Mapping[str, int]
    """Without the repair: property -> actions of the shortest trace."""


REPAIRS = (
    Repair(
        switch="take_back_encodes",
        lines="958-969: budget and step are restored; 2011: what entered the book stays there",
        scope="withdrawn-encode",
        violated={"PLANNED-ENCODED": 4, "SHELF-AGREES": 6, "GATHER-AFTER-FREE": 8},
    ),
    Repair(
        switch="settle_kv_failure",
        lines="3662: computed falls and nothing else; 2324: the output is skipped with its placeholders",
        scope="failed-load",
        violated={"COUNTERS-SOUND": 3, "PLACEHOLDERS-KEPT": 3, "PROGRESS": 3},
    ),
    Repair(  # no item: the placeholders alone; the request never gets its last token
        switch="settle_kv_failure",
        lines="3662 and 801-808: what is promised for ever reaches the output limit",
        scope=setup([], 2, outputs=1, slots=1, budget=2, left_out=_SHORT_OF_LOADS),
        violated={"COUNTERS-SOUND": 3, "PLACEHOLDERS-KEPT": 3, "PROGRESS": 3},
    ),
    Repair(  # synchronous scheduling promises nothing: the references alone
        switch="settle_kv_failure",
        lines="3662: references stay, also those past the valid positions",
        scope=setup(
            [(0, 1), (1, 2)], 3, outputs=1, slots=1, budget=3, depth=1, synchronous=1, left_out=_SHORT_OF_LOADS
        ),
        violated={"PROGRESS": 3},
    ),
    Repair(
        switch="free_at_turn_end",
        lines="2389: the free pass comes before the last tokens are confirmed; 2724-2730: and not again",
        scope="second-turn",
        violated={"PROGRESS": 2},
    ),
    Repair(  # the smallest: one position, one output, one slot
        switch="free_at_turn_end",
        lines="2389 and 2724-2730",
        scope=_session(
            RequestSetup(1, 1, (Item(0, 1, "k0", 1),), turns=(Turn(1, 1, (Item(0, 1, "k1", 1),)),)), slots=1, budget=2
        ),
        violated={"PROGRESS": 1},
    ),
    Repair(
        switch="pad_fitting",
        lines="1326-1328: a padded admission that does not fit ends the scan, also where no pass could hold it",
        scope="no-room-to-pad",
        violated={"PROGRESS": 1},
    ),
    Repair(
        switch="credit_once",
        lines="encoder_cache_manager.py 430-445: every item is always held, and its slots are credited each time; 2839",
        scope="encoder-decoder",
        violated={"SLOTS-ADD-UP": 2, "RELEASE-ONCE": 2},
    ),
    Repair(  # a turn without items: the counters alone
        switch="keep_all_of_diffusion",
        lines="1887-1888: the last token goes, and computed must not be past it; of a diffusion model it is computed",
        scope=_session(RequestSetup(1, 1, (), turns=(Turn(1, 1),)), slots=1, budget=2, drafts=1, diffusion=1),
        violated={"PROGRESS": 1},
    ),
    Repair(
        switch="whole_cut_look_ahead",
        lines="2113-2115: the cut before an item that may not be split subtracts the look-ahead",
        scope="whole-items",
        violated={"PROGRESS": 1},
    ),
    Repair(
        switch="whole_cut_look_ahead",
        lines="2113-2115",
        scope=setup([(1, 2)], 2, outputs=1, slots=1, budget=1, look_ahead=1, whole_items=1),
        violated={"PROGRESS": 1},
    ),
)


def _numbers(scope: str | Setup) -> Setup:
    if isinstance(scope, Setup):
        return scope
    (state,) = chosen_scopes(Configuration(), (scope,), every_number=False)[scope]
    return state.setup


def _explored(repair: Repair, **switches: int) -> Exploration:
    whole = world("repaired")
    changed = replace(whole, switches=replace(whole.switches, **switches))
    model = FixedModel(changed, (_numbers(repair.scope),))
    return explore(model, initial=tuple(model.initial_states()))


def _name(repair: Repair) -> str:
    return f"{repair.switch}-{repair.scope if isinstance(repair.scope, str) else 'smallest'}"


def test_the_repairs_are_the_differences_between_repaired_and_the_newest_release() -> None:
    newest, repaired = PROFILES["0.33.0"].switches, PROFILES["repaired"].switches
    differ = {name for name in SWITCHES if getattr(newest, name) != getattr(repaired, name)}
    assert differ == {repair.switch for repair in REPAIRS}
    assert PROFILES["0.33.0"].guard == PROFILES["repaired"].guard
    assert PROFILES["0.33.0"].rules == PROFILES["repaired"].rules


@pytest.mark.parametrize("repair", REPAIRS, ids=_name)
def test_without_this_repair_alone_its_property_is_violated(repair: Repair) -> None:
    released = getattr(PROFILES["0.33.0"].switches, repair.switch)
    found = _explored(repair, **{repair.switch: released})
    assert found.complete
    assert {name: len(trace.actions) for name, trace in found.traces.items()} == repair.violated


@pytest.mark.parametrize("repair", REPAIRS, ids=_name)
def test_with_it_every_state_of_the_scope_is_clean(repair: Repair) -> None:
    found = _explored(repair)
    assert found.complete
    verdicts = {result.property: result.verdict for result in found.results()}
    assert {verdicts[name] for name in repair.violated} == {Verdict.EXHAUSTED}
    assert set(verdicts.values()) <= {Verdict.EXHAUSTED, Verdict.VACUOUS}  # the smallest never meet some situations
    assert found.states > 10
