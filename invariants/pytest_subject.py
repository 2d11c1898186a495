"""The installed vLLM under pytest: `check --subject vllm` with nobody to print to, and saved traces taken again on it.

Belongs here: the reporter that only listens. The work is `subject_run`'s, in a process of its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from outlives.model.errors import BadModel
from outlives.model.trace import Recorded

from .configuration import Configuration
from .known import Known
from .machine_settings import MachineSettings
from .pytest_check import Row
from .pytest_saved import chosen_traces, is_known, row_of, saved_traces
from .report.content import Run, Violation
from .report.reporter import Advance
from .subject.own import SubjectChoice
from .subject_replay import ReplayAnswer, ReplayWork, replays_job
from .subject_run import apart, check_subject, told

__all__ = ["heard_run", "saved_of_vllm"]


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


def saved_of_vllm(
    choice: SubjectChoice, out: Path, properties: Sequence[str], known: Known | None, before: int | None
) -> tuple[list[Row], int]:
    """A row for each saved counterexample of this choice of vLLM that is violated again, and how many were replayed:
    all of them in one process of their own. Raises what loading the scheduler raises."""

    def ours(recorded: Recorded) -> Recorded | None:
        about = recorded.meta.get("subject")
        same = isinstance(about, dict) and about.get("options") == choice.options()
        return recorded if same and (not properties or recorded.property_name in properties) else None

    saved = list(chosen_traces(saved_traces(out, before=before), ours))
    if not saved:
        return [], 0
    works = [ReplayWork(choice=choice, path=path, given={}) for path, _ in saved]
    outcome = apart("replay", replays_job, works, _Listener())
    if outcome.interrupted:
        raise KeyboardInterrupt
    answers: Sequence[ReplayAnswer | None] | None = outcome.value
    if answers is None:
        why = f"the scheduler's process ended while saved counterexamples were taken again: {outcome.lost}."
        return [Row("saved counterexamples", why)], len(saved)
    rows, replayed = [], 0
    for (path, recorded), answer in zip(saved, answers, strict=True):
        if answer is None or answer.trace is None:
            continue  # it cannot be asked of this release
        replayed += 1
        asked = Configuration(profile=answer.facts.profile)
        world = asked.world()
        fair = {prop.name for prop in asked.judged(world) if prop.kind == "progress"}
        found = [each for each in answer.violations if not properties or each.property in properties]
        if known is not None:
            met = partial(is_known, recorded=recorded, trace=answer.trace, fair=fair, known=known)
            found = [each for each in found if not met(each, scenario=recorded.meta.get("scenario"))]
        if found:
            again = f"outlives replay {path} {choice.options()}"
            rows.append(row_of(path, answer.trace.property, told(answer.trace, world, again, (str(path),))))
    return rows, replayed
