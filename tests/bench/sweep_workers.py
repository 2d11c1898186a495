"""What a second worker is worth: a sweep of 200 items by one worker process and by two.

`python tests/bench/sweep_workers.py [CASES]` prints the wall-clock times and their ratio, and beside them what idle
processors would make of it: the CPU seconds of everything with one worker, over those of the command and its busiest
worker with two. On a machine with other work only the second says something. Belongs here: that measurement alone.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SPEC = """
profiles = ["0.24.0", "repaired"]
scopes = [{{ scenario = "gap-one" }}]
engines = ["machine"]
settings = "quick"
cases = {cases}
seeds = "1..100"
"""
_TICK = os.sysconf("SC_CLK_TCK")


def cpu_of_tree(root: int) -> dict[int, float]:
    """CPU seconds so far of a process and of those below it."""
    parents: dict[int, int] = {}
    spent: dict[int, float] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(path.parent.name)
        parents[pid] = int(words[1])
        spent[pid] = (int(words[11]) + int(words[12])) / _TICK
    inside = {root}
    while more := {pid for pid, parent in parents.items() if parent in inside} - inside:
        inside |= more
    return {pid: spent[pid] for pid in inside if pid in spent}


def swept(workers: int, cases: int) -> tuple[float, dict[int, float], int]:
    """Seconds, CPU seconds of each process, and which of them is the command, of a sweep of 200 items."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "s.toml").write_text(SPEC.format(cases=cases), encoding="utf-8")
        command = [sys.executable, "-m", "outlives.invariants.command", "sweep", "s.toml", "--workers", str(workers)]
        begun = time.monotonic()
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            most: dict[int, float] = {}
            while process.poll() is None:
                most |= cpu_of_tree(process.pid)
                time.sleep(0.05)
            seconds = time.monotonic() - begun
        assert len(list(Path(folder).glob(".outlives/sweep-0001/items/*.json"))) == 200
    return seconds, most, process.pid


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    alone, spent_alone, _ = swept(1, number)
    both, spent_both, command_pid = swept(2, number)
    busiest = max(seconds for pid, seconds in spent_both.items() if pid != command_pid)
    path = spent_both[command_pid] + busiest
    total = sum(spent_alone.values())
    sys.stdout.write(
        f"one worker {alone:.1f} s, two {both:.1f} s: {alone / both:.2f} times as fast\n"
        f"CPU: one worker {total:.1f} s; two: the command {spent_both[command_pid]:.1f} s and its busiest worker "
        f"{busiest:.1f} s: {total / path:.2f} times\n"
    )
