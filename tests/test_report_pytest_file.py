"""Generated pytest files: run by a real pytest they fail where the trace happens, and pass where it does not."""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from outlives.invariants.configuration import Configuration
from outlives.invariants.report.content import Run, explain
from outlives.invariants.report.pytest_file import pytest_file
from outlives.invariants.report.writers import NotOneTrace
from outlives.invariants.trace_file import trace_bytes
from outlives.model.scenarios import SCENARIOS
from report_cases import ACCEPT, ARRIVE, SCHEDULE, green, trace_of
from report_files import HOSTILE, ROOT, hostile, hostile_file, long_trace, recorded

CASES = (
    "chunk-end-0.17.1",  # a read of what was never encoded
    "adjacent-0.24.0",  # no progress
    "45347-roll-back-a3",  # a reader that may begin anywhere, and a guard that is not the profile's own
    "withdrawn-encode-0.33.0",  # two requests by priority
    "turns-hold-each-other-0.33.0",  # two sessions
    "failed-load-placeholders-0.33.0",  # KV blocks that failed to load
    "encoder-decoder-slots-0.33.0",  # another mode
    "45347-rejected-drafts-a3-true",  # a reader that begins where it truly stands
)
RECORDED, HOLDS = "test_the_run_goes_as_recorded", "test_the_property_holds"
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


def written(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")


def run_pytest(folder: Path, **environment: str) -> dict[tuple[str, str], tuple[str, str]]:
    """(file, test) -> how it ended, and what it said."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OUTLIVES_", "PYTEST_"))}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--junitxml=out.xml",
        "-c",
        os.devnull,
        ".",
    ]
    done = subprocess.run(
        command, cwd=folder, env={**inherited, **environment}, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    ends = {}
    for case in Xml.parse(folder / "out.xml").iter("testcase"):
        inside = next((each for each in case if each.tag in ("failure", "error", "skipped")), None)
        kind = PASSED if inside is None else {"failure": FAILED, "error": "error", "skipped": SKIPPED}[inside.tag]
        said = "" if inside is None else f"{inside.attrib.get('message', '')} {inside.text or ''}"
        ends[case.attrib["classname"].rpartition(".")[2], case.attrib["name"]] = (kind, said)
    return ends


def module(name: str) -> str:
    return "test_" + "".join(char if char.isalnum() else "_" for char in name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of all cases."""
    made = tmp_path_factory.mktemp("generated")
    written(made, {module(name): pytest_file(recorded(name)) for name in CASES})
    return made


def test_it_fails_where_it_happened_and_goes_as_recorded(folder: Path) -> None:
    ends = run_pytest(folder)
    assert len(ends) == 2 * len(CASES)
    for name in CASES:
        (violation,) = recorded(name).violations
        assert ends[module(name), RECORDED] == (PASSED, "")
        kind, said = ends[module(name), HOLDS]
        assert kind == FAILED
        assert f"{violation.property} is violated, " in said
        assert violation.why in said


def test_it_passes_on_what_is_repaired(folder: Path) -> None:
    ends = run_pytest(folder, OUTLIVES_PROFILE="repaired", OUTLIVES_GUARD="confirmed")
    assert {ends[module(name), HOLDS] for name in CASES} == {(PASSED, "")}
    assert {ends[module(name), RECORDED][0] for name in CASES} == {SKIPPED}
    assert "the values below are of profile 0.24.0" in ends[module("adjacent-0.24.0"), RECORDED][1]


def test_a_guard_that_was_chosen_is_kept_with_another_profile(folder: Path) -> None:
    ends = run_pytest(folder, OUTLIVES_PROFILE="0.24.0")
    assert ends[module("45347-roll-back-a3"), HOLDS][0] == FAILED
    assert ends[module("chunk-end-0.17.1"), HOLDS] == (PASSED, "")  # that release has a guard and a gate of its own


def test_a_value_that_is_not_as_recorded_fails(tmp_path: Path) -> None:
    text = pytest_file(recorded("adjacent-0.24.0"))
    assert text.count('"r0.status": "waiting"') == 1
    written(tmp_path, {"test_changed": text.replace('"r0.status": "waiting"', '"r0.status": "running"')})
    ends = run_pytest(tmp_path)
    assert ends["test_changed", RECORDED][0] == FAILED
    assert "step 1, arrive(request=r0)" in ends["test_changed", RECORDED][1]


def test_what_was_never_put_to_the_test_is_skipped(tmp_path: Path) -> None:
    text = pytest_file(recorded("45347-roll-back-a3"))
    head, _, tail = text.partition("STEPS = (")
    written(tmp_path, {"test_empty": f"{head}STEPS = (\n){tail.partition(chr(10) + ')')[2]}"})
    kind, said = run_pytest(tmp_path)["test_empty", HOLDS]
    assert kind == SKIPPED
    assert "never put to the test: no step at which a step read an item" in said


# --- a profile of one's own -------------------------------------------------------------------------------------------

OWN = """
from pathlib import Path
from outlives.model.profiles import PROFILES
Path(__file__).with_name("loaded").touch()
mine = PROFILES["0.17.1"]
"""


def test_a_profile_of_ones_own_is_named_and_loaded_only_by_the_test(tmp_path: Path) -> None:
    own = tmp_path / "mine.py"
    own.write_text(OWN, encoding="utf-8")
    configuration = Configuration(profile=f"{own}:mine")
    trace = trace_of(configuration.world(), SCENARIOS["chunk-end"].small, (ARRIVE, SCHEDULE, ACCEPT))
    (tmp_path / "loaded").unlink()
    violation = explain(trace, world=configuration.world(), engine="machine")
    violation = replace(violation, itf=trace_bytes(trace, configuration).decode())
    (tmp_path / "loaded").unlink(missing_ok=True)
    text = pytest_file(Run(title="t", results=(), violations=(violation,)))
    assert f'os.environ.get("OUTLIVES_PROFILE", "{own}:mine")' in text
    assert not (tmp_path / "loaded").exists()
    written(tmp_path, {"test_own": text})
    ends = run_pytest(tmp_path)
    assert (ends["test_own", RECORDED][0], ends["test_own", HOLDS][0]) == (PASSED, FAILED)
    assert (tmp_path / "loaded").exists()


# --- the file ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_lines_are_short_and_the_file_is_clean(name: str, tmp_path: Path) -> None:
    text = pytest_file(recorded(name))
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 120
    written(tmp_path, {"test_clean": text})
    ruff = [sys.executable, "-m", "ruff", "check", "--config", str(ROOT / "pyproject.toml"), "--no-cache"]
    done = subprocess.run([*ruff, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def constants(text: str) -> dict[str, ast.expr]:
    """The assignments of the file, after its shape was checked: nothing in it runs but what we wrote."""
    tree = ast.parse(text)
    kinds = [type(node) for node in tree.body]
    assert kinds == [ast.Expr, ast.Import, ast.Import, ast.ImportFrom, *[ast.Assign] * 9, *[ast.FunctionDef] * 3]
    return {node.targets[0].id: node.value for node in tree.body if isinstance(node, ast.Assign)}  # type: ignore[attr-defined]


def test_hostile_names_are_literals() -> None:
    text = pytest_file(hostile())
    assert text.isascii()
    found = constants(text)
    clean = HOSTILE.replace("\ud800", "")
    name = "".join(char for char in clean if char.isprintable())[:100]
    assert ast.literal_eval(found["PROPERTY"]) == name
    assert ast.literal_eval(found["SETUP"])[clean] == clean
    assert ast.literal_eval(found["START"]) == {"a": clean, clean: (clean, 1)}
    options = ast.literal_eval(found["OPTIONS"])
    assert options == {"relax": [clean], "reader": clean, "without": [clean], "fault": clean}
    assert isinstance(found["PROFILE"], ast.Call)
    assert ast.literal_eval(found["PROFILE"].args[1]) == clean
    steps = found["STEPS"]
    assert isinstance(steps, ast.Tuple)
    assert [_evaluated(each) for each in steps.elts] == [
        ((name, ((name, name), ("count", 1))), {"a.inner": clean, "a": None}),
        (("accept", (("class", 1),)), name),
    ]


def _evaluated(step: ast.expr) -> Any:
    """The step, its call of `Action` taken for its arguments."""
    assert isinstance(step, ast.Tuple)
    call, expected = step.elts
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Name)
    assert call.func.id == "Action"
    return tuple(map(ast.literal_eval, call.args)), ast.literal_eval(expected)


@pytest.mark.parametrize("text", ['"""', "'''", "\\", '\\"""', '"', "{more}", "\n\nimport os\n", "%s"])
def test_nothing_ends_the_head(text: str) -> None:
    (violation,) = hostile().violations
    story = replace(violation.story, headline=f"x {text}")
    constants(pytest_file(Run(title="t", results=(), violations=(replace(violation, story=story),))))


def test_a_run_without_a_trace_of_ours_is_refused() -> None:
    with pytest.raises(NotOneTrace, match="this run has none"):
        pytest_file(green())
    with pytest.raises(NotOneTrace, match="has 2: BELOW-LIMIT, BELOW-LIMIT"):
        pytest_file(Run(title="t", results=(), violations=(long_trace(1),) * 2))
    with pytest.raises(NotOneTrace, match="none was kept of BELOW-LIMIT"):
        pytest_file(Run(title="t", results=(), violations=(long_trace(1),)))
    root = json.loads(hostile_file("x"))
    del root["#meta"]["profile"]
    with pytest.raises(NotOneTrace, match="names no profile"):
        pytest_file(Run(title="t", results=(), violations=(replace(long_trace(1), itf=json.dumps(root)),)))
