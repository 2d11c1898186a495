"""The command line around the real scheduler: what it says of a release, of a scheduler of one's own, of a trace.

Most commands work in this process here, where vLLM is loaded already; what only a process of its own can show is in
`test_vllm_process`.
"""

import json
from pathlib import Path

import pytest
from command_runs import Run, runner
from outlives.invariants import subject_run
from outlives.invariants.subject.guard import guarded_process
from outlives.invariants.workers import ordered

pytestmark = pytest.mark.vllm

REGRESSIONS = Path(__file__).parent.parent / "regressions"
CHECK = ("check", "--subject", "vllm", "--settings", "quick", "--json")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, release, tmp_path: Path) -> Run:
    def here(jobs, workers, advance, *, apart):
        assert apart
        return ordered(jobs, workers, advance)

    monkeypatch.setattr(subject_run, "ordered", here)
    monkeypatch.chdir(tmp_path)
    return runner(capsys)


def _rows(said) -> dict[str, str]:
    return {row["property"]: row["verdict"] for row in said["results"]}


# --- check ------------------------------------------------------------------------------------------------------------


def test_check_says_which_release_which_profile_and_what_is_not_observed(run, release):
    said = run(*CHECK).object
    assert said["subject"]["vllm"] == release.version
    assert said["subject"]["profile"] == release.profile
    assert said["title"].startswith(f"vLLM {release.version} (AsyncScheduler, Scheduler), read as profile")
    assert "which is of this release" in said["title"] or "the nearest earlier one" in said["title"]
    assert any("the worker: its place is taken by a twin" in text for text in said["not_covered"])
    assert any(text.startswith("RELEASE-ONCE") for text in said["not_covered"])
    assert said["provenance"]["actions fired"]["schedule"] > 100
    assert "NO-EXCEPTION" in _rows(said)


def test_what_is_found_is_written_and_replays_on_both(run, release):
    said = run(*CHECK).object
    assert said["exit_status"] == 1
    assert _rows(said)["PROGRESS"] == "violated"
    violation = next(each for each in said["violations"] if each["property"] == "PROGRESS")
    (path,) = violation["files"]
    assert violation["replay"] == f"outlives replay {path} --subject vllm"
    meta = json.loads(Path(path).read_text())["#meta"]
    assert meta["subject"]["vllm"] == release.version
    again = run("replay", path, "--subject", "vllm", "--json").object
    assert (again["exit_status"], again["replay"]["label"]) == (1, "reproduced")
    on_model = run("replay", path)
    assert on_model.status == 1
    assert "violated again" in on_model.out


def test_one_run_lists_what_is_open_and_the_next_passes_over_it(run, release):
    """Behind a finding another may lie: the run looks on until nothing new shows, as the next one confirms."""
    Path("known.json").write_text('{"format": 1, "known": []}')
    first = run(*CHECK, "--known", "known.json").object
    assert first["exit_status"] == 1
    entries = json.loads((Path(first["out"]) / "findings.json").read_text())["known"]
    of_progress = [row for row in first["results"] if row["property"] == "PROGRESS"]
    if release.version in ("0.24.0", "0.32.0"):  # so short a run meets more than one of one property there
        assert len(of_progress) > 1
        assert of_progress[-1]["note"].startswith("round ")
        assert len(entries) > len({entry["property"] for entry in entries})
    assert len({name for each in first["violations"] for name in each["files"]}) == len(first["violations"])
    Path("known.json").write_text(json.dumps({"format": 1, "known": entries}))
    second = run(*CHECK, "--known", "known.json").object
    assert second["exit_status"] in (0, 4)  # 4: so short a run meets not every route
    assert second["violations"] == []
    assert second["provenance"]["the machine"]["rounds"] == 1
    met = json.loads((Path(second["out"]) / "findings.json").read_text())["known"]
    assert all(entry in entries for entry in met)


def test_without_a_list_the_report_says_how_to_make_one(run):
    said = run(*CHECK).object
    assert any("--known" in text and '{"format": 1, "known": []}' in text for text in said["not_covered"])
    assert said["provenance"]["the machine"]["rounds"] == 1


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--relax", "A1"), "a relaxed assumption is for the model"),
        (("--guard", "settled"), "a guard of one's own is for the model"),
        (("--engine", "proof"), "no engine but the machine"),
        (("--scheduler-cls", "Plain"), "write it as package.module.Class"),
        (("--scheduler-cls", "no_such_package.Plain"), "there is no module 'no_such_package'"),
        (("--scheduler-cls", "odd_schedulers.Missing"), "odd_schedulers has no 'Missing'. Its classes: Asserts"),
        (("--scheduler-cls", "odd_schedulers.NUMBER"), "is int, not a class"),
        (("--scheduler-cls", "odd_schedulers.NoScheduler"), "is no scheduler: it has no add_request, update_from"),
        (("--scheduler-cls", "odd_schedulers.CannotBeMade"), "cannot be made or read here: ValueError: not today"),
        (("--scheduler-cls", "odd_schedulers.Plain", "--synchronous"), "is an AsyncScheduler. Drop the option"),
        (("--vllm-config", "none.py:make"), "there is no file none.py"),
        (("--known", "none.json"), "there is no such file"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(run, more, says):
    said = run("check", "--subject", "vllm", "--settings", "quick", *more)
    assert said.status == 2
    assert said.out == ""
    assert says in " ".join(said.err.split())


@pytest.mark.parametrize(
    ("name", "what", "where"),
    [
        ("Asserts", "AssertionError: one is too many", "in odd: assert not self.running"),
        ("Exits", "SystemExit: 0", "in odd: sys.exit(0)"),
        ("Hangs", "Hung: the action did not end within", "in odd: "),
    ],
)
def test_what_a_scheduler_of_ones_own_does_is_a_violation_with_its_frame(run, monkeypatch, name, what, where):
    monkeypatch.setattr("outlives.invariants.subject_jobs.BOUND", 0.5)
    said = run(*CHECK, "--scheduler-cls", f"odd_schedulers.{name}", "--property", "NO-EXCEPTION").object
    assert said["exit_status"] == 1
    (violation,) = said["violations"]
    assert what in violation["why"]
    assert "odd_schedulers.py" in violation["why"]
    assert where in violation["why"]
    assert [step["action"] for step in violation["steps"]].count("arrive") == 1
    assert len(violation["steps"]) == 4  # the initial state, one that arrives, the pass that admits it, and the next


@pytest.mark.parametrize(("name", "what"), [("ExitsAtOnce", "os._exit(0)"), ("Forks", "made a copy of the process")])
def test_a_scheduler_that_leaves_or_copies_its_process_is_a_violation(run, tmp_path, name, what):
    with guarded_process(tmp_path / "frames.txt"):
        said = run(*CHECK, "--scheduler-cls", f"odd_schedulers.{name}", "--property", "NO-EXCEPTION").object
    assert said["exit_status"] == 1
    (violation,) = said["violations"]
    assert what in violation["why"]
    assert "odd_schedulers.py" in violation["why"]
    assert not (tmp_path / "frames.txt").exists()


def test_a_class_schedules_in_its_own_way_and_the_report_says_so(run):
    said = run(*CHECK, "--scheduler-cls", "odd_schedulers.Synchronous").object
    assert said["subject"]["classes"] == {"synchronous": "odd_schedulers.Synchronous"}
    assert "other modes: plain, diffusion, encoder-decoder" in said["not_covered"]
    said = run(*CHECK, "--scheduler-cls", "odd_schedulers.Plain").object
    assert "other modes: synchronous" in said["not_covered"]


def test_the_configuration_is_made_before_the_class_is_imported(run, release):
    Path("mine.py").write_text(
        "import copy, sys\n"
        "def make():\n"
        "    assert 'late_scheduler' not in sys.modules\n"
        "    from outlives.invariants.subject.release import installed_release\n"
        "    config = copy.copy(installed_release().config)\n"
        "    config.additional_config = {'mine': 1}\n"
        "    return config\n"
        "def wrong():\n"
        "    return 3\n"
        "def raises():\n"
        "    raise OSError('no device')\n"
    )
    Path("late_scheduler.py").write_text(
        "from vllm.v1.core.sched.async_scheduler import AsyncScheduler\n"
        "class Late(AsyncScheduler):\n"
        "    def __init__(self, vllm_config, **named):\n"
        "        assert vllm_config.additional_config == {'mine': 1}\n"
        "        super().__init__(vllm_config=vllm_config, **named)\n"
    )
    said = run(*CHECK, "--vllm-config", "mine.py:make", "--scheduler-cls", "late_scheduler.Late").object
    assert not any("late_scheduler" in each["why"] for each in said["violations"])
    assert said["subject"]["classes"] == {"asynchronous": "late_scheduler.Late"}
    assert "3" not in run("check", "--subject", "vllm", "--vllm-config", "mine.py:wrong").out
    said = run("check", "--subject", "vllm", "--vllm-config", "mine.py:wrong")
    assert (said.status, said.out) == (2, "")
    assert "returned int, not a VllmConfig" in " ".join(said.err.split())
    said = run("check", "--subject", "vllm", "--vllm-config", "mine.py:raises")
    assert "line 11, raised OSError: no device" in " ".join(said.err.split())


# --- conform ----------------------------------------------------------------------------------------------------------

PLAIN_NUMBERS = ("--requests", "3", "--turns", "1", "--drafts", "0..3", "--chunk-cap", "0", "--without", "sessions")


def test_conform_prints_its_counts(run, release):
    said = run("conform", "--steps", "600", *PLAIN_NUMBERS, "--policy", "priority", "--json").object
    (row,) = said["tables"]["compared"]["rows"]
    assert row["policy"] == "priority"
    assert int(row["steps"].replace(",", "")) >= 600 or said["violations"]
    assert {"after rejection", "after in-pass preemption", "after eviction", "after resume", "after abort"} < set(row)
    (result,) = said["results"]
    assert (result["property"], result["engine"]) == ("CONFORMS", "conform priority")


def test_a_profile_of_another_release_diverges_with_a_short_trace_that_replays(run, release):
    other = "0.17.1" if release.profile != "0.17.1" else "0.33.0"
    said = run("conform", "--release-profile", other, "--steps", "20000", "--policy", "fcfs", "--json").object
    assert said["exit_status"] == 1
    (violation,) = said["violations"]
    assert len(violation["steps"]) <= 14
    assert " in the model, " in violation["why"]
    again = run("replay", violation["files"][0], "--subject", "vllm", "--json").object
    assert again["replay"]["label"] == "reproduced"
    assert run("replay", violation["files"][0]).status in (0, 1)  # the model alone conforms to itself


def test_conform_refuses_what_it_cannot_do(run):
    assert "unknown profile" in run("conform", "--release-profile", "0.0.7").err
    assert "must be from 1" in run("conform", "--steps", "0").err


# --- replay and doctor ------------------------------------------------------------------------------------------------


def test_replay_says_why_a_trace_cannot_be_asked(run):
    said = run("replay", REGRESSIONS / "2026-11-30-settled-a1.itf.json", "--subject", "vllm")
    assert said.status == 2
    assert "it relaxes A1, which a real scheduler does not" in " ".join(said.err.split())


def test_replay_says_that_a_trace_does_not_happen_here(run):
    said = run("replay", REGRESSIONS / "2026-11-30-whole-items-0.13.0.itf.json", "--subject", "vllm", "--json").object
    assert said["replay"]["label"] == "not reproduced"
    assert said["exit_status"] in (0, 1)


def test_doctor_says_what_can_be_checked(run, release):
    said = run("doctor", "--json").object
    rows = {row["what"]: row for row in said["tables"]["environment"]["rows"]}
    assert said["exit_status"] == 0
    assert rows["vllm"]["version"] == release.version
    assert release.profile in rows["vllm"]["state"]
    assert rows["vllm, asynchronous"]["used by"].endswith("AsyncScheduler")
    assert rows["vllm, prefix caching"]["state"] == "on and off, drawn for each run"
