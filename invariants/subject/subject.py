"""What a subject is: a live scheduler that takes the model's actions and shows itself as the model's state.

Belongs here: the protocol, and the records that pass through it. Nothing here knows vLLM.
"""

import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from outlives.model.contract import Action, Refusal
from outlives.model.setup import Setup
from outlives.model.state import State

__all__ = ["Failure", "Observation", "Subject", "failure_of"]


class Failure(NamedTuple):
    """The scheduler raised: the engine is dead."""

    what: str
    """Exception and message, in one line."""
    where: str
    """The innermost frame inside the scheduler's own package: file, line and function."""

    def __str__(self) -> str:
        return f"{self.what} ({self.where})"


class Observation(NamedTuple):
    """What is seen of a subject after an action."""

    state: State
    """The real objects, as the model's record."""
    failure: Failure | None = None
    """Not None: the action ended in an exception, and nothing can be done any more."""
    hits: tuple[tuple[int, int], ...] = ()
    """What a prefix cache of its own answered in the last action: requests that were looked up, and how many positions
    were found."""


class Subject(Protocol):
    """A live scheduler with its pipeline and worker. It has a state of its own: nothing here is pure."""

    @property
    def caches_prefixes(self) -> bool:
        """Whether it can have a prefix cache of its own."""
        ...

    def start(self, setup: Setup, *, caching: bool = False) -> Observation:
        """Begin anew with these numbers: nothing has arrived, the cache is empty, the pipeline too. `caching` asks for
        a prefix cache of its own."""
        ...

    def take(self, action: Action) -> Refusal | None:
        """Take one of the model's actions, or refuse it by name and stay as it was."""
        ...

    def observe(self) -> Observation:
        """What it is like now."""
        ...


_MOST_TEXT = 300


def failure_of(error: BaseException, package: Path, others: Sequence[Path] = ()) -> Failure:
    """The failure that an exception is: its text, and the innermost frame in the folder `package`, or in one of
    `others` (files or folders)."""
    text = " ".join(str(error).split())[:_MOST_TEXT]
    what = f"{type(error).__name__}: {text}" if text else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    own = (package, *others)
    inside = [frame for frame in frames if any(Path(frame.filename).is_relative_to(each) for each in own)]
    inside = inside or list(frames)
    if not inside:
        return Failure(what, "nowhere")
    last = inside[-1]
    path = Path(last.filename)
    name = path.relative_to(package.parent).as_posix() if path.is_relative_to(package) else path.name
    said = f": {last.line}" if last.line else ""
    return Failure(what, f"{name}:{last.lineno} in {last.name}{said}"[:_MOST_TEXT])
