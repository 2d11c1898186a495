"""The real scheduler in a process of its own: what it prints, and how it takes the process down, spares the report."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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
    assert rows["PROGRESS"]["verdict"] == "violated"  # found before it
    assert Path(tmp_path, said["violations"][0]["files"][0]).is_file(), said["violations"][0]["files"]
