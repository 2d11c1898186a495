"""The real scheduler as a subject: what its objects are read as, what it refuses, and how it fails."""

import pytest
from outlives.invariants.configuration import Configuration
from outlives.invariants.subject.live import Observed, SubjectModel
from outlives.invariants.subject.run import subject_model
from outlives.invariants.subject.vllm_subject import VllmSubject
from outlives.model.contract import Action, Refusal
from outlives.model.errors import BadModel, Contradiction
from outlives.model.lifetime import Counters
from outlives.model.setup import Item, RequestSetup, Setup

pytestmark = pytest.mark.vllm

ONE = Setup(
    (RequestSetup(8, 3, (Item(2, 4, "k0", 4),)),), slots=8, budget=5, drafts=2, look_ahead=1, depth=2, left_out=()
)


@pytest.fixture
def subject(release):
    return VllmSubject(release)


@pytest.fixture
def model(release):
    return subject_model(Configuration(profile=release.profile), release)


def run(model: SubjectModel, setup: Setup, *actions: Action) -> Observed:
    state = model.begin(setup)
    for action in actions:
        after = model.next_state(state, action)
        assert isinstance(after, Observed), (action, after)
        state = after
    return state


ARRIVE, SCHEDULE, ACCEPT = Action.of("arrive", request="r0"), Action.of("schedule"), Action.of("accept")


def test_a_plain_request_is_read_step_by_step(model):
    state = run(model, ONE, ARRIVE)
    assert state.requests[0].status == "waiting"
    assert state.requests[0].counters == Counters(0, 0, 0, 0, 8)
    state = run(model, ONE, ARRIVE, SCHEDULE)
    (part,) = state.steps[0].parts
    assert (part.start, part.tokens, part.sampled, part.first, part.live) == (0, 5, 0, 1, 1)
    assert state.steps[0].encode == ("k0",)
    assert state.shelf == ()
    assert [(entry.key, entry.size, entry.holders) for entry in state.book.entries] == [("k0", 4, (0,))]
    assert (state.book.free, state.book.reclaimable) == (4, 4)
    state = run(model, ONE, ARRIVE, SCHEDULE, SCHEDULE)
    assert state.requests[0].counters.computed == 8
    assert state.requests[0].counters.placeholders == 1
    assert state.requests[0].drafts == 2
    assert state.steps[1].parts[0].promised == 1
    state = run(model, ONE, ARRIVE, SCHEDULE, SCHEDULE, ACCEPT)
    assert state.shelf == ("k0",)
    assert state.requests[0].counters.in_flight == 3


def test_drafts_are_rejected_in_the_real_counters(model):
    state = run(model, ONE, ARRIVE, SCHEDULE, SCHEDULE, ACCEPT, SCHEDULE, ACCEPT)
    before = state.requests[0].counters
    assert (before.computed, before.placeholders, before.known) == (11, 3, 9)
    after = model.next_state(state, Action.of("reject", accepted=0))
    assert isinstance(after, Observed)
    counters = after.requests[0].counters
    assert (counters.computed, counters.placeholders, counters.known) == (9, 0, 10)


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (Action.of("arrive", request="r1"), "unknown-request"),
        (ACCEPT, "pipeline-empty"),
        (Action.of("preempt", request="r0"), "not-running"),
        (Action.of("speculate", request="r0", drafts=1), "not-running"),
        (Action.of("evict", count=1), "nothing-idle"),
        (Action.of("occupy", slots=1), "no-change"),
        (Action.of("finish", request="r0"), "not-running"),
        (Action.of("reset_prefix_cache"), "nothing-running"),
        (Action.of("reset_encoder_cache"), "cache-empty"),
        (Action.of("fail_kv_load", request="r0", valid=0), "nothing-was-loaded"),
        (Action.of("continue_session", request="r0"), "not-paused"),
        (Action.of("launch"), "not-on-this-subject"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name_and_changes_nothing(subject, action, reason):
    subject.start(ONE)
    assert subject.take(ARRIVE) is None
    before = subject.observe()
    assert subject.take(action) == Refusal(reason)
    assert subject.observe() == before


def test_a_pass_without_anything_to_do_is_refused(subject):
    subject.start(ONE)
    assert subject.take(SCHEDULE) == Refusal("nothing-scheduled")


def test_an_exception_of_the_scheduler_is_a_violation_with_its_innermost_frame(model, monkeypatch):
    state = run(model, ONE, ARRIVE)

    def broken(*_args, **_named):
        raise AssertionError("so it is")

    monkeypatch.setattr(model.subject.scheduler, "_update_after_schedule", broken)
    after = model.next_state(state, SCHEDULE)
    assert isinstance(after, Observed)
    assert after.failure is not None
    assert after.failure.what == "AssertionError: so it is"
    assert after.failure.where.startswith("vllm/v1/core/sched/scheduler.py:")
    no_exception = next(prop for prop in model.properties() if prop.name == "NO-EXCEPTION")
    assert not no_exception.holds(state, SCHEDULE, after)
    assert "so it is" in no_exception.explain(state, SCHEDULE, after)
    assert not model.within(after)
    assert model.next_state(after, ACCEPT) == Refusal("engine-dead")


def test_exit_inside_the_scheduler_does_not_end_the_run(model, monkeypatch):
    state = run(model, ONE, ARRIVE)
    monkeypatch.setattr(model.subject.scheduler, "schedule", lambda: exit(3))
    after = model.next_state(state, SCHEDULE)
    assert isinstance(after, Observed)
    assert after.failure is not None
    assert after.failure.what.startswith("SystemExit")


def test_any_earlier_state_is_reached_again_by_its_history(model):
    first = run(model, ONE, ARRIVE, SCHEDULE)
    later = model.next_state(first, SCHEDULE)
    other = model.next_state(first, Action.of("preempt", request="r0"))
    assert isinstance(other, Observed)
    assert other.requests[0].status == "waiting"
    assert model.replays == 1
    first.known = None  # forget the answer, so that it has to be found again
    assert model.next_state(first, SCHEDULE) == later
    assert model.replays == 2


def test_a_subject_that_forgets_is_noticed(model, monkeypatch):
    first = run(model, ONE, ARRIVE, SCHEDULE)
    model.next_state(first, SCHEDULE)
    monkeypatch.setattr(
        type(model.subject.release), "scheduler", _with_smaller_budget(type(model.subject.release).scheduler)
    )
    first.known = None
    with pytest.raises(BadModel, match="another state than before"):
        model.next_state(first, Action.of("abort", request="r0"))


def _with_smaller_budget(make):
    def made(release, setup, **named):
        return make(release, setup._replace(budget=3), **named)

    return made


def test_assumptions_and_faults_are_for_the_model(release):
    with pytest.raises(Contradiction, match="relaxed assumption"):
        subject_model(Configuration(relax=("A1",)), release)
    with pytest.raises(Contradiction, match="guard"):
        subject_model(Configuration(guard="settled"), release)


def test_a_step_in_flight_keeps_the_items_of_its_dispatch(subject, release):
    """The worker reads what it was told, not what the scheduler's objects have become since."""
    subject.start(ONE)
    subject.take(ARRIVE)
    subject.take(SCHEDULE)
    subject.requests[0].mm_features.clear()
    subject.take(ACCEPT)
    assert subject.observe().failure is None
    assert subject.worker.shelf == {"k0"}
