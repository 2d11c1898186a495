"""Resets and failed KV loads: what each does to counters, references, queues and shelf, release by release.

The right values are written in. Sessions are in `test_sessions`, the modes in `test_modes`.
"""

import pytest
from outlives.model.lifetime import Counters
from outlives.model.setup import RequestSetup, Setup
from outlives.model.state import RUNNING, WAITING
from worlds import FixedModel, fixed, refusal, run, setup

ARRIVE, SCHEDULE, ACCEPT, RESUME = "arrive(request=r0)", "schedule()", "accept()", "resume(request=r0,kept={})"
PREFIX, ENCODER = "reset_prefix_cache()", "reset_encoder_cache()"


def decoding(profile: str, *, drafts: int = 1, **numbers: int) -> FixedModel:
    """A prompt of 2 with item [0,2), many outputs, everything open."""
    asked = {"outputs": 9, "slots": 4, "budget": 8, "depth": 3, **numbers}
    return fixed(profile, setup([(0, 2)], 2, drafts=drafts, left_out=(), **asked))


TWO_IN_FLIGHT = (ARRIVE, SCHEDULE, SCHEDULE)
"""The prompt of 2 tokens, then a decode step of 1 + 1 draft: computed 4, placeholders 1 + 2."""


# --- the prefix cache is reset ----------------------------------------------------------------------------------------


def test_it_is_not_there_in_0_11() -> None:
    assert refusal(decoding("0.11.0"), run(decoding("0.11.0"), ARRIVE, SCHEDULE), PREFIX) == "route-closed"


def test_nobody_runs_so_nobody_is_reset() -> None:
    assert refusal(decoding("0.33.0"), run(decoding("0.33.0"), ARRIVE), PREFIX) == "nothing-running"


@pytest.mark.parametrize("profile", ["0.13.0", "0.24.0", "0.33.0"])
def test_the_running_ones_wait_in_their_old_order_before_the_others(profile: str) -> None:
    requests = tuple(RequestSetup(2, 1, ()) for _ in range(3))
    model = fixed(profile, Setup(requests, slots=2, budget=4, left_out=()))
    arrived = [f"arrive(request=r{number})" for number in (0, 1, 2)]
    running = run(model, *arrived, SCHEDULE)
    assert (running.running, running.waiting) == ((0, 1), (2,))
    state = run(model, *arrived, SCHEDULE, PREFIX)
    assert (state.running, state.waiting) == ((), (0, 1, 2))
    assert [request.status for request in state.requests] == [WAITING] * 3
    assert [request.drop + request.frames for request in state.requests[2:]] == [0]


@pytest.mark.parametrize(
    ("profile", "counters", "frames", "drop"),
    [
        ("0.13.0", Counters(computed=0, placeholders=0, in_flight=4, stale=0, known=2), 1, 0),
        ("0.24.0", Counters(computed=0, placeholders=0, in_flight=4, stale=0, known=2), 3, 0),
        ("0.33.0", Counters(computed=0, placeholders=0, in_flight=4, stale=4, known=2), 0, 1),
    ],
)
def test_what_is_remembered_of_the_outputs_in_flight(profile: str, counters: Counters, frames: int, drop: int) -> None:
    """One output, as many as there were placeholders (one too many with a draft), or the stale share (#48245)."""
    before = run(decoding(profile), *TWO_IN_FLIGHT)
    assert before.requests[0].counters == Counters(4, 3, 4, 0, 2)
    state = run(decoding(profile), *TWO_IN_FLIGHT, PREFIX)
    request = state.requests[0]
    assert (request.counters, request.frames, request.drop) == (counters, frames, drop)
    assert (request.references, request.drafts, request.decoding) == ((), 0, 0)
    assert (state.book.idle, state.book.evicted) == (("k0",), ())
    assert [part.live for step in state.steps for part in step.parts] == [0, 0]


def test_0_13_remembers_one_output_even_with_nothing_in_flight() -> None:
    """#42043: the next output of the resumed request is lost."""
    begin = (ARRIVE, SCHEDULE, ACCEPT, PREFIX)
    assert run(decoding("0.13.0"), *begin).requests[0].frames == 1
    assert run(decoding("0.24.0"), *begin).requests[0].frames == 0
    assert run(decoding("0.33.0"), *begin).requests[0].drop == 0
    resumed = (*begin, SCHEDULE, ACCEPT)
    assert [run(decoding(name), *resumed).requests[0].counters.known for name in ("0.13.0", "0.24.0")] == [3, 4]


def test_a_chunk_without_an_output_does_not_use_it_up() -> None:
    model = decoding("0.13.0", budget=1)
    state = run(model, ARRIVE, SCHEDULE, PREFIX, ACCEPT)
    assert (state.requests[0].frames, state.requests[0].counters.known) == (1, 2)


def test_an_output_without_a_token_does_not_use_it_up() -> None:
    """A diffusion step of which nothing was accepted: the release asks for tokens before it discards (0.24.0)."""
    model = decoding("0.24.0", diffusion=1)
    frames = [
        run(model, *TWO_IN_FLIGHT, PREFIX, *outputs).requests[0].frames
        for outputs in ((), (ACCEPT,), (ACCEPT, "reject(accepted=0)"), (ACCEPT, ACCEPT))
    ]
    assert frames == [1, 1, 1, 0]  # the prompt's output has no token, the next one at most the draft


@pytest.mark.parametrize(
    ("profile", "after_each", "left"),
    [("0.13.0", [2, 4], 0), ("0.24.0", [2, 2], 1), ("0.27.0", [2, 2], 0), ("0.33.0", [2, 2], 0)],
)
def test_which_outputs_join_the_known_tokens(profile: str, after_each: list[int], left: int) -> None:
    """0.13.0: all but the first. 0.24.0: none of these, and one more than these. 0.27.0 on: none of these."""
    model = decoding(profile)
    states = [run(model, *TWO_IN_FLIGHT, PREFIX, *[ACCEPT] * count) for count in (1, 2)]
    assert [state.requests[0].counters.known for state in states] == after_each
    assert (states[1].requests[0].frames, states[1].requests[0].drop) == (left, 0)


@pytest.mark.parametrize(("profile", "known"), [("0.24.0", 2), ("0.27.0", 3), ("0.33.0", 3)])
def test_the_first_output_after_it(profile: str, known: int) -> None:
    """0.24.0 counts one output too many for the draft, so that a good one vanishes as well."""
    state = run(decoding(profile), *TWO_IN_FLIGHT, PREFIX, ACCEPT, ACCEPT, SCHEDULE, ACCEPT)
    assert state.requests[0].counters.known == known


@pytest.mark.parametrize(("profile", "computed"), [("0.24.0", 1), ("0.27.0", 2)])
def test_a_rejection_in_a_discarded_output(profile: str, computed: int) -> None:
    """Up to 0.24 it is taken back from the resumed request's computed (#46066); an output that vanishes has no say."""
    begin = (*TWO_IN_FLIGHT, PREFIX, ACCEPT, SCHEDULE)
    assert run(decoding(profile), *begin).requests[0].counters.computed == 2
    state = run(decoding(profile), *begin, "reject(accepted=0)")
    assert state.requests[0].counters.computed == computed


@pytest.mark.parametrize("profile", ["0.13.0", "0.24.0", "0.33.0"])
def test_the_next_pass_may_admit_it_beside_its_old_steps(profile: str) -> None:
    state = run(decoding(profile), *TWO_IN_FLIGHT, PREFIX, SCHEDULE)
    assert (state.requests[0].status, state.running) == (RUNNING, (0,))
    assert [(part.start, part.tokens, part.live, part.first) for step in state.steps for part in step.parts] == [
        (0, 2, 0, 1),
        (2, 2, 0, 0),
        (0, 2, 1, 1),
    ]
    assert state.steps[2].encode == ()  # nobody evicted the entry meanwhile


def test_an_ordinary_preemption_waits_for_the_stale_output_instead() -> None:
    model = decoding("0.33.0", depth=4)
    begin = (*TWO_IN_FLIGHT, "preempt(request=r0)")
    assert refusal(model, run(model, *begin), SCHEDULE) == "nothing-scheduled"
    assert run(model, *begin, ACCEPT).requests[0].counters.known == 3


def test_the_drop_is_sticky_while_its_share_is_undrained() -> None:
    """A later preemption makes all that is then in flight vanish; once drained, it is forgotten."""
    model = decoding("0.33.0", depth=5)
    begin = (*TWO_IN_FLIGHT, PREFIX, SCHEDULE, "preempt(request=r0)")
    request = run(model, *begin).requests[0]
    assert (request.counters.stale, request.counters.in_flight, request.drop) == (6, 6, 1)
    drained = run(model, *begin, ACCEPT, ACCEPT, ACCEPT).requests[0]
    assert (drained.counters.known, drained.counters.in_flight, drained.drop) == (2, 0, 0)


@pytest.mark.parametrize(("profile", "known"), [("0.24.0", 3), ("0.33.0", 2)])
def test_without_asynchronous_scheduling_only_0_27_on_lets_outputs_vanish(profile: str, known: int) -> None:
    model = decoding(profile, synchronous=1, depth=2, drafts=0)
    assert run(model, ARRIVE, SCHEDULE, PREFIX, ACCEPT).requests[0].counters.known == known


# --- the encoder cache is reset ---------------------------------------------------------------------------------------


def test_it_is_there_from_0_16_on() -> None:
    model = decoding("0.13.0")
    assert refusal(model, run(model, ARRIVE, SCHEDULE), ENCODER) == "route-closed"
    assert run(decoding("0.17.1"), ARRIVE, SCHEDULE, ENCODER).book.entries == ()
    empty = decoding("0.17.1")
    assert refusal(empty, run(empty, ARRIVE), ENCODER) == "cache-empty"


@pytest.mark.parametrize("profile", ["0.17.1", "0.24.0", "0.33.0", "repaired"])
def test_the_book_is_empty_and_nothing_else_changes(profile: str) -> None:
    model = decoding(profile)
    before = run(model, *TWO_IN_FLIGHT)
    state = run(model, *TWO_IN_FLIGHT, ENCODER)
    assert (state.book.entries, state.book.idle, state.book.evicted) == ((), (), ())
    assert (state.book.free, state.book.reclaimable) == (4, 4)
    (old,), (new,) = before.requests, state.requests
    assert new == old._replace(references=())
    assert (state.running, state.waiting, state.shelf) == (before.running, before.waiting, before.shelf)


def test_notices_that_were_not_sent_are_forgotten() -> None:
    begin = (ARRIVE, SCHEDULE, "abort(request=r0)", "evict(count=1)")
    model = decoding("0.33.0")
    assert run(model, *begin).book.evicted == ("k0",)
    state = run(model, *begin, ENCODER)
    assert state.book.evicted == ()
    assert run(model, *begin, ENCODER, ACCEPT).shelf == ()


def test_the_shelf_is_emptied_after_the_steps_in_flight() -> None:
    """The reset travels the same channel: every step dispatched before it finds what it was told to encode."""
    model = fixed("0.33.0", setup([(0, 4)], 4, slots=4, budget=2, depth=2, left_out=()))
    begin = (ARRIVE, SCHEDULE, SCHEDULE, ENCODER)
    assert [step.clear for step in run(model, *begin).steps] == [0, 1]
    assert [run(model, *begin, *[ACCEPT] * count).shelf for count in (1, 2)] == [("k0",), ()]
    assert run(model, *begin, ACCEPT, ACCEPT).misses == ()


def test_with_nothing_in_flight_the_shelf_is_emptied_at_once() -> None:
    model = fixed("0.33.0", setup([(0, 4)], 4, slots=4, budget=2, depth=2, left_out=()))
    assert run(model, ARRIVE, SCHEDULE, ACCEPT).shelf == ("k0",)
    assert run(model, ARRIVE, SCHEDULE, ACCEPT, ENCODER).shelf == ()


def test_the_next_chunk_encodes_the_item_again() -> None:
    model = fixed("0.33.0", setup([(0, 4)], 4, slots=4, budget=2, depth=3, left_out=()))
    state = run(model, ARRIVE, SCHEDULE, ENCODER, SCHEDULE)
    assert [(step.encode, step.clear) for step in state.steps] == [(("k0",), 1), (("k0",), 0)]
    assert state.requests[0].references == (0,)
    assert run(model, ARRIVE, SCHEDULE, ENCODER, SCHEDULE, ACCEPT, ACCEPT).shelf == ("k0",)


# --- KV blocks fail to load -------------------------------------------------------------------------------------------


def loading(profile: str, **numbers: int) -> FixedModel:
    """Item [2,5) in a prompt of 8."""
    asked = {"outputs": 9, "slots": 3, "budget": 8, "depth": 2, **numbers}
    return fixed(profile, setup([(2, 5)], 8, left_out=(), **asked))


FAILED = (ARRIVE, RESUME.format(6), "fail_kv_load(request=r0,valid=4)")
"""A prefix of 6 was to be loaded, and its blocks from 4 on were not."""


def test_failures_are_recomputed_from_0_12_on() -> None:
    model = loading("0.11.0")
    assert refusal(model, run(model, *FAILED[:2]), FAILED[2]) == "route-closed"


@pytest.mark.parametrize("profile", ["0.24.0", "0.32.0", "0.33.0"])
def test_a_failed_step_keeps_its_promise(profile: str) -> None:
    """Computed falls; placeholders, references, status and place in the queue stay; the output is skipped."""
    before = run(loading(profile), *FAILED[:2])
    assert before.requests[0].counters == Counters(computed=8, placeholders=1, in_flight=2, stale=0, known=8)
    state = run(loading(profile), *FAILED)
    request = state.requests[0]
    assert request.counters == Counters(computed=4, placeholders=1, in_flight=0, stale=0, known=8)
    assert (request.status, request.references, request.drop) == (RUNNING, before.requests[0].references, 0)
    assert (state.running, state.steps) == ((0,), ())
    # The leaked promise counts as a position to compute: one beyond what is known.
    assert run(loading(profile), *FAILED, SCHEDULE).steps[0].parts[0].tokens == 8 + 1 - 4


def test_repaired_settles_it() -> None:
    request = run(loading("repaired"), *FAILED).requests[0]
    assert request.counters == Counters(computed=4, placeholders=0, in_flight=0, stale=0, known=8)
    assert (request.references, request.drop, request.drafts) == ((), 0, 0)
    again = run(loading("repaired"), *FAILED, SCHEDULE)
    assert (again.steps[0].parts[0].start, again.steps[0].parts[0].tokens, again.steps[0].encode) == (4, 4, ("k0",))


@pytest.mark.parametrize(
    ("profile", "failed", "later"),
    [
        ("0.33.0", Counters(4, 2, 1, 0, 8), Counters(4, 1, 0, 0, 9)),
        ("repaired", Counters(4, 0, 1, 1, 8), Counters(4, 0, 0, 0, 8)),
    ],
)
def test_a_later_step_in_flight(profile: str, failed: Counters, later: Counters) -> None:
    """It stays live, though it was computed on invalid blocks; as repaired its output vanishes."""
    begin = (ARRIVE, RESUME.format(6), SCHEDULE, FAILED[2])
    state = run(loading(profile), *begin)
    assert state.requests[0].counters == failed
    assert [part.live for step in state.steps for part in step.parts] == [int(profile == "0.33.0")]
    assert run(loading(profile), *begin, ACCEPT).requests[0].counters == later


def test_only_the_first_step_of_an_admission_with_a_prefix_can_fail() -> None:
    model = loading("0.33.0")
    assert refusal(model, run(model, ARRIVE, SCHEDULE), FAILED[2]) == "nothing-was-loaded"
    assert refusal(model, run(model, *FAILED, SCHEDULE), FAILED[2]) == "nothing-was-loaded"
    gone = run(model, *FAILED[:2], "preempt(request=r0)")
    assert refusal(model, gone, FAILED[2]) == "nothing-was-loaded"
    assert run(model, *FAILED[:2], "fail_kv_load(request=r0,valid=99)").requests[0].counters.computed == 5
