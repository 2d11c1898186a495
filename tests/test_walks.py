"""Recorded walks: the profiles still show what the releases did, and a profile that is wrong in anything does not."""

from dataclasses import replace

import pytest
from outlives.invariants.mutants import mutant_named, planted
from outlives.invariants.subject.walks import WALKS, departure
from outlives.invariants.subject.walks_seen import SEEN


def test_each_walk_was_seen_on_its_release() -> None:
    assert list(SEEN) == list(WALKS)
    assert all(len(SEEN[name]) == walk.runs for name, walk in WALKS.items())


@pytest.mark.parametrize("name", WALKS)
def test_the_profile_shows_what_the_release_did(name: str) -> None:
    assert departure(WALKS[name], SEEN[name]) == ""


@pytest.mark.parametrize(
    "key",
    [
        "lifetime.promise: c.known + c.placeholders -> c.known",
        "batch._grant: work.encoder_budget -= slots -> pass",
        "gate._splits: world.switches.whole_at_start == 1 and computed == start -> computed == start",
    ],
)
def test_a_rule_that_violates_nothing_and_is_no_release_departs(key: str) -> None:
    with planted(mutant_named(key)):
        assert any(departure(WALKS[name], seen) for name, seen in SEEN.items())


def test_the_profile_of_another_release_departs() -> None:
    walk = WALKS["0.33.0 priority"]
    other = replace(walk, configuration=replace(walk.configuration, profile="0.32.0"))
    assert departure(other, SEEN[walk.name]).startswith("run ")


def test_what_a_run_shows_does_not_depend_on_the_runs_before_it() -> None:
    """A mutant that departs in one run may show the right thing in the next: the walk says which run it was."""
    walk = WALKS["0.33.0 priority"]
    seen = list(SEEN[walk.name])
    seen[3] = "000000"
    assert departure(walk, seen) == "run 3 of 0.33.0 priority is not what the release showed"
