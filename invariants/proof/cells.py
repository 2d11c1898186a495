"""The headline table's engine: for each guard and each relaxed assumption, proved, violated with a run, or unknown.

Belongs here: the columns (which assumptions, which readers, where items lie) and the judgement of one cell. First the
proof; where it does not go through, bounded checking. No cell is written by hand.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from outlives.model.lifetime import GUARDS, Guard, guard_named
from outlives.model.world import Reader, Switches

from ..verdict import Result, Verdict
from .bounded import MOST_MOVES, SEARCH_BUDGET, Counterexample, Searched, search
from .life import Arithmetic, Assumed, Terms
from .solvers import BUDGET, Tally
from .theorem import ProofReport, prove

__all__ = ["COLUMNS", "ENCODER_RESET", "ROWS", "Cell", "Column", "cell", "cells", "routes_assumed", "row_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One set of assumptions."""

    name: str
    phrase: str
    relaxed: frozenset[str] = frozenset()
    """As on the command line: of A1, A2, A3, A4."""
    reader: Reader = "checked"
    closed: frozenset[str] = frozenset()
    """Closed routes."""
    encoder_reset: int = 0
    """1: the encoder cache may be reset while requests run. Every other route is assumed to be taken at any time."""

    def assumed(self, *, anywhere: bool, early_resume: int = 0) -> Assumed:
        """The same for the relation."""
        return Assumed(
            relaxed=self.relaxed - {"A3"},
            reader=self.reader,
            anywhere=anywhere,
            closed=self.closed,
            early_resume=early_resume,
            encoder_reset=self.encoder_reset,
        )


SEVERAL_STAGES = 6
"""Moves before the read with three steps in flight."""

ENCODER_RESET = "confirmed, encoder cache reset"
"""The row of the table in which the encoder cache may be reset while steps are in flight. There the gate looks from
computed, and a reader that starts lower finds nothing, whatever the guard; so one guard stands for all."""

COLUMNS: tuple[Column, ...] = (
    Column(name="A1-A4", phrase="all four assumptions hold"),
    Column(name="A3 true", phrase="readers begin at their true start", relaxed=frozenset({"A3"}), reader="true"),
    Column(name="A3 any", phrase="readers begin anywhere from confirmed on", relaxed=frozenset({"A3"}), reader="any"),
    Column(name="A1", phrase="notices overtake steps in flight", relaxed=frozenset({"A1"})),
    Column(name="A2", phrase="an item once referenced is not looked at again", relaxed=frozenset({"A2"})),
    Column(name="A4", phrase="one planned encode may be left out", relaxed=frozenset({"A4"})),
)
"""Every column, each for items inside the prompt and for items anywhere."""


def row_of(name: str, column: Column) -> tuple[Guard, Column]:
    """The guard of a row of the table, and the column as that row takes it. Raises `UnknownName`."""
    if name == ENCODER_RESET:
        return GUARDS["confirmed"], replace(column, encoder_reset=1)
    return guard_named(name), column


def routes_assumed(name: str) -> str:
    """Which routes the cells of a row assume to be open, in words."""
    usual = "preemption, abort, prefix-cache resets, failed KV loads, sessions, prefix hits"
    return f"{usual}, encoder-cache resets" if name == ENCODER_RESET else usual


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One judged cell."""

    guard: str
    column: Column
    anywhere: bool
    """Items may reach past the prompt."""
    verdict: Verdict
    proof: ProofReport
    synchronous: ProofReport | None
    """The same without promises; None where the proof did not go through."""
    search: Searched | None
    """None where the proof went through."""

    @property
    def tally(self) -> Tally:
        """Of every obligation, asynchronous and synchronous."""
        return self.proof.tally if self.synchronous is None else self.proof.tally.plus(self.synchronous.tally)

    @property
    def contradicted(self) -> str:
        """An obligation on which solvers contradict each other, and what each says; empty where there is none."""
        reports = (self.proof,) if self.synchronous is None else (self.proof, self.synchronous)
        failed = [each for report in reports for each in report.failed if each.verdict is Verdict.DISAGREE]
        return f"{failed[0].name}: {failed[0].reason}" if failed else ""

    @property
    def found(self) -> Counterexample | None:
        """The shortest run to a miss, where there is one."""
        return self.search.found if self.search is not None else None

    @property
    def coverage(self) -> str:
        """What the verdict covers."""
        if self.verdict is Verdict.PROVED and self.synchronous is not None:
            modes = f"asynchronous {len(self.proof.obligations)}, synchronous {len(self.synchronous.obligations)}"
            return f"unbounded numbers, any depth; obligations: {modes}"
        if self.synchronous is not None:
            return "proved for asynchronous scheduling only"
        if self.search is None:
            return "no obligation was decided"
        if self.found is not None and self.found.depth == 2:
            return f"a run of {len(self.found)} actions; none shorter with numbers up to 8 and two steps in flight"
        if self.found is not None:
            return (
                f"a run of {len(self.found)} actions with {self.found.depth} steps in flight; with two, none was found"
            )
        end = "the solver's budget ran out" if self.search.exhausted else "the bound on actions was reached"
        return f"not proved; no miss within {self.search.searched + 1} actions, where {end}"

    def result(self) -> Result:
        """The cell as a row."""
        where = "anywhere" if self.anywhere else "prompt"
        details: dict[str, Any] = {
            "guard": self.guard,
            "relaxed": sorted(self.column.relaxed),
            "reader": self.column.reader,
            "closed": sorted(self.column.closed),
            "items": where,
            "rlimit": self.proof.costliest if self.search is None else self.search.rlimit,
        }
        if self.found is not None:
            details["actions"] = [f"{move.name}({move.number})" for move in self.found.moves]
            details["item"] = [self.found.start, self.found.end]
            details["prompt"] = self.found.prompt
        failed = self.proof.failed or (self.synchronous.failed if self.synchronous is not None else ())
        return Result(
            engine="proof",
            property=f"OUTLIVES: {self.guard}, {self.column.name}, items {where}",
            verdict=self.verdict,
            coverage=self.coverage,
            note=f"the proof stops at {failed[0].name}" if failed and self.found is None else "",
            details=details,
        )


def cell(
    guard: Guard,
    column: Column,
    *,
    anywhere: bool,
    arithmetic: Arithmetic | None = None,
    switches: Switches | None = None,
    most_moves: int = MOST_MOVES,
    budget: int = BUDGET,
    search_budget: int = SEARCH_BUDGET,
    solvers: Sequence[str] = ("z3",),
) -> Cell:
    """Judge one cell: by induction, else by a search for a shortest run to a miss.

    `switches` of a release: what it does on its routes; None: as `repaired`. Proved is proved for asynchronous and for
    synchronous scheduling, with one token sampled per step or none (diffusion). Encoder-decoder models share nothing,
    and are not the relation's. Each of the `solvers` decides each obligation; the search, whose run is taken again on
    the model, is Z3's alone.
    """
    rules = Arithmetic() if arithmetic is None else arithmetic
    # The proof also covers requests that resume while stale outputs are in flight, which the search leaves out; with
    # notices out of order it does not, and there are no stale outputs where nothing is preempted.
    early = 0 if "A1" in column.relaxed else 1
    assumed = column.assumed(anywhere=anywhere, early_resume=early)
    if switches is not None:
        assumed = assumed.behaving(switches)
    terms = Terms(guard=guard, arithmetic=rules, assumed=assumed)
    report = prove(terms, budget=budget, until_failure=True, solvers=solvers)
    searched = synchronous = None
    verdict = report.verdict
    if verdict is Verdict.PROVED:
        without_promises = replace(terms, assumed=replace(assumed, asynchronous=0))
        synchronous = prove(without_promises, budget=budget, until_failure=True, solvers=solvers)
        verdict = synchronous.verdict
    elif verdict is Verdict.UNKNOWN:
        searched = search(terms, most_moves=most_moves, budget=search_budget)
        if searched.found is None and most_moves >= SEVERAL_STAGES:
            # Nothing with two steps in flight, as on one stage: several pipeline stages have more.
            deeper = search(terms, depth=3, most_moves=SEVERAL_STAGES, budget=search_budget)
            searched = deeper if deeper.found is not None else searched
        if searched.found is not None:
            verdict = Verdict.VIOLATED
    return Cell(
        guard=guard.name,
        column=column,
        anywhere=anywhere,
        verdict=verdict,
        proof=report,
        synchronous=synchronous,
        search=searched,
    )


ROWS: tuple[str, ...] = (*GUARDS, ENCODER_RESET)
"""Every row of the table: the guards, and the one in which the encoder cache may be reset."""


def cells(
    guards: Iterable[Guard] = tuple(GUARDS.values()),
    columns: Iterable[Column] = COLUMNS,
    *,
    arithmetic: Arithmetic | None = None,
) -> Iterator[Cell]:
    """Judge every guard in every column, for items inside the prompt and for items anywhere, one after the other."""
    columns = tuple(columns)
    for guard in guards:
        for column in columns:
            for anywhere in (False, True):
                yield cell(guard, column, anywhere=anywhere, arithmetic=arithmetic)
