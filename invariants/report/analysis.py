"""What is said about a trace beside its story: the records, without how they are found out.

Belongs here: data alone. `whatif` finds the other runs (guards, numbers); `facts` the state of guard and properties.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Analysis", "Counterfactual", "Freedom", "GuardLine", "Neighbour", "StepFacts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardLine:
    """The free condition asked of one item after one step, with its numbers."""

    request: str
    item: int
    guard: str
    inequality: str
    """With numbers: `2 + 1 <= 2 - 0`."""
    holds: bool | None
    """Whether it lets the item go; None where the guard does not say it in an inequality."""
    held: bool
    """Whether the request references the item after the step."""

    def words(self) -> str:
        """`r0 item0: 2 + 1 <= 2 - 0 is false`."""
        truth = "" if self.holds is None else f" is {'true' if self.holds else 'false'}"
        return f"{self.request} item{self.item}: {self.inequality}{truth}"

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFacts:
    """What holds after one step."""

    step: int
    guards: tuple[GuardLine, ...] = ()
    judged: Mapping[str, str] = field(default_factory=dict)
    """Property -> `holds`, `not asked` (its situation did not arise in this step) or `violated`."""

    def violated(self) -> list[str]:
        """The properties that are false there."""
        return [name for name, state in self.judged.items() if state == "violated"]

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {"step": self.step, "guards": [each.plain() for each in self.guards], "judged": dict(self.judged)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterfactual:
    """The same actions under another guard."""

    guard: str
    own: bool
    """The guard of the trace itself."""
    outcome: str
    """In words: `violated at step 6`, `passes`, `violates PROGRESS at step 3`, ..."""
    violated: bool
    """Whether the property of the trace is violated."""
    differs_at: int | None
    """The first step after which the state is another one than in the trace, of its fair run too; None: nowhere."""
    difference: str
    """What differs there first, in words; empty where nothing does."""
    price: int
    """Slot-steps: slots of referenced entries, summed over the steps, beyond those of the trace itself."""

    def first_other(self) -> str:
        """Where it first goes another way: `from step 4: r0.references is item0:k0, not none`."""
        if self.differs_at is None:
            return "nothing differs"
        return f"from step {self.differs_at}: {self.difference}"

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Freedom:
    """A number or name of the trace that can be another one, and the property is violated all the same."""

    name: str
    """`step 3, reject: accepted` or `setup: budget`."""
    value: int | str
    still: tuple[int | str, ...]
    """Other values that were tried and violate it at the same step."""
    tried: tuple[int | str, ...]
    """All other values that were tried."""

    @property
    def any(self) -> bool:
        """Every value that was tried will do."""
        return len(self.still) == len(self.tried)

    def words(self) -> str:
        """`setup: slots 6: fails alike with 5 to 9`, `setup: depth 2: fails alike with any (tried: 1 to 6)`."""
        told = _listed(sorted({*self.still, self.value}, key=lambda each: (isinstance(each, str), each)))
        alike = f"any (tried: {told})" if self.any else _listed(list(self.still))
        return f"{self.name} {self.value}: fails alike with {alike}"

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {"name": self.name, "value": self.value, "still": list(self.still), "tried": list(self.tried)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """The nearest run that passes: one number is another one."""

    name: str
    old: int | str
    new: int | str
    note: str
    """What becomes of the run then: `every step is taken`, or what is refused."""

    def words(self) -> str:
        """`setup: look-ahead 0 instead of 1 passes (every step is taken)`."""
        return f"{self.name} {self.new} instead of {self.old} passes ({self.note})"

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """Everything of that kind about one trace. Empty where the trace is of a model that is not ours."""

    facts: tuple[StepFacts, ...] = ()
    counterfactuals: tuple[Counterfactual, ...] = ()
    freedoms: tuple[Freedom, ...] = ()
    neighbour: Neighbour | None = None
    notes: tuple[str, ...] = ()
    """What could not be found out, and why."""

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "facts": [each.plain() for each in self.facts],
            "counterfactuals": [each.plain() for each in self.counterfactuals],
            "freedoms": [each.plain() for each in self.freedoms],
            "neighbour": None if self.neighbour is None else self.neighbour.plain(),
            "notes": list(self.notes),
        }


def _listed(values: list[int | str]) -> str:
    """Names as they are; numbers ascending, runs of them as `5 to 9`."""
    parts: list[str] = [value for value in values if isinstance(value, str)]
    runs: list[list[int]] = []
    for value in sorted(value for value in values if isinstance(value, int)):
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    parts += [part for run in runs for part in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run))]
    return ", ".join(parts)
