"""The recorded traces on the real release: which of them happen there."""

from pathlib import Path

import pytest
from outlives.invariants.configuration import Configuration
from outlives.invariants.subject.run import replay_on_release
from outlives.invariants.subject.vllm_subject import VllmSubject
from outlives.model.contract import Action
from outlives.model.setup import RARE_ROUTES, RequestSetup, Setup
from outlives.model.trace import read_trace, setup_from_plain

pytestmark = pytest.mark.vllm

FOLDER = Path(__file__).parent.parent / "regressions"

# By trace: in which of the releases under test its violation happens.
HAPPENS = {
    "adjacent-0.24.0": ("0.19.1", "0.24.0", "0.28.0", "0.32.0"),
    "gap-one-0.24.0": ("0.24.0", "0.28.0", "0.32.0"),
    "chunk-end-0.17.1": ("0.19.1",),
    "counters-after-preemption-0.24.0": ("0.19.1", "0.24.0"),
    "placeholders-after-preemption-0.24.0": ("0.19.1", "0.24.0"),
    "whole-items-0.13.0": (),
    "whole-items-stuck-0.33.0": ("0.19.1", "0.24.0", "0.28.0", "0.32.0", "0.33.0"),
    "whole-items-stuck-at-budget-0.33.0": ("0.19.1", "0.24.0", "0.28.0", "0.32.0", "0.33.0"),
    "whole-items-stuck-longer-0.33.0": ("0.19.1", "0.24.0", "0.28.0", "0.32.0", "0.33.0"),
    "withdrawn-encode-0.33.0": ("0.32.0", "0.33.0"),  # before, the chunk cap holds for a lone request too
    "withdrawn-encode-planned-0.33.0": ("0.19.1", "0.24.0", "0.28.0", "0.32.0", "0.33.0"),
    "failed-load-placeholders-0.33.0": ("0.19.1", "0.24.0", "0.28.0", "0.32.0", "0.33.0"),
    "failed-load-never-ends-0.33.0": ("0.19.1", "0.24.0", "0.28.0", "0.32.0", "0.33.0"),
    "failed-load-holds-room-0.33.0": ("0.24.0", "0.28.0", "0.32.0", "0.33.0"),
    "turn-holds-last-item-0.33.0": ("0.32.0", "0.33.0"),
    "turn-holds-last-item-smallest-0.33.0": ("0.24.0", "0.28.0", "0.32.0", "0.33.0"),
    "turns-hold-each-other-0.33.0": ("0.24.0", "0.28.0", "0.32.0", "0.33.0"),
    "padded-over-budget-0.33.0": ("0.32.0", "0.33.0"),
    "encoder-decoder-slots-0.33.0": ("0.19.1", "0.24.0", "0.28.0", "0.32.0", "0.33.0"),
    "encoder-decoder-slots-abort-0.33.0": ("0.19.1", "0.24.0", "0.28.0", "0.32.0", "0.33.0"),
    "session-lost-0.32.0": ("0.19.1", "0.24.0", "0.28.0", "0.32.0"),
    "old-output-in-new-turn-0.27.0": ("0.19.1", "0.24.0", "0.28.0"),
    "repeated-key-0.28.0": ("0.24.0", "0.28.0"),
    "reset-loses-output-0.20.0": ("0.19.1",),
    "reset-rejects-anew-0.24.0": ("0.19.1", "0.24.0"),
}


def _trace(name: str) -> Path:
    (path,) = FOLDER.glob(f"????-??-??-{name}.itf.json")
    return path


@pytest.mark.parametrize("name", HAPPENS)
def test_the_trace_happens_where_it_should(release, name):
    known = {version for versions in HAPPENS.values() for version in versions}
    if release.version not in known:
        pytest.skip(f"not recorded for {release.version}")
    done = replay_on_release(_trace(name), release)
    assert done.replay is not None, done.reason
    assert done.label == ("reproduced" if release.version in HAPPENS[name] else "not reproduced")


def test_a_trace_that_relaxes_an_assumption_is_not_asked(release):
    done = replay_on_release(_trace("settled-a1"), release)
    assert done.label == "not applicable"
    assert done.reason == "it relaxes A1, which a real scheduler does not"


def test_a_session_of_a_diffusion_model_ends_the_engine(release):
    """0.33.0 drops the last token of the turn before, which a diffusion model has computed, and asserts that it has
    not."""
    if release.version != "0.33.0":
        pytest.skip("before 0.33.0 what counts as computed is kept")
    recorded = read_trace(_trace("diffusion-session-0.33.0"))
    setup = setup_from_plain(recorded.meta["setup"], recorded.where)
    subject = VllmSubject(release, Configuration(profile="0.33.0").world().closed)
    subject.start(setup)
    arrive, schedule, accept = Action.of("arrive", request="r0"), Action.of("schedule"), Action.of("accept")
    for action in (arrive, schedule, schedule, accept, accept):
        assert subject.take(action) is None
    assert subject.observe().failure is None
    subject.take(Action.of("continue_session", request="r0"))
    failure = subject.observe().failure
    assert failure is not None
    assert failure.what == "AssertionError"
    assert "_update_request_as_session" in failure.where


@pytest.mark.parametrize("synchronous", [0, 1])
def test_a_padded_admission_past_the_chunk_cap(release, synchronous):
    """One token short, padded with a draft, cut to one again: releases from 0.32.0 on assert that it was not cut."""
    setup = Setup(
        (RequestSetup(2, 1, ()), RequestSetup(1, 1, ())),
        slots=1,
        budget=2,
        drafts=1,
        depth=1,
        chunk_cap=1,
        synchronous=synchronous,
        left_out=RARE_ROUTES,
    )
    subject = VllmSubject(release, Configuration(profile=release.profile).world().closed)
    subject.start(setup)
    for number in ("r0", "r1"):
        assert subject.take(Action.of("arrive", request=number)) is None
    subject.take(Action.of("resume", request="r0", kept=1))
    failure = subject.observe().failure
    if release.version in ("0.32.0", "0.33.0"):
        assert failure is not None
        assert "num_new_tokens == 1 + self.num_spec_tokens" in failure.where
    else:
        assert failure is None
