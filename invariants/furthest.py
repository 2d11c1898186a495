"""How far a run got towards a situation that it never met, and what to raise: the words of every `vacuous`.

Belongs here: from what was counted to a sentence and to plain values. What comes before what, each property says itself
(`Property.towards`), so that a model of one's own is told the same; how runs are counted is the engines' affair.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from outlives.model.contract import Property

__all__ = ["Furthest", "Met", "furthest"]


@dataclass(frozen=True, slots=True)
class Furthest:
    """The situations on the way to one that never arose, up to the first that is missing."""

    stages: tuple[tuple[str, int], ...]
    """What happened, in words, and how often it did together with all before it; the last one never."""
    of: int | None
    """How many runs there were; None: what was counted are times, in whatever run."""
    more: str
    """What to raise, for the last one to happen."""

    def words(self) -> str:
        """`at best: a step left in 50 of 50 runs, an item was encoded in none`, or `a step left 9 times, ... never`."""
        told = []
        for place, (phrase, times) in enumerate(self.stages):
            of = f" of {_counted(self.of, 'run')}" if place == 0 and self.of is not None else ""
            if self.of is None:
                told.append(f"{phrase} {_counted(times, 'time') if times else 'never'}")
            else:
                told.append(f"{phrase} in {f'{times:,}' if times else 'none'}{of}")
        return f"at best: {', '.join(told)}"

    def note(self, situation: str, otherwise: str) -> str:
        """Why a verdict is vacuous: that it never happened, how far it got, and what to raise, or to do in general."""
        way = f"{self.words()}; " if len(self.stages) > 1 or self.stages[0][0] != situation else ""
        more = f"raise {self.more}, or " if self.more else ""
        return f"it never happened that {situation}; {way}{more}{otherwise}"

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        unit = "times" if self.of is None else "runs"
        told: dict[str, Any] = {"at_best": [{"situation": phrase, unit: times} for phrase, times in self.stages]}
        return told | ({} if self.of is None else {"runs": self.of}) | {"raise": self.more}


def furthest(
    prop: Property[Any],
    known: Iterable[Property[Any]],
    together: Callable[[Sequence[str]], int],
    *,
    of: int | None = None,
) -> Furthest:
    """How far it went towards the situation of `prop`. `together`: how often all of these arose, of the names of
    `known` properties; in how many of `of` runs, or how many times."""
    by_name = {each.name: each for each in known}
    stages: list[tuple[str, int]] = []
    names: list[str] = []
    more = ""
    for stage in (*(by_name[name] for name in prop.towards if name in by_name), prop):
        names.append(stage.name)
        times = together(names)
        stages.append((stage.situation_phrase, times))
        more = stage.more
        if not times:
            break
    return Furthest(tuple(stages), of, more)


@dataclass(slots=True)
class Met:
    """How many runs met which situations together. Rounds follow each other, each with properties of its own."""

    rounds: list[tuple[tuple[str, ...], Counter[int]]] = field(default_factory=list)

    def begin(self, names: Iterable[str]) -> None:
        """A round that judges these properties, in this order."""
        self.rounds.append((tuple(names), Counter()))

    def add(self, situations: int) -> None:
        """A run that met these, as bits in that order."""
        self.rounds[-1][1][situations] += 1

    def together(self, names: Sequence[str]) -> int:
        """In how many runs the situations of all of these properties arose."""
        count = 0
        for judged, runs in self.rounds:
            if set(names) <= set(judged):
                wanted = sum(1 << judged.index(name) for name in names)
                count += sum(times for met, times in runs.items() if met & wanted == wanted)
        return count


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
