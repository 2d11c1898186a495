"""The installed vLLM under the pytest plugin: a test class over it, its subtests, its counterexamples taken first."""

import json
import os
from pathlib import Path

import pytest
from outlives.invariants.pytest_saved import saved_traces
from plugin_runs import Runs, pytest_runs

pytestmark = pytest.mark.vllm

CLASS = """
from outlives.invariants.machine_settings import machine_profile
from outlives.invariants.testing import Configuration, SubjectChoice, lifetime_machine

TestReal = lifetime_machine(
    SubjectChoice({choice}),
    configuration=Configuration({configuration}),
    settings=machine_profile("quick").changed(cases=8, shrink_replays=200),
)
"""
ODD = """
from vllm.v1.core.sched.async_scheduler import AsyncScheduler

class Odd(AsyncScheduler):
    def finish_requests(self, *arguments, **named):
        raise LookupError("nobody goes here")
"""


@pytest.fixture
def run(release, tmp_path: Path) -> Runs:
    return pytest_runs(tmp_path)


@pytest.mark.skipif("OUTLIVES_LONG" not in os.environ, reason="a minute and a half: in the long form only")
def test_the_real_scheduler_has_a_subtest_for_each_property_and_its_saved_runs_come_first(run: Runs, tmp_path: Path):
    file = CLASS.format(choice="", configuration='scenario="gap-one"')
    done = run("-v", file=file)
    assert done.status == 1, done.out
    assert "SUBFAILED[PROGRESS (machine)]" in done.out
    assert "SUBPASSED[GATHER-AFTER-FREE (machine)]" in done.out
    (line, *_) = done.summary()
    assert line.startswith("test_it.py::TestReal::test_properties: vLLM ")
    assert "scenario gap-one" in line
    assert any(path.name == "machine-PROGRESS.itf.json" for path in saved_traces(tmp_path / ".outlives"))
    again = run("-q", file=file)
    assert again.out.index("[saved machine-PROGRESS.itf.json") < again.out.index("[PROGRESS (machine)]")
    assert "saved machine-PROGRESS.itf.json (PROGRESS) is violated again" in "".join(again.summary())
    assert "--subject vllm" in "".join(again.summary())
    files = (tmp_path / ".outlives").rglob("findings.json")
    found = [each for path in files for each in json.loads(path.read_text())["known"]]
    (tmp_path / "known.json").write_text(json.dumps({"format": 1, "known": found}))
    known = run("--outlives-known", "known.json", file=file)
    assert "[saved " not in known.out, "what is known is passed over"
    assert "saved counterexample" in known.summary()[0]


def test_a_scheduler_of_ones_own_that_raises_is_a_violation_with_its_frame(run: Runs, tmp_path: Path):
    (tmp_path / "odd.py").write_text(ODD, encoding="utf-8")
    done = run("-q", file=CLASS.format(choice='scheduler_cls="odd.Odd"', configuration='policy="fcfs"'))
    assert done.status == 1
    assert "SUBFAILED[NO-EXCEPTION (machine)]" in done.out
    assert "LookupError: nobody goes here (odd.py:6 in finish_requests" in done.out


def test_a_class_that_is_not_there_fails_the_test_with_one_sentence(run: Runs):
    done = run("-q", file=CLASS.format(choice='scheduler_cls="odd.None"', configuration=""))
    assert done.status == 1
    assert "odd" in done.out
    assert "INTERNALERROR" not in done.out
