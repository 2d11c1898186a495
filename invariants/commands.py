"""What each command does, once its arguments are understood.

Belongs here: from options to records (`Configuration`), the call of the engines, and the call of the reporter.
"""

import argparse
import contextlib
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from outlives.model.errors import (
    BadModel,
    Contradiction,
    OutlivesError,
    OutOfRange,
    UnknownName,
    Unwritable,
)

from .command_options import checked_formats, formats_of, given_of, option_names, out_folder
from .configuration import Configuration
from .project_options import layers_of
from .properties import OF_SUBJECTS
from .report import Reporter, Run, reporter_for
from .userfile import placed
from .workers import ended_by, workers_of

if TYPE_CHECKING:
    from .subject.own import SubjectChoice

__all__ = ["run_command"]

MOST_STEPS = 100_000_000
MOST_SEEDS = 1_000
SUBJECTS = ("model", "vllm")


def run_command(options: argparse.Namespace) -> int:
    """Run the command of these options; returns the exit status. Raises `OutlivesError` for bad input."""
    reporter = _reporter(options)
    # Standard output holds the report alone: what a user's file prints goes to standard error.
    with contextlib.redirect_stdout(sys.stderr):
        try:
            return _COMMANDS[options.command](options, reporter)
        except (OutlivesError, BrokenPipeError):
            raise
        except (Exception, SystemExit) as error:
            own = _user_files(options)
            if not own:
                raise  # nobody's but ours: the traceback is what a report of it needs
            raise ended_by(error, own) from error


def _reporter(options: argparse.Namespace) -> Reporter:
    """Who shows the answer: the terminal, `--json`, one document, or documents in files beside one of them. A project's
    `formats` are files, wherever its `out` is; `--format` prints unless `--out` is typed."""
    formats = formats_of(options)
    filed = options.out_typed
    if not formats and getattr(options, "formats", None):
        formats, filed = checked_formats(options.formats), True
    usual = reporter_for(as_json=options.json, ascii_only=options.ascii)
    if not formats or (options.command == "explain" and (options.open or options.out is not None)):
        return usual
    from .explained import explain_file
    from .report.documents import DocumentReporter, FilingReporter

    title = f"outlives {options.command}"
    if not filed:
        return DocumentReporter(sys.stdout, sys.stderr, formats[0], title)
    user = {name: getattr(options, name, None) for name in ("profile", "fault")}
    named = {name: value for name, value in user.items() if value is not None and ".py:" in value}
    return FilingReporter(usual, formats, out_folder(options), title, lambda file: explain_file(file, named))


def _user_files(options: argparse.Namespace) -> list[str]:
    """The options `path.py:name` of this command."""
    named = [getattr(options, name, None) for name in ("fault", "profile", "vllm_config")]
    named += getattr(options, "faults", None) or ()
    return [name for name in named if name is not None and ".py:" in name]


# --- commands -----------------------------------------------------------------------------------------------------


def _check(options: argparse.Namespace, reporter: Reporter) -> int:
    from .check import ENGINES, CheckRun, check, routes_of_scopes
    from .folder import make_folder
    from .known import read_known, settled
    from .machine_settings import machine_profile
    from .run_record import stamped

    engines = tuple(dict.fromkeys(options.engine or ENGINES))
    for engine in engines:
        if engine not in ENGINES:
            raise UnknownName("engine", engine, ENGINES)
    configuration = Configuration(**given_of(options))
    configuration.world()
    settings = machine_profile(options.settings)
    if options.cases is not None:
        settings = settings.changed(cases=options.cases)
    workers = workers_of(options.workers)
    known = None if options.known is None else read_known(options.known)
    choice = _real_subject(options)
    if choice is not None and set(engines) - {"machine"} and options.engine:
        raise Contradiction("--subject vllm: no engine but the machine can be asked of a real scheduler.")
    if choice is None:
        _only_of_the_model(configuration)
        if set(engines) == {"proof"} and set(configuration.properties) - {"GATHER-AFTER-FREE"}:
            other = next(name for name in configuration.properties if name != "GATHER-AFTER-FREE")
            raise Contradiction(f"--property {other}: the proof is of GATHER-AFTER-FREE alone. Take another engine.")
    layers = layers_of(options)
    folder = make_folder(out_folder(options), "check")
    settings = settings.changed(**{"database": folder.parent / "hypothesis", **layers})
    if choice is not None:
        from .subject_run import check_subject

        return check_subject(choice, configuration, settings, options.seed, folder, known, reporter)
    run = CheckRun(
        configuration=configuration,
        engines=engines,
        settings=settings,
        seed=options.seed,
        folder=folder,
        progress=reporter.progress,
        workers=workers,
        known=known,
    )
    report = stamped(settled(check(run), known, configuration.scenario, run.seen, folder))
    if run.trouble is not None:
        for violation in report.violations:
            reporter.violation(violation)
        for result in run.results:
            reporter.say(f"Known before: {result.property}, {result.engine}: {result.verdict} ({result.coverage}).")
        reporter.error(_trouble(run.trouble, configuration, folder))
        return reporter.finish(2)
    reporter.run(_listing(report, options))
    if run.found:
        reporter.data("routes", routes_of_scopes(run, configuration.world()))
    return reporter.finish(report.status)


def _listing(report: Run, options: argparse.Namespace) -> Run:
    """With `--not-reached` the terminal lists what it else only counts."""
    if not options.not_reached or report.reach is None:
        return report
    return replace(report, reach=replace(report.reach, listed=True))


def _trouble(error: BadModel, configuration: Configuration, folder: Path) -> str:
    """What went wrong in the rules, in which line of the user's file, and where the findings so far are."""
    named = [name for name in (configuration.fault, configuration.profile) if name is not None and ".py:" in name]
    found = sum(1 for _ in folder.iterdir())
    kept = f" What was found before it is in {folder}." if found else ""
    return f"{placed(error, named)}{kept}"


def _only_of_the_model(configuration: Configuration) -> None:
    beyond = [name for name in configuration.properties if name in OF_SUBJECTS]
    if beyond:
        raise Contradiction(f"--property {beyond[0]} is asked of a real scheduler: give check --subject vllm.")


def _explore(options: argparse.Namespace, reporter: Reporter) -> int:
    from .explore import Bounds
    from .explore_run import ExploreRun, explore_scopes, routes_of_scopes, show_statistics
    from .folder import make_folder
    from .run_record import stamped
    from .scope_choice import chosen_scopes

    configuration = Configuration(**given_of(options))
    configuration.world()
    _only_of_the_model(configuration)
    scopes = chosen_scopes(configuration, options.scope or ())
    memory = None if options.memory is None else options.memory * 2**20
    bounds = Bounds(states=options.states, depth=options.max_depth, memory=memory, seconds=options.seconds)
    if options.checkpoint == "":
        raise Unwritable("--checkpoint names no file.")
    workers = workers_of(options.workers)
    run = ExploreRun(
        configuration=configuration,
        scopes=scopes,
        bounds=bounds,
        folder=make_folder(out_folder(options), "explore"),
        checkpoint=None if options.checkpoint is None else Path(options.checkpoint),
        workers=workers,
    )
    report = stamped(explore_scopes(run, reporter))
    if options.stats:
        show_statistics(run, reporter)
    if run.trouble is not None:
        for violation in report.violations:
            reporter.violation(violation)
        reporter.error(_trouble(run.trouble, configuration, run.folder))
        return reporter.finish(2)
    reporter.run(_listing(report, options))
    reporter.data("routes", routes_of_scopes(run, configuration.world()))
    return reporter.finish(report.status)


def _prove(options: argparse.Namespace, reporter: Reporter) -> int:
    given = given_of(options)
    if options.source:
        own = [f"--{name}" for name in ("smt2", "solvers", "seeds") if getattr(options, name) is not None]
        own += ["--cores"] if options.cores else []
        if given or own:
            names = [*option_names(given), *own]
            raise Contradiction(f"--source judges the files as they are; drop {', '.join(names)}.")
        from .source import prove_source

        with reporter.progress(None, "source"):
            source = prove_source(options.source)
        reporter.source(source)
        return reporter.finish(int(source.exit_status))
    kept = ("scenario", "split", "arrivals", "numbers")
    narrowing = option_names({name: given[name] for name in kept if name in given})
    if narrowing:
        raise Contradiction(f"the proof is for all numbers and every order of events; drop {', '.join(narrowing)}.")
    modes = option_names(
        {name: given[name] for name in ("synchronous", "diffusion", "encoder_decoder") if name in given}
    )
    if modes:
        raise Contradiction(
            "the proof is of asynchronous scheduling, diffusion or not, and of decoder models; drop "
            f"{', '.join(modes)} (outlives table proves synchronous scheduling as well)."
        )
    if options.seeds is not None and not 1 <= options.seeds <= MOST_SEEDS:
        raise OutOfRange("--seeds", options.seeds, 1, MOST_SEEDS)
    from .proof.solvers import default_solvers, solvers_named
    from .proof_run import prove_configuration

    options.solvers = default_solvers() if options.solvers is None else solvers_named(options.solvers)
    if not given.keys() & {"relax", "reader", "items_anywhere"}:
        # The theorem that everybody asks for: readers may go back to confirmed, items may lie anywhere.
        given |= {"reader": "any", "items_anywhere": True}
    if not given.keys() & {"guard", "profile", "fault"}:
        given["guard"] = "confirmed"
    return prove_configuration(Configuration(**given), options, reporter)


def _table(options: argparse.Namespace, reporter: Reporter) -> int:
    from outlives.model.lifetime import GUARDS, WEAKEST, guard_named

    from .folder import make_folder
    from .proof.cells import ROWS
    from .proof.solvers import default_solvers, solvers_named
    from .table_run import judge_table

    guards = [guard_named(name).name for name in dict.fromkeys(options.guard)] if options.guard else list(ROWS)
    workers = workers_of(options.workers)
    solvers = default_solvers() if options.solvers is None else solvers_named(options.solvers)
    if options.price:
        from .price_run import show_prices

        named = guards if options.guard else [*GUARDS, *WEAKEST]
        return show_prices(named, reporter, solvers)
    folder = make_folder(out_folder(options), "table")
    return judge_table(guards, folder, reporter, workers, solvers)


def _faults(options: argparse.Namespace, reporter: Reporter) -> int:
    from .faults_run import faults_of

    return faults_of(options, reporter)


def _sweep(options: argparse.Namespace, reporter: Reporter) -> int:
    from .sweep_run import sweep_command

    return sweep_command(options, reporter)


def _real_subject(options: argparse.Namespace) -> "SubjectChoice | None":
    """The real scheduler that the options ask for; None: the model."""
    own = [f"--{name.replace('_', '-')}" for name in ("scheduler_cls", "vllm_config") if getattr(options, name)]
    subject = getattr(options, "subject", "vllm")
    if subject not in (None, *SUBJECTS):
        raise UnknownName("subject", subject, SUBJECTS)
    if subject != "vllm":
        if own:
            raise Contradiction(f"{', '.join(own)} is of a real scheduler: give --subject vllm.")
        return None
    from .subject.own import SubjectChoice

    return SubjectChoice(scheduler_cls=options.scheduler_cls, vllm_config=options.vllm_config)


def _conform(options: argparse.Namespace, reporter: Reporter) -> int:
    from .conform_run import conform_subject
    from .folder import make_folder

    configuration = Configuration(**given_of(options))
    if not 1 <= options.steps <= MOST_STEPS:
        raise OutOfRange("--steps", options.steps, 1, MOST_STEPS)
    choice = _real_subject(options)
    assert choice is not None
    folder = make_folder(out_folder(options), "conform")
    return conform_subject(
        choice, configuration, options.release_profile, options.steps, options.seed, folder, reporter
    )


def _replay(options: argparse.Namespace, reporter: Reporter) -> int:
    from .explained import replay_violation
    from .replay import replay

    choice = _real_subject(options)
    if choice is not None:
        from .subject_run import replay_on_subject

        return replay_on_subject(choice, Path(options.trace), given_of(options), reporter)
    done = replay(Path(options.trace), given_of(options))
    if done.violations and done.configuration is not None:
        reporter.violation(replay_violation(done, options.trace))
    reporter.say(f"{options.trace}: {done.outcome}.")
    if not done.violations:
        steps = len(done.recorded.steps) - 1
        reporter.say(f"It was recorded as {done.recorded.property_name}; nothing is violated in its {steps} steps.")
    if done.divergence is not None:
        reporter.say(str(done.divergence))
    for violation in done.violations:
        reporter.say(f"{violation.property} at step {violation.step}: {violation.why}")
    return reporter.finish(done.status)


def _explain(options: argparse.Namespace, reporter: Reporter) -> int:
    from .explain_run import explain_trace

    return explain_trace(options, formats_of(options), reporter)


def _profiles(_options: argparse.Namespace, reporter: Reporter) -> int:
    from .report.tables import profiles_tables

    for table in profiles_tables():
        reporter.table(table)
    return reporter.finish(0)


def _properties(_options: argparse.Namespace, reporter: Reporter) -> int:
    from .properties import scheduler_properties
    from .report.tables import properties_table

    reporter.table(properties_table(scheduler_properties(Configuration().world())))
    return reporter.finish(0)


def _scenarios(_options: argparse.Namespace, reporter: Reporter) -> int:
    from .report.tables import scenarios_table

    reporter.table(scenarios_table())
    return reporter.finish(0)


def _doctor(_options: argparse.Namespace, reporter: Reporter) -> int:
    from .doctor import environment_table
    from .subject.own import SubjectChoice
    from .subject_run import facts_of

    table, status = environment_table(lambda: facts_of(SubjectChoice(), reporter))
    reporter.table(table)
    return reporter.finish(status)


_COMMANDS: dict[str, Callable[[argparse.Namespace, Reporter], int]] = {
    "check": _check,
    "explore": _explore,
    "prove": _prove,
    "table": _table,
    "faults": _faults,
    "sweep": _sweep,
    "conform": _conform,
    "replay": _replay,
    "explain": _explain,
    "profiles": _profiles,
    "properties": _properties,
    "scenarios": _scenarios,
    "doctor": _doctor,
}
