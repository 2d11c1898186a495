"""What a comparison with a release leaves out, and that it leaves out no more (docs/vllm.md has the table).

No vLLM is needed: the states and queues are made here.
"""

from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest
from outlives.invariants.subject.conform import differences, foretold
from outlives.invariants.subject.reading import waiting_of
from outlives.invariants.subject.subject import Failure
from outlives.model.setup import Item, RequestSetup, Setup
from outlives.model.state import ABSENT, FINISHED, RUNNING, WAITING, Request, State
from worlds import fixed as fixed_model
from worlds import run, setup

TWO_OF_ONE_KEY = Setup(
    (RequestSetup(4, 1, (Item(0, 1, "k0", 1), Item(1, 1, "k0", 1), Item(2, 1, "k1", 1))),), slots=2, budget=4
)


def started(of: Setup) -> State:
    """Arrived, nothing else."""
    return run(fixed_model("repaired", of), "arrive(request=r0)")


def changed(state: State, **parts: Any) -> State:
    """With other parts of the first request."""
    return state._replace(requests=(state.requests[0]._replace(**parts), *state.requests[1:]))


def fields(model: State, real: State, **how: bool) -> list[str]:
    """What differs."""
    return [each.field for each in differences(model, real, **how)]


def test_which_item_of_a_key_holds_the_entry_is_left_out_only_where_releases_keep_keys() -> None:
    state = started(TWO_OF_ONE_KEY)
    first, second, other = (changed(state, references=(item,)) for item in (0, 1, 2))
    assert fields(first, second, items_known=False) == []
    assert fields(first, second) == ["r0.references"]
    for how in ({}, {"items_known": False}):
        assert fields(first, other, **how) == ["r0.references"]
        assert fields(first, state, **how) == ["r0.references"]
    both = changed(state, references=(0, 2))
    assert fields(first, both, items_known=False) == ["r0.references"]


OF_THE_LIVING = [
    ("drafts", 1), ("turn", 1), ("limit", 3), ("extra", (Item(4, 1, "k0", 1),)), ("decoding", 1), ("frames", 1),
    ("lost", 1),
]  # fmt: skip


@pytest.mark.parametrize(("part", "value"), OF_THE_LIVING)
def test_drafts_turn_and_limit_are_left_out_of_who_is_over_and_of_nobody_else(part: str, value: Any) -> None:
    state = started(TWO_OF_ONE_KEY)
    for status, left_out in ((FINISHED, True), (WAITING, False), (RUNNING, False), (ABSENT, False)):
        one = changed(state, status=status)
        assert fields(one, changed(one, **{part: value})) == ([] if left_out else [f"r0.{part}"]), status


def test_everything_else_of_who_is_over_is_compared() -> None:
    state = changed(started(TWO_OF_ONE_KEY), status=FINISHED)
    compared = {"status": RUNNING, "references": (0,)}
    for part, value in compared.items():
        assert f"r0.{part}" in fields(state, changed(state, **{part: value}))
    counters = state.requests[0].counters
    for part in counters._fields:
        assert fields(state, changed(state, counters=counters._replace(**{part: 7}))) == [f"r0.{part}"]


def test_every_part_of_a_request_is_compared_or_named_here() -> None:
    """The model's own bookkeeping, which no scheduler keeps: whose worker starts anew, what A2 relaxed asks for."""
    state = started(TWO_OF_ONE_KEY)
    values: dict[str, Any] = {"status": RUNNING, "references": (0,), "extra": (Item(4, 1, "k0", 1),)}
    told = {
        part
        for part in Request._fields
        if part != "counters" and fields(state, changed(state, **{part: values.get(part, 5)}))
    }
    assert set(Request._fields) - told - {"counters"} == {"drop", "rebase", "seen"}
    stale = changed(state, counters=state.requests[0].counters._replace(stale=1))
    assert fields(stale, changed(stale, drop=1)) == ["r0.drop"]  # it says nothing where nothing is stale


def test_an_assertion_is_excused_where_the_model_shows_a_counter_below_zero_and_nowhere_else() -> None:
    before = changed(started(TWO_OF_ONE_KEY), status=RUNNING)
    where = "async_scheduler.py:1 in _update_request_with_output: assert request.num_output_placeholders >= 0"
    failure = Failure("AssertionError", where)
    for part in before.requests[0].counters._fields:
        below = changed(before, counters=before.requests[0].counters._replace(**{part: -1}))
        assert foretold(before, below, failure)
        assert not foretold(before, below, Failure("IndexError: pop from an empty list", where))
    assert not foretold(before, before, failure)
    over = changed(before, status=FINISHED)
    assert foretold(before, over, failure)  # it keeps no counters: its end is enough, for this assertion
    assert not foretold(before, over, Failure("AssertionError", "scheduler.py:1 in schedule: assert something else"))
    assert not foretold(over, over, failure)


class _Status(Enum):
    WAITING = 1
    PREEMPTED = 2
    WAITING_FOR_STREAMING_REQ = 3


def waits(name: str, status: _Status = _Status.WAITING, priority: int = 0) -> Any:
    return SimpleNamespace(
        name=name, status=status, priority=priority, arrival_time=int(name[1:]), is_finished=lambda: False
    )


@pytest.mark.parametrize("by_priority", [False, True])
def test_where_a_paused_session_rests_is_left_out_and_who_is_served_when_is_not(by_priority: bool) -> None:
    one, two = waits("r0"), waits("r1", _Status.PREEMPTED)
    rests = waits("r2", _Status.WAITING_FOR_STREAMING_REQ)
    places = [
        SimpleNamespace(waiting=[one, rests, two]),
        SimpleNamespace(waiting=[rests, one, two]),
        SimpleNamespace(waiting=[one, two]),
        SimpleNamespace(waiting=[one, two], skipped_waiting=[rests]),
        SimpleNamespace(waiting=[two], skipped_waiting=[one, rests]),
    ]
    assert [[each.name for each in waiting_of(place, by_priority)] for place in places] == [["r0", "r1"]] * 5
    other_way = SimpleNamespace(waiting=[two, one])
    expected = ["r0", "r1"] if by_priority else ["r1", "r0"]
    assert [each.name for each in waiting_of(other_way, by_priority)] == expected
    state = started(setup([(0, 1)], 2))._replace(requests=tuple(started(setup([(0, 1)], 2)).requests) * 2)
    state = state._replace(setup=state.setup._replace(requests=state.setup.requests * 2))
    assert fields(state._replace(waiting=(0, 1)), state._replace(waiting=(1, 0))) == ["waiting"]
