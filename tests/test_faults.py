"""Each planted fault is found by some engine through the command, and told by the name of what it breaks."""

from pathlib import Path

import pytest
from command_runs import Run, runner
from faults import FAULTS, Fault

HERE = Path(__file__).parent
BY_NAME = {fault.name: fault for fault in FAULTS}
FINDS = {
    "roll-back-computed-only": ("machine", "exhaustive"),
    "forget-in-flight": ("machine",),
    "one-too-early": ("exhaustive", "proof"),
    "forget-promises": ("exhaustive",),
    "hit-stays-idle": ("machine",),
    "evict-keeps-slots": ("machine",),
    "gate-ignores-room": ("machine", "exhaustive"),
    "keep-references": ("machine", "exhaustive"),
    "encode-one-only": ("exhaustive",),
    "drop-nothing": ("machine", "exhaustive"),
}
"""Fault -> engines that are asked here. The exhaustive engine finds all of them, the proof both guards'."""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(capsys)


def options(fault: Fault) -> list[str]:
    said = ["--fault", f"{HERE / 'faults.py'}:{fault.name.replace('-', '_')}"]
    if "relax" in fault.configuration:
        said += ["--relax", ",".join(fault.configuration["relax"])]
    return said + (["--items-anywhere"] if fault.configuration.get("items_anywhere") else [])


def test_there_are_two_in_each_room() -> None:
    rooms = [fault.room for fault in FAULTS]
    assert {room: rooms.count(room) for room in rooms} == dict.fromkeys(
        ("counters", "guards", "book", "pass", "worker"), 2
    )
    assert set(FINDS) == set(BY_NAME)


@pytest.mark.parametrize(
    ("name", "engine"), [(name, engine) for name, engines in FINDS.items() for engine in engines if engine != "proof"]
)
def test_each_fault_is_found(name: str, engine: str, run: Run) -> None:
    fault = BY_NAME[name]
    asked = ("--cases", "120", "--property", fault.breaks)
    done = run("check", *options(fault), "--engine", engine, *asked, "--json")
    assert done.status == 1
    verdicts = {row["property"]: row["verdict"] for row in done.object["results"] if row["engine"] == engine}
    assert verdicts[fault.breaks] == "violated"


@pytest.mark.parametrize("name", [name for name, engines in FINDS.items() if "proof" in engines])
def test_a_fault_in_a_guard_is_found_by_the_proof_and_shown_on_the_model(name: str, run: Run) -> None:
    quiet = ("--without", "reset-encoder-cache", "--without", "sessions")
    done = run("check", *options(BY_NAME[name]), *quiet, "--engine", "proof", "--json")
    verdicts = {row["property"]: row["verdict"] for row in done.object["results"] if row["engine"] == "proof"}
    assert (done.status, verdicts) == (1, {"OUTLIVES": "violated"})
    assert [each["property"] for each in done.object["violations"]] == ["GATHER-AFTER-FREE"]


@pytest.mark.parametrize("name", BY_NAME)
def test_without_the_fault_its_property_holds(name: str, run: Run) -> None:
    fault = BY_NAME[name]
    asked = ("--engine", "machine", "--settings", "quick", "--cases", "25", "--property", fault.breaks)
    assert run("check", *options(fault)[2:], *asked).status in (0, 4)
