"""The machine engine: Hypothesis drives any model, every property gets its own verdict, a violation its own trace.

Belongs here: running the machine (see `machine_rules`) within the settings, and turning what it saw into results. How
it goes on after a violation: the run is written to disk as it was found, Hypothesis stops, our shrinker makes the trace
small (`machine_shrink`), and the machine runs again for the properties that are still open, until none of them fails.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

from hypothesis import seed as with_seed
from hypothesis.errors import Flaky
from hypothesis.reporting import with_reporter
from hypothesis.stateful import run_state_machine_as_test
from outlives.model.contract import Action, Choice, Model, Property, Range, SetupModel, TableModel
from outlives.model.errors import BadModel, UnknownName

from .furthest import Furthest, Met, furthest
from .machine_database import RoundsDatabase, layered_database, observed
from .machine_record import Recorder, initial_states
from .machine_rules import ModelMachine, PropertyViolated, action_names, machine_class
from .machine_settings import (
    MachineSettings,
    hypothesis_settings,
    machine_profile,
    runs_of_their_own,
    same_draws_everywhere,
)
from .machine_shrink import Witness, build_trace, cut_to_failure, shrunk_trace, write_plain_trace
from .verdict import Result, Trace, Verdict

__all__ = [
    "MachineInterrupted",
    "MachineProgress",
    "MachineRun",
    "MachineSettings",
    "machine_class",
    "machine_profile",
    "random_walk",
    "run_machine",
]

State = TypeVar("State")
_REPORT_EVERY = 25  # cases between two calls of the progress callback


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineProgress:
    """How far a run is, for a progress line."""

    cases: int
    """Cases of all rounds so far."""
    planned: int
    """Cases that a round has at most; a round follows each violation."""
    calls: int
    seconds: float
    text: str = ""
    """A line to show: what was just found, or with `verbose` what Hypothesis says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineRun:
    """What a run of the machine saw. Counts are of generated runs; replays and shrinking are not in them."""

    results: tuple[Result, ...]
    """One for each property asked for, in the model's order."""
    settings: MachineSettings
    seed: int
    cases: int
    calls: int
    """Rule calls, refused ones included."""
    taken: int
    """Actions taken, initial states and refusals not included."""
    fired: Mapping[str, int]
    """Every action of the model -> how often it was taken."""
    refused: Mapping[str, Mapping[str, int]]
    """Action -> reason -> how often; `not-available` is a model without a table that did not offer it."""
    situations: Mapping[str, int]
    """Property -> how often its situation arose."""
    outside: int
    """Runs that reached the model's boundary and went no further."""
    rounds: int
    seconds: float
    interrupted: bool = False
    at_best: Mapping[str, Furthest] = field(default_factory=dict)
    """Property whose situation never arose -> how far runs got towards it."""

    @property
    def never_fired(self) -> tuple[str, ...]:
        """Actions that were never taken; the caller knows which of them belong to open routes."""
        return tuple(name for name, count in self.fired.items() if not count)


class MachineInterrupted(KeyboardInterrupt):
    """Ctrl-C while the machine ran; `partial` is what was known by then."""

    def __init__(self, partial: MachineRun) -> None:
        super().__init__("interrupted")
        self.partial = partial


@dataclass(slots=True, kw_only=True)
class _Session:
    """What a run of several rounds keeps between them."""

    model: Model[Any]
    chosen: MachineSettings
    seed: int
    out: Path | None
    write: Callable[[Trace, Path], None]
    tell: Callable[[MachineProgress], None] | None
    properties: tuple[Property[Any], ...]
    names: tuple[str, ...]
    recorder: Recorder[Any]
    database: RoundsDatabase | None
    began: float = field(default_factory=perf_counter)
    traces: dict[str, Trace] = field(default_factory=dict)
    judged: dict[str, tuple[int, int]] = field(default_factory=dict)
    rounds: int = 0
    met: Met = field(default_factory=Met)
    found: tuple[Property[Any], Witness[Any]] | None = None

    def say(self, text: str = "") -> None:
        if self.tell is not None:
            seconds = perf_counter() - self.began
            record = self.recorder
            self.tell(
                MachineProgress(
                    cases=record.cases, planned=self.chosen.cases, calls=record.calls, seconds=seconds, text=text
                )
            )

    def on_case(self, machine: ModelMachine) -> None:
        if self.recorder.counting:
            self.met.add(machine.situations)
            if self.recorder.cases % _REPORT_EVERY == 0:
                self.say()

    def on_found(self, machine: ModelMachine, prop: Property[Any]) -> None:
        """Keep the first failing run of a round and write it down before anything else happens."""
        if self.found is not None:
            return
        witness = Witness(machine.setup, machine.initial, tuple(machine.actions))
        self.found = prop, witness
        trace = build_trace(self.model, prop, witness, shortest="as found, not shrunk")
        self.traces[prop.name] = trace
        if self.out is not None:
            self.write(trace, self.out / f"machine-{prop.name}-unshrunk.json")
        self.recorder.counting = False
        self.recorder.judge_only([prop])
        self.say(f"{prop.name} is violated after {len(witness.actions)} actions; making the trace smaller")


def run_machine(
    model: Model[Any],
    *,
    settings: MachineSettings | None = None,
    seed: int = 0,
    out: Path | None = None,
    progress: Callable[[MachineProgress], None] | None = None,
    properties: Iterable[str] | None = None,
    write_trace: Callable[[Trace, Path], None] = write_plain_trace,
    label: str = "Machine",
) -> MachineRun:
    """Drive the model with Hypothesis and judge each of the named properties (all unless named).

    With `out`, a violation is handed to `write_trace` as found, before it is shrunk, for the file
    `machine-<PROPERTY>-unshrunk.json`. `label` keeps the databases of different models apart. The same model,
    settings, seed and database give the same results in every process.

    Raises UnknownName for a property that the model has not, BadModel where the model breaks its contract, Unwritable
    from `write_trace`, and MachineInterrupted on Ctrl-C.
    """
    chosen = settings or machine_profile("quick")
    judged = _named(model, properties)
    kept = layered_database(chosen.database, chosen.artifacts)
    session = _Session(
        model=model,
        chosen=chosen,
        seed=seed,
        out=out,
        write=write_trace,
        tell=progress,
        properties=judged,
        names=action_names(model),
        recorder=Recorder(model, judged),
        database=None if kept is None else RoundsDatabase(kept),
    )
    try:
        remaining = judged
        while remaining:
            failed = _round(session, remaining, label)
            if failed is None or chosen.first_only:
                break
            remaining = tuple(prop for prop in remaining if prop is not failed)
    except KeyboardInterrupt as stop:
        raise MachineInterrupted(_summary(session, interrupted=True)) from stop
    return _summary(session)


def _named(model: Model[Any], wanted: Iterable[str] | None) -> tuple[Property[Any], ...]:
    known = tuple(model.properties())
    if wanted is None:
        return known
    names = tuple(wanted)
    for name in names:
        if name not in {prop.name for prop in known}:
            raise UnknownName("property", name, [prop.name for prop in known])
    return tuple(prop for prop in known if prop.name in names)


def _round(session: _Session, remaining: tuple[Property[Any], ...], label: str) -> Property[Any] | None:
    """One run of Hypothesis over the properties that are still open; the one that failed, its trace shrunk."""
    recorder = session.recorder
    session.found = None
    session.rounds += 1
    session.met.begin(prop.name for prop in remaining)
    recorder.counting = True
    recorder.judge_only(remaining)
    machine = machine_class(
        session.model,
        settings=session.chosen,
        properties=remaining,
        name=label,
        recorder=recorder,
        on_found=session.on_found,
        on_case=session.on_case,
    )
    before = recorder.cases, recorder.taken

    def report(text: object) -> None:
        if session.chosen.verbose:
            session.say(str(text))

    try:
        watched = observed(session.chosen.observe, label)
        if session.database is not None:
            session.database.forgets = session.rounds == 1
        asked = hypothesis_settings(session.chosen, database=session.database)
        with with_reporter(report), same_draws_everywhere(), runs_of_their_own(), watched:
            run_state_machine_as_test(with_seed(session.seed)(machine), settings=asked)
    except PropertyViolated:
        pass
    except BadModel as error:
        known = recorder.bad or error
        raise known from known.__cause__
    except Flaky as error:
        if recorder.bad is not None:
            raise recorder.bad from recorder.bad.__cause__
        raise BadModel(
            "the model breaks its contract: the same actions from the same initial state ended differently "
            "when they were taken again; next_state, actions and initial_states must be deterministic."
        ) from error
    finally:
        for prop in remaining:
            cases, taken = session.judged.get(prop.name, (0, 0))
            session.judged[prop.name] = cases + recorder.cases - before[0], taken + recorder.taken - before[1]
    if session.found is None:
        return None
    prop, found = session.found
    small = cut_to_failure(session.model, prop, found)
    if small is None:
        raise BadModel(f"the model breaks its contract: {prop.name} failed once, and holds when its run is replayed.")
    session.traces[prop.name] = shrunk_trace(session.model, prop, small, session.chosen.shrink_replays, found)
    return prop


def _summary(session: _Session, *, interrupted: bool = False) -> MachineRun:
    recorder = session.recorder
    situations = {prop.name: recorder.situations[prop.name] for prop in session.properties}
    done = not interrupted and not (session.chosen.first_only and session.traces)
    at_best = {
        prop.name: furthest(prop, session.properties, session.met.together, of=recorder.cases)
        for prop in session.properties
        if not recorder.situations[prop.name]
    }
    return MachineRun(
        results=tuple(_result(session, prop, done, at_best.get(prop.name)) for prop in session.properties),
        settings=session.chosen,
        seed=session.seed,
        cases=recorder.cases,
        calls=recorder.calls,
        taken=recorder.taken,
        fired={name: recorder.fired[name] for name in session.names},
        refused=recorder.refusals(),
        situations=situations,
        outside=recorder.outside,
        rounds=session.rounds,
        seconds=perf_counter() - session.began,
        interrupted=interrupted,
        at_best=at_best,
    )


def _result(session: _Session, prop: Property[Any], done: bool, at_best: Furthest | None) -> Result:
    cases, taken = session.judged.get(prop.name, (0, 0))
    arose = session.recorder.situations[prop.name]
    trace = session.traces.get(prop.name)
    note, way = "", {}
    if trace is not None:
        verdict = Verdict.VIOLATED
    elif not done:
        verdict = Verdict.UNKNOWN
        note = "the run was cut short before this property had its share of runs"
    elif at_best is not None:
        verdict = Verdict.VACUOUS
        chosen = session.chosen
        more = f"--cases (now {chosen.cases:,}) or the steps of a case (now {chosen.steps}: --settings)"
        note = at_best.note(prop.situation_phrase, f"raise {more}")
        way = at_best.plain()
    else:
        verdict = Verdict.PASSED
    return Result(
        engine="machine",
        property=prop.name,
        verdict=verdict,
        coverage=f"{cases:,} runs, {taken:,} steps",
        trace=trace,
        note=note,
        details={"cases": cases, "steps": taken, "situations": arose, "seed": session.seed, **way},
    )


def random_walk(
    model: Model[State], steps: int, seed: int = 0, *, run_length: int = 60
) -> Iterator[tuple[State, Action, State]]:
    """A plain random walk without Hypothesis: `(before, action, after)` of each action taken, `steps` in all.

    Starts anew after `run_length` actions, at the boundary, and where nothing seems to be taken any more. Where an
    action is refused, the model's fair action is tried, as the machine does. Ends early only for a model that takes
    nothing from any initial state. Raises BadModel.
    """
    choose = random.Random(seed)
    recorder = Recorder(model, ())
    names = frozenset(action_names(model))
    begin, draw = _random_start(model, choose), _random_action(model, choose)
    left = steps
    idle = 0
    while left > 0 and idle < 20:
        state = recorder.start(begin)
        taken = refused = 0
        while left > 0 and taken < run_length and model.within(state):
            action = draw(state)
            after = None if action is None else recorder.take(state, action, taken)
            if action is None or after is None:
                other = recorder.go_on(state, taken, choose.randrange(1 << 16), names)
                refused += 1
                if other is None:
                    break
                action, after = other
            yield state, action, after
            state = after
            taken += 1
            left -= 1
        idle = 0 if taken else idle + 1


def _random_start(model: Model[State], choose: random.Random) -> Callable[[], State]:
    if isinstance(model, SetupModel):
        numbers = [(name, _values(domain)) for name, domain in model.setup_table.items()]
        return lambda: model.initial_state({name: choose.choice(values) for name, values in numbers})
    starts = initial_states(model)
    return lambda: choose.choice(starts)


def _random_action(model: Model[State], choose: random.Random) -> Callable[[State], Action | None]:
    if not isinstance(model, TableModel):

        def among(state: State) -> Action | None:
            offered = tuple(model.actions(state))
            return choose.choice(offered) if offered else None

        return among
    table = [
        (name, [(argument, _values(domain)) for argument, domain in domains.items()])
        for name, domains in model.action_table.items()
    ]

    def from_table(_: State) -> Action:
        name, arguments = choose.choice(table)
        return Action(name, tuple([(argument, choose.choice(values)) for argument, values in arguments]))

    return from_table


def _values(domain: Range | Choice) -> Sequence[int | str]:
    return range(domain.low, domain.high + 1) if isinstance(domain, Range) else domain.names
