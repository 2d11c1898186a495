"""The pieces of work of `check` and `explore`: plain data in, plain data out, so that any process can do them.

Belongs here: one function per piece, each of which builds its model from the configuration, and the data it is given.
Which pieces a run has, and what their answers add up to, is in `check` and `explore_run`.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from outlives.model.contract import Property
from outlives.model.scheduler import SchedulerModel
from outlives.model.state import State
from outlives.model.world import World

from .agreement import shortened
from .branches import Sides, conditions_of, counted
from .configuration import Configuration
from .endings import ending_properties
from .explore import Bounds, Checkpoint, Exploration, Progress, explore
from .furthest import Furthest
from .known import Fingerprint, Known, skipping
from .situations import SITUATIONS, is_situation
from .trace_file import write_trace
from .verdict import Result, Trace
from .workers import Partial, Tell

if TYPE_CHECKING:  # Hypothesis takes long to load, and most pieces have no use for it
    from .machine import MachineProgress, MachineRun
    from .machine_settings import MachineSettings

__all__ = [
    "MachineAnswer",
    "MachineWork",
    "ProofWork",
    "ScopeWork",
    "machine_job",
    "proof_job",
    "scope_job",
    "subject_model",
    "tie_job",
    "user_files",
    "whole",
]

_TELL_EVERY = 5.0
"""Seconds between two lines of live progress of one search."""
_EASE_AFTER_CASES, _EASE_AFTER_STATES = 25, 3_000
"""When the rules' probes that have seen what they are for are taken away, which pays only then (`Sides.ease`)."""


def user_files(configuration: Configuration) -> tuple[str, ...]:
    """The `path.py:name` of the user that a configuration names."""
    named = (configuration.fault, configuration.profile)
    return tuple(name for name in named if name is not None and ".py:" in name)


def subject_model(
    configuration: Configuration,
    world: World,
    *,
    endings: bool = False,
    judged: Sequence[Property[State]] | None = None,
) -> SchedulerModel:
    """The model with the properties that are judged (the configuration's, unless others are given), the situations that
    are counted, and, if wanted, the endings."""
    judged = (*(configuration.judged(world) if judged is None else judged), *SITUATIONS)
    more = ending_properties(world, judged) if endings else ()
    return SchedulerModel(world, configuration.scope(), (*judged, *more))


# --- the machine ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineWork:
    """One run of the Hypothesis machine."""

    configuration: Configuration
    settings: "MachineSettings"
    seed: int
    folder: Path
    """A violation is written here as it was found, before it is made smaller."""
    known: Known | None = None
    """Findings to pass over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineAnswer:
    """What the machine saw, its violations made as short as a bounded search knows how."""

    results: tuple[Result, ...]
    disagreements: tuple[Result, ...]
    situations: Mapping[str, int]
    fired: Mapping[str, int]
    seen: Mapping[Fingerprint, int]
    """Known findings that were met."""
    refused: Mapping[str, Mapping[str, int]]
    """Action -> reason -> how often."""
    at_best: Mapping[str, Furthest]
    """Situation that never arose -> how far runs got towards it."""
    sides: int
    """Of the rules' conditions, the sides that were taken (`branches`)."""


def machine_job(work: MachineWork, tell: Tell) -> MachineAnswer | Partial:
    """Run the machine; each violation is then searched for a shorter trace, unless Ctrl-C was pressed."""
    from .machine import MachineInterrupted, run_machine

    world = work.configuration.world()
    seen_before: dict[Fingerprint, int] = {}
    judged = work.configuration.judged(world)
    if work.known is not None:
        judged = skipping(judged, work.known, work.configuration.scenario, seen_before)
    model = subject_model(work.configuration, world, judged=judged)

    def progress(at: "MachineProgress") -> None:
        sides.rest()
        if at.cases >= _EASE_AFTER_CASES:
            sides.ease()
        tell(at.cases, at.text)

    def keep(trace: Trace, path: Path) -> None:
        write_trace(trace, work.configuration, path)

    try:
        with counted(conditions_of(world)) as sides:
            seen = run_machine(
                model, settings=work.settings, seed=work.seed, out=work.folder, progress=progress, write_trace=keep
            )
    except MachineInterrupted as stop:
        return Partial(_machine_answer(stop.partial, [], seen_before, sides.taken))
    rows: list[Result] = []
    try:
        results = []
        for result in seen.results:
            trace = result.trace
            if trace is not None and work.known is None:  # a shorter one might be of a finding that is known
                trace, more = shortened(model, trace)
                rows += more
            results.append(replace(result, trace=trace))
    except KeyboardInterrupt:
        return Partial(_machine_answer(seen, [], seen_before, sides.taken))
    return _machine_answer(replace(seen, results=tuple(results)), rows, seen_before, sides.taken)


def _machine_answer(
    seen: "MachineRun", disagreements: list[Result], met: Mapping[Fingerprint, int], sides: int
) -> MachineAnswer:
    return MachineAnswer(
        results=tuple(result for result in seen.results if not is_situation(result.property)),
        disagreements=tuple(disagreements),
        situations=dict(seen.situations),
        fired=dict(seen.fired),
        seen=dict(met),
        refused={action: dict(reasons) for action, reasons in seen.refused.items()},
        at_best={name: way for name, way in seen.at_best.items() if is_situation(name)},
        sides=sides,
    )


# --- one scope --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeWork:
    """The exhaustive search of one scope."""

    configuration: Configuration
    scope: str
    states: tuple[State, ...]
    """Where it begins."""
    bounds: Bounds
    """Its seconds are not in here: see `until`."""
    until: float | None = None
    """Seconds since the epoch at which the search ends: one clock for all scopes, in whichever process."""
    checkpoint: Path | None = None
    save_every: float = 30.0
    """Seconds between two checkpoints."""
    endings: bool = False
    """Whether to count how runs end."""


def scope_job(work: ScopeWork, tell: Tell) -> Exploration | Partial:
    """Search the scope to its end or a bound. The record comes back without its properties, which are no plain data:
    `whole` puts them in again."""
    world = work.configuration.world()
    bounds = work.bounds
    if work.until is not None:
        # A scope that finds no time left is still begun, so that it is reported as stopped by the clock.
        bounds = replace(bounds, seconds=max(0.001, round(work.until - time.time(), 2)))
    with counted(conditions_of(world)) as sides:
        found = explore(
            subject_model(work.configuration, world, endings=work.endings),
            bounds=bounds,
            initial=work.states,
            listener=_Listener(work.scope, tell, sides),
            checkpoint=_checkpoint(work),
        )
    plain = replace(found, properties=(), sides=sides.taken)
    return Partial(plain) if found.interrupted else plain


def whole(found: Exploration, model: SchedulerModel) -> Exploration:
    """The record that `scope_job` answered, with the properties of this process."""
    return replace(found, properties=tuple(model.properties()))


def _checkpoint(work: ScopeWork) -> Checkpoint | None:
    if work.checkpoint is None:
        return None
    files = [Path(each.rpartition(":")[0]).read_bytes() for each in user_files(work.configuration)]
    digest = sha256(b"\0".join(files)).hexdigest()  # of a user's own rules, which may have changed since
    identity = f"{work.configuration.plain()} {digest} {[state.setup for state in work.states]}"
    return Checkpoint(work.checkpoint, identity, every=work.save_every)


class _Listener:
    """Progress of a search as a count of states, and now and then as a line."""

    def __init__(self, name: str, tell: Tell, sides: Sides) -> None:
        self._name = name
        self._tell = tell
        self._sides = sides
        self._told = time.perf_counter()

    def __call__(self, at: Progress) -> None:
        self._sides.rest()
        if at.states >= _EASE_AFTER_STATES:
            self._sides.ease()
        text = ""
        if time.perf_counter() - self._told >= _TELL_EVERY:
            self._told = time.perf_counter()
            text = (
                f"{self._name}: level {at.level}, {at.states:,} states, {at.waiting:,} waiting, {at.rate:,.0f} "
                f"states/s, {at.memory / 2**20:,.0f} MiB"
            )
        self._tell(at.states, text)


# --- the proof and its tie --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofWork:
    """The proof engine on one configuration."""

    configuration: Configuration
    steps: int = 0
    """Of the tie: steps of a random walk that are held against the proved relation."""
    seed: int = 0


def proof_job(work: ProofWork, _tell: Tell) -> Result:
    """What the proof says."""
    from .proof_row import proof_row

    return proof_row(work.configuration, work.configuration.world())


def tie_job(work: ProofWork, tell: Tell) -> Result:
    """Whether executed steps are steps of the proved relation."""
    from .proof_row import tie_row

    world = work.configuration.world()
    return tie_row(subject_model(work.configuration, world), world, work.steps, work.seed, tell)
