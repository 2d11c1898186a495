"""`outlives sweep`: every item of a specification done by somebody, kept on disk, and reported in one order.

Belongs here: the command, and the loop that hands items out and takes what comes back. Items and their order are in
`sweep_items`, who does them in `sweep_crew`, files in `sweep_folder`, what it adds up to in `sweep_report`.

Theory of operation. An item that comes back is written before anything else happens, so whatever ends the command, the
folder holds what is done, and the same command goes on from there. An item whose worker died is tried again, a few
times; after that it is unknown, and stays undone in the folder. The report is made of the answers in the order of the
specification, never in the order of their arrival: its bytes do not tell who worked, how many, or how often anew.
"""

import argparse
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import Any

from outlives.model.errors import BadUserFile, Contradiction

from .command_options import out_folder
from .folder import make_folder
from .interrupt import was_pressed
from .report import Reporter
from .report.telling import count_of
from .sweep_crew import PROCESSES, Crew, crew_for
from .sweep_folder import SweepFolder, begun, opened
from .sweep_item import perform
from .sweep_items import Item, Plan, planned
from .sweep_report import sweep_report, sweep_tables
from .sweep_spec import Spec, read_spec
from .workers import workers_of

__all__ = ["Sweep", "sweep", "sweep_command"]

ATTEMPTS = 3
"""How often an item is begun whose worker dies."""
_LOOK_EVERY = 0.2
"""Seconds between two looks at whether the crew is still there."""
_DIED = (
    f"the worker died each of the {ATTEMPTS} times that it was begun: killed, out of memory, or ended by the code that "
    "it ran"
)


@dataclass(slots=True)
class Sweep:
    """A sweep under way, and what is known of it."""

    plan: Plan
    folder: SweepFolder
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Key -> what came of an item."""
    lost: dict[str, str] = field(default_factory=dict)
    """Key -> why nothing came of it this time."""
    interrupted: bool = False
    gone: str = ""
    """Why the crew is there no more."""

    @property
    def left(self) -> list[Item]:
        """The items that are not done."""
        return [item for key, item in self.plan.items.items() if key not in self.answers]


def sweep_command(options: argparse.Namespace, reporter: Reporter) -> int:
    """Begin a sweep, or go on with one; returns the exit status. Raises `OutlivesError` for bad input."""
    if options.spec is None and options.resume is None:
        raise Contradiction("sweep needs a SPEC.toml, or --resume FOLDER to go on with one.")
    if options.executor not in (None, PROCESSES) and options.workers is not None:
        raise Contradiction("--workers is of processes; a cluster has the workers that it has. Drop --workers.")
    workers = workers_of(options.workers)
    folder, plan, crew = _ready(options, workers)
    try:
        run = Sweep(plan, folder, answers=folder.answers(plan.items.values()))
        with reporter.progress(len(plan.items), "sweep") as advance:
            sweep(run, crew, advance)
    finally:
        crew.end()
        folder.release()
    report = sweep_report(plan, folder, run.answers, run.lost, interrupted=run.interrupted, gone=run.gone)
    reporter.run(report)
    for table in sweep_tables(plan, run.answers):
        reporter.table(table)
    others = folder.others(plan.items)
    if others:
        reporter.say(
            f"Not counted: {count_of(others, 'finished item')} in the folder, of files that have changed since."
        )
    if run.left:
        again = "" if options.executor is None else f" --executor {quote(options.executor)}"
        reporter.say(f"{len(run.answers)} of {count_of(len(plan.items), 'item')} are done and stay done. To go on:")
        reporter.say(f"outlives sweep --resume {quote(str(folder.path))}{again}")
    return reporter.finish(report.status)


def _ready(options: argparse.Namespace, workers: int) -> tuple[SweepFolder, Plan, Crew]:
    """The folder, what is to be done, and who does it. A new folder is made last: what is refused leaves none."""
    spec: Spec | None = None
    if options.spec is not None:
        spec = read_spec(options.spec)
    if options.resume is None:
        assert spec is not None
        plan = planned(spec, options.spec)
        crew = crew_for(options.executor, workers, _files(plan))
        try:
            return begun(make_folder(out_folder(options), "sweep"), spec), plan, crew
        except BaseException:
            crew.end()
            raise
    if options.resume == "" or options.out is not None:
        raise Contradiction("--resume FOLDER names the folder that the sweep has; it takes the place of --out.")
    folder, recorded = opened(Path(options.resume))
    if spec is not None and spec != recorded:
        folder.release()
        raise Contradiction(
            f"{options.spec} is not what {options.resume} was begun with; leave one of them out, or begin a new sweep."
        )
    try:
        try:
            plan = planned(recorded, f"--resume {options.resume}")
        except (LookupError, TypeError, ValueError, AttributeError):
            raise BadUserFile(f"--resume {options.resume}: its sweep.json is no record of a sweep.") from None
        return folder, plan, crew_for(options.executor, workers, _files(plan))
    except BaseException:
        folder.release()
        raise


def _files(plan: Plan) -> Mapping[str, str]:
    return {path: digest for item in plan.items.values() for path, digest in item.about["files"].items()}


# --- handing out and taking back --------------------------------------------------------------------------------------


def sweep(run: Sweep, crew: Crew, advance: Any) -> None:
    """Have every item done that is not. Ctrl-C, and a crew that is gone, end it with what is known by then."""
    advance(len(run.answers))
    try:
        _hand_out(run, crew, advance)
    except KeyboardInterrupt:
        run.interrupted = True
    except Exception:
        if not was_pressed():
            raise
        run.interrupted = True


def _hand_out(run: Sweep, crew: Crew, advance: Any) -> None:
    waiting = deque(run.left)
    begun_before: dict[str, int] = {}
    flying: dict[Future[dict[str, Any]], Item] = {}
    looked = time.monotonic()
    while waiting or flying:
        room = crew.room() if waiting else 0
        while waiting and len(flying) < room:
            item = waiting.popleft()
            begun_before[item.key] = begun_before.get(item.key, 0) + 1
            try:
                flying[crew.executor.submit(perform, item.about)] = item
            except RuntimeError as error:
                run.gone = crew.gone() or f"it takes no more items ({type(error).__name__})"
                return
        back = wait(flying, _LOOK_EVERY, return_when=FIRST_COMPLETED).done
        if back or time.monotonic() - looked >= _LOOK_EVERY:
            looked = time.monotonic()
            run.gone = crew.gone()
        for future in sorted(back, key=lambda each: flying[each].key):
            item = flying.pop(future)
            trouble = None if future.cancelled() else future.exception()
            if not future.cancelled() and trouble is None:
                _take(run, item, future.result(), advance)
            elif run.gone:
                continue
            elif not crew.died(trouble):
                assert trouble is not None
                raise trouble
            elif begun_before[item.key] >= ATTEMPTS:
                run.lost[item.key] = _DIED
            else:
                waiting.append(item)
        if run.gone:
            return


def _take(run: Sweep, item: Item, said: Mapping[str, Any], advance: Any) -> None:
    if "elsewhere" in said:
        run.lost[item.key] = said["elsewhere"]
        return
    run.answers[item.key] = run.folder.keep(item, said)
    advance(len(run.answers), _line(item, said))


def _line(item: Item, said: Mapping[str, Any]) -> str:
    """What is worth a line of its own as soon as it is known."""
    about = item.about
    if "trouble" in said:
        return f"{about['profile']}, seed {about['seed']}: {said['trouble']}"
    bad = dict.fromkeys(row["property"] for row in said["answer"]["results"] if row["verdict"] == "violated")
    title = said["answer"]["title"]
    return f"{title}, seed {about['seed']}: violated {', '.join(bad)}" if bad else ""
