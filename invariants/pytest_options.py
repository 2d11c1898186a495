"""The plugin's options: where a value may come from, which wins, and what a mistake is told as.

Belongs here: the table of options, the values that hold for a run, and what a marker asks. In the order in which they
win: the marker, the command line, the ini file, `[tool.outlives]` of `pyproject.toml`. Light at import.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from outlives.model.errors import Contradiction, OutlivesError, UnknownName

from .project import KEYS, BadProject, Project, read_project

if TYPE_CHECKING:
    from .configuration import Configuration
    from .machine_settings import MachineSettings

__all__ = [
    "INI_TYPES",
    "OPTIONS",
    "Asked",
    "asked_of",
    "check_out",
    "chosen",
    "machine_settings",
    "made_folder",
    "mistakes_are_usage",
    "out_of",
    "runs_of",
]

OPTIONS: tuple[tuple[str, str, str], ...] = (
    ("profile", "NAME", "the profile of tests marked outlives, unless the marker says another"),
    ("guard", "NAME", "their free condition"),
    ("relax", "A1,A3", "their relaxed assumptions"),
    ("without", "ROUTE,ROUTE", "their closed routes"),
    ("settings", "NAME", "how hard the machine tries: quick (default), ci, nightly or debug"),
    ("seed", "N", "the seed of everything random (default 0)"),
    ("known", "FILE", "known findings: they do not fail a test"),
    ("out", "DIR", "folder of traces, and of counterexamples that are replayed first (default .outlives)"),
    ("report", "DIR", "write a report of each test into a new folder in it"),
    ("formats", "NAME,NAME", "formats of these reports (default html,markdown,sarif,junit)"),
    ("database", "DIR", "folder of Hypothesis's examples (default: hypothesis beside the runs)"),
    ("artifacts", "OWNER/REPO", "also read the examples that this repository's jobs uploaded; never written"),
    ("observe", "DIR", "write Hypothesis's observations into this folder"),
)
"""Name without prefix, metavariable and help; each is an ini value too, `outlives_NAME`."""
INI_TYPES: Mapping[str, Any] = {"seed": "int", "relax": "args", "without": "args", "formats": "args"}

_CHOSEN: "pytest.StashKey[Mapping[str, Any]]" = pytest.StashKey()
_SUBJECT_FIELDS = ("profile", "guard", "fault", "relax", "reader", "without", "policy", "scenario")
"""Keys of the project that say what a marked test is about, if its marker does not."""
_MORE_FIELDS = ("synchronous", "diffusion", "encoder_decoder", "items_anywhere", "split", "arrivals", "numbers")
_ENGINES = ("machine", "exhaustive", "proof")
DEFAULT_SETTINGS = "quick"
PLUGIN = "outlives.invariants.pytest_plugin"
DEFAULT_OUT = ".outlives"


@contextmanager
def mistakes_are_usage() -> Iterator[None]:
    """A mistake of the user ends pytest with one sentence (exit status 4, as for pytest's own options)."""
    try:
        yield
    except OutlivesError as error:
        raise pytest.UsageError(f"outlives: {error}") from None


def chosen(config: pytest.Config) -> Mapping[str, Any]:
    """What holds in this run: the project's keys under the ini values under the command line.

    Raises `BadProject` and what else is wrong, naming the option, or the file and the key.
    """
    if _CHOSEN not in config.stash:
        if not config.pluginmanager.has_plugin(PLUGIN) and not config.pluginmanager.has_plugin("outlives"):
            raise Contradiction(f"this pytest has not loaded the plugin of outlives; add -p {PLUGIN}.")
        project = read_project(config.rootpath)
        values = {name: value for name, value in project.values.items() if KEYS[name].kind != "span"}
        from_project = dict(values)
        values |= dict(_from_ini(config))
        values |= dict(_from_options(config))
        _check_values(config, project, from_project, values)
        config.stash[_CHOSEN] = values
    return config.stash[_CHOSEN]


def _from_ini(config: pytest.Config) -> Iterator[tuple[str, Any]]:
    for name in [name for name, *_ in OPTIONS] + ["replay"]:
        try:
            value = config.getini(f"outlives_{name}")
        except (TypeError, ValueError, pytest.UsageError) as error:
            raise BadProject(f"{config.inipath}, outlives_{name}: {error}") from None
        if name == "replay":
            if value is False:
                yield name, False
        elif value not in (None, "", []):
            if isinstance(value, list):
                value = tuple(part for text in value for part in text.split(",") if part)
            elif KEYS[name].path and config.inipath is not None and (KEYS[name].path == "path" or ".py:" in value):
                value = str(config.inipath.parent / value)
            yield name, value


def _from_options(config: pytest.Config) -> Iterator[tuple[str, Any]]:
    for name, *_ in OPTIONS:
        value = config.getoption(f"--outlives-{name}", None)
        if value is not None:
            yield name, tuple(filter(None, value.split(","))) if KEYS[name].kind == "texts" else value
    if config.getoption("--outlives-no-replay", False):
        yield "replay", False


def _check_values(config: pytest.Config, project: Project, from_project: Mapping[str, Any],
                  values: Mapping[str, Any]) -> None:  # fmt: skip
    """Whether the values mean something; who said them is named."""
    from .machine_database import check_layers
    from .report.writers import WRITERS

    def where(name: str) -> str:
        if config.getoption(f"--outlives-{name}", None) is not None:
            return f"--outlives-{name}"
        if from_project.get(name) == values.get(name):
            return project.place(name)
        return f"{config.inipath}, outlives_{name}"

    for name in values.get("formats", ()):
        if name not in WRITERS:
            raise BadProject(f"{where('formats')}: {UnknownName('format', name, WRITERS)}")
    if "settings" in values:
        try:
            machine_settings(values)
        except UnknownName as error:
            raise BadProject(f"{where('settings')}: {error}") from None
    for name in ("database", "artifacts"):
        if name in values:
            try:
                check_layers(name, values[name])
            except OutlivesError as error:
                raise BadProject(f"{where(name)}: {error}") from None
    if "known" in values and not Path(values["known"]).is_file():
        raise BadProject(f"{where('known')}: there is no file {values['known']}.")
    try:
        _configured(values)
    except OutlivesError as error:
        names = [name for name in _SUBJECT_FIELDS if name in values]
        guilty = [name for name in names if getattr(error, "name", None) in _texts(values[name])] or names
        raise BadProject(f"{', '.join(where(name) for name in guilty)}: {error}") from None


def _texts(value: Any) -> Sequence[str]:
    return value if isinstance(value, tuple) else (str(value),)


def _configured(values: Mapping[str, Any]) -> "Configuration":
    """The configuration that the run's own values say."""
    from .configuration import Configuration

    made = Configuration(**{name: values[name] for name in _SUBJECT_FIELDS if name in values})
    made.world()
    return made


def machine_settings(values: Mapping[str, Any]) -> "MachineSettings":
    """How hard the machine tries in this run, and where it keeps what fails. Raises `UnknownName`."""
    from .machine_settings import machine_profile

    made = machine_profile(values.get("settings", DEFAULT_SETTINGS))
    if "cases" in values:
        made = made.changed(cases=values["cases"])
    database = values.get("database") or out_of(values) / "hypothesis"
    observe = values.get("observe")
    return made.changed(
        database=Path(database),
        artifacts=values.get("artifacts"),
        observe=None if observe is None else Path(observe),
    )


def out_of(values: Mapping[str, Any]) -> Path:
    """The folder of all runs."""
    return Path(values.get("out", DEFAULT_OUT))


def runs_of(out: Path) -> Path:
    """Where the plugin's own runs lie in it."""
    return out / "pytest"


def made_folder(out: Path, name: str) -> Path:
    """The new folder of one test's run. Raises `Unwritable`."""
    from .folder import make_folder

    return make_folder(runs_of(out), name, "--outlives-out")


def check_out(values: Mapping[str, Any]) -> None:
    """Whether tests can have their folders. Raises `Unwritable`."""
    from .folder import check_folder

    check_folder(runs_of(out_of(values)), "--outlives-out")


# --- what a marker asks -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a test asks: the scheduler, by whom it is judged, and how hard."""

    configuration: "Configuration"
    engines: tuple[str, ...]
    values: Mapping[str, Any]
    """The run's values, with the marker's over them."""


def asked_of(item: Any) -> Asked:
    """What the markers of a test ask; an inner marker wins over an outer one. Raises `Contradiction` with the test."""
    from outlives.model.world import ASSUMPTIONS

    from .configuration import Configuration

    run = chosen(item.config)
    given: dict[str, Any] = {}
    known = ("assume", "engines", "properties", "settings", "cases", "seed", "known", *_SUBJECT_FIELDS, *_MORE_FIELDS)
    for mark in reversed(list(item.iter_markers("outlives"))):
        if mark.args:
            raise Contradiction(f"{item.nodeid}: the marker outlives takes named arguments only: {', '.join(known)}.")
        for name in mark.kwargs:
            if name not in known:
                raise Contradiction(f"{item.nodeid}: {UnknownName('argument of the marker outlives', name, known)}")
        given |= mark.kwargs
    try:
        for name in ("relax", "without", "properties", "engines", "assume"):
            if isinstance(given.get(name), str):
                given[name] = tuple(part.strip() for part in given[name].split(",") if part.strip())
        values = dict(run) | {name: given[name] for name in ("settings", "cases", "seed", "known") if name in given}
        fields = {name: run[name] for name in _SUBJECT_FIELDS if name in run}
        if "property" in run:
            fields["properties"] = run["property"]
        assume = given.pop("assume", None)
        if assume is not None:
            if "relax" in given:
                raise Contradiction("assume and relax contradict: each says which assumptions hold. Drop one of them.")
            for name in assume:
                if name not in ASSUMPTIONS:
                    raise UnknownName("assumption", name, ASSUMPTIONS)
            given["relax"] = tuple(name for name in ASSUMPTIONS if name not in assume)
        fields |= {name: given[name] for name in (*_SUBJECT_FIELDS, *_MORE_FIELDS, "properties") if name in given}
        if "numbers" in fields:
            fields["numbers"] = {
                name.replace("-", "_"): (span, span) if isinstance(span, int) else tuple(span)
                for name, span in fields["numbers"].items()
            }
        engines = tuple(given.get("engines", run.get("engine", _ENGINES)))
        for name in engines:
            if name not in _ENGINES:
                raise UnknownName("engine", name, _ENGINES)
        machine_settings(values)
        configuration = Configuration(**fields)
        configuration.world()
    except (OutlivesError, TypeError, ValueError, AttributeError) as error:
        raise Contradiction(f"{item.nodeid}: {error}") from None
    return Asked(configuration=configuration, engines=engines, values=values)
