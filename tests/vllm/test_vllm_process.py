"""The real scheduler in a process of its own: what it prints, and how it takes the process down, spares the report."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from outlives.invariants.subject.guard import OUTSIDE, last_frame

pytestmark = pytest.mark.vllm

HERE = Path(__file__).parent


def run(folder: Path, name: str) -> tuple[int, dict[str, Any], str]:
    """A quick check of a class of `odd_schedulers` through the console: status, the object, standard error."""
    paths = [os.environ.get("OUTLIVES_VLLM", ""), str(HERE), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", "outlives.invariants.command", "check", "--subject", "vllm", "--settings", "quick",
         "--json", "--scheduler-cls", f"odd_schedulers.{name}"],
        cwd=folder, env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.stdout.startswith("{"), done.stderr[-2000:]
    return done.returncode, json.loads(done.stdout), done.stderr


def test_what_a_scheduler_prints_goes_to_standard_error(release, tmp_path):
    status, said, err = run(tmp_path, "Talks")
    assert status in (1, 4)
    assert said["subject"]["vllm"] == release.version
    assert "NOISE" in err


@pytest.mark.parametrize(
    ("name", "why"),
    [("HangsForGood", "an action did not come back: it hung"), ("Crashes", "Segmentation fault")],
)
def test_a_scheduler_that_ends_the_process_is_a_violation_and_findings_are_kept(release, tmp_path, name, why):
    status, said, _ = run(tmp_path, name)
    assert status == 1
    rows = {row["property"]: row for row in said["results"]}
    assert rows["NO-EXCEPTION"]["verdict"] == "violated"
    assert why in rows["NO-EXCEPTION"]["note"]
    others = [name for name, row in rows.items() if row["verdict"] == "violated" and name != "NO-EXCEPTION"]
    assert others, rows.keys()  # found before it
    assert Path(tmp_path, said["violations"][0]["files"][0]).is_file(), said["violations"][0]["files"]


def test_time_that_passes_between_actions_is_no_hang(release, tmp_path):
    """The watchdog asks how long an action is under way; a process that was ended outside one is told apart."""
    frames = tmp_path / "frames.txt"
    work = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from outlives.invariants.subject import guard\n"
        "guard._PATIENCE, guard._Watch.bound = 1, 1.0\n"
        "with guard.guarded_process(Path(sys.argv[1])):\n"
        "    if sys.argv[2] == 'inside': guard._Watch.since = time.monotonic()\n"
        "    time.sleep(4)\n"
    )
    for where, status in (("outside", 0), ("inside", 1)):
        done = subprocess.run([sys.executable, "-c", work, str(frames), where], timeout=200, check=False)
        assert done.returncode == status, where
        assert frames.exists() == (where == "inside")
    assert last_frame(frames).startswith(OUTSIDE)  # no action is among the frames of this one
    lines = ("Thread 0x1 (most recent call first):", 'File "a.py", line 1 in odd', 'File "/x/guard.py", line 2 in take')
    frames.write_text("\n".join(lines))
    assert last_frame(frames) == 'it hung; File "a.py", line 1 in odd'
