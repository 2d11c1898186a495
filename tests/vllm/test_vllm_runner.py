"""The worker's twin beside the real CPU model runner, step for step: shelf, positions, and what is missed."""

import random

import pytest
from outlives.invariants.configuration import Configuration
from outlives.invariants.subject.live import SubjectModel
from outlives.model.contract import Action, Refusal
from outlives.model.setup import Item, Range, RequestSetup, Setup
from real_runner import RealRunner, TwoWorkers

pytestmark = pytest.mark.vllm

STEPS = 3_000


def skip_other_runners(release):
    """The runner of older releases is another one; a newer release has no CPU package, and the runner of the other
    asks for memory that only an accelerator has."""
    if release.numbers[:2] != (0, 32):
        pytest.skip("the real runner is that of 0.32.0")


ITEM = Setup((RequestSetup(8, 3, (Item(2, 5, "k0", 5),)),), slots=8, budget=4, look_ahead=1, depth=2)


@pytest.fixture
def begun(release):
    """A request whose item is half read: its next step reads the rest."""
    skip_other_runners(release)
    subject = TwoWorkers(release, RealRunner(release))
    subject.start(ITEM)
    for action in (
        Action.of("arrive", request="r0"),
        Action.of("schedule"),
        Action.of("schedule"),
        Action.of("accept"),
    ):
        assert subject.take(action) is None
    assert subject.observe().failure is None
    return subject


def test_both_miss_what_neither_has(begun):
    begun.worker.shelf.discard("k0")
    begun.real.runner.encoder_cache.pop("k0")
    assert begun.take(Action.of("accept")) is None
    seen = begun.observe()
    assert seen.failure is None
    assert [(miss.reader, miss.low, miss.high) for miss in seen.state.misses] == [("target", 4, 8), ("draft", 5, 9)]
    assert begun.misses_seen == 2


def test_a_runner_that_lacks_what_the_twin_has_is_noticed(begun):
    begun.real.runner.encoder_cache.pop("k0")
    assert begun.take(Action.of("accept")) is None
    failure = begun.observe().failure
    assert failure is not None
    assert failure.what == "DifferentWorkers: shelf ['k0'], encoder_cache []"


def test_a_runner_at_another_position_is_noticed(begun):
    (sent,) = begun._travelling.values()
    sent.scheduled_cached_reqs.num_computed_tokens[0] += 1
    assert begun.take(Action.of("accept")) is None
    failure = begun.observe().failure
    assert failure is not None
    assert "r0 starts at 4, the runner is at 5" in failure.what


def _drawn(table, choose):
    return {
        name: choose.randint(span.low, span.high) if isinstance(span, Range) else choose.choice(span.names)
        for name, span in table.items()
    }


@pytest.mark.parametrize("policy", ["fcfs", "priority"])
def test_the_twin_and_the_real_runner_are_alike(release, policy):
    skip_other_runners(release)
    numbers = {"requests": (3, 3), "turns": (1, 1), "drafts": (0, 2), "outputs": (1, 5)}
    configuration = Configuration(profile=release.profile, policy=policy, numbers=numbers, without=("sessions",))
    scope = configuration.scope()._replace(modes=("plain",))
    subject = TwoWorkers(release, RealRunner(release))
    model = SubjectModel(subject, configuration.world(), scope)
    choose = random.Random(7)
    while subject.compared < STEPS:
        state = model.initial_state(_drawn(model.setup_table, choose))
        for _ in range(60):
            offered = [action for action in model.actions(state) if action.name not in ("abort", "finish")]
            action = choose.choice(offered)
            if choose.random() < 0.5:
                action = model.fair_action(state) or action
            after = model.next_state(state, action)
            if isinstance(after, Refusal):
                continue
            if after.failure is not None:  # the release's own exception ends a run, and is no matter of the worker
                assert "DifferentWorkers" not in after.failure.what, after.failure
            state = after
            if not model.within(state):
                break
    assert subject.compared >= STEPS
