"""The one way out: everything that is shown to a user passes through a `Reporter`.

Belongs here: the interface, and the choice between terminal and `--json`. Reports that are documents are made by the
reporters of `documents`.
"""

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from .content import DataTable, Run, Violation

if TYPE_CHECKING:  # the solver takes long to load, and most reports have no proof
    from ..proof.theorem import ProofReport
    from ..source.report import SourceReport

__all__ = ["Advance", "Reporter", "reporter_for"]

Advance = Callable[..., None]
"""`advance(completed, text="")`: how much of the total is done by now, and optionally what was just found."""


class Reporter(Protocol):
    """What engines and the command may say, and nothing of how it looks."""

    def progress(self, total: int | None, description: str) -> AbstractContextManager[Advance]:
        """A progress line while the context is open, for people only: quiet unless standard error is a terminal.
        `total` None: not known."""
        ...

    def run(self, run: Run) -> None:
        """A whole run: its violations, a row per property and engine, what was not covered or reached, the status."""
        ...

    def violation(self, violation: Violation) -> None:
        """One violation on its own (`replay`)."""
        ...

    def table(self, table: DataTable) -> None:
        """A table of data."""
        ...

    def source(self, report: "SourceReport") -> None:
        """What real source files do."""
        ...

    def proof(self, report: "ProofReport") -> None:
        """The grid of a proof."""
        ...

    def data(self, name: str, values: Mapping[str, Any]) -> None:
        """Plain values for machines to read; people are shown a table of them."""
        ...

    def say(self, text: str) -> None:
        """One sentence of result."""
        ...

    def wrote(self, path: str) -> None:
        """Where a report now is."""
        ...

    def error(self, text: str) -> None:
        """Why there is no result: one sentence."""
        ...

    def finish(self, status: int) -> int:
        """Nothing more will be said; returns the exit status given."""
        ...


def reporter_for(
    *,
    as_json: bool = False,
    ascii_only: bool = False,
    out: TextIO | None = None,
    err: TextIO | None = None,
) -> Reporter:
    """The reporter for these streams (standard output and error unless given).

    Plain ASCII without colour where it is asked for, where `NO_COLOR` is set, and where the stream is no terminal.
    """
    from .json_report import JsonReporter
    from .terminal import TerminalReporter

    out, err = out or sys.stdout, err or sys.stderr
    if as_json:
        return JsonReporter(out, err)
    plain = ascii_only or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb" or not out.isatty()
    return TerminalReporter(out, err, plain=plain)
