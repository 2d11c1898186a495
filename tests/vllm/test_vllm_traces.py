"""The recorded traces on the real release: which of them happen there."""

from pathlib import Path

import pytest
from outlives.invariants.subject.run import replay_on_release

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
    "withdrawn-encode-0.33.0": ("0.32.0", "0.33.0"),  # before, the chunk cap holds for a lone request too
    "withdrawn-encode-planned-0.33.0": ("0.19.1", "0.24.0", "0.28.0", "0.32.0", "0.33.0"),
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
