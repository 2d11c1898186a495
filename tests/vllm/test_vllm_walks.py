"""The recorded walks, taken again on the real release: it still shows what was kept of it."""

import os

import pytest
from outlives.invariants.subject.walks import WALKS, recorded
from outlives.invariants.subject.walks_seen import SEEN
from record_walks import beside

pytestmark = pytest.mark.vllm

MOST = None if os.environ.get("OUTLIVES_LONG") else 12


def test_the_release_shows_what_was_kept_of_it(release):
    walks = [walk for walk in WALKS.values() if walk.release == release.version]
    if not walks:
        pytest.skip(f"nothing was kept of {release.version}")
    for walk in walks:
        assert recorded(walk, beside(release, walk), MOST) == SEEN[walk.name][:MOST]
