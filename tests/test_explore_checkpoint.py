"""Checkpoints: a search that stops and goes on gives the record of one that never stopped, or is refused."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import pytest
from outlives.invariants.explore import BadCheckpoint, Bounds, Checkpoint, breadth_first, interned_search
from outlives.model.errors import Unwritable
from protocol_p import SCOPES, ProtocolP
from random_models import RandomModel

ENGINES = pytest.mark.parametrize("search", [breadth_first, interned_search])


@ENGINES
def test_stopped_again_and_again_the_record_is_the_same(search: Any, tmp_path: Path) -> None:
    for seed in (2, 5, 8):
        whole = search(RandomModel(seed))
        file = tmp_path / f"{seed}.checkpoint"
        rounds = 0
        for limit in range(100, whole.states, 170):
            found = search(RandomModel(seed), bounds=Bounds(states=limit), checkpoint=Checkpoint(file, "random"))
            assert not found.complete
            rounds += 1
        found = search(RandomModel(seed), checkpoint=Checkpoint(file, "random"))
        assert found.same(whole) == []
        assert rounds >= 3
        assert not file.exists()


@ENGINES
def test_a_depth_bound_can_be_raised_later(search: Any, tmp_path: Path) -> None:
    model = ProtocolP(SCOPES["r2"])
    kept = Checkpoint(tmp_path / "deep", "r2")
    assert search(model, bounds=Bounds(depth=6), checkpoint=kept).depth == 6
    found = search(model, bounds=Bounds(depth=12), checkpoint=kept)
    assert found.same(search(model, bounds=Bounds(depth=12))) == []
    assert len(found.traces["GATHER"].actions) == 10


def saved(path: Path, search: Any = breadth_first, identity: str = "s1") -> Checkpoint:
    kept = Checkpoint(path, identity)
    search(ProtocolP(SCOPES["s1"]), bounds=Bounds(states=2_000), checkpoint=kept)
    return kept


@ENGINES
@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: data[: len(data) // 2], "damaged or cut short"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "damaged or cut short"),
        (lambda data: b"not a checkpoint at all\n" + data, "no checkpoint of this program"),
        (lambda data: b"", "no checkpoint of this program"),
        (lambda data: b"{}\n", "no checkpoint of this program"),
        (lambda data: data.replace(b'"format": 1', b'"format": 9', 1), "its format is 9"),
    ],
    ids=["half", "flipped", "text", "empty", "bare", "format"],
)
def test_a_damaged_file_is_refused(search: Any, damage: Any, words: str, tmp_path: Path) -> None:
    kept = saved(tmp_path / "kept", search)
    kept.path.write_bytes(damage(kept.path.read_bytes()))
    with pytest.raises(BadCheckpoint, match=words):
        search(ProtocolP(SCOPES["s1"]), checkpoint=kept)


def test_another_scope_engine_or_identity_is_refused(tmp_path: Path) -> None:
    kept = saved(tmp_path / "kept")
    with pytest.raises(BadCheckpoint, match="another model"):
        interned_search(ProtocolP(SCOPES["s1"]), checkpoint=kept)
    with pytest.raises(BadCheckpoint, match="another model"):
        breadth_first(ProtocolP(SCOPES["s1"]), checkpoint=Checkpoint(kept.path, "another"))
    with pytest.raises(BadCheckpoint, match="initial states are others"):
        breadth_first(ProtocolP(SCOPES["s3"]), checkpoint=kept)


@ENGINES
def test_another_rule_under_the_same_identity_is_caught_by_a_sample(search: Any, tmp_path: Path) -> None:
    kept = saved(tmp_path / "kept", search)
    with pytest.raises(BadCheckpoint, match="now leads to"):
        search(ProtocolP(SCOPES["r2"]), checkpoint=kept)


class Evil:
    def __reduce__(self) -> Any:
        return (os.system, ("touch evil-was-here",))


def test_nothing_in_a_file_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kept = saved(tmp_path / "kept")
    head = json.loads(kept.path.read_bytes().split(b"\n")[0])
    body = pickle.dumps({"states": Evil()})
    head.update(length=len(body), crc32=zlib.crc32(body))
    kept.path.write_bytes(json.dumps(head).encode() + b"\n" + body)
    with pytest.raises(BadCheckpoint, match="no plain record"):
        breadth_first(ProtocolP(SCOPES["s1"]), checkpoint=kept)
    assert not (tmp_path / "evil-was-here").exists()


def test_an_unwritable_place_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unwritable, match="cannot be written"):
        saved(tmp_path / "file" / "kept")


_RUN = """
import sys
sys.path.insert(0, {tests!r})
from outlives.invariants.explore import Checkpoint, interned_search
from protocol_p import SCOPES, ProtocolP
interned_search(ProtocolP(SCOPES["t2"]), checkpoint=Checkpoint({path!r}, "t2", every=0.05))
"""


def test_killed_at_any_moment_it_goes_on_to_the_same_record(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    script = _RUN.format(tests=str(Path(__file__).parent), path=str(path))
    kills = 0
    for round_ in range(4):
        process = subprocess.Popen([sys.executable, "-c", script])
        until = time.monotonic() + 20
        before = path.stat().st_mtime_ns if path.exists() else 0
        while time.monotonic() < until and process.poll() is None:
            if path.exists() and path.stat().st_mtime_ns != before:
                break
            time.sleep(0.01)
        time.sleep(0.013 * round_)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.wait()
    assert kills >= 1
    model = ProtocolP(SCOPES["t2"])
    resumed = path.exists()
    found = interned_search(model, checkpoint=Checkpoint(path, "t2"))
    assert resumed
    assert (found.states - found.outside, found.transitions - found.actions["miss"].fired) == (57_479, 192_130)
    assert found.same(interned_search(model)) == []
