"""The folder of a sweep: what was asked, one file per finished item, and the traces, so that it can go on later.

Belongs here: reading and writing it. Each file appears whole or not at all, and an item's file after its traces; so
whatever ends a sweep, an item is either done or not, and is counted once. A file that is not what it should be is as
good as none: its item is done again.

    sweep.json          the specification, and what it was begun with
    items/KEY.json      the item and its answer, in canonical JSON
    traces/KEY-ENGINE-PROPERTY.itf.json
"""

import json
import os
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from outlives.model.errors import BadUserFile, Contradiction, Unwritable

from .folder import appear_whole
from .sweep_crew import made_with
from .sweep_items import Item, canonical
from .sweep_spec import Spec

__all__ = ["SweepFolder", "begun", "opened"]

FORMAT = 1
_RECORD = "sweep.json"


class SweepFolder:
    """One sweep on disk. At most one command works in it at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None

    def hold(self) -> None:
        """Take the folder for this process until it ends. Raises `Contradiction` where another one has it."""
        try:
            import fcntl
        except ImportError:  # no such locks here: two commands at once would do the same work, and no harm
            return
        try:
            self._lock = os.open(self.path / ".lock", os.O_CREAT | os.O_RDWR, 0o644)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Contradiction(f"another outlives sweep is at work in {self.path}; let it end, or end it.") from None
        except OSError:  # a file system without locks
            return

    def release(self) -> None:
        """Let others have it."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def answers(self, items: Iterable[Item]) -> dict[str, dict[str, Any]]:
        """Key -> what was found, or why it never can be, of every item that is done."""
        found = {}
        for item in items:
            answer = self._answer(item)
            if answer is not None:
                found[item.key] = answer
        return found

    def others(self, keys: Iterable[str]) -> int:
        """How many finished items there are that these keys do not name."""
        known = {f"{key}.json" for key in keys}
        return sum(path.name not in known for path in (self.path / "items").glob("*.json"))

    def keep(self, item: Item, said: Mapping[str, Any]) -> dict[str, Any]:
        """Write what came of an item; returns its answer as `answers` would. Raises `Unwritable`."""
        traces = dict(said.get("traces", {}))
        for name, text in traces.items():
            self._write(self.trace(item.key, name), text)
        kept = {name: said[name] for name in ("answer", "trouble") if name in said}
        digests = {name: sha256(text.encode()).hexdigest() for name, text in traces.items()}
        whole = {"format": FORMAT, "key": item.key, "item": item.about, "traces": digests, **kept}
        self._write(self._file(item.key), canonical(whole) + "\n")
        return kept

    def trace(self, key: str, name: str) -> Path:
        """Where a trace of an item is."""
        return self.path / "traces" / f"{key}-{name}"

    def _file(self, key: str) -> Path:
        return self.path / "items" / f"{key}.json"

    def _answer(self, item: Item) -> dict[str, Any] | None:
        try:
            whole = json.loads(self._file(item.key).read_bytes())
            if whole["format"] != FORMAT or canonical(whole["item"]) != canonical(item.about):
                return None
            for name, digest in whole["traces"].items():
                if sha256(self.trace(item.key, name).read_bytes()).hexdigest() != digest:
                    return None
            kept = {name: whole[name] for name in ("answer", "trouble") if name in whole}
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return None
        return kept or None

    def _write(self, path: Path, text: str) -> None:
        try:
            path.parent.mkdir(exist_ok=True)
            appear_whole(path, text.encode("utf-8"))
        except OSError as error:
            raise Unwritable(f"cannot write {path}: {error.strerror or error}. What is done stays done.") from error


def begun(path: Path, spec: Spec) -> SweepFolder:
    """A new sweep in this folder, which is empty. Raises `Unwritable`."""
    folder = SweepFolder(path)
    folder.hold()
    record = {"format": FORMAT, "made_with": made_with(), "spec": spec.plain()}
    folder._write(path / _RECORD, json.dumps(record, indent=1) + "\n")
    return folder


def opened(path: Path) -> tuple[SweepFolder, Spec]:
    """A sweep that was begun, to go on with. Raises `BadUserFile`, `Contradiction` with the reason."""
    file = path / _RECORD
    try:
        record = json.loads(file.read_bytes())
        written, made = record["format"], dict(record["made_with"])
        spec = Spec.from_plain(record["spec"]) if written == FORMAT else None
    except FileNotFoundError:
        raise BadUserFile(f"--resume {path}: there is no {file}, so no sweep was begun there.") from None
    except OSError as error:
        raise BadUserFile(f"--resume {path}: {file} cannot be read: {error.strerror or error}.") from None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise BadUserFile(f"--resume {path}: {file} is no record of a sweep; begin a new one.") from None
    if spec is None:
        raise BadUserFile(f"--resume {path}: {file} is of format {str(written)[:40]}; this outlives knows {FORMAT}.")
    for package, here in made_with().items():
        if made.get(package) != here:
            raise Contradiction(
                f"--resume {path} was begun with {package} {str(made.get(package))[:40]}, and here it is {here}: "
                "answers would not be of one kind. Begin a new sweep."
            )
    folder = SweepFolder(path)
    folder.hold()
    return folder, spec
