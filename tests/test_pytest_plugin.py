"""The pytest plugin: its test class, marker and fixture, subtests, one summary, saved counterexamples, and mistakes."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from outlives.invariants.configuration import Configuration
from outlives.invariants.pytest_check import Row, fail_apart
from outlives.invariants.pytest_saved import saved_rows, saved_traces
from outlives.invariants.testing import lifetime_machine
from outlives.model.errors import Contradiction, UnknownName
from plugin_runs import COUNTER, FINE, STUCK, Runs, marked, pytest_runs


@pytest.fixture
def run(tmp_path: Path) -> Runs:
    return pytest_runs(tmp_path)


# --- the test class ---------------------------------------------------------------------------------------------------


def test_a_model_without_fault_passes_with_a_subtest_for_each_property(run: Runs, tmp_path: Path) -> None:
    done = run("-v", file=COUNTER.format(faulty=False))
    assert done.status == 0, done.out
    assert "1 passed, 1 subtests passed" in done.out
    assert "SUBPASSED[BELOW-LIMIT (machine)]" in done.out
    assert done.summary() == ["test_it.py::TestCounter::test_properties: CounterModel: 1 passed"]
    assert not list((tmp_path / ".outlives").rglob("*.json"))  # nothing was found, so nothing is left


def test_a_model_without_properties_is_no_success(run: Runs) -> None:
    file = (
        COUNTER.format(faulty=False)
        .replace(', properties=["BELOW-LIMIT"]', "")
        .replace("TestCounter", "CounterModel.properties = lambda self: ()\nTestCounter")
    )
    done = run("-q", file=file)
    assert done.status == 1
    assert "has no property, so nothing is asked of it" in done.out


def test_a_faulty_model_fails_with_its_trace_and_is_replayed_first_the_next_time(run: Runs, tmp_path: Path) -> None:
    done = run("-q", file=COUNTER.format(faulty=True))
    assert done.status == 1
    assert "SUBFAILED[BELOW-LIMIT (machine)] test_it.py::TestCounter::test_properties" in done.out
    assert "VIOLATED BELOW-LIMIT (machine)" in done.out
    (saved,) = saved_traces(tmp_path / ".outlives")
    assert f"{saved.relative_to(tmp_path)} (replayed first from now on)" in done.out
    again = run("-q", file=COUNTER.format(faulty=True))
    assert again.out.index("saved machine-BELOW-LIMIT.itf.json") < again.out.index("[BELOW-LIMIT (machine)]")
    assert "saved machine-BELOW-LIMIT.itf.json (BELOW-LIMIT) is violated again" in "".join(again.summary())
    repaired = run(file=COUNTER.format(faulty=False))
    assert repaired.status == 0
    assert "1 passed, 1 saved counterexample replayed" in "".join(repaired.summary())
    assert run("--outlives-no-replay", file=COUNTER.format(faulty=False)).summary()[0].endswith("1 passed")


REORDERED = """
from outlives.invariants.testing import lifetime_machine
from outlives.model.contract import Action, Refusal, Range
from toy_models import CounterModel

class Renamed(CounterModel):
    @property
    def action_table(self):
        table = {{"plus" if name == "add" else name: spans for name, spans in super().action_table.items()}}
        return {{"idle": {{}}, **dict(reversed(table.items()))}}
    def next_state(self, state, action):
        if action.name == "idle":
            return state
        return super().next_state(state, action._replace(name={{"plus": "add"}}.get(action.name, action.name)))

TestCounter = lifetime_machine(Renamed(faulty=True), properties=["BELOW-LIMIT"], renamed={renamed}, settings="quick")
"""


@pytest.mark.parametrize(("renamed", "again"), [({"add": "plus"}, True), ({}, False)])
def test_a_saved_counterexample_survives_renamed_and_reordered_rules(
    run: Runs, renamed: dict[str, str], again: bool
) -> None:
    assert run(file=COUNTER.format(faulty=True)).status == 1
    done = run(file=REORDERED.format(renamed=renamed))
    assert done.status == 1
    assert ("saved machine-BELOW-LIMIT.itf.json (BELOW-LIMIT) is violated again" in done.out) is again


def test_the_class_runs_under_unittest_too(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(COUNTER.format(faulty=True), encoding="utf-8")
    path = {"PYTHONPATH": f"{Path(__file__).parent}:{Path(sys.modules['outlives'].__path__[0]).parent}"}  # type: ignore[attr-defined]
    command = [sys.executable, "-m", "unittest", "test_it"]
    done = subprocess.run(command, cwd=tmp_path, env=path, capture_output=True, text=True, check=False)
    assert "FAIL: test_properties (test_it.LifetimeMachine" in done.stderr
    assert "[BELOW-LIMIT (machine)]" in done.stderr
    assert "FAILED (failures=1)" in done.stderr


def test_a_configuration_is_a_subject(run: Runs) -> None:
    file = """
from outlives.invariants.configuration import Configuration
from outlives.invariants.testing import lifetime_machine
TestStuck = lifetime_machine(Configuration(profile="0.24.0", scenario="gap-one"), properties=["PROGRESS"])
"""
    done = run("-q", file=file)
    assert done.status == 1
    assert "VIOLATED PROGRESS: Left alone from step" in "".join(done.summary())
    assert "outlives replay .outlives/pytest/test_it.py-TestStuck-test_properties-0001/" in done.out


@pytest.mark.parametrize("subject", [Configuration, object(), 3])
def test_what_is_no_subject_is_refused(subject: object) -> None:
    with pytest.raises(Contradiction, match="lifetime_machine takes a model"):
        lifetime_machine(subject)  # type: ignore[arg-type]


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(UnknownName, match="unknown settings 'fast'"):
        lifetime_machine(Configuration(), settings="fast")


# --- the marker and the fixture ---------------------------------------------------------------------------------------


def test_a_marked_test_fails_by_property(run: Runs) -> None:
    done = run("-q", file=marked(STUCK))
    assert done.status == 1
    assert "SUBFAILED[PROGRESS (exhaustive)] test_it.py::test_marked" in done.out
    assert "VIOLATED PROGRESS (exhaustive)" in done.out
    assert "1 subtests passed" in done.out
    assert "All traceback entries are hidden" not in done.out
    assert len(done.summary()) == 3


def test_a_marked_test_passes_and_runs_its_body(run: Runs) -> None:
    assert run(file=marked(FINE)).status == 0
    done = run("-q", file=marked(FINE, body="assert 1 == 2"))
    assert done.status == 1
    assert "assert 1 == 2" in done.out


def test_the_fixture_hands_over_the_answers_and_asserts_nothing_by_itself(run: Runs) -> None:
    body = 'assert outlives.violated == {"PROGRESS"}; assert outlives.verdict("GATHER-AFTER-FREE") == "exhausted"'
    done = run(file=marked(STUCK, "outlives", body))
    assert done.status == 0, done.out
    assert "VIOLATED PROGRESS" in "".join(done.summary())
    assert run("-q", file=marked(STUCK, "outlives", "outlives.check()")).status == 1
    assert "Known: GATHER" in run(file=marked(STUCK, "outlives", 'outlives.verdict("PRGRESS")')).out


def test_a_proof_has_a_subtest_for_each_obligation(run: Runs) -> None:
    done = run(
        "-q", "--outlives-settings", "quick", file=marked('guard="optimistic-at-output", relax="A3", engines="proof"')
    )
    assert done.status == 1
    failed = re.findall(r"SUBFAILED\[obligation (\S+) / ", done.out)
    assert "COVERAGE" in failed
    passed = re.search(r"(\d+) subtests passed", done.out)
    assert passed is not None
    assert int(passed[1]) > 50


def test_the_pages_marked_tests_are_as_it_says(run: Runs) -> None:
    page = (Path(__file__).resolve().parent.parent / "docs/pytest.md").read_text(encoding="utf-8")
    shown = [block for block in re.findall(r"^```python\n(.*?)^```", page, re.M | re.S) if "mark.outlives" in block]
    done = run(file="".join(shown))
    assert done.status == 0, done.out
    assert "2 passed" in done.out


def test_assume_names_the_assumptions_that_hold(run: Runs) -> None:
    body = 'assert outlives.asked.configuration.relaxed == {"A3"}'
    assert run(file=marked('assume="A1,A2,A4"', "outlives", body)).status == 0
    assert run(file=marked('assume=("A1", "A2", "A4")', "outlives", body)).status == 0


def test_options_win_over_ini_values_and_markers_over_both(run: Runs, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\noutlives_profile = 0.27.0\noutlives_seed = 7\n", encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text('[tool.outlives]\nguard = "retain"\nseed = 3\n', encoding="utf-8")
    seen = (
        'asked = outlives.asked; assert asked.configuration.profile == "{}"; assert asked.values["seed"] == {}; '
        'assert asked.configuration.guard == "retain"'
    )
    assert run(file=marked("", "outlives", seen.format("0.27.0", 7))).status == 0
    assert run("--outlives-seed", "9", file=marked("", "outlives", seen.format("0.27.0", 9))).status == 0
    done = run("--outlives-profile", "0.28.0", file=marked("", "outlives", seen.format("0.28.0", 7)))
    assert done.status == 0, done.out
    done = run("--outlives-profile", "0.28.0", file=marked('profile="0.32.0"', "outlives", seen.format("0.32.0", 7)))
    assert done.status == 0, done.out


def test_counterexamples_of_the_command_are_replayed_by_a_test_of_the_same_scheduler(tmp_path: Path) -> None:
    from outlives.invariants.command import main

    assert (
        main(
            ["check", "--profile", "0.24.0", "--scenario", "gap-one", "--engine", "exhaustive", "--out", str(tmp_path)]
        )
        == 1
    )
    rows, replayed = saved_rows(tmp_path, Configuration(profile="0.24.0", scenario="gap-one"))
    assert (len(rows), replayed) == (1, 1)
    assert "VIOLATED PROGRESS" in rows[0].wrong
    for other in (Configuration(profile="0.33.0", scenario="gap-one"), Configuration(profile="0.24.0")):
        assert saved_rows(tmp_path, other) == ([], 0)


# --- around it --------------------------------------------------------------------------------------------------------


def test_workers_of_xdist_tell_the_same(run: Runs, tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    both = COUNTER.format(faulty=True) + marked(STUCK)
    alone = run("-q", file=both)
    for file in saved_traces(tmp_path / ".outlives"):
        file.unlink()
    done = run("-q", "-n", "2", "--outlives-report", "out", "--outlives-formats", "itf", file=both)
    assert done.status == 1

    def plain(lines: list[str]) -> list[str]:
        return [re.sub(r"-000\d", "", line) for line in lines if not line.startswith("reports: ")]

    assert plain(done.summary()) == plain(alone.summary())
    assert len(list((tmp_path / "out" / "pytest-0001").glob("*.itf.json"))) == 2
    assert not (tmp_path / "out" / "pytest-0002").exists()


def test_reports_of_each_test_go_into_a_new_folder_in_every_format_of_a_run(run: Runs, tmp_path: Path) -> None:
    done = run("--outlives-report", "out", file=marked(STUCK))
    folder = tmp_path / "out/pytest-0001"
    assert {path.name for path in folder.iterdir()} == {f"test_it.py-test_marked.{end}" for end in
                                                        ("html", "md", "sarif", "xml")}  # fmt: skip
    assert "PROGRESS" in (folder / "test_it.py-test_marked.md").read_text(encoding="utf-8")
    assert done.summary()[-1] == "reports: out/pytest-0001"
    run("--outlives-report", "out", "--outlives-formats", "junit,pytest", file=marked(STUCK))
    names = sorted(path.name for path in (tmp_path / "out/pytest-0002").iterdir())
    assert [name.rpartition(".")[2] for name in names] == ["py", "xml"]


def test_without_subtests_one_failure_lists_everything() -> None:
    rows = [Row("a"), Row("b", "b is wrong"), Row("c", "c is wrong")]
    with pytest.raises(pytest.fail.Exception, match="b is wrong\n\nc is wrong"):
        fail_apart(iter(rows), None)


def test_without_a_test_of_ours_nothing_is_said_or_loaded(run: Runs) -> None:
    file = """
import sys
def test_nothing():
    assert not {"z3", "outlives.invariants.check", "outlives.model.profiles"} & set(sys.modules)
"""
    done = run("-p", "no:hypothesispytest", file=file)
    assert done.status == 0, done.out
    assert "outlives ==" not in done.out


EMPTY = """
from time import process_time
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

class Empty(RuleBasedStateMachine):
    @rule()
    def nothing(self):
        pass

begun = process_time()
import outlives.invariants.pytest_plugin
loaded = process_time()
run_state_machine_as_test(Empty, settings=settings(database=None))
print(loaded - begun, process_time() - loaded)
"""


def test_loading_it_costs_a_twentieth_of_an_empty_machines_run_at_most() -> None:
    """Of each the least of three, in CPU time: other work on the machine only ever adds. The whole run of pytest is
    longer than the machine's (`tests/bench/plugin_overhead.py` compares those)."""
    printed = [subprocess.run([sys.executable, "-c", EMPTY], capture_output=True, text=True, check=True)
               for _ in range(3)]  # fmt: skip
    pairs = [tuple(map(float, each.stdout.split())) for each in printed]
    assert min(pair[0] for pair in pairs) < 0.05 * min(pair[1] for pair in pairs), pairs


def test_hypothesis_knows_the_profiles(run: Runs) -> None:
    file = """
from hypothesis import settings
def test_it():
    assert settings.default.max_examples == 20_000 and settings.default.stateful_step_count == 80
    assert settings.default.database is not None
"""
    done = run("--hypothesis-profile", "outlives-nightly", file=file, CI="true")
    assert done.status == 0, done.out


def test_observations_are_written_when_asked(run: Runs, tmp_path: Path) -> None:
    done = run("--outlives-observe", "seen", file=COUNTER.format(faulty=False))
    assert done.status == 0, done.out
    (file,) = (tmp_path / "seen").iterdir()
    assert file.read_text().count('"type": "test_case"') >= 50
    assert not (tmp_path / ".hypothesis" / "observed").exists()
