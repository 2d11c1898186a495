"""Sweeps on a real dask cluster on this machine: a scheduler and two workers, some of which die in the middle."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.dask
OUTLIVES = (sys.executable, "-m", "outlives.invariants.command")
DASK = (sys.executable, "-m", "dask")

SPEC = """
profiles = ["0.24.0", "repaired"]
assumptions = ["A1-A4", "A3 any"]
scopes = ["last-chunk", { scenario = "gap-one" }]
engines = ["machine"]
settings = "quick"
cases = 8
seeds = "1..8"
"""


class Cluster:
    """A scheduler and its workers, each a process group of its own."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.file = folder / "scheduler.json"
        self._log = (folder / "dask.log").open("w")
        where = ("--scheduler-file", str(self.file))
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", *where)
        self._until(self.file.exists)
        self.workers = [self._start("worker", *where, "--nthreads", "1", "--no-dashboard") for _ in range(workers)]

    def _start(self, *arguments: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [*DASK, *arguments], stdout=self._log, stderr=self._log, start_new_session=True, cwd=self.file.parent
        )

    @staticmethod
    def _until(what: "object") -> None:
        end = time.monotonic() + 60
        while not what():  # type: ignore[operator]
            assert time.monotonic() < end
            time.sleep(0.05)

    @property
    def address(self) -> str:
        """Where the scheduler listens."""
        return f"dask:{json.loads(self.file.read_text())['address']}"

    @staticmethod
    def kill(process: "subprocess.Popen[bytes]") -> None:
        """The process and its children, without a word."""
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def end(self) -> None:
        """Nobody is left."""
        for process in (*self.workers, self.scheduler):
            if process.poll() is None:
                self.kill(process)
        self._log.close()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A scheduler and two workers."""
    made = Cluster(tmp_path)
    yield made
    made.end()


def start(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    folder.mkdir(exist_ok=True)
    (folder / "s.toml").write_text(SPEC)
    return subprocess.Popen(
        [*OUTLIVES, "sweep", "s.toml", "--out", "out", *arguments],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def items(folder: Path) -> int:
    return len(list(folder.glob("out/sweep-0001/items/*.json")))


def wait_for_items(folder: Path, count: int, process: "subprocess.Popen[str]") -> None:
    end = time.monotonic() + 60
    while items(folder) < count and process.poll() is None:
        assert time.monotonic() < end
        time.sleep(0.02)


def files(folder: Path) -> dict[str, bytes]:
    below = folder / "out/sweep-0001"
    return {str(path.relative_to(below)): path.read_bytes() for path in sorted(below.rglob("*.json"))}


@pytest.fixture(scope="module")
def by_processes(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, bytes]]:
    """The sweep by one process, undisturbed."""
    folder = tmp_path_factory.mktemp("processes")
    out, err = start(folder, "--workers", "1", "--json").communicate(timeout=120)
    assert err == ""
    return out, files(folder)


def test_a_cluster_one_of_whose_workers_is_killed_gives_the_same_bytes(
    cluster: Cluster, by_processes: tuple[str, dict[str, bytes]], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    process = start(folder, "--executor", cluster.address, "--json")
    wait_for_items(folder, 3, process)
    done = items(folder)
    cluster.kill(cluster.workers[0])
    out, err = process.communicate(timeout=120)
    assert 3 <= done < len(by_processes[1])
    assert (process.returncode, err) == (1, "")
    assert (out, files(folder)) == by_processes


def test_a_cluster_that_vanishes_leaves_what_is_done_and_it_goes_on_elsewhere(
    cluster: Cluster, by_processes: tuple[str, dict[str, bytes]], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    process = start(folder, "--executor", cluster.address, "--json")
    wait_for_items(folder, 3, process)
    address = cluster.address
    cluster.kill(cluster.scheduler)
    began = time.monotonic()
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - began < 30
    assert err == ""
    report = json.loads(out)
    assert process.returncode in (1, 3), "1 where a violation was found before"
    done = items(folder)
    total = len([name for name in by_processes[1] if name.startswith("items/")])
    assert 3 <= done < total
    row = next(row for row in report["results"] if row["engine"] == "sweep")
    assert row["verdict"] == "unknown"
    assert row["note"].startswith("the cluster is gone: its scheduler does not answer any more")
    assert report["notes"] == [
        f"{done} of {total} items are done and stay done. To go on:",
        f"outlives sweep --resume out/sweep-0001 --executor {address}",
    ]
    again = subprocess.run(
        [*OUTLIVES, "sweep", "--resume", "out/sweep-0001", "--json", "--workers", "1"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (again.stdout, files(folder)) == by_processes


def test_a_dead_address_and_a_cluster_without_workers_are_one_sentence_in_bounded_time(tmp_path: Path) -> None:
    lonely = Cluster(tmp_path, workers=0)
    began = time.monotonic()
    processes = {
        address: start(tmp_path / "run", "--executor", address, "--ascii")
        for address in ("dask:tcp://127.0.0.1:1", "dask:%%", lonely.address)
    }
    said = {address: process.communicate(timeout=60) for address, process in processes.items()}
    lonely.end()
    assert time.monotonic() - began < 40
    for address, (out, err) in said.items():
        assert (processes[address].returncode, out) == (2, "")
        assert err.startswith(f"outlives: --executor {address}: ")
        why = "the cluster has no worker. Start" if address == lonely.address else "no dask scheduler answers there"
        assert why in err
        assert err.count("\n") == 1
    assert not (tmp_path / "run/out").exists()
