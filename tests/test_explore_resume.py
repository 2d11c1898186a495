"""A search that is killed outright at random moments, and goes on, counts what one counts that was left alone."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from outlives.model.world import ROUTES

COUNTED = ("states", "transitions", "levels", "fired", "refused", "situations", "broken", "deadlocks", "standstills")
FEW = [word for route in sorted(set(ROUTES) - {"preempt", "abort", "look-ahead"}) for word in ("--without", route)]
SCOPES = ["--scope", "chunk-end", "--scope", "tight-cache", "--budget", "3..5", *FEW]

COMMAND = """
import functools, sys
from outlives.invariants import explore_run
explore_run.ExploreRun = functools.partial(explore_run.ExploreRun, save_every=0.1)
from outlives.invariants.command import main
sys.exit(main(sys.argv[1:]))
"""


def begin(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    """`outlives explore` of these scopes, which saves itself ten times a second."""
    given = ["explore", *SCOPES, "--stats", "--json", "--out", str(folder / "out"), *arguments]
    return subprocess.Popen([sys.executable, "-c", COMMAND, *given], stdout=subprocess.PIPE, text=True)


def statistics(process: "subprocess.Popen[str]") -> Any:
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return json.loads(said)["statistics"]


def written(folder: Path) -> dict[str, int]:
    """Checkpoint -> when it was written."""
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("kept.*") if path.suffix != ".part"}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_killed_again_and_again_the_command_counts_the_same(workers: str, tmp_path: Path) -> None:
    whole = statistics(begin(tmp_path, "--workers", "1"))
    moments = random.Random(int(workers))
    kept = ("--checkpoint", str(tmp_path / "kept"), "--workers", workers)
    killed = 0
    for _ in range(3):
        process = begin(tmp_path, *kept)
        before = written(tmp_path)
        until = time.monotonic() + 60
        while written(tmp_path) == before and process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        time.sleep(moments.uniform(0.0, 0.3))
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            killed += 1
        process.communicate(timeout=60)
        time.sleep(0.3)  # its workers notice, and end
    assert killed >= 2
    assert list(tmp_path.glob("kept.*")), "there is something to go on from"
    resumed = statistics(begin(tmp_path, *kept))
    assert any(told["resumed"] > 0 for told in resumed.values())
    assert list(resumed) == list(whole)
    for scope, told in resumed.items():
        for name in COUNTED:
            assert told[name] == whole[scope][name], (scope, name)
    assert not list(tmp_path.glob("kept.*")), "a search that is over leaves none, and no half-written one"
