"""`outlives faults --mutants`: every mutant of the model's rules put to the battery, the score, and the survivors.

Belongs here: which mutants are run, the tables, and the exit status. What is known of survivors is data, in
`mutants_equivalent`.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from .mutant_battery import OTHERWISE, STAGES, Judged, judge_mutant
from .mutants import MODULES, Mutant, mutant_named, mutants
from .mutants_equivalent import EQUIVALENT
from .report import Reporter
from .report.content import DataTable
from .workers import Job, Tell, ordered

__all__ = ["chosen_mutants", "run_mutants"]


def chosen_mutants(keys: Sequence[str] = (), every: int = 1) -> list[Mutant]:
    """The mutants of these keys, or every so manyth of all of them. Raises `UnknownName`."""
    if keys:
        return [mutant_named(key) for key in keys]
    return [each for module in MODULES for each in mutants(module)][::every]


def run_mutants(chosen: Sequence[Mutant], workers: int, reporter: Reporter) -> int:
    """Judge and report; 1 where a mutant survives that nothing is known of, or what is known of one is out of date."""
    jobs = [Job(name=each.key, work=_judge, about=each.key) for each in chosen]
    judged: list[Judged] = []
    interrupted = False
    lost: list[str] = []
    try:
        with reporter.progress(len(jobs), "mutants") as advance:
            for outcome in ordered(jobs, workers, advance):
                interrupted = interrupted or outcome.interrupted
                if outcome.lost:
                    lost.append(f"{outcome.job.name}: {outcome.lost}")
                if outcome.value is not None:
                    judged.append(outcome.value)
    except KeyboardInterrupt:
        interrupted = True
    return reporter.finish(_report(judged, lost, interrupted, reporter))


def _judge(key: str, tell: Tell) -> Judged:
    judged = judge_mutant(mutant_named(key))
    tell(1)
    return judged


def _report(judged: Sequence[Judged], lost: Sequence[str], interrupted: bool, reporter: Reporter) -> int:
    for name, column in (("mutants-by-module", "module"), ("mutants-by-change", "change")):
        reporter.table(_scores(judged, name, column))
    survivors = [each for each in judged if not each.stage]
    unknown = [each for each in survivors if each.key not in EQUIVALENT]
    if survivors:
        reporter.table(_survivors(survivors))
    reporter.data("mutants", {"judged": [_plain(each) for each in judged]})
    for line in lost:
        reporter.say(line)
    killed = len(judged) - len(survivors)
    share = f" ({killed / len(judged):.1%})" if judged else ""
    explained = len(survivors) - len(unknown)
    reporter.say(f"{killed} of {len(judged)} mutants are killed{share}.")
    otherwise = sum(each.stage == OTHERWISE for each in judged)
    if otherwise:
        reporter.say(f"Of {otherwise} of these nothing is known to be wrong: they go another way than the original.")
    reporter.say(f"Of {explained} of {len(survivors)} survivors it is said why nothing tells them from the original.")
    mistaken = [each.key for each in judged if each.stage and each.key in EQUIVALENT]
    gone = _gone()
    for key in mistaken:
        reporter.say(f"Said to be equivalent, and killed: {key}")
    for key in gone:
        reporter.say(f"Said to be equivalent, and no mutant any more: {key}")
    if interrupted:
        reporter.say("Interrupted: what is shown was known by then.")
        return 130
    if unknown or mistaken or gone:
        return 1
    return 3 if lost else 0


def _gone() -> list[str]:
    """What is said of mutants that are made no more."""
    made = {each.key for module in MODULES for each in mutants(module)}
    return [key for key in EQUIVALENT if key not in made]


def _scores(judged: Sequence[Judged], name: str, column: str) -> DataTable:
    def group(each: Judged) -> str:
        return each.key.partition(".")[0] if column == "module" else each.operator

    rows = []
    for which in dict.fromkeys(group(each) for each in judged):
        own = [each for each in judged if group(each) == which]
        stages = [sum(each.stage == stage for each in own) for stage in STAGES]
        killed = sum(stages)
        rows.append((which, f"{killed} of {len(own)}", f"{killed / len(own):.1%}", *map(str, stages)))
    return DataTable(
        name=name,
        title=f"Mutants killed, by {column}, and by which stage of the battery",
        columns=(column, "killed", "share", *STAGES),
        rows=tuple(rows),
    )


def _survivors(survivors: Iterable[Judged]) -> DataTable:
    return DataTable(
        name="survivors",
        title="Survivors",
        columns=("place", "change", "known"),
        rows=tuple((_place(each), each.key, EQUIVALENT.get(each.key, "nothing")) for each in survivors),
    )


def _place(judged: Judged) -> str:
    return f"model/{judged.key.partition('.')[0]}.py:{judged.line}"


def _plain(judged: Judged) -> dict[str, Any]:
    return {
        "mutant": judged.key,
        "place": _place(judged),
        "change": judged.operator,
        "killed_by": judged.stage or None,
        "why": judged.why,
        "known": EQUIVALENT.get(judged.key),
    }
