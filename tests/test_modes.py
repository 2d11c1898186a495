"""Synchronous scheduling, diffusion, encoder-decoder models, padded admissions and the priority policy's own victim.

What a pass and an output do to the counters and the slots, release by release; the right values are written in.
"""

import pytest
from outlives.model.lifetime import Counters
from outlives.model.setup import Item, RequestSetup, Setup
from outlives.model.state import RUNNING, Part
from worlds import FixedModel, fixed, refusal, run, setup

ARRIVE, SCHEDULE, ACCEPT = "arrive(request=r0)", "schedule()", "accept()"
RELEASES = ("0.13.0", "0.24.0", "0.33.0", "repaired")


# --- synchronous scheduling -------------------------------------------------------------------------------------------


def synchronous(profile: str, *, stages: int, budget: int = 8, drafts: int = 2) -> FixedModel:
    """A prompt of 4 with item [0,2)."""
    numbers = setup([(0, 2)], 4, outputs=9, slots=2, budget=budget, drafts=drafts, depth=stages, synchronous=1)
    return fixed(profile, numbers)


@pytest.mark.parametrize("profile", RELEASES)
def test_nothing_is_promised_and_drafts_come_with_the_output(profile: str) -> None:
    model = synchronous(profile, stages=1)
    begun = run(model, ARRIVE, SCHEDULE).requests[0]
    assert (begun.counters, begun.drafts, begun.decoding) == (Counters(4, 0, 4, 0, 4), 0, 0)
    answered = run(model, ARRIVE, SCHEDULE, ACCEPT).requests[0]
    assert (answered.counters, answered.drafts, answered.decoding) == (Counters(4, 0, 0, 0, 5), 2, 1)
    decoding = run(model, ARRIVE, SCHEDULE, ACCEPT, SCHEDULE)
    assert decoding.requests[0].counters == Counters(7, 0, 3, 0, 5)
    assert decoding.steps[0].parts[0][2:6] == (3, 2, 1, 0)
    rejected = run(model, ARRIVE, SCHEDULE, ACCEPT, SCHEDULE, "reject(accepted=1)").requests[0]
    assert rejected.counters == Counters(6, 0, 0, 0, 7)


@pytest.mark.parametrize("profile", RELEASES)
def test_of_two_stages_a_prompt_fills_both_and_a_decode_step_only_one(profile: str) -> None:
    model = synchronous(profile, stages=2, budget=2)
    state = run(model, ARRIVE, SCHEDULE, SCHEDULE)
    assert [(part.start, part.sampled) for step in state.steps for part in step.parts] == [(0, 0), (2, 1)]
    decoding = run(model, ARRIVE, SCHEDULE, SCHEDULE, ACCEPT, ACCEPT, SCHEDULE)
    assert refusal(model, decoding, SCHEDULE) == "nothing-scheduled"


def test_an_output_that_meets_a_chunk_computed_again_brings_no_drafts() -> None:
    """The KV blocks that were found fail to load while the prompt's last step is in flight: it begins anew."""
    numbers = setup([(0, 1)], 3, outputs=2, slots=1, budget=1, drafts=1, depth=2, synchronous=1, left_out=())
    model = fixed("0.33.0", numbers)
    begin = (ARRIVE, "resume(request=r0,kept=1)", SCHEDULE, "fail_kv_load(request=r0,valid=0)", SCHEDULE)
    assert [part.sampled for step in run(model, *begin).steps for part in step.parts] == [1, 0]
    request = run(model, *begin, ACCEPT).requests[0]
    assert (request.drafts, request.decoding) == (0, 0)


def test_the_guard_counts_what_is_not_known_to_be_right_yet() -> None:
    """Without promises confirmed is computed: an item of the prompt goes with the output of its last chunk."""
    model = synchronous("0.33.0", stages=2, budget=2)
    assert run(model, ARRIVE, SCHEDULE).requests[0].references == (0,)
    assert run(model, ARRIVE, SCHEDULE, SCHEDULE, ACCEPT).requests[0].references == ()


# --- diffusion --------------------------------------------------------------------------------------------------------


def diffusing(profile: str, **numbers: int) -> FixedModel:
    asked = {"outputs": 9, "slots": 2, "budget": 8, "drafts": 2, "diffusion": 1, **numbers}
    return fixed(profile, setup([(0, 2)], 3, **asked))


def test_diffusion_is_there_from_0_24_on_and_needs_drafts() -> None:
    for model in (diffusing("0.20.0"), diffusing("0.33.0", drafts=0)):
        assert refusal(model, model.initial_state({}), ARRIVE) == "never-samples"


@pytest.mark.parametrize("profile", ["0.24.0", "0.33.0", "repaired"])
@pytest.mark.parametrize(
    ("output", "counters"),
    [
        (ACCEPT, Counters(5, 0, 0, 0, 5)),
        ("reject(accepted=1)", Counters(4, 0, 0, 0, 4)),
        ("reject(accepted=0)", Counters(3, 0, 0, 0, 3)),
    ],
)
def test_a_step_samples_nothing_beside_its_drafts(profile: str, output: str, counters: Counters) -> None:
    """The step that ends the prompt promises nothing; after each output computed is what is known."""
    model = diffusing(profile)
    assert run(model, ARRIVE, SCHEDULE).requests[0].counters == Counters(3, 0, 3, 0, 3)
    assert run(model, ARRIVE, SCHEDULE, ACCEPT).requests[0].counters == Counters(3, 0, 0, 0, 3)
    canvas = run(model, ARRIVE, SCHEDULE, ACCEPT, SCHEDULE)
    assert canvas.requests[0].counters == Counters(5, 2, 2, 0, 3)
    assert run(model, ARRIVE, SCHEDULE, ACCEPT, SCHEDULE, output).requests[0].counters == counters


# --- encoder-decoder models -------------------------------------------------------------------------------------------


def whisper(profile: str, *requests: RequestSetup, **numbers: int) -> FixedModel:
    """An item of 4 slots at the start of a prompt of 4, room for 10."""
    asked = requests or (RequestSetup(4, 9, (Item(0, 4, "k0", 4),)),)
    return fixed(profile, Setup(asked, **{"slots": 10, "budget": 8, "encoder_decoder": 1, **numbers}))


def test_releases_before_0_13_have_no_manager_of_their_own() -> None:
    model = whisper("0.12.0")
    assert refusal(model, model.initial_state({}), ARRIVE) == "no-encoder-decoder-models"


@pytest.mark.parametrize(
    ("profile", "dispatched", "processed"),
    [
        ("0.17.1", [10, 14, 18], [10, 14, 18]),
        ("0.20.0", [6, 10, 14], [10, 14, 18]),
        ("0.33.0", [6, 10, 14], [10, 14, 18]),
        ("repaired", [6, 10, 10], [10, 10, 10]),
    ],
)
def test_slots_are_credited_with_every_step(profile: str, dispatched: list[int], processed: list[int]) -> None:
    """Taken once and credited each time, at dispatch up to 0.19.1 and at the output from 0.20.0 on."""
    model = whisper(profile)
    passes = [run(model, ARRIVE, *[SCHEDULE, ACCEPT] * count, SCHEDULE).book for count in range(3)]
    outputs = [run(model, ARRIVE, *[SCHEDULE, ACCEPT] * count).book for count in (1, 2, 3)]
    assert [book.free for book in passes] == dispatched
    assert [book.free for book in outputs] == processed
    assert [book.reclaimable for book in outputs] == processed


def test_a_failed_admission_credits_what_it_never_took() -> None:
    """From 0.14.0 on, and as repaired not; there nothing changes, so that no pass was made."""
    for profile in ("0.17.1", "0.33.0"):
        assert run(whisper(profile), ARRIVE, "schedule(short_at=r0)").book.free == 14
    for profile in ("0.13.0", "repaired"):
        model = whisper(profile)
        assert refusal(model, run(model, ARRIVE), "schedule(short_at=r0)") == "nothing-scheduled"


@pytest.mark.parametrize("action", ["preempt(request=r0)", "abort(request=r0)"])
def test_a_preemption_and_an_abort_credit_as_well(action: str) -> None:
    """What is held, and once more what an output has credited already; as repaired only what is held."""
    for profile, again in (("0.33.0", 14), ("repaired", 10)):
        held = run(whisper(profile), ARRIVE, SCHEDULE)
        assert (held.book.free, held.requests[0].references) == (6, (0,))
        state = run(whisper(profile), ARRIVE, SCHEDULE, action)
        assert (state.book.free, state.book.entries, state.requests[0].references) == (10, (), ())
        assert run(whisper(profile), ARRIVE, SCHEDULE, ACCEPT, action).book.free == again


@pytest.mark.parametrize(
    ("profile", "drops", "shelf"),
    [("0.13.0", [("k0",), ()], ("k0",)), ("0.17.1", [(), ("k0",)], ()), ("0.33.0", [(), ("k0",)], ())],
)
def test_when_the_worker_is_told_to_drop(profile: str, drops: list[tuple[str, ...]], shelf: tuple[str, ...]) -> None:
    """In 0.13 with the very encode, where it is dropped first and stays for ever; one pass later from 0.14.0 on."""
    model = whisper(profile)
    first = run(model, ARRIVE, SCHEDULE).steps[0]
    second = run(model, ARRIVE, SCHEDULE, SCHEDULE).steps[1]
    assert [first.encode, second.encode] == [("k0",), ()]
    assert [first.drop, second.drop] == drops
    assert run(model, ARRIVE, SCHEDULE, SCHEDULE, ACCEPT, ACCEPT).shelf == shelf


def test_all_items_are_looked_at_at_the_start_or_not_at_all() -> None:
    both = RequestSetup(6, 9, (Item(0, 2, "k0", 2), Item(2, 2, "k1", 2)))
    model = whisper("0.33.0", both, budget=2)
    state = run(model, ARRIVE, SCHEDULE)
    assert (state.steps[0].encode, state.steps[0].parts[0].tokens, state.book.free) == (("k0", "k1"), 2, 6)
    assert run(model, ARRIVE, SCHEDULE, SCHEDULE).steps[1].encode == ()
    assert run(model, ARRIVE, SCHEDULE, SCHEDULE, ACCEPT, ACCEPT).misses == ()
    short = whisper("0.33.0", both, slots=4, encoder_budget=3)
    assert refusal(short, short.initial_state({}), ARRIVE) == "never-fits"


def test_a_key_is_not_shared() -> None:
    one = RequestSetup(4, 9, (Item(0, 4, "k0", 4),))
    other = RequestSetup(4, 9, (Item(0, 4, "k1", 4),))
    model = whisper("repaired", one, other, slots=7)
    state = run(model, ARRIVE, "arrive(request=r1)", SCHEDULE)
    assert (state.running, state.waiting, state.book.free) == ((0,), (1,), 3)
    still = run(model, ARRIVE, "arrive(request=r1)", SCHEDULE, SCHEDULE)
    assert (still.running, still.waiting) == ((0,), (1,))  # the slots are held until an output is processed
    later = run(model, ARRIVE, "arrive(request=r1)", SCHEDULE, ACCEPT, SCHEDULE)
    assert (later.running, later.book.free) == ((0, 1), 3)


@pytest.mark.parametrize(("profile", "free"), [("0.33.0", 14), ("repaired", 10)])
def test_a_reset_before_the_credit(profile: str, free: int) -> None:
    """The reset makes all slots free, and the output credits the item's slots on top."""
    asked = RequestSetup(4, 9, (Item(0, 4, "k0", 4),))
    model = fixed(profile, Setup((asked,), slots=10, budget=8, encoder_decoder=1, left_out=()))
    state = run(model, ARRIVE, SCHEDULE, "reset_encoder_cache()")
    assert (state.book.free, state.book.due) == (10, ())
    assert run(model, ARRIVE, SCHEDULE, "reset_encoder_cache()", ACCEPT).book.free == free


# --- padded admissions ------------------------------------------------------------------------------------------------


def beside_a_decode(profile: str, prompt: int = 1, **numbers: int) -> Part:
    """The part of r1, admitted beside r0, which decodes."""
    requests = (RequestSetup(2, 9, ()), RequestSetup(prompt, 9, ()))
    model = fixed(profile, Setup(requests, **{"slots": 1, "budget": 8, "drafts": 2, **numbers}))
    state = run(model, ARRIVE, SCHEDULE, ACCEPT, "arrive(request=r1)", SCHEDULE)
    return next((part for part in state.steps[0].parts if part.request == 1), Part(1, 0, 0, 0, 0, 0, 0))


@pytest.mark.parametrize(
    ("profile", "tokens", "drafts", "promised"), [("0.24.0", 1, 0, 1), ("0.27.0", 3, 2, 3), ("0.33.0", 3, 2, 3)]
)
def test_an_admission_of_one_token_beside_decodes_is_padded_from_0_25_on(
    profile: str, tokens: int, drafts: int, promised: int
) -> None:
    part = beside_a_decode(profile)
    assert (part.tokens, part.drafts, part.promised, part.sampled) == (tokens, drafts, promised, 1)


def test_what_is_not_padded() -> None:
    """Two tokens; no drafts; a batch with a chunk of a prompt; nobody beside it, with nothing computed."""
    assert beside_a_decode("0.33.0", prompt=2)[2:4] == (2, 0)
    assert beside_a_decode("0.33.0", drafts=0)[2:4] == (1, 0)
    requests = (RequestSetup(6, 9, ()), RequestSetup(1, 9, ()))
    chunked = fixed("0.33.0", Setup(requests, slots=1, budget=8, chunk_cap=3, drafts=2))
    state = run(chunked, ARRIVE, "arrive(request=r1)", SCHEDULE)
    assert [part[2:4] for part in state.steps[0].parts] == [(3, 0), (1, 0)]
    alone = fixed("0.33.0", setup([], 1, drafts=2))
    assert run(alone, ARRIVE, SCHEDULE).steps[0].parts[0][2:4] == (1, 0)


@pytest.mark.parametrize(("profile", "tokens"), [("0.27.0", 1), ("0.32.0", 3), ("0.33.0", 3)])
def test_with_a_prefix_it_is_padded_alone_from_0_30_on(profile: str, tokens: int) -> None:
    model = fixed(profile, setup([], 4, outputs=9, drafts=2))
    assert run(model, ARRIVE, "resume(request=r0,kept=3)").steps[0].parts[0].tokens == tokens


def test_a_padded_admission_that_does_not_fit_the_budget_ends_the_admissions() -> None:
    """r0's decode takes 3 of 5, and 1 + 2 are more than what is left."""
    assert beside_a_decode("0.33.0", budget=5).tokens == 0
    assert beside_a_decode("0.24.0", budget=5).tokens == 1


# --- the victim is the request itself ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("profile", "scheduled"), [("0.32.0", []), ("0.33.0", [1]), ("repaired", [1])])
def test_a_request_that_preempts_itself_under_the_priority_policy(profile: str, scheduled: list[int]) -> None:
    """It ends the loop over the running ones up to 0.32.0; from 0.33.0 on the more urgent one behind it is served."""
    requests = (RequestSetup(4, 9, (), priority=2), RequestSetup(4, 9, (), priority=0))
    model = fixed(profile, Setup(requests, slots=1, budget=4, chunk_cap=2, by_priority=1), policy="priority")
    begin = (ARRIVE, "arrive(request=r1)", SCHEDULE, ACCEPT)
    assert run(model, *begin).running in ((0, 1), (1, 0))
    waits = (ARRIVE, SCHEDULE, ACCEPT, "arrive(request=r1)", SCHEDULE, ACCEPT)
    assert run(model, *waits).running == (0, 1)
    state = run(model, *waits, "schedule(short_at=r0)")
    assert [part.request for part in state.steps[0].parts] == scheduled
    assert (state.requests[1].status, state.waiting) == (RUNNING, (0,))


@pytest.mark.parametrize("profile", ["0.32.0", "0.33.0", "repaired"])
def test_a_request_that_preempts_itself_first_come_first_served(profile: str) -> None:
    """It is the last of the running ones: nobody stands behind it."""
    requests = (RequestSetup(4, 9, ()), RequestSetup(4, 9, ()))
    model = fixed(profile, Setup(requests, slots=1, budget=4, chunk_cap=2))
    state = run(model, ARRIVE, "arrive(request=r1)", SCHEDULE, ACCEPT, "schedule(short_at=r1)")
    assert [part.request for part in state.steps[0].parts] == [0]
    assert (state.running, state.waiting) == ((0,), (1,))
