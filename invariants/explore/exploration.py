"""What a search found: counts, traces, and the rows of a report that follow from them.

Belongs here: the record `Exploration` and its translation into `Result`s. How it was found is in `breadth.py` and
`interned.py`; both fill in the same record, and tests compare it field by field.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from outlives.model.contract import Property

from ..furthest import Furthest, furthest
from ..verdict import Result, Trace, Verdict

__all__ = ["ENGINE", "ActionCount", "Exploration"]

ENGINE = "exhaustive"

_COMPARED = (
    "states",
    "transitions",
    "levels",
    "expanded",
    "outside",
    "ends",
    "deadlocks",
    "deadlock",
    "actions",
    "situations",
    "broken",
    "traces",
    "stopped",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionCount:
    """How one action (by name) fared over the whole search."""

    fired: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    """Refusals by reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploration:
    """A search, finished or stopped. The same for every engine of this package and any number of workers.

    Only `seconds`, `memory` and `details` depend on the engine and the machine.
    """

    properties: tuple[Property[Any], ...]
    states: int
    """Distinct states, the initial ones included."""
    transitions: int
    """Actions taken, from every state gone on from; into known states and loops too. Refusals are not counted."""
    levels: tuple[int, ...]
    """New states by their distance from an initial state; the last level may be unfinished if `stopped`."""
    expanded: int
    """States gone on from: each of their actions was tried."""
    outside: int
    """States outside the model's boundary: judged, not gone on from."""
    ends: int
    """States in which the model offers no action at all."""
    deadlocks: int
    """States that offer actions, every one of which is refused."""
    deadlock: Trace | None
    """A shortest trace to the first deadlock."""
    actions: Mapping[str, ActionCount]
    """By name, in alphabetical order; an action of the model's table that no state offered is there with zeros."""
    situations: Mapping[str, int]
    """Property -> how often it was put to the test (states or transitions)."""
    broken: Mapping[str, int]
    """Property -> how many states or transitions break it."""
    traces: Mapping[str, Trace]
    """Property -> its shortest trace, the least among the equally short."""
    no_fair_run: tuple[str, ...] = ()
    """Progress properties that could not be judged: the model gives no fair run."""
    stopped: str | None = None
    """None: every state of the scope was seen. Otherwise the bound that ended the search, in words."""
    interrupted: bool = False
    """Stopped by Ctrl-C."""
    left: str = ""
    """Where stopped: an honest estimate of what is left, in words."""
    sides: int = 0
    """Of the rules' conditions, the sides that were taken, as bits; who starts a search counts them, or does not."""
    seconds: float = 0.0
    memory: int = 0
    """Resident bytes of the process at the end."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Engine, rates, tables: plain values for statistics."""

    @property
    def depth(self) -> int:
        """The last level on which a new state was found."""
        return len(self.levels) - 1

    @property
    def complete(self) -> bool:
        """Whether every state of the scope was seen and gone on from."""
        return self.stopped is None

    @property
    def waiting(self) -> int:
        """States found and neither gone on from nor outside the boundary."""
        return self.states - self.expanded - self.outside if self.stopped else 0

    @property
    def never_fired(self) -> tuple[str, ...]:
        """Actions that no reachable state takes: unreached, or behind a guard that is never true."""
        return tuple(name for name, count in self.actions.items() if not count.fired)

    @property
    def coverage(self) -> str:
        """What was covered, in one phrase for a report."""
        size = f"{self.states:,} states, {self.transitions:,} transitions"
        cut = f", {self.outside:,} outside the boundary" if self.outside else ""
        if self.complete:
            return f"every state of the scope: {size}, depth {self.depth}{cut}"
        return f"{size}, every run of {self.searched} actions{cut}; stopped by {self.stopped}"

    @property
    def searched(self) -> int:
        """Every run of up to this many actions was judged."""
        if self.complete:
            return self.depth
        total = 0
        for level, size in enumerate(self.levels):
            total += size
            if total > self.expanded + self.outside:
                return level
        return self.depth

    def statistics(self) -> dict[str, Any]:
        """Everything countable, as plain values in a fixed order, for `--stats` and `--json`."""
        return {
            "complete": self.complete,
            "stopped": self.stopped,
            "left": self.left,
            "states": self.states,
            "transitions": self.transitions,
            "depth": self.depth,
            "levels": list(self.levels),
            "outside": self.outside,
            "ends": self.ends,
            "deadlocks": self.deadlocks,
            "fired": {name: count.fired for name, count in self.actions.items()},
            "refused": {name: dict(count.refused) for name, count in self.actions.items() if count.refused},
            "never_fired": list(self.never_fired),
            "situations": dict(self.situations),
            "broken": dict(self.broken),
            "seconds": round(self.seconds, 3),
            "memory": self.memory,
            **self.details,
        }

    def results(self) -> list[Result]:
        """One row per property."""
        return [self._result(each) for each in self.properties]

    def _result(self, each: Property[Any]) -> Result:
        verdict, note = self._verdict(each)
        return Result(
            engine=ENGINE,
            property=each.name,
            verdict=verdict,
            coverage=self.coverage,
            trace=self.traces.get(each.name),
            note=note,
            details=self._details(each),
        )

    def _verdict(self, each: Property[Any]) -> tuple[Verdict, str]:
        if each.name in self.traces:
            return Verdict.VIOLATED, ""
        if each.name in self.no_fair_run:
            return (
                Verdict.UNKNOWN,
                "the model gives no fair run (fair_action, fair_bound), so progress cannot be judged",
            )
        if self.stopped is not None:
            return Verdict.UNKNOWN, f"stopped by {self.stopped}; left: {self.left}"
        if not self.situations[each.name]:
            return Verdict.VACUOUS, self.at_best(each).note(each.situation_phrase, "take a larger scope")
        return Verdict.EXHAUSTED, ""

    def at_best(self, each: Property[Any]) -> Furthest:
        """How far the search got towards a situation that never arose."""
        return furthest(each, self.properties, lambda names: self.situations[names[-1]])

    def _details(self, each: Property[Any]) -> dict[str, Any]:
        return {
            "states": self.states,
            "transitions": self.transitions,
            "depth": self.depth,
            "situations": self.situations[each.name],
            "broken": self.broken[each.name],
            "seconds": round(self.seconds, 3),
            **({} if self.situations[each.name] else self.at_best(each).plain()),
        }

    def same(self, other: "Exploration") -> Sequence[str]:
        """In which fields two searches of one scope differ, in words; empty where they agree."""
        return [
            f"{name}: {getattr(self, name)!r} and {getattr(other, name)!r}"
            for name in _COMPARED
            if getattr(self, name) != getattr(other, name)
        ]
