"""The machine on a real scheduler, in rounds: with `--known`, again with what was found, until nothing new shows.

Belongs here: when another round follows, and several rounds as one answer. A run of the machine stops judging a
property at its first violation. So where known findings are passed over, what was found is passed over as well, in a
round that draws the same runs; the last round meets nothing new, and the file that comes of it passes with that seed.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .known import Known, fingerprint_of
from .situations import is_situation
from .subject.plain import plain_trace
from .verdict import Result, Verdict

if TYPE_CHECKING:
    from .machine import MachineRun

__all__ = ["MOST_ROUNDS", "Rounds", "machine_rounds"]

MOST_ROUNDS = 25
"""Rounds after which a run ends, whether or not the last one met something new."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """The rounds of one run, first to last."""

    runs: "Sequence[MachineRun]"
    complete: bool | None
    """The last one found nothing that was not known by then; None: there is one round, which passes nothing over."""

    def results(self) -> tuple[Result, ...]:
        """A row for each property, as its last round has it; of one that was violated, a row for each finding."""
        names = [result.property for result in self.runs[-1].results if not is_situation(result.property)]
        rows: list[Result] = []
        for name in names:
            mine = [result for run in self.runs for result in run.results if result.property == name]
            violated = [(at, each) for at, each in enumerate(mine, 1) if each.verdict is Verdict.VIOLATED]
            rows += [_of_round(at, each) for at, each in violated] or [mine[-1]]
        return tuple(rows)

    def counts(self, of: str) -> dict[str, int]:
        """`fired` or `situations`, over all rounds."""
        total: Counter[str] = Counter()
        for run in self.runs:
            total.update(getattr(run, of))
        return {name: total[name] for name in getattr(self.runs[-1], of)}

    def total(self, of: str) -> float:
        """`cases`, `taken`, `calls` or `seconds`, over all rounds."""
        return float(sum(getattr(run, of) for run in self.runs))


def _of_round(at: int, result: Result) -> Result:
    if result.trace is None:
        return result
    notes = [f"round {at}, behind what was found before"] if at > 1 else []
    notes += [result.note] if result.note else []
    return replace(result, trace=plain_trace(result.trace), note="; ".join(notes))


def machine_rounds(
    run: "Callable[[int, Known | None], MachineRun]", known: Known | None, scenario: str | None
) -> Rounds:
    """Run the machine (`run` is given the round's number and what to pass over); without known findings once, else
    until a round finds nothing new, is interrupted, or is the last one."""
    runs: list[MachineRun] = []
    while True:
        runs.append(run(len(runs) + 1, known))
        if known is None or runs[-1].interrupted:
            return Rounds(runs, None if known is None else False)
        found = {
            fingerprint_of(plain_trace(result.trace), scenario)
            for result in runs[-1].results
            if result.verdict is Verdict.VIOLATED and result.trace is not None
        }
        new = sorted(found.difference(known.findings))
        if not new or len(runs) == MOST_ROUNDS:
            return Rounds(runs, not new)
        known = replace(known, findings=(*known.findings, *new))
