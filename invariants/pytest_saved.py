"""What earlier runs saved, for one test: which traces are its own, and what of them is violated again.

Belongs here: choosing trace files below the folder `out`, and replaying them: on the built-in scheduler, on a model of
the user's own, on a live subject, and on an installed vLLM. Nothing here draws runs, and no file is ever changed.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from outlives.model.contract import Action, Model
from outlives.model.errors import OutlivesError
from outlives.model.trace import SUFFIX, Recorded, read_trace

from .configuration import Configuration
from .explained import replay_violation
from .known import Known, fingerprint
from .pytest_check import Row, rendered
from .pytest_options import runs_of
from .replay import Violation as Found
from .replay import replay, replay_on
from .report.content import Violation as Shown
from .report.content import explain
from .subject.given import replay_on_given
from .subject.live import SubjectModel
from .verdict import Trace

__all__ = ["chosen_traces", "is_known", "row_of", "saved_of_model", "saved_rows", "saved_traces"]

_MOST_SAVED = 20
"""Saved traces that a test replays: the newest of each property and length, so that years of runs cost nothing."""
_MOST_LOOKED_AT = 500


def saved_traces(out: Path, pattern: str = f"**/*{SUFFIX}", before: int | None = None) -> list[Path]:
    """Trace files below the folder, newest first, without those that were not shrunk, and without those that are not
    older than `before` (nanoseconds of the clock): what a test of this very run saved is no other test's business."""
    times: dict[Path, int] = {}
    with suppress(OSError):  # no folder, or one that is going
        for path in out.glob(pattern):
            with suppress(OSError):
                times[path] = path.stat().st_mtime_ns
    times = {path: time for path, time in times.items() if "-unshrunk" not in path.name}
    found = [path for path, time in times.items() if before is None or time < before]
    return sorted(found, key=lambda path: (-times[path], str(path)))[:_MOST_LOOKED_AT]


def chosen_traces(
    paths: Iterable[Path], ours: Callable[[Recorded], Recorded | None]
) -> Iterator[tuple[Path, Recorded]]:
    """The files that are this test's, as it reads them; one of each property and actions, so many and no more."""
    seen: set[Any] = set()
    for path in paths:
        try:
            recorded = ours(read_trace(path))
        except OutlivesError:
            continue  # no trace
        if recorded is None:
            continue
        key = recorded.property_name, tuple(step.action for step in recorded.steps)
        if key not in seen:
            seen.add(key)
            yield path, recorded
        if len(seen) == _MOST_SAVED:
            return


def row_of(path: Path, name: str, shown: Shown) -> Row:
    """What is told of a saved trace that is violated again."""
    return Row(f"saved {path.name} ({name})", f"violated again: {path}\n{rendered(shown)}")


# --- the built-in scheduler -------------------------------------------------------------------------------------------


def saved_rows(
    out: Path, configuration: Configuration, known: Known | None = None, before: int | None = None
) -> tuple[list[Row], int]:
    """A row for each saved counterexample of this configuration that is violated again, and how many were replayed.
    What is known, and what of a property that is not asked about, is passed over."""
    properties = configuration.judged(configuration.world())
    judged = {prop.name for prop in properties}
    fair = {prop.name for prop in properties if prop.kind == "progress"}
    own = {name: getattr(configuration, name) for name in ("profile", "fault")}
    user = {name: value for name, value in own.items() if value is not None and ".py:" in value}

    def ours(recorded: Recorded) -> Recorded | None:
        about_it = "subject" not in recorded.meta and recorded.property_name in judged
        return recorded if about_it and _fits(recorded.meta, configuration) else None

    rows, replayed = [], 0
    for path, recorded in chosen_traces(saved_traces(out, before=before), ours):
        try:
            done = replay(recorded, user)
        except OutlivesError:
            continue  # of another model after all
        replayed += 1
        found = [each for each in done.violations if each.property in judged]
        if known is not None:
            met = partial(is_known, recorded=recorded, trace=done.trace, fair=fair, known=known)
            found = [each for each in found if not met(each, scenario=configuration.scenario)]
        if found:
            rows.append(row_of(path, done.trace.property, replay_violation(done, str(path))))
    return rows, replayed


def _fits(meta: Mapping[str, Any], configuration: Configuration) -> bool:
    """Whether a file is of this scheduler under these assumptions, whatever its numbers and policy."""
    plain = configuration.plain()
    routes = meta.get("routes")
    closed = sorted(routes.get("closed", ())) if isinstance(routes, dict) else None
    same = ("profile", "guard", "relaxed", "reader", "scenario", "fault", "items_anywhere", "split")
    return closed == plain["without"] and all(meta.get(name) == plain.get(name) for name in same)


def is_known(
    found: Found, *, recorded: Recorded, trace: Trace, fair: Collection[str], known: Known, scenario: str | None
) -> bool:
    """Whether what a replay found is among the known findings. `fair`: properties of progress, which are judged when
    nobody acts any more."""
    action = None if found.property in fair else recorded.steps[found.step].action
    return fingerprint(found.property, action, found.why, trace.steps[0].state, scenario) in known.findings


# --- a model or a live subject of the user's own ----------------------------------------------------------------------


def saved_of_model(
    model: Model[Any], out: Path, name: str, renamed: Mapping[str, str], before: int | None = None
) -> tuple[list[Row], int]:
    """The same of a model, or of a live subject: of what the test of this name saved. `renamed`: actions that have
    another name now, old to new."""
    live = isinstance(model, SubjectModel)
    rows, replayed = [], 0
    paths = saved_traces(runs_of(out), f"{name}-*/*{SUFFIX}", before)
    for path, recorded in chosen_traces(paths, lambda read: _renamed(read, renamed)):
        try:
            done = replay_on_given(recorded, model) if isinstance(model, SubjectModel) else replay_on(recorded, model)
        except OutlivesError:
            continue  # its actions or its property are no longer the model's
        replayed += 1
        if done.violations:
            world = model.world if isinstance(model, SubjectModel) else None
            shown = explain(done.trace, world=world, model=None if live else model, engine="replay", files=(str(path),))
            rows.append(row_of(path, done.trace.property, shown))
    return rows, replayed


def _renamed(recorded: Recorded, names: Mapping[str, str]) -> Recorded:
    """The trace with its actions' new names."""
    if not names:
        return recorded

    def anew(action: Action | None) -> Action | None:
        return None if action is None else action._replace(name=names.get(action.name, action.name))

    return replace(recorded, steps=tuple(replace(step, action=anew(step.action)) for step in recorded.steps))
