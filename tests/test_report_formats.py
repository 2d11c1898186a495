"""All writers together: the table, whole reports byte for byte, the trace itself, and how long writing takes.

`OUTLIVES_UPDATE_GOLDEN=1 pytest tests/test_report_formats.py` writes the golden files anew.
"""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from time import process_time

import itf_py
import pytest
from outlives.invariants.replay import replay
from outlives.invariants.report.content import Run
from outlives.invariants.report.writers import WRITERS, NotOneTrace, write_report
from outlives.invariants.verdict import Verdict
from outlives.model.errors import UnknownName
from outlives.model.trace import parse_trace
from report_cases import green, row
from report_files import EVERY, ROOT, WHOLE, long_trace, recorded
from test_report_golden import GOLDEN, UPDATE, unknown, vacuous
from test_report_sarif import validated

FORMATS = tuple(name for name in WRITERS if name != "html")  # the page has tests of its own
GOLDEN_ENDINGS = {"markdown": ".md", "sarif": ".sarif", "junit": ".junit.xml", "pytest": ".pytest.txt"}


def without_lines(text: str) -> str:
    """Lines of our source move with every change of it."""
    return re.sub(r'"startLine": \d+', '"startLine": 0', text)


CASES: dict[str, Callable[[], str]] = {
    f"{name}{ending}": lambda name=name, form=form: write_report(WHOLE[name](), form)  # type: ignore[misc]
    for name in WHOLE
    for form, ending in GOLDEN_ENDINGS.items()
}
CASES |= {
    f"{name}{GOLDEN_ENDINGS[form]}": lambda made=made, form=form: write_report(made(), form)  # type: ignore[misc]
    for name, made in (("green", green), ("vacuous", vacuous), ("unknown", unknown))
    for form in ("markdown", "sarif", "junit")
}


@pytest.mark.parametrize("name", CASES)
def test_report_is_the_golden_one(name: str) -> None:
    text = CASES[name]()
    text = without_lines(text) if name.endswith(".sarif") else text
    path = GOLDEN / name
    if UPDATE:
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{name} changed; OUTLIVES_UPDATE_GOLDEN=1 writes it anew"


# --- the table --------------------------------------------------------------------------------------------------------


def test_each_writer_has_an_ending_and_a_phrase_of_its_own() -> None:
    assert tuple(WRITERS) == ("html", "markdown", "itf", "sarif", "junit", "pytest")
    assert all(writer.name == name and writer.ending.startswith(".") for name, writer in WRITERS.items())
    assert (
        len({writer.ending for writer in WRITERS.values()}) == len({writer.phrase for writer in WRITERS.values()}) == 6
    )


def test_an_unknown_format_lists_the_known_ones() -> None:
    with pytest.raises(UnknownName, match=r"unknown format 'pdf'.* Known: html, markdown, itf, sarif, junit, pytest\."):
        write_report(green(), "pdf")


def test_writers_are_loaded_when_they_are_asked_for() -> None:
    code = (
        "import sys, outlives.invariants.report.writers\n"
        "made = ('html', 'markdown', 'sarif', 'junit', 'pytest_file', 'mermaid')\n"
        "print([name for name in made if f'outlives.invariants.report.{name}' in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# --- the trace itself -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WHOLE)
def test_the_trace_is_the_file_and_replays(name: str) -> None:
    run = WHOLE[name]()
    text = write_report(run, "itf")
    assert text == (ROOT / run.violations[0].files[0]).read_text(encoding="utf-8")
    again = replay(parse_trace(text.encode()))
    assert again.outcome == "violated again"
    read = itf_py.trace_from_json(json.loads(text))
    assert [state.meta["action"] for state in read.states][1:] == [
        line.name for line in run.violations[0].lines if not line.fair
    ][1:]


@pytest.mark.parametrize("violations", [0, 2])
def test_of_no_trace_or_several_there_is_no_one_file(violations: int) -> None:
    run = Run(title="t", results=(), violations=(long_trace(1),) * violations)
    with pytest.raises(NotOneTrace, match="format itf is of one trace, and this run has"):
        write_report(run, "itf")


@pytest.mark.parametrize("name", EVERY)
def test_every_recorded_trace_is_written_by_every_writer(name: str) -> None:
    run = recorded(name)
    for form in FORMATS:
        assert write_report(run, form)
    ast.parse(write_report(run, "pytest"))
    assert validated(write_report(run, "sarif"))


# --- same run, same bytes, at once ------------------------------------------------------------------------------------


def test_the_same_run_gives_the_same_bytes_whatever_the_hash_seed() -> None:
    code = (
        "import sys, hashlib; sys.path.insert(0, 'tests')\n"
        "from report_files import recorded\n"
        "from outlives.invariants.report.writers import write_report\n"
        f"for form in {FORMATS!r}:\n"
        "    print(form, hashlib.sha256(write_report(recorded('withdrawn-encode-0.33.0'), form).encode()).hexdigest())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert outputs.pop().count("\n") == len(FORMATS)


def test_writing_all_formats_of_a_long_trace_takes_well_under_a_second() -> None:
    run = recorded("seed-unchanged-without-drafts")  # 17 actions
    assert len(run.violations[0].lines) >= 13
    for form in FORMATS:
        write_report(run, form)  # loaded
    began = process_time()
    for form in FORMATS:
        assert write_report(run, form)
    assert process_time() - began < 0.5


def test_every_verdict_is_written_by_every_writer_of_runs() -> None:
    rows = tuple(row("PROGRESS", verdict, "c", note=f"note of {verdict.name}") for verdict in Verdict)
    run = replace(green(), results=rows)
    for form in ("markdown", "junit", "sarif"):
        text = write_report(run, form)
        for verdict in (Verdict.VIOLATED, Verdict.UNKNOWN, Verdict.VACUOUS, Verdict.DISAGREE):
            assert f"note of {verdict.name}" in text.replace("\\_", "_"), (form, verdict)
