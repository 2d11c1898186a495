"""What the plugin does for one test: replay what earlier runs saved, run the engines, and tell each answer apart.

Belongs here: from what a test asks to a `Run`, its subtests, its line in the summary, and its reports. How options are
read is in `pytest_options`, what pytest calls in `pytest_plugin`, what earlier runs left in `pytest_saved`. Imported
only once a test wants an answer.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from outlives.model.errors import OutlivesError, UnknownName, Unwritable

from .known import Known, read_known, settled
from .machine_settings import MachineSettings
from .pytest_options import Asked, asked_of, machine_settings, made_folder, out_of
from .report.content import Run, Violation
from .verdict import EXIT_STATUS, Result, Verdict

__all__ = ["Checker", "Row", "Told", "checker_of", "fail_apart", "file_reports", "kept_exit", "known_of", "rendered",
           "rows_of", "run_of", "slug", "subtests_of"]  # fmt: skip

Subtests = Callable[[str], AbstractContextManager[Any]]


# --- answers ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that holds or not: a subtest."""

    name: str
    wrong: str = ""
    """What is wrong, in words; empty where it is good."""


@dataclass(slots=True)
class Told:
    """What the summary says of a test."""

    line: str = "ended before the engines had answered"
    more: list[str] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        """As it goes from a worker to the process that shows it."""
        return {"line": self.line, "more": list(self.more)}

    def run(self, run: Run, replayed: int = 0) -> None:
        """Say what a run came to."""
        counts = dict.fromkeys(Verdict, 0)
        for result in run.results:
            counts[result.verdict] += 1
        said = [f"{count} {verdict}" for verdict, count in counts.items() if count]
        said += [f"{replayed} saved counterexample{'s' * (replayed != 1)} replayed"] if replayed else []
        self.line = f"{run.title}: {', '.join(said) or 'nothing was asked'}"
        self.more += [f"known: {each}" for each in run.known or ()]
        self.more += [f"gone: {each}" for each in run.gone]
        for violation in run.violations:
            self.more.append(f"VIOLATED {violation.property}: {violation.story.headline}")
            again = [violation.replay] if violation.replay else [f"{each} (replayed first from now on)"
                                                                 for each in violation.files]  # fmt: skip
            self.more += [f"  {each}" for each in again]

    def saved(self, rows: Sequence[Row]) -> None:
        """Say which saved counterexamples are violated again."""
        self.more += [f"{row.name} is violated again" for row in rows]


def rendered(violation: Violation) -> str:
    """A violation as the terminal shows it, without colour."""
    from .report import reporter_for

    text = StringIO()
    reporter_for(ascii_only=True, out=text, err=StringIO()).violation(violation)
    return text.getvalue().rstrip()


def rows_of(run: Run) -> Iterator[Row]:
    """A row for each property and engine, each obligation of a proof, and for the routes that were never taken."""
    shown = {violation.property: rendered(violation) for violation in run.violations}
    for result in run.results:
        for name, verdict in dict(result.details.get("obligations", {})).items():
            wrong = "" if verdict == str(Verdict.PROVED) else f"obligation {name}: {verdict}"
            yield Row(f"obligation {name}", wrong)
        yield Row(f"{result.property} ({result.engine})", _wrong(result, shown))
    for each in run.vacuous:
        yield Row(each.partition(";")[0], f"vacuous: {each}")


def _wrong(result: Result, shown: Mapping[str, str]) -> str:
    if result.known or EXIT_STATUS[result.verdict] == 0:
        return ""
    said = f"{result.property} is {result.verdict} ({result.engine}; {result.coverage})"
    note = f"\n{result.note}" if result.note else ""
    story = f"\n{shown[result.property]}" if result.verdict is Verdict.VIOLATED and result.property in shown else ""
    return f"{said}{note}{story}"


def run_of(asked: Asked, name: str, settings: MachineSettings | None = None) -> Run:
    """The engines' answers. Files go to a new folder below `out`, which is gone again where nothing was found.

    Raises `BadModel` for a user's rules that break their contract, and what else is wrong with a user's files.
    """
    from .check import CheckRun, check
    from .run_record import stamped

    known = known_of(asked.values)
    folder = made_folder(out_of(asked.values), name)
    work = CheckRun(
        configuration=asked.configuration,
        engines=asked.engines,
        settings=settings or machine_settings(asked.values),
        seed=asked.values.get("seed", 0),
        folder=folder,
        progress=lambda _total, _text: nullcontext(_nobody),
        known=known,
    )
    try:
        with kept_exit():
            run = stamped(settled(check(work), known, asked.configuration.scenario, work.seen, folder))
    finally:
        with suppress(OSError):
            folder.rmdir()
    if work.trouble is not None:
        raise work.trouble
    if work.interrupted:
        raise KeyboardInterrupt
    return run


def known_of(values: Mapping[str, Any]) -> Known | None:
    """The known findings that the options name. Raises `BadUserFile`."""
    return None if "known" not in values else read_known(values["known"])


def _nobody(*_: object, **__: object) -> None:
    """Progress that nobody watches."""


@contextmanager
def kept_exit() -> Iterator[None]:
    """Give `os._exit` back: loading a user's file takes it away, and pytest's workers need it."""
    end = os._exit
    try:
        yield
    finally:
        os._exit = end


# --- one test ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class Checker:
    """The answers about the scheduler of one test, worked out when they are first asked for."""

    asked: Asked
    name: str
    subtests: Subtests | None
    """None: a pytest without subtests; then one failure lists all that is wrong."""
    reports: str
    """Folder of reports; empty: none."""
    before: int | None = None
    """When this run of pytest began: what was saved earlier is replayed first."""
    told: Told = field(default_factory=Told)
    _run: Run | None = None
    _saved: list[Row] | None = None
    _replayed: int = 0

    @property
    def saved(self) -> Sequence[Row]:
        """Saved counterexamples of this scheduler that are violated again."""
        if self._saved is None:
            from .pytest_saved import saved_rows

            self._saved = []
            if self.asked.values.get("replay", True):
                out = out_of(self.asked.values)
                known = known_of(self.asked.values)
                with kept_exit():
                    self._saved, self._replayed = saved_rows(out, self.asked.configuration, known, self.before)
        return self._saved

    @property
    def run(self) -> Run:
        """Everything that the engines answered."""
        if self._run is None:
            self.told.saved(self.saved)
            self._run = run_of(self.asked, self.name)
            self.told.run(self._run, self._replayed)
            file_reports(self._run, self.name, self.reports, self.asked.values, self.told)
        return self._run

    @property
    def results(self) -> Sequence[Result]:
        """A row for each property and engine."""
        return self.run.results

    @property
    def violated(self) -> frozenset[str]:
        """The properties that are violated and not known."""
        return frozenset(row.property for row in self.results if row.verdict is Verdict.VIOLATED and not row.known)

    def verdict(self, name: str, engine: str | None = None) -> Verdict:
        """What was found out about a property: by one engine, or the gravest that any says. Raises `UnknownName`."""
        found = [row for row in self.results if row.property == name]
        if not found:
            raise UnknownName("property of this run", name, dict.fromkeys(row.property for row in self.results))
        if engine is not None:
            engines = [row.engine for row in found]
            if engine not in engines:
                raise UnknownName(f"engine that judged {name}", engine, engines)
            found = [row for row in found if row.engine == engine]
        return next(verdict for verdict in EXIT_STATUS if any(row.verdict is verdict for row in found))

    def check(self) -> None:
        """Fail unless nothing is violated, unknown or vacuous: saved counterexamples first, a subtest for each row."""
        __tracebackhide__ = True
        fail_apart(self._rows(), self.subtests)

    def _rows(self) -> Iterator[Row]:
        yield from self.saved  # told before the engines begin
        yield from rows_of(self.run)


def checker_of(request: pytest.FixtureRequest, reports: str, before: int) -> Checker:
    """The checker of the test that asks for it."""
    return Checker(
        asked=asked_of(request.node),
        name=slug(request.node.nodeid),
        subtests=subtests_of(request),
        reports=reports,
        before=before,
    )


def subtests_of(request: pytest.FixtureRequest) -> Subtests | None:
    """Subtests as this pytest has them: its own from 9.0 on, those of pytest-subtests before; None: it has none."""
    try:
        made = request.getfixturevalue("subtests")
    except pytest.FixtureLookupError:
        return None
    return lambda name: made.test(msg=name)


def fail_apart(rows: Iterator[Row], subtests: Subtests | None) -> None:
    """Tell each row as a subtest; without subtests, fail once with everything that is wrong. A folder that cannot be
    written to (any more) is one sentence."""
    wrong = []
    try:
        for row in rows:
            if subtests is None:
                wrong += [row.wrong] if row.wrong else []
                continue
            with subtests(row.name):
                if row.wrong:
                    pytest.fail(row.wrong, pytrace=False)
    except Unwritable as error:
        wrong.append(f"outlives: {error}")
    if wrong:
        pytest.fail("\n\n".join(wrong), pytrace=False)


def slug(nodeid: str) -> str:
    """A test's name as a file's."""
    made = re.sub(r"[^A-Za-z0-9_.]+", "-", nodeid).strip("-.")
    return made if len(made) <= 100 else made[-100:].lstrip("-.")


# --- reports ----------------------------------------------------------------------------------------------------------


def file_reports(run: Run, name: str, folder: str, values: Mapping[str, Any], told: Told) -> None:
    """Write the run in every format that is wanted; what cannot be written is told in the summary."""
    if not folder:
        return
    from .report.documents import OF_ONE_TRACE, put_document
    from .report.writers import WRITERS

    for format_name in values.get("formats", tuple(each for each in WRITERS if each not in OF_ONE_TRACE)):
        try:
            if format_name not in OF_ONE_TRACE:
                put_document(run, format_name, Path(folder) / name)
                continue
            for violation in run.violations:
                one = replace(run, violations=(violation,))
                put_document(one, format_name, Path(folder) / f"{name}-{violation.property}")
        except OutlivesError as error:
            told.more.append(f"no {format_name}: {error}")
