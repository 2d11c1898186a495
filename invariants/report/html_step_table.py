"""The step table: every step that is shown in a row, with its strip small, and a line from the cause to the failure.

Belongs here: the layout of that table. The strips of all rows have one scale, so that the column is a picture of the
run: positions to the right, steps downwards.
"""

from .html_cut import Gap
from .html_markup import Child, Markup, gathered, tag
from .html_steps import Steps, changes_list, guard_lines, property_icons, step_link
from .html_strip import ruler, small_strip
from .strip import Strip

__all__ = ["step_table"]


def step_table(steps: Steps) -> Markup:
    """The table; columns for which the trace has nothing are left out."""
    columns = _columns(steps)
    heads: list[Child] = [
        tag("th", name, *([ruler(steps.view)] if name == "tokens" else []), scope="col", class_=f"h-{name.split()[0]}",
            role="columnheader")
        for name in columns
    ]  # fmt: skip
    rows: list[Child] = []
    fair = False
    before: dict[str, Strip] = {}
    for each in steps.shown:
        if isinstance(each, Gap):
            words = f"{each.words}; the .itf.json file has all of them"
            rows.append(tag("tr", tag("td", words, colspan=len(columns), role="cell"), class_="gap", role="row"))
            before = {}
            continue
        if steps.lines[each].fair and not fair:
            fair = True
            words = "from here on the environment leaves the requests alone"
            rows.append(tag("tr", tag("td", words, colspan=len(columns), role="cell"), class_="gap", role="row"))
        rows.append(_row(steps, each, columns, before))
        before = {strip.request: strip for strip in steps.strips.get(each, ())}
    return tag(
        "table",
        tag("thead", tag("tr", heads, role="row"), role="rowgroup"),
        tag("tbody", rows, role="rowgroup"),
        class_="steps several" if _several(steps) else "steps",
        role="table",
        aria_label="Every step",
    )


def _columns(steps: Steps) -> tuple[str, ...]:
    columns = ["step", "action and what it changed"]
    if steps.strips:
        columns += ["tokens", "confirmed", "in flight"]
    if any(facts.guards for facts in steps.facts.values()):
        columns.append("guard")
    if any(facts.judged for facts in steps.facts.values()):
        columns.append("properties")
    return tuple(columns)


def _row(steps: Steps, step: int, columns: tuple[str, ...], before: dict[str, Strip]) -> Markup:
    line, limits = steps.lines[step], steps.limits
    facts = steps.facts.get(step)
    strips = steps.strips.get(step, ())[: limits.strips]
    several = _several(steps)
    cells: dict[str, Child] = {
        "step": step_link(steps, step),
        "action and what it changed": gathered(tag("code", line.action, class_="action"), changes_list(line, limits)),
        "tokens": [
            tag("div", tag("span", strip.request, class_="of") if several else None,
                small_strip(strip, steps.view, steps.pasts[step, strip.request], limits.items), class_="drawing")
            for strip in strips
        ],
        "confirmed": [_counter(strip, before, "confirmed", several) for strip in strips],
        "in flight": [_counter(strip, before, "in_flight", several) for strip in strips],
        "guard": guard_lines(facts.guards, limits) if facts is not None and facts.guards else None,
        "properties": property_icons(facts, limits) if facts is not None and facts.judged else None,
    }  # fmt: skip
    tds = [tag("td", cells[name], class_=f"c-{name.split()[0]}", data_label=name, role="cell") for name in columns]
    return tag("tr", tds, class_=_kind(steps, step), data_step=step, role="row")


def _several(steps: Steps) -> bool:
    """Whether the strips are of more than one request."""
    return len({strip.request for strips in steps.strips.values() for strip in strips}) > 1


def _counter(strip: Strip, before: dict[str, Strip], name: str, several: bool) -> Markup:
    value = getattr(strip, name)
    old = before.get(strip.request)
    moved = old is not None and getattr(old, name) != value
    return tag("div", tag("span", strip.request, class_="of") if several else None, value,
               class_="number moved" if moved else "number")  # fmt: skip


def _kind(steps: Steps, step: int) -> str:
    """Where the row is on the line from the cause to the failure."""
    told = ["selected"] if step == steps.failing else []
    joined = steps.violation.joined
    if joined is not None and joined[0] <= step <= joined[1]:
        told.append("cause" if step == joined[0] else "end" if step == joined[1] else "between")
        if joined[0] == joined[1]:
            told[-1] = "both"
    if steps.lines[step].refused is not None:
        told.append("denied")
    return " ".join(told)
