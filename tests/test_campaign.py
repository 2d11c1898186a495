"""Long runs, ten seeds each, started by hand through `.ci/campaign`: the figures behind what the documents claim.

Each test prints one line per measurement (run with `-s`), and fails where a claim does not hold.
"""

from collections.abc import Iterator
from time import perf_counter

import pytest
from outlives.invariants.configuration import Configuration
from outlives.invariants.machine import machine_profile, run_machine
from outlives.invariants.verdict import Verdict
from outlives.model.profiles import PROFILES
from outlives.model.scenarios import SCENARIOS
from release_sets import RELEASE_SETS

pytestmark = pytest.mark.campaign

SEEDS = range(10)
SCENARIO_SECONDS = 20
DEFAULT_SECONDS = 60

CRASH, STUCK, OK = "GATHER-AFTER-FREE", "PROGRESS", ""
CELLS = {
    "0.11.0": (CRASH, CRASH, CRASH, CRASH),
    "0.12.0": (OK, STUCK, OK, CRASH),
    "0.13.0": (CRASH, STUCK, OK, CRASH),
    "0.17.1": (CRASH, STUCK, OK, OK),
    "0.20.0": (CRASH, STUCK, OK, OK),
    "0.24.0": (OK, STUCK, STUCK, OK),
    "0.27.0": (OK, STUCK, STUCK, OK),
    "0.28.0": (OK, STUCK, STUCK, OK),
    "0.29.0": (OK, STUCK, STUCK, OK),
    "0.32.0": (OK, STUCK, STUCK, OK),
    "0.33.0": (OK, OK, OK, OK),
    "repaired": (OK, OK, OK, OK),
}
"""Profile -> what each scenario shows, in the order chunk-end, adjacent, gap-one, whole-items."""


def found(
    configuration: Configuration, seed: int, cases: int = 1_500, *, first_only: bool = True
) -> tuple[set[str], float]:
    """The properties that the machine finds violated with the ci settings, and the seconds that it takes."""
    begun = perf_counter()
    settings = machine_profile("ci").changed(first_only=first_only, cases=cases)
    run = run_machine(configuration.model(), settings=settings, seed=seed)
    seconds = perf_counter() - begun
    return {row.property for row in run.results if row.verdict is Verdict.VIOLATED}, seconds


def scenario_cells() -> Iterator[tuple[str, str, str]]:
    for profile, cells in CELLS.items():
        for scenario, expected in zip(("chunk-end", "adjacent", "gap-one", "whole-items"), cells, strict=True):
            yield profile, scenario, expected


def test_the_table_names_every_profile_and_scenario() -> None:
    assert list(CELLS) == list(PROFILES)
    assert list(SCENARIOS) == ["chunk-end", "adjacent", "gap-one", "whole-items"]


@pytest.mark.parametrize(("profile", "scenario", "expected"), list(scenario_cells()))
def test_each_scenario_cell_with_ten_seeds(profile: str, scenario: str, expected: str) -> None:
    configuration = Configuration(profile=profile, scenario=scenario)
    slowest = 0.0
    for seed in SEEDS:
        violated, seconds = found(configuration, seed, 1_000 if expected else 200)
        assert violated == ({expected} if expected else set()), f"seed {seed}"
        if expected:
            slowest = max(slowest, seconds)
    print(f"{profile} {scenario}: {expected or 'ok'}, slowest of ten seeds {slowest:.1f} s")
    assert slowest < SCENARIO_SECONDS


@pytest.mark.parametrize("profile", [profile for profile, known in RELEASE_SETS.items() if known])
def test_what_the_machine_finds_of_each_release_with_ten_seeds(profile: str) -> None:
    """With the ci settings the release's whole set, and nothing else, each time."""
    slowest = 0.0
    for seed in SEEDS:
        violated, seconds = found(Configuration(profile=profile), seed, first_only=False)
        assert violated == set(RELEASE_SETS[profile]), f"seed {seed}"
        slowest = max(slowest, seconds)
    print(f"{profile}: slowest of ten seeds {slowest:.1f} s")
    assert slowest < DEFAULT_SECONDS
