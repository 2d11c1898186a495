"""The abstract scheduler, action by action, with the right values written in."""

import random
from dataclasses import replace

import pytest
from outlives.invariants.machine_record import Recorder
from outlives.model.contract import Action, Refusal
from outlives.model.errors import BadModel, Contradiction
from outlives.model.lifetime import Counters
from outlives.model.profiles import PROFILES
from outlives.model.setup import Item, RequestSetup, Setup
from outlives.model.state import Entry, Miss, Part, Step
from worlds import FixedModel, action, fair_end, fixed, refusal, run, setup


def test_a_pass_cuts_the_chunk_to_the_budget_and_plans_the_encode() -> None:
    model = fixed("repaired", setup([(2, 4)], 8, budget=3))
    state = run(model, "arrive(request=r0)", "schedule()")
    assert state.requests[0].counters == Counters(3, 0, 3, 0, 8)
    assert state.requests[0].references == (0,)
    assert state.steps == (Step((Part(0, 0, 3, 0, 0, 0, 0, first=1),), ("k0",), ()),)
    assert state.book.entries == (Entry("k0", 2, (0,)),)
    assert (state.book.free, state.book.reclaimable) == (6, 6)
    assert state.shelf == (), "nothing is encoded before the step executes"


@pytest.mark.parametrize(("profile", "tokens"), [("0.29.0", 2), ("0.32.0", 8)])
def test_the_chunk_cap_limits_the_only_request_there_is_up_to_0_30(profile: str, tokens: int) -> None:
    state = run(fixed(profile, setup([(5, 6)], 8, chunk_cap=2)), "arrive(request=r0)", "schedule()")
    assert state.steps[0].parts[0].tokens == tokens


def test_the_chunk_cap_limits_one_request_beside_another() -> None:
    both = (RequestSetup(8, 2, ()), RequestSetup(8, 2, ()))
    model = fixed("repaired", Setup(both, slots=1, budget=8, chunk_cap=2))
    model.scope = model.scope._replace(requests=2)
    model._names = ("r0", "r1")
    state = run(model, "arrive(request=r0)", "arrive(request=r1)", "schedule()")
    assert [part.tokens for part in state.steps[0].parts] == [2, 2]


def test_the_encoder_budget_stops_the_chunk_before_an_item() -> None:
    model = fixed("repaired", setup([(0, 2), (3, 5)], 8, encoder_budget=3))
    state = run(model, "arrive(request=r0)", "schedule()")
    assert state.steps[0].encode == ("k0",)
    assert state.steps[0].parts[0].tokens == 3


def test_an_item_larger_than_the_cache_or_the_encoder_budget_is_refused_at_arrival() -> None:
    for numbers in ({"slots": 1}, {"encoder_budget": 1}, {"whole_items": 1, "budget": 1}):
        model = fixed("repaired", setup([(0, 2)], 4, **numbers))
        assert refusal(model, next(iter(model.initial_states())), "arrive(request=r0)") == "never-fits"


def test_at_most_depth_steps_are_in_flight() -> None:
    model = fixed("repaired", setup([(0, 2)], 8, budget=2))
    state = run(model, "arrive(request=r0)", "schedule()", "schedule()")
    assert refusal(model, state, "schedule()") == "pipeline-full"


def test_executing_drops_first_and_encodes_then_and_reads_last() -> None:
    model = fixed("repaired", setup([(0, 2), (2, 4)], 6, slots=2, budget=2))
    state = run(model, "arrive(request=r0)", "schedule()", "accept()")
    assert state.shelf == ("k0",)
    assert state.requests[0].references == ()
    assert state.book.idle == ("k0",)
    state = run(model, "arrive(request=r0)", "schedule()", "accept()", "schedule()")
    assert (state.steps[0].drop, state.steps[0].encode) == (("k0",), ("k1",))
    state = run(model, "arrive(request=r0)", "schedule()", "accept()", "schedule()", "accept()")
    assert state.shelf == ("k1",)


def test_the_release_is_one_event_the_eviction_another_and_the_notice_a_third() -> None:
    steps = ("arrive(request=r0)", "schedule()", "accept()")
    model = fixed("repaired", setup([(0, 2)], 6, budget=2))
    released = run(model, *steps)
    assert (released.book.idle, released.book.evicted, released.shelf) == (("k0",), (), ("k0",))
    evicted = run(model, *steps, "evict(count=1)")
    assert (evicted.book.idle, evicted.book.evicted, evicted.shelf) == ((), ("k0",), ("k0",))
    told = run(model, *steps, "evict(count=1)", "schedule()")
    assert (told.steps[0].drop, told.shelf) == (("k0",), ("k0",))
    dropped = run(model, *steps, "evict(count=1)", "schedule()", "accept()")
    assert dropped.shelf == ()


def test_the_guard_still_counts_the_output_just_accepted_as_promised() -> None:
    # Prompt 3 = item [0,3): one sampling step; when its output is processed computed is 3 and placeholders are 1.
    model = fixed("repaired", setup([(0, 3)], 3, outputs=3))
    state = run(model, "arrive(request=r0)", "schedule()", "accept()")
    assert state.requests[0].counters == Counters(3, 0, 0, 0, 4)
    assert state.requests[0].references == (0,), "end 3 <= 3 - 1 is false"
    state = run(model, "arrive(request=r0)", "schedule()", "accept()", "schedule()", "accept()")
    assert state.requests[0].references == ()


@pytest.mark.parametrize(
    ("guard", "after_dispatch", "after_output"),
    [
        ("optimistic-after-advance", (), ()),
        ("optimistic-before-advance", (0,), (0,)),
        ("optimistic-at-output", (0,), ()),
        ("confirmed", (0,), ()),
        ("retain", (0,), (0,)),
    ],
)
def test_each_guard_is_asked_at_its_own_site(
    guard: str, after_dispatch: tuple[int, ...], after_output: tuple[int, ...]
) -> None:
    model = fixed("repaired", setup([(0, 2)], 6, budget=2), guard=guard)
    assert run(model, "arrive(request=r0)", "schedule()").requests[0].references == after_dispatch
    assert run(model, "arrive(request=r0)", "schedule()", "accept()").requests[0].references == after_output


def test_rejected_drafts_come_back_off_both_counters() -> None:
    model = fixed("repaired", setup([(0, 1)], 2, outputs=9, drafts=3))
    before = ("arrive(request=r0)", "schedule()", "accept()", "schedule()")
    assert run(model, *before).requests[0].counters == Counters(6, 4, 4, 0, 3)
    assert run(model, *before, "reject(accepted=1)").requests[0].counters == Counters(4, 0, 0, 0, 5)
    assert run(model, *before, "accept()").requests[0].counters == Counters(6, 0, 0, 0, 7)


def test_a_sampling_step_attaches_all_drafts_and_speculate_changes_them() -> None:
    model = fixed("repaired", setup([(0, 1)], 2, outputs=9, drafts=3))
    state = run(model, "arrive(request=r0)", "schedule()")
    assert (state.requests[0].decoding, state.requests[0].drafts) == (1, 3)
    assert refusal(model, state, "speculate(request=r0, drafts=3)") == "no-change"
    state = run(model, "arrive(request=r0)", "schedule()", "speculate(request=r0, drafts=1)", "schedule()")
    assert (state.steps[1].parts[0].tokens, state.steps[1].parts[0].drafts, state.requests[0].drafts) == (2, 1, 3)


def test_asynchronous_0_11_carries_no_drafts() -> None:
    model = fixed("0.11.0", setup([(0, 1)], 2, outputs=9, drafts=3))
    state = run(model, "arrive(request=r0)", "schedule()", "schedule()")
    assert state.steps[1].parts[0].drafts == 0


def test_drafts_wait_until_the_request_has_sampled() -> None:
    model = fixed("repaired", setup([(0, 1)], 6, budget=2, drafts=3))
    state = run(model, "arrive(request=r0)", "schedule()")
    assert refusal(model, state, "speculate(request=r0, drafts=1)") == "still-prefilling"


def test_the_last_step_is_not_scheduled_twice() -> None:
    # Limit: placeholders > 0 and computed + 2 - placeholders >= prompt + outputs.
    model = fixed("repaired", setup([(0, 1)], 2, outputs=1))
    state = run(model, "arrive(request=r0)", "schedule()")
    assert refusal(model, state, "schedule()") == "nothing-scheduled"


def test_preemption_drops_references_and_starts_again_from_zero() -> None:
    model = fixed("repaired", setup([(0, 4)], 6, budget=2))
    state = run(model, "arrive(request=r0)", "schedule()", "preempt(request=r0)")
    request = state.requests[0]
    assert (request.status, request.counters, request.references) == ("waiting", Counters(0, 0, 2, 2, 6), ())
    assert state.book.idle == ("k0",)
    assert [part.live for part in state.steps[0].parts] == [0]
    assert state.steps[1] == Step((), (), ()), "the stranger's pass takes its place in the pipeline"


def test_a_request_short_of_blocks_preempts_itself_in_the_pass() -> None:
    model = fixed("repaired", setup([(0, 4)], 6, budget=2))
    state = run(model, "arrive(request=r0)", "schedule()", "accept()", "schedule(short_at=r0)")
    assert (state.requests[0].status, state.waiting, state.running) == ("waiting", (0,), ())
    assert state.steps == (Step((), (), ()),)


def test_blocks_short_at_an_admission_drop_its_references_from_0_14_on() -> None:
    setting = setup([(0, 2), (2, 4)], 6, budget=4, slots=4)
    steps = ("arrive(request=r0)", "schedule()", "accept()", "preempt(request=r0)")
    old = run(fixed("0.13.0", setting), *steps, "schedule(short_at=r0)")
    assert old.requests[0].references == (0, 1)
    new = fixed("repaired", setting)
    assert refusal(new, run(new, *steps), "schedule(short_at=r0)") == "nothing-scheduled", "taken and dropped again"


def test_resume_waits_for_stale_output_from_0_27_on() -> None:
    steps = ("arrive(request=r0)", "schedule()", "preempt(request=r0)")
    setting = setup([(0, 4)], 6, budget=2, depth=4)
    model = fixed("repaired", setting)
    assert refusal(model, run(model, *steps), "resume(request=r0, kept=0)") == "nothing-scheduled"
    assert run(fixed("0.24.0", setting), *steps, "resume(request=r0, kept=0)").running == (0,)


def test_a_prefix_hit_never_covers_the_last_known_token() -> None:
    state = run(fixed("repaired", setup([(0, 2)], 6)), "arrive(request=r0)", "resume(request=r0, kept=99)")
    assert (state.steps[0].parts[0].start, state.steps[0].parts[0].tokens) == (5, 1)


def test_a_finished_request_leaves_nothing_and_its_steps_still_execute() -> None:
    model = fixed("repaired", setup([(0, 4)], 6, budget=2))
    state = run(model, "arrive(request=r0)", "schedule()", "schedule()", "abort(request=r0)")
    assert (state.requests[0].status, state.requests[0].references, state.book.idle) == ("finished", (), ("k0",))
    assert len(state.steps) == 2
    assert run(model, "arrive(request=r0)", "schedule()", "schedule()", "abort(request=r0)", "accept()").shelf == (
        "k0",
    )


def test_strangers_hold_slots_and_push_idle_entries_out() -> None:
    model = fixed("repaired", setup([(0, 2)], 6, budget=2, slots=4, strangers=4))
    state = run(model, "arrive(request=r0)", "schedule()", "accept()", "occupy(slots=3)")
    assert (state.book.entries, state.book.evicted, state.book.free, state.book.reclaimable) == ((), ("k0",), 1, 1)
    state = run(model, "arrive(request=r0)", "schedule()", "occupy(slots=4)")
    assert state.book.strangers == 2, "what a request references is not theirs to take"


def test_an_evicted_key_that_enters_again_is_not_announced_from_0_28_on() -> None:
    setting = setup([(0, 4)], 6, budget=2)
    steps = ("arrive(request=r0)", "schedule()", "accept()", "preempt(request=r0)", "evict(count=1)", "accept()")
    again = (*steps, "schedule()")
    assert run(fixed("repaired", setting), *again).steps[-1] == Step((Part(0, 0, 2, 0, 0, 0, 0, first=1),), ("k0",), ())
    assert run(fixed("0.27.0", setting), *again).steps[-1].drop == ("k0",)


@pytest.mark.parametrize(("profile", "kept"), [("0.28.0", ()), ("0.29.0", (0,))])
def test_an_entry_is_held_until_its_last_referenced_occurrence_from_0_29_on(
    profile: str, kept: tuple[int, ...]
) -> None:
    twice = RequestSetup(8, 2, (Item(0, 2, "k0", 2), Item(4, 2, "k0", 2)))
    model = fixed(profile, Setup((twice,), 4, 5))
    # Both occurrences are referenced: the first by the encode, the second by a hit of the next pass.
    state = run(
        model, "arrive(request=r0)", "resume(request=r0, kept=0)", "accept()", "preempt(request=r0)", "accept()"
    )
    state = run(
        model,
        "arrive(request=r0)",
        "schedule()",
        "preempt(request=r0)",
        "accept()",
        "accept()",
        "schedule()",
        "accept()",
    )
    assert state.requests[0].references == (1,)
    assert [entry.holders for entry in state.book.entries] == [kept]


def test_a_miss_ends_the_run() -> None:
    model = fixed("0.17.1", setup([(4, 6)], 8, budget=4, look_ahead=1))
    state = run(model, "arrive(request=r0)", "schedule()", "accept()")
    assert state.misses == (Miss(0, 0, "draft", 1, 5),)
    assert refusal(model, state, "schedule()") == "engine-dead"
    assert list(model.actions(state)) == []


def test_the_look_ahead_alone_is_tolerated_from_0_24_on() -> None:
    setting = setup([(4, 6)], 8, budget=4, look_ahead=1)
    assert run(fixed("0.24.0", setting), "arrive(request=r0)", "schedule()", "accept()").misses == ()
    # An item whose inside is missing is a miss in any release.
    inside = setup([(3, 6)], 8, budget=4, slots=3, look_ahead=1)
    model = fixed("0.24.0", inside, relaxed={"A4"})
    assert run(model, "arrive(request=r0)", "schedule(omit=k0)", "accept()").misses[0].reader == "target"


def test_with_A1_relaxed_an_eviction_overtakes_the_step_in_flight() -> None:
    steps = ("arrive(request=r0)", "schedule()", "accept()", "schedule()", "preempt(request=r0)")
    setting = setup([(0, 4)], 6, budget=2, depth=3)
    held = run(fixed("repaired", setting), *steps, "evict(count=1)", "accept()")
    assert held.misses == ()
    relaxed = run(fixed("repaired", setting, relaxed={"A1"}), *steps, "evict(count=1)", "accept()")
    assert relaxed.misses == (Miss(0, 0, "target", 2, 4),)


def test_a_reader_at_its_true_start_begins_below_by_what_was_rejected() -> None:
    model = fixed("repaired", setup([(0, 1)], 2, outputs=6, drafts=2), relaxed={"A3"}, reader="true")
    state = run(
        model, "arrive(request=r0)", "schedule()", "accept()", "schedule()", "speculate(request=r0, drafts=0)",
        "schedule()", "reject(accepted=0)",
    )  # fmt: skip
    assert (state.steps[0].parts[0].start, state.steps[0].parts[0].rejected) == (5, 2)


def test_stale_steps_shift_with_the_rejections_of_their_own_admission_only() -> None:
    model = fixed("0.24.0", setup([(0, 1)], 2, outputs=9, drafts=2, depth=4), relaxed={"A3"}, reader="true")
    steps = ("arrive(request=r0)", "schedule()", "accept()", "schedule()", "schedule()", "preempt(request=r0)")
    state = run(model, *steps, "resume(request=r0, kept=0)", "reject(accepted=0)")
    assert [part.rejected for step in state.steps for part in step.parts] == [2, 0]
    gone = run(model, *steps[:5], "abort(request=r0)", "reject(accepted=0)")
    assert [part.rejected for part in gone.steps[0].parts] == [2], "the worker has rejected them all the same"


def test_split_executes_and_processes_as_two_actions() -> None:
    model = fixed("repaired", setup([(0, 2)], 4), split=True)
    state = run(model, "arrive(request=r0)", "schedule()")
    assert refusal(model, state, "accept()") == "not-executed"
    assert run(model, "arrive(request=r0)", "schedule()", "execute()").shelf == ("k0",)
    merged = fixed("repaired", setup([(0, 2)], 4))
    assert run(merged, "arrive(request=r0)", "schedule()", "accept()") == run(
        model, "arrive(request=r0)", "schedule()", "execute()", "accept()"
    )


@pytest.mark.parametrize("profile", list(PROFILES))
def test_the_model_is_total_and_pure(profile: str) -> None:
    model = fixed(profile, setup([(0, 2), (3, 5)], 6, slots=3, budget=4, drafts=2, strangers=2, look_ahead=1))
    rng = random.Random(7)
    wild: list[int | str] = [-1, 0, 1, 2, 99, "r0", "r1", "r01", "none", "k0", ""]
    every = ("request", "short_at", "kept", "count", "slots", "accepted", "drafts")
    state = next(iter(model.initial_states()))
    taken = 0
    for _ in range(3000):
        name = rng.choice([*model.action_table, "nonsense", "execute"])
        drawn = Action.of(name, **{argument: rng.choice(wild) for argument in every})
        before = hash(state)
        after = model.next_state(state, drawn)
        assert after == model.next_state(state, drawn)
        assert hash(state) == before
        if not isinstance(after, Refusal):
            taken += 1
            state = after
        if state.misses or state.requests[0].status == "finished":
            state = next(iter(model.initial_states()))
    assert taken > 100


def test_every_listed_action_is_in_the_table_and_mostly_taken() -> None:
    model = fixed("repaired", setup([(0, 2), (3, 5)], 6, slots=3, budget=4, drafts=2, strangers=2, look_ahead=1))
    rng = random.Random(3)
    state = next(iter(model.initial_states()))
    for _ in range(500):
        listed = list(model.actions(state))
        for one in listed:
            assert one.name in model.action_table
            assert {name for name, _ in one.arguments} <= set(model.action_table[one.name])
        state_after = model.next_state(state, rng.choice(listed))
        state = state if isinstance(state_after, Refusal) else state_after
        if state.requests[0].status == "finished" and not state.steps and not state.book.idle:
            state = next(iter(model.initial_states()))


def test_the_fair_run_finishes_a_request() -> None:
    model = fixed("repaired", setup([(0, 2), (3, 5)], 6, slots=2, budget=4, strangers=2))
    end = fair_end(model, run(model, "arrive(request=r0)", "occupy(slots=1)"))
    assert end.requests[0].status == "finished"
    assert action("occupy(slots=0)") == model.fair_action(run(model, "arrive(request=r0)", "occupy(slots=1)"))


def test_a_guard_must_answer_with_a_bool() -> None:
    released = fixed("repaired", setup([(0, 2)], 4))
    odd = replace(released.world, guard=replace(released.world.guard, condition=lambda _c, _end, _ahead: "yes"))
    model = FixedModel(odd, released.setups)
    with pytest.raises(TypeError, match="a guard must return True or False, not 'yes'"):
        run(model, "arrive(request=r0)", "schedule()", "accept()")


def test_a_profile_is_made_of_what_a_profile_is_made_of() -> None:
    with pytest.raises(Contradiction, match="the switches of a profile must be Switches; it is NoneType"):
        replace(PROFILES["0.33.0"], switches=None)  # type: ignore[arg-type]


def test_a_pass_that_was_asked_about_is_what_is_taken_and_is_made_anew_the_second_time() -> None:
    """The fair run, the offers and the transition share one pass; only the transition uses it up."""
    model = fixed("repaired", setup([(2, 4)], 8, budget=3))
    passes = []

    def counting(counters: Counters, kept: int) -> Counters:
        passes.append(kept)
        return admit(counters, kept)

    admit = model.world.rules.admit
    model.world = replace(model.world, rules=replace(model.world.rules, admit=counting))
    state = run(model, "arrive(request=r0)")
    schedule = model.fair_action(state)
    offers = list(model.actions(state))
    assert schedule == Action.of("schedule") == offers[0]
    after = model.next_state(state, schedule)
    assert (len(passes), Action.of("schedule", short_at="r0") in offers) == (1, True)
    again = model.next_state(state, schedule)
    assert (len(passes), after == again) == (2, True)
    assert model.next_state(state, schedule) == after
    assert len(passes) == 3, "what no fair run and no offer asked about is not kept for the next transition"


def test_a_rule_that_answers_twice_in_two_ways_is_found_out_after_a_fair_run() -> None:
    model = fixed("repaired", setup([(2, 4)], 8, budget=3))
    answers = iter(range(100))
    fickle = replace(model.world.rules, admit=lambda counters, _: counters._replace(computed=next(answers) % 2))
    model.world = replace(model.world, rules=fickle)
    state = run(model, "arrive(request=r0)")
    schedule = model.fair_action(state)
    with pytest.raises(BadModel, match="two different answers"):
        Recorder(model, ()).take(state, schedule, 1)
