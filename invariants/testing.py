"""What a test file imports: `lifetime_machine`, which makes a test class of any model, or of a scheduler.

Belongs here: the class, and how a model's violations are saved and taken again. It runs under pytest and under plain
`unittest`; options come from pytest's command line and files where pytest runs it (`pytest_options`).
"""

import inspect
import unittest
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from outlives.model.contract import Action, DescribedModel, Model
from outlives.model.errors import Contradiction, OutlivesError
from outlives.model.trace import Recorded, read_trace

from .configuration import Configuration
from .folder import make_folder
from .machine import run_machine
from .machine_settings import MachineSettings, machine_profile, register_profiles
from .pytest_check import (
    Row,
    Subtests,
    Told,
    fail_apart,
    file_reports,
    kept_exit,
    rendered,
    rows_of,
    run_of,
    saved_rows,
    saved_traces,
    slug,
    subtests_of,
)
from .pytest_options import DEFAULT_OUT, Asked, chosen, machine_settings
from .replay import replay_on
from .report.content import Run, explain
from .subject.own import SubjectChoice
from .trace_file import describe_state, write_trace
from .verdict import Trace

__all__ = ["LifetimeMachine", "lifetime_machine"]

register_profiles()


def lifetime_machine(
    subject: Model[Any] | Configuration | SubjectChoice,
    *,
    settings: MachineSettings | str | None = None,
    seed: int | None = None,
    properties: Iterable[str] = (),
    renamed: Mapping[str, str] | None = None,
) -> type["LifetimeMachine"]:
    """A test class: `TestCache = lifetime_machine(CacheModel())`, a subtest for each property.

    `subject`: any model of `outlives.model.contract`, a `Configuration` of the built-in scheduler, or a
    `SubjectChoice` of an installed vLLM. `settings`: a profile's name (`quick` unless options say otherwise) or a
    `MachineSettings`. `renamed`: actions of saved counterexamples that have another name now, old to new.

    Raises `Contradiction` for a subject that is none of these, `UnknownName` for settings or properties.
    """
    if not isinstance(subject, Configuration | SubjectChoice) and not _is_model(subject):
        raise Contradiction(
            f"lifetime_machine takes a model (initial_states, actions, next_state, properties, within), a "
            f"Configuration or a SubjectChoice, not {subject if isinstance(subject, type) else type(subject).__name__}."
        )
    if isinstance(settings, str):
        settings = machine_profile(settings)
    frame = inspect.currentframe()
    caller = frame.f_back.f_globals.get("__name__", __name__) if frame is not None and frame.f_back else __name__
    members = {
        "__module__": caller,
        "__test__": True,
        "__doc__": f"The lifetime machine over {type(subject).__name__}.",
        "outlives_subject": subject,
        "outlives_settings": settings,
        "outlives_seed": seed,
        "outlives_properties": tuple(properties),
        "outlives_renamed": dict(renamed or {}),
    }
    return type("LifetimeMachine", (LifetimeMachine,), members)


def _is_model(subject: object) -> bool:
    names = ("initial_states", "actions", "next_state", "properties", "within")
    return not isinstance(subject, type) and all(callable(getattr(subject, name, None)) for name in names)


class LifetimeMachine(unittest.TestCase):
    """One test: what earlier runs saved first, then the machine; a subtest for each property."""

    outlives_subject: Any = None
    outlives_settings: MachineSettings | None = None
    outlives_seed: int | None = None
    outlives_properties: tuple[str, ...] = ()
    outlives_renamed: Mapping[str, str]
    __test__ = False  # this class itself is no test

    _values: Mapping[str, Any] = MappingProxyType({})
    _name = ""
    _told: Told | None = None
    _subtests: Subtests | None = None
    _reports = ""
    _pytest = False

    @pytest.fixture(autouse=True)
    def _outlives(self, request: pytest.FixtureRequest) -> None:
        """What pytest knows, where it is pytest that runs this."""
        from .pytest_plugin import keep_told, report_folder

        self._pytest = True
        self._values = chosen(request.config)
        self._name = slug(request.node.nodeid)
        self._told = Told()
        self._subtests = subtests_of(request)
        self._reports = report_folder(request.config)
        keep_told(request.node, self._told)

    def test_properties(self) -> None:
        """Every property holds in every run, and is put to the test."""
        __tracebackhide__ = True
        if self._pytest:
            fail_apart(self._rows(), self._subtests)
            return
        for row in self._rows():
            with self.subTest(row.name):
                if row.wrong:
                    self.fail(row.wrong)

    def _rows(self) -> Iterator[Row]:
        name = self._name or slug(self.id())
        told = self._told or Told()
        out = Path(self._values.get("out", DEFAULT_OUT))
        saved, replayed = self._saved(out, name) if self._values.get("replay", True) else ([], 0)
        told.saved(saved)
        yield from saved
        run = self._run(name, out)
        told.run(run, replayed)
        file_reports(run, name, self._reports, self._values, told)
        yield from rows_of(run)

    def _saved(self, out: Path, name: str) -> tuple[list[Row], int]:
        subject = self.outlives_subject
        with kept_exit():
            if isinstance(subject, Configuration):
                return saved_rows(out, subject)
            return ([], 0) if isinstance(subject, SubjectChoice) else self._saved_of_model(subject, out, name)

    def _saved_of_model(self, model: Model[Any], out: Path, name: str) -> tuple[list[Row], int]:
        rows, replayed, seen = [], 0, set()
        for path in saved_traces(out / "pytest", f"{name}-*/*.itf.json"):
            try:
                recorded = _renamed(read_trace(path), self.outlives_renamed)
                key = recorded.property_name, tuple(step.action for step in recorded.steps)
                if key in seen:
                    continue
                seen.add(key)
                done = replay_on(recorded, model)
            except OutlivesError:
                continue  # its actions or its property are no longer the model's
            replayed += 1
            if done.violations:
                text = rendered(explain(done.trace, model=model, engine="replay", files=(str(path),)))
                rows.append(Row(f"saved {path.name} ({done.trace.property})", f"violated again: {path}\n{text}"))
        return rows, replayed

    def _run(self, name: str, out: Path) -> Run:
        values = dict(self._values)
        if self.outlives_seed is not None:
            values["seed"] = self.outlives_seed
        settings = machine_settings(values)
        own = self.outlives_settings
        if own is not None:
            kept = {"database": settings.database, "artifacts": settings.artifacts, "observe": settings.observe}
            settings = own.changed(**{each: value for each, value in kept.items() if getattr(own, each) is None})
        subject = self.outlives_subject
        if isinstance(subject, Configuration):
            about = replace(subject, properties=self.outlives_properties or subject.properties)
            asked = Asked(configuration=about, engines=("machine",), values=values)
            return run_of(asked, name, settings)
        if isinstance(subject, SubjectChoice):
            return run_of_subject(subject, settings, values, name, self.outlives_properties)
        return run_of_model(subject, settings, values.get("seed", 0), out, name, self.outlives_properties)


def _renamed(recorded: Recorded, names: Mapping[str, str]) -> Recorded:
    """The trace with its actions' new names."""
    if not names:
        return recorded

    def anew(action: Action | None) -> Action | None:
        return None if action is None else action._replace(name=names.get(action.name, action.name))

    return replace(recorded, steps=tuple(replace(step, action=anew(step.action)) for step in recorded.steps))


def run_of_model(
    model: Model[Any], settings: MachineSettings, seed: int, out: Path, name: str, properties: Iterable[str] = ()
) -> Run:
    """The machine's answers about any model. What is violated is saved in a new folder `pytest/NAME-0001` below `out`,
    where the next run finds it. Raises `BadModel`, `UnknownName` and `Unwritable`."""
    folder = make_folder(out / "pytest", name)
    wanted = tuple(properties)

    describe = model.describe if isinstance(model, DescribedModel) else describe_state

    def write(trace: Trace, path: Path) -> None:
        written.append(write_trace(trace, None, path, describe=describe))

    written: list[Path] = []
    try:
        seen = run_machine(
            model, settings=settings, seed=seed, out=folder, properties=wanted or None, write_trace=write, label=name
        )
        violations = []
        for result in seen.results:
            if result.trace is not None:
                write(result.trace, folder / f"machine-{result.property}")
                files = (str(written[-1]),)
                shown = explain(result.trace, model=model, engine="machine", files=files)
                violations.append(replace(shown, itf=read_trace(written[-1]).text()))
    finally:
        with suppress(OSError):
            folder.rmdir()
    return Run(
        title=type(model).__name__,
        results=seen.results,
        violations=tuple(violations),
        not_covered=("anything but these drawn runs",),
        not_reached=tuple(f"action {each} never fired" for each in seen.never_fired),
        provenance={"seed": seed, "settings": settings.name, "actions fired": dict(seen.fired)},
        out=str(folder),
    )


def run_of_subject(
    choice: SubjectChoice, settings: MachineSettings, values: Mapping[str, Any], name: str, properties: Iterable[str]
) -> Run:
    """The machine's answers about an installed vLLM, which runs in a process of its own. Raises `OutlivesError`."""
    from .known import read_known
    from .pytest_subject import heard_run

    known = None if "known" not in values else read_known(values["known"])
    folder = make_folder(Path(values.get("out", DEFAULT_OUT)) / "pytest", name)
    try:
        return heard_run(
            choice, Configuration(properties=tuple(properties)), settings, values.get("seed", 0), folder, known
        )
    finally:
        with suppress(OSError):
            folder.rmdir()
