"""The SARIF writer: valid by the published schema, places that are ours and stay, limits kept, names that are text."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator, FormatChecker
from outlives.invariants.properties import OF_SUBJECTS, PROPERTY_NAMES
from outlives.invariants.report.clean import shown
from outlives.invariants.report.content import Run, Violation
from outlives.invariants.report.sarif import sarif
from outlives.invariants.report.source_lines import action_place, guard_place, known_properties, property_place
from outlives.invariants.verdict import Verdict
from outlives.model.lifetime import GUARDS
from outlives.model.offers import WEIGHTS
from report_cases import chunk_end, green, row
from report_files import HOSTILE, ROOT, WHOLE, hostile, long_trace, recorded

SCHEMA = ROOT / "tests" / "data" / "sarif-schema-2.1.0.json"


@cache
def schema() -> Draft7Validator:
    return Draft7Validator(json.loads(SCHEMA.read_text(encoding="utf-8")), format_checker=FormatChecker())


def log(run: Run) -> dict[str, Any]:
    """The one run of the file, after the file was validated."""
    return validated(sarif(run))


def validated(text: str) -> dict[str, Any]:
    """The one run of the file, which has to be valid."""
    written = json.loads(text)
    errors = [f"{error.json_path}: {error.message}" for error in schema().iter_errors(written)]
    assert not errors
    assert written["version"] == "2.1.0"
    (only,) = written["runs"]
    for result in only["results"]:
        assert only["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    found: dict[str, Any] = only
    return found


def one(violation: Violation, **about: Any) -> dict[str, Any]:
    result: dict[str, Any] = log(Run(title="t", results=(), violations=(violation,), **about))["results"][0]
    return result


def flow(result: dict[str, Any]) -> list[dict[str, Any]]:
    locations: list[dict[str, Any]] = result["codeFlows"][0]["threadFlows"][0]["locations"]
    return locations


def place(location: dict[str, Any]) -> tuple[str, int]:
    physical = location["physicalLocation"]
    return physical["artifactLocation"]["uri"], physical["region"]["startLine"]


# --- places -----------------------------------------------------------------------------------------------------------


def line_of(path: str, number: int) -> str:
    return (ROOT / path).read_text(encoding="utf-8").splitlines()[number - 1]


@pytest.mark.parametrize("name", [*PROPERTY_NAMES, *OF_SUBJECTS, "CONFORMS"])
def test_a_property_has_the_place_of_its_predicate(name: str) -> None:
    found = property_place(name)
    assert found is not None
    assert found.path.startswith("invariants/")
    wanted = "lambda" if found.name == "<lambda>" else f"def {found.name}("
    assert wanted in line_of(found.path, found.line)


@pytest.mark.parametrize("name", GUARDS)
def test_a_guard_has_the_place_of_its_condition(name: str) -> None:
    found = guard_place(name)
    assert found is not None
    assert found.path == "model/lifetime.py"
    assert f"def {GUARDS[name].condition.__name__}(" in line_of(found.path, found.line)


@pytest.mark.parametrize("name", [*WEIGHTS, "execute", "speculate", "finish", "abort", "evict", "occupy"])
def test_an_action_has_the_place_of_what_the_model_does(name: str) -> None:
    found = action_place(name)
    assert found is not None
    assert f"def _{name}(" in line_of(found.path, found.line)


@pytest.mark.parametrize("name", ["", "_init__", "__class__", "omit", "x" * 10_000, "names"])
def test_a_name_of_nothing_has_no_place(name: str) -> None:
    assert action_place(name) is None
    assert property_place(name) is None
    assert guard_place(name) is None


# --- results ----------------------------------------------------------------------------------------------------------


def test_a_violation_lies_where_the_guard_let_go_and_flows_step_by_step() -> None:
    run = recorded("45347-roll-back-a3")
    (violation,) = run.violations
    result = next(each for each in log(run)["results"] if each["level"] == "error")
    guard = guard_place("optimistic-at-output")
    assert guard is not None
    assert place(result["locations"][0]) == (guard.path, guard.line)
    assert violation.story.headline in result["message"]["text"]
    steps = flow(result)
    assert [each["location"]["message"]["text"].partition(":")[0].rstrip(".") for each in steps[:3]] == [
        "Step 0, initial state",
        "Step 1, arrive(request=r0)",
        "Step 2, schedule()",
    ]
    assert len(steps) == len(violation.lines)
    assert "3 <= 3; confirmed is 3 - 1 = 2" in steps[4]["location"]["message"]["text"]
    assert [each["kinds"] for each in steps].index(["release"]) == 4
    assert "was released" not in result["relatedLocations"][0]["message"]["text"]
    assert result["relatedLocations"][0]["message"]["text"].startswith("Step 4. Step 4, accept(), released it for r0")
    accept = action_place("accept")
    assert accept is not None
    assert place(steps[4]["location"]) == (accept.path, accept.line)


def test_without_a_release_it_lies_at_the_predicate() -> None:
    result = one(chunk_end())
    predicate = property_place("GATHER-AFTER-FREE")
    assert predicate is not None
    assert place(result["locations"][0]) == (predicate.path, predicate.line)


@pytest.mark.parametrize(
    ("verdict", "level"),
    [
        (Verdict.VIOLATED, "error"),
        (Verdict.DISAGREE, "error"),
        (Verdict.VACUOUS, "warning"),
        (Verdict.UNKNOWN, "note"),
        (Verdict.PASSED, None),
        (Verdict.EXHAUSTED, None),
        (Verdict.PROVED, None),
    ],
)
def test_levels(verdict: Verdict, level: str | None) -> None:
    results = log(Run(title="t", results=(row("PROGRESS", verdict, "c", note="why"),)))["results"]
    assert [each["level"] for each in results] == ([] if level is None else [level])
    if level is not None:
        assert results[0]["message"]["text"] == f"PROGRESS, machine: {verdict}. It covers: c. why"


def test_a_rule_is_a_property_with_its_phrase() -> None:
    (rule,) = log(Run(title="t", results=(row("PROGRESS", Verdict.UNKNOWN, "c"),)))["tool"]["driver"]["rules"]
    prop = known_properties()["PROGRESS"]
    assert rule["id"] == "PROGRESS"
    assert (
        rule["help"]["text"] == f"It must hold that {prop.phrase}. It is put to the test when {prop.situation_phrase}."
    )


def test_a_run_says_how_it_ended_and_what_it_did_not_cover() -> None:
    (invocation,) = log(replace(green(), notes=("said besides",)))["invocations"]
    assert invocation["exitCode"] == 0
    told = [each["message"]["text"] for each in invocation["toolExecutionNotifications"]]
    assert told[0] == "note: said besides"
    assert "not covered: several requests that share a key" in told
    assert log(replace(green(), interrupted=True))["invocations"][0]["executionSuccessful"] is False


def test_a_route_that_was_never_taken_is_a_warning() -> None:
    (result,) = log(replace(green(), vacuous=("abort: never taken",)))["results"]
    assert (result["level"], result["ruleId"]) == ("warning", "ROUTE-NEVER-TAKEN")


def test_what_is_known_is_suppressed() -> None:
    (result,) = log(Run(title="t", results=(row("P", Verdict.VIOLATED, "c", known="P [plain] rule"),)))["results"]
    assert result["suppressions"][0]["justification"] == "known: P [plain] rule"


def test_a_trace_that_passes_is_no_alarm() -> None:
    result = one(replace(chunk_end(), outcome="passes"))
    assert (result["kind"], result["level"]) == ("pass", "none")


# --- fingerprints -----------------------------------------------------------------------------------------------------


def fingerprint(result: dict[str, Any]) -> str:
    found: str = result["partialFingerprints"]["primaryLocationLineHash"]
    return found


def test_a_fingerprint_keeps_what_happened_and_drops_the_numbers() -> None:
    violation = chunk_end()
    about = {"configuration": {"profile": "0.17.1"}}
    first = fingerprint(one(violation, **about))
    others = replace(violation, setup="other numbers", engine="proof", badge="shrunk", why="other words")
    assert fingerprint(one(others, **about)) == first
    assert fingerprint(one(replace(violation, lines=violation.lines[:2]), **about)) != first
    assert fingerprint(one(replace(violation, property="PROGRESS"), **about)) != first
    assert fingerprint(one(violation, configuration={"profile": "0.13.0"})) != first


# --- limits and names -------------------------------------------------------------------------------------------------


def test_a_flow_has_at_most_a_thousand_locations_and_says_what_it_leaves_out() -> None:
    steps = flow(one(long_trace(2_000)))
    texts = [each["location"]["message"]["text"] for each in steps]
    assert len(steps) == 1_000
    assert texts[500] == "1002 more steps, not shown here"
    assert (texts[499][:8], texts[501][:9], texts[-1][:9]) == ("Step 499", "Step 1502", "Step 2000")
    assert len(flow(one(long_trace(999)))) == 1_000


def test_the_file_keeps_within_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(title="t", results=(), violations=(long_trace(900),) * 3)
    assert "not shown here" not in sarif(run)
    monkeypatch.setattr("outlives.invariants.report.sarif._MOST_BYTES", 500_000)
    written = sarif(run)
    assert 100_000 < len(written) <= 500_000
    assert "more steps, not shown here" in written


def test_results_are_at_most_five_thousand() -> None:
    rows = tuple(row("PROGRESS", Verdict.UNKNOWN, str(number)) for number in range(5_010))
    found = json.loads(sarif(Run(title="t", results=rows)))["runs"][0]
    assert len(found["results"]) == 5_000
    told = [each["message"]["text"] for each in found["invocations"][0]["toolExecutionNotifications"]]
    assert told[-1] == "left out: 10 more results"


def test_hostile_names_are_text() -> None:
    written = sarif(hostile())
    assert {char for char in written if not " " <= char <= "~"} == {"\n"}
    found = log(hostile())
    clean = shown(HOSTILE, 2_000)
    messages = [each["message"]["text"] for each in found["results"]]
    # What a viewer would take for a link stands with its brackets escaped.
    assert any("\\[l\\](http://evil.example)" in message for message in messages)
    assert not any("[l](http" in message for message in messages)
    assert found["results"][0]["properties"]["setup"] == clean


@pytest.mark.parametrize("name", WHOLE)
def test_whole_reports_are_valid(name: str) -> None:
    found = log(WHOLE[name]())
    uris = {place(each["locations"][0])[0] for each in found["results"]}
    assert all((ROOT / uri).is_file() and not Path(uri).is_absolute() for uri in uris)
