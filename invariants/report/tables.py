"""Tables made from the data they show: profiles, properties, scenarios, guards, and guard x assumptions.

Belongs here: turning data into `DataTable`s, no layout.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from outlives.model.contract import Property
from outlives.model.lifetime import GUARDS
from outlives.model.profiles import PROFILES, SWITCHES
from outlives.model.scenarios import SCENARIOS
from outlives.model.setup import Setup

from ..verdict import Verdict
from .content import Cell, DataTable
from .telling import count_of, window

if TYPE_CHECKING:  # the solver takes long to load, and most reports have no proof
    from ..proof.solvers import Tally
    from ..proof.theorem import ProofReport
    from ..source.report import SourceReport

__all__ = [
    "guards_table",
    "headline_table",
    "missing_notes",
    "profiles_tables",
    "proof_table",
    "properties_table",
    "scenarios_table",
    "source_table",
    "tally_notes",
    "tally_words",
]


def profiles_tables() -> tuple[DataTable, ...]:
    """Which profile has which switch and guard, and what each switch and guard says."""
    names = tuple(PROFILES)
    rows = [("guard", *(str(list(GUARDS).index(PROFILES[name].guard.name) + 1) for name in names))]
    for switch in SWITCHES:
        marks = ("x" if getattr(PROFILES[name].switches, switch) == 1 else "." for name in names)
        rows.append((switch.replace("_", "-"), *marks))
    guards = tuple(f"guard {number}: {name}" for number, name in enumerate(GUARDS, start=1))
    has = DataTable(
        name="profiles",
        title="Profiles: which release has what (x: has it)",
        columns=("switch", *names),
        heads=("switch", *(name.removesuffix(".0") for name in names)),
        rows=tuple(rows),
        legend=("; ".join(guards),),
    )
    said = DataTable(
        name="switches",
        title="What each switch says",
        columns=("switch", "says", "source"),
        rows=tuple((name.replace("_", "-"), fact.phrase, fact.source) for name, fact in SWITCHES.items()),
    )
    return has, said, guards_table()


def guards_table() -> DataTable:
    """Every guard: its condition, where it is asked, and who released it."""
    return DataTable(
        name="guards",
        title="Guards: when a reference to an item may be dropped",
        columns=("guard", "condition", "asked", "released in", "source"),
        rows=tuple(
            (guard.name, guard.formula, guard.site, guard.released_in, guard.source) for guard in GUARDS.values()
        ),
    )


def properties_table(properties: Iterable[Property[Any]]) -> DataTable:
    """Every property: what must hold, and the situation without which a run is vacuous for it."""
    return DataTable(
        name="properties",
        title="Properties: it must hold that ...",
        columns=("property", "it must hold that ...", "put to the test when ..."),
        rows=tuple((prop.name, prop.phrase, prop.situation_phrase) for prop in properties),
    )


def scenarios_table() -> DataTable:
    """Every scenario with its base and its small equivalent."""
    return DataTable(
        name="scenarios",
        title="Scenarios: one request, no abort, preemption or reset; numbers are drawn around the base",
        columns=("scenario", "about", "base", "small equivalent", "source"),
        rows=tuple(
            (
                scenario.name,
                scenario.phrase,
                _numbers(scenario.scope.setup({})),
                _numbers(scenario.small.setup({})),
                scenario.source,
            )
            for scenario in SCENARIOS.values()
        ),
    )


def _numbers(setup: Setup) -> str:
    asked = setup.requests[0]
    items = " ".join(window(item.start, item.end) for item in asked.items)
    whole = ", whole items" if setup.whole_items == 1 else ""
    return f"prompt {asked.prompt}, items {items}, slots {setup.slots}, budget {setup.budget}{whole}"


_MARKS = {
    Verdict.PROVED: "proved",
    Verdict.EXHAUSTED: "exhausted",
    Verdict.PASSED: "passed",
    Verdict.VIOLATED: "UNSAFE",
    Verdict.UNKNOWN: "unknown",
    Verdict.VACUOUS: "vacuous",
    Verdict.DISAGREE: "DISAGREE",
}
_LEGEND = (
    "proved: for unbounded numbers and any number of steps; exhausted: in every state of a stated scope; "
    "passed: in sampled runs only",
    "UNSAFE n: a trace of n actions reads a freed entry; n!: none is shorter in the setups that were visited whole, or "
    "with numbers up to 8 and two steps in flight; letters are the engines that say so",
    "STUCK n: after n actions, and no sooner, a request never ends although nothing gets in its way any more: two "
    "items, one behind the other, and a cache with room for one",
)


def headline_table(cells: Sequence[Cell]) -> DataTable:
    """Guards down, assumptions across, in the order in which the cells first name them."""
    guards = tuple(dict.fromkeys(cell.guard for cell in cells))
    columns = tuple(dict.fromkeys(cell.assumptions for cell in cells))
    by_place = {(cell.guard, cell.assumptions): cell for cell in cells}
    said = (engine for cell in cells for engine in (*cell.engines, *(() if cell.stuck is None else cell.stuck_engines)))
    engines = tuple(dict.fromkeys(said))
    letters = _letters(engines)
    rows = tuple((guard, *(_cell_words(by_place.get((guard, column)), letters) for column in columns))
                 for guard in guards)  # fmt: skip
    who = ", ".join(f"{letter} {engine}" for engine, letter in letters.items())
    notes = tuple(f"{cell.guard} under {cell.assumptions}: {cell.note}" for cell in cells if cell.note)
    legend = (*_LEGEND, f"engines: {who}") if who else _LEGEND
    return DataTable(
        name="guards-by-assumptions",
        title="Guard x assumptions: does an entry outlive its last reader?",
        columns=("guard", *columns),
        rows=rows,
        legend=(*legend, *notes),
    )


def _letters(engines: Sequence[str]) -> dict[str, str]:
    """The shortest beginning that tells an engine from the others."""
    return {
        engine: next(
            engine[:size]
            for size in range(1, len(engine) + 1)
            if size == len(engine) or sum(other.startswith(engine[:size]) for other in engines) == 1
        )
        for engine in engines
    }


def _cell_words(cell: Cell | None, letters: dict[str, str]) -> str:
    if cell is None or cell.verdict is None:
        return "-"
    text = _MARKS[cell.verdict]
    if cell.length is not None:
        text += f" {cell.length}{'!' if cell.shortest else ''}"
    text = f"{text} ({_who(cell.engines, letters)})" if cell.engines else text
    return text if cell.stuck is None else f"{text} STUCK {cell.stuck} ({_who(cell.stuck_engines, letters)})"


def _who(engines: Sequence[str], letters: dict[str, str]) -> str:
    return "".join(letters[engine] for engine in engines)


def source_table(report: "SourceReport") -> DataTable:
    """What real source files do: a row per method."""
    implies = {True: "yes", False: "NO", None: "not judged"}
    return DataTable(
        name="source",
        title="Released free conditions",
        columns=("method", "released when", "guard", "implies confirmed", "verdict"),
        rows=tuple(
            (
                f"{method.file}:{method.line}",
                method.condition or "not known",
                method.guard or "-",
                implies[method.implies_confirmed],
                str(method.verdict),
            )
            for method in report.methods
        ),
        legend=tuple(report.lines()),
    )


def proof_table(report: "ProofReport") -> DataTable:
    """The grid lemma x transition, with what it cost, and what failed with its numbers."""
    grid = report.grid()
    columns = tuple(dict.fromkeys(transition for row in grid.values() for transition in row))
    marks = {Verdict.PROVED: "+", Verdict.VIOLATED: "X", Verdict.UNKNOWN: "?", Verdict.DISAGREE: "!"}
    rows = tuple(
        (lemma, *(marks.get(row[each], "?") if each in row else "" for each in columns)) for lemma, row in grid.items()
    )
    legend = [
        "transitions: " + ", ".join(f"{number} {name}" for number, name in enumerate(columns, start=1)),
        f"{sum(each.verdict is Verdict.PROVED for each in report.obligations)} of "
        f"{count_of(len(report.obligations), 'obligation')} proved; {report.paths} paths, extraction "
        f"{report.extraction_seconds:.2f} s, solving {report.solving_seconds:.2f} s",
        f"decided by {' and '.join(report.solvers)}{_under_seeds(report.seeds)}; resource units of the costliest one: "
        f"{', '.join(_costs(report.spent()))}",
        _margin(report),
        "+ proved, X a state breaks it (it may not be reachable), ? not decided, ! solvers contradict each other",
    ]
    for each in report.failed:
        numbers = ", ".join(f"{name} {value}" for name, value in each.solved.values.items() if value)
        legend.append(f"{each.name} is {each.verdict}: {each.reason or numbers or 'all numbers 0'}")
    return DataTable(
        name="proof",
        title=f"Proof by induction: {report.verdict}",
        columns=("lemma", *columns),
        heads=("lemma", *(str(number) for number in range(1, len(columns) + 1))),
        rows=rows,
        legend=tuple(legend),
    )


def _under_seeds(seeds: int) -> str:
    return f" under {count_of(seeds, 'seed')} each" if seeds > 1 else ""


def _margin(report: "ProofReport") -> str:
    over = report.over_a_tenth
    if not over:
        return "none takes more than a tenth of its budget"
    return f"more than a tenth of its budget: {', '.join(each.name for each in over)}"


def _costs(spent: Mapping[str, int]) -> Iterator[str]:
    from ..proof.solvers import BUDGETS

    for solver, units in spent.items():
        yield f"{solver} {units:,} of {BUDGETS[solver]:,}"


def tally_notes(what: str, tally: "Tally", solvers: Sequence[str]) -> Iterator[str]:
    """What a run says of the questions that it put to solvers, and which of them it lacked."""
    if tally.asked:
        yield f"{what} decided by {' and '.join(solvers)}: {tally_words(tally, solvers)}."
    yield from missing_notes(solvers)


def missing_notes(solvers: Sequence[str]) -> Iterator[str]:
    """A sentence for each solver that was not there to be asked."""
    from ..proof.solvers import missing_solvers

    for missing in missing_solvers(solvers):
        yield f"Not covered: a second solver; {missing}."


def tally_words(tally: "Tally", solvers: Sequence[str]) -> str:
    """How many questions, whether all were answered alike where several were asked, and what the costliest took."""
    alike = ", all alike" if len(solvers) > 1 else ""
    if tally.differing:
        alike = f", not alike: {', '.join(dict.fromkeys(tally.differing))}"
    over = f"{len(tally.costly):,} took" if tally.costly else "none takes"
    costs = f"resource units of the costliest one: {', '.join(_costs(tally.spent))}"
    return f"{tally.asked:,}{alike}; {costs}; {over} more than a tenth of its budget"
