"""The writers of files: which there are, how their files end, and one call that writes a run with any of them.

Belongs here: the table. Each writer is a function from a `Run` to text, in a module of its own that is loaded when it
is asked for; the terminal and `--json` are reporters (`reporter`), which take what is said piece by piece.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType

from outlives.model.errors import OutlivesError, UnknownName

from .content import Run, Violation

__all__ = ["WRITERS", "NotOneTrace", "Writer", "itf", "one_violation", "write_report"]


class NotOneTrace(OutlivesError):
    """A report of one trace was asked of a run that has none, or several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """One way to write a run."""

    name: str
    """As it is asked for."""
    ending: str
    """Of the file's name, its dot included."""
    phrase: str
    """What it is for, in a few words."""
    module: str
    """Of this package; its function has the writer's name unless another one is given."""
    function: str = ""

    @property
    def write(self) -> Callable[[Run], str]:
        """The function, loaded now."""
        made: Callable[[Run], str] = getattr(import_module(self.module, __package__), self.function or self.name)
        return made


def _table(*writers: Writer) -> Mapping[str, Writer]:
    return MappingProxyType({writer.name: writer for writer in writers})


WRITERS: Mapping[str, Writer] = _table(
    Writer(name="html", ending=".html", phrase="one page for a browser, without network", module=".html"),
    Writer(name="markdown", ending=".md", phrase="for pull requests and job summaries", module=".markdown"),
    Writer(name="itf", ending=".itf.json", phrase="the trace itself, for replay and other tools", module=".writers"),
    Writer(name="sarif", ending=".sarif", phrase="for code scanning, the trace as a code flow", module=".sarif"),
    Writer(name="junit", ending=".xml", phrase="a test case per property and engine", module=".junit"),
    Writer(
        name="pytest",
        ending=".py",
        phrase="a test that takes the trace again, on the model or on vLLM",
        module=".pytest_file",
        function="pytest_file",
    ),
)
"""Name -> writer, in the order in which they are listed."""


def write_report(run: Run, name: str) -> str:
    """The run, written by the writer of that name: the same run gives the same text.

    Raises `UnknownName`, and `NotOneTrace` where the writer is of one trace and the run is not.
    """
    if name not in WRITERS:
        raise UnknownName("format", name, WRITERS)
    return WRITERS[name].write(run)


def itf(run: Run) -> str:
    """The trace's file in canonical form, byte for byte what `outlives replay` reads. Raises `NotOneTrace`."""
    return one_violation(run, "itf").itf


def one_violation(run: Run, name: str) -> Violation:
    """The one trace of the run, which must have its file's text. Raises `NotOneTrace`."""
    found = run.violations
    if len(found) != 1:
        has = "has none" if not found else f"has {len(found)}: {', '.join(each.property for each in found)}"
        raise NotOneTrace(f"format {name} is of one trace, and this run {has}. Explain one trace file.")
    if not found[0].itf:
        raise NotOneTrace(f"format {name} needs the trace's file, and none was kept of {found[0].property}.")
    return found[0]
