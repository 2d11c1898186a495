"""`outlives prove`: the theorem for one guard and one set of assumptions, with everything that makes it believable.

Belongs here: which theorem the options ask for, the order of proof, vacuity, necessity and counterexample, and the
files of SMT-LIB2 text. What is proved is in the package `proof`.
"""

import argparse
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from outlives.model.errors import Unwritable
from outlives.model.lifetime import GUARDS, Counters
from outlives.model.setup import RARE_ROUTES
from outlives.model.world import World

from .configuration import Configuration
from .explained import explained
from .folder import DEFAULT_OUT, make_folder, new_folder
from .proof.bounded import search
from .proof.cells import Column
from .proof.cores import GUARD, cores
from .proof.evidence import differ, necessity, vacuity
from .proof.lemmas import GOAL
from .proof.life import Arithmetic, Terms
from .proof.on_model import rerun
from .proof.reach import reach
from .proof.theorem import ProofReport, Relation, prove
from .proof.weakest import threshold_facts
from .properties import scheduler_properties
from .report import EXIT_WORDS, DataTable, Reporter
from .report.proof_strip import strips_table
from .report.tables import missing_notes
from .table_run import TABLE_SETUPS
from .trace_file import write_trace
from .verdict import Trace, Verdict, exit_status

__all__ = ["prove_configuration"]


def prove_configuration(configuration: Configuration, options: argparse.Namespace, reporter: Reporter) -> int:
    """Prove, or show why not; returns the exit status."""
    world = configuration.world()
    terms = _terms(configuration, world)
    folder = make_folder(Path(options.out) if options.out else DEFAULT_OUT, "prove")
    try:
        return _prove_into(folder, configuration, terms, options, reporter)
    finally:
        with suppress(OSError):
            folder.rmdir()  # empty unless there is a counterexample


def _prove_into(
    folder: Path, configuration: Configuration, terms: Terms, options: argparse.Namespace, reporter: Reporter
) -> int:
    world = configuration.world()
    texts = None if options.smt2 is None else new_folder(Path(options.smt2), "--smt2")
    relation = Relation(terms)
    with reporter.progress(None, "proof"):
        report = prove(
            terms,
            text=texts is not None,
            seed=options.seed,
            solvers=options.solvers,
            seeds=options.seeds or 1,
            relation=relation,
        )
    reporter.say(_claim(configuration, world))
    reporter.proof(report)
    for note in missing_notes(report.solvers):
        reporter.say(note)
    if texts is not None:
        reporter.say(f"{_write_texts(report, texts)} obligations written as SMT-LIB2 to {texts}.")
    try:
        status = _evidence(folder, configuration, relation, report, options, reporter)
        reporter.say(f"Exit status {status}: {EXIT_WORDS[status]}.")
        return reporter.finish(status)
    except KeyboardInterrupt:
        missing = (
            "whether it is vacuous and needs each lemma" if report.verdict is Verdict.PROVED else "a counterexample"
        )
        reporter.say(f"Interrupted: the proof above is whole; {missing} was still being worked out.")
        return reporter.finish(130)


def _evidence(
    folder: Path,
    configuration: Configuration,
    relation: Relation,
    report: ProofReport,
    options: argparse.Namespace,
    reporter: Reporter,
) -> int:
    """What makes the answer believable: no vacuity, each lemma needed, or a counterexample; the exit status."""
    world, terms = configuration.world(), relation.terms
    verdicts = [report.verdict]
    if report.verdict is Verdict.PROVED:
        with reporter.progress(None, "vacuity and necessity"):
            checks = vacuity(terms, report.lemmas, relation=relation)
            needed = necessity(terms, report.lemmas, relation=relation)
        impossible = [check.name for check in checks if check.solved.answer == "unsat"]
        undecided = [check.name for check in checks if check.solved.answer == "unknown"]
        if impossible:
            verdicts.append(Verdict.VACUOUS)
            reporter.say(f"Vacuous: not possible under the lemmas: {', '.join(impossible)}.")
        if undecided:
            verdicts.append(Verdict.UNKNOWN)
        reporter.table(_necessity_table(needed))
        if options.cores:
            _show_cores(terms, report, reporter)
        reporter.say(
            f"Not vacuous: {len(checks) - len(impossible)} of {len(checks)} situations that the proof speaks of are "
            "possible (the beginning, each transition, both sides of the guard, a release, a rejection)."
        )
        reporter.say(_equality())
        if terms.guard.condition is GUARDS["confirmed"].condition and terms.assumed.reader == "any":
            verdicts += _threshold(terms, reporter, report.solvers)
    elif report.verdict is Verdict.UNKNOWN:
        raising = [each.transition for each in report.failed if each.lemma == "TOTAL"]
        if raising:
            reporter.say(
                f"TOTAL fails at {', '.join(raising)}: a rule of this scheduler raises an error for some numbers. "
                "`outlives check` shows where."
            )
        _reached(world, report, reporter)
        verdicts = [_counterexample(folder, configuration, terms, reporter)]
    return exit_status(verdicts)


def _terms(configuration: Configuration, world: World) -> Terms:
    column = Column(
        name="asked",
        phrase="as asked",
        relaxed=world.relaxed,
        reader=world.reader,
        closed=world.closed | {route for route in RARE_ROUTES if not world.opens(route)},
        encoder_reset=_encoder_reset(world),
    )
    early = 0 if "A1" in world.relaxed else 1
    assumed = column.assumed(anywhere=configuration.items_anywhere, early_resume=early)
    return Terms(
        guard=world.guard_in_force,
        arithmetic=Arithmetic.of(world.rules),
        assumed=assumed.behaving(world.switches),
    )


def _encoder_reset(world: World) -> int:
    """Whether the claim has the encoder cache reset while requests run. Readers that begin lower than the gate looked
    find nothing then, whatever the guard (`outlives table` has a row for that), so it is left out of their claim."""
    return int(world.opens("reset-encoder-cache") and world.reader == "checked" and not world.relaxed)


def _claim(configuration: Configuration, world: World) -> str:
    held = ", ".join(name for name in ("A1", "A2", "A3", "A4") if name not in world.relaxed)
    readers = {
        "checked": "readers begin where the gate checked",
        "true": "readers begin at their true start",
        "any": "readers begin anywhere from confirmed to the scheduler's start",
    }[world.reader]
    items = "items anywhere" if configuration.items_anywhere else "items inside the prompt"
    reset = "encoder-cache resets at any time" if _encoder_reset(world) else "no encoder-cache reset"
    closed = [route for route in RARE_ROUTES if route != "reset-encoder-cache" and not world.opens(route)]
    routes = f"; {reset}{f', and no {_either(closed)}' if closed else ''}"
    return (
        f"Claim: with guard {world.guard.name} ({world.guard.formula}) no step reads an item after it was freed. One "
        f"request, one item, arbitrary others; unbounded numbers, any depth. Assumed: {held}; {readers}; {items}"
        f"{routes}."
    )


def _either(names: Sequence[str]) -> str:
    """`a, b or c`."""
    return " or ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def _show_cores(terms: Terms, report: ProofReport, reporter: Reporter) -> None:
    """What each obligation was shown from; as data in whole, for people by lemma."""
    with reporter.progress(None, "cores"):
        found = cores(terms, report.lemmas)
    reporter.data("cores", {each.name: each.used for each in found})
    names = [lemma.name for lemma in report.lemmas]
    rows = []
    for lemma in (*names, GOAL.name):
        own = [each for each in found if each.lemma == lemma]
        used = {name for each in own for name in each.used}
        rows.append(
            (
                lemma,
                ", ".join(name for name in names if name in used) or "-",
                ", ".join(each.transition for each in own if GUARD in each.used) or "-",
            )
        )
    reporter.table(
        DataTable(
            name="cores-by-lemma",
            title="What the obligations of each lemma were shown from",
            columns=("lemma", "lemmas used", "guard used at"),
            rows=tuple(rows),
            legend=(
                "informative, not minimal: the solver's unsatisfiable cores; --json has each obligation's, with the "
                "fields that its transition changes and keeps",
            ),
        )
    )


def _threshold(terms: Terms, reporter: Reporter, solvers: Sequence[str]) -> list[Verdict]:
    """That no threshold lower than confirmed would do, and what asking before delivery costs."""
    facts = threshold_facts(terms, solvers=solvers)
    unshown = [fact for fact in facts if not fact.proved]
    for fact in unshown:
        reporter.say(f"Not shown: {fact.name}: {fact.phrase} ({fact.answer}).")
    if not unshown:
        reporter.say(
            "Also proved: confirmed is the weakest threshold for these readers. Let an item go whose first position is "
            "computed; there is a run in which the next step reads it unchecked exactly when computed - placeholders < "
            "end <= computed (evict it, dispatch a step, process the outputs before it, read from end - 1)."
        )
        reporter.say(f"Also proved: {facts[-1].phrase}.")
    if any(fact.answer == "contradicted" for fact in unshown):
        return [Verdict.DISAGREE]
    return [Verdict.UNKNOWN] if unshown else []


def _equality() -> str:
    """The seed's "unchanged without speculative decoding"."""
    first, second = GUARDS["confirmed"], GUARDS["optimistic-at-output"]

    def no_placeholders(counters: Counters) -> bool:
        return counters.placeholders == 0

    answer = differ(first, second, no_placeholders).answer
    if answer != "unsat":
        return f"confirmed and optimistic-at-output differ with placeholders 0: {answer}."
    return (
        "Also proved: with placeholders 0, confirmed releases exactly when optimistic-at-output does. (Asynchronous "
        "scheduling without drafts has one placeholder in flight, and differs by one position.)"
    )


def _necessity_table(needed: dict[str, str]) -> DataTable:
    rows = tuple((lemma, broken or "none: the others do without it") for lemma, broken in needed.items())
    return DataTable(
        name="necessity",
        title="Each lemma is necessary: without it",
        columns=("lemma", "this obligation fails"),
        rows=rows,
        legend=(),
    )


def _reached(world: World, report: ProofReport, reporter: Reporter) -> None:
    """Whether the states that break the obligations can be reached."""
    with reporter.progress(None, "reachable states"):
        # Where items may lie anywhere, they may lie inside the prompt as well.
        setups = (*TABLE_SETUPS[False], *(TABLE_SETUPS[True] if report.terms.assumed.anywhere else ()))
        labels = reach(report, world, setups)
    if labels:
        reporter.table(
            DataTable(
                name="counterexamples-to-induction",
                title="States that break an obligation: can a run get there?",
                columns=("obligation", "its lemma is broken", "by"),
                rows=tuple((each.obligation, each.label, each.words()) for each in labels),
            )
        )
    drawn = strips_table(report)
    if drawn is not None:
        reporter.table(drawn)


def _counterexample(folder: Path, configuration: Configuration, terms: Terms, reporter: Reporter) -> Verdict:
    """Where the proof does not go through: a shortest run to a miss, taken again on the executable model."""
    world = configuration.world()
    with reporter.progress(None, "bounded checking"):
        searched = search(replace(terms, assumed=replace(terms.assumed, early_resume=0)))
    if searched.found is None:
        reporter.say(
            f"Not proved, and no run of up to {searched.searched + 1} actions to a miss (numbers up to 8, two steps in "
            f"flight{', budget spent' if searched.exhausted else ''})."
        )
        return Verdict.UNKNOWN
    again = rerun(searched.found, world)
    if not again.agrees:
        reporter.say(f"Engines disagree: {again.difference}.")
        return Verdict.DISAGREE
    gather = next(prop for prop in scheduler_properties(world) if prop.name == "GATHER-AFTER-FREE")
    before, last = again.steps[-2].state, again.steps[-1]
    trace = Trace(
        steps=again.steps,
        property=gather.name,
        why=gather.explain(before, last.action, last.state),
        shortest="shortest in moves of the relation, numbers up to 8; taken again on the executable model",
    )
    path = write_trace(trace, configuration, folder / f"proof-{trace.property}")
    replay = configuration.replay_command(path)
    reporter.violation(explained(trace, configuration, engine="bounded checking", replay=replay, files=[str(path)]))
    return Verdict.VIOLATED


def _write_texts(report: ProofReport, folder: Path) -> int:
    try:
        for each in report.obligations:
            name = each.name.replace(" / ", "--").replace(" ", "-")
            (folder / f"{name}.smt2").write_text(each.solved.smt2, encoding="utf-8")
    except OSError as error:
        raise Unwritable(f"--smt2 {folder}: {error.strerror or error}.") from error
    return len(report.obligations)
