"""The pytest plugin: options, the marker and the fixture `outlives`, subtests, and one section of the summary.

Belongs here: what pytest calls. It is loaded by every pytest of an environment that has outlives, so nothing heavy is
imported before a test asks for it: engines, settings and the trace files are `pytest_check`'s. Nothing is kept in
globals, and what workers of xdist tell goes over as plain data.
"""

import time
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .pytest_options import INI_TYPES, OPTIONS

if TYPE_CHECKING:
    from .pytest_check import Checker, Told

_MARK = "outlives(profile=, guard=, assume=, ...): check this scheduler before the body runs; without the fixture \
`outlives` the test fails unless every property holds, a subtest for each property, engine and obligation"
_TOLD: "pytest.StashKey[Told]" = pytest.StashKey()
_FOLDER: "pytest.StashKey[str]" = pytest.StashKey()
_BEGAN: "pytest.StashKey[int]" = pytest.StashKey()


# --- options ----------------------------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """One group, one prefix."""
    group = parser.getgroup("outlives", "outlives: cache lifetimes of a scheduler")
    for name, metavar, phrase in OPTIONS:
        kind = {"type": int} if name == "seed" else {}
        group.addoption(f"--outlives-{name}", metavar=metavar, default=None, help=phrase, **kind)
        parser.addini(f"outlives_{name}", phrase, type=INI_TYPES.get(name, "string"), default=None)
    group.addoption("--outlives-no-replay", action="store_true", help="do not replay saved counterexamples first")
    parser.addini("outlives_replay", "replay saved counterexamples first (default true)", type="bool", default=True)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker, and Hypothesis's profiles where one of ours is asked for."""
    config.addinivalue_line("markers", _MARK)
    config.stash[_BEGAN] = int(getattr(config, "workerinput", {}).get("outlives_began", time.time_ns()))
    if str(config.getoption("--hypothesis-profile", None) or "").startswith("outlives-"):
        from .machine_settings import register_profiles

        register_profiles()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Workers of xdist put their reports where this process says, and take its beginning for theirs."""
    node.workerinput["outlives_folder"] = report_folder(node.config)
    node.workerinput["outlives_began"] = str(began(node.config))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What is wrong with options, files or markers ends the run before a test begins, with one sentence."""
    marked = [item for item in items if item.get_closest_marker("outlives") is not None]
    if marked or any(hasattr(getattr(item, "cls", None), "outlives_subject") for item in items):
        from .pytest_options import asked_of, check_out, chosen, mistakes_are_usage

        with mistakes_are_usage():
            values = chosen(config)
            for item in marked:
                asked_of(item)
            if not config.option.collectonly and not hasattr(config, "workerinput"):  # there the test says it
                check_out(values)
                report_folder(config)


def pytest_itemcollected(item: pytest.Item) -> None:
    """A marked test has its answers before its body runs, whether it wants to see them or not."""
    marked = isinstance(item, pytest.Function) and item.get_closest_marker("outlives") is not None
    if marked and "_outlives_checker" not in item.fixturenames:  # type: ignore[attr-defined]
        item.fixturenames.append("_outlives_checker")  # type: ignore[attr-defined]


def began(config: pytest.Config) -> int:
    """When this run began, in nanoseconds of the clock; for all workers the same."""
    return config.stash[_BEGAN]


def report_folder(config: pytest.Config) -> str:
    """The new folder of this run's reports, made once; empty where none is wanted."""
    given = getattr(config, "workerinput", {}).get("outlives_folder")
    if given is not None:
        return str(given)
    if _FOLDER not in config.stash:
        from .folder import make_folder
        from .pytest_options import chosen, mistakes_are_usage

        with mistakes_are_usage():
            where = chosen(config).get("report")
            config.stash[_FOLDER] = (
                "" if where is None else str(make_folder(Path(where), "pytest", "--outlives-report"))
            )
    return config.stash[_FOLDER]


# --- fixture and marker -----------------------------------------------------------------------------------------------


@pytest.fixture
def outlives(_outlives_checker: "Checker") -> "Checker":
    """The answers about the scheduler that the marker `outlives` names: `outlives.verdict("PROGRESS")`,
    `outlives.violated`, `outlives.run`, and `outlives.check()`, which fails unless every property holds."""
    return _outlives_checker


@pytest.fixture
def _outlives_checker(request: pytest.FixtureRequest) -> "Checker":
    from .pytest_check import checker_of

    return checker_of(request, report_folder(request.config), began(request.config))


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Of a marked test that does not ask for the fixture: check, then run the body."""
    __tracebackhide__ = True
    if pyfuncitem.get_closest_marker("outlives") is not None:
        checker: Any = pyfuncitem.funcargs["_outlives_checker"]
        pyfuncitem.stash[_TOLD] = checker.told
        if "outlives" not in pyfuncitem._fixtureinfo.argnames:
            checker.check()
    return (yield)


def keep_told(item: pytest.Item, told: "Told") -> None:
    """Let the summary know what a test found."""
    item.stash[_TOLD] = told


# --- the summary ------------------------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a test found goes with its report, as plain data."""
    report = yield
    told = item.stash.get(_TOLD, None)
    if told is not None and call.when == "call":
        report.outlives = told.plain()  # type: ignore[attr-defined]
    return report


def _heard(reporter: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    seen: dict[str, Mapping[str, Any]] = {}
    for reports in reporter.stats.values():
        for report in reports:
            told = getattr(report, "outlives", None)
            if isinstance(told, Mapping):
                seen[report.nodeid] = told
    return iter(sorted(seen.items()))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One section: a line for each test, what is violated with the command that takes it again, and the folders."""
    heard = list(_heard(terminalreporter))
    if not heard:
        return
    terminalreporter.section("outlives")
    for name, told in heard:
        terminalreporter.write_line(f"{name}: {told['line']}")
        for more in told["more"]:
            terminalreporter.write_line(f"    {more}")
    folder = report_folder(terminalreporter.config)
    if folder:
        terminalreporter.write_line(f"reports: {folder}")
