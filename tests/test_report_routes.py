"""The stories of what the rare routes and modes bring about: resets, failed loads, sessions, encoder-decoder."""

from dataclasses import replace

import pytest
from outlives.invariants.machine_shrink import Witness, build_trace
from outlives.invariants.report.content import Violation, explain, setup_words
from outlives.invariants.report.story_cause import release_words
from outlives.invariants.report.story_routes import routes_taken
from outlives.invariants.report.witness import Witness as Watched
from outlives.invariants.report.witness import watch
from outlives.invariants.verdict import Step, Trace
from outlives.model.contract import Refusal
from outlives.model.profiles import PROFILES
from outlives.model.setup import Item, RequestSetup, Setup, Turn
from worlds import action, fixed, setup

ARRIVE, SCHEDULE, ACCEPT, EVICT = "arrive(request=r0)", "schedule()", "accept()", "evict(count=1)"

SESSION = Setup(
    (RequestSetup(2, 1, (Item(0, 2, "k0", 2),), turns=(Turn(2, 1, (Item(0, 2, "k1", 2),)),)),),
    slots=2,
    budget=4,
    left_out=(),
)
"""Two turns with an item each, room for one."""
BACK = setup([(0, 3)], 1, outputs=6, slots=4, budget=8, drafts=3, left_out=())
"""One item that reaches past the prompt."""


def told(profile: str, numbers: Setup, name: str, *actions: str, **fields: object) -> Violation:
    """What is said of these actions, which violate that property at their end."""
    model = fixed(profile, numbers, **fields)
    prop = next(prop for prop in model.properties() if prop.name == name)
    taken = tuple(action(text) for text in actions)
    trace = build_trace(model, prop, Witness(None, model.initial_state({}), taken))
    return explain(trace, world=model.world)


def watched(profile: str, numbers: Setup, *actions: str) -> Watched:
    """These actions, none of them refused, with every rule recorded."""
    model = fixed(profile, numbers)
    steps = [Step(None, model.initial_state({}))]
    for text in actions:
        after = model.next_state(steps[-1].state, action(text))
        assert not isinstance(after, Refusal)
        steps.append(Step(action(text), after))
    seen = watch(Trace(steps=tuple(steps), property="PROGRESS", why=""), model.world)
    assert seen is not None
    return seen


def routes(profile: str, numbers: Setup, *actions: str) -> list[str]:
    """The sentences about the rare routes of these actions."""
    return [event.text for event in routes_taken(watched(profile, numbers, *actions))]


def events(violation: Violation) -> list[tuple[str, int]]:
    return [(event.kind, event.step) for event in violation.story.events]


def chain(violation: Violation) -> str:
    return "\n".join(violation.story.chain)


# --- resets -----------------------------------------------------------------------------------------------------------


def test_the_encoder_cache_is_reset_under_a_reader_that_goes_back() -> None:
    begin = (ARRIVE, SCHEDULE, "speculate(request=r0,drafts=2)", SCHEDULE, "reset_encoder_cache()")
    fields = {"relaxed": ("A3",), "reader": "any", "guard": "retain", "anywhere": True}
    there = told("repaired", BACK, "GATHER-AFTER-FREE", *begin, ACCEPT, SCHEDULE, ACCEPT, "accept(back=3)", **fields)
    assert (
        "(entry k0) was taken from the worker by the reset of the encoder cache at step 5; the" in there.story.headline
    )
    assert events(there) == [("planned", 2), ("cleared", 5), ("not-encoded", 7), ("cleared", 8), ("read", 9)]
    assert "Step 5, reset_encoder_cache(), emptied the book, though r0 referenced it." in chain(there)
    assert "Step 8, accept(), emptied the shelf after the last step from before it." in chain(there)
    changed = [change.words() for change in there.lines[5].changes]
    assert "steps: - r0[1,4) with 2 drafts + r0[1,4) with 2 drafts; then clear the shelf" in changed


def test_a_reset_with_nothing_left_to_execute_empties_the_shelf_at_once() -> None:
    begin = (ARRIVE, SCHEDULE, "speculate(request=r0,drafts=2)", SCHEDULE, "execute()", "execute()")
    ends = ("reset_encoder_cache()", ACCEPT, SCHEDULE, "execute(back=3)")
    fields = {"relaxed": ("A3",), "reader": "any", "guard": "retain", "anywhere": True, "split": True}
    there = told("repaired", BACK, "GATHER-AFTER-FREE", *begin, *ends, **fields)
    assert (
        "(entry k0) was taken from the worker by the reset of the encoder cache at step 7; the" in there.story.headline
    )
    assert [step for kind, step in events(there) if kind == "cleared"] == [7, 7]
    assert "Step 7, reset_encoder_cache(), emptied the shelf at once, as no step had to execute before it." in chain(
        there
    )


def test_a_reset_of_the_prefix_cache_drops_references() -> None:
    numbers = setup([(0, 2)], 4, slots=2, budget=1, depth=3, left_out=())
    begin = (ARRIVE, SCHEDULE, SCHEDULE, ACCEPT, "reset_prefix_cache()", EVICT, ACCEPT)
    there = told("repaired", numbers, "GATHER-AFTER-FREE", *begin, relaxed=("A1",), guard="retain")
    assert "was released at step 5 by prefix-cache reset, and the worker lost it at step 6" in there.story.headline
    assert "because the prefix cache was reset, which drops all references of running requests." in chain(there)
    assert "r0.drop: 0 → 1" in [change.words() for change in there.lines[5].changes]


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        ("0.17.1", "the next 1 sampled output of r0 will be discarded, with 2 steps in flight"),
        ("0.24.0", "the next 3 sampled outputs of r0 will be discarded, with 2 steps in flight"),
        ("0.33.0", "6 tokens in flight for r0 will vanish"),
    ],
)
def test_a_reset_tells_which_outputs_vanish(profile: str, words: str) -> None:
    """A prompt of 4 and a decode step with one draft are in flight: 6 tokens, 3 placeholders."""
    numbers = setup([(0, 2)], 4, outputs=9, slots=2, budget=4, drafts=1, left_out=())
    (text,) = routes(profile, numbers, ARRIVE, SCHEDULE, SCHEDULE, "reset_prefix_cache()")
    assert text == f"step 4, reset_prefix_cache(), preempted r0; {words}"


def test_a_reset_of_the_encoder_cache_tells_what_was_referenced() -> None:
    numbers = setup([(0, 2)], 4, slots=2, budget=2, left_out=())
    flying = routes("repaired", numbers, ARRIVE, SCHEDULE, "reset_encoder_cache()")
    assert flying == [
        "step 3, reset_encoder_cache(), emptied the book, and with it the references to k0; "
        "the shelf is emptied after the steps in flight"
    ]
    assert routes("repaired", numbers, ARRIVE, SCHEDULE, ACCEPT, "reset_encoder_cache()") == [
        "step 4, reset_encoder_cache(), emptied the book, and the shelf"
    ]


# --- KV blocks that failed to load ------------------------------------------------------------------------------------


def test_a_failed_load_that_keeps_its_promises() -> None:
    numbers = setup([(0, 2)], 4, slots=2, budget=4, left_out=())
    begin = (ARRIVE, "resume(request=r0,kept=3)", "fail_kv_load(request=r0,valid=2)")
    there = told("0.33.0", numbers, "PLACEHOLDERS-KEPT", *begin)
    assert there.story.chain[0] == (
        "Step 3, fail_kv_load(request=r0, valid=2): computed fell from 4 to 2, and the output was skipped; "
        "1 placeholder stayed, those that the failed step had promised among them."
    )
    assert "r0 counts 1 placeholders, but its live steps in flight have promised 0" in there.story.headline


def test_a_failed_load_that_drops_references() -> None:
    """As repaired; a notice that overtakes then meets a step in flight."""
    numbers = setup([(0, 3)], 5, slots=3, budget=1, depth=3, left_out=())
    begin = (ARRIVE, "resume(request=r0,kept=1)", SCHEDULE, "fail_kv_load(request=r0,valid=0)", EVICT, ACCEPT)
    there = told("repaired", numbers, "GATHER-AFTER-FREE", *begin, relaxed=("A1",))
    assert "was released at step 4 by failed KV load, and the worker lost it at step 5" in there.story.headline
    assert "because KV blocks of its prefix failed to load, which drops all its references." in chain(there)


# --- sessions ---------------------------------------------------------------------------------------------------------


def test_a_session_that_is_in_no_queue_any_more() -> None:
    there = told("0.28.0", SESSION, "PROGRESS", ARRIVE, SCHEDULE, "preempt(request=r0)", ACCEPT)
    assert (
        "(waiting): it is in no queue: a stale output ended its turn, which took it out again" in there.story.headline
    )
    ended = "Step 4, accept(), ended a turn of r0, by a stale output; the session is in no queue any more."
    assert there.story.chain[0] == ended
    assert "r0.lost: 0 → 1" in [change.words() for change in there.lines[4].changes]


def test_a_session_that_keeps_the_room_that_it_needs() -> None:
    there = told("0.33.0", SESSION, "PROGRESS", ARRIVE, SCHEDULE, ACCEPT)
    assert "r0 is stuck at 2 of 4 known tokens (waiting): item1 [2,4) needs 2 slots, and 0 of 2" in there.story.headline
    assert "that is 2 <= 2 - 0; its turn ended, and no output of it will ask again before it runs." in chain(there)


def test_a_reference_that_goes_at_a_turns_end() -> None:
    """An item of a later turn, by number and position, and a release that the end of a turn asked for."""
    begin = (ARRIVE, SCHEDULE, ACCEPT, "continue_session(request=r0)", "schedule(omit=k1)")
    there = told("repaired", SESSION, "PLANNED-ENCODED", *begin, relaxed=("A4",))
    assert "Step 3, accept(), ended a turn of r0." in chain(there)
    continued = "continue_session(request=r0): 2 of 3 known tokens were kept and 2 added behind them, with 2 computed."
    assert continued in chain(there)
    read = told("repaired", SESSION, "GATHER-AFTER-FREE", *begin, ACCEPT, relaxed=("A4",))
    assert read.story.headline.startswith(
        "r0's item1 [2,4) (entry k1) was never encoded: step 5 planned k1 for r0, but"
    )


def test_a_reference_that_the_end_of_a_turn_asks_for() -> None:
    """As repaired: while the output was processed confirmed was 1, and the turn's end confirms all of it."""
    seen = watched("repaired", SESSION, ARRIVE, SCHEDULE, ACCEPT)
    (call,) = seen.calls_to("release", 3)
    assert release_words(seen, call) == (
        "by guard confirmed: end <= computed - placeholders, that is 2 <= 2 - 0, asked once more at its turn's end"
    )


def test_a_turn_of_one_token_that_is_padded_past_the_budget() -> None:
    """From 0.30.0 on an admission of one token is padded with as many drafts as a step may carry."""
    asked = RequestSetup(2, 1, (), turns=(Turn(1, 1),))
    numbers = Setup((asked,), slots=2, budget=2, drafts=2, left_out=())
    there = told("0.33.0", numbers, "PROGRESS", ARRIVE, SCHEDULE, ACCEPT)
    assert (
        "r0 is stuck at 2 of 3 known tokens (waiting): its one token is padded to 3, and a step may hold 2 tokens"
        in (there.story.headline)
    )


def test_a_request_behind_one_that_gets_no_token() -> None:
    """Up to 0.32.0 that ends the admissions of a pass."""
    stalled = RequestSetup(2, 1, (Item(1, 1, "k0", 1),))
    numbers = Setup((stalled, RequestSetup(1, 1, ())), slots=1, budget=1, look_ahead=1, whole_items=1)
    there = told("0.32.0", numbers, "PROGRESS", ARRIVE, "arrive(request=r1)")
    assert "r1 is stuck at 0 of 1 known token (waiting): r0 before it gets no token, which ends the admissions" in (
        there.story.headline
    )


# --- encoder-decoder models -------------------------------------------------------------------------------------------

WHISPER = setup([(0, 2)], 2, outputs=3, slots=2, budget=4, encoder_decoder=1)


def test_slots_that_are_credited_twice() -> None:
    there = told("0.33.0", WHISPER, "SLOTS-ADD-UP", ARRIVE, SCHEDULE, ACCEPT, SCHEDULE, ACCEPT)
    assert there.story.chain[0] == "r0 was credited 2 slots for item0, which held none any more."
    assert there.story.events[0].numbers == {"free": 4, "slots": 2}
    assert "book.due: none → k0" in [change.words() for change in there.lines[2].changes]


def test_an_encode_of_an_encoder_decoder_model_that_was_left_out() -> None:
    numbers = WHISPER._replace(requests=(WHISPER.requests[0], RequestSetup(1, 1, (Item(0, 1, "k1", 1),))), budget=2)
    begin = (ARRIVE, "arrive(request=r1)", "schedule(omit=k0)", ACCEPT)
    there = told("repaired", numbers, "GATHER-AFTER-FREE", *begin, relaxed=("A4",))
    assert "the environment left the encode out (A4 relaxed)" in there.story.headline
    assert "the target read [0,2)" in there.story.headline


def test_an_encoder_decoder_request_that_never_gets_its_slots() -> None:
    """A planted fault: nothing is ever credited, so the second request waits for the slots of the first."""
    rules = replace(
        PROFILES["repaired"].rules, drop_references=lambda world, setup, book, request, number: (book, request)
    )
    numbers = WHISPER._replace(requests=WHISPER.requests * 2, slots=3)
    there = told("repaired", numbers, "PROGRESS", ARRIVE, "arrive(request=r1)", SCHEDULE, rules=rules)
    needs = "all its items need 2 slots at once, and 1 of 3 can be had (1 free, 3 left to this step)"
    assert f"r1 is stuck at 0 of 2 known tokens (waiting): {needs}" in there.story.headline
    assert "entry k0) holds 2 slots until an output of it is processed with computed above 0." in chain(there)


# --- the numbers of a run ---------------------------------------------------------------------------------------------


def test_the_numbers_of_a_session() -> None:
    assert setup_words(SESSION) == (
        "r0: prompt 2, at most 1 output, item0 [0,2) key k0 of 2 slots, then turn 2: 2 more tokens, at most 1 output, "
        "item1 +[0,2) key k1 of 2 slots; cache 2 slots, budget 4, drafts 0, look-ahead 0, depth 2"
    )


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        (SESSION._replace(by_priority=1), "depth 2"),
        (SESSION._replace(requests=SESSION.requests * 2), "depth 2, first come first served"),
        (SESSION._replace(requests=SESSION.requests * 2, by_priority=1), "depth 2, the more urgent first"),
        (SESSION._replace(synchronous=1, diffusion=1), "depth 2, synchronous, diffusion"),
        (WHISPER, "depth 2, encoder-decoder"),
    ],
)
def test_policy_and_mode_stand_at_the_end(numbers: Setup, words: str) -> None:
    """The policy only where there are several requests to choose from."""
    assert setup_words(numbers).endswith(words)
