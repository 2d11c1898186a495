"""`outlives faults`: who finds what, survivors, negatives, faults of one's own, and what the list says."""

from pathlib import Path

import pytest
from command_runs import Run, runner
from outlives.invariants import faults_run
from outlives.model.fault_rows import NOT_COVERED
from outlives.model.faults import FAULTS, NEGATIVES

OWN = Path(__file__).parent.parent / "docs/examples/own_fault.py"
HARMLESS = """
from dataclasses import replace
def nothing(rules):
    return rules
def broken(rules):
    return replace(rules, advance=lambda c, count: 3)
number = 3
from outlives.model.world import Rules
class Empty(Rules):
    pass
"""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(capsys)


def chosen(*names: str) -> list[str]:
    return [part for name in names for part in ("--fault", name)]


def test_the_exhaustive_engine_finds_the_whole_catalogue(run: Run, tmp_path: Path) -> None:
    done = run("faults", *chosen(*FAULTS), "--engine", "exhaustive", "--workers", "1", "--json")
    assert done.status == 0
    answers = done.object["fault-answers"]["answers"]
    assert {each["fault"]: each["actions"] for each in answers} == {
        name: fault.actions for name, fault in FAULTS.items()
    }
    assert all(each["found"] and each["seconds"] < 30 for each in answers)
    traces = sorted(tmp_path.rglob("*.itf.json"))
    assert len(traces) == len(FAULTS)
    for path in traces[::6]:
        assert run("replay", str(path)).status == 1


def test_the_machine_and_a_negative(run: Run) -> None:
    done = run(
        "faults", *chosen("cut-stops-short", "frees-promised-positions"), "--engine", "machine", "--engine", "proof",
        "--settings", "quick", "--seeds", "2", "--workers", "1", "--json",
    )  # fmt: skip
    answers = done.object["fault-answers"]["answers"]
    assert [(each["fault"], each["engine"], each["seed"]) for each in answers] == [
        ("cut-stops-short", "machine", 0),
        ("cut-stops-short", "machine", 1),
        ("frees-promised-positions", "machine", 0),
        ("frees-promised-positions", "machine", 1),
        ("frees-promised-positions", "proof", 0),
    ]
    assert not any(each["found"] for each in answers if each["fault"] in NEGATIVES)
    assert [row["fault"] for row in done.object["tables"]["negatives"]["rows"]] == ["frees-promised-positions"]


def test_a_survivor_fails_the_run(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(HARMLESS)
    done = run("faults", *chosen("mine.py:nothing"), "--engine", "machine", "--settings", "quick", "--json")
    assert done.status == 1
    assert "Survivor: no engine finds mine.py:nothing." in done.object["notes"]


def test_a_negative_that_is_reported_fails_the_run(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults_run, "ask", _always_found)
    done = run("faults", *chosen("frees-promised-positions"), "--engine", "machine", "--workers", "1", "--json")
    assert done.status == 1
    assert any(line.startswith("Reported: frees-promised-positions") for line in done.object["notes"])


def _always_found(question: faults_run.Question, _tell: object) -> faults_run.Answer:
    return faults_run.Answer(name=question.name, engine=question.engine, found=True, seconds=0.1)


def test_faults_of_ones_own_go_through_the_same_machinery(run: Run) -> None:
    own = chosen(f"{OWN}:promise_survives_preemption", f"{OWN}:SlowReset")
    done = run("faults", *own, "--engine", "exhaustive", "--workers", "1", "--json")
    assert done.status == 0
    record, subclass = done.object["fault-answers"]["answers"]
    assert (record["property"], record["actions"]) == ("PLACEHOLDERS-KEPT", 5)
    assert subclass["found"]
    assert subclass["actions"] > 0


def test_rules_that_break_the_contract_are_found_as_well(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(HARMLESS)
    done = run("faults", *chosen("mine.py:broken"), "--engine", "exhaustive", "--json")
    assert done.status == 0
    (answer,) = done.object["fault-answers"]["answers"]
    assert answer["found"]
    assert answer["note"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--fault", "cut-stop-short"), "cut-stops-short"),
        (("--fault", "mine.py:number"), "not a function"),
        (("--fault", "mine.py:Empty"), "replaces no rule"),
        (("--engine", "prof"), "proof"),
        (("--seeds", "0"), "--seeds"),
        (("--every", "2"), "--every chooses among the mutants; add --mutants"),
        (("--settings", "fast"), "quick"),
    ],
)
def test_what_cannot_be_asked_is_said_before_any_work(
    options: tuple[str, ...], said: str, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(HARMLESS)
    done = run("faults", *options)
    assert done.status == 2
    assert said in done.err
    assert not (tmp_path / ".outlives").exists()


def test_the_list_has_every_fault_and_every_row(run: Run) -> None:
    tables = run("faults", "--list", "--json").object["tables"]
    assert [row["fault"] for row in tables["catalogue"]["rows"]] == list(FAULTS)
    assert [row["change"] for row in tables["negatives"]["rows"]] == list(NEGATIVES)
    assert [row["row"] for row in tables["not-covered"]["rows"]] == [str(row) for row in NOT_COVERED]
