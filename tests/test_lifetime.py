"""The arithmetic of model/lifetime.py, with the right numbers written in; the seed's guard tests among them."""

from dataclasses import replace

import pytest
from outlives.model import lifetime
from outlives.model.errors import Contradiction, UnknownName
from outlives.model.lifetime import GUARDS, Counters, guard_named


def counters(computed: int, placeholders: int = 0, in_flight: int = 0, stale: int = 0, known: int = 1) -> Counters:
    return Counters(computed, placeholders, in_flight, stale, known)


def test_a_decode_step_with_two_drafts_promises_three_outputs() -> None:
    after = lifetime.advance(counters(6, known=7), 3)
    assert after == counters(9, in_flight=3, known=7)
    assert lifetime.promise(after, 2, 1, 1) == (counters(9, 3, 3, known=7), 1, 3)


def test_a_prefill_chunk_promises_nothing() -> None:
    after = lifetime.advance(counters(0, known=7), 4)
    assert lifetime.promise(after, 0, 1, 1) == (after, 0, 0)


def test_synchronous_scheduling_samples_without_promising() -> None:
    after = lifetime.advance(counters(6, known=7), 1)
    assert lifetime.promise(after, 0, 1, 0) == (after, 1, 0)


def test_a_diffusion_step_promises_its_drafts_alone() -> None:
    after = lifetime.advance(counters(6, known=7), 3)
    assert lifetime.promise(after, 2, 0, 1) == (counters(9, 2, 3, known=7), 1, 2)


@pytest.mark.parametrize(
    ("known", "drafts", "placeholders", "computed", "wanted", "carried"),
    [(10, 0, 0, 4, 6, 0), (10, 2, 0, 9, 3, 2), (10, 2, 3, 12, 3, 2), (10, 0, 1, 10, 1, 0)],
)
def test_what_a_running_request_asks_for(
    known: int, drafts: int, placeholders: int, computed: int, wanted: int, carried: int
) -> None:
    now = counters(computed, placeholders, known=known)
    assert lifetime.wanted(now, drafts) == wanted
    assert lifetime.carried_drafts(now, wanted) == carried


def test_rejected_drafts_leave_computed_and_placeholders_and_the_rest_is_delivered() -> None:
    now, stale = lifetime.receive(counters(9, 3, 3, known=7), 3, 1)
    assert (now, stale) == (counters(9, 3, 0, known=7), 0)
    now = lifetime.roll_back(now, 2, stale)
    assert now == counters(7, 1, known=7)
    now = lifetime.deliver(now, 1, stale, 0, 1)
    assert now == counters(7, 0, known=8)
    assert lifetime.confirmed(now) == 7


def test_processing_raises_confirmed_by_one_more_than_was_accepted() -> None:
    for accepted in range(4):
        before = counters(20, 7, 7, known=14)
        now, stale = lifetime.receive(before, 4, 1)
        now = lifetime.deliver(lifetime.roll_back(now, 3 - accepted, stale), 1 + accepted, stale, 0, 1)
        assert lifetime.confirmed(now) == lifetime.confirmed(before) + 1 + accepted


def test_preemption_isolates_what_is_in_flight_from_0_27_on() -> None:
    before = counters(9, 3, 5, known=7)
    assert lifetime.preempt(before, 1) == counters(0, 0, 5, 5, 7)
    assert lifetime.preempt(before, 0) == counters(0, 3, 5, 0, 7)


def test_a_stale_output_is_delivered_but_rolls_nothing_back() -> None:
    now, stale = lifetime.receive(counters(2, 0, 5, 5, 7), 3, 1)
    assert (now, stale) == (counters(2, 0, 2, 2, 7), 1)
    assert lifetime.roll_back(now, 2, stale) == now
    assert lifetime.deliver(now, 2, stale, 0, 1) == counters(2, 0, 2, 2, 9)
    assert lifetime.deliver(now, 2, stale, 1, 1) == now, "in drop mode the tokens vanish"


def test_before_0_27_a_stale_rejection_carries_computed_below_zero() -> None:
    now, stale = lifetime.receive(counters(1, 4, 5, 0, 7), 4, 0)
    assert stale == 0
    assert lifetime.roll_back(now, 3, stale).computed == -2


@pytest.mark.parametrize(
    ("guard", "computed", "placeholders", "in_flight", "look_ahead", "released"),
    [
        # The seed's regression test: item [50,150), four placeholders after one step with three drafts.
        ("confirmed", 151, 4, 4, 1, False),
        ("confirmed", 153, 4, 4, 1, False),
        ("confirmed", 154, 4, 4, 1, True),
        ("optimistic-at-output", 151, 4, 4, 1, True),
        # Unchanged without speculative decoding: with no placeholders both release at 150.
        ("confirmed", 149, 0, 0, 0, False),
        ("confirmed", 150, 0, 0, 0, True),
        ("optimistic-at-output", 149, 0, 0, 0, False),
        ("optimistic-at-output", 150, 0, 0, 0, True),
        # The look-ahead of #46315 holds one position longer.
        ("confirmed-lookahead", 150, 0, 0, 1, False),
        ("confirmed-lookahead", 151, 0, 0, 1, True),
        ("settled", 154, 4, 5, 1, False),
        ("settled", 155, 4, 5, 1, True),
        ("settled", 154, 4, 3, 1, True),
        ("retain", 10**9, 0, 0, 0, False),
    ],
)
def test_guards_at_the_end_of_an_item(
    guard: str, computed: int, placeholders: int, in_flight: int, look_ahead: int, released: bool
) -> None:
    now = counters(computed, placeholders, in_flight)
    assert GUARDS[guard].condition(now, 150, look_ahead) is released


def test_asynchronous_scheduling_without_drafts_differs_from_the_old_guard_by_one() -> None:
    now = counters(150, 1, 1)
    assert GUARDS["optimistic-at-output"].condition(now, 150, 0)
    assert not GUARDS["confirmed"].condition(now, 150, 0)
    assert GUARDS["confirmed"].condition(now, 149, 0)


def test_an_unknown_guard_names_the_known_ones() -> None:
    with pytest.raises(UnknownName, match=r"unknown guard 'confirmd'\. Did you mean 'confirmed'\? Known: .*retain"):
        guard_named("confirmd")


def test_a_guard_with_an_unknown_site_or_no_function_is_refused() -> None:
    with pytest.raises(UnknownName, match=r"unknown site of a guard 'at-outputs'\. Did you mean 'at-output'\?"):
        replace(GUARDS["confirmed"], site="at-outputs")  # type: ignore[arg-type]
    with pytest.raises(Contradiction, match="the condition of guard confirmed is int, not a function"):
        replace(GUARDS["confirmed"], condition=7)  # type: ignore[arg-type]
