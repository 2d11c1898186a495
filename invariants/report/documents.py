"""Reports that are documents: what a command says, collected, and written by one of the writers when it ends.

Belongs here: the two reporters that do that. `DocumentReporter` prints one document and nothing else; `FilingReporter`
lets another reporter speak and puts documents into the run's folder. The writers are in `writers`.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from outlives.model.errors import OutlivesError, Unwritable

from ..verdict import Result
from .clean import shown
from .content import DataTable, Run, Violation
from .progress import progress_on
from .reporter import Advance, Reporter
from .tables import proof_table, source_table
from .writers import WRITERS, write_report

if TYPE_CHECKING:
    from ..proof.theorem import ProofReport
    from ..source.report import SourceReport

__all__ = ["OF_ONE_TRACE", "DocumentReporter", "FilingReporter", "put_document"]

OF_ONE_TRACE = ("itf", "pytest")
"""Formats of one trace; the others are of a whole run."""


class _Collected:
    """What was said, as one run."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.run: Run | None = None
        self.violations: list[Violation] = []
        self.tables: list[DataTable] = []
        self.notes: list[str] = []
        self.results: list[Result] = []

    def whole(self, status: int) -> Run:
        """Everything as a run that ends with this status."""
        run = self.run or Run(title=self.title, results=tuple(self.results))
        return replace(
            run,
            violations=(*run.violations, *self.violations),
            tables=(*run.tables, *self.tables),
            notes=(*run.notes, *self.notes),
            ended_with=status,
        )


class DocumentReporter:
    """Prints one document when the command ends. What is no part of a result (progress, errors) goes to standard
    error."""

    def __init__(self, out: TextIO, err: TextIO, name: str, title: str) -> None:
        self._out, self._err, self._name = out, err, name
        self._said = _Collected(title)
        self._failed = False

    def progress(self, total: int | None, description: str) -> AbstractContextManager[Advance]:
        """As for the terminal."""
        return progress_on(self._err, total, description)

    def run(self, run: Run) -> None:
        """The run that is written."""
        self._said.run = run

    def violation(self, violation: Violation) -> None:
        """A further violation of the run."""
        self._said.violations.append(violation)

    def table(self, table: DataTable) -> None:
        """A table of the run."""
        self._said.tables.append(table)

    def source(self, report: "SourceReport") -> None:
        """A table of the run."""
        self._said.tables.append(source_table(report))

    def proof(self, report: "ProofReport") -> None:
        """The grid as a table, and a row for its verdict."""
        self._said.tables.append(proof_table(report))
        self._said.results.append(proof_result(report))

    def data(self, name: str, values: Mapping[str, Any]) -> None:
        """Nothing: numbers for machines are `--json`'s."""

    def say(self, text: str) -> None:
        """A note of the run."""
        self._said.notes.append(text)

    def wrote(self, path: str) -> None:
        """A note of the run."""
        self._said.notes.append(f"Report: {path}")

    def error(self, text: str) -> None:
        """On standard error; then there is nothing to write."""
        self._failed = True
        self._err.write(f"outlives: {shown(text)}\n")

    def finish(self, status: int) -> int:
        """Write the document."""
        run = self._said.whole(status)
        if self._failed and not run.violations:
            return status
        if self._name in OF_ONE_TRACE and not run.violations:
            why = "this report shows no violation, so there is no trace"
            self._err.write(f"outlives: {why} to write as {self._name}.\n")
            return status
        self._out.write(write_report(run, self._name))
        self._out.flush()
        return status


class FilingReporter:
    """Another reporter, and documents in files: of the run as `report`, and of each of its traces beside the trace."""

    def __init__(
        self, inner: Reporter, names: Sequence[str], folder: Path, title: str, of_trace: Callable[[str], Run]
    ) -> None:
        self._inner, self._names, self._folder, self._of_trace = inner, names, folder, of_trace
        self._said = _Collected(title)

    def progress(self, total: int | None, description: str) -> AbstractContextManager[Advance]:
        """The other's."""
        return self._inner.progress(total, description)

    def run(self, run: Run) -> None:
        """Shown, and kept."""
        self._said.run = run
        self._inner.run(run)

    def violation(self, violation: Violation) -> None:
        """Shown, and kept."""
        self._said.violations.append(violation)
        self._inner.violation(violation)

    def table(self, table: DataTable) -> None:
        """Shown, and kept."""
        self._said.tables.append(table)
        self._inner.table(table)

    def source(self, report: "SourceReport") -> None:
        """Shown, and kept."""
        self._said.tables.append(source_table(report))
        self._inner.source(report)

    def proof(self, report: "ProofReport") -> None:
        """Shown, and kept."""
        self._said.tables.append(proof_table(report))
        self._said.results.append(proof_result(report))
        self._inner.proof(report)

    def data(self, name: str, values: Mapping[str, Any]) -> None:
        """The other's."""
        self._inner.data(name, values)

    def say(self, text: str) -> None:
        """Shown, and kept."""
        self._said.notes.append(text)
        self._inner.say(text)

    def wrote(self, path: str) -> None:
        """The other's."""
        self._inner.wrote(path)

    def error(self, text: str) -> None:
        """The other's."""
        self._inner.error(text)

    def finish(self, status: int) -> int:
        """Write the documents, say where they are, and let the other end."""
        run = self._said.whole(status)
        folder = Path(run.out) if run.out else self._folder
        if status != 2:
            for name in self._names:
                for path in self._documents(run, name, folder):
                    self._inner.wrote(str(path))
        return self._inner.finish(status)

    def _documents(self, run: Run, name: str, folder: Path) -> list[Path]:
        paths = [] if name in OF_ONE_TRACE else [put_document(run, name, folder / "report")]
        if name == "itf":
            return paths  # the trace files are that already
        for violation in run.violations:
            for file in violation.files:
                stem = Path(file).name.removesuffix(".itf.json")
                try:
                    paths.append(put_document(self._of_trace(file), name, folder / stem))
                except OutlivesError as error:
                    self._inner.say(f"No {name} of {file}: {error}")
        return paths


def proof_result(report: "ProofReport") -> Result:
    """A row for what was proved."""
    assumed = ", ".join(sorted(report.terms.assumed.relaxed))
    return Result(
        engine="proof",
        property="GATHER-AFTER-FREE",
        verdict=report.verdict,
        coverage="unbounded numbers, any depth",
        note=f"guard {report.terms.guard.name}" + (f", relaxed {assumed}" if assumed else ""),
    )


def put_document(run: Run, name: str, stem: Path) -> Path:
    """Write the run as `stem` with the writer's ending; a name that is taken is never overwritten. Raises `Unwritable`
    and what the writer raises."""
    target = stem.with_name(stem.name + WRITERS[name].ending)
    text = write_report(run, name)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
    except FileExistsError:
        raise Unwritable(f"{target} exists already; reports are never overwritten. Name another --out.") from None
    except (OSError, ValueError) as error:
        raise Unwritable(
            f"cannot write the report to {target}: {getattr(error, 'strerror', None) or error}."
        ) from error
    return target
