"""Where failing runs of the machine are kept, and where its observations go: Hypothesis's databases, in layers.

Belongs here: a folder of one's own, beside it the artifacts that jobs on GitHub uploaded, read and never written, so
that a failure there is tried first at the desk; and Hypothesis's observations as lines of JSON. What lasts is the trace
file: a database entry is good for the same rules and the same Hypothesis only.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from hypothesis.database import (
    DirectoryBasedExampleDatabase,
    ExampleDatabase,
    GitHubArtifactDatabase,
    MultiplexedDatabase,
    ReadOnlyDatabase,
)
from outlives.model.errors import BadUserFile, Contradiction, Unwritable

__all__ = ["ARTIFACT", "RoundsDatabase", "check_layers", "layered_database", "observed"]

ARTIFACT = "outlives-examples"
"""The artifact that the reusable workflow uploads, and that `artifacts` reads."""
_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}")


def check_layers(name: str, value: str) -> None:
    """Whether a `database` that the user named is a folder that is there, and `artifacts` name a repository. Raises
    `BadUserFile` or `Contradiction`."""
    if name == "database" and not Path(value).is_dir():
        raise BadUserFile(f"there is no folder {value}. Make it, or name none: then examples are kept beside the runs.")
    if name == "artifacts" and not _REPOSITORY.fullmatch(value):
        raise Contradiction(f"{value!r} is no OWNER/REPOSITORY, as in example/scheduler.")


class RoundsDatabase(ExampleDatabase):
    """A database for the rounds of one run. A round judges what is still open, and there an example of what is not
    passes, which is no sign that it is mended: it is out of the way of this run, and stays for the next one. Only what
    passes in the first round, where everything is judged, is deleted."""

    def __init__(self, inner: ExampleDatabase) -> None:
        super().__init__()
        self._inner = inner
        self._passed: set[tuple[bytes, bytes]] = set()
        self.forgets = True
        """Whether what passes is deleted."""

    def fetch(self, key: bytes) -> Iterable[bytes]:
        """What is there under the key, and has not passed in this run."""
        return (value for value in self._inner.fetch(key) if (key, value) not in self._passed)

    def save(self, key: bytes, value: bytes) -> None:
        """Keep an example that fails."""
        self._passed.discard((key, value))
        self._inner.save(key, value)

    def delete(self, key: bytes, value: bytes) -> None:
        """An example passed."""
        self._passed.add((key, value))
        if self.forgets:
            self._inner.delete(key, value)


def layered_database(folder: Path | None, artifacts: str | None = None) -> ExampleDatabase | None:
    """The folder alone, or over the artifacts of a repository; None: nothing is kept.

    Artifacts need a token in `GITHUB_TOKEN`; without one, or without network, Hypothesis warns and goes on.
    """
    local = None if folder is None else DirectoryBasedExampleDatabase(folder)
    if artifacts is None:
        return local
    owner, _, repository = artifacts.partition("/")
    shared = ReadOnlyDatabase(GitHubArtifactDatabase(owner, repository, artifact_name=ARTIFACT))
    return shared if local is None else MultiplexedDatabase(local, shared)


@contextmanager
def observed(folder: Path | None, name: str) -> Iterator[None]:
    """Write what Hypothesis observes of each case into `NAME.jsonl` of the folder: status, phase, time, and how often
    each rule was enabled. Without a folder nothing is observed. Raises `Unwritable`."""
    if folder is None:
        yield
        return
    from hypothesis.internal import observability

    path = folder / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', name)}.jsonl"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = path.open("a", encoding="utf-8")
    except OSError as error:
        raise Unwritable(f"cannot write observations to {path}: {error.strerror or error}.") from error

    def write(observation: Any) -> None:
        names = [each.name for each in fields(observation) if each.name not in ("coverage", "metadata")]
        plain = {name: getattr(observation, name) for name in names}
        file.write(json.dumps(plain, default=repr) + os.linesep)

    with file, observability.with_observability_callback(write):
        yield
