"""One item of a sweep, run: plain data in, plain data out, in whichever process or thread of whichever machine.

Belongs here: `perform`, the function that executors are given, and what its answer holds. It runs `check`, or `explore`
of one named scope, in a folder of its own that is gone afterwards; traces travel as text. Nothing in an answer differs
between two runs of the same item: no clock, no rate, no path of the machine that ran it.
"""

import io
import re
import tempfile
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from outlives.model.errors import BadModel, OutlivesError

from .sweep_items import configuration_of, digest_of
from .userfile import placed
from .workers import ended_by

__all__ = ["perform"]

_one_at_a_time = threading.Lock()
"""The solver has one context a process, and Hypothesis is changed while it runs: threads of one worker take turns."""
_RATE = re.compile(r", [\d,]+ states/s; left: .*")
"""Of a stopped search: how fast it was, and the estimate that follows from that."""


def perform(about: Mapping[str, Any]) -> dict[str, Any]:
    """Run the item. Of the answer's members one is there: `answer`, what was found; `trouble`, why this item can never
    be answered, in a sentence; `elsewhere`, why it cannot be answered here."""
    with _one_at_a_time:
        own = [name for name in (about["fault"], about["profile"]) if name is not None and ".py:" in name]
        try:
            moved = _other_files(about["files"])
            return {"elsewhere": moved} if moved else _answered(about)
        except BadModel as error:
            return {"trouble": placed(error, own)}
        except OutlivesError as error:
            return {"trouble": str(error)}
        except (Exception, SystemExit) as error:
            if not own:
                raise
            return {"trouble": str(ended_by(error, own))}


def _other_files(files: Mapping[str, str]) -> str:
    """What keeps the user's files from being those that the sweep was begun with; empty where nothing does."""
    for path, digest in files.items():
        try:
            found = digest_of(path)
        except OutlivesError as error:
            return f"a worker has no such file: {error}"
        if found != digest:
            return f"a worker has another {path} than the sweep was begun with."
    return ""


def _answered(about: Mapping[str, Any]) -> dict[str, Any]:
    from .run_record import stamped

    with tempfile.TemporaryDirectory(prefix="outlives-item-") as name:
        folder = Path(name)
        run, trouble = _explored(about, folder) if about["visit"] is not None else _checked(about, folder)
        if run.interrupted:
            raise KeyboardInterrupt
        if trouble is not None:
            raise trouble
        run = stamped(run)
        traces = {path.name: path.read_text(encoding="ascii") for path in sorted(folder.glob("*.itf.json"))}
        rows = [_row(row, traces) for row in run.results]
        shown = {row["trace"] for row in rows}
        answer = {
            "status": run.status,
            "title": run.title,
            "results": rows,
            "not_covered": _timeless(run.all_not_covered),
            "not_reached": _timeless(run.not_reached),
            "vacuous": _timeless(run.vacuous),
        }
        return {"answer": answer, "traces": {name: text for name, text in traces.items() if name in shown}}


def _row(row: Any, traces: Mapping[str, str]) -> dict[str, Any]:
    name = f"{row.engine}-{row.property}.itf.json"
    return {
        "engine": row.engine,
        "property": row.property,
        "verdict": str(row.verdict),
        "coverage": _RATE.sub("", row.coverage),
        "note": _RATE.sub("", row.note),
        "actions": None if row.trace is None else len(row.trace.actions),
        "trace": name if row.trace is not None and name in traces else None,
    }


def _timeless(lines: Iterable[str]) -> list[str]:
    return [_RATE.sub("", line) for line in lines]


def _checked(about: Mapping[str, Any], folder: Path) -> tuple[Any, BadModel | None]:
    from .check import CheckRun, check
    from .machine_settings import machine_profile

    settings = machine_profile(about["settings"])
    if about["cases"] is not None:
        settings = settings.changed(cases=about["cases"])
    run = CheckRun(
        configuration=configuration_of(about),
        engines=tuple(about["engines"]),
        settings=settings,
        seed=about["seed"],
        folder=folder,
        progress=_quiet().progress,
    )
    return check(run), run.trouble


def _explored(about: Mapping[str, Any], folder: Path) -> tuple[Any, BadModel | None]:
    from .explore import Bounds
    from .explore_run import ExploreRun, explore_scopes
    from .scope_choice import chosen_scopes

    configuration = configuration_of(about)
    scopes = chosen_scopes(configuration, [about["visit"]])
    run = ExploreRun(configuration=configuration, scopes=scopes, bounds=Bounds(states=about["states"]), folder=folder)
    return explore_scopes(run, _quiet()), run.trouble


def _quiet() -> Any:
    """A reporter that nobody hears."""
    from .report import reporter_for

    return reporter_for(as_json=True, out=io.StringIO(), err=io.StringIO())
