"""The terminal writer: at most 100 columns, in colour for people, plain ASCII for everything else.

Belongs here: the layout of runs, tables and lists. How a violation is laid out is in `terminal_violation`. Every text
is made safe first (`clean`), and no markup is ever parsed.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, TextIO

from rich.box import SIMPLE, Box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..verdict import Result, Verdict
from .clean import shown, to_ascii
from .content import EXIT_WORDS, DataTable, Run, Violation
from .progress import progress_on
from .reporter import Advance
from .tables import proof_table
from .terminal_violation import KEPT_SPACE, violation_parts

if TYPE_CHECKING:
    from ..proof.theorem import ProofReport
    from ..source.report import SourceReport

__all__ = ["WIDTH", "TerminalReporter"]

WIDTH: Final = 100
_PLAIN_BOX: Final = Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)
_MANY_COLUMNS: Final = 8
"""A table with more columns than these is set close."""
_STYLES: Final = {
    Verdict.PROVED: "green",
    Verdict.EXHAUSTED: "green",
    Verdict.PASSED: "green",
    Verdict.VIOLATED: "bold red",
    Verdict.DISAGREE: "bold red",
    Verdict.UNKNOWN: "yellow",
    Verdict.VACUOUS: "yellow",
}


class TerminalReporter:
    """Writes as it goes. `plain`: ASCII without colour, 100 columns wide; the same bytes on every machine."""

    def __init__(self, out: TextIO, err: TextIO, *, plain: bool) -> None:
        self._out = out
        self._err = err
        self.plain = plain
        if plain:
            self._console = Console(file=out, width=WIDTH, color_system=None, force_terminal=False,
                                    force_jupyter=False, markup=False, highlight=False, emoji=False)  # fmt: skip
        else:
            console = Console(file=out, markup=False, highlight=False, emoji=False)
            console.width = min(console.width, WIDTH)
            self._console = console

    # --- what writers share ------------------------------------------------------------------------------------------

    def text(self, text: object, style: str = "") -> Text:
        """A text made safe for this terminal."""
        safe = shown(text)
        return Text(to_ascii(safe) if self.plain else safe, style=style)

    def grid(self, columns: Sequence[str], *, head: bool = True) -> Table:
        """An empty table in the house layout."""
        table = Table(box=_PLAIN_BOX if self.plain else SIMPLE, show_header=head, show_edge=False, pad_edge=False,
                      padding=(0, 1), header_style="bold")  # fmt: skip
        for column in columns:
            table.add_column(self.text(column), overflow="fold")
        return table

    def emit(self, *parts: RenderableType) -> None:
        """Write these, one under the other, without trailing blanks where there is no colour."""
        with self._console.capture() as capture:
            for part in parts:
                self._console.print(part)
        written = capture.get().replace(KEPT_SPACE, " ")
        if self.plain:
            written = "".join(f"{line.rstrip()}\n" for line in written.splitlines())
        self._out.write(written)
        self._out.flush()

    def indented(self, lines: Iterable[str], by: int = 2) -> list[RenderableType]:
        """Each line wrapped and indented, its own leading blanks added to the indent."""
        return [
            Padding(self.text(line.lstrip()), (0, 0, 0, by + len(line) - len(line.lstrip())), expand=False)
            for line in lines
        ]

    # --- the interface -----------------------------------------------------------------------------------------------

    def progress(self, total: int | None, description: str) -> AbstractContextManager[Advance]:
        """On standard error, so that standard output holds the report alone."""
        return progress_on(self._err, total, description)

    def run(self, run: Run) -> None:
        """Violations, then the table, the lists and the overall verdict, which so stand nearest to the prompt."""
        self.emit(self.text(run.title, "bold"))
        for violation in run.violations:
            self.violation(violation)
        self.emit("", self._results(run.results))
        if run.notes:
            self.emit("", *(self.text(note) for note in run.notes))
        for title, listed in (
            ("Known findings, met again", run.known or ()),
            ("Known findings, not met any more: take them out of the file", run.gone),
            ("Vacuous: an open route that never fired", run.vacuous),
            ("Not covered", run.all_not_covered),
            ("Not reached", run.not_reached),
        ):
            if listed:
                self.emit("", self.text(title, "bold"), *self.indented(f"- {each}" for each in listed))
        self._reach(run)
        for name, value in run.provenance.items():
            if isinstance(value, Mapping):
                counts = "; ".join(f"{what} {count:,}" if isinstance(count, int) else f"{what} {count}"
                                   for what, count in value.items())  # fmt: skip
                self.emit("", self.text(name[:1].upper() + name[1:], "bold"), *self.indented([counts]))
        plain = {name: value for name, value in run.provenance.items() if not isinstance(value, Mapping)}
        ending = [self.text(f"{name}: {value}") for name, value in plain.items()]
        if run.out:
            ending.append(self.text(f"files: {run.out}"))
        if ending:
            self.emit("", self.text("; ").join(ending))
        self.emit("", self._overall(run))

    def _reach(self, run: Run) -> None:
        """One line, and what was not reached where that was asked for."""
        if run.reach is None:
            return
        listed = run.reach.lists()
        where = "; the rest: --not-reached, --json" if listed and not run.reach.listed else ""
        self.emit("", self.text(f"{run.reach.words()}{where}"))
        for title, lines in listed if run.reach.listed else ():
            self.emit("", self.text(title, "bold"), *self.indented(f"- {each}" for each in lines))

    def _results(self, results: Sequence[Result]) -> Table:
        noted = any(result.note for result in results)
        table = self.grid(("property", "engine", "verdict", "covers", *(("note",) if noted else ())))
        for column in table.columns[:3]:
            column.no_wrap = True
        for result in results:
            style = "yellow" if result.known else _STYLES[result.verdict]
            verdict = f"{result.verdict}, known" if result.known else result.verdict
            row = [self.text(result.property), self.text(result.engine), self.text(verdict, style),
                   self.text(result.coverage)]  # fmt: skip
            table.add_row(*row, *((self.text(result.note),) if noted else ()))
        return table

    def _overall(self, run: Run) -> Text:
        counts = {verdict: sum(result.verdict is verdict for result in run.results) for verdict in Verdict}
        told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count) or "no answer"
        style = "bold green" if run.status == 0 else "bold red" if run.status in (1, 5) else "bold yellow"
        return self.text(f"{told}. Exit status {run.status}: {run.meaning}.", style)

    def violation(self, violation: Violation) -> None:
        """Headline, badge, steps, because-chain, how it shrank, replay, files."""
        self.emit("", *violation_parts(self, violation))
        if violation.replay:
            # Not wrapped: a command that is broken over two lines cannot be copied.
            self._out.write(f"Replay    {self.text(violation.replay).plain}\n")
        for name in violation.files:
            self._out.write(f"File      {self.text(name).plain}\n")

    def table(self, table: DataTable) -> None:
        """Title, rows, legend."""
        shown_table = self.grid(table.heads or table.columns)
        if len(table.columns) > _MANY_COLUMNS:
            shown_table.padding = (0, 0, 0, 0)
        for row in table.rows:
            shown_table.add_row(*(self.text(each) for each in row))
        shown_table.columns[0].no_wrap = True
        self.emit(self.text(table.title, "bold"), "", shown_table)
        if table.legend:
            self.emit("", *(self.text(line) for line in table.legend))
        self.emit("")

    def source(self, report: "SourceReport") -> None:
        """The answer per method as indented lines, then a row each."""
        lines = report.lines()
        if lines:
            self.emit(*self.indented(lines, by=0), "")
        table = self.grid(("method", "released when", "guard", "implies confirmed"))
        for method in report.methods:
            implies = {True: "yes", False: "NO", None: "not judged"}[method.implies_confirmed]
            table.add_row(self.text(f"{method.file}:{method.line}"), self.text(method.condition or "not known"),
                          self.text(method.guard or "-"), self.text(implies, _STYLES[method.verdict]))  # fmt: skip
        status = report.exit_status
        self.emit(table, "", self.text(f"Exit status {status}: {_SOURCE_WORDS.get(status, EXIT_WORDS[status])}."))

    def proof(self, report: "ProofReport") -> None:
        """The grid lemma x transition."""
        self.table(proof_table(report))

    def data(self, name: str, values: Mapping[str, Any]) -> None:
        """Nothing: the numbers are shown as tables."""

    def say(self, text: str) -> None:
        """A line of its own."""
        self.emit(self.text(text))

    def wrote(self, path: str) -> None:
        """A line that is not wrapped, so that it can be copied."""
        self._out.write(f"Report    {self.text(path).plain}\n")

    def error(self, text: str) -> None:
        """On standard error."""
        self._err.write(f"outlives: {self.text(text).plain}\n")

    def finish(self, status: int) -> int:
        """Everything is written already."""
        self._out.flush()
        return status


_SOURCE_WORDS: Final = {
    0: "every judged method releases only what is confirmed",
    1: "a method releases an item that a rejection can still take back",
    3: "a method could not be judged",
    4: "no such method was found in the given files",
}
