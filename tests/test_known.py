"""`--known`: what a fingerprint keeps and what it drops, the file, and what a run adds up to with it."""

import json
import re
from pathlib import Path

import pytest
from command_runs import Run, runner
from outlives.invariants.known import Fingerprint, Known, fingerprint_of, read_known, skipping
from outlives.invariants.verdict import Step, Trace
from outlives.model.contract import Action, Property
from outlives.model.errors import BadUserFile
from trace_samples import miss_trace

CHUNK_END = ("check", "--profile", "0.17.1", "--scenario", "chunk-end", "--engine", "machine", "--settings", "quick")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(capsys)


def _print(name: str, action: Action | None, why: str, **shrink: int) -> Fingerprint:
    state = miss_trace()[0].steps[0].state
    return fingerprint_of(Trace(steps=(Step(None, state), Step(action, state)), property=name, why=why, shrink=shrink))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2 free + 0 of entries are not 1 slots", "13 free + 1,004 of entries are not -2 slots"),
        ("r0 gets no token; item0 [0,1) needs 1 slots", "r2 gets no token; item11 [10,41) needs 7 slots"),
        ("k0 is held; k1 is held", "k3 is held"),
        ("r0 is stuck; item0 is held; item1 needs room", "r0 is stuck; item0 needs room; item1 is held"),
        ("schedule ended in AssertionError: no (a/b.py:12 in f: assert x)",
         "schedule ended in AssertionError: no (a/b.py:99 in f: assert x)"),
    ],
)  # fmt: skip
def test_numbers_names_and_how_many_there_are_make_no_difference(one: str, other: str) -> None:
    action = Action.of("accept")
    assert _print("P", action, one) == _print("P", action, other)


@pytest.mark.parametrize(
    ("name", "action", "why"),
    [
        ("Q", Action.of("accept"), "k0 is held"),
        ("P", Action.of("abort", request="r0"), "k0 is held"),
        ("P", Action.of("accept"), "k0 is lost"),
    ],
)
def test_property_action_and_words_tell_findings_apart(name: str, action: Action, why: str) -> None:
    assert _print("P", Action.of("accept"), "k0 is held") != _print(name, action, why)


def test_the_frame_tells_exceptions_apart() -> None:
    action = Action.of("schedule")
    one = "schedule() ended in AssertionError (vllm/a.py:12 in f: assert x)"
    assert _print("P", action, one) != _print("P", action, one.replace(" in f", " in g"))


def test_an_exception_is_known_by_its_frame_whichever_action_met_it() -> None:
    why = "{} ended in AssertionError: no (vllm/a.py:12 in f: assert x)"
    one = _print("NO-EXCEPTION", Action.of("schedule"), why.format("schedule()"))
    assert one == _print("NO-EXCEPTION", Action.of("accept"), why.format("accept()"))
    assert one.rule == "AssertionError: no (vllm/a.py in f: assert x)"


def test_of_progress_the_last_action_says_nothing() -> None:
    first, second = Action.of("accept"), Action.of("schedule")
    assert _print("PROGRESS", first, "r0 is stuck", fair_from=1) == _print(
        "PROGRESS", second, "r1 is stuck", fair_from=1
    )


# --- the file ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "there is no such file"),
        (" \n", 'is empty; begin with {"format": 1, "known": []}'),
        ("{", "is not JSON: Expecting property name"),
        ("[]", "is no list of findings"),
        ('{"format": 1}', "is no list of findings"),
        ('{"format": 2, "known": []}', "is of format 2; this outlives knows 1"),
        (
            '{"format": 1, "known": [{"property": "P", "rule": 3, "class": "plain"}]}',
            "entry 1 must have property, rule",
        ),
        ('{"format": 1, "known": ["P"]}', "entry 1 must have"),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_a_file_that_is_none_is_one_sentence(run: Run, tmp_path: Path, text: str | None, says: str) -> None:
    path = tmp_path / "known.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(BadUserFile, match=re.escape(says)):
        read_known(str(path))
    said = run(*CHUNK_END, "--out", tmp_path / "out", "--known", path)
    assert said.status == 2
    assert says in " ".join(said.err.split())


# --- a run with it ----------------------------------------------------------------------------------------------------


def test_what_is_known_does_not_fail_the_run_what_is_new_does_and_what_is_gone_is_announced(
    run: Run, tmp_path: Path
) -> None:
    known = tmp_path / "known.json"
    known.write_text('{"format": 1, "known": []}')
    first = run(*CHUNK_END, "--out", tmp_path / "out", "--known", known, "--json").object
    assert first["exit_status"] == 1
    findings = Path(first["out"]) / "findings.json"
    entries = json.loads(findings.read_text())["known"]
    assert [entry["property"] for entry in entries] == ["GATHER-AFTER-FREE"]
    assert entries[0]["class"] == "scenario chunk-end"

    gone = {"property": "PROGRESS", "rule": "r is stuck", "class": "scenario chunk-end"}
    of_others = {"property": "IDLE-EXACT", "rule": "not judged in this scenario", "class": "plain"}
    known.write_text(json.dumps({"format": 1, "known": [*entries, gone, of_others]}))
    second = run(*CHUNK_END, "--out", tmp_path / "out", "--known", known, "--json").object
    assert second["exit_status"] == 0
    assert second["exit_meaning"].startswith("nothing is violated but what is known")
    assert second["violations"] == []
    assert [text.split(" (met ")[0] for text in second["known"]] == [str(Fingerprint(*entries[0].values()))]
    assert second["gone"] == ["PROGRESS [scenario chunk-end] r is stuck"]

    text = run(*CHUNK_END, "--out", tmp_path / "out", "--known", known).out
    assert "Known findings, met again" in text
    assert "Known findings, not met any more" in text


def test_without_the_option_a_run_says_nothing_of_it(run: Run, tmp_path: Path) -> None:
    said = run(*CHUNK_END, "--out", tmp_path / "out", "--json").object
    assert said["exit_status"] == 1
    assert "known" not in said


def test_the_exhaustive_engines_finding_is_known_by_the_same_entry(run: Run, tmp_path: Path) -> None:
    known = tmp_path / "known.json"
    known.write_text('{"format": 1, "known": []}')
    about = ("check", "--profile", "0.17.1", "--scenario", "chunk-end", "--engine", "exhaustive", "--out", tmp_path)
    first = run(*about, "--known", known, "--json").object
    known.write_bytes((Path(first["out"]) / "findings.json").read_bytes())
    second = run(*about, "--known", known, "--json").object
    assert (first["exit_status"], second["exit_status"]) == (1, 0)
    assert [row["verdict"] for row in second["results"] if row.get("known")] == ["violated"]


ODD: Property[int] = Property(
    name="EVEN",
    phrase="it is even",
    holds=lambda _before, _action, after: after % 2 == 0,
    explain=lambda _before, _action, after: "odd and small" if after < 10 else "odd and large",
    situation=lambda *_: True,
    situation_phrase="anything",
)


def test_a_run_goes_on_past_what_is_known_to_what_is_not() -> None:
    known = Known(path="f", findings=(Fingerprint("EVEN", "add: odd and small", "plain"),))
    seen: dict[Fingerprint, int] = {}
    (prop,) = skipping((ODD,), known, None, seen)
    add, multiply = Action.of("add", value=1), Action.of("multiply", value=3)
    assert prop.holds(2, add, 3)
    assert prop.holds(3, multiply, 9)  # it was false before
    assert not prop.holds(2, multiply, 3)
    assert not prop.holds(10, add, 11)
    assert prop.holds(3, add, 4)
    assert seen == {known.findings[0]: 1}
