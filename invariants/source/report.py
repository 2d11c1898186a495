"""What is said about source files, as plain values: for the reporter, for `--json`, and as verdicts.

Belongs here: records and their wording. Nothing here runs or solves anything.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from ..verdict import Result, Verdict, exit_status
from .calls import CallSite, OtherRelease
from .judge import Smallest

__all__ = ["PROPERTY", "FileReport", "MethodReport", "SourceReport"]

PROPERTY: Final = "RELEASE-IMPLIES-CONFIRMED"
ENGINE: Final = "source"


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodReport:
    """One class's own method, judged for decoder-only models."""

    owner: str
    method: str
    file: str
    line: int
    verdict: Verdict
    condition: str = ""
    """When an item is released, e.g. `end <= computed - placeholders`; "" where that is not known."""
    words: str = ""
    guard: str | None = None
    """The guard with this condition and this call site, or None where none has both."""
    same_condition: tuple[str, ...] = ()
    """Every guard with this condition."""
    look_ahead: str = ""
    encoder_decoder: str = ""
    """The same for encoder-decoder models; not part of the verdict."""
    calls: tuple[CallSite, ...] = ()
    smallest: Smallest | None = None
    alone: bool | None = None
    problem: str = ""
    """Why it is not judged (one sentence with file and line), or a reservation."""
    problem_line: int | None = None

    @property
    def implies_confirmed(self) -> bool | None:
        """Whether a released item is always confirmed; None where that is not known."""
        return {Verdict.PROVED: True, Verdict.VIOLATED: False}.get(self.verdict)

    @property
    def guard_words(self) -> str:
        """Which guard it is, in a sentence fragment."""
        if self.guard is not None:
            return f"guard {self.guard}"
        if self.same_condition:
            return f"the condition of {', '.join(self.same_condition)}, asked at another place"
        return "no guard of the table"

    def lines(self) -> list[str]:
        """The answer as lines of text, the first one naming the method."""
        told = [f"{self.file}:{self.line} {self.owner}.{self.method}"]
        if not self.condition:
            return [*told, f"  not judged: {self.problem}"]
        told.append(f"  released when {self.condition}: {self.words}")
        told.append(f"  equals {self.guard_words}")
        for call in self.calls:
            via = f" (through {', '.join(call.via)})" if call.via else ""
            told.append(f"  called from {call.function}, {call.file}:{call.line}{via}: {call.words}")
        if not self.calls:
            told.append("  no call of it in the given files")
        if self.verdict is Verdict.PROVED:
            told.append("  implies confirmed: for all numbers, any look-ahead >= 0, decoder-only models")
        elif self.verdict is Verdict.VIOLATED and self.smallest is not None:
            told.append(f"  does not imply confirmed: {self.smallest.words}")
        if self.alone is False:
            told.append("  items are not decided one by one: whether one is released depends on another")
        if self.problem:
            told.append(f"  note: {self.problem}")
        told.append(f"  encoder-decoder models (not part of the verdict): released when {self.encoder_decoder}")
        return told

    def result(self) -> Result:
        """The row of a report."""
        not_covered = ["encoder-decoder models", "calls listed as not judged", "whether the calling code runs"]
        return Result(
            engine=ENGINE,
            property=PROPERTY,
            verdict=self.verdict,
            coverage=(
                f"{self.owner}.{self.method} at {self.file}:{self.line}; unbounded counters, one item and two in "
                "order, any look-ahead >= 0, decoder-only models"
            ),
            note=self.problem or (self.smallest.words if self.smallest else ""),
            details=self.as_data(),
            not_covered=tuple(not_covered),
        )

    def as_data(self) -> dict[str, Any]:
        """Plain values."""
        data = {name: value for name, value in _plain(self).items() if name != "smallest"}
        data["verdict"] = str(self.verdict)
        data["implies_confirmed"] = self.implies_confirmed
        data["smallest"] = None if self.smallest is None else dict(self.smallest.numbers)
        return data


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReport:
    """One file: its judged methods (often none), and what else releases in it."""

    file: str
    methods: tuple[MethodReport, ...]
    not_judged: tuple[OtherRelease, ...]

    @property
    def verdict(self) -> Verdict | None:
        """The verdict that decides for this file, or None where it has no such method."""
        order = (Verdict.DISAGREE, Verdict.VIOLATED, Verdict.UNKNOWN, Verdict.PROVED)
        seen = {method.verdict for method in self.methods}
        return next((verdict for verdict in order if verdict in seen), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReport:
    """Everything said about the given paths, in their order."""

    files: tuple[FileReport, ...]

    @property
    def methods(self) -> tuple[MethodReport, ...]:
        return tuple(method for file in self.files for method in file.methods)

    @property
    def results(self) -> list[Result]:
        """One row for each judged method."""
        return [method.result() for method in self.methods]

    @property
    def exit_status(self) -> int:
        """0 all imply confirmed, 1 one does not, 3 one is not judged, 5 solver and method disagree."""
        return exit_status(method.verdict for method in self.methods)

    def lines(self) -> list[str]:
        """The whole answer as lines of text."""
        told: list[str] = []
        for file in self.files:
            for method in file.methods:
                told += method.lines()
            if file.not_judged:
                told.append(f"{file.file}: also releases, not judged")
                told += [f"  line {other.line} {other.function} {other.what}" for other in file.not_judged]
        return told

    def as_data(self) -> Mapping[str, Any]:
        """Plain values for `--json`."""
        return {
            "files": [
                {
                    "file": file.file,
                    "verdict": None if file.verdict is None else str(file.verdict),
                    "methods": [method.as_data() for method in file.methods],
                    "not_judged": [asdict(other) for other in file.not_judged],
                }
                for file in self.files
            ]
        }


def _plain(report: MethodReport) -> dict[str, Any]:
    names = [name for name in report.__dataclass_fields__ if name not in ("smallest", "calls")]
    data = {name: getattr(report, name) for name in names}
    data["calls"] = [asdict(call) for call in report.calls]
    return data
