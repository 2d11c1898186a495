"""The exhaustive engine finds of each release exactly the set that is written down, with its shortest traces."""

import json
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from command_runs import runner
from outlives.invariants.configuration import Configuration
from outlives.invariants.machine import machine_profile, run_machine
from outlives.invariants.properties import scheduler_properties
from outlives.invariants.scopes import NAMED_SCOPES
from outlives.invariants.verdict import Verdict
from outlives.model.profiles import PROFILES
from release_sets import ENDLESS, RELEASE_SETS, Seen, look, table
from worlds import world

EACH_CHANGE = ("0.11.0", "0.27.0", "0.33.0", "repaired")
"""Searched in CI; the campaign searches the others as well."""
FINDINGS = (Path(__file__).parent.parent / "docs/findings.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def two_processes() -> Iterator[Executor]:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield pool
        pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="module")
def seen(two_processes: Executor, request: pytest.FixtureRequest) -> dict[str, Future[Seen]]:
    """The searches of the profiles whose tests were selected, side by side."""
    here = [item for item in request.session.items if item.path == request.path and hasattr(item, "callspec")]
    return {
        item.callspec.params["profile"]: two_processes.submit(look, item.callspec.params["profile"]) for item in here
    }


def test_every_profile_has_its_set_of_known_properties_and_scopes() -> None:
    assert list(RELEASE_SETS) == list(PROFILES)
    properties = {each.name for each in scheduler_properties(world())}
    named = {each.name for each in NAMED_SCOPES}
    for profile, found in RELEASE_SETS.items():
        assert set(found) <= properties
        assert {shortest.scope for shortest in found.values()} <= named
        assert bool(found) == (profile != "repaired")


@pytest.mark.parametrize(
    "profile",
    [
        profile if profile in EACH_CHANGE else pytest.param(profile, marks=pytest.mark.campaign)
        for profile in RELEASE_SETS
    ],
)
def test_what_the_exhaustive_engine_finds_of_each_release(profile: str, seen: dict[str, Future[Seen]]) -> None:
    found = seen[profile].result()
    assert found.shortest == RELEASE_SETS[profile]
    assert found.endless == ENDLESS.get(profile, ())
    assert found.states > 20_000


def test_the_page_has_this_table() -> None:
    assert f"\n{table()}\n" in FINDINGS


def test_check_reports_the_newest_release_as_violated_by_this_set(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = runner(capsys)("check", "--profile", "0.33.0", "--engine", "exhaustive", "--json")
    assert done.status == 1
    assert {each["property"] for each in done.object["violations"]} == set(RELEASE_SETS["0.33.0"])
    files = {json.loads(path.read_bytes())["#meta"]["property"] for path in tmp_path.rglob("*.itf.json")}
    assert files == set(RELEASE_SETS["0.33.0"])


def test_the_machine_finds_the_set_of_the_newest_release() -> None:
    """One seed with the ci settings; what ten seeds find of each release is in the campaign."""
    run = run_machine(Configuration(profile="0.33.0").model(), settings=machine_profile("ci"), seed=0)
    found = {row.property for row in run.results if row.verdict is Verdict.VIOLATED}
    assert found == set(RELEASE_SETS["0.33.0"])
