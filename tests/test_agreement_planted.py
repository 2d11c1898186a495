"""A rule changed for one engine only is a disagreement: exit status 5, and the step is named."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from outlives.invariants import machine_shrink
from outlives.invariants.agreement import GATHER, machine_says, relation_says, shortened
from outlives.invariants.command import main
from outlives.invariants.explore import breadth_first
from outlives.invariants.explore.care import Careful
from outlives.invariants.proof.life import Arithmetic
from outlives.invariants.verdict import Step
from outlives.model import lifetime
from outlives.model.contract import Action, Refusal
from outlives.model.state import State
from worlds import fixed, setup

ITEM = setup([(0, 3)], prompt=1, outputs=4, slots=3, budget=4, drafts=2)

FAULT = """
from dataclasses import replace

def computed_stays(rules):
    def roll_back(counters, rejected, stale):
        if rejected == 0 or stale == 1:
            return rules.roll_back(counters, rejected, stale)
        return counters._replace(placeholders=counters.placeholders - rejected)

    return replace(rules, roll_back=roll_back)
"""


def missing_key() -> tuple[Any, Any]:
    """A model whose guard lets go too early, and its shortest read of a missing key."""
    model = fixed("repaired", ITEM, anywhere=True, guard="optimistic-at-output", reader="any", relaxed=("A3",))
    return model, breadth_first(model, properties=[GATHER]).traces[GATHER]


def gather(model: Any) -> Any:
    return next(prop for prop in model.properties() if prop.name == GATHER)


def test_machine_and_relation_see_what_the_exhaustive_engine_found() -> None:
    model, trace = missing_key()
    assert machine_says(model, gather(model), trace) == ""
    assert relation_says(model.world, trace) == ""


def test_the_machine_names_the_step_that_it_takes_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    model, trace = missing_key()
    other = fixed("repaired", ITEM, anywhere=True, guard="retain", reader="any", relaxed=("A3",))
    said = machine_says(other, gather(other), trace)
    number = int(said.split(",")[0].removeprefix("step "))
    assert f"step {number}, {trace.actions[number - 1]}" in said
    assert "another state" in said
    cut = replace(trace, steps=trace.steps[:-1])
    assert machine_says(model, gather(model), cut).endswith("GATHER-AFTER-FREE holds there")
    refused = replace(trace, steps=(trace.steps[0], *trace.steps[2:]))
    assert "refused" in machine_says(model, gather(model), refused)


def test_the_relation_names_the_step_that_it_does_not_have() -> None:
    model, trace = missing_key()
    other = replace(model.world, guard=lifetime.GUARDS["confirmed"])
    said = relation_says(other, trace)
    number = int(said.split(",")[0].removeprefix("step "))
    assert said.startswith(f"step {number}, {trace.actions[number - 1]}, is no step of the proved relation: r0, item 0")
    assert "referenced is 0 in the run and 1 in the relation" in said


def test_the_relation_names_a_read_that_it_finds() -> None:
    """The last step is taken for a read of a missing key, where the worker has it."""
    model, trace = missing_key()
    before = trace.steps[-2].state
    found = replace(trace, steps=(*trace.steps[:-2], Step(trace.steps[-2].action, before), trace.steps[-1]))
    assert relation_says(model.world, found) == ""
    shelved = before._replace(shelf=("k0",), steps=tuple(step._replace(drop=()) for step in before.steps))
    found = replace(trace, steps=(Step(None, shelved), trace.steps[-1]))
    assert "in the proved relation the step finds the key of r0, item 0" in relation_says(model.world, found)


def test_a_violation_that_the_exhaustive_search_does_not_have_is_a_disagreement() -> None:
    model, trace = missing_key()
    sound = fixed("repaired", ITEM, anywhere=True, guard="retain", reader="any", relaxed=("A3",))
    kept, rows = shortened(sound, trace)
    assert kept is trace
    assert [row.verdict.value for row in rows] == ["engines disagree"]
    assert f"step {len(trace.actions)}, {trace.actions[-1]}" in rows[0].coverage
    longer = replace(trace, shortest="shrunk; not proved shortest")
    kept, rows = shortened(model, longer)
    assert (kept.shortest, rows) == ("shortest possible with these numbers", [])
    kept, rows = shortened(model, longer, states=20)
    assert kept.shortest.startswith("shrunk; not proved shortest (searched to depth ")


QUIET = [
    part
    for route in ("reset-prefix-cache", "reset-encoder-cache", "kv-load-failure", "sessions")
    for part in ("--without", route)
]


def checked(tmp_path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, dict[str, Any]]:
    status = main(["check", "--json", "--out", str(tmp_path / "out"), *options])
    return status, json.loads(capsys.readouterr().out)


def disagreements(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for row in report["results"] if row["property"] == "ENGINES-AGREE"]


@pytest.fixture
def faulty(tmp_path: Path) -> list[str]:
    (tmp_path / "fault.py").write_text(FAULT)
    return ["--fault", f"{tmp_path / 'fault.py'}:computed_stays", "--items-anywhere", "--reader", "any", *QUIET]


@pytest.mark.campaign
def test_an_arithmetic_that_only_the_model_runs_is_caught(
    faulty: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Arithmetic, "of", classmethod(lambda cls, rules: cls()))
    status, report = checked(tmp_path, capsys, *faulty, "--engine", "exhaustive", "--engine", "proof")
    assert status == 5
    told = [row["coverage"] for row in disagreements(report)]
    proved = next(text for text in told if "OUTLIVES is proved" in text)
    assert "exhaustive has a read of a missing key: step " in proved
    assert "reject(" in proved
    assert "is no step of the proved relation" in proved


@pytest.mark.campaign
def test_the_same_fault_for_every_engine_is_a_violation_and_no_disagreement(
    faulty: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, report = checked(tmp_path, capsys, *faulty, "--engine", "exhaustive", "--engine", "proof")
    assert (status, disagreements(report)) == (1, [])
    assert {row["engine"] for row in report["results"] if row["verdict"] == "violated"} == {"exhaustive"}
    assert {row["verdict"] for row in report["results"] if row["engine"] in ("proof", "tie")} == {"unknown"}


def test_a_rule_that_only_the_exhaustive_engine_runs_is_caught(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exhaustive engine's model empties the shelf at an eviction; the machine's does not."""
    plain: Callable[..., Any] = Careful.moves

    def moves(careful: Careful, state: State) -> list[tuple[Action, State | Refusal]]:
        return [
            (action, after._replace(shelf=()) if isinstance(after, State) and action.name == "evict" else after)
            for action, after in plain(careful, state)
        ]

    monkeypatch.setattr(Careful, "moves", moves)
    status, report = checked(tmp_path, capsys, "--engine", "exhaustive")
    assert status == 5
    rows = disagreements(report)
    assert rows
    assert all(row["engine"] == "exhaustive, machine" for row in rows)
    assert any("the machine's replay differs at step" in row["coverage"] and "evict" in row["coverage"] for row in rows)


def test_a_trace_that_only_the_machine_has_is_caught(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine's judge takes a sound run for a violation."""
    from outlives.invariants import machine_record

    plain = machine_record.Recorder._judge

    def judge(self: Any, properties: Any, before: Any, action: Any, after: Any) -> Any:
        prop, arose = plain(self, properties, before, action, after)
        gathers = [each for each, _ in properties if each.name == GATHER]
        return (gathers[0] if gathers and action is not None and action.name == "evict" else prop), arose

    monkeypatch.setattr(machine_record.Recorder, "_judge", judge)
    monkeypatch.setattr(machine_shrink._Shrinker, "_fails", lambda self, before, action, after: action is not None)
    status, report = checked(tmp_path, capsys, "--engine", "machine", "--cases", "40", "--property", GATHER)
    assert status == 5
    (row,) = disagreements(report)
    assert row["engine"] == "machine, exhaustive"
    assert "the exhaustive search saw" in row["coverage"]
