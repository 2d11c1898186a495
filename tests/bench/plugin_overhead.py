"""What the pytest plugin costs: CPU seconds of a pytest run over an empty machine, with and without the plugin.

`python tests/bench/plugin_overhead.py [REPEATS]` alternates the two, which other work on the machine disturbs alike,
and compares the least of each: what else runs here only ever adds. Belongs here: that measurement alone.
"""

import os
import resource
import subprocess
import sys
import tempfile
from importlib.metadata import entry_points
from pathlib import Path

EMPTY = """
from hypothesis.stateful import RuleBasedStateMachine, rule

class Empty(RuleBasedStateMachine):
    @rule()
    def nothing(self):
        pass

TestEmpty = Empty.TestCase
"""
MODULE = "outlives.invariants.pytest_plugin"


def cpu_of(arguments: list[str], folder: str) -> float:
    """CPU seconds, of user and system, of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "pytest", "-q", *arguments], cwd=folder, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measured(repeats: int) -> tuple[float, float]:
    """The least CPU seconds without and with the plugin."""
    there = any(each.name == "outlives" for each in entry_points(group="pytest11"))
    without = ["-p", "no:outlives"] if there else []
    with_it = [] if there else ["-p", MODULE]
    os.environ["PYTEST_ADDOPTS"] = "-p no:cacheprovider"
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "test_empty.py").write_text(EMPTY, encoding="utf-8")
        pairs = [(cpu_of(without, folder), cpu_of(with_it, folder)) for _ in range(repeats)]
    return min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)


if __name__ == "__main__":
    plain, loaded = measured(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
    sys.stdout.write(f"without {plain:.3f} s, with {loaded:.3f} s: {(loaded / plain - 1) * 100:+.1f} %\n")
