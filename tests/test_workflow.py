"""The reusable workflow and the pre-commit hook: least permissions, pinned actions, and their steps as they stand.

The tests marked `workflow` install outlives into a new environment and take a minute each; the others only read.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from outlives.invariants.annotations import annotations, main
from outlives.invariants.command import _parser
from outlives.invariants.machine_database import ARTIFACT
from workflow_steps import RunnerMachine, Stepped, read_workflow

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / ".github/workflows/outlives.yml"
WORKFLOW = read_workflow(FILE)
STEPS: list[dict[str, Any]] = [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]
HOOKS: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))

# --- read only --------------------------------------------------------------------------------------------------------


def test_nothing_may_be_written_but_by_the_job_that_runs_nothing() -> None:
    assert WORKFLOW["permissions"] == {}
    assert WORKFLOW["jobs"]["check"]["permissions"] == {"contents": "read"}
    writing = [job for job in WORKFLOW["jobs"].values() if "write" in job["permissions"].values()]
    assert len(writing) == 1
    assert writing[0]["permissions"] == {"contents": "read", "security-events": "write"}
    assert not any("run" in step for step in writing[0]["steps"])


def test_actions_are_pinned_by_commit_with_their_version_beside() -> None:
    lines = [line for line in FILE.read_text(encoding="utf-8").splitlines() if line.strip().startswith("uses:")]
    assert len(lines) == sum("uses" in step for step in STEPS)
    for line in lines:
        assert re.fullmatch(r" +uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line


def test_what_is_restored_is_saved_also_where_the_verdict_is_a_failure() -> None:
    """`actions/cache` alone saves in a step after the job, which is left out where the job failed."""
    steps = WORKFLOW["jobs"]["check"]["steps"]
    assert steps[-1]["name"] == "Verdict"
    found: dict[str, dict[str, int]] = {"restore": {}, "save": {}}
    for place, step in enumerate(steps):
        action = step.get("uses", "").partition("@")[0]
        assert action != "actions/cache"
        if action.startswith("actions/cache/"):
            found[action.rpartition("/")[2]][step["with"]["path"]] = place
    assert found["restore"].keys() == found["save"].keys()
    assert len(found["save"]) == 2
    assert all(found["restore"][path] < place < len(steps) - 1 for path, place in found["save"].items())


def test_jobs_of_one_workflow_do_not_share_artifacts() -> None:
    named = {step["with"]["name"] for step in STEPS if "artifact" in step.get("uses", "")}
    assert all(name.startswith("${{ inputs.name }}-") for name in named)
    default = WORKFLOW["on"]["workflow_call"]["inputs"]["name"]["default"]
    assert ARTIFACT in {name.replace("${{ inputs.name }}", default) for name in named}, "what `artifacts` reads"


def test_no_script_holds_an_expression() -> None:
    assert all("${{" not in step["run"] for step in STEPS if "run" in step)


def test_every_step_is_told_in_the_page_as_run_or_not() -> None:
    page = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| ([A-Z][\w ]+) \| (yes|no: [^|]+) \|", page, re.MULTILINE))
    assert told.keys() == {step["name"] for step in STEPS}
    for step in STEPS:
        assert (told[step["name"]] == "yes") is ("run" in step), step["name"]


def test_inputs_are_those_of_the_page() -> None:
    page = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in page for name in WORKFLOW["on"]["workflow_call"]["inputs"])


def test_the_hook_is_a_command_that_exists() -> None:
    (hook,) = HOOKS
    _parser().parse_args(hook["entry"].split()[1:])
    assert hook["language"] == "python"
    assert hook["pass_filenames"] is False


# --- annotations ------------------------------------------------------------------------------------------------------


def _report(*results: dict[str, Any], **configuration: str) -> dict[str, Any]:
    return {"runs": [{"results": list(results), "properties": {"configuration": configuration}}]}


def _result(name: str, text: str, level: str = "error", **more: Any) -> dict[str, Any]:
    return {"ruleId": name, "level": level, "message": {"text": text}, **more}


def test_a_failure_that_two_engines_found_is_told_once_by_the_one_with_a_trace(tmp_path: Path) -> None:
    report = _report(
        _result("PROGRESS", "machine: violated"),
        _result("PROGRESS", "r0 is stuck", codeFlows=[{}], properties={"replay": "outlives replay x"}),
        _result("IDLE-EXACT", "never tested", "warning"),
        _result("RELEASE-ONCE", "known", suppressions=[{}]),
        _result("SHELF-AGREES", "green", "none"),
    )
    assert list(annotations(report, tmp_path)) == [
        "::error title=PROGRESS::r0 is stuck%0Aoutlives replay x",
        "::warning title=IDLE-EXACT::never tested",
    ]


def test_a_users_own_file_is_named_and_a_place_below_the_folder(tmp_path: Path) -> None:
    own = _report(_result("PROGRESS", "stuck"), profile="my/own.py:mine")
    assert list(annotations(own, tmp_path)) == ["::error file=my/own.py,title=PROGRESS::stuck"]
    where = {"artifactLocation": {"uri": "model/lifetime.py"}, "region": {"startLine": 7}}
    there = _report(_result("PROGRESS", "stuck", locations=[{"physicalLocation": where}]))
    assert list(annotations(there, tmp_path)) == ["::error title=PROGRESS::stuck"]
    (tmp_path / "model").mkdir()
    (tmp_path / "model/lifetime.py").touch()
    assert list(annotations(there, tmp_path)) == ["::error file=model/lifetime.py,line=7,title=PROGRESS::stuck"]


def test_no_text_can_begin_a_command_of_its_own(tmp_path: Path) -> None:
    evil = _report(_result("A,file=x::B", "100%\r\n::set-output name=x::y\x1b[31m"), fault="a,b.py:c")
    assert list(annotations(evil, tmp_path)) == [
        "::error file=a%2Cb.py,title=A%2Cfile=x%3A%3AB::100%25%0D%0A::set-output name=x::y[31m"
    ]


@pytest.mark.parametrize("content", [None, "x", "[]", "{}", "[" * 100_000])
def test_what_is_no_report_is_one_sentence(
    content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.sarif"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    assert main([str(file)]) == 2
    assert capsys.readouterr().err.startswith(f"outlives: {file} ")


# --- run --------------------------------------------------------------------------------------------------------------


def _steps_of(machine: RunnerMachine) -> list[Stepped]:
    ran = []
    for step in WORKFLOW["jobs"]["check"]["steps"]:
        if "run" in step:
            ran.append(machine.run(step))
            if ran[-1].status:
                break
    return ran


def _inputs(**given: str) -> dict[str, str]:
    declared = WORKFLOW["on"]["workflow_call"]["inputs"]
    return {name: str(given.get(name, each.get("default", ""))) for name, each in declared.items()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository without what builds leave, for pip to build from."""
    copy = tmp_path_factory.mktemp("source") / "outlives"
    skipped = shutil.ignore_patterns(".git", "build", "*.egg-info", "__pycache__", ".outlives", ".venv", ".hypothesis")
    shutil.copytree(ROOT, copy, ignore=skipped)
    return copy


@pytest.mark.workflow
@pytest.mark.parametrize(("guard", "status"), [("confirmed", 0), ("optimistic-after-advance", 1)])
def test_the_steps_as_they_stand(built: Path, tmp_path: Path, guard: str, status: int) -> None:
    machine = RunnerMachine(
        tmp_path,
        _inputs(install=str(built), arguments="check --settings quick --engine exhaustive"),
        Path(sys.base_prefix) / "bin/python",
    )
    text = f'[tool.outlives]\nprofile = "mine.py:mine"\nscenario = "chunk-end"\nguard = "{guard}"\n'
    (machine.workspace / "pyproject.toml").write_text(text, encoding="utf-8")
    own = 'from outlives.model.profiles import profile_named\nmine = profile_named("0.17.1" if {} else "repaired")\n'
    (machine.workspace / "mine.py").write_text(own.format(bool(status)), encoding="utf-8")
    ran = {each.name: each for each in _steps_of(machine)}
    assert list(ran) == ["Install", "Check", "Summary", "Annotations", "Verdict"]
    assert all(each.status == 0 for name, each in ran.items() if name != "Verdict"), ran
    assert ran["Verdict"].status == status, ran["Check"].out
    assert "GATHER-AFTER-FREE" in machine.summary.read_text(encoding="utf-8")
    report = json.loads((machine.temporary / "outlives.sarif").read_text(encoding="utf-8"))
    assert report["version"] == "2.1.0"
    lines = ran["Annotations"].out.splitlines()
    assert [line.partition("::")[2].partition("::")[0] for line in lines] == (
        ["error file=mine.py,title=GATHER-AFTER-FREE"] if status else []
    )


@pytest.mark.workflow
def test_the_hook_runs_from_a_clone(built: Path, tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    subprocess.run([environment / "bin/pip", "install", "--quiet", "pre-commit"], check=True)
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main"]
    project = tmp_path / "project"
    project.mkdir()
    text = '[tool.outlives]\nprofile = "0.24.0"\nscenario = "gap-one"\nengine = "exhaustive"\n'
    (project / "pyproject.toml").write_text(text, encoding="utf-8")
    for folder in (built, project):
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
            subprocess.run([*git, *words], cwd=folder, check=True)
    command = [environment / "bin/pre-commit", "try-repo", str(built), "outlives", "--all-files", "--verbose"]
    home = {
        "PRE_COMMIT_HOME": str(tmp_path / "cache"),
        "PATH": f"{environment}/bin:/usr/bin:/bin",
        "HOME": str(tmp_path),
    }
    done = subprocess.run(command, cwd=project, env=home, capture_output=True, text=True, check=False)
    assert "VIOLATED PROGRESS (exhaustive)" in done.stdout, done.stdout + done.stderr
    assert "exit code: 1" in done.stdout
