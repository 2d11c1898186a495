"""The JSON writer: one object for the whole command, written when it ends.

Belongs here: the shape of that object. `FORMAT` rises when a member changes its meaning or goes; new members may come.
"""

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, TextIO

from ..verdict import Result
from .content import EXIT_WORDS, DataTable, Run, Violation
from .progress import progress_on
from .proof_strip import induction_strips
from .reporter import Advance
from .tables import proof_table

if TYPE_CHECKING:
    from ..proof.theorem import ProofReport
    from ..source.report import SourceReport

__all__ = ["FORMAT", "JsonReporter"]

FORMAT: Final = 1


class JsonReporter:
    """Collects everything and prints one object."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out = out
        self._err = err
        self._object: dict[str, Any] = {"format": FORMAT, "tool": "outlives"}
        self._meaning = ""

    def progress(self, total: int | None, description: str) -> AbstractContextManager[Advance]:
        """On standard error, as for the terminal."""
        return progress_on(self._err, total, description)

    def run(self, run: Run) -> None:
        """The members of a run."""
        self._object |= {
            "title": run.title,
            "configuration": run.configuration,
            "provenance": run.provenance,
            "results": [_result(each) for each in run.results],
            "violations": [each.plain() for each in run.violations],
            "not_covered": run.all_not_covered,
            "not_reached": run.not_reached,
            "vacuous": run.vacuous,
            **({} if run.reach is None else {"reach": run.reach.plain()}),
            "out": run.out,
            "interrupted": run.interrupted,
        }
        if run.known is not None:
            self._object |= {"known": run.known, "gone": run.gone}
            self._meaning = run.meaning

    def violation(self, violation: Violation) -> None:
        """Added to `violations`."""
        self._object.setdefault("violations", []).append(violation.plain())

    def table(self, table: DataTable) -> None:
        """Under `tables`, by name."""
        self._object.setdefault("tables", {})[table.name] = table.plain()

    def source(self, report: "SourceReport") -> None:
        """Under `source`."""
        self._object["source"] = report.as_data()

    def proof(self, report: "ProofReport") -> None:
        """The grid and each obligation, in a list under `proofs`."""
        from ..proof.solvers import BUDGETS

        table = proof_table(report)
        self._object.setdefault("proofs", []).append(
            {
                "verdict": report.verdict,
                "guard": report.terms.guard.name,
                "reader": report.terms.assumed.reader,
                "relaxed": sorted(report.terms.assumed.relaxed),
                "solvers": report.solvers,
                "seeds": report.seeds,
                "budgets": {name: BUDGETS[name] for name in report.solvers},
                "costliest": report.spent(),
                "grid": table.plain()["rows"],
                "obligations": [
                    {
                        "name": each.name,
                        "verdict": each.verdict,
                        **_without_text(asdict(each.solved)),
                        "decisions": [asdict(other) for other in each.others],
                        "strips": [strip.plain() for strip in induction_strips(report, each)],
                    }
                    for each in report.obligations
                ],
            }
        )

    def data(self, name: str, values: Mapping[str, Any]) -> None:
        """Under this name."""
        self._object[name] = dict(values)

    def say(self, text: str) -> None:
        """Under `notes`."""
        self._object.setdefault("notes", []).append(text)

    def wrote(self, path: str) -> None:
        """Under `reports`."""
        self._object.setdefault("reports", []).append(path)

    def error(self, text: str) -> None:
        """Under `error`."""
        self._object["error"] = text

    def finish(self, status: int) -> int:
        """Write the object."""
        self._object |= {"exit_status": status, "exit_meaning": self._meaning or EXIT_WORDS.get(status, "")}
        self._out.write(json.dumps(_plain(self._object), indent=1) + "\n")
        self._out.flush()
        return status


def _result(result: Result) -> dict[str, Any]:
    return {
        "engine": result.engine,
        "property": result.property,
        "verdict": result.verdict,
        "coverage": result.coverage,
        "note": result.note,
        "details": result.details,
        "not_covered": result.not_covered,
        **({"known": result.known} if result.known else {}),
        "actions": None if result.trace is None else [str(action) for action in result.trace.actions],
    }


def _without_text(solved: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in solved.items() if name != "smt2"}


def _plain(value: Any) -> Any:
    """As JSON has it; what JSON does not have becomes text."""
    if isinstance(value, Mapping):
        return {str(name): _plain(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, set | frozenset):
        return sorted((_plain(each) for each in value), key=repr)
    if isinstance(value, str):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float) else str(value)
