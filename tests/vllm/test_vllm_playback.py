"""Generated pytest files on the real vLLM: they fail where the trace happens there, and pass where it does not."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from outlives.invariants.playback import Playback
from outlives.invariants.replay import replay
from outlives.invariants.report.content import Run, Violation, explain
from outlives.invariants.report.pytest_file import pytest_file
from outlives.invariants.subject.live import CACHING
from outlives.invariants.subject.own import SubjectChoice
from outlives.invariants.subject_jobs import about
from outlives.invariants.subject_replay import ReplayWork, replay_job
from outlives.invariants.trace_file import trace_bytes
from report_files import recorded
from test_report_pytest_file import FAILED, HOLDS, PASSED, RECORDED, SKIPPED, module, run_pytest, written
from test_vllm_traces import FOLDER, HAPPENS

pytestmark = pytest.mark.vllm

CASES = ("adjacent-0.24.0", "chunk-end-0.17.1", "withdrawn-encode-0.33.0", "session-lost-0.32.0")


@pytest.fixture
def version(release):
    if os.environ.get("OUTLIVES_VLLM"):
        pytest.skip("a generated file is of the installed release")
    return release.version


def test_generated_files_on_the_installed_release(version, tmp_path):
    written(tmp_path, {module(name): pytest_file(recorded(name)) for name in (*CASES, "settled-a1")})
    ends = run_pytest(tmp_path, OUTLIVES_SUBJECT="vllm")
    for name in CASES:
        kind, said = ends[module(name), HOLDS]
        assert kind == (FAILED if version in HAPPENS[name] else PASSED), said
        assert ends[module(name), RECORDED][0] == SKIPPED
        assert f"this is vLLM {version}" in ends[module(name), RECORDED][1]
    assert ends[module("settled-a1"), HOLDS][0] == SKIPPED
    assert "the run relaxes A1, which a real scheduler does not" in ends[module("settled-a1"), HOLDS][1]


def _of_vllm(path: Path) -> Violation:
    """The trace as the real scheduler takes it, in a file that says so."""
    answer = replay_job(ReplayWork(choice=SubjectChoice(), path=path, given={}), lambda *_: None)
    configuration = replay(path).configuration
    assert answer.trace is not None
    assert configuration is not None
    said = about(answer.facts, SubjectChoice(), answer.caching)
    content = trace_bytes(answer.trace, configuration, about=said)
    violation = explain(answer.trace, world=configuration.world(), engine="recorded")
    return replace(violation, itf=content.decode())


def test_traces_that_were_recorded_on_vllm_go_as_recorded_there(version, tmp_path):
    """With the release's own prefix cache and without."""
    name = "adjacent-0.24.0"
    if version not in HAPPENS[name]:
        pytest.skip("it does not happen on this release")
    (path,) = FOLDER.glob(f"????-??-??-{name}.itf.json")
    root = json.loads(path.read_bytes())
    for caching in ("off", "on"):
        root["#meta"]["subject"] = {CACHING: caching}
        (tmp_path / "told.itf.json").write_text(json.dumps(root), encoding="utf-8")
        text = pytest_file(Run(title="t", results=(), violations=(_of_vllm(tmp_path / "told.itf.json"),)))
        assert 'os.environ.get("OUTLIVES_SUBJECT", "vllm")' in text
        assert f'RECORDED_ON = "vLLM {version}"' in text
        assert ("prefix_caching=True," in text) == (caching == "on")
        written(tmp_path, {f"test_recorded_{caching}": text})
    ends = run_pytest(tmp_path)
    for caching in ("off", "on"):
        assert ends[f"test_recorded_{caching}", RECORDED] == (PASSED, "")
        assert ends[f"test_recorded_{caching}", HOLDS][0] == FAILED


@pytest.mark.parametrize("caching", [False, True])
def test_the_prefix_cache_is_the_release_s_own_where_it_was(version, caching):
    (path,) = FOLDER.glob("????-??-??-adjacent-0.24.0.itf.json")
    setup = json.loads(path.read_bytes())["#meta"]["setup"]
    run = Playback(property="PROGRESS", setup=setup, profile="0.24.0", subject="vllm", prefix_caching=caching)
    assert run.title == f"vLLM {version}"
    assert run._states[0].caching is caching
