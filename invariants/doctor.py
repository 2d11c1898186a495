"""What this environment has, and what can be checked in it."""

import platform
from importlib.metadata import PackageNotFoundError, version

from .report import DataTable

__all__ = ["environment_table"]

_PACKAGES = (
    ("hypothesis", "machine engine", True),
    ("z3-solver", "proof engine, table, prove --source", True),
    ("pytest", "this project's own tests", True),
    ("rich", "terminal reports", True),
)


def environment_table() -> tuple[DataTable, int]:
    """The table, and the exit status: 2 where something that a command needs is missing."""
    rows = [("Python", platform.python_version(), "everything", "ok")]
    rows.append(("exhaustive engine", "built in", "check, table", "ok"))
    status = 0
    for name, use, needed in _PACKAGES:
        try:
            rows.append((name, version(name), use, "ok"))
        except PackageNotFoundError:
            rows.append((name, "missing", use, f"pip install {name}"))
            status = 2 if needed else status
    return (
        DataTable(
            name="environment",
            title="What this environment has",
            columns=("what", "version", "used by", "state"),
            rows=tuple(rows),
            legend=("real source files are judged by `outlives prove --source PATH`; vLLM need not be installed",),
        ),
        status,
    )
