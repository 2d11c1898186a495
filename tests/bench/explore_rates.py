"""The exhaustive engines beside SPIN on the benchmark protocol P: counts, CPU seconds, rates, memory, ratios.

Run by hand: `python tests/bench/explore_rates.py [s2 s3 large]`. SPIN and gcc are used where they are installed;
TLC's figures are those of an earlier measurement with two workers, on another run of a two-core machine. Every figure
is CPU seconds (user + system) of a process of its own, Python's start included; of the compiled search, numba's start
too; the best of three processes, because others may use the machine. Seconds of searching are by the clock, in that
same process. What compiling its loops costs, once per installation, is measured in a folder of its own, first.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
OURS = """
import resource, sys
sys.path.insert(0, {tests!r})
from outlives.invariants.explore import {search}
from protocol_p import LARGE, SCOPES, ProtocolP
found = {search}(ProtocolP(LARGE if {scope!r} == "large" else SCOPES[{scope!r}]){options})
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(found.states, found.transitions, found.depth, peak, round(found.seconds * 1000))
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


def best(run: Callable[[], Run]) -> Run:
    """The one of three that took the least."""
    return min((run() for _ in range(3)), key=lambda one: one.seconds)


def timed(command: list[str], folder: str, **variables: str) -> Run:
    """Run a command in a folder; CPU seconds are its own and its children's."""
    before = os.times()
    environment = {**os.environ, **variables}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, env=environment)
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    return Run(seconds, done.stdout)


def ours(scope: str, search: str = "interned_search", options: str = "", **variables: str) -> Run:
    """An engine of this project on a scope."""
    script = OURS.format(tests=str(HERE.parent), scope=scope, search=search, options=options)
    return best(partial(timed, [sys.executable, "-c", script], ".", **variables))


def searches(scope: str) -> dict[str, Run]:
    """The searches by components on a scope: in Python, and compiled where that is possible."""
    runs = {"by components": ours(scope, options=", compiled=False")}
    if importlib.util.find_spec("numba") is not None:
        runs["compiled"] = ours(scope, options=", compiled=True")
    return runs


def spin(scope: str, breadth: bool) -> tuple[float, Run, str]:
    """SPIN on a scope: build seconds, the run, and the states that it stored."""
    names = dict(zip("ROKD", DEFINES[scope], strict=True))
    with tempfile.TemporaryDirectory() as folder:
        defines = [f"-D{name}={value}" for name, value in names.items()] + ["-DBREADTH"] * breadth
        build = timed(["spin", "-a", *defines, str(HERE / "protocol_p.pml")], folder).seconds
        flags = ["-O2", "-w", "-DSAFETY", "-DNOREDUCE", "-DMEMLIM=4000", "-DVECTORSZ=2048"]
        build += timed(["gcc", *flags, *(["-DBFS"] if breadth else []), "-o", "pan", "pan.c"], folder).seconds
        run = best(partial(timed, ["./pan", "-m2000000", "-w24"], folder))
    stored = next(line.split()[0] for line in run.text.splitlines() if "states, stored" in line)
    return build, run, stored


def line(name: str, states: int, seconds: float, rest: str = "") -> None:
    """One row of the table."""
    print(f"  {name:<24} {states:>10,} states {seconds:>8.2f} s {states / seconds:>12,.0f} states/s  {rest}")


def compare(scope: str) -> None:
    """One scope, all tools."""
    runs = searches(scope)
    counts = {name: run.text.split()[:3] for name, run in runs.items()}
    states, transitions, depth = map(int, counts["by components"])
    print(f"{scope}: {states:,} states, {transitions:,} transitions, depth {depth}")
    for name, run in runs.items():
        peak, search = map(int, run.text.split()[3:])
        agrees = "" if counts[name] == counts["by components"] else f"; OTHER COUNTS: {' '.join(counts[name])}"
        rest = f"{peak * 1024 / states:,.0f} bytes/state at the peak, {search / 1000:.2f} s of it searching{agrees}"
        line(f"outlives, {name}", states, run.seconds, rest)
    if scope == "s2":
        line("outlives, plain", states, ours(scope, "breadth_first").seconds)
    ahead = ", ".join(f"{name} {TLC_SECONDS[scope] / run.seconds:.1f}" for name, run in runs.items())
    print(f"  TLC, 2 workers (earlier): {TLC_SECONDS[scope]:.0f} s; we are ahead by a factor of: {ahead}")
    if not (shutil.which("spin") and shutil.which("gcc")):
        print("  SPIN: spin or gcc is not installed here")
        return
    for breadth in (False, True):
        build, other, stored = spin(scope, breadth)
        total = build + other.seconds
        agrees = "same states" if int(stored) == states else f"OTHER STATES: {stored}"
        taken = ", ".join(f"{name} {run.seconds / total:.2f}" for name, run in runs.items())
        name = f"SPIN {'BFS' if breadth else 'DFS'} (+{build:.1f} s build)"
        line(name, int(stored), other.seconds, f"{agrees}; end to end we take of its time: {taken}")


def main() -> None:
    """The table."""
    for fault in ("r2", "t2"):
        script = FIRST.format(tests=str(HERE.parent), scope=fault)
        run = best(partial(timed, [sys.executable, "-c", script], "."))
        print(f"{fault}: first violation after {run.text.strip()} in {run.seconds:.2f} s from the start of the process")
    if importlib.util.find_spec("numba") is None:
        print("the compiled search: numba is not installed here")
    else:
        with tempfile.TemporaryDirectory() as folder:
            names = {"tests": str(HERE.parent), "scope": "s1", "search": "interned_search"}
            script = OURS.format(**names, options=", compiled=True")
            small = partial(timed, [sys.executable, "-c", script], ".", NUMBA_CACHE_DIR=folder)
            first, again = small().seconds, best(small).seconds
        ours("s1", options=", compiled=True")  # so that the machine code is kept
        print(f"s1 compiled: {first:.2f} s where numba has yet to compile the loops, afterwards {again:.2f} s")
    for scope in sys.argv[1:] or list(DEFINES):
        compare(scope)


if __name__ == "__main__":
    main()
