"""The JUnit writer: what is a failure, an error, skipped and green, what each says, and that any text is XML."""

from dataclasses import replace
from itertools import combinations_with_replacement
from xml.etree import ElementTree as Xml

import pytest
from junitparser import Error, Failure, JUnitXml, Skipped
from outlives.invariants.report.clean import shown
from outlives.invariants.report.content import DataTable, Run
from outlives.invariants.report.junit import junit
from outlives.invariants.verdict import Verdict
from report_cases import chunk_end, green, row
from report_files import HOSTILE, WHOLE, hostile, long_trace

# What the schema of the xunit2 form allows: attributes and children of each element.
ALLOWED = {
    "testsuites": ({"name", "time", "tests", "failures", "errors", "disabled"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname", "id", "package"},
        {"properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), {"property"}),
    "property": ({"name", "value"}, set()),
    "testcase": ({"classname", "name", "time"}, {"skipped", "error", "failure", "system-out", "system-err"}),
    "failure": ({"message", "type"}, set()),
    "error": ({"message", "type"}, set()),
    "skipped": ({"message", "type"}, set()),
    "system-out": (set(), set()),
}


def suite(run: Run) -> Xml.Element:
    """The one suite of the file, after its shape was checked."""
    root = Xml.fromstring(junit(run).encode())
    assert root.tag == "testsuites"
    for element in root.iter():
        attributes, children = ALLOWED[element.tag]
        assert set(element.attrib) <= attributes
        assert {child.tag for child in element} <= children
    (found,) = root
    order = [child.tag for child in found]
    assert order == sorted(order, key=["properties", "testcase", "system-out"].index)
    cases = found.findall("testcase")
    assert int(found.attrib["tests"]) == len(cases)
    for kind, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        assert int(found.attrib[name]) == sum(1 for case in cases if case.find(kind) is not None)
    assert all(len(case) <= 1 and case.attrib["name"] and case.attrib["classname"] for case in cases)
    return found


def test_a_violation_is_a_failure_that_tells_its_story() -> None:
    violation = chunk_end()
    result = row(violation.property, Verdict.VIOLATED, "3 runs, 9 steps")
    (case,) = suite(Run(title="t", results=(result,), violations=(violation,))).findall("testcase")
    assert case.attrib == {"classname": "outlives.machine", "name": "GATHER-AFTER-FREE"}
    failure = case.find("failure")
    assert failure is not None
    assert failure.attrib == {"type": "violated", "message": violation.story.headline}
    assert failure.text is not None
    for sentence in (*violation.story.chain, violation.replay, "covers: 3 runs, 9 steps"):
        assert sentence in failure.text
    assert "step 3: accept(): " in failure.text


@pytest.mark.parametrize(
    ("verdict", "kind", "type_"),
    [
        (Verdict.UNKNOWN, "error", "unknown"),
        (Verdict.VACUOUS, "error", "vacuous"),
        (Verdict.DISAGREE, "error", "engines disagree"),
        (Verdict.VIOLATED, "failure", "violated"),
    ],
)
def test_nothing_but_green_is_green(verdict: Verdict, kind: str, type_: str) -> None:
    (case,) = suite(Run(title="t", results=(row("P", verdict, "c", note="why"),))).findall("testcase")
    found = case.find(kind)
    assert found is not None
    assert found.attrib["type"] == type_
    assert "why" in found.attrib["message"]
    assert found.text is not None
    assert "covers: c" in found.text


@pytest.mark.parametrize("known", ["", "P [plain] rule"])
@pytest.mark.parametrize("vacuous", [(), ("abort: never taken",)])
@pytest.mark.parametrize("verdicts", [(), *combinations_with_replacement(Verdict, 2)])
def test_a_file_without_failure_and_error_is_a_run_with_status_0(
    verdicts: tuple[Verdict, ...], vacuous: tuple[str, ...], known: str
) -> None:
    results = tuple(row("P", each, "c", known=known if each is Verdict.VIOLATED else "") for each in verdicts)
    run = Run(title="t", results=results, vacuous=vacuous, known=(known,) if known else None)
    found = suite(run)
    assert (run.status == 0) == (found.attrib["failures"] == found.attrib["errors"] == "0")


@pytest.mark.parametrize("status", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("verdicts", [(), (Verdict.VIOLATED, Verdict.UNKNOWN), (Verdict.PASSED,)])
def test_how_a_command_ended_decides(verdicts: tuple[Verdict, ...], status: int) -> None:
    """Of `outlives table` a violated cell is an answer; and a command may have nothing to judge."""
    run = Run(title="t", results=tuple(row("P", each, "c") for each in verdicts), ended_with=status)
    found = suite(run)
    assert (status == 0) == (found.attrib["failures"] == found.attrib["errors"] == "0")
    assert len(found.findall("testcase")) >= 1


def test_a_command_that_shows_tables_has_a_case_for_each() -> None:
    table = DataTable(name="profiles", title="t", columns=("a",), rows=())
    (case,) = suite(Run(title="t", results=(), tables=(table,), ended_with=0)).findall("testcase")
    assert (case.attrib["name"], len(case)) == ("profiles", 0)


def test_notes_are_told() -> None:
    assert "said besides" in (suite(replace(green(), notes=("said besides",))).findtext("system-out") or "")


def test_a_route_that_was_never_taken_is_an_error() -> None:
    found = suite(replace(green(), vacuous=("abort: never taken",)))
    (case,) = (case for case in found.findall("testcase") if case.attrib["classname"] == "outlives.routes")
    assert case.attrib["name"] == "abort: never taken"
    assert [each.attrib["type"] for each in case] == ["vacuous"]


def test_an_interrupted_run_is_an_error() -> None:
    found = suite(replace(green(), interrupted=True))
    assert found.attrib["errors"] == "1"
    assert [case.attrib["name"] for case in found.findall("testcase")][-1] == "interrupted"


def test_a_known_violation_is_skipped_and_says_so() -> None:
    (case,) = suite(Run(title="t", results=(row("P", Verdict.VIOLATED, "c", known="P [plain] rule"),))).findall(
        "testcase"
    )
    skipped = case.find("skipped")
    assert skipped is not None
    assert skipped.attrib == {"message": "known: P [plain] rule"}


def test_what_was_not_covered_and_the_provenance_are_in_it() -> None:
    found = suite(green())
    assert [each.attrib for each in found.iter("property")] == [
        {"name": "outlives", "value": "0.1.0"},
        {"name": "seed", "value": "0"},
    ]
    assert "several requests that share a key" in (found.findtext("system-out") or "")


def test_hostile_names_are_text() -> None:
    written = junit(hostile())
    assert "<script>" not in written
    names = {case.attrib["name"] for case in suite(hostile()).findall("testcase")}
    assert shown(HOSTILE) in names


def test_a_long_trace_is_cut_in_its_middle() -> None:
    (case,) = suite(Run(title="t", results=(), violations=(long_trace(2_000),))).findall("testcase")
    told = case.findtext("failure") or ""
    assert "... 1801 more steps, not shown here ..." in told
    assert "step 2000: add(amount=1): value: 1999 → 2000" in told
    assert len(told.splitlines()) < 230


@pytest.mark.parametrize("name", WHOLE)
def test_an_independent_reader_finds_the_same(name: str) -> None:
    run = WHOLE[name]()
    (read,) = JUnitXml.fromstring(junit(run).encode())
    kinds = {type(result) for case in read for result in case.result}
    assert (read.failures, read.errors, read.skipped, read.tests) == (
        sum(result.verdict is Verdict.VIOLATED for result in run.results),
        0,
        0,
        len(run.results),
    )
    assert kinds == {Failure}
    assert Error not in kinds
    assert Skipped not in kinds
