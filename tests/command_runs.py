"""How the tests run the command: in this process, with what it wrote."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from outlives.invariants.command import main

__all__ = ["Run", "Said"]


class Said(NamedTuple):
    """What one command answered."""

    status: int
    out: str
    err: str

    @property
    def object(self) -> dict[str, Any]:
        """The JSON object on standard output, which must be the only thing there."""
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value


Run = Callable[..., Said]


def runner(capsys: pytest.CaptureFixture[str]) -> Run:
    """A function that runs `outlives ARGUMENTS`."""

    def run(*arguments: str | Path) -> Said:
        capsys.readouterr()
        status = main([str(each) for each in arguments])
        written = capsys.readouterr()
        return Said(status, written.out, written.err)

    return run
