"""The release's own prefix cache, on and off: what it finds, what the model is told of it, and traces of such runs."""

import os

import pytest
from outlives.invariants.configuration import Configuration
from outlives.invariants.replay import replay
from outlives.invariants.subject.conform import conform
from outlives.invariants.subject.live import CACHING, NO_EXCEPTION, SubjectModel
from outlives.invariants.subject.plain import caches, plain_trace
from outlives.invariants.subject.run import replay_on_release
from outlives.invariants.subject.vllm_subject import VllmSubject
from outlives.invariants.trace_file import write_trace
from outlives.invariants.verdict import Step, Trace
from outlives.model.contract import Action, Choice, Refusal
from outlives.model.errors import Contradiction
from outlives.model.setup import Item, RequestSetup, Setup

pytestmark = pytest.mark.vllm

STEPS, LEAST = (20_000, 500) if os.environ.get("OUTLIVES_LONG") else (6_000, 300)
NUMBERS = {"chunk_cap": (0, 0), "depth": (1, 3), "encoder_budget": (0, 6), "outputs": (1, 6), "turns": (1, 1)}

SAME = RequestSetup(8, 3, (Item(2, 3, "k0", 3),))
TWO = Setup((SAME, SAME, RequestSetup(8, 3, (Item(2, 3, "k1", 3),))), slots=8, budget=16, depth=2, left_out=())

ARRIVE = [Action.of("arrive", request=f"r{number}") for number in range(3)]
SCHEDULE, ACCEPT = Action.of("schedule"), Action.of("accept")


@pytest.fixture
def model(release):
    configuration = Configuration(profile=release.profile, numbers={"requests": (3, 3)})
    world = configuration.world()
    return SubjectModel(VllmSubject(release, world.closed), world, configuration.scope(), (NO_EXCEPTION,))


def run(model, setup, actions, *, caching):
    states = [model.begin(setup, caching=caching)]
    for action in actions:
        after = model.next_state(states[-1], action)
        assert not isinstance(after, Refusal), (action, after)
        assert after.failure is None, after.failure
        states.append(after)
    return states


def starts(state):
    return {part.request: part.start for part in state.steps[-1].parts}


@pytest.mark.parametrize(("caching", "first"), [(False, {0: 8, 1: 0, 2: 0}), (True, {0: 8, 1: 7, 2: 2})])
def test_who_comes_later_begins_behind_what_is_cached(model, caching, first):
    """r1 has the same text and the same item as r0, all but the last token is found; r2 has another item."""
    actions = [ARRIVE[0], SCHEDULE, ACCEPT, ARRIVE[1], ARRIVE[2], SCHEDULE]
    last = run(model, TWO, actions, caching=caching)[-1]
    assert starts(last) == first
    assert last.hits == ((((1, 7), (2, 2))) if caching else ())


def test_a_preempted_request_finds_its_own_blocks_again(model):
    actions = [ARRIVE[0], SCHEDULE, ACCEPT, Action.of("preempt", request="r0")]
    preempted = run(model, TWO, actions, caching=True)
    assert preempted[-1].requests[0].counters.computed == 0
    after = model.next_state(preempted[-1], Action.of("resume", request="r0", kept=1))
    assert starts(after) == {0: 8}  # of 9 known tokens, whatever was asked for
    assert after.steps[-1].encode == ()  # the item lies before it


def test_what_is_found_stands_in_the_trace_and_replays_on_both(model, release, tmp_path):
    actions = [ARRIVE[0], SCHEDULE, ACCEPT, ARRIVE[1], ARRIVE[2], SCHEDULE, ACCEPT]
    states = run(model, TWO, actions, caching=True)
    steps = [Step(action, state) for action, state in zip([None, *actions], states, strict=True)]
    trace = plain_trace(Trace(steps=tuple(steps), property="SHELF-AGREES", why="it does not", shortest="no"))
    assert caches(trace)
    assert trace.actions[5] == Action.of("schedule", hit_r1=7, hit_r2=2)
    configuration = Configuration(profile=release.profile, numbers={"requests": (3, 3)})
    path = write_trace(trace, configuration, tmp_path / "hits", about={"subject": {CACHING: "on"}})
    on_model = replay(path)
    assert on_model.divergence is None, str(on_model.divergence)
    assert on_model.trace.steps[6].state.steps[-1].parts == states[6].steps[-1].parts
    on_release = replay_on_release(path, release)
    assert on_release.caching
    assert on_release.replay.divergence is None, str(on_release.replay.divergence)
    # Without the cache the same prefixes are found, as those of a run that chooses them.
    off = write_trace(trace, configuration, tmp_path / "off", about={"subject": {CACHING: "off"}})
    without = replay_on_release(off, release)
    assert not without.caching
    assert without.replay.divergence is None, str(without.replay.divergence)


def test_a_block_that_several_hold_does_not_fail(model):
    actions = [ARRIVE[0], SCHEDULE, ACCEPT, ARRIVE[1], SCHEDULE]
    state = run(model, TWO, actions, caching=True)[-1]
    fails = Action.of("fail_kv_load", request="r1", valid=3)
    assert model.next_state(state, fails) == Refusal("block-is-shared")
    gone = model.next_state(state, Action.of("abort", request="r0"))
    after = model.next_state(gone, fails)
    assert after.requests[1].counters.computed == 3


def test_it_is_drawn_for_each_run_and_presets_have_it_too(model):
    assert set(model.setup_table[CACHING].names) == {"off", "on"}
    assert model.initial_state({CACHING: "on"}).caching
    assert not model.initial_state({}).caching
    names = dict.fromkeys(model.setup_table["preset"].names)
    cached = [name for name in names if name.endswith("+prefix-caching")]
    assert {name.removesuffix("+prefix-caching") for name in cached} == {name for name, _ in model.scope.presets}
    plain = cached[0].removesuffix("+prefix-caching")
    on, off = (model.settled({"preset": name}) for name in (cached[0], plain))
    assert (on[CACHING], off[CACHING]) == ("on", "off")
    assert on == {**off, CACHING: "on"}
    assert on.keys() == model.setup_table.keys()


def test_encoder_decoder_models_have_none(model):
    cross = TWO._replace(encoder_decoder=1, requests=(RequestSetup(4, 2, (Item(0, 3, "k0", 3),)), *TWO.requests[1:]))
    model.begin(cross, caching=True)
    assert not model.subject.blocks.caching


def test_a_release_without_it_is_run_without_and_says_so(release, monkeypatch):
    monkeypatch.setattr(release, "hasher", None)
    world = Configuration(profile=release.profile).world()
    model = SubjectModel(VllmSubject(release), world, Configuration().scope())
    assert CACHING not in model.setup_table
    with pytest.raises(Contradiction, match="cannot be switched on"):
        model.begin(TWO, caching=True)


@pytest.mark.parametrize("policy", ["fcfs", "priority"])
def test_runs_with_prefix_caching_conform(pair, release, policy):
    if policy == "fcfs" and release.version == "0.28.0":
        pytest.skip("the order of service differs, with and without: see test_vllm_conform")
    numbers = {**NUMBERS, "requests": (3, 3), "drafts": (0, 3)}
    model = pair(Configuration(profile=release.profile, policy=policy, numbers=numbers))
    model.real._table[CACHING] = Choice(("on",))
    record = conform(model, STEPS, seed=8)
    assert record.differs == (), [str(step.action) for step in record.trace.steps]
    for situation in ("prefix hit", "rejection", "abort", "eviction", "preempt", "in-pass preemption", "resume"):
        assert record.after[situation] >= LEAST, record.after


def test_a_model_that_is_not_told_what_was_found_differs(pair, release, monkeypatch):
    monkeypatch.setattr("outlives.invariants.subject.conform.with_hits", lambda action, _hits: action)
    model = pair(Configuration(profile=release.profile, numbers={**NUMBERS, "requests": (3, 3), "drafts": (0, 3)}))
    model.real._table[CACHING] = Choice(("on",))
    record = conform(model, STEPS, seed=8)
    assert record.differs
    assert record.caching
