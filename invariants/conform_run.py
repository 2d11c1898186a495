"""`outlives conform`: a profile and the installed vLLM side by side, and what came of the comparison.

Belongs here: the parent's side: which policies, what a difference is as a row of a report, the counts.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from outlives.model.errors import BadModel
from outlives.model.profiles import profile_named
from outlives.model.world import Policy

from .configuration import Configuration
from .report import DataTable, Reporter, Run, Violation
from .run_record import stamped
from .subject.conform import Conformance
from .subject.guard import last_frame
from .subject.own import SubjectChoice
from .subject_jobs import FRAMES, ON_AND_OFF, ConformAnswer, ConformWork, about, conform_job
from .subject_run import apart, facts_plain, told
from .trace_file import write_trace
from .verdict import Result, Verdict

__all__ = ["SITUATIONS", "conform_subject"]

SITUATIONS = ("rejection", "in-pass preemption", "eviction", "resume", "abort", "preempt", "prefix hit")
"""What has to have happened in a run before its steps say much."""


def conform_subject(
    choice: SubjectChoice,
    configuration: Configuration,
    profile: str | None,
    steps: int,
    seed: int,
    folder: Path,
    reporter: Reporter,
) -> int:
    """Compare the profile with the installed scheduler under each policy; returns the exit status.

    A difference is 1; 4 where one of the situations was never met, although its route is open.
    """
    if profile is not None:
        profile_named(profile)
    policies: tuple[Policy, ...] = ("fcfs", "priority") if configuration.policy == "both" else (configuration.policy,)
    work = ConformWork(
        choice=choice,
        configuration=configuration,
        profile=profile,
        policies=policies,
        steps=steps,
        seed=seed,
        folder=folder,
    )
    outcome = apart("conform", conform_job, work, reporter, steps * len(policies))
    answer: ConformAnswer | None = outcome.value
    if answer is None:
        if outcome.interrupted:
            raise KeyboardInterrupt
        died = last_frame(folder / FRAMES)
        raise BadModel(f"the comparison was cut short: {outcome.lost}{': ' + died if died else ''}.")
    run = stamped(_report(answer, choice, folder, interrupted=outcome.interrupted))
    reporter.table(counts_table(answer.records))
    reporter.run(run)
    reporter.data("subject", facts_plain(answer.facts))
    return reporter.finish(run.status)


def counts_table(records: Mapping[str, Conformance]) -> DataTable:
    """Per policy, how many steps were compared, and how many of them after what."""
    heads = ("policy", "steps", "runs", "refused alike", *(f"after {name}" for name in SITUATIONS), "steps/s")
    rows = []
    for policy, record in records.items():
        rate = record.steps / max(record.seconds, 0.001)
        counts = (record.steps, record.runs, record.refused, *(record.after[name] for name in SITUATIONS), round(rate))
        rows.append((policy, *(f"{count:,}" for count in counts)))
    return DataTable(
        name="compared",
        title="Compared steps",
        columns=heads,
        rows=tuple(rows),
        legend=("after: compared steps of runs in which that had happened before",),
    )


def _report(answer: ConformAnswer, choice: SubjectChoice, folder: Path, *, interrupted: bool) -> Run:
    facts = answer.facts
    results, violations = [], []
    for policy, record in answer.records.items():
        results.append(_row(policy, record))
        if record.trace is not None:
            violations.append(_violation(answer, policy, choice, folder))
    closed = set(next(iter(answer.configurations.values())).world().closed) if answer.configurations else set()
    never = [
        f"{policy}: no step after {name}; raise --steps, or see what the numbers allow"
        for policy, record in answer.records.items()
        for name in SITUATIONS
        if not record.after[name] and not record.differs and name not in closed and not _impossible(answer, name)
    ]
    first = next(iter(answer.configurations.values()), None)
    return Run(
        title=f"{facts.title()} beside profile {facts.profile}"
        + ("" if facts.exact else ", which is not of this very release"),
        results=tuple(results),
        violations=tuple(violations),
        not_covered=(
            "other runs than those that were drawn",
            *(f"not observed: {each}" for each in facts.unobserved),
            *(f"route {route}: {why}" for route, why in facts.closed.items()),
        ),
        vacuous=tuple(never),
        configuration={} if first is None else first.plain(),
        provenance={"vllm": facts.version, "from": facts.root, "prefix caching": facts.prefix_caching},
        out=str(folder),
        interrupted=interrupted,
    )


def _impossible(answer: ConformAnswer, name: str) -> bool:
    """Whether the numbers leave it out: without drafts nothing is rejected, without a cache nothing is found."""
    if name == "prefix hit":
        return answer.facts.prefix_caching != ON_AND_OFF
    drafts = next(iter(answer.configurations.values())).scope().drafts
    return name == "rejection" and drafts.high == 0


def _row(policy: str, record: Conformance) -> Result:
    alike = not record.differs
    return Result(
        engine=f"conform {policy}",
        property="CONFORMS",
        verdict=Verdict.PASSED if alike else Verdict.VIOLATED,
        coverage=f"{record.runs:,} runs, {record.steps:,} compared steps",
        note="" if alike else "; ".join(map(str, record.differs)),
        trace=record.trace,
        details={"after": dict(record.after), "fired": dict(record.fired), "refused": record.refused,
                 "seconds": round(record.seconds, 1)},
    )  # fmt: skip


def _violation(answer: ConformAnswer, policy: str, choice: SubjectChoice, folder: Path) -> Violation:
    record, configuration = answer.records[policy], answer.configurations[policy]
    trace: Any = record.trace
    path = write_trace(
        trace, configuration, folder / f"conform-{policy}", about=about(answer.facts, choice, record.caching)
    )
    return told(trace, configuration.world(), f"outlives replay {path} {choice.options()}", (str(path),))
