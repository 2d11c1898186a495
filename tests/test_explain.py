"""`outlives explain`: everything about a saved trace, in any format; changed by hand; and of a real scheduler."""

import json
from pathlib import Path
from typing import Any

import pytest
from outlives.invariants.command import main
from outlives.invariants.explained import explain_file
from outlives.invariants.observed import observed_trace, state_of
from outlives.invariants.report.content import Run
from outlives.invariants.report.strip import Window
from outlives.invariants.report.writers import WRITERS
from outlives.invariants.run_record import provenance_of
from outlives.model.describe import describe
from outlives.model.setup import Item
from outlives.model.trace import read_trace, setup_from_plain

REGRESSIONS = Path(__file__).parent / "regressions"
GAP = REGRESSIONS / "2026-11-30-gap-one-0.24.0.itf.json"
ROLL_BACK = REGRESSIONS / "2026-11-30-45347-roll-back-a3.itf.json"


def outlives(*arguments: object) -> int:
    return main([str(each) for each in arguments])


def edited(tmp_path: Path, source: Path, change: Any) -> Path:
    """The trace with something changed by hand."""
    root = json.loads(source.read_text())
    change(root)
    path = tmp_path / source.name
    path.write_text(json.dumps(root))
    return path


def only(run: Run) -> Any:
    (violation,) = run.violations
    return violation


# --- a trace as it is -----------------------------------------------------------------------------------------------


def test_a_saved_trace_is_told_with_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert outlives("explain", ROLL_BACK) == 1
    shown = capsys.readouterr().out
    for part in (
        "was released at step 4 by guard optimistic-at-output",
        "   4   [###)%R...     item0 encoded and released; target reads [0,2)",
        "guard, r0 item0: 3 <= 3 is true",
        "violates GATHER-AFTER-FREE",
        "passes, 1 of 8 steps refused; from step 4",
        "Nearest   setup: budget 3 instead of 2 passes (every step is taken)",
        "From      outlives 0.1.0; profile repaired; guard optimistic-at-output",
        "Replay    outlives replay ",
        "1 violated. Exit status 1: a property is violated.",
    ):
        assert part in shown


def test_the_same_file_gives_the_same_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for _ in range(2):
        assert outlives("explain", ROLL_BACK) == 1
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert outlives("explain", ROLL_BACK, "--format", "itf") == 1
    assert capsys.readouterr().out == ROLL_BACK.read_text()


def test_json_has_strips_and_what_if(capsys: pytest.CaptureFixture[str]) -> None:
    assert outlives("explain", GAP, "--json") == 1
    (violation,) = json.loads(capsys.readouterr().out)["violations"]
    assert violation["strips"][1]["computed"] == 5
    assert violation["analysis"]["neighbour"] == {
        "name": "setup: look-ahead",
        "old": 1,
        "new": 0,
        "note": "every step is taken",
    }
    assert violation["provenance"]["profile"] == "0.24.0"


# --- what if --------------------------------------------------------------------------------------------------------


def test_one_number_changed_by_hand_may_mend_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Room for both items: nobody is stuck."""
    path = edited(tmp_path, GAP, lambda root: root["#meta"]["setup"].update(slots=11))
    assert outlives("explain", path) == 0
    shown = capsys.readouterr().out
    assert "PASSES PROGRESS (replay): the recorded actions, taken again" in shown
    assert "it does not go as recorded: other values (book.free: 6 in the" in shown
    assert "GATHER-AFTER-FREE: never put to the test in this run" in shown


def test_one_number_changed_by_hand_may_leave_it_as_bad(tmp_path: Path) -> None:
    path = edited(tmp_path, GAP, lambda root: root["#meta"]["setup"].update(slots=7))
    run = explain_file(path)
    assert run.status == 1
    assert only(run).outcome == "violated"
    assert "1 of 6 can be had" not in only(run).story.headline
    assert "2 of 7 can be had" in only(run).story.headline


def test_an_argument_changed_by_hand(tmp_path: Path) -> None:
    """The reader of step 8 begins at its start, where the gate had looked: nothing is missed."""

    def at_the_start(root: Any) -> None:
        root["states"][8]["#meta"]["arguments"] = {"back": 0}

    run = explain_file(edited(tmp_path, ROLL_BACK, at_the_start))
    assert (run.status, only(run).outcome) == (0, "passes")
    assert only(run).notes[0].startswith("From step 8, accept(back=0) on it does not go as recorded")


def test_a_property_that_was_never_asked_is_vacuous(tmp_path: Path) -> None:
    def only_arrives(root: Any) -> None:
        root["states"] = root["states"][:2]

    run = explain_file(edited(tmp_path, ROLL_BACK, only_arrives))
    assert run.status == 4
    assert [str(row.verdict) for row in run.results if row.property == "GATHER-AFTER-FREE"] == ["vacuous"]


# --- where a trace comes from ---------------------------------------------------------------------------------------


def test_a_run_writes_into_its_traces_what_it_covered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("check", "--profile", "0.24.0", "--scenario", "gap-one", "--engine", "exhaustive", "--out", tmp_path)
    assert outlives(*arguments) == 1
    first = (tmp_path / "check-0001" / "exhaustive-PROGRESS.itf.json").read_bytes()
    run = json.loads(first)["#meta"]["run"]
    assert run["title"] == "profile 0.24.0, guard confirmed-lookahead, A1-A4, scenario gap-one"
    assert run["seed"] == 0
    assert run["covered"][1].startswith("PROGRESS, exhaustive: violated, every state of the scope: 69 states")
    assert run["never_fired"] == []
    assert run["fired"]["schedule"] == 18
    assert outlives(*arguments) == 1
    assert (tmp_path / "check-0002" / "exhaustive-PROGRESS.itf.json").read_bytes() == first
    capsys.readouterr()
    assert outlives("explain", tmp_path / "check-0001" / "exhaustive-PROGRESS.itf.json") == 1
    assert "seed 0; never fired none: every action did" in " ".join(capsys.readouterr().out.split())


def test_provenance_shows_what_it_should_be_and_nothing_else() -> None:
    meta = {"outlives": ["x"], "profile": "0.24.0", "run": {"seed": {"a": 1}, "fired": "often"}, "relaxed": ["A1"]}
    assert provenance_of(meta) == {"profile": "0.24.0", "relaxed": "A1"}
    assert provenance_of({"run": 7}) == {}


# --- documents ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--format", "docx"), "unknown format 'docx'. Known: terminal, html, markdown, itf, sarif, junit, pytest."),
        (("--format", "itf", "--json"), "--json and --format contradict"),
        (("--format", "itf", "--format", "pytest"), "--format itf and pytest cannot both be printed: give --out DIR"),
    ],
)
def test_formats_that_do_not_go(arguments: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert outlives("explain", GAP, *arguments) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err + captured.out


def test_a_document_is_never_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("explain", GAP, "--format", "itf", "--out", tmp_path / "new")
    assert outlives(*arguments) == 1
    written = tmp_path / "new" / GAP.name
    assert capsys.readouterr().out == f"Report    {written}\n"
    assert written.read_text() == GAP.read_text()
    assert outlives(*arguments) == 2
    assert "exists already; reports are never overwritten. Name another --out." in capsys.readouterr().err


def test_a_green_run_has_no_trace_to_write(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                           monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert outlives("check", "--scenario", "gap-one", "--engine", "exhaustive", "--format", "itf") == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "this report shows no violation, so there is no trace to write as itf" in captured.err


# --- a real scheduler's ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(REGRESSIONS.glob("*.itf.json")), ids=lambda path: path.name[11:-9])
def test_states_come_back_from_their_description(path: Path) -> None:
    recorded = read_trace(path)
    setup = setup_from_plain(recorded.meta["setup"], recorded.where)
    extras: dict[int, tuple[Item, ...]] = {}
    for step in recorded.steps:
        again = describe(state_of(setup, step.values, extras))
        assert {name: again[name] for name in ("book", "steps", "shelf", "misses")} == {
            name: step.values[name] for name in ("book", "steps", "shelf", "misses")
        }


def test_what_only_a_real_scheduler_does_is_told_as_it_was_recorded(tmp_path: Path) -> None:
    """A trace of vLLM that its profile's model does not follow: its values are drawn, the model's answer is named."""

    def of_vllm(root: Any) -> None:
        root["#meta"] |= {"guard": "confirmed", "subject": {"vllm": "0.24.0"}}

    path = edited(tmp_path, ROLL_BACK, of_vllm)
    run = explain_file(path)
    told = only(run)
    assert told.outcome == "violated"
    assert told.badge == read_trace(ROLL_BACK).shortest
    assert told.notes[0] == (
        "Told from what was recorded of the real scheduler: on the model of its profile nothing is violated."
    )
    assert [(strip.step, strip.computed, strip.confirmed) for strip in told.strips][:4] == [
        (1, 0, 0),
        (2, 2, 2),
        (3, 3, 2),
        (4, 3, 2),
    ]
    assert told.strips[-1].windows == (Window("target", 2, 4, (0,)),)
    assert told.provenance["vllm"] == "0.24.0"
    assert told.replay.endswith("--subject vllm")


def test_a_description_that_is_none_is_no_trace(tmp_path: Path) -> None:
    def spoilt(root: Any) -> None:
        root["states"][1]["book"] = "full"

    assert observed_trace(read_trace(edited(tmp_path, GAP, spoilt))) is None


@pytest.mark.parametrize("path", sorted(REGRESSIONS.glob("*.itf.json")), ids=lambda path: path.name[11:-9])
def test_every_recorded_trace_has_a_report_that_fits(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """100 columns, and two screens for a trace of up to 8 steps; the first sentence has the numbers."""
    assert outlives("explain", path, "--ascii") in (0, 1)
    lines = capsys.readouterr().out.splitlines()
    files = ("Replay ", "File ")
    assert max(len(line) for line in lines if not line.startswith(files)) <= 100
    run = explain_file(path)
    taken = [step for step in only(run).lines if step.number and not step.fair]
    if len(taken) <= 8:
        assert len(lines) <= 102
    assert any(letter.isdigit() for letter in only(run).story.headline)
    assert len(only(run).analysis.counterfactuals) == 7


@pytest.mark.parametrize("name", ["html", "markdown", "sarif", "junit", "pytest"])
def test_what_a_run_filed_is_what_explain_prints_later(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Byte for byte, from the saved trace alone."""
    arguments = ("check", "--profile", "0.24.0", "--scenario", "gap-one", "--engine", "exhaustive", "--out", tmp_path)
    assert outlives(*arguments, "--format", name) == 1
    trace = tmp_path / "check-0001" / "exhaustive-PROGRESS.itf.json"
    filed = trace.with_name(f"exhaustive-PROGRESS{WRITERS[name].ending}")
    assert f"Report    {filed}\n" in capsys.readouterr().out
    whole = trace.with_name(f"report{WRITERS[name].ending}")
    assert whole.exists() is (name != "pytest")  # which is of one trace
    assert outlives("explain", trace, "--format", name) == 1
    assert capsys.readouterr().out == filed.read_text()


def test_every_command_prints_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                        monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert outlives("explore", "--scope", "two-at-once", "--format", "markdown") == 0
    assert capsys.readouterr().out.startswith("## outlives: profile repaired, guard confirmed, A1-A4")
    assert outlives("prove", "--format", "junit") == 0
    proof = capsys.readouterr().out
    assert 'name="GATHER-AFTER-FREE' in proof
    assert "<failure" not in proof


@pytest.mark.parametrize(
    "record",
    [
        {"found_length": 9, "final_length": 8, "found_actions": {"accept": "often"}},
        {"found_length": 9, "final_length": 8, "found_actions": {"accept": [1]}, "found_numbers": {"slots": [1]}},
        {"found_length": "nine", "final_length": 8, "found_actions": 7},
        {"fair_from": "soon", "found_length": None},
    ],
)
def test_a_shrink_record_that_is_none_is_left_out(record: dict[str, Any], tmp_path: Path) -> None:
    run = explain_file(edited(tmp_path, ROLL_BACK, lambda root: root["#meta"].update(shrink=record)))
    assert run.status == 1
    assert "accept" not in only(run).shrink_words()
