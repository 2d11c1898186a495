"""What a sweep adds up to: the matrix, what is violated where, and a run that every writer of reports can write.

Belongs here: the merge. Everything is taken in the order of the specification, so the same answers give the same
report, whoever gave them and when.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from outlives.model.errors import OutlivesError

from .explained import explain_file
from .report.content import DataTable, Run, Violation
from .report.telling import count_of
from .sweep_crew import made_with
from .sweep_folder import SweepFolder
from .sweep_items import Cell, Plan
from .verdict import EXIT_STATUS, Result, Verdict

__all__ = ["sweep_report", "sweep_tables"]

Answers = Mapping[str, Mapping[str, Any]]
"""Key of an item -> `answer`, or `trouble`."""

_WEAKEST = (Verdict.PASSED, Verdict.EXHAUSTED, Verdict.PROVED)
_NOT_DONE = "not done"
_IMPOSSIBLE = "-"
_MOST_NAMED = 2
_LEGEND = (
    "violated N: N properties are violated. Otherwise the weakest of what was found: passed (sampled runs), exhausted "
    "(every state of the scope), proved (unbounded numbers).",
    "unknown: some item has no answer; vacuous: some property, or an open route, was never put to the test.",
)
_ITEMS = "ITEMS-ANSWERED"


# --- tables -----------------------------------------------------------------------------------------------------------


def sweep_tables(plan: Plan, answers: Answers) -> Iterator[DataTable]:
    """What is violated where, a matrix for each scope where there are several, and the one over everything: last, so
    that it stands nearest to the prompt."""
    scopes = [entry.name for entry in plan.spec.scopes]
    title = f"Matrix of {count_of(len(plan.items), 'item')}"
    yield from _violated(plan, answers)
    for number, scope in enumerate(scopes if len(scopes) > 1 else (), 1):
        yield _matrix(plan, answers, f"matrix-{number}", f"Scope {scope}", [scope])
    yield _matrix(plan, answers, "matrix", f"{title}, all scopes" if len(scopes) > 1 else title, scopes)


def _matrix(plan: Plan, answers: Answers, name: str, title: str, scopes: Iterable[str]) -> DataTable:
    rows = []
    for profile, guard in dict.fromkeys((cell.profile, cell.guard) for cell in _ordered(plan)):
        words = [
            _word(plan, answers, [Cell(profile, guard, assumptions, scope) for scope in scopes])
            for assumptions in plan.spec.assumptions
        ]
        rows.append((profile, guard, *words))
    used = {word.split()[0] for row in rows for word in row[2:]}
    legend = [*_LEGEND] if name == "matrix" else []
    if name == "matrix" and _NOT_DONE.split()[0] in used:
        legend.append("not done: some item of the cell is still to be done, and nothing is violated so far.")
    if name == "matrix" and _IMPOSSIBLE in used:
        legend.append("-: there is no such thing; why, is told among what is not covered.")
    return DataTable(
        name=name, title=title, columns=("profile", "guard", *plan.spec.assumptions), rows=tuple(rows),
        legend=tuple(legend),
    )  # fmt: skip


def _ordered(plan: Plan) -> list[Cell]:
    """Every cell, those that cannot be among them, in the order of the specification."""
    places = {
        "guard": {name: number for number, name in enumerate(plan.spec.guards)},
        "assumptions": {name: number for number, name in enumerate(plan.spec.assumptions)},
        "scope": {entry.name: number for number, entry in enumerate(plan.spec.scopes)},
    }
    profiles = {name: number for number, name in enumerate(plan.names.values())}
    return sorted(
        (*plan.cells, *plan.impossible),
        key=lambda cell: (
            profiles[cell.profile],
            places["guard"][cell.guard],
            places["assumptions"][cell.assumptions],
            places["scope"][cell.scope],
        ),
    )


def _word(plan: Plan, answers: Answers, cells: Iterable[Cell]) -> str:
    keys = list(dict.fromkeys(key for cell in cells for key in plan.cells.get(cell, ())))
    if not keys:
        return _IMPOSSIBLE
    rows = [row for key in keys for row in _rows(answers.get(key, {}))]
    verdicts = {Verdict(row["verdict"]) for row in rows}
    if Verdict.DISAGREE in verdicts:
        return str(Verdict.DISAGREE)
    if Verdict.VIOLATED in verdicts:
        return f"violated {len({row['property'] for row in rows if row['verdict'] == Verdict.VIOLATED})}"
    if any(key not in answers for key in keys):
        return _NOT_DONE
    if Verdict.UNKNOWN in verdicts or any("trouble" in answers[key] for key in keys):
        return str(Verdict.UNKNOWN)
    if Verdict.VACUOUS in verdicts or not rows or any(answers[key]["answer"]["vacuous"] for key in keys):
        return str(Verdict.VACUOUS)
    return str(next(each for each in _WEAKEST if each in verdicts))


def _rows(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = answer.get("answer", {}).get("results", [])
    return rows


def _violated(plan: Plan, answers: Answers) -> Iterator[DataTable]:
    """Each violated property of each cell once, by its shortest trace."""
    rows = []
    for cell in _ordered(plan):
        found: dict[str, tuple[int, int, str, str]] = {}
        for number, key in enumerate(plan.cells.get(cell, ())):
            for row in _rows(answers.get(key, {})):
                if row["verdict"] == Verdict.VIOLATED:
                    length = row["actions"] if row["actions"] is not None else 10**9
                    shortest = (length, number, key, row["engine"])
                    found[row["property"]] = min(found.get(row["property"], shortest), shortest)
        for name, (length, _, key, engine) in found.items():
            seed = str(plan.items[key].about["seed"])
            rows.append((*cell, seed, name, engine, "" if length == 10**9 else str(length), key))
    if rows:
        columns = (*Cell._fields, "seed", "property", "engine", "actions", "item")
        heads = tuple({"assumptions": "assumed", "actions": "steps"}.get(each, each) for each in columns)
        legend = "A row's trace is traces/ITEM-ENGINE-PROPERTY.itf.json in the folder; outlives replay takes it again."
        yield DataTable(name="violated", title="Violated, by the shortest trace of each cell", columns=columns,
                        rows=tuple(rows), legend=(legend,), heads=heads)  # fmt: skip


# --- the run ----------------------------------------------------------------------------------------------------------


def sweep_report(
    plan: Plan,
    folder: SweepFolder,
    answers: Answers,
    lost: Mapping[str, str],
    *,
    interrupted: bool,
    gone: str,
) -> Run:
    """The whole sweep as one run: a row per property and engine over all items, and each violated property told once,
    by its shortest trace."""
    known = [key for key in plan.items if key in answers]
    whole = [(key, answers[key]["answer"]) for key in known if "answer" in answers[key]]
    spec = plan.spec
    axes = {
        "profile": spec.profiles, "guard": spec.guards, "set of assumptions": spec.assumptions, "scope": spec.scopes,
        "seed": spec.seeds,
    }  # fmt: skip
    counts = " x ".join(_counted(len(values), name) for name, values in axes.items())
    results = [*_results(plan, whole), *_unanswered(plan, answers, lost, gone)]
    return Run(
        title=f"{spec.title or 'sweep'}: {counts}",
        results=tuple(results),
        violations=tuple(_violations(plan, folder, whole)),
        not_covered=tuple(_not_covered(plan, whole)),
        not_reached=tuple(_shared((answer["not_reached"] for _, answer in whole), len(whole), everywhere=True)),
        vacuous=tuple(_shared((answer["vacuous"] for _, answer in whole), len(whole))),
        configuration=spec.plain(),
        provenance={**made_with(), "items": len(plan.items), "settings": spec.settings},
        out=str(folder.path),
        interrupted=interrupted,
    )


def _counted(count: int, name: str) -> str:
    return f"{count} sets of assumptions" if name.startswith("set") and count > 1 else count_of(count, name)


def _results(plan: Plan, whole: list[tuple[str, Mapping[str, Any]]]) -> Iterator[Result]:
    """The worst verdict of each property by each engine, and how many items it is the verdict of."""
    rows: dict[tuple[str, str], list[tuple[str, Mapping[str, Any]]]] = {}
    for key, answer in whole:
        for row in answer["results"]:
            rows.setdefault((row["engine"], row["property"]), []).append((key, row))
    cells = _cells_of(plan)
    order = list(EXIT_STATUS)
    engines = list(dict.fromkeys(engine for engine, _ in rows))
    for (engine, name), found in sorted(rows.items(), key=lambda each: engines.index(each[0][0])):
        worst = min((Verdict(row["verdict"]) for _, row in found), key=order.index)
        same = [(key, row) for key, row in found if row["verdict"] == worst]
        note = ""
        if EXIT_STATUS[worst] != 0 and worst is not Verdict.VIOLATED:  # of those there is a table
            note = _named(dict.fromkeys(cell.words() for key, _ in same for cell in cells[key]))
            said = next((row["note"] for _, row in same if row["note"]), "")
            note += f": {said}" if said else ""
        coverage = f"{worst} in {len(same)} of {count_of(len(found), 'item')}"
        if len(found) == 1:
            coverage = found[0][1]["coverage"]
        yield Result(engine=engine, property=name, verdict=worst, coverage=coverage, note=note)


def _cells_of(plan: Plan) -> dict[str, list[Cell]]:
    cells: dict[str, list[Cell]] = {key: [] for key in plan.items}
    for cell in _ordered(plan):
        for key in plan.cells.get(cell, ()):
            cells[key].append(cell)
    return cells


def _named(names: Iterable[str]) -> str:
    """The first few, and how many more."""
    listed = list(names)
    more = f"; and {len(listed) - _MOST_NAMED} more" if len(listed) > _MOST_NAMED else ""
    return "; ".join(listed[:_MOST_NAMED]) + more


def _unanswered(plan: Plan, answers: Answers, lost: Mapping[str, str], gone: str) -> Iterator[Result]:
    """A row for each reason for which items have no answer."""
    why: dict[str, list[str]] = {}
    for key in plan.items:
        if key not in answers:
            reason = lost.get(key) or (f"the cluster is gone: {gone}" if gone else "interrupted before it was done")
            why.setdefault(reason, []).append(key)
        elif "trouble" in answers[key]:
            why.setdefault(answers[key]["trouble"], []).append(key)
    cells = _cells_of(plan)
    for reason, keys in why.items():
        where = _named(dict.fromkeys(cell.words() for key in keys for cell in cells[key]))
        coverage = f"{len(keys)} of {count_of(len(plan.items), 'item')} have no answer"
        yield Result(
            engine="sweep", property=_ITEMS, verdict=Verdict.UNKNOWN, coverage=coverage, note=f"{reason} ({where})"
        )


def _not_covered(plan: Plan, whole: list[tuple[str, Mapping[str, Any]]]) -> Iterator[str]:
    reasons: dict[str, list[Cell]] = {}
    for cell in _ordered(plan):
        if cell in plan.impossible:
            reasons.setdefault(plan.impossible[cell], []).append(cell)
    for reason, cells in reasons.items():
        yield f"{count_of(len(cells), 'cell')} that cannot be: {reason}"
    yield from _shared((answer["not_covered"] for _, answer in whole), len(whole))


def _shared(lists: Iterable[Iterable[str]], count: int, *, everywhere: bool = False) -> Iterator[str]:
    """Each line once, with the number of items that say it where it is not all. `everywhere`: only what all say."""
    times: dict[str, int] = {}
    for lines in lists:
        for line in dict.fromkeys(lines):
            times[line] = times.get(line, 0) + 1
    for line, said in times.items():
        if said == count:
            yield line
        elif not everywhere:
            yield f"{line} ({said} of {count} items)"


def _violations(plan: Plan, folder: SweepFolder, whole: list[tuple[str, Mapping[str, Any]]]) -> Iterator[Violation]:
    """Each violated property by the shortest trace of all items; where several are as short, the first."""
    shortest: dict[str, tuple[int, int, str, Mapping[str, Any]]] = {}
    for number, (key, answer) in enumerate(whole):
        for row in answer["results"]:
            if row["verdict"] == Verdict.VIOLATED and row["trace"] is not None:
                found = (row["actions"], number, key, row)
                shortest[row["property"]] = min(shortest.get(row["property"], found), found, key=lambda each: each[:2])
    cells = _cells_of(plan)
    for _, _, key, row in shortest.values():
        about = plan.items[key].about
        own = {name: about[name] for name in ("profile", "fault") if about[name] is not None and ".py:" in about[name]}
        try:
            told = explain_file(folder.trace(key, row["trace"]), own).violations[0]
        except OutlivesError:
            continue  # the row and the table name it all the same
        note = f"Found in: {_named(cell.words() for cell in cells[key])}, seed {about['seed']}."
        yield replace(told, engine=row["engine"], notes=(note, *told.notes))
