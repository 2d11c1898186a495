"""The pieces of work of `outlives faults`: one fault put to one engine, as plain data in and out.

Belongs here: how each engine is asked about a fault, and whether it can be. Which faults, and what answers
add up to, is in `faults_run`.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from outlives.model.errors import BadModel
from outlives.model.scheduler import SchedulerModel, initial_state
from outlives.model.state import State

from .agreement import broken_by_itself, judged_by_others
from .configuration import Configuration
from .explore import Bounds, explore
from .interrupt import was_pressed
from .jobs import user_files
from .scope_choice import chosen_scopes
from .userfile import placed
from .verdict import Trace, Verdict
from .workers import Tell, ended_by

__all__ = ["ENGINES", "Answer", "Question", "ask", "beyond_proof"]

ENGINES = ("exhaustive", "machine", "proof")
MOST_STATES = 60_000
"""Of one scope: a fault may make counters grow without end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One fault put to one engine."""

    name: str
    engine: str
    configuration: Configuration
    """With the fault in it."""
    breaks: str | None
    """The property that is judged; None: not stated, so all of them are."""
    states: tuple[State, ...] = ()
    """Where the exhaustive engine begins; empty: in every named scope."""
    settings: str = "ci"
    """Of the machine."""
    seed: int = 0
    negative: bool = False
    """It must not be reported under A1 to A4."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an engine said."""

    name: str
    engine: str
    found: bool
    seconds: float
    """Of its process's time, so that a busy machine does not count."""
    seed: int = 0
    property: str = ""
    """What is violated; of the proof, the first obligation that fails."""
    actions: int = 0
    """Of the trace: the shortest one there is in the scope (exhaustive), or as it was found, not shrunk (machine).
    0: there is none."""
    looked: str = ""
    """How far it looked: states, runs."""
    complete: bool = True
    """False: a bound stopped it."""
    note: str = ""
    broken: str = ""
    """What rules did that no rule may: then nothing was found out."""
    trace: Trace | None = None


def beyond_proof(configuration: Configuration) -> str:
    """Why the proof says nothing of this fault; empty where it does."""
    broken = broken_by_itself(configuration.world())
    if broken:
        return broken
    from .proof_row import widest

    sound = replace(configuration, fault=None)
    return "" if widest(configuration.world()) != widest(sound.world()) else "it runs nothing of it"


def ask(question: Question, tell: Tell) -> Answer:
    """Put it. Rules that raise, return what no rule may, or end the process are neither found nor survivors."""
    began = time.process_time()
    files = user_files(question.configuration)
    try:
        answer = _ASK[question.engine](question)
    except BadModel as error:
        answer = _answer(question, found=False, broken=placed(error, files))
    except Exception:
        raise
    except BaseException as error:
        if was_pressed() or not files:
            raise
        answer = _answer(question, found=False, broken=str(ended_by(error, files)))
    tell(1)
    return replace(answer, seconds=time.process_time() - began)


def _answer(question: Question, *, found: bool, **more: object) -> Answer:
    return Answer(name=question.name, engine=question.engine, seed=question.seed, found=found, seconds=0.0, **more)  # type: ignore[arg-type]


def _model(question: Question) -> SchedulerModel:
    world = question.configuration.world()
    return SchedulerModel(world, question.configuration.scope(), question.configuration.judged(world))


def _exhaustive(question: Question) -> Answer:
    model = _model(question)
    scopes: Sequence[tuple[State, ...]] = [question.states]
    if not question.states:
        scopes = list(chosen_scopes(question.configuration, every_number=False).values())
    seen, complete = 0, True
    for states in scopes:
        found = explore(
            model,
            bounds=Bounds(states=MOST_STATES),
            initial=states,
            properties=None if question.breaks is None else [question.breaks],
            stop_when_found=question.breaks is not None,
        )
        if found.interrupted:
            raise KeyboardInterrupt
        seen += found.states
        complete = complete and found.complete
        if found.traces:
            trace = min(found.traces.values(), key=lambda each: len(each.actions))
            told, disagreements = judged_by_others(model, trace)
            note = disagreements[0].coverage if disagreements else ""
            return _answer(
                question,
                found=True,
                property=trace.property,
                actions=len(trace.actions),
                looked=f"{seen:,} states",
                note=note,
                trace=told,
            )
    return _answer(question, found=False, looked=f"{seen:,} states", complete=complete)


def _machine(question: Question) -> Answer:
    from .machine import run_machine
    from .machine_settings import machine_profile

    settings = machine_profile(question.settings).changed(first_only=True, shrink_replays=0)
    wanted = None if question.breaks is None else [question.breaks]
    run = run_machine(_model(question), settings=settings, seed=question.seed, properties=wanted)
    looked = f"{run.cases:,} runs"
    for row in run.results:
        if row.verdict is Verdict.VIOLATED and row.trace is not None:
            length = len(row.trace.actions)
            return _answer(question, found=True, property=row.property, actions=length, looked=looked, trace=row.trace)
    return _answer(question, found=False, looked=looked)


def _proof(question: Question) -> Answer:
    return _negative_proof(question) if question.negative else _fault_proof(question)


def _fault_proof(question: Question) -> Answer:
    """Whether what is proved without the fault is proved with it. An obligation that fails shows a state from which a
    step leads out of the invariant; no run of the model need lead there."""
    from .proof.executor import NotSymbolic
    from .proof.theorem import prove
    from .proof_row import widest

    try:
        report = prove(widest(question.configuration.world()), until_failure=True)
    except NotSymbolic as error:
        return _answer(question, found=False, looked="not symbolic", complete=False, note=str(error))
    failed = next((each for each in report.failed if each.verdict is Verdict.VIOLATED), None)
    if failed is not None:
        return _answer(question, found=True, property=failed.name, looked=failed.name)
    return _answer(question, found=False, looked=str(report.verdict), complete=report.verdict is Verdict.PROVED)


def _negative_proof(question: Question) -> Answer:
    """Whether it is safe under the run's own assumptions."""
    from .proof_row import proof_row

    row = proof_row(question.configuration, question.configuration.world())
    return _answer(
        question,
        found=row.verdict is Verdict.VIOLATED,
        property=row.property,
        actions=0 if row.trace is None else len(row.trace.actions),
        looked=str(row.verdict),
        complete=row.verdict is not Verdict.UNKNOWN,
        note=row.note,
        trace=row.trace,
    )


_ASK = {"exhaustive": _exhaustive, "machine": _machine, "proof": _proof}


def begins(fault_scope: object) -> tuple[State, ...]:
    """The states where a fault's own scope begins."""
    return () if fault_scope is None else (initial_state(fault_scope),)  # type: ignore[arg-type]
