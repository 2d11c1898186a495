"""Checkpoints: a search on disk, from which it goes on, or which is refused with a reason; never a wrong count.

Belongs here: the file, its checks, and what may be read from it. What a search puts in is the search's business.

A file is one line of JSON (format, identity, length and checksum of the rest) and a pickle. It is written beside its
place and renamed into it, so whoever is killed leaves the old file or the new one. Reading it builds plain records
only: numbers, text, tuples, sets, and the named tuples, frozen data classes and enumerations of modules that are
loaded anyway; anything else in the file is refused, nothing of it is imported or called.
"""

import dataclasses
import enum
import hashlib
import io
import json
import os
import pickle
import sys
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from outlives.model.contract import Model
from outlives.model.errors import OutlivesError, Unwritable

__all__ = ["BadCheckpoint", "Checkpoint"]

_FORMAT = 1
_PART = ".part"


class BadCheckpoint(OutlivesError):
    """A checkpoint that cannot be gone on from: damaged, of another model or version, or no checkpoint at all."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"the checkpoint {path} is refused: {why}. Remove it, or name another, to begin anew.")


class Checkpoint:
    """Where a search is kept, and for which model.

    `identity` says in words everything that makes the model what it is (profile, scope, options): a file with another
    one is refused, and so is one from other source files. The search removes the file when it has seen every state.
    """

    def __init__(self, path: Path | str, identity: str, every: float = 60.0) -> None:
        self.path = Path(path)
        self._part = self.path.with_name(self.path.name + _PART)
        self.identity = identity
        self._every = every
        self._saved = time.perf_counter()

    @property
    def due(self) -> bool:
        """Whether it is time to save again."""
        return time.perf_counter() - self._saved >= self._every

    def save(self, model: Model[Any], engine: str, content: Mapping[str, Any]) -> None:
        """Put the search on disk. Raises `Unwritable`."""
        body = pickle.dumps(dict(content), protocol=5)
        head = {
            "format": _FORMAT,
            "identity": self._digest(model, engine),
            "length": len(body),
            "crc32": zlib.crc32(body),
        }
        try:
            with open(self._part, "wb") as file:
                file.write(json.dumps(head).encode() + b"\n")
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            os.replace(self._part, self.path)
        except OSError as error:
            raise self._unwritable(error) from error
        self._saved = time.perf_counter()

    def load(self, model: Model[Any], engine: str) -> dict[str, Any] | None:
        """What was saved, or None where there is no file (and one can be written). Raises `BadCheckpoint`,
        `Unwritable`."""
        try:
            with open(self.path, "rb") as file:
                line = file.readline(4096)
                body = file.read()
        except (FileNotFoundError, NotADirectoryError):
            self._probe()
            return None
        except OSError as error:
            raise BadCheckpoint(self.path, f"it cannot be read ({error.strerror or error})") from error
        try:
            head = json.loads(line)
            form, identity, length, crc = (head[name] for name in ("format", "identity", "length", "crc32"))
        except (ValueError, KeyError, TypeError) as error:
            raise BadCheckpoint(self.path, "it is no checkpoint of this program") from error
        if form != _FORMAT:
            raise BadCheckpoint(self.path, f"its format is {str(form)[:20]}, this version reads {_FORMAT}")
        if length != len(body) or crc != zlib.crc32(body):
            raise BadCheckpoint(self.path, "it is damaged or cut short")
        if identity != self._digest(model, engine):
            raise BadCheckpoint(self.path, "it is of another model, scope, engine or version of the source")
        return self._content(body)

    def _probe(self) -> None:
        """Say before the work that its result cannot be kept, not after it."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._part.write_bytes(b"")
            self._part.unlink()
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> Unwritable:
        return Unwritable(f"the checkpoint {self.path} cannot be written: {error.strerror or error}.")

    def remove(self) -> None:
        """The search is over; the file goes."""
        self.path.unlink(missing_ok=True)

    def refuse(self, why: str) -> BadCheckpoint:
        """The error for content that a search cannot go on from."""
        return BadCheckpoint(self.path, why)

    def _content(self, body: bytes) -> dict[str, Any]:
        try:
            content = _Records(io.BytesIO(body)).load()
        except Exception as error:  # whatever a hostile file provokes
            raise BadCheckpoint(self.path, f"its content cannot be read ({type(error).__name__}: {error})") from error
        if not isinstance(content, dict):
            raise BadCheckpoint(self.path, "its content is not what was saved")
        return content

    def _digest(self, model: Model[Any], engine: str) -> str:
        digest = hashlib.sha256()
        digest.update(json.dumps([engine, self.identity, type(model).__qualname__, sys.version_info[:2]]).encode())
        digest.update(json.dumps([(each.name, each.kind) for each in model.properties()]).encode())
        for path in _sources(model):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
        return digest.hexdigest()


def _sources(model: Model[Any]) -> list[Path]:
    """The files whose change may change the answer: this package, the model package, and the model's own modules."""
    here = Path(__file__).parent
    found = {*here.glob("*.py"), *here.parent.glob("*.py")}
    modules = {
        "outlives.model.contract",
        type(model).__module__,
        *(each.holds.__module__ for each in model.properties()),
    }
    for name in modules:
        file = getattr(sys.modules.get(name), "__file__", None)
        if file:
            path = Path(file)
            found |= set(path.parent.glob("*.py")) if name.startswith("outlives.") else {path}
    return sorted(path for path in found if path.is_file())


class _Records(pickle.Unpickler):
    """Builds plain records and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in {
            ("builtins", "frozenset"),
            ("builtins", "set"),
            ("array", "array"),
            ("array", "_array_reconstructor"),
        }:
            return super().find_class(module, name)
        kind: Any = sys.modules.get(module)
        for part in name.split("."):
            kind = getattr(kind, part, None)
        if isinstance(kind, type) and kind.__module__ == module and _plain(kind):
            return kind
        raise pickle.UnpicklingError(f"{module}.{name} is no plain record")


def _plain(kind: type) -> bool:
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return True
    if issubclass(kind, enum.Enum):
        return True
    parameters = getattr(kind, "__dataclass_params__", None)
    return dataclasses.is_dataclass(kind) and parameters is not None and parameters.frozen
