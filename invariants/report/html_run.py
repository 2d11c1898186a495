"""A run on the page: what it answers altogether, a row per result, and what it does not speak of.

Belongs here: the parts of a `Run` that are not one of its violations.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ..verdict import Result, Verdict
from .content import Run
from .html_cut import Limits
from .html_data import bullets, data_list, data_table, section
from .html_markup import Markup, gathered, tag, text

__all__ = ["kind_of", "overall", "run_parts", "verdict_counts"]

_KINDS: Final = {
    Verdict.PROVED: "green",
    Verdict.EXHAUSTED: "green",
    Verdict.PASSED: "green",
    Verdict.VIOLATED: "red",
    Verdict.DISAGREE: "red",
    Verdict.UNKNOWN: "amber",
    Verdict.VACUOUS: "amber",
}
_GLANCE: Final = 8
"""From so many results on, a matrix of the verdicts stands above them."""
_COVERS: Final = {
    Verdict.PROVED: "for unbounded numbers and any number of steps, under the named assumptions",
    Verdict.EXHAUSTED: "in every state of the stated scope",
    Verdict.PASSED: "in every sampled run, and nothing more",
    Verdict.VIOLATED: "there is a run in which it does not hold",
    Verdict.DISAGREE: "one of the engines is wrong",
    Verdict.UNKNOWN: "a budget ran out, or a solver gave up",
    Verdict.VACUOUS: "nothing false was seen, but the situation that it speaks of never arose",
}


def kind_of(run: Run) -> str:
    """The colour of the run."""
    return "green" if run.status == 0 else "red" if run.status in (1, 5) else "amber"


def verdict_counts(results: Sequence[Result]) -> str:
    """`1 violated, 12 passed`, the most serious first."""
    counts = {verdict: sum(result.verdict is verdict for result in results) for verdict in Verdict}
    order = sorted(counts, key=lambda each: ("red", "amber", "green").index(_KINDS[each]))
    return ", ".join(f"{counts[each]} {each}" for each in order if counts[each])


def overall(run: Run) -> Markup:
    """The whole run in one sentence: what a page without violations opens with."""
    icon = {"green": "✓", "red": "✕", "amber": "!"}[kind_of(run)]
    counts = verdict_counts(run.results)
    return tag(
        "section",
        tag("p", tag("span", icon, class_="big", aria_hidden="true"), tag("span", text(_capital(run.meaning)), ".")),
        tag("p", f"{counts}. " if counts else None, f"Exit status {run.status}.", class_="quiet"),
        class_=f"overall {kind_of(run)}",
        aria_label="Verdict of the run",
    )


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def run_parts(run: Run, limits: Limits) -> Iterator[Markup]:
    """Results, lists, tables, provenance, in this order."""
    if run.results:
        yield _results(run.results, limits)
    for title, listed, kind in (
        ("Vacuous: an open route that never fired", run.vacuous, "vacuous"),
        ("Known findings, met again", run.known or (), "known"),
        ("Known findings, not met any more: take them out of the file", run.gone, "gone"),
        ("Not covered", run.all_not_covered, "not-covered"),
        ("Not reached, and what to raise", run.not_reached, "not-reached"),
    ):
        if listed:
            yield section(title, bullets(listed, limits), f"listed {kind}")
    if run.reach is not None:
        lists = [gathered(tag("h4", title), bullets(lines, limits)) for title, lines in run.reach.lists()]
        yield section(f"{run.reach.words()}", gathered(*lists), "listed reach")
    for table in run.tables[: limits.tables]:
        yield data_table(table, limits)
    if len(run.tables) > limits.tables:
        yield tag("p", f"{len(run.tables) - limits.tables} more tables are not shown here.", class_="quiet")
    provenance = {**run.provenance, **({"files": run.out} if run.out else {})}
    if provenance:
        yield section("Provenance", data_list(provenance, limits), "provenance")
    if run.configuration:
        yield section("Configuration", data_list(run.configuration, limits), "provenance")


def _results(results: Sequence[Result], limits: Limits) -> Markup:
    noted = any(result.note for result in results)
    columns = ("property", "engine", "verdict", "covers", *(("note",) if noted else ()))
    head = tag("tr", [tag("th", name, scope="col") for name in columns])
    rows = [_result(each, noted) for each in results[: limits.rows]]
    more = len(results) - limits.rows
    used = dict.fromkeys(result.verdict for result in results)
    return section("Results", gathered(
        _matrix(results, limits),
        tag("div", tag("table", tag("thead", head), tag("tbody", rows), class_="results"), class_="scroll", tabindex=0,
            role="group", aria_label="Results"),
        tag("p", f"{more:,} more results are not shown here.", class_="quiet") if more > 0 else None,
        tag("p", [[tag("span", str(each), class_=f"chip {_KINDS[each]}"), f" {_COVERS[each]}. "] for each in used],
            class_="quiet"),
    ), "results")  # fmt: skip


def _chip(result: Result) -> Markup:
    kind = "amber" if result.known else _KINDS[result.verdict]
    return tag("span", f"{result.verdict}, known" if result.known else str(result.verdict), class_=f"chip {kind}")


def _result(result: Result, noted: bool) -> Markup:
    return tag("tr", tag("th", result.property, scope="row"), tag("td", result.engine), tag("td", _chip(result)),
               tag("td", result.coverage), tag("td", result.note) if noted else None)  # fmt: skip


def _matrix(results: Sequence[Result], limits: Limits) -> Markup | None:
    """Property x engine at a glance, where there is more than one of each."""
    engines = [*dict.fromkeys(result.engine for result in results)][: limits.columns]
    names = [*dict.fromkeys(result.property for result in results)][: limits.rows]
    if len(results) < _GLANCE or len(engines) < 2 or len(names) < 2 or len(engines) * len(names) > limits.rows * 4:
        return None
    by_place: Mapping[tuple[str, str], list[Result]] = {
        (name, engine): [each for each in results if (each.property, each.engine) == (name, engine)]
        for name in names
        for engine in engines
    }
    head = tag("tr", tag("th", "property", scope="col"), [tag("th", each, scope="col") for each in engines])
    rows = [
        tag("tr", tag("th", name, scope="row"), [tag("td", [_chip(each) for each in by_place[name, engine]] or "–")
                                                for engine in engines])
        for name in names
    ]  # fmt: skip
    table = tag("table", tag("thead", head), tag("tbody", rows), class_="matrix")
    return tag("div", table, class_="scroll", tabindex=0, role="group", aria_label="Verdicts by property and engine")
