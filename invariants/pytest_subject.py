"""The installed vLLM under pytest: `check --subject vllm` with nobody to print to, its run handed back.

Belongs here: the reporter that only listens. The work is `subject_run`'s, in a process of its own.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from outlives.model.errors import BadModel

from .configuration import Configuration
from .known import Known
from .machine_settings import MachineSettings
from .report.content import Run, Violation
from .report.reporter import Advance
from .subject.own import SubjectChoice
from .subject_run import check_subject

__all__ = ["heard_run"]


class _Listener:
    """Keeps the run and the error; all else is not wanted."""

    def __init__(self) -> None:
        self.heard: Run | None = None
        self.trouble = ""

    def progress(self, _total: int | None, _description: str) -> AbstractContextManager[Advance]:
        return _nobody()

    def run(self, run: Run) -> None:
        self.heard = run

    def violation(self, violation: Violation) -> None: ...

    def table(self, table: Any) -> None: ...

    def source(self, report: Any) -> None: ...

    def proof(self, report: Any) -> None: ...

    def data(self, name: str, values: Mapping[str, Any]) -> None: ...

    def say(self, text: str) -> None: ...

    def wrote(self, path: str) -> None: ...

    def error(self, text: str) -> None:
        self.trouble = text

    def finish(self, status: int) -> int:
        return status


@contextmanager
def _nobody() -> Iterator[Advance]:
    def advance(*_: object, **__: object) -> None: ...

    yield advance


def heard_run(
    choice: SubjectChoice,
    configuration: Configuration,
    settings: MachineSettings,
    seed: int,
    folder: Path,
    known: Known | None,
) -> Run:
    """The run of `outlives check --subject vllm`. Raises `NoVllm` and `BadUserFile`, and `BadModel` where the
    scheduler could not be gone on with; `KeyboardInterrupt` where it was interrupted."""
    listener = _Listener()
    check_subject(choice, configuration, settings, seed, folder, known, listener)
    if listener.heard is None:
        raise BadModel(listener.trouble or "the scheduler's process gave no answer.")
    if listener.heard.interrupted:
        raise KeyboardInterrupt
    return listener.heard
