"""`outlives faults`: every fault of the catalogue put to every engine, and what is not found by any.

Belongs here: which faults are asked about, the tables, and the exit status. How an engine is asked is in `fault_jobs`.
"""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outlives.model.errors import Contradiction, OutOfRange, UnknownName
from outlives.model.fault_rows import NOT_COVERED
from outlives.model.faults import FAULTS, NEGATIVES, Fault, fault_named

from .command_options import out_folder
from .configuration import Configuration
from .fault_jobs import ENGINES, Answer, Question, ask, begins, beyond_proof
from .faults_list import NOTHING, list_faults, rows_of
from .folder import make_folder
from .jobs import user_files
from .machine_settings import machine_profile
from .report import Reporter
from .report.content import DataTable
from .trace_file import write_trace
from .workers import Job, ordered, workers_of

__all__ = ["FaultsRun", "faults_of", "run_faults"]

_MOST_SEEDS = 1_000


@dataclass(slots=True, kw_only=True)
class FaultsRun:
    """What was asked for."""

    names: Sequence[str] = ()
    """Of the catalogue, or `path.py:name`; empty: the whole catalogue and its negatives."""
    engines: Sequence[str] = ENGINES
    settings: str = "ci"
    seed: int = 0
    seeds: int = 1
    """The machine is run with so many seeds, from `seed` on."""
    folder: Path = Path()
    workers: int = 1
    answers: list[Answer] = field(default_factory=list)
    interrupted: bool = False
    lost: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subject:
    """One fault, as it is asked about."""

    name: str
    configuration: Configuration
    fault: Fault | None
    """None: rules of a user that state nothing about themselves."""

    @property
    def short(self) -> str:
        """Its name, without the path to a user's file."""
        return self.name.rpartition(":")[2]

    @property
    def negative(self) -> bool:
        return self.fault is not None and bool(self.fault.why_not)


def faults_of(options: argparse.Namespace, reporter: Reporter) -> int:
    """The command, from its options to its exit status."""
    if options.list:
        if options.faults or options.engine or options.mutants or options.mutant or options.seeds != 1:
            raise Contradiction("--list runs nothing; drop --fault, --engine, --seeds, --mutants and --mutant.")
        return list_faults(reporter)
    if options.mutants or options.mutant:
        return _mutants_of(options, reporter)
    if options.every != 1:
        raise Contradiction("--every chooses among the mutants; add --mutants, or drop it.")
    if not 1 <= options.seeds <= _MOST_SEEDS:
        raise OutOfRange("--seeds", options.seeds, 1, _MOST_SEEDS)
    machine_profile(options.settings)
    run = FaultsRun(
        names=tuple(dict.fromkeys(options.faults or ())),
        engines=tuple(dict.fromkeys(options.engine or ENGINES)),
        settings=options.settings,
        seed=options.seed,
        seeds=options.seeds,
        workers=workers_of(options.workers),
    )
    for engine in run.engines:
        if engine not in ENGINES:
            raise UnknownName("engine", engine, ENGINES)
    subjects = [subject_of(name) for name in run.names or (*FAULTS, *NEGATIVES)]
    run.folder = make_folder(out_folder(options), "faults")
    return run_faults(run, subjects, reporter)


def _mutants_of(options: argparse.Namespace, reporter: Reporter) -> int:
    from .mutants_run import chosen_mutants, run_mutants

    if options.faults or options.engine or options.seeds != 1 or options.settings != "ci":
        raise Contradiction(
            "--mutants are put to a battery of their own; drop --fault, --engine, --settings and --seeds."
        )
    if not 1 <= options.every <= _MOST_SEEDS:
        raise OutOfRange("--every", options.every, 1, _MOST_SEEDS)
    return run_mutants(chosen_mutants(options.mutant or (), options.every), workers_of(options.workers), reporter)


def run_faults(run: FaultsRun, subjects: "Sequence[_Subject]", reporter: Reporter) -> int:
    """Ask, write the traces, and report; the exit status: 1 where a fault survives or a negative is reported."""
    jobs = [_job(question) for subject in subjects for question in _questions(run, subject)]
    try:
        with reporter.progress(len(jobs), "faults") as advance:
            for outcome in ordered(jobs, run.workers, advance):
                run.interrupted = run.interrupted or outcome.interrupted
                if outcome.lost:
                    run.lost.append(f"{outcome.job.name}: {outcome.lost}")
                if outcome.value is not None:
                    run.answers.append(outcome.value)
    except KeyboardInterrupt:
        run.interrupted = True
    _write(run, subjects)
    return reporter.finish(_report(run, subjects, reporter))


def subject_of(name: str) -> _Subject:
    """The fault of that name; raises what is wrong with a user's file before any work is done."""
    configuration = Configuration(fault=name)
    configuration.world()
    return _Subject(name=name, configuration=configuration, fault=configuration.fault_record())


def _questions(run: FaultsRun, subject: _Subject) -> Iterable[Question]:
    breaks = None if subject.fault is None else subject.fault.breaks
    scope = None if subject.fault is None else subject.fault.scope
    for engine in run.engines:
        if engine == "proof" and beyond_proof(subject.configuration):
            continue
        for seed in range(run.seed, run.seed + (run.seeds if engine == "machine" else 1)):
            yield Question(
                name=subject.name,
                engine=engine,
                configuration=subject.configuration,
                breaks=breaks,
                states=begins(scope),
                settings=run.settings,
                seed=seed,
                negative=subject.negative,
            )


def _job(question: Question) -> Job:
    return Job(
        name=f"{question.name}, {question.engine}, seed {question.seed}",
        work=ask,
        about=question,
        user_files=user_files(question.configuration),
    )


def _write(run: FaultsRun, subjects: Sequence[_Subject]) -> None:
    """The shortest trace of each fault, or of a negative that was reported."""
    named: dict[str, int] = {}
    for subject in subjects:
        traces = [each.trace for each in run.answers if each.name == subject.name and each.trace is not None]
        if traces:
            shortest = min(traces, key=lambda trace: len(trace.actions))
            file = f"{subject.short}-{shortest.property}"
            named[file] = named.get(file, 0) + 1  # two files may have a fault of one name
            path = run.folder / (file if named[file] == 1 else f"{file}-{named[file]}")
            write_trace(shortest, subject.configuration, path)


# --- what it adds up to -----------------------------------------------------------------------------------------------


def _report(run: FaultsRun, subjects: Sequence[_Subject], reporter: Reporter) -> int:
    faults = [subject for subject in subjects if not subject.negative]
    negatives = [subject for subject in subjects if subject.negative]
    if faults:
        reporter.table(_table("faults", "Faults: what each engine finds", faults, run))
    if negatives:
        reporter.table(_table("negatives", "Negatives: what no engine may report under A1 to A4", negatives, run))
    for each in run.answers:
        if each.note and not (each.engine == "proof" and each.complete):
            reporter.say(f"{each.name}, {each.engine}: {each.note}")
    broken = {each.name: each.broken for each in run.answers if each.broken}
    found = [each for each in faults if _found(run, each.name) and each.name not in broken]
    answered = {each.name for each in run.answers}
    survivors = [each for each in faults if each.name in answered and each not in found and each.name not in broken]
    unasked = [each.name for each in subjects if each.name not in answered]
    reported = [each.name for each in negatives if _found(run, each.name)]
    reporter.data("fault-answers", {"answers": [_plain(each) for each in run.answers]})
    for line in run.lost:
        reporter.say(line)
    if run.interrupted:
        reporter.say(f"Interrupted: {len(run.answers)} answers were there by then.")
        return 130
    if faults:
        reporter.say(f"{len(found)} of {len(faults)} faults are found by at least one engine.")
        for engine in run.engines:
            if any(_of(run, each.name, engine) for each in faults):
                reporter.say(_score(run, faults, engine))
    for subject in survivors:
        stated = subject.fault is not None and subject.fault.scope is not None and "exhaustive" in run.engines
        where = ", the exhaustive one in the scope that it states alone" if stated else ""
        reporter.say(f"Survivor: no engine finds {subject.name}{where}.")
    for name in reported:
        reporter.say(f"Reported: {name}, which is no fault under A1 to A4: {fault_named(name).why_not}.")
    misstated = [line for each in faults for line in _misstated(run, each)]
    for line in misstated:
        reporter.say(line)
    if unasked and not run.lost:
        reporter.say(f"The proof runs nothing of {', '.join(unasked)}: ask another engine as well.")
    for name, what in broken.items():
        reporter.say(f"Rules that do not work, so that nothing was found out about {name}: {what}")
    if not run.names:
        reporter.say(
            f"{len(NOT_COVERED)} rows of the list of public faults are not covered: outlives faults --list says what "
            "the model lacks for each."
        )
    if any(each.trace is not None for each in run.answers):
        reporter.say(
            f"Traces are in {run.folder}: outlives explain FILE shows one, outlives replay FILE runs it again."
        )
    return _status(run, wrong=bool(survivors or reported or misstated), broken=bool(broken), unasked=bool(unasked))


def _status(run: FaultsRun, *, wrong: bool, broken: bool, unasked: bool) -> int:
    if wrong:
        return 1
    if broken:
        return 2
    if run.lost:
        return 3
    return 4 if unasked else 0


def _misstated(run: FaultsRun, subject: _Subject) -> Iterator[str]:
    """What a fault says of itself, and is not so."""
    fault = subject.fault
    if fault is None or fault.scope is None or fault.actions == 0:
        return
    for each in _of(run, subject.name, "exhaustive"):
        if each.found and each.actions != fault.actions:
            yield (
                f"Stated otherwise: {subject.name} says that it shows in {fault.actions} actions, and it does in "
                f"{each.actions}."
            )


def _score(run: FaultsRun, faults: Sequence[_Subject], engine: str) -> str:
    asked = [each for each in faults if _of(run, each.name, engine)]
    found = [each for each in asked if all(answer.found for answer in _of(run, each.name, engine))]
    seeds = f", with each of {run.seeds} seeds" if engine == "machine" and run.seeds > 1 else ""
    slowest = max((answer.seconds for each in asked for answer in _of(run, each.name, engine)), default=0.0)
    seconds = f"; its slowest answer took {slowest:.1f} s"
    return (
        f"The {engine}{' engine' if engine == 'exhaustive' else ''} finds {len(found)} of {len(asked)}{seeds}{seconds}."
    )


def _found(run: FaultsRun, name: str) -> bool:
    return any(each.found for each in run.answers if each.name == name)


def _of(run: FaultsRun, name: str, engine: str) -> list[Answer]:
    return [each for each in run.answers if each.name == name and each.engine == engine]


def _table(name: str, title: str, subjects: Sequence[_Subject], run: FaultsRun) -> DataTable:
    rows = []
    for subject in subjects:
        fault = subject.fault
        cells = [_cell(_of(run, subject.name, engine)) for engine in run.engines]
        about = (rows_of(fault), fault.breaks) if fault is not None else (NOTHING, _violated(run, subject.name))
        rows.append((subject.short, *about, *cells))
    return DataTable(
        name=name,
        title=title,
        columns=("fault", "row", "property", *run.engines),
        rows=tuple(rows),
        legend=(
            "found: actions of the trace, seconds of its process; no: how far the engine looked",
            "the exhaustive engine visits the smallest scope that shows it, or every named one; the machine draws as "
            "in outlives check, and its trace is as it was found",
            "the proof: the first obligation that fails with it, with readers from confirmed on and items anywhere (of "
            "a negative: the theorem under A1 to A4)",
            "-: not asked: the proof runs nothing of it, or it breaks an assumption of the proof",
        ),
    )


def _cell(answers: Sequence[Answer]) -> str:
    if not answers:
        return NOTHING
    found = [each for each in answers if each.found]
    seconds = f"{max(each.seconds for each in answers):.1f} s"
    if len(answers) == 1:
        (only,) = answers
        if only.broken:
            return f"broken rules ({seconds})"
        if not only.found:
            return f"no ({only.looked}{'' if only.complete else ', stopped'}, {seconds})"
        return f"found ({only.actions or only.property}, {seconds})"
    if not found:
        return f"no (0 of {len(answers)} seeds, up to {seconds})"
    least, most = min(each.actions for each in found), max(each.actions for each in found)
    span = str(least) if least == most else f"{least}..{most}"
    return f"found ({len(found)} of {len(answers)} seeds, {span}, up to {seconds})"


def _violated(run: FaultsRun, name: str) -> str:
    """Which properties were found violated, of rules that state none."""
    found = dict.fromkeys(each.property for each in run.answers if each.name == name and each.engine != "proof")
    return ", ".join(filter(None, found)) or "any"


def _plain(answer: Answer) -> dict[str, Any]:
    return {
        "fault": answer.name,
        "engine": answer.engine,
        "seed": answer.seed,
        "found": answer.found,
        "property": answer.property,
        "actions": answer.actions,
        "looked": answer.looked,
        "complete": answer.complete,
        "seconds": round(answer.seconds, 2),
        "note": answer.note,
        "broken": answer.broken,
    }
