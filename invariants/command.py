"""The command line: `outlives COMMAND`. Options into records, records into reports, reports into an exit status.

Belongs here: the parser and the dispatch. What a command does is in `commands`, which is imported only once the
arguments are understood, so that `--help` answers at once.
"""

import argparse
import contextlib
import gc
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

from outlives.model.errors import OutlivesError

from .interrupt import ctrl_c_noticed, was_pressed
from .project import Project
from .project_options import filled

__all__ = ["main"]

_NUMBERS = (
    ("requests", "1 to 3, default 2"),
    ("turns", "of a request, 1 to 4: more than 1 is a session"),
    ("items", "of a request"),
    ("slots", "of the cache"),
    ("drafts", "most in a decode step"),
    ("depth", "most steps in flight"),
    ("budget", "tokens of a step"),
    ("encoder-budget", "slots encoded in a step; 0: all that the cache holds"),
    ("chunk-cap", "most tokens of a request in a step; 0: no cap"),
    ("look-ahead", "positions that the drafter reads past its window"),
)

_MODES = (
    ("synchronous", "nothing is promised; --depth pipeline stages"),
    ("diffusion", "a step samples nothing beside its drafts"),
    ("encoder-decoder", "no sharing; all items at a request's start"),
)
"""Of these modes is every run where they are given; none given, each is drawn now and then."""

_ARGUMENTS = {"replay": " TRACE", "explain": " TRACE", "sweep": " [SPEC.toml]"}
"""What a command takes beside options."""

_EXIT = """exit status: 0 good, 1 violated, 2 usage or input, 3 unknown or budget, 4 vacuous, 5 engines disagree,
130 interrupted"""


_BROKEN_PIPE = 141
"""What a shell shows for a program that the closed pipe ended: nobody saw the verdict, so none is given."""


class _UsageError(OutlivesError):
    """Arguments that the parser does not understand."""


class _Parser(argparse.ArgumentParser):
    """Answers a mistake with one sentence, as every other bad input is answered, and takes no half option names."""

    def __init__(self, **named: Any) -> None:
        super().__init__(allow_abbrev=False, **named)

    def error(self, message: str) -> NoReturn:
        raise _UsageError(f"{message} (see {self.prog} --help).")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status. Never a traceback for bad input."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        if sys.stdout is None:  # closed by who started us
            raise OSError("standard output is closed")
        with ctrl_c_noticed():
            try:
                status = _run(given)
            except KeyboardInterrupt:
                status = None
            if was_pressed():
                gc.collect()  # half-made objects of the solver complain at their end: here nobody hears it
        if status is None:
            print("outlives: interrupted before anything was known", file=sys.stderr)
            return 130
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        _forget_output()
        return _BROKEN_PIPE
    except OSError as error:
        _forget_output()
        print(f"outlives: the answer cannot be written: {error.strerror or error}.", file=sys.stderr)
        return 2


def _forget_output() -> None:
    """What is left in the buffer must not be tried again when Python ends."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(given: Sequence[str]) -> int:
    project, used = Project(), dict[str, Any]()
    try:
        options, project, used = filled(_parser(), given)
        from .commands import run_command

        return run_command(options)
    except OutlivesError as error:
        return _wrong(given, project.told(error, used))
    except BrokenPipeError:
        raise
    except Exception:
        if was_pressed():
            raise KeyboardInterrupt from None
        raise
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a class of a user's own rules: what engines pass on, as they pass on Ctrl-C
        return _wrong(given, f"the run was ended by {_place(error)}, which raised {type(error).__name__}: {error}.")


def _wrong(given: Sequence[str], what: str) -> int:
    """Tell it as the answer would be told."""
    from .report import reporter_for

    reporter = reporter_for(as_json="--json" in given, ascii_only="--ascii" in given)
    reporter.error(what)
    return reporter.finish(2)


def _place(error: BaseException) -> str:
    """File and line of the innermost frame."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.filename}, line {frame.lineno}"


def _parser() -> _Parser:
    parser = _Parser(
        prog="outlives",
        description="Proves and tests that a cache entry outlives its last reader in an LLM scheduler.",
        epilog=_EXIT,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    check = _command(
        commands, "check", "run the engines on one scheduler and report", "outlives check --profile 0.24.0"
    )
    _subject_options(check)
    _run_options(check)
    check.add_argument("--engine", action="append", metavar="NAME", help="machine, exhaustive or proof; repeatable")
    check.add_argument("--property", action="append", metavar="NAME", help="judge only this property; repeatable")
    check.add_argument("--settings", metavar="NAME", default="ci", help="quick, ci (default), nightly or debug")
    check.add_argument("--cases", type=int, metavar="N", help="runs of the machine, instead of the settings' number")
    _not_reached_option(check)
    check.add_argument("--known", metavar="FILE", help="findings that are known: met again they do not fail the run")
    _workers_option(check)
    _real_options(check)

    conform = _command(
        commands,
        "conform",
        "run a profile and the installed vLLM side by side, and compare them after every action",
        "outlives conform --release-profile 0.32.0",
    )
    _scope_options(conform)
    _run_options(conform)
    conform.add_argument("--release-profile", metavar="NAME", help="the profile, instead of the nearest to the release")
    conform.add_argument(
        "--steps", type=int, default=20_000, metavar="N", help="compared actions of each policy (default 20000)"
    )
    _real_options(conform, subject=False)

    explore = _command(
        commands,
        "explore",
        "visit every state of small scopes, for the shortest trace to whatever is wrong in them",
        "outlives explore --scope tight-cache --drafts 0..2 --stats",
    )
    _subject_options(explore)
    _run_options(explore)
    _search_options(explore)
    _workers_option(explore)

    prove = _command(
        commands,
        "prove",
        "prove the guard's safety for unbounded numbers, or judge real source files",
        "outlives prove --source path/to/vllm",
    )
    _subject_options(prove)
    _run_options(prove)
    prove.add_argument(
        "--source",
        nargs="+",
        metavar="PATH",
        help="judge the released free condition of these files, or of an unpacked or installed vllm package; what is "
        "lifted from them is executed, with nothing but recording stubs in reach",
    )
    prove.add_argument("--smt2", metavar="DIR", help="also write each obligation as SMT-LIB2 text into this folder")
    prove.add_argument(
        "--solvers", metavar="NAMES", help="who decides each obligation: z3, or z3,cvc5 (default: all installed ones)"
    )
    prove.add_argument(
        "--seeds", type=int, metavar="N", help="decide each under N seeds of each solver, from --seed on (default 1)"
    )

    prove.add_argument("--cores", action="store_true", help="also what each obligation was shown from")

    table = _command(commands, "table", "judge every guard under every relaxed assumption", "outlives table")
    table.add_argument("--guard", action="append", metavar="NAME", help="only this guard; repeatable")
    table.add_argument(
        "--price", action="store_true", help="instead: what each guard costs, in slots and in cache that a prompt needs"
    )
    table.add_argument(
        "--solvers", metavar="NAMES", help="who decides each obligation: z3, or z3,cvc5 (default: all installed ones)"
    )
    _run_options(table, seed=False)
    _workers_option(table)

    faults = _command(
        commands,
        "faults",
        "put the known faults to every engine, and list what is not found",
        "outlives faults --seeds 10",
    )
    faults.add_argument(
        "--fault",
        action="append",
        dest="faults",
        metavar="NAME",
        help="only this fault, or path.py:name of your own; repeatable",
    )
    faults.add_argument("--engine", action="append", metavar="NAME", help="exhaustive, machine or proof; repeatable")
    faults.add_argument("--settings", metavar="NAME", default="ci", help="of the machine: quick, ci (default), nightly")
    faults.add_argument("--seeds", type=int, default=1, metavar="N", help="run the machine with N seeds (default 1)")
    faults.add_argument(
        "--mutants",
        action="store_true",
        help="instead, mutants of the model's own rules (a campaign: an hour and a half)",
    )
    faults.add_argument("--every", type=int, default=1, metavar="N", help="of the mutants, every Nth (default: all)")
    faults.add_argument("--mutant", action="append", metavar="KEY", help="only this mutant; repeatable")
    faults.add_argument("--list", action="store_true", help="only show the faults, and what is not covered")
    _run_options(faults)
    _workers_option(faults)

    sweep = _command(
        commands,
        "sweep",
        "run many configurations, by any number of workers, and tell them in one matrix (docs/sweep.md)",
        "outlives sweep docs/examples/sweep.toml",
    )
    sweep.add_argument("spec", nargs="?", metavar="SPEC", help="a TOML file; its keys are in docs/sweep.md")
    sweep.add_argument("--resume", metavar="FOLDER", help="go on with the sweep that was begun in this folder")
    sweep.add_argument("--executor", metavar="NAME", help="processes (default), or dask:ADDRESS of a cluster")
    _workers_option(sweep)
    _run_options(sweep, seed=False)

    replay = _command(commands, "replay", "run a saved trace again", "outlives replay TRACE.itf.json")
    replay.add_argument("trace", metavar="TRACE")
    _subject_options(replay)
    _real_options(replay)
    _output_options(replay)

    explain = _command(
        commands,
        "explain",
        "say everything about a saved trace, also one changed by hand, in any format",
        "outlives explain TRACE.itf.json --format html --open",
    )
    explain.add_argument("trace", metavar="TRACE")
    explain.add_argument("--open", action="store_true", help="write the page (html) and open it in a browser")
    _subject_options(explain)
    _format_options(explain)
    explain.add_argument("--out", metavar="DIR", help="folder for the documents; nothing is overwritten")
    _output_options(explain)

    for name, phrase in (
        ("profiles", "what each release does, from the data that the model runs on"),
        ("properties", "what is checked"),
        ("scenarios", "the fixed points"),
        ("doctor", "what this environment has, and what can be checked in it"),
    ):
        _output_options(_command(commands, name, phrase, f"outlives {name}"))
    return parser


def _command(commands: "argparse._SubParsersAction[_Parser]", name: str, phrase: str, example: str) -> _Parser:
    return commands.add_parser(
        name,
        help=phrase,
        usage=f"%(prog)s [options]{_ARGUMENTS.get(name, '')}",
        description=f"{phrase[0].upper()}{phrase[1:]}.",
        epilog=f"example: {example}    {_EXIT}",
    )


def _subject_options(parser: argparse.ArgumentParser) -> None:
    subject = parser.add_argument_group("the scheduler")
    subject.add_argument("--profile", metavar="NAME", help="a release, repaired (default), or path.py:name")
    subject.add_argument("--guard", metavar="NAME", help="the free condition, instead of the profile's")
    subject.add_argument(
        "--fault", metavar="NAME", help="plant a fault: a known one (outlives faults --list), or path.py:name"
    )
    subject.add_argument("--relax", metavar="A1,A3", help="relaxed assumptions, of A1 to A4")
    subject.add_argument("--reader", metavar="WHERE", help="where a worker starts to read: checked, true or any")
    _scope_options(parser, subject)


def _scope_options(parser: argparse.ArgumentParser, subject: "argparse._ArgumentGroup | None" = None) -> None:
    """What holds of a real scheduler too."""
    subject = subject or parser.add_argument_group("the scheduler")
    subject.add_argument("--without", action="append", metavar="ROUTE", help="close a route; repeatable")
    subject.add_argument("--policy", metavar="NAME", help="fcfs, priority, or both (default)")
    for name, phrase in _MODES:
        subject.add_argument(f"--{name}", action="store_true", help=f"mode: {phrase}")
    subject.add_argument("--scenario", metavar="NAME", help="a fixed point (see outlives scenarios)")
    subject.add_argument("--items-anywhere", action="store_true", help="items may reach past the prompt")
    subject.add_argument("--split", action="store_true", help="execute and process as two actions")
    subject.add_argument("--arrivals", metavar="ORDER", help="of several requests: in-order (default), or any")
    listed = "; ".join(f"--{name} N ({phrase})" for name, phrase in _NUMBERS)
    numbers = parser.add_argument_group("its numbers, each N or LOW..HIGH", f"{listed}.")
    for name, _ in _NUMBERS:
        numbers.add_argument(f"--{name}", metavar="N", help=argparse.SUPPRESS)


def _real_options(parser: argparse.ArgumentParser, *, subject: bool = True) -> None:
    real = parser.add_argument_group("a real scheduler, in an environment that has vLLM (docs/vllm.md)")
    if subject:
        real.add_argument("--subject", metavar="NAME", help="model (default), or vllm: the installed scheduler")
    real.add_argument("--scheduler-cls", metavar="NAME", help="package.module.Class of a scheduler of your own")
    real.add_argument("--vllm-config", metavar="FILE", help="path.py:function that returns your VllmConfig")


def _search_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--property", action="append", metavar="NAME", help="judge only this property; repeatable")
    parser.add_argument(
        "--scope",
        action="append",
        metavar="NAME",
        help="a named scope (default: all); repeatable; numbers given replace its own",
    )
    parser.add_argument("--stats", action="store_true", help="also sizes, levels, actions and ends, by scope")
    _not_reached_option(parser)
    bounds = parser.add_argument_group("how far; where a bound stops it the answer is unknown (3)")
    bounds.add_argument("--states", type=int, metavar="N", help="distinct states of a scope")
    bounds.add_argument("--max-depth", type=int, metavar="N", help="actions from an initial state")
    bounds.add_argument("--memory", type=int, metavar="MB", help="memory of a process, in MiB")
    bounds.add_argument("--seconds", type=float, metavar="S", help="wall-clock time of all scopes together")
    bounds.add_argument(
        "--checkpoint",
        metavar="FILE",
        help="keep a stopped search here (several scopes: FILE.SCOPE), and go on from it",
    )


def _not_reached_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--not-reached", action="store_true", help="also list branches and refusals not reached")


def _workers_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="processes (default: the processors, at most 4); the answer is the same",
    )


def _run_options(parser: argparse.ArgumentParser, *, seed: bool = True) -> None:
    if seed:
        parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of everything random (default 0)")
    parser.add_argument("--out", metavar="DIR", help="folder for traces (default .outlives); nothing is overwritten")
    _format_options(parser)
    _output_options(parser)


def _format_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        action="append",
        metavar="NAME",
        help="html, markdown, itf, sarif, junit or pytest, printed instead of text; with --out into files beside it; "
        "repeatable",
    )


def _output_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    parser.add_argument("--ascii", action="store_true", help="plain ASCII, no colour")


if __name__ == "__main__":
    sys.exit(main())
