"""What a test file imports: `lifetime_machine`, which makes a test class of any model, or of a scheduler.

Belongs here: the class, and how a model's violations are saved; taken again they are in `pytest_saved`. It runs under
pytest and under plain `unittest`; options come from pytest's command line and files where pytest runs it
(`pytest_options`).
"""

import inspect
import unittest
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import pytest
from outlives.model.contract import DescribedModel, Model
from outlives.model.errors import BadModel, Contradiction, OutlivesError
from outlives.model.trace import read_trace

from .configuration import Configuration
from .machine import run_machine
from .machine_settings import MachineSettings, machine_profile, register_profiles
from .pytest_check import (
    Row,
    Subtests,
    Told,
    fail_apart,
    file_reports,
    kept_exit,
    known_of,
    rows_of,
    run_of,
    slug,
    subtests_of,
)
from .pytest_options import Asked, chosen, machine_settings, made_folder, out_of
from .pytest_saved import saved_of_model, saved_rows
from .report.content import Run, explain
from .subject.given import about_given, given_model, given_name, is_subject
from .subject.live import SubjectModel
from .subject.own import SubjectChoice
from .subject.plain import plain_trace
from .subject.run import refuse_what_is_for_the_model
from .subject.subject import Failure, Observation, Subject
from .trace_file import describe_state, write_trace
from .verdict import Trace

__all__ = ["Configuration", "Failure", "LifetimeMachine", "Observation", "Subject", "SubjectChoice", "lifetime_machine"]

register_profiles()


def lifetime_machine(
    subject: Model[Any] | Subject | Configuration | SubjectChoice,
    *,
    configuration: Configuration | None = None,
    settings: MachineSettings | str | None = None,
    seed: int | None = None,
    properties: Iterable[str] = (),
    renamed: Mapping[str, str] | None = None,
) -> type["LifetimeMachine"]:
    """A test class: `TestCache = lifetime_machine(CacheModel())`, a subtest for each property.

    `subject`: any model of `outlives.model`, a live scheduler (`Subject`), a `Configuration` of the built-in scheduler,
    or a `SubjectChoice` of an installed vLLM. `configuration`: numbers, policy and routes for a live scheduler and for
    vLLM. `settings`: a profile's name (`quick` unless options say otherwise) or a `MachineSettings`. `renamed`: actions
    of saved counterexamples that have another name now, old to new.

    Raises `Contradiction` for a subject that is none of these, and for a configuration that is not asked for, or that
    asks for what a live scheduler is not; `UnknownName` for settings or properties.
    """
    live = isinstance(subject, SubjectChoice) or (not _is_model(subject) and is_subject(subject))
    if not live and not isinstance(subject, Configuration) and not _is_model(subject):
        raise Contradiction(
            f"lifetime_machine takes a model (initial_states, actions, next_state, properties, within), a subject "
            f"(start, take, observe), a Configuration or a SubjectChoice, not "
            f"{subject if isinstance(subject, type) else type(subject).__name__}."
        )
    if configuration is not None and not live:
        raise Contradiction("configuration= is for a live scheduler, or a SubjectChoice; a model has its own numbers.")
    refuse_what_is_for_the_model(configuration or Configuration())
    if live and not isinstance(subject, SubjectChoice):
        subject = given_model(cast(Subject, subject), configuration or Configuration())
    if isinstance(settings, str):
        settings = machine_profile(settings)
    frame = inspect.currentframe()
    caller = frame.f_back.f_globals.get("__name__", __name__) if frame is not None and frame.f_back else __name__
    members = {
        "__module__": caller,
        "__test__": True,
        "__doc__": f"The lifetime machine over {_title(subject)}.",
        "outlives_subject": subject,
        "outlives_configuration": configuration or Configuration(),
        "outlives_settings": settings,
        "outlives_seed": seed,
        "outlives_properties": tuple(properties),
        "outlives_renamed": dict(renamed or {}),
    }
    return type("LifetimeMachine", (LifetimeMachine,), members)


def _is_model(subject: object) -> bool:
    names = ("initial_states", "actions", "next_state", "properties", "within")
    return not isinstance(subject, type) and all(callable(getattr(subject, name, None)) for name in names)


def _title(subject: object) -> str:
    return given_name(subject) if isinstance(subject, SubjectModel) else type(subject).__name__


class LifetimeMachine(unittest.TestCase):
    """One test: what earlier runs saved first, then the machine; a subtest for each property."""

    outlives_subject: Any = None
    outlives_configuration: Configuration
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
    _before: int | None = None
    _pytest = False

    @pytest.fixture(autouse=True)
    def _outlives(self, request: pytest.FixtureRequest) -> None:
        """What pytest knows, where it is pytest that runs this."""
        from .pytest_plugin import began, keep_told, report_folder

        self._pytest = True
        try:
            self._values = chosen(request.config)
        except OutlivesError as error:
            pytest.fail(f"outlives: {error}", pytrace=False)
        self._name = slug(request.node.nodeid)
        self._told = Told()
        self._subtests = subtests_of(request)
        self._reports = report_folder(request.config)
        self._before = began(request.config)
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
        out = out_of(self._values)
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
                about = replace(subject, properties=self.outlives_properties or subject.properties)
                return saved_rows(out, about, known_of(self._values), self._before)
            if isinstance(subject, SubjectChoice):
                from .pytest_subject import saved_of_vllm

                return saved_of_vllm(subject, out, self.outlives_properties, known_of(self._values), self._before)
            return saved_of_model(subject, out, name, self.outlives_renamed, self._before)

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
            asked_of_it = replace(self.outlives_configuration, properties=self.outlives_properties)
            return run_of_subject(subject, asked_of_it, settings, values, name)
        return run_of_model(subject, settings, values.get("seed", 0), out, name, self.outlives_properties)


def run_of_model(
    model: Model[Any], settings: MachineSettings, seed: int, out: Path, name: str, properties: Iterable[str] = ()
) -> Run:
    """The machine's answers about any model, or live subject. What is violated is saved in a new folder
    `pytest/NAME-0001` below `out`, where the next run finds it. Raises `BadModel`, `UnknownName` and `Unwritable`."""
    wanted = tuple(properties)
    if not wanted and not list(model.properties()):
        raise BadModel(f"{_title(model)} has no property, so nothing is asked of it: properties() gave none.")
    folder = made_folder(out, name)

    live = model if isinstance(model, SubjectModel) else None
    describe = model.describe if isinstance(model, DescribedModel) else describe_state

    def write(trace: Trace, path: Path) -> None:
        about = None if live is None else about_given(live, trace)
        shown = trace if live is None else plain_trace(trace)
        written.append(write_trace(shown, None, path, describe=describe, about=about))

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
                if live is None:
                    shown = explain(result.trace, model=model, engine="machine", files=files)
                else:
                    shown = explain(plain_trace(result.trace), world=live.world, engine="machine", files=files)
                violations.append(replace(shown, itf=read_trace(written[-1]).text()))
    finally:
        with suppress(OSError):
            folder.rmdir()
    return Run(
        title=_title(model),
        results=seen.results,
        violations=tuple(violations),
        not_covered=("anything but these drawn runs",),
        not_reached=tuple(f"action {each} never fired" for each in seen.never_fired),
        provenance={"seed": seed, "settings": settings.name, "actions fired": dict(seen.fired)},
        out=str(folder),
    )


def run_of_subject(
    choice: SubjectChoice, asked: Configuration, settings: MachineSettings, values: Mapping[str, Any], name: str
) -> Run:
    """The machine's answers about an installed vLLM, which runs in a process of its own. Raises `OutlivesError`."""
    from .pytest_subject import heard_run

    folder = made_folder(out_of(values), name)
    try:
        return heard_run(choice, asked, settings, values.get("seed", 0), folder, known_of(values))
    finally:
        with suppress(OSError):
            folder.rmdir()
