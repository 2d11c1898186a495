"""`outlives table`: every guard under every set of assumptions, each cell judged by two engines, none by hand.

Belongs here: the small setups that the exhaustive engine visits whole for a cell, the combination with the proof and
bounded checking, and the traces that are written. Cells are independent pieces of work (see `workers`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from outlives.model.profiles import PROFILES
from outlives.model.setup import Item, RequestSetup, Setup, key_name, routes_left_out
from outlives.model.world import World

from .configuration import Configuration
from .explore import Bounds, breadth_first
from .proof.cells import COLUMNS, ENCODER_RESET, ROWS, Column, cell, routes_assumed, row_of
from .proof.on_model import rerun, world_of
from .proof.solvers import Tally
from .proof.weakest import Weakest
from .report import Cell, Reporter
from .report.tables import headline_table, tally_notes
from .table_stuck import BegunIn, Stuck, judge_progress
from .table_weakest import weakest_jobs, weakest_table
from .trace_file import write_trace
from .verdict import Result, Trace, Verdict, exit_status
from .workers import Job, Outcome, Tell, ordered

__all__ = ["TABLE_SETUPS", "Judged", "judge_cell", "judge_table"]

_GATHER = "GATHER-AFTER-FREE"
_PROFILE = "repaired"


def _setup(items: tuple[int, int], prompt: int, outputs: int, budget: int, **numbers: Any) -> Setup:
    start, end = items
    item = Item(start, end - start, key_name(0), end - start)
    return Setup((RequestSetup(prompt, outputs, (item,)),), slots=item.size, budget=budget)._replace(**numbers)


TABLE_SETUPS = {
    False: (
        _setup((0, 3), 3, 4, 2, drafts=2),
        _setup((0, 2), 4, 2, 2, drafts=1, look_ahead=1),
        _setup((0, 2), 2, 4, 4, drafts=1, depth=3),
    ),
    True: (
        _setup((0, 3), 1, 4, 4, drafts=2),
        _setup((0, 2), 1, 4, 3, drafts=1, depth=3),
    ),
}
"""Items anywhere or not -> the setups visited whole: a chunked prompt, a look-ahead, three steps in flight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One cell as both engines see it: plain values and traces, so that it travels between processes."""

    guard: str
    column: str
    anywhere: bool
    verdict: Verdict
    engines: tuple[str, ...]
    trace: Trace | None
    """The shortest trace of any engine."""
    shortest: bool
    """None is shorter in the setups visited whole, or with numbers up to 8 and two steps in flight."""
    coverage: str
    note: str = ""
    stuck: Stuck | None = None
    """Whether requests end, in the setups of `table_stuck`; None where the cell is violated."""
    tally: Tally = field(default_factory=Tally)
    """Of the obligations of its proofs."""

    @property
    def name(self) -> str:
        """`confirmed, A3 any, items anywhere`."""
        return f"{self.guard}, {self.column}, items {'anywhere' if self.anywhere else 'in the prompt'}"


def _setups(row: str, anywhere: bool) -> Sequence[Setup]:
    """The setups that the exhaustive engine visits for a cell of the row. (Sessions are the proof's alone.)"""
    routes = "reset-prefix-cache+kv-load-failure"
    routes = f"{routes}+reset-encoder-cache" if row == ENCODER_RESET else routes
    usual = TABLE_SETUPS[anywhere]
    # The last setup has three steps in flight; the rare routes are taken in a smaller one.
    return (*usual, usual[0]._replace(left_out=routes_left_out(routes), drafts=1))


def judge_cell(work: tuple[str, int, bool], solvers: Sequence[str] = ("z3",)) -> Judged:
    """Judge one cell: (guard, number of the column, items anywhere); its obligations by each of the solvers."""
    name, number, anywhere = work
    guard, column = row_of(name, COLUMNS[number])
    world = world_of(guard, column, PROFILES[_PROFILE])
    proved = cell(guard, column, anywhere=anywhere, solvers=solvers)
    again = rerun(proved.found, world) if proved.found is not None else None
    exhaustive = _visited(world, anywhere, _setups(name, anywhere))
    if again is not None and again.agrees and exhaustive.trace is None:
        # Bounded checking found numbers of its own: the exhaustive engine answers for them.
        exhaustive = _visited(world, anywhere, [again.steps[0].state.setup._replace(left_out=())])
    traces = [] if exhaustive.trace is None else [exhaustive.trace]
    engines = []
    note = ""
    verdict = proved.verdict
    if proved.contradicted:
        note = f"solvers contradict each other: {proved.contradicted}"
    if proved.verdict is Verdict.PROVED:
        engines.append("proof")
    elif again is not None:
        engines.append("bounded checking")
        traces.append(_trace(again.steps, again.difference))
        verdict = Verdict.VIOLATED
        if not again.agrees:
            verdict, note = Verdict.DISAGREE, f"the solver's run is not the model's: {again.difference}"
    if exhaustive.verdict is Verdict.VIOLATED:
        engines.append("exhaustive")
        if proved.verdict is Verdict.PROVED:
            verdict, note = Verdict.DISAGREE, "proved, and yet the exhaustive engine has a trace"
        elif verdict is Verdict.UNKNOWN:
            verdict = Verdict.VIOLATED
    elif exhaustive.verdict is Verdict.EXHAUSTED and verdict is not Verdict.VIOLATED:
        engines.append("exhaustive")
    trace = min(traces, key=lambda each: len(each.actions), default=None)
    moves = 0 if proved.found is None else len(proved.found)
    stuck = None if verdict is Verdict.VIOLATED else judge_progress(world, anywhere)
    # A move is one action; only where the run also had to change its drafts may fewer actions do.
    shortest = trace is not None and (trace is exhaustive.trace or len(trace.actions) == moves + 1)
    return Judged(
        guard=name,
        column=column.name,
        anywhere=anywhere,
        verdict=verdict,
        engines=tuple(engines),
        trace=trace,
        shortest=shortest,
        coverage=f"{proved.coverage}; {exhaustive.coverage}",
        note=note or ("" if stuck is None else stuck.note),
        stuck=stuck,
        tally=proved.tally,
    )


def _visited(world: World, anywhere: bool, setups: Sequence[Setup]) -> Result:
    """The exhaustive engine's answer."""
    model = BegunIn(world, anywhere, _GATHER, setups)
    return next(iter(breadth_first(model, bounds=Bounds(states=500_000), properties=(_GATHER,)).results()))


def _trace(steps: Sequence[Any], difference: str) -> Trace:
    return Trace(
        steps=tuple(steps),
        property=_GATHER,
        why=difference or "the last step reads a key that is not on the worker's shelf",
        shortest="shortest in moves of the relation, numbers up to 8 (bounded checking)",
    )


def judge_table(
    guards: Sequence[str], folder: Path, reporter: Reporter, workers: int = 1, solvers: Sequence[str] = ("z3",)
) -> int:
    """Judge the table and report it; returns the exit status. Traces go into the folder. Each of the solvers decides
    each obligation of the cells and of the weakest guards."""
    work = [(guard, number, where) for guard in guards for number in range(len(COLUMNS)) for where in (False, True)]
    jobs = [Job(name=" ".join(map(str, each)), work=_cell_job, about=(each, tuple(solvers))) for each in work]
    weakest = weakest_jobs(solvers) if set(guards) == set(ROWS) else []
    cells: list[Judged] = []
    climbed: list[Outcome] = []
    interrupted = False
    try:
        with reporter.progress(len(jobs) + len(weakest), "table") as advance:
            for number, outcome in enumerate(ordered([*jobs, *weakest], workers, advance)):
                interrupted = interrupted or outcome.interrupted
                if number >= len(jobs):
                    climbed.append(outcome)
                    continue
                judged = _lost_cell(outcome) if outcome.lost else outcome.value
                if judged is not None:
                    cells.append(judged)
                    _write(judged, folder)
    except KeyboardInterrupt:
        interrupted = True
    for where in (False, True) if cells else ():
        title = f"Guard x assumptions, items {'anywhere' if where else 'inside the prompt'}"
        table = headline_table([_as_cell(judged) for judged in cells if judged.anywhere is where])
        reporter.table(replace(table, title=title, name=f"{table.name}-{'anywhere' if where else 'prompt'}"))
    if climbed:
        reporter.table(weakest_table(climbed))
    for row in dict.fromkeys(judged.guard for judged in cells):
        if row in (ROWS[0], ENCODER_RESET):
            reporter.say(
                f"Routes of row {row}{' and the other guards' if row == ROWS[0] else ''}: {routes_assumed(row)}."
            )
    for judged in cells:
        if judged.note:
            reporter.say(f"{judged.name}: {judged.note}")
    climbs: list[Weakest] = [outcome.value for outcome in climbed if outcome.value is not None]
    tally = Tally().plus(*(judged.tally for judged in cells), *(climb.tally for climb in climbs))
    for note in tally_notes("Obligations", tally, solvers):
        reporter.say(note)
    reporter.say(f"A shortest trace of every violated or stuck cell is in {folder}; outlives replay runs it again.")
    if interrupted:
        reporter.say(f"Interrupted: {len(cells)} of {len(work)} cells were judged by then.")
        return reporter.finish(130)
    # A violated cell is an answer, not a failure: the table is good when every cell has a verdict and engines agree.
    answered = [Verdict.PROVED if judged.verdict is Verdict.VIOLATED else judged.verdict for judged in cells]
    answered += [Verdict.DISAGREE for each in climbs if each.contradicted]
    return reporter.finish(exit_status(answered))


def _cell_job(about: tuple[tuple[str, int, bool], tuple[str, ...]], _tell: Tell) -> Judged:
    return judge_cell(*about)


def _lost_cell(outcome: Outcome) -> Judged:
    guard, number, anywhere = outcome.job.about[0]
    return Judged(
        guard=guard,
        column=COLUMNS[number].name,
        anywhere=anywhere,
        verdict=Verdict.UNKNOWN,
        engines=(),
        trace=None,
        shortest=False,
        coverage="nothing",
        note=outcome.lost,
    )


def _write(judged: Judged, folder: Path) -> None:
    """The cell's trace, if it has one: at once, so that it is there whatever happens to the run."""
    column = next(each for each in COLUMNS if each.name == judged.column)
    if judged.trace is not None:
        write_trace(judged.trace, _configuration(judged, column), folder / _file_name(judged))
    if judged.stuck is not None and judged.stuck.trace is not None:
        write_trace(judged.stuck.trace, _configuration(judged, column), folder / f"{_file_name(judged)}--stuck")


def _as_cell(judged: Judged) -> Cell:
    return Cell(
        guard=judged.guard,
        assumptions=judged.column,
        verdict=judged.verdict,
        engines=judged.engines,
        length=None if judged.trace is None else len(judged.trace.actions),
        shortest=judged.shortest,
        stuck=None if judged.stuck is None or judged.stuck.trace is None else len(judged.stuck.trace.actions),
        stuck_engines=() if judged.stuck is None else judged.stuck.engines,
    )


def _file_name(judged: Judged) -> str:
    where = "anywhere" if judged.anywhere else "prompt"
    column = judged.column.replace(", ", "-").replace(" ", "-")
    return f"{judged.guard.replace(', ', '-').replace(' ', '-')}--{column}--{where}"


def _configuration(judged: Judged, column: Column) -> Configuration:
    return Configuration(
        profile=_PROFILE,
        guard=row_of(judged.guard, column)[0].name,
        relax=tuple(sorted(column.relaxed - {"A3"})),
        reader=column.reader,
        without=tuple(sorted(column.closed)),
        items_anywhere=judged.anywhere,
    )
