"""What the machine found is tried first the next time: at the same desk, at another one, and until it is mended."""

import warnings
import zipfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from command_runs import runner
from hypothesis.database import InMemoryExampleDatabase
from outlives.invariants.machine import MachineRun, run_machine
from outlives.invariants.machine_database import ARTIFACT, RoundsDatabase
from outlives.invariants.machine_settings import machine_profile
from outlives.invariants.verdict import Verdict
from outlives.model.contract import Action, Property
from toy_models import CounterModel, Tally

LIMIT = 50
"""No run of nine actions gets so far, and few of twenty do."""


class TwiceWrong(CounterModel):
    """A counter of which two things must hold that have nothing to do with each other; those in `wrong` do not."""

    def __init__(self, *wrong: str) -> None:
        super().__init__(faulty=True, limit=LIMIT)
        self.wrong = wrong

    def properties(self) -> Sequence[Property[Tally]]:
        def made(name: str, false: Callable[[Tally, Action | None], bool]) -> Property[Tally]:
            return Property(
                name=name,
                phrase="all is well",
                holds=lambda before, action, after: name not in self.wrong or not false(after, action),
                explain=lambda _before, _action, after: f"the value is {after.value}",
                situation=lambda _before, action, _after: action is not None,
                situation_phrase="something was done",
            )

        rest = Action.of("rest", how="b")
        return [
            made("HIGH", lambda after, _action: after.value > LIMIT),
            made("REST", lambda after, action: after.value == 13 and action == rest),
        ]


def run(folder: Path, *wrong: str, seed: int = 0) -> MachineRun:
    settings = machine_profile("quick").changed(cases=200, database=folder)
    return run_machine(TwiceWrong(*wrong), settings=settings, seed=seed, label="twice")


def violated(done: MachineRun) -> set[str]:
    return {row.property for row in done.results if row.verdict is Verdict.VIOLATED}


def kept(folder: Path) -> int:
    return sum(path.is_file() for path in folder.rglob("*"))


def test_every_property_that_failed_is_tried_first_whatever_the_seed(tmp_path: Path) -> None:
    first = run(tmp_path, "HIGH", "REST")
    assert violated(first) == {"HIGH", "REST"}
    assert kept(tmp_path) >= 2
    again = run(tmp_path, "HIGH", "REST", seed=99)
    assert violated(again) == {"HIGH", "REST"}
    assert again.cases <= 6 < first.cases, "two rounds of what is kept, and nothing drawn"
    assert kept(tmp_path) >= 2


def test_what_is_mended_is_forgotten_and_what_is_not_is_kept(tmp_path: Path) -> None:
    run(tmp_path, "HIGH", "REST")
    half = run(tmp_path, "HIGH", seed=99)
    assert violated(half) == {"HIGH"}
    (high,) = [row for row in half.results if row.property == "HIGH"]
    assert high.details["cases"] <= 4, "it was tried, not drawn"
    assert kept(tmp_path) >= 1
    assert violated(run(tmp_path)) == set()
    assert kept(tmp_path) <= 1, "what passed is gone; Hypothesis keeps a note of its keys"


def test_a_round_does_not_see_what_passed_in_it() -> None:
    inner = InMemoryExampleDatabase()
    rounds = RoundsDatabase(inner)
    for value in (b"a", b"b"):
        rounds.save(b"key", value)
    rounds.delete(b"key", b"a")
    assert set(rounds.fetch(b"key")) == set(inner.fetch(b"key")) == {b"b"}
    rounds.forgets = False
    rounds.delete(b"key", b"b")
    assert set(rounds.fetch(b"key")) == set()
    assert set(inner.fetch(b"key")) == {b"b"}
    rounds.save(b"key", b"b")
    assert set(rounds.fetch(b"key")) == {b"b"}


CHECK = ("check", "--profile", "0.24.0", "--engine", "machine", "--settings", "quick", "--json",
         "--property", "SLOTS-ADD-UP", "--property", "RELEASE-ONCE")  # fmt: skip


def test_a_failure_of_a_job_is_tried_first_at_the_desk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The artefact lies where Hypothesis keeps what it downloaded: nothing here asks the network."""
    job, desk = tmp_path / "job", tmp_path / "desk"
    for place in (job, desk):
        place.mkdir()
    monkeypatch.chdir(job)
    there = runner(capsys)(*CHECK).object
    monkeypatch.chdir(desk)
    uploaded = job / ".outlives/hypothesis"
    downloaded = desk / ".hypothesis/github-artifacts" / ARTIFACT
    downloaded.mkdir(parents=True)
    now = datetime.now(UTC).isoformat().replace(":", "_")
    with zipfile.ZipFile(downloaded / f"{now}.zip", "w") as artefact:
        for path in sorted(uploaded.rglob("*")):
            artefact.write(path, path.relative_to(uploaded).as_posix())
    monkeypatch.setattr("hypothesis.configuration.__hypothesis_home_directory", desk / ".hypothesis", raising=False)
    (desk / "pyproject.toml").write_text('[tool.outlives]\nartifacts = "owner/scheduler"\n', encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        here = runner(capsys)(*CHECK, "--seed", "7").object

    def found(said: dict[str, object]) -> set[str]:
        return {row["property"] for row in said["results"] if row["verdict"] == "violated"}  # type: ignore[attr-defined]

    assert found(there) == found(here) == {"SLOTS-ADD-UP", "RELEASE-ONCE"}
    assert all(row["details"]["cases"] <= 4 for row in here["results"]), "they were tried, not drawn"
    assert not (desk / ".outlives/hypothesis").exists() or kept(desk / ".outlives/hypothesis") >= 1
