"""The report as data, before any writer: a run, its violations, and the guard x assumptions table.

Belongs here: records and how they are built from results and traces. Every writer (terminal, JSON, later ones) reads
these and nothing else.
"""

import builtins
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from outlives.model.contract import Argument
from outlives.model.setup import MODE_WORDS, NO_LIMIT, Item, Setup, request_name
from outlives.model.state import State
from outlives.model.world import World

from ..verdict import Result, Trace, Verdict, exit_status
from .analysis import Analysis
from .changes import Change, changes
from .reach import Reach
from .story import Story, tell
from .strip import Strip, strips_of
from .telling import count_of

__all__ = ["EXIT_WORDS", "Cell", "DataTable", "Line", "Run", "Violation", "explain", "setup_words"]

EXIT_WORDS: Mapping[int, str] = {
    0: "nothing is violated, and every property was put to the test",
    1: "a property is violated",
    2: "the question could not be asked: bad input",
    3: "something is unknown: a budget ran out, or a solver gave up",
    4: "vacuous: the situation that a property speaks of, or an open route, never occurred",
    5: "engines disagree: one of them is wrong",
    130: "interrupted; this is what was known by then",
}
"""What an exit status says."""
_NUMBERS_TOLD = 8
"""Numbers whose lowering is told; the file has all."""
KNOWN_WORDS = "nothing is violated but what is known, and every property was put to the test"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One step of a trace, as it is shown."""

    number: int
    """0 is the initial state."""
    action: str
    """As text; `initial state` at 0."""
    name: str
    """The action's name; empty at 0."""
    arguments: Mapping[str, Argument]
    changes: tuple[Change, ...]
    refused: str | None
    fair: bool
    """Part of the fair run that a progress property is judged by."""

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        shown: dict[str, Any] = {"step": self.number, "action": self.name, "arguments": dict(self.arguments)}
        shown["changes"] = [{"field": each.name, "old": each.old, "new": each.new} for each in self.changes]
        if self.refused is not None:
            shown["refused"] = self.refused
        if self.fair:
            shown["fair"] = True
        return shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One violated property with everything that is said about it."""

    property: str
    engine: str
    story: Story
    badge: str
    setup: str
    """The numbers of the run in words; empty for a model that has none."""
    lines: tuple[Line, ...]
    shrink: Mapping[str, Any]
    why: str
    replay: str = ""
    """The command that takes the trace again."""
    files: tuple[str, ...] = ()
    strips: tuple[Strip, ...] = ()
    """The token strips, by step and request; none for a model that is not ours."""
    analysis: Analysis = field(default_factory=Analysis)
    outcome: str = "violated"
    """`violated`, or of a trace that is explained though it passes: `passes`."""
    notes: tuple[str, ...] = ()
    """What else is to be said, a sentence each: that it went otherwise than recorded, and from where on."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Where the trace comes from, as its file has it: versions, profile, guard, relaxed, scope, seed, budgets, what the
    run covered, what never fired. Plain values by name, in the order in which they are shown."""
    itf: str = ""
    """The trace's file, in canonical form: what the ITF writer writes, and what the pytest file is made of."""

    @builtins.property  # the field above has the name of the decorator
    def joined(self) -> tuple[int, int] | None:
        """The step that let the entry go (or planned no encode of it) and the step that needed it; None where the
        story has no such pair."""
        reads = [event.step for event in self.story.events if event.kind in ("read", "stuck", "violated")]
        if not reads:
            return None
        for kinds in (("released",), ("cleared", "dropped"), ("not-encoded",), ("held",)):
            steps = [event.step for event in self.story.events if event.kind in kinds and event.step <= reads[-1]]
            if steps:
                return steps[-1], reads[-1]
        return None

    def shrink_words(self) -> str:
        """How it shrank, in a sentence; empty where that is not known."""
        found, final = self.shrink.get("found_length"), self.shrink.get("final_length")
        if found is None or final is None:
            return ""
        text = f"found with {count_of(found, 'action')}, shrunk to {final}"
        gone = Counter(self.shrink.get("found_actions", {}))
        gone.subtract(line.name for line in self.lines if not line.fair and line.number)
        removed = ", ".join(f"{times} {name}" for name, times in sorted(gone.items()) if times > 0)
        text += f" (without {removed})" if removed else ""
        if "seconds" in self.shrink:
            text += f" in {self.shrink['seconds']} s"
        before, after = self.shrink.get("found_numbers", {}), self.shrink.get("final_numbers", {})
        moved = [f"{name} {old} → {after[name]}" for name, old in before.items() if after.get(name, old) != old]
        if len(moved) > _NUMBERS_TOLD:
            moved[_NUMBERS_TOLD:] = [f"and {len(moved) - _NUMBERS_TOLD} more"]
        return f"{text}; numbers: {', '.join(moved)}" if moved else f"{text}; its numbers stayed"

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "property": self.property,
            "engine": self.engine,
            **self.story.plain(),
            "why": self.why,
            "badge": self.badge,
            "setup": self.setup,
            "steps": [line.plain() for line in self.lines],
            "shrink": dict(self.shrink),
            "replay": self.replay,
            "files": list(self.files),
            "outcome": self.outcome,
            "notes": list(self.notes),
            "strips": [each.plain() for each in self.strips],
            "analysis": self.analysis.plain(),
            "provenance": dict(self.provenance),
        }


def explain(
    trace: Trace,
    *,
    world: World | None = None,
    model: object = None,
    engine: str = "",
    replay: str = "",
    files: Sequence[str] = (),
) -> Violation:
    """Everything about one trace. `world` is the scheduler that it ran in; of any other model the story is the
    property's own explanation, and `model` may describe its states."""
    lines = []
    fair_from = trace.shrink.get("fair_from")
    for number, step in enumerate(trace.steps):
        before = trace.steps[number - 1].state if number else step.state
        lines.append(
            Line(
                number=number,
                action="initial state" if step.action is None else str(step.action),
                name="" if step.action is None else step.action.name,
                arguments={} if step.action is None else dict(step.action.arguments),
                changes=changes(before, step.state, model),
                refused=step.refused,
                fair=fair_from is not None and number > fair_from,
            )
        )
    first = trace.steps[0].state if trace.steps else None
    setup = setup_words(first.setup) if isinstance(first, State) else _plain_setup(trace)
    return Violation(
        property=trace.property,
        engine=engine,
        story=tell(trace, world),
        badge=trace.shortest,
        setup=setup,
        lines=tuple(lines),
        shrink=trace.shrink,
        why=trace.why,
        replay=replay,
        files=tuple(files),
        strips=strips_of(trace, world),
    )


def _plain_setup(trace: Trace) -> str:
    return ", ".join(f"{name} {value}" for name, value in trace.shrink.get("setup", {}).items())


def setup_words(setup: Setup) -> str:
    """The numbers of a run: `r0: prompt 8, at most 2 outputs, item0 [4,6) of 2 slots; 4 slots, budget 4, ...`."""
    parts = []
    many = len(setup.requests) > 1
    urgent = any(asked.priority for asked in setup.requests)
    for number, asked in enumerate(setup.requests):
        outputs = count_of(asked.outputs, "output")
        priority = f", priority {asked.priority}" if urgent else ""
        items = _items_words(asked.items, 0, "")
        text = f"{request_name(number)}: prompt {asked.prompt}, at most {outputs}{priority}{items}"
        count = len(asked.items)
        for place, turn in enumerate(asked.turns, start=2):
            more = f"{count_of(turn.prompt, 'more token')}, at most {count_of(turn.outputs, 'output')}"
            text += f", then turn {place}: {more}{_items_words(turn.items, count, '+')}"
            count += len(turn.items)
        parts.append(text)
    numbers = f"cache {count_of(setup.slots, 'slot')}, budget {setup.budget}"
    if setup.encoder_budget != NO_LIMIT:
        numbers += f", encoder budget {setup.encoder_budget}"
    if setup.chunk_cap != NO_LIMIT:
        numbers += f", chunk cap {setup.chunk_cap}"
    numbers += f", drafts {setup.drafts}, look-ahead {setup.look_ahead}, depth {setup.depth}"
    if setup.whole_items == 1:
        numbers += ", items may not be split"
    if setup.strangers:
        numbers += f", strangers up to {count_of(setup.strangers, 'slot')}"
    if many:
        numbers += ", the more urgent first" if setup.by_priority == 1 else ", first come first served"
    numbers += "".join(f", {word}" for word, name in MODE_WORDS.items() if getattr(setup, name) == 1)
    return "; ".join([*parts, numbers])


def _items_words(items: Sequence[Item], first: int, sign: str) -> str:
    """Items by number, their positions counted from where the turn's tokens begin (`sign`)."""
    return "".join(
        f", item{number} {sign}[{item.start},{item.end}) key {item.key} of {count_of(item.size, 'slot')}"
        for number, item in enumerate(items, start=first)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTable:
    """A table of plain text, for any writer."""

    name: str
    """Kebab-case: the key in JSON."""
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    legend: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    """Shorter column names for narrow writers; empty: the columns' own."""

    def plain(self) -> dict[str, Any]:
        """As JSON values: a list of rows by column."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"title": self.title, "rows": rows, "legend": list(self.legend)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A whole run: what was asked, what every engine answered, and what follows."""

    title: str
    """One line: the subject and its assumptions."""
    results: tuple[Result, ...]
    violations: tuple[Violation, ...] = ()
    not_covered: tuple[str, ...] = ()
    """What the answers do not speak of; the results' own are added."""
    not_reached: tuple[str, ...] = ()
    """What could have occurred and did not: actions, refusals, situations, with what to raise."""
    vacuous: tuple[str, ...] = ()
    """Open routes that never fired: they make the run vacuous."""
    reach: Reach | None = None
    """How much of the rules the run saw; None: nobody counted."""
    configuration: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Versions, seed, budgets, seconds: plain values."""
    budgets: str = ""
    """How much was to be tried, in words; goes into the traces, where a reader of one asks for it."""
    out: str = ""
    """The folder with the files of the run."""
    interrupted: bool = False
    known: tuple[str, ...] | None = None
    """Findings that the user knows already, and that were met; None: no file of known findings was given."""
    gone: tuple[str, ...] = ()
    """Findings that the user knows, and that were not met."""
    tables: tuple[DataTable, ...] = ()
    """Further tables: guard x assumptions, and the grids of proofs."""
    notes: tuple[str, ...] = ()
    """What else was said, a sentence each."""
    ended_with: int | None = None
    """The exit status, where it is not what the results add up to."""

    @property
    def status(self) -> int:
        """The exit status."""
        if self.interrupted:
            return 130
        if self.ended_with is not None:
            return self.ended_with
        verdicts = [Verdict.PASSED if result.known else result.verdict for result in self.results]
        return exit_status([*verdicts, Verdict.VACUOUS] if self.vacuous else verdicts)

    @property
    def meaning(self) -> str:
        """What the exit status says of this run."""
        return KNOWN_WORDS if self.status == 0 and self.known else EXIT_WORDS[self.status]

    def paired(self) -> tuple[tuple[tuple[Result, Violation | None], ...], tuple[Violation, ...]]:
        """Each row with the violation that it found, and the violations of no row: traces explained on their own."""
        left = list(self.violations)
        rows = []
        for row in self.results:
            own = next((each for each in left if (each.property, each.engine) == (row.property, row.engine)), None)
            if own is not None:
                left.remove(own)
            rows.append((row, own))
        return tuple(rows), tuple(left)

    @property
    def all_not_covered(self) -> tuple[str, ...]:
        """Each once, in the order of their first mention."""
        mentioned = [*self.not_covered, *(each for result in self.results for each in result.not_covered)]
        return tuple(dict.fromkeys(mentioned))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of the guard x assumptions table."""

    guard: str
    assumptions: str
    """The column: the relaxed assumptions as shown, e.g. `A3 any`."""
    verdict: Verdict | None
    """None: not asked."""
    engines: tuple[str, ...] = ()
    length: int | None = None
    """Actions of the shortest known trace, where it is violated."""
    shortest: bool = False
    """Whether that is proved to be the shortest possible."""
    stuck: int | None = None
    """Actions of the shortest run to a state from which a request never ends; None: none is known."""
    stuck_engines: tuple[str, ...] = ()
    """Who judged that."""
    note: str = ""
    """Told under the table, with the cell's name."""

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "guard": self.guard,
            "assumptions": self.assumptions,
            "verdict": None if self.verdict is None else str(self.verdict),
            "engines": list(self.engines),
            "length": self.length,
            "shortest": self.shortest,
            "stuck": self.stuck,
            "stuck_engines": list(self.stuck_engines),
            "note": self.note,
        }
