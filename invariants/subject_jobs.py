"""The pieces of work on a real scheduler: each loads vLLM in a process of its own, and answers in plain data.

Belongs here: one function per piece, like those of `jobs`. Why a process of its own: a scheduler may print, fork, hang
or end the process, and what was found by then must not go with it.
"""

import os
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import parent_process
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from outlives.model.contract import Property
from outlives.model.errors import Contradiction
from outlives.model.setup import PLAIN, Scope
from outlives.model.state import State
from outlives.model.world import Policy, World

from .configuration import Configuration
from .known import Fingerprint, Known, skipping
from .situations import SITUATIONS
from .subject.conform import Conformance, PairModel, conform
from .subject.guard import BOUND, GuardedSubject, guarded_process
from .subject.live import CACHING, SubjectModel, on_or_off, subject_properties
from .subject.own import SubjectChoice, closed_routes, load_release, try_out, unobserved
from .subject.plain import caches, model_side, plain_trace
from .subject.release import Release
from .subject.run import refuse_what_is_for_the_model
from .subject_rounds import machine_rounds
from .trace_file import write_trace
from .verdict import Result, Trace
from .workers import Partial, Tell

if TYPE_CHECKING:
    from .machine import MachineProgress, MachineRun
    from .machine_settings import MachineSettings

__all__ = [
    "FRAMES",
    "CheckWork",
    "ConformAnswer",
    "ConformWork",
    "SubjectAnswer",
    "SubjectFacts",
    "about",
    "check_job",
    "conform_job",
    "facts_job",
    "released",
    "standing_apart",
]

FRAMES = "last-frames.txt"
"""Where a crash or a hang that ends the process leaves its frames, in the run's folder."""
SYNCHRONOUS = "synchronous"
ON_AND_OFF = "on and off, drawn for each run"
"""Of prefix caching."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectFacts:
    """What a release is, as far as a report says it."""

    version: str
    profile: str
    exact: bool
    root: str
    classes: Mapping[str, str]
    """How it schedules (`asynchronous`, `synchronous`) -> the class that does."""
    own: bool
    """The class is the user's."""
    unobserved: tuple[str, ...]
    closed: Mapping[str, str]
    """Routes that could not be taken -> why."""
    prefix_caching: str
    """In which runs the release's own prefix cache is on."""

    def title(self) -> str:
        """The subject in a few words."""
        names = ", ".join(dict.fromkeys(name.rpartition(".")[2] for name in self.classes.values()))
        return f"vLLM {self.version} ({names})"

    def read_as(self) -> str:
        """Which profile it is read as, and why."""
        if self.exact:
            return f"profile {self.profile}, which is of this release"
        return f"profile {self.profile}, the nearest earlier one; differences between the two are not known to it"


def released(choice: SubjectChoice, asked: Configuration) -> tuple[Release, Configuration, SubjectFacts]:
    """The release, and the configuration as it is asked of it. Raises `NoVllm`, `BadUserFile`, `Contradiction`."""
    refuse_what_is_for_the_model(asked)
    release = load_release(choice)
    if asked.profile == "repaired":
        asked = replace(asked, profile=release.profile)
    kinds = kinds_of(release)
    if asked.synchronous and SYNCHRONOUS not in kinds:
        raise Contradiction(f"--synchronous: {choice.scheduler_cls} is an AsyncScheduler. Drop the option.")
    look_ahead = asked.numbers.get("look_ahead")
    if look_ahead is not None and look_ahead[1] > release.most_look_ahead():
        raise Contradiction(
            f"--look-ahead {look_ahead[1]}: vLLM {release.version} knows a look-ahead of at most "
            f"{release.most_look_ahead()}."
        )
    trial = try_out(release, synchronous="asynchronous" not in kinds)
    closed = closed_routes(release, asked.world())
    asked = replace(asked, without=tuple(dict.fromkeys([*asked.without, *closed])))
    facts = SubjectFacts(
        version=release.version,
        profile=asked.profile,
        exact=release.exact and asked.profile == release.profile,
        root=str(release.root),
        classes=kinds,
        own=choice.scheduler_cls is not None,
        unobserved=unobserved(release, trial),
        closed=closed,
        prefix_caching=ON_AND_OFF if trial.caches_prefixes else "off: this release takes no block hasher",
    )
    return release, asked, facts


def kinds_of(release: Release) -> dict[str, str]:
    """Asynchronous and synchronous -> the class that schedules so. A user's class is one of the two."""
    made, plain = release.asynchronous_class, release.synchronous_class
    if made is not plain:
        return {"asynchronous": _name(made), SYNCHRONOUS: _name(plain)}
    asynchronous = any(base.__name__ == "AsyncScheduler" for base in made.__mro__)
    return {"asynchronous" if asynchronous else SYNCHRONOUS: _name(made)}


def _name(made: type) -> str:
    return f"{made.__module__}.{made.__qualname__}"


def scope_of(configuration: Configuration, facts: SubjectFacts) -> Scope:
    """The scope, in those of its modes that the class schedules."""
    scope = configuration.scope()
    asynchronous = [mode for mode in scope.modes if SYNCHRONOUS not in mode.split("+")]
    synchronous = [mode for mode in scope.modes if SYNCHRONOUS in mode.split("+")]
    if SYNCHRONOUS not in facts.classes:
        return scope._replace(modes=tuple(asynchronous))
    if "asynchronous" not in facts.classes:
        modes = ["+".join([SYNCHRONOUS, *(word for word in mode.split("+") if word != PLAIN)]) for mode in asynchronous]
        fitting = [mode for mode in modes if "diffusion" not in mode]
        return scope._replace(modes=tuple(synchronous or fitting))
    return scope


def standing_apart(folder: Path | None) -> AbstractContextManager[None]:
    """In a process of one's own: standard output is the parent's alone, and hangs and crashes leave their frames."""
    if parent_process() is None:
        return nullcontext()
    os.dup2(2, 1)  # also for what is printed from C, or by a program that is started
    sys.stdout = sys.stderr
    return nullcontext() if folder is None else guarded_process(folder / FRAMES)


# --- check ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckWork:
    """One run of the Hypothesis machine on a real scheduler."""

    choice: SubjectChoice
    configuration: Configuration
    settings: "MachineSettings"
    seed: int
    folder: Path
    known: Known | None = None
    bound: float = BOUND


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectAnswer:
    """What the machine saw of the real scheduler."""

    facts: SubjectFacts
    configuration: Configuration
    scope: Scope
    results: tuple[Result, ...]
    situations: Mapping[str, int]
    fired: Mapping[str, int]
    seen: Mapping[Fingerprint, int]
    """Known findings that were met."""
    complete: bool | None
    """With known findings, whether a last round met nothing that was not known by then; None without."""
    details: Mapping[str, float]
    """Counts and seconds."""


def check_job(work: CheckWork, tell: Tell) -> SubjectAnswer | Partial:
    """Load the release and run the machine on it."""
    from .machine import MachineInterrupted, run_machine

    with standing_apart(work.folder):
        began = perf_counter()
        release, configuration, facts = released(work.choice, work.configuration)
        loaded = perf_counter() - began
        world = configuration.world()
        scope = scope_of(configuration, facts)
        subject = GuardedSubject(release, world.closed, work.bound)
        judged = _judged(configuration, world)
        seen: dict[Fingerprint, int] = {}
        performed: Counter[str] = Counter()

        def progress(at: "MachineProgress") -> None:
            tell(at.cases, at.text)

        def keep(trace: Trace, path: Path) -> None:
            write_trace(plain_trace(trace), configuration, path, about=about(facts, work.choice, caches(trace)))

        def run(number: int, known: Known | None) -> "MachineRun":
            passing = judged if known is None else skipping(judged, known, configuration.scenario, seen)
            model = SubjectModel(subject, world, scope, (*passing, *SITUATIONS))
            try:
                return run_machine(
                    model,
                    settings=work.settings,
                    seed=work.seed,
                    out=work.folder if number == 1 else work.folder / f"round-{number}",
                    progress=progress,
                    write_trace=keep,
                    label="RealScheduler",
                )
            except MachineInterrupted as stop:
                return stop.partial
            finally:
                performed.update(actions=model.performed, replays=model.replays, hits=model.hits)

        rounds = machine_rounds(run, work.known, configuration.scenario)
        answer = SubjectAnswer(
            facts=facts,
            configuration=configuration,
            scope=scope,
            results=rounds.results(),
            situations=rounds.counts("situations"),
            fired=rounds.counts("fired"),
            seen=seen,
            complete=rounds.complete,
            details={
                "rounds": len(rounds.runs),
                "runs": int(rounds.total("cases")),
                "actions taken": int(rounds.total("taken")),
                "rule calls": int(rounds.total("calls")),
                "actions on the real scheduler, with fair runs and ways back": performed["actions"],
                "seconds to load": round(loaded, 1),
                "seconds of the machine": round(rounds.total("seconds"), 1),
                "times brought back to a state": performed["replays"],
                "prefixes found by the release's own cache": performed["hits"],
                "times KV blocks ran short unasked": subject.ran_short,
                "hangs": subject.hung,
            },
        )
        return Partial(answer) if rounds.runs[-1].interrupted else answer


def _judged(configuration: Configuration, world: World) -> tuple[Property[State], ...]:
    asked = subject_properties(configuration.judged(world))
    names = configuration.properties
    return tuple(prop for prop in asked if not names or prop.name in names)


def about(facts: SubjectFacts, choice: SubjectChoice, caching: bool) -> Mapping[str, Any]:
    """What a trace file says of the scheduler that it is of, and of its prefix cache."""
    said = {"vllm": facts.version, "classes": dict(facts.classes), "options": choice.options()}
    return {"subject": {**said, CACHING: on_or_off(caching)}}


# --- conform ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformWork:
    """A profile and a real scheduler side by side, under each of some policies."""

    choice: SubjectChoice
    configuration: Configuration
    profile: str | None
    """None: the nearest."""
    policies: tuple[Policy, ...]
    steps: int
    """Compared actions, of each policy."""
    seed: int
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformAnswer:
    """What was compared."""

    facts: SubjectFacts
    configurations: Mapping[str, Configuration]
    records: Mapping[str, Conformance]
    """Policy -> what was seen under it."""


def conform_job(work: ConformWork, tell: Tell) -> ConformAnswer | Partial:
    """Load the release and compare it with the profile."""
    with standing_apart(work.folder):
        asked = work.configuration if work.profile is None else replace(work.configuration, profile=work.profile)
        release, configuration, facts = released(work.choice, asked)
        configurations: dict[str, Configuration] = {}
        records: dict[str, Conformance] = {}
        try:
            for policy in work.policies:
                configurations[policy] = each = replace(configuration, policy=policy)
                world = each.world()
                subject = GuardedSubject(release, world.closed)
                pair = PairModel(subject, world, scope_of(each, facts), items_known=release.items_known)
                record = conform(pair, work.steps, work.seed, tell=partial(_tell_on, tell, len(records) * work.steps))
                if record.trace is not None:
                    record.trace = model_side(record.trace)
                records[policy] = record
        except KeyboardInterrupt:
            return Partial(ConformAnswer(facts=facts, configurations=configurations, records=records))
        return ConformAnswer(facts=facts, configurations=configurations, records=records)


def _tell_on(tell: Tell, done: int, steps: int) -> None:
    tell(done + steps)


# --- doctor -----------------------------------------------------------------------------------------------------------


def facts_job(choice: SubjectChoice, _tell: Tell) -> SubjectFacts:
    """What the installed release is."""
    with standing_apart(None):
        return released(choice, Configuration())[2]
