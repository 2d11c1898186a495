"""What the profile of the release violates, its shortest traces given to the release itself: each of them happens."""

import sys
from pathlib import Path

import pytest
from outlives.invariants.configuration import Configuration
from outlives.invariants.explore import Bounds, explore
from outlives.invariants.scope_choice import chosen_scopes
from outlives.invariants.subject.run import replay_on_release
from outlives.invariants.trace_file import write_trace

sys.path.insert(0, str(Path(__file__).parent.parent))

from release_sets import MOST_STATES, RELEASE_SETS

pytestmark = pytest.mark.vllm

NOT_SEEN = {"RELEASE-ONCE"}
"""It asks what a second release would do, of the model's own rule: no run of a scheduler shows that. The slots that
are credited twice show as SLOTS-ADD-UP."""


@pytest.mark.parametrize("name", sorted({name for known in RELEASE_SETS.values() for name in known} - NOT_SEEN))
def test_what_its_profile_violates_happens_in_the_release(release, name, tmp_path):
    known = RELEASE_SETS[release.profile]
    if release.profile != release.version or name not in known:
        pytest.skip(f"{name} is not of the set of {release.version}")
    configuration = Configuration(profile=release.profile)
    ((_, states),) = chosen_scopes(configuration, [known[name].scope], every_number=False).items()
    trace = explore(configuration.model(), bounds=Bounds(states=MOST_STATES), initial=states).traces[name]
    assert len(trace.actions) == known[name].actions
    assert replay_on_release(write_trace(trace, configuration, tmp_path / name), release).label == "reproduced"
