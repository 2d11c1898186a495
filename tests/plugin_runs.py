"""How the tests of the plugin run pytest: in a process and a folder of its own, with the plugin of this checkout; and
the test files that they give it."""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

__all__ = ["COUNTER", "FINE", "STUCK", "Ran", "Runs", "marked", "plugin_arguments", "pytest_runs"]

COUNTER = """
from outlives.invariants.testing import lifetime_machine
from toy_models import CounterModel
TestCounter = lifetime_machine(CounterModel(faulty={faulty}), properties=["BELOW-LIMIT"])
"""
MARKED = """
import pytest
@pytest.mark.outlives({arguments})
def test_marked({fixture}):
    {body}
"""
STUCK = 'profile="0.24.0", scenario="gap-one", engines="exhaustive"'
FINE = 'profile="0.33.0", scenario="gap-one", engines="exhaustive"'


def marked(arguments: str, fixture: str = "", body: str = "pass") -> str:
    return MARKED.format(arguments=arguments, fixture=fixture, body=body)


class Ran(NamedTuple):
    """What one run of pytest answered."""

    status: int
    out: str

    def summary(self) -> list[str]:
        """The lines of the plugin's section."""
        lines = self.out.splitlines()
        begins = [place for place, line in enumerate(lines) if line.strip("= ") == "outlives" and line[0] == "="]
        assert len(begins) == 1, self.out
        rest = [line for line in lines[begins[0] + 1 :] if line]
        return rest[: next(place for place, line in enumerate(rest) if line.startswith("=="))]


Runs = Callable[..., Ran]


def plugin_arguments() -> list[str]:
    """The option that loads the plugin, where the environment's installed outlives does not bring it."""
    return [] if _brings_it() else ["-p", "outlives.invariants.pytest_plugin"]


@cache
def _brings_it() -> bool:
    """Asked in another folder: a checkout has the metadata of its own editable install beside it."""
    names = "import importlib.metadata as m; print(*(each.name for each in m.entry_points(group='pytest11')))"
    with TemporaryDirectory() as folder:
        said = subprocess.run([sys.executable, "-c", names], cwd=folder, capture_output=True, text=True, check=True)
    return "outlives" in said.stdout.split()


def pytest_runs(folder: Path) -> Runs:
    """A function that runs `pytest ARGUMENTS` in the folder; `tests/` is importable there, for the toy models."""

    def run(*arguments: str, file: str | None = None, **environment: str) -> Ran:
        if file is not None:
            (folder / "test_it.py").write_text(file, encoding="utf-8")
        path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "CI", "GITHUB"))}
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *plugin_arguments(), *arguments]
        done = subprocess.run(
            command,
            cwd=folder,
            env={**plain, "PYTHONPATH": path, "COLUMNS": "200", "NO_COLOR": "1", **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        return Ran(done.returncode, done.stdout + done.stderr)

    return run
