"""Planted faults through the command: found by an engine that is asked, and told by the name of what they break."""

from pathlib import Path

import pytest
from command_runs import Run, runner
from faults import FAULTS, Fault

HERE = Path(__file__).parent
BY_NAME = {fault.name: fault for fault in FAULTS}
ROOMS = ("counters", "guards", "book", "pass", "worker")
CASES = 250
FINDS: dict[str, tuple[str, ...]] = {
    "roll-back-computed-only": ("machine", "many-drafts"),
    "reset-keeps-promises": ("machine", "reset-both"),
    "failed-load-keeps-promises": ("load-and-turns",),
    "turn-end-keeps-computed": ("second-turn",),
    "one-too-early": ("last-chunk", "proof"),
    "forget-promises": ("many-drafts",),
    "relies-on-others": (),
    "waits-for-others": ("shared-and-own",),
    "hit-stays-idle": ("shared-key",),
    "evict-keeps-slots": ("tight-cache",),
    "release-drops-another": ("shared-key",),
    "hit-counts-each-holder": ("shared-key",),
    "gate-ignores-room": ("tight-cache",),
    "keep-references": ("machine", "tight-cache"),
    "withdraw-what-others-hold": ("shared-in-one-pass",),
    "withdrawn-stays-booked": ("machine", "withdrawn-encode"),
    "drop-nothing": ("tight-cache",),
    "clear-at-once": ("encoder-cache-reset",),
    "look-under-own-name": ("machine", "shared-key"),
    "shift-every-reader": (),
}
"""Fault -> who is asked for it here: the machine, which finds it within `CASES` cases, the exhaustive engine in the
named scope, the proof. Those without an entry are in `test_explore_faults`, each with its scope."""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(capsys)


def options(fault: Fault) -> list[str]:
    said = ["--fault", f"{HERE / 'faults.py'}:{fault.name.replace('-', '_')}"]
    if "relax" in fault.configuration:
        said += ["--relax", ",".join(fault.configuration["relax"])]
    return said + (["--items-anywhere"] if fault.configuration.get("items_anywhere") else [])


def found_by(engine: str) -> list[str]:
    return [name for name, finders in FINDS.items() if engine in finders]


def test_there_are_four_in_each_room_and_eight_need_two_requests() -> None:
    rooms = [fault.room for fault in FAULTS]
    assert {room: rooms.count(room) for room in rooms} == dict.fromkeys(ROOMS, 4)
    assert [fault.requests for fault in FAULTS].count(2) == 8
    assert set(FINDS) == set(BY_NAME)


@pytest.mark.parametrize("name", found_by("machine"))
def test_the_machine_finds_it(name: str, run: Run) -> None:
    fault = BY_NAME[name]
    asked = ("--engine", "machine", "--cases", str(CASES), "--property", fault.breaks, "--json")
    done = run("check", *options(fault), *asked)
    assert done.status == 1
    verdicts = {row["property"]: row["verdict"] for row in done.object["results"] if row["engine"] == "machine"}
    assert verdicts == {fault.breaks: "violated"}


@pytest.mark.parametrize(
    ("name", "scope"),
    [(name, finder) for name, finders in FINDS.items() for finder in finders if finder not in ("machine", "proof")],
)
def test_a_named_scope_shows_it_and_nothing_without_it(name: str, scope: str, run: Run) -> None:
    fault = BY_NAME[name]
    asked = ("--scope", scope, "--property", fault.breaks)
    # With a fault, queues and counters may grow without end.
    done = run("explore", *options(fault), *asked, "--states", "3000", "--json")
    assert done.status == 1
    assert [row["verdict"] for row in done.object["results"]] == ["violated"]
    assert run("explore", *options(fault)[2:], *asked).status == 0


@pytest.mark.parametrize("name", found_by("proof"))
def test_a_fault_in_a_guard_is_found_by_the_proof_and_shown_on_the_model(name: str, run: Run) -> None:
    quiet = ("--without", "reset-encoder-cache", "--without", "sessions")
    done = run("check", *options(BY_NAME[name]), *quiet, "--engine", "proof", "--json")
    verdicts = {row["property"]: row["verdict"] for row in done.object["results"] if row["engine"] == "proof"}
    assert (done.status, verdicts) == (1, {"OUTLIVES": "violated"})
    assert [each["property"] for each in done.object["violations"]] == ["GATHER-AFTER-FREE"]
