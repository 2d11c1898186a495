"""The tie: executed steps of the model are steps of the proved relation, and four planted faults are not."""

import random
from dataclasses import replace

import pytest
import worlds
from outlives.invariants.configuration import Configuration
from outlives.invariants.proof.lemmas import LEMMAS
from outlives.invariants.proof.projection import changes, part_of, project, projected_items
from outlives.invariants.proof.tie import check_step, terms_of, untied
from outlives.invariants.proof_row import tie_row
from outlives.invariants.verdict import Verdict
from outlives.model import worker
from outlives.model.contract import Action, Range, Refusal
from outlives.model.lifetime import GUARDS, WEAKEST
from outlives.model.scheduler import SchedulerModel
from outlives.model.setup import Scope

ENDINGS = ("abort", "finish", "preempt")


def steps_of(model, seed, length=50):
    """(before, action, after) along one random run of the model; what cuts a request short is drawn rarely."""
    draw = random.Random(seed)
    numbers = {
        name: draw.randint(span.low, span.high) if isinstance(span, Range) else span.names[0]
        for name, span in model.setup_table.items()
    }
    state = model.initial_state(numbers)
    for _ in range(length):
        actions = list(model.actions(state))
        if not actions:
            return
        going_on = [action for action in actions if action.name not in ENDINGS and "short_at" not in str(action)]
        action = draw.choice(going_on if going_on and draw.random() < 0.9 else actions)
        after = model.next_state(state, action)
        if not isinstance(after, Refusal):
            yield state, action, after
            state = after


def differences(model, seeds):
    return [
        (str(action), difference)
        for seed in seeds
        for before, action, after in steps_of(model, seed)
        for difference in untied(model.world, before, action, after)
    ]


LONG = Range(2, 12)

RELAXED = {
    "checked": {},
    "true": {"reader": "true", "relaxed": ("A3",)},
    "any": {"reader": "any", "relaxed": ("A3",)},
    "A1": {"relaxed": ("A1",)},
    "A2": {"relaxed": ("A2",)},
    "A4": {"relaxed": ("A4",)},
    "split": {"split": True},
}


@pytest.mark.parametrize("fields", RELAXED.values(), ids=RELAXED)
@pytest.mark.parametrize("anywhere", [False, True])
def test_random_runs_tie(fields, anywhere):
    model = SchedulerModel(
        worlds.world("repaired", **fields), Scope(anywhere=anywhere, depth=Range(2, 4), outputs=LONG)
    )
    assert differences(model, range(60)) == []


@pytest.mark.parametrize("name", [*GUARDS, *WEAKEST])
def test_random_runs_tie_under_every_guard(name):
    model = SchedulerModel(
        worlds.world("repaired", guard=name, reader="true", relaxed=("A3",)), Scope(anywhere=True, outputs=LONG)
    )
    assert differences(model, range(30)) == []


def test_random_runs_of_two_requests_tie():
    assert differences(SchedulerModel(worlds.world("repaired"), Scope(requests=2, outputs=LONG)), range(40)) == []


EVERYTHING = Scope(
    shared=Range(0, 1),
    priority=Range(0, 2),
    turns=Range(1, 3),
    by_priority=Range(0, 1),
    modes=("plain", "plain", "plain", "synchronous", "diffusion", "synchronous+diffusion", "encoder-decoder"),
    routes=("all",),
)
RARELY = {"abort": 0.05, "finish": 2, "preempt": 0.5, "occupy": 0.3, "fail_kv_load": 40, "continue_session": 20}
RARELY |= {"reset_prefix_cache": 0.3, "reset_encoder_cache": 0.3, "evict": 0.5, "schedule": 3, "accept": 3, "reject": 6}


def held_against_the_relation(steps, seed):
    """How often each action was taken in a random walk of 1 to 3 requests, every step of which tied."""
    taken = dict.fromkeys(SchedulerModel(worlds.world("repaired"), EVERYTHING).action_table, 0)
    models = [SchedulerModel(worlds.world("repaired"), EVERYTHING._replace(requests=count)) for count in (1, 2, 3)]
    draw = random.Random(seed)
    while sum(taken.values()) < steps:
        model = draw.choice(models)
        numbers = {
            name: draw.randint(span.low, span.high) if isinstance(span, Range) else draw.choice(span.names)
            for name, span in model.setup_table.items()
        }
        state = model.initial_state(numbers)
        for _ in range(60):
            offered = {}
            for action in model.actions(state):
                offered.setdefault(action.name, []).append(action)
            if not offered:
                break
            (name,) = draw.choices(list(offered), [RARELY.get(name, 1) for name in offered])
            action = draw.choice(offered[name])
            after = model.next_state(state, action)
            if isinstance(after, Refusal):
                continue
            assert list(untied(model.world, state, action, after)) == [], (state, action)
            taken[name] += 1
            state = after
    return taken


def test_every_action_ties_with_everything_open():
    taken = held_against_the_relation(20_000, seed=1)
    assert set(taken) == set(SchedulerModel(worlds.world("repaired"), EVERYTHING).action_table)
    assert min(taken.values()) >= 100, taken


@pytest.mark.parametrize(
    "fields",
    [
        {"split": True},
        {"synchronous": True, "diffusion": True},
        {"relax": ("A2",)},
        {"relax": ("A2",), "policy": "fcfs"},
        {"relax": ("A1", "A2", "A4"), "reader": "any"},
    ],
    ids=str,
)
def test_the_tie_of_a_run_holds_under_its_own_options(fields):
    """With A2 relaxed by others that encode what was seen, and by victims; split where a shelf is emptied behind a
    step that has read; diffusion models that go on at their last known token."""
    configuration = Configuration(**fields)
    row = tie_row(configuration.model(), configuration.world(), 3_000, 0, lambda _: None)
    assert (row.verdict, row.note) == (Verdict.PASSED, "")


@pytest.mark.campaign
@pytest.mark.parametrize("seed", [0, 1])
def test_every_action_ties_over_many_steps(seed):
    taken = held_against_the_relation(200_000, seed)
    assert min(taken.values()) >= 1_000, taken


def test_the_runs_take_every_transition():
    taken = set()

    for anywhere in (False, True):
        model = SchedulerModel(worlds.world("repaired"), Scope(requests=2, anywhere=anywhere, outputs=LONG))
        for seed in range(60):
            for before, action, after in steps_of(model, seed):
                taken |= {each.transition for each in changes(before, action, after, 0, 0, None)}
    assert taken >= {"dispatch", "live-output", "stale-output", "preempt", "resume", "evict"}


def test_every_lemma_holds_in_every_state_of_random_runs():
    model = SchedulerModel(
        worlds.world("repaired", guard="confirmed", reader="any", relaxed=("A3",)), Scope(anywhere=True, outputs=LONG)
    )
    terms = terms_of(model.world, next(iter(model.initial_states())).setup)
    seen = 0
    for seed in range(60):
        for _, _, state in steps_of(model, seed):
            for item in projected_items(state, 0):
                flying = [at for at, step in enumerate(state.steps) if part_of(step, 0) is not None]
                for tracked in flying or [None]:
                    life = project(model.world, state, 0, item, tracked)
                    assert [lemma.name for lemma in LEMMAS if not lemma.holds(terms, life)] == []
                    seen += life.flight.active
    assert seen > 500


class Spoiled(SchedulerModel):
    """The model with a fault planted in its transition function."""

    def __init__(self, world, scope, spoil):
        super().__init__(world, scope)
        self.spoil = spoil

    def next_state(self, state, action):
        after = super().next_state(state, action)
        return after if isinstance(after, Refusal) else self.spoil(state, action, after)


def with_request(state, **fields):
    return state._replace(requests=(state.requests[0]._replace(**fields), *state.requests[1:]))


def test_a_counter_written_by_the_pass_is_caught():
    def spoil(_, action, after):
        counters = after.requests[0].counters
        written = action.name == "schedule" and counters.placeholders > 1
        return with_request(after, counters=counters._replace(placeholders=1)) if written else after

    found = differences(Spoiled(worlds.world("repaired"), Scope(outputs=LONG), spoil), range(30))
    assert any("counters.placeholders is 1 in the run and 2 in the relation" in text for _, text in found)


def test_a_reference_dropped_by_eviction_is_caught():
    def spoil(before, action, after):
        # Pressure takes the entry although the request still references it, and forgets the reference.
        held = before.requests[0].references
        if action.name != "occupy" or not held:
            return after
        key = before.setup.requests[0].items[held[0]].key
        entries = tuple(entry for entry in after.book.entries if entry.key != key)
        book = after.book._replace(entries=entries, evicted=(*after.book.evicted, key))
        return with_request(after._replace(book=book), references=held[1:])

    found = differences(Spoiled(worlds.world("repaired"), Scope(outputs=LONG), spoil), range(60))
    assert any("the relation refuses evict: nothing-idle" in text for _, text in found)


def test_a_reader_that_starts_below_confirmed_is_caught():
    def gather(world, setup, shelf, part, back):
        return worker.gather(world, setup, shelf, part._replace(start=part.lowest - 1), back)

    chosen = worlds.world("repaired")
    model = SchedulerModel(replace(chosen, rules=replace(chosen.rules, gather=gather)), Scope(outputs=LONG))
    found = differences(model, range(5))
    assert any("reads from -1, outside its allowance from 0 to 0" in text for _, text in found)


def test_rejections_counted_twice_are_caught():
    def shift_readers(world, steps, number, rejected):
        return worker.shift_readers(world, worker.shift_readers(world, steps, number, rejected), number, rejected)

    chosen = worlds.world("repaired", reader="true", relaxed=("A3",))
    model = SchedulerModel(
        replace(chosen, rules=replace(chosen.rules, shift_readers=shift_readers)), Scope(outputs=LONG)
    )
    assert any("flight.true_start is" in text for _, text in differences(model, range(30)))


def test_a_notice_delivered_early_is_caught():
    def spoil(_, action, after):
        if action.name != "evict":
            return after
        return after._replace(shelf=tuple(key for key in after.shelf if key not in after.book.evicted))

    found = differences(Spoiled(worlds.world("repaired"), Scope(outputs=LONG), spoil), range(60))
    assert any("flight.present is 0 in the run and 1 in the relation, after evict" in text for _, text in found)


def test_an_encode_that_never_reaches_the_shelf_is_caught():
    def spoil(_, action, after):
        if action.name not in ("schedule", "resume") or not after.steps or not after.steps[-1].encode:
            return after
        return after._replace(steps=(*after.steps[:-1], after.steps[-1]._replace(encode=())))

    found = differences(Spoiled(worlds.world("repaired"), Scope(outputs=LONG), spoil), range(30))
    assert any("shelf_next is 0 in the run and 1 in the relation" in text for _, text in found)


def test_one_abstract_step_can_be_checked_by_itself():
    terms = terms_of(worlds.world("repaired", guard="confirmed"), worlds.setup([(0, 2)], 3))
    model = worlds.fixed("repaired", worlds.setup([(0, 3)], 4, budget=2))
    state = model.initial_state({})
    for text in ("arrive(request=r0)", "schedule()"):
        before, state = state, model.next_state(state, worlds.action(text))
    old = project(model.world, before, 0, 0, None)
    new = project(model.world, state, 0, 0, None)
    choices = {"hit": 0, "count": 2, "encoded": 1, "ahead": 0, "track": 0}
    nothing = frozenset({"floor", "seen"})
    assert check_step(terms, old, [("resume", choices)], new, nothing) == ""
    assert check_step(terms, old, [("resume", {**choices, "count": 1})], new, nothing) == (
        "counters.computed is 2 in the run and 1 in the relation, after resume"
    )
    assert check_step(terms, old, [("dispatch", choices)], new, nothing) == "the relation refuses dispatch: not-running"
    assert check_step(terms, old, [], old, nothing) == ""


def test_what_changed_nothing_ties():
    model = worlds.fixed("repaired", worlds.setup([(0, 3)], 4))
    state = model.initial_state({})
    assert list(untied(model.world, state, Action.of("evict", count=1), state)) == []
