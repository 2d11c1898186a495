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
from outlives.model import lifetime
from outlives.model.fault import Fault, one_request
from outlives.model.world import Rules
class Empty(Rules):
    pass
class Arity(Rules):
    @staticmethod
    def preempt(c):
        return c
class Leaves(Rules):
    @staticmethod
    def preempt(c, isolate):
        raise SystemExit(3)
class TurnKeeps(Rules):
    @staticmethod
    def end_turn(c, settle):
        return lifetime.end_turn(c, settle)._replace(computed=c.computed)
class Index(Rules):
    @staticmethod
    def preempt(c, isolate):
        return lifetime.preempt(c, [isolate, isolate][c.placeholders > 0])
def keep(c, isolate):
    return lifetime.preempt(c, isolate)._replace(placeholders=min(1, c.placeholders))
told = dict(name="keeps", phrase="one promise is kept", breaks="PLACEHOLDERS-KEPT", rules={"preempt": keep})
misstated = Fault(scope=one_request(prompt=1, outputs=2, depth=2), actions=7, **told)
unseen = Fault(scope=one_request(prompt=1, outputs=1, depth=1), actions=5, **told)
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


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("broken", "the model's fair run raised "),
        ("Arity", "Arity.preempt() takes 1 positional argument but 2 were given"),
        ("Leaves", "mine.py, line 20: the run was ended by what a rule did there: SystemExit: 3."),
    ],
)
def test_rules_that_do_not_work_are_not_found(run: Run, tmp_path: Path, name: str, what: str) -> None:
    (tmp_path / "mine.py").write_text(HARMLESS)
    two = chosen("cut-stops-short", f"mine.py:{name}")
    done = run("faults", *two, "--engine", "exhaustive", "--engine", "proof", "--workers", "1", "--json")
    assert done.status == 2
    answers = {(each["fault"], each["engine"]): each for each in done.object["fault-answers"]["answers"]}
    assert answers["cut-stops-short", "exhaustive"]["found"], "the others' answers are there"
    assert not answers[f"mine.py:{name}", "exhaustive"]["found"]
    assert what in answers[f"mine.py:{name}", "exhaustive"]["broken"]
    assert "1 of 2 faults are found by at least one engine." in done.object["notes"]
    begin = f"Rules that do not work, so that nothing was found out about mine.py:{name}: "
    assert any(line.startswith(begin) for line in done.object["notes"])


def test_the_proof_alone_is_asked_only_of_what_it_runs(run: Run) -> None:
    done = run("faults", *chosen("cut-stops-short"), "--engine", "proof", "--json")
    assert done.status == 4
    assert done.object["fault-answers"]["answers"] == []
    assert "0 of 1 faults are found by at least one engine." in done.object["notes"]
    assert "The proof runs nothing of cut-stops-short: ask another engine as well." in done.object["notes"]


def test_the_proof_names_the_obligation_that_fails(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(HARMLESS)
    three = chosen("plug-in-asks-placeholders", "mine.py:TurnKeeps", "free-waits-for-look-ahead", "mine.py:Index")
    done = run("faults", *three, "--engine", "proof", "--workers", "1", "--json")
    answers = {each["fault"]: each for each in done.object["fault-answers"]["answers"]}
    found = {name: each["property"] for name, each in answers.items() if each["found"]}
    assert found == {
        "plug-in-asks-placeholders": "UPKEEP / stale-output",
        "mine.py:TurnKeeps": "KNOWN-AHEAD / turn-end",
    }
    assert answers["free-waits-for-look-ahead"]["looked"] == "proved"
    assert answers["mine.py:Index"]["looked"] == "not symbolic"
    assert not answers["mine.py:Index"]["complete"]
    assert done.status == 1, "survivors"


def test_what_a_fault_says_of_itself_is_checked(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(HARMLESS)
    done = run("faults", *chosen("mine.py:misstated"), "--engine", "exhaustive", "--json")
    assert done.status == 1
    said = "Stated otherwise: mine.py:misstated says that it shows in 7 actions, and it does in 5."
    assert said in done.object["notes"]
    done = run("faults", *chosen("mine.py:unseen"), "--engine", "exhaustive", "--json")
    assert done.status == 1
    said = "Survivor: no engine finds mine.py:unseen, the exhaustive one in the scope that it states alone."
    assert said in done.object["notes"]


def test_two_files_may_have_a_fault_of_one_name(run: Run, tmp_path: Path) -> None:
    text = OWN.read_text()
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "own.py").write_text(text)
    done = run("faults", *chosen("a/own.py:SlowReset", "b/own.py:SlowReset"), "--engine", "exhaustive")
    assert done.status == 0
    names = sorted(path.name for path in tmp_path.rglob("*.itf.json"))
    assert len(names) == 2
    assert [name.startswith("SlowReset-") for name in names] == [True, True]
    assert sum("-2." in name for name in names) == 1
    assert "SlowReset   -     COUNTERS-SOUND" in done.out, "what is violated, where none is stated"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--fault", "cut-stop-short"), "cut-stops-short"),
        (("--fault", "mine.py:number"), "not a function"),
        (("--fault", "mine.py:Empty"), "replaces no rule"),
        (("--engine", "prof"), "proof"),
        (("--seeds", "0"), "--seeds"),
        (("--list", "--seeds", "2"), "--list runs nothing; drop --fault, --engine, --seeds"),
        (("--mutants", "--settings", "quick"), "drop --fault, --engine, --settings and --seeds"),
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
    assert [row["breaks"] for row in tables["scopes"]["rows"]] == [fault.breaks for fault in FAULTS.values()]
    assert [row["change"] for row in tables["negatives"]["rows"]] == list(NEGATIVES)
    assert [row["row"] for row in tables["not-covered"]["rows"]] == [str(row) for row in NOT_COVERED]
