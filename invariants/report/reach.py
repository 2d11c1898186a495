"""How much of the rules a run saw, as data: sides of conditions, reasons of refusals, and what was not reached.

Belongs here: the record that every writer shows, and its words. Where the counts come from is `invariants/reached.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Reach"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What a run took of the rules' conditions, and of the reasons for which the model refuses an action. None of it
    changes a verdict: a condition may be there for another profile, a mode, a route that is closed."""

    sides: int
    """Sides that were taken, ..."""
    of_sides: int
    """... of two for each condition; those that a profile or the assumptions answer once and for all are not in it."""
    reasons: int
    """Reasons that were given, ..."""
    of_reasons: int
    """... of those that the model has for the actions of this configuration."""
    untaken: tuple[str, ...]
    """Conditions of which a side was not taken, a line each."""
    ungiven: tuple[str, ...]
    """Reasons that were not given, a line each."""
    declared: tuple[str, ...] = ()
    """Conditions that ask only what the profile and the assumptions say: neither side is counted."""
    not_counted: tuple[str, ...] = ()
    """Rules of which no condition could be counted, and what else the counts do not speak of."""
    refused: Mapping[str, Mapping[str, int]]
    """Action -> reason -> how often."""
    listed: bool = False
    """Whether the terminal lists what was not reached, too."""

    def words(self) -> str:
        """`Branches: 412 of 480 sides taken; refusals: 21 of 26 reasons given`."""
        taken = f"Branches: {self.sides:,} of {self.of_sides:,} sides taken"
        given = f"refusals: {self.reasons:,} of {self.of_reasons:,} reasons given"
        return f"{taken}; {given}" + ("; some rules not counted" if self.not_counted else "")

    def lists(self) -> tuple[tuple[str, Sequence[str]], ...]:
        """Titles, with what was not reached under each."""
        parts = (
            ("Refusals that were never given", self.ungiven),
            ("Conditions of which a side was never taken", self.untaken),
            ("Conditions that the profile and the assumptions decide, so that neither side is counted", self.declared),
            ("Rules whose conditions are not counted", self.not_counted),
        )
        return tuple((title, lines) for title, lines in parts if lines)

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "sides_taken": self.sides,
            "sides": self.of_sides,
            "sides_not_taken": list(self.untaken),
            "conditions_declared": list(self.declared),
            "not_counted": list(self.not_counted),
            "reasons_given": self.reasons,
            "reasons": self.of_reasons,
            "reasons_not_given": list(self.ungiven),
            "refused": {action: dict(reasons) for action, reasons in self.refused.items()},
        }
