"""Resumable sessions: how a turn ends, where the next one begins, and who waits where, release by release.

The right values are written in.
"""

import pytest
from outlives.model.contract import Range
from outlives.model.lifetime import Counters
from outlives.model.setup import Item, RequestSetup, Scope, Setup, Turn
from outlives.model.state import PAUSED, RUNNING, WAITING
from worlds import FixedModel, fixed, refusal, run

ARRIVE, SCHEDULE, ACCEPT, PREFIX = "arrive(request=r0)", "schedule()", "accept()", "reset_prefix_cache()"

CONTINUE = "continue_session(request=r0)"


def session(profile: str, **numbers: int) -> FixedModel:
    """A prompt of 5 with item [1,3), then 3 more tokens with an item on the last two of them."""
    outputs = numbers.pop("outputs", 9)
    turn = Turn(3, 2, (Item(1, 2, "k1", 2),))
    asked = RequestSetup(5, outputs, (Item(1, 2, "k0", 2),), turns=(turn,))
    return fixed(profile, Setup((asked,), **{"slots": 4, "budget": 8, "depth": 3, **numbers}, left_out=()))


def test_sessions_are_there_from_0_15_on() -> None:
    """Before, a request with further turns ends with the first."""
    ends = {name: run(session(name, outputs=1), ARRIVE, SCHEDULE, ACCEPT) for name in ("0.13.0", "0.17.1")}
    assert [state.requests[0].status for state in ends.values()] == ["finished", PAUSED]


RELEASES = ("0.17.1", "0.29.0", "0.32.0", "0.33.0")
SITUATIONS = {
    # Two outputs, a and b, are there when the turn ends. Right: b goes, and 3 tokens follow a.
    "nothing in flight": (
        {},
        (SCHEDULE, ACCEPT, SCHEDULE, ACCEPT),
        [(6, 0, 9, 0), (6, 0, 9, 0), (6, 0, 9, 0), (6, 0, 9, 0)],
    ),
    "a decode step in flight": (
        {},
        (SCHEDULE, SCHEDULE, ACCEPT, SCHEDULE, ACCEPT),
        [(7, 1, 10, 0), (7, 1, 10, 0), (6, 0, 9, 1), (6, 0, 9, 1)],
    ),
    "a decode step with a draft in flight": (
        {"drafts": 1},
        (SCHEDULE, ACCEPT, "speculate(request=r0,drafts=0)", SCHEDULE, SCHEDULE, ACCEPT),
        [(8, 2, 10, 0), (8, 2, 10, 0), (6, 0, 9, 2), (6, 0, 9, 2)],
    ),
    "cut off at the limit": (
        {"drafts": 2, "synchronous": 1, "outputs": 2, "depth": 1},
        (SCHEDULE, ACCEPT, SCHEDULE, ACCEPT),
        [(8, 0, 10, 0), (8, 0, 10, 0), (8, 0, 10, 0), (6, 0, 9, 0)],
    ),
    "by a stale output": (
        {"outputs": 2, "depth": 4},
        (SCHEDULE, SCHEDULE, "preempt(request=r0)", ACCEPT, ACCEPT),
        [(0, 0, 3, 0), (0, 0, 3, 0), (0, 0, 3, 0), (0, 0, 9, 0)],
    ),
}
"""Situation -> numbers, actions, and computed, placeholders, known and stale after the next turn began, by release."""


@pytest.mark.parametrize(("profile", "at"), [(name, at) for at, name in enumerate(RELEASES)])
@pytest.mark.parametrize("name", SITUATIONS)
def test_where_the_next_turn_begins(name: str, profile: str, at: int) -> None:
    numbers, actions, expected = SITUATIONS[name]
    model = session(profile, **numbers)
    state = run(model, ARRIVE, *actions)
    if state.requests[0].status != PAUSED:
        state = run(model, ARRIVE, *actions, "finish(request=r0)")
        actions = (*actions, "finish(request=r0)")
    assert (state.requests[0].status, state.requests[0].counters.known) == (PAUSED, 7)
    assert (state.running, state.waiting) == ((), ())
    counters = run(model, ARRIVE, *actions, CONTINUE).requests[0].counters
    assert (counters.computed, counters.placeholders, counters.known, counters.stale) == expected[at]


@pytest.mark.parametrize(("profile", "known"), [("0.29.0", 8), ("0.32.0", 7), ("0.33.0", 7)])
def test_an_output_that_arrives_after_the_turn_has_ended(profile: str, known: int) -> None:
    """Up to 0.30 it joins the parked session; from 0.31.0 on it vanishes (#52765)."""
    ended = (ARRIVE, *SITUATIONS["a decode step in flight"][1], "finish(request=r0)")
    request = run(session(profile), *ended, ACCEPT).requests[0]
    assert (request.status, request.counters.known, request.counters.in_flight) == (PAUSED, known, 0)


def test_the_next_turn_has_a_limit_and_items_of_its_own() -> None:
    """Its items lie after the outputs that are kept: prompt 5, one output, then the turn's text and item."""
    model = session("0.33.0", outputs=2)
    state = run(model, ARRIVE, SCHEDULE, ACCEPT, SCHEDULE, ACCEPT, CONTINUE)
    (request,) = state.requests
    assert (request.status, request.turn, state.waiting) == (WAITING, 1, (0,))
    assert request.extra == (Item(7, 2, "k1", 2),)
    assert request.limit == 9 + 2
    going = run(model, ARRIVE, SCHEDULE, ACCEPT, SCHEDULE, ACCEPT, CONTINUE, SCHEDULE)
    assert [(part.start, part.tokens) for part in going.steps[0].parts] == [(6, 3)]
    assert (going.steps[0].encode, going.requests[0].references) == (("k1",), (1,))
    ends = [run(model, ARRIVE, *[SCHEDULE, ACCEPT] * 2, CONTINUE, *[SCHEDULE, ACCEPT] * count) for count in (1, 2)]
    assert [state.requests[0].status for state in ends] == [RUNNING, "finished"]


def test_references_stay_at_the_end_of_a_turn() -> None:
    """The item ends with the prompt: while its last output is processed, one position of it is not confirmed."""
    asked = RequestSetup(3, 1, (Item(1, 2, "k0", 2),), turns=(Turn(3, 2),))
    held = {}
    for name in ("0.29.0", "0.32.0", "0.33.0", "repaired"):
        model = fixed(name, Setup((asked,), slots=4, budget=8, left_out=()))
        state = run(model, ARRIVE, SCHEDULE, ACCEPT)
        assert state.requests[0].status == PAUSED
        held[name] = state.requests[0].references
    assert held == {"0.29.0": (0,), "0.32.0": (0,), "0.33.0": (0,), "repaired": ()}
    aborted = run(fixed("0.33.0", Setup((asked,), slots=4, budget=8, left_out=())), ARRIVE, SCHEDULE, ACCEPT,
                  "abort(request=r0)")  # fmt: skip
    assert (aborted.book.idle, aborted.requests[0].status) == (("k0",), "finished")


def test_a_parked_session_is_neither_preempted_nor_reset() -> None:
    model = session("0.33.0", outputs=1)
    state = run(model, ARRIVE, SCHEDULE, ACCEPT)
    assert refusal(model, state, "preempt(request=r0)") == "not-running"
    assert refusal(model, state, PREFIX) == "nothing-running"
    assert refusal(model, state, SCHEDULE) == "nothing-scheduled"
    assert refusal(model, run(model, ARRIVE, SCHEDULE), CONTINUE) == "not-paused"


@pytest.mark.parametrize(
    ("profile", "lost"), [("0.17.1", 1), ("0.20.0", 0), ("0.24.0", 0), ("0.28.0", 1), ("0.32.0", 1), ("0.33.0", 0)]
)
def test_a_session_that_a_stale_output_ended(profile: str, lost: int) -> None:
    """Queued, and then taken out of the queue again with the preempted request that it was."""
    numbers, actions, _ = SITUATIONS["by a stale output"]
    model = session(profile, **numbers)
    state = run(model, ARRIVE, *actions, CONTINUE)
    assert (state.requests[0].lost, state.waiting) == (lost, () if lost else (0,))


@pytest.mark.parametrize(("profile", "counters"), [("0.33.0", (6, 8)), ("repaired", (6, 9))])
def test_a_diffusion_model_samples_nothing_ahead(profile: str, counters: tuple[int, int]) -> None:
    """Prompt 5, one output: all 6 tokens are computed. 0.33.0 takes the last one away all the same, and goes on at a
    position that the next turn has not reached."""
    model = session(profile, outputs=1, drafts=1, diffusion=1)
    state = run(model, ARRIVE, *[SCHEDULE, ACCEPT] * 2, CONTINUE)
    assert (state.requests[0].counters.computed, state.requests[0].counters.known) == counters


def test_a_turn_ends_with_an_output_and_not_while_its_prompt_is_computed_again() -> None:
    model = session("0.33.0")
    state = run(model, ARRIVE, SCHEDULE, ACCEPT, "preempt(request=r0)", ACCEPT, SCHEDULE)
    counters = state.requests[0].counters
    assert counters.computed - counters.placeholders == counters.known - 1  # the numbers of an output just processed
    assert refusal(model, state, "finish(request=r0)") == "no-output-now"
    assert run(model, ARRIVE, SCHEDULE, ACCEPT, SCHEDULE, "finish(request=r0)").requests[0].status == PAUSED


def test_blocks_that_a_session_holds_cannot_fail_to_load() -> None:
    """No prefix is looked up for it; a resume with a prefix hit looks one up."""
    model = session("0.33.0", outputs=1)
    held = run(model, ARRIVE, SCHEDULE, ACCEPT, CONTINUE, SCHEDULE)
    assert (held.steps[0].parts[0].start, held.steps[0].parts[0].first) == (5, 2)
    assert refusal(model, held, "fail_kv_load(request=r0,valid=0)") == "nothing-was-loaded"
    loaded = run(model, ARRIVE, "resume(request=r0,kept=3)")
    assert (loaded.steps[0].parts[0].start, loaded.steps[0].parts[0].first) == (3, 1)
    failed = run(model, ARRIVE, "resume(request=r0,kept=3)", "fail_kv_load(request=r0,valid=1)")
    assert failed.requests[0].counters.computed == 1


def test_an_item_that_reaches_past_the_prompt_leaves_no_room_for_a_later_turn() -> None:
    """The next turn would begin inside it."""
    scope = Scope(items=Range(1, 1), anywhere=True, turns=Range(1, 2), lead=Range(0, 6))
    numbers = {"r0_lead0": 2, "r0_length0": 3, "r0_turns": 2, "r0_turn1_length": 1}
    turns = {prompt: len(scope.setup({**numbers, "r0_prompt": prompt}).requests[0].turns) for prompt in (4, 5)}
    assert turns == {4: 0, 5: 1}


@pytest.mark.parametrize(("profile", "first"), [("0.29.0", 1), ("0.32.0", 0), ("0.33.0", 0)])
def test_who_holds_kv_blocks_is_admitted_first(profile: str, first: int) -> None:
    """From 0.31.0 on the queue of those who hold blocks is served before the other one."""
    turns = (Turn(4, 1),)
    requests = (RequestSetup(4, 1, (), turns=turns), RequestSetup(4, 1, ()))
    model = fixed(profile, Setup(requests, slots=1, budget=4, left_out=()))
    begin = (ARRIVE, SCHEDULE, ACCEPT, "arrive(request=r1)", CONTINUE)
    assert run(model, *begin).waiting == (1, 0)
    assert run(model, *begin, SCHEDULE).running == (first,)


def test_a_session_that_goes_on_keeps_what_it_has_computed() -> None:
    """It holds its blocks: no prefix is looked up."""
    model = session("0.33.0", outputs=1)
    begin = (ARRIVE, SCHEDULE, ACCEPT, CONTINUE)
    assert run(model, *begin).requests[0].counters == Counters(5, 0, 0, 0, 8)
    assert run(model, *begin, SCHEDULE).steps[0].parts[0].start == 5
    assert run(model, *begin, "resume(request=r0,kept=1)").steps[0].parts[0].start == 5


def test_a_prefix_reset_beside_a_session_that_holds_blocks() -> None:
    """Only who runs is preempted; the one that waits for its next turn keeps its place and its counters."""
    requests = (RequestSetup(4, 1, (), turns=(Turn(4, 1),)), RequestSetup(4, 2, ()))
    model = fixed("0.33.0", Setup(requests, slots=1, budget=4, left_out=()))
    state = run(model, ARRIVE, SCHEDULE, ACCEPT, "arrive(request=r1)", SCHEDULE, CONTINUE, PREFIX)
    assert (state.waiting, state.running) == ((1, 0), ())
    assert state.requests[0].counters == Counters(4, 0, 0, 0, 8)
