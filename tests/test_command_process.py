"""What only a process of its own can show: the console script's streams, signals, environment, and hash seeds."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

OUTLIVES = (sys.executable, "-m", "outlives.invariants.command")
CRASH = ("check", "--scenario", "chunk-end", "--profile", "0.20.0", "--engine", "machine", "--cases", "2")


def run(*arguments: str, cwd: Path, env: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        [*OUTLIVES, *arguments], cwd=cwd, env={**os.environ, **(env or {})}, capture_output=True, timeout=120
    )


def timeless(text: bytes) -> str:
    return re.sub(r"\d+\.\d+ s", "N s", text.decode())


def test_the_same_bytes_whatever_the_hash_seed(tmp_path: Path) -> None:
    written = set()
    for number, seed in enumerate(("0", "1", "random")):
        place = tmp_path / str(number)
        place.mkdir()
        done = run(*CRASH, "--engine", "exhaustive", cwd=place, env={"PYTHONHASHSEED": seed})
        assert done.returncode == 1
        files = sorted((place / ".outlives" / "check-0001").iterdir())
        traces = tuple((path.name, re.sub(rb'"seconds": [0-9.e-]+', b"", path.read_bytes())) for path in files)
        written.add((timeless(done.stdout), done.stderr, traces))
    assert len(written) == 1


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"HOME": "/nonexistent"}, {"COLUMNS": "20"}])
def test_no_terminal_no_colour(env: Mapping[str, str], tmp_path: Path) -> None:
    done = run("scenarios", cwd=tmp_path, env=env)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\x1b" not in done.stdout
    assert done.stdout.isascii()
    assert done.stdout == run("scenarios", cwd=tmp_path).stdout


@pytest.mark.parametrize("arguments", [("profiles",), ("scenarios", "--json")], ids=" ".join)
def test_a_reader_that_goes_away_ends_it_without_a_word(arguments: tuple[str, ...], tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with subprocess.Popen([*OUTLIVES, *arguments], cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE) as process:
        os.close(writer)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (141, b"")


def test_two_runs_at_once_into_one_folder_keep_to_their_own(tmp_path: Path) -> None:
    both = [
        subprocess.Popen([*OUTLIVES, *CRASH, "--json", "--out", "one"], cwd=tmp_path, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    said = [json.loads(process.communicate(timeout=120)[0]) for process in both]
    assert {each["out"] for each in said} == {"one/check-0001", "one/check-0002"}
    assert [process.returncode for process in both] == [1, 1]
    names = [sorted(path.name for path in (tmp_path / each["out"]).iterdir()) for each in said]
    assert names[0] == names[1]
    assert names[0]


def test_a_folder_that_cannot_be_made_here_is_said_at_once(tmp_path: Path) -> None:
    done = run("check", cwd=Path("/proc"))
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"outlives: cannot write to .outlives: ")


@pytest.mark.parametrize("wait", [0.0, 1.5])
@pytest.mark.parametrize("command", [("check", "--settings", "nightly"), ("table",)], ids=lambda each: each[0])
def test_ctrl_c_ends_every_process_without_a_traceback(command: tuple[str, ...], wait: float, tmp_path: Path) -> None:
    with subprocess.Popen(
        [*OUTLIVES, *command], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        while not (tmp_path / ".outlives").exists() and process.poll() is None:
            time.sleep(0.05)  # before that, Python may not have reached our code
        time.sleep(wait)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it: to the workers as well
        try:
            out, err = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    assert process.returncode == 130
    assert b"Traceback" not in out + err
    assert b"nterrupted" in out + err


def test_so_is_a_standard_output_that_is_closed() -> None:
    command = f"{sys.executable} -m outlives.invariants.command properties >&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    said = "outlives: the answer cannot be written: standard output is closed.\n"
    assert (done.returncode, done.stderr) == (2, said)


def test_an_answer_that_cannot_be_written_is_one_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "outlives.invariants.command", "properties"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (2, "outlives: the answer cannot be written: No space left on device.\n")
