"""Every error that outlives raises on purpose: one base class, one subclass per cause.

A message says what is wrong, where, and what to do; an unknown name lists the known ones. The command turns each
of them into one sentence and exit status 2.
"""

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = [
    "BadModel",
    "BadTrace",
    "BadUserFile",
    "Contradiction",
    "OutOfRange",
    "OutlivesError",
    "UnknownName",
    "Unwritable",
]


class OutlivesError(Exception):
    """Base of every error that outlives raises on purpose."""


class UnknownName(OutlivesError):
    """A name (profile, guard, scenario, property, action, ...) that nothing has."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = list(known)
        near = get_close_matches(name, names, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        shown = name if len(name) <= 80 else name[:77] + "..."
        super().__init__(f"unknown {kind} {shown!r}.{hint} Known: {', '.join(names)}.")
        self.kind = kind
        self.name = name


class OutOfRange(OutlivesError):
    """A number outside the range in which it means something."""

    def __init__(self, what: str, value: object, low: int, high: int | None) -> None:
        bound = f"at least {low}" if high is None else f"from {low} to {high}"
        shown = str(value)
        shown = shown if len(shown) <= 40 else shown[:37] + "..."
        super().__init__(f"{what} is {shown}; it must be {bound}.")


class Contradiction(OutlivesError):
    """Two options, or an option and a file, that cannot both hold."""


class BadTrace(OutlivesError):
    """A trace file that cannot be read, or that does not fit the model it names."""


class BadUserFile(OutlivesError):
    """A user's file (profile, fault, known findings) that cannot be loaded or lacks the named object."""


class BadModel(OutlivesError):
    """A model that breaks its contract: next_state raised, changed its argument, or is not deterministic."""


class Unwritable(OutlivesError):
    """A folder or file that cannot be written."""
