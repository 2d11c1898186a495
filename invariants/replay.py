"""Replay: a trace file run again on the model that it names, judged anew, and compared with what it recorded.

Belongs here: applying recorded actions by name, the verdict of the replay, and where it went another way. Reading and
writing the file are in `trace_file` and `outlives.model.trace`. Nothing that a file says is believed: property, why and
values are worked out again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outlives.model.contract import (
    Action,
    DescribedModel,
    Model,
    Property,
    Refusal,
    SetupModel,
    TableModel,
)
from outlives.model.errors import BadModel, BadTrace, UnknownName
from outlives.model.itf import quoted, value_from_itf, value_to_itf
from outlives.model.scheduler import SchedulerModel, initial_state
from outlives.model.setup import keys_of
from outlives.model.trace import Recorded, RecordedStep, read_trace, setup_from_plain

from .configuration import Configuration
from .fair import FairJudge
from .machine_record import answer, broken
from .properties import scheduler_properties
from .replay_fit import check_actions, check_scope, vocabulary
from .subject.live import ALIKE, NO_EXCEPTION
from .trace_file import describe_state, recorded_configuration, trace_bytes, write_trace
from .verdict import Result, Step, Trace, Verdict, exit_status

__all__ = ["Divergence", "Replay", "Violation", "replay", "replay_from", "replay_on", "trace_bytes", "write_trace"]

_CHANGES_SHOWN = 12
NEVER_TESTED = "never put to the test"
"""How the note of a property begins whose situation did not arise."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A property that was false, and at which step first (0: the initial state)."""

    property: str
    step: int
    why: str


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first step that no longer goes as the file recorded it."""

    step: int
    action: Action | None
    what: str
    changes: tuple[str, ...] = ()
    """The changed fields: `r0.computed: 4 in the file, 5 now`."""

    def __str__(self) -> str:
        where = "the initial state" if self.action is None else f"step {self.step}, {self.action}"
        listed = f" ({'; '.join(self.changes)})" if self.changes else ""
        return f"from {where} on it does not go as recorded: {self.what}{listed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What a replay found."""

    recorded: Recorded
    configuration: Configuration | None
    """None: a model that is not ours."""
    results: tuple[Result, ...]
    """One row per judged property, the recorded one first."""
    trace: Trace
    """The run as it went now: to the recorded property's violation, or to the end."""
    violations: tuple[Violation, ...]
    """The recorded property first, then by step."""
    divergence: Divergence | None

    @property
    def violated_again(self) -> bool:
        """Whether the recorded property is violated."""
        return any(found.property == self.recorded.property_name for found in self.violations)

    @property
    def outcome(self) -> str:
        """`violated again`, `violates another property` or `passes`."""
        if self.violated_again:
            return "violated again"
        return "violates another property" if self.violations else "passes"

    @property
    def status(self) -> int:
        """The exit status: 1 where something is violated, else 0."""
        return exit_status(result.verdict for result in self.results)


def replay(source: Path | str | Recorded, options: Mapping[str, Any] | None = None) -> Replay:
    """Run a trace file again on the model that it names, and judge every property of its configuration.

    `options` are those that the user gave, by field of `Configuration`; leave the others out. They may repeat what the
    file says, name the Python file of its profile or fault (which is loaded only then), and choose properties; the
    recorded one is always judged. Raises `BadTrace`, and `Contradiction` for an option that does not agree.
    """
    recorded = source if isinstance(source, Recorded) else read_trace(source)
    if "profile" not in recorded.meta:
        raise BadTrace(f"{recorded.where} names no profile: it is of a model that outlives does not have.")
    setup = setup_from_plain(recorded.meta.get("setup"), recorded.where)
    if recorded.meta.get("policy") == "priority":
        setup = setup._replace(by_priority=1)  # files from before the setup said so
    configuration = recorded_configuration(recorded, setup, options or {})
    world = configuration.world()
    check_scope(recorded, configuration, world, setup)
    judged = tuple(configuration.judged(world))
    scope = configuration.scope()._replace(requests=len(setup.requests))
    # What was seen of a real scheduler may be asked of its model too, where it is never false.
    known = {prop.name: prop for prop in (*scheduler_properties(world), NO_EXCEPTION, ALIKE)}
    if recorded.property_name not in known:
        raise BadTrace(f"{recorded.where}: {UnknownName('property', recorded.property_name, known)}")
    if recorded.property_name not in {prop.name for prop in judged}:
        judged += (known[recorded.property_name],)
    model = SchedulerModel(world, scope, judged)
    check_actions(recorded, vocabulary(world, setup), keys_of(setup))
    return replay_from(recorded, configuration, model, initial_state(setup))


def replay_on(source: Path | str | Recorded, model: Model[Any]) -> Replay:
    """Run a trace file again on a model of your own, from the setup or the initial state that it recorded."""
    recorded = source if isinstance(source, Recorded) else read_trace(source)
    if recorded.property_name not in {prop.name for prop in model.properties()}:
        names = [prop.name for prop in model.properties()]
        raise BadTrace(f"{recorded.where}: {UnknownName('property', recorded.property_name, names)}")
    if isinstance(model, TableModel):
        check_actions(recorded, model.action_table, set())
    return replay_from(recorded, None, model, _initial(recorded, model))


def _initial(recorded: Recorded, model: Model[Any]) -> Any:
    numbers = recorded.meta.get("setup")
    if isinstance(model, SetupModel) and isinstance(numbers, dict) and numbers:
        if not all(type(value) in (int, str) for value in numbers.values()):
            raise BadTrace(f"{recorded.where}: 'setup' in #meta must hold numbers and names only.")
        return model.initial_state(numbers)
    states = tuple(model.initial_states())
    for state in states:
        if not tuple(_changes(recorded.steps[0].values, _described(model, state), "")):
            return state
    if len(states) == 1:
        return states[0]
    raise BadTrace(f"{recorded.where} begins in a state that is none of the model's {len(states)} initial states.")


# --- the run ----------------------------------------------------------------------------------------------------------


class _Judge:
    """Keeps, for each property, its first violation and whether its situation arose."""

    def __init__(self, model: Model[Any]) -> None:
        self.model = model
        self.properties: Sequence[Property[Any]] = tuple(model.properties())
        self.found: dict[str, Violation] = {}
        self.arose: set[str] = set()

    def step(self, before: Any, action: Action | None, after: Any, place: int) -> None:
        for prop in self.properties:
            if prop.kind != "progress" and prop.name not in self.found:
                self._judge(prop, before, action, after, place, after)

    def progress(self, state: Any, place: int) -> None:
        """From this state on, nobody gets in the way."""
        for prop in self.properties:
            if prop.kind == "progress" and prop.name not in self.found:
                try:
                    end = FairJudge(self.model).end(state)
                except BadModel:
                    raise
                except Exception as error:
                    broken(self.model, "the fair run raised", state, None, error)
                self._judge(prop, state, None, end, place, state)

    def _judge(
        self, prop: Property[Any], before: Any, action: Action | None, after: Any, place: int, where: Any
    ) -> None:
        try:
            if prop.situation(before, action, after):
                self.arose.add(prop.name)
            if not prop.holds(before, action, after):
                self.found[prop.name] = Violation(prop.name, place, prop.explain(before, action, after))
        except Exception as error:  # a user's rules may leave a state that no property expects
            broken(self.model, f"property {prop.name} raised", where, action, error)


def replay_from(recorded: Recorded, configuration: Configuration | None, model: Model[Any], initial: Any) -> Replay:
    """The recorded actions, taken on the model from this state on, and its properties judged. Raises `BadModel`."""
    judge = _Judge(model)
    judge.step(initial, None, initial, 0)
    divergence = _compare(model, 0, recorded.steps[0], initial, None)
    steps = [Step(None, initial)]
    state = initial
    for place, told in enumerate(recorded.steps[1:], 1):
        assert told.action is not None  # `read_trace` saw to it
        after = answer(model, state, told.action)
        refused = after.reason if isinstance(after, Refusal) else None
        if not isinstance(after, Refusal):
            judge.step(state, told.action, after, place)
            state = after
        steps.append(Step(told.action, state, refused))
        divergence = divergence or _compare(model, place, told, state, refused)
    fair_from = recorded.shrink.get("fair_from")
    last = len(steps) - 1
    starts = [fair_from, last] if type(fair_from) is int and 0 <= fair_from < last else [last]
    for start in starts:
        judge.progress(steps[start].state, start)
    return _summary(recorded, configuration, judge, steps, divergence)


def _compare(model: Model[Any], place: int, told: RecordedStep, state: Any, refused: str | None) -> Divergence | None:
    if told.refused != refused:
        was = "taken" if told.refused is None else f"refused ({told.refused})"
        now = "taken" if refused is None else f"refused ({refused})"
        return Divergence(place, told.action, f"it was {was} then and is {now} now")
    changes = tuple(_changes(told.values, _described(model, state), ""))
    if not changes:
        return None
    more = len(changes) - _CHANGES_SHOWN
    shown = changes[:_CHANGES_SHOWN] + ((f"and {more} more",) if more > 0 else ())
    return Divergence(place, told.action, "other values", shown)


def _described(model: Model[Any], state: Any) -> Mapping[str, Any]:
    """The variables of a state, as they come back from a file."""
    shown = model.describe(state) if isinstance(model, DescribedModel) else describe_state(state)
    return {name: value_from_itf(value_to_itf(value), name) for name, value in shown.items()}


def _changes(told: Any, now: Any, path: str) -> Iterator[str]:
    if isinstance(told, Mapping) and isinstance(now, Mapping):
        for name in [*now, *(name for name in told if name not in now)]:
            inside = f"{path}.{name}" if path else str(name)
            yield from _changes(told.get(name, _MISSING), now.get(name, _MISSING), inside)
    elif type(told) is not type(now) or told != now:
        yield f"{_shown_path(path)}: {_shown(told)} in the file, {_shown(now)} now"


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


_MISSING = _Missing()


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return quoted(value)
    text = ascii(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _shown_path(path: str) -> str:
    return path if path.isascii() and path.isprintable() and len(path) <= 80 else quoted(path, 80)


# --- the verdict ------------------------------------------------------------------------------------------------------


def _summary(
    recorded: Recorded,
    configuration: Configuration | None,
    judge: _Judge,
    steps: Sequence[Step],
    divergence: Divergence | None,
) -> Replay:
    first = recorded.property_name
    order = sorted(judge.properties, key=lambda prop: prop.name != first)
    actions = f"one replay of {len(steps) - 1} actions"
    results = []
    for prop in order:
        found = judge.found.get(prop.name)
        notes = []
        if found is None and prop.name not in judge.arose:
            notes.append(f"{NEVER_TESTED}: no step at which {prop.situation_phrase}")
        if found is not None:
            notes.append(f"violated{' again' if prop.name == first else ''} at step {found.step}")
        if prop.name == first and divergence is not None:
            notes.append(str(divergence))
        results.append(
            Result(
                engine="replay",
                property=prop.name,
                verdict=Verdict.PASSED if found is None else Verdict.VIOLATED,
                coverage=actions,
                trace=None if found is None else _trace(recorded, judge, steps, prop, found, divergence),
                note="; ".join(notes),
            )
        )
    passed = Trace(steps=tuple(steps), property=first, why="it holds in this run", shortest="as replayed")
    violations = sorted(judge.found.values(), key=lambda found: (found.property != first, found.step))
    return Replay(
        recorded=recorded,
        configuration=configuration,
        results=tuple(results),
        trace=results[0].trace or passed,
        violations=tuple(violations),
        divergence=divergence,
    )


def _trace(
    recorded: Recorded,
    judge: _Judge,
    steps: Sequence[Step],
    prop: Property[Any],
    found: Violation,
    divergence: Divergence | None,
) -> Trace:
    """The run up to the violation; where that is of progress, with the fair run that ends badly."""
    shown = list(steps[: found.step + 1])
    shrink: dict[str, Any] = {}
    if prop.kind == "progress":
        run = FairJudge(judge.model).run(shown[-1].state)
        shown += [Step(action, state) for action, state in zip(run.actions, run.states, strict=True)]
        shrink["fair_from"] = found.step
    badge = "as replayed"
    if prop.name == recorded.property_name and divergence is None and len(shown) == len(steps):
        badge = recorded.shortest.removesuffix(" (as recorded)") + " (as recorded)"
        shrink |= _shrink_record(recorded.shrink)
    return Trace(steps=tuple(shown), property=prop.name, why=found.why, shortest=badge, shrink=shrink)


def _shrink_record(told: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The known members of a file's shrink record, as far as they are what they should be."""
    for name in ("found_length", "final_length"):
        if type(told.get(name)) is int:
            yield name, told[name]
    counts = told.get("found_actions")
    if isinstance(counts, dict) and all(type(times) is int for times in counts.values()):
        yield "found_actions", counts
    for name in ("found_numbers", "final_numbers"):
        numbers = told.get(name)
        if isinstance(numbers, dict) and all(type(value) in (int, str) for value in numbers.values()):
            yield name, numbers
