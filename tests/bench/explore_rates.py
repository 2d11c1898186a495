"""The exhaustive engine beside SPIN on the benchmark protocol P: counts, CPU seconds, rates, memory, ratios.

Run by hand: `python tests/bench/explore_rates.py [s2 s3 large]`. SPIN and gcc are used where they are installed;
TLC's figures are those of an earlier measurement with two workers, on another run of a two-core machine. Every figure
is CPU seconds (user + system) of a process of its own, Python's start included.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
OURS = """
import resource, sys
sys.path.insert(0, {tests!r})
from outlives.invariants.explore import {search}
from protocol_p import LARGE, SCOPES, ProtocolP
found = {search}(ProtocolP(LARGE if {scope!r} == "large" else SCOPES[{scope!r}]))
print(found.states, found.transitions, found.depth, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
FIRST = """
import sys
sys.path.insert(0, {tests!r})
from outlives.invariants.explore import shortest
from protocol_p import SCOPES, ProtocolP
found = shortest(ProtocolP(SCOPES[{scope!r}]), "GATHER")
print(len(found.trace.actions), found.badge)
"""
DEFINES = {"s2": (3, 2, 1, 2), "s3": (3, 3, 2, 2), "large": (3, 3, 2, 3)}
"""Scope -> requests, outputs, drafts, depth."""
TLC_SECONDS = {"s2": 20.0, "s3": 33.5, "large": 351.0}


class Run(NamedTuple):
    """One process: CPU seconds and what it printed."""

    seconds: float
    text: str


def timed(command: list[str], folder: str) -> Run:
    """Run a command in a folder; CPU seconds are its own and its children's."""
    before = os.times()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    return Run(seconds, done.stdout)


def ours(scope: str, search: str = "interned_search") -> Run:
    """The engine of this project on a scope."""
    script = OURS.format(tests=str(HERE.parent), scope=scope, search=search)
    return timed([sys.executable, "-c", script], ".")


def spin(scope: str, breadth: bool) -> tuple[float, Run, str]:
    """SPIN on a scope: build seconds, the run, and the states that it stored."""
    names = dict(zip("ROKD", DEFINES[scope], strict=True))
    with tempfile.TemporaryDirectory() as folder:
        defines = [f"-D{name}={value}" for name, value in names.items()] + ["-DBREADTH"] * breadth
        build = timed(["spin", "-a", *defines, str(HERE / "protocol_p.pml")], folder).seconds
        flags = ["-O2", "-w", "-DSAFETY", "-DNOREDUCE", "-DMEMLIM=4000", "-DVECTORSZ=2048"]
        build += timed(["gcc", *flags, *(["-DBFS"] if breadth else []), "-o", "pan", "pan.c"], folder).seconds
        run = timed(["./pan", "-m2000000", "-w24"], folder)
    stored = next(line.split()[0] for line in run.text.splitlines() if "states, stored" in line)
    return build, run, stored


def line(name: str, states: int, seconds: float, rest: str = "") -> None:
    """One row of the table."""
    print(f"  {name:<24} {states:>10,} states {seconds:>8.2f} s {states / seconds:>12,.0f} states/s  {rest}")


def compare(scope: str) -> None:
    """One scope, all tools."""
    run = ours(scope)
    states, transitions, depth, peak = map(int, run.text.split())
    print(f"{scope}: {states:,} states, {transitions:,} transitions, depth {depth}")
    line("outlives, by components", states, run.seconds, f"{peak * 1024 / states:,.0f} bytes/state at the peak")
    if scope == "s2":
        line("outlives, plain", states, ours(scope, "breadth_first").seconds)
    ahead = TLC_SECONDS[scope] / run.seconds
    print(f"  TLC, 2 workers (earlier): {TLC_SECONDS[scope]:.0f} s, we are {ahead:.1f} times ahead")
    if not (shutil.which("spin") and shutil.which("gcc")):
        print("  SPIN: spin or gcc is not installed here")
        return
    for breadth in (False, True):
        build, other, stored = spin(scope, breadth)
        total = build + other.seconds
        agrees = "same states" if int(stored) == states else f"OTHER STATES: {stored}"
        name = f"SPIN {'BFS' if breadth else 'DFS'} (+{build:.1f} s build)"
        line(name, int(stored), other.seconds, f"{agrees}; end to end we take {run.seconds / total:.2f} of its time")


def main() -> None:
    """The table."""
    for fault in ("r2", "t2"):
        script = FIRST.format(tests=str(HERE.parent), scope=fault)
        run = timed([sys.executable, "-c", script], ".")
        print(f"{fault}: first violation after {run.text.strip()} in {run.seconds:.2f} s from the start of the process")
    for scope in sys.argv[1:] or list(DEFINES):
        compare(scope)


if __name__ == "__main__":
    main()
