"""What this environment has, and what can be checked in it."""

import platform
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import TYPE_CHECKING

from .report import DataTable

if TYPE_CHECKING:
    from .subject_jobs import SubjectFacts

__all__ = ["environment_table", "has_vllm"]

_PACKAGES = (
    ("hypothesis", "machine engine", True),
    ("z3-solver", "proof engine, table, prove --source", True),
    ("pytest", "this project's own tests", True),
    ("rich", "terminal reports", True),
    ("cvc5", "prove, as a second solver", False),
)
_REAL = "check, conform and replay of the real scheduler"


def has_vllm() -> bool:
    """Whether there is a package of that name, which need not work; nothing is imported."""
    try:
        found = find_spec("vllm")
    except (ImportError, ValueError):
        return False
    return found is not None and found.origin is not None  # a folder of that name alone is no package


def environment_table(ask: "Callable[[], SubjectFacts | str]") -> tuple[DataTable, int]:
    """The table, and the exit status: 2 where something that a command needs is missing. vLLM is not needed; where it
    is there, `ask` loads it and answers what it is, or what is wrong with it."""
    rows = [("Python", platform.python_version(), "everything", "ok")]
    rows.append(("exhaustive engine", "built in", "check, table", "ok"))
    status = 0
    for name, use, needed in _PACKAGES:
        try:
            rows.append((name, version(name), use, "ok"))
        except PackageNotFoundError:
            rows.append((name, "missing", use, f"pip install {name}"))
            status = 2 if needed else status
    if has_vllm():
        facts = ask()
        rows += [("vllm", "broken", _REAL, facts)] if isinstance(facts, str) else _real_rows(facts)
    else:
        rows.append(("vllm", "not installed", _REAL, "not needed for the model; docs/vllm.md says how"))
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


def _real_rows(facts: "SubjectFacts") -> list[tuple[str, str, str, str]]:
    rows = [("vllm", facts.version, _REAL, f"read as {facts.read_as()}")]
    rows += [(f"vllm, {how}", facts.version, name, "ok") for how, name in facts.classes.items()]
    rows += [(f"vllm, route {route}", facts.version, "-", why) for route, why in facts.closed.items()]
    rows.append(("vllm, prefix caching", facts.version, "-", facts.prefix_caching))
    rows += [("vllm, not observed", facts.version, "-", each) for each in facts.unobserved]
    return rows
