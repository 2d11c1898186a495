"""One violation as an article: headline and badge, stage, because-chain, step table, and what else is known of it.

Belongs here: the order of these parts, and those that are not about single steps.
"""

from collections.abc import Mapping
from typing import Any

from .analysis import Counterfactual
from .content import Violation
from .html_cut import Limits
from .html_data import data_list, files_list, section
from .html_markup import Child, Markup, gathered, tag, text
from .html_stage import stage
from .html_step_table import step_table
from .html_steps import Steps, step_link, steps_of
from .telling import count_of

__all__ = ["violation_article"]


def violation_article(violation: Violation, ident: str, limits: Limits, out: str) -> Markup:
    """Everything about one violation. `out` is the folder in which the page will stand."""
    steps = steps_of(violation, ident, limits)
    return tag(
        "article",
        _head(violation, limits),
        stage(steps) if steps.lines else None,
        tag("p", steps.view.words, class_="quiet") if steps.strips and steps.view.words else None,
        _because(steps),
        section("Every step", tag("div", step_table(steps), class_="table-box"), "steps") if steps.lines else None,
        _counterfactuals(violation, limits),
        _what_if(violation, limits),
        _shrunk(violation, limits),
        _again(violation, out, limits),
        section("Where it comes from", data_list(violation.provenance, limits), "provenance")
        if violation.provenance
        else None,
        id=ident,
        class_=f"violation {'green' if violation.outcome == 'passes' else 'red'}",
        aria_label=f"{violation.property}: {violation.outcome}",
    )


def _head(violation: Violation, limits: Limits) -> Markup:
    passes = violation.outcome == "passes"
    return tag(
        "header",
        tag(
            "p",
            tag("span", violation.outcome.upper(), class_=f"verdict {'green' if passes else 'red'}"),
            " ",
            tag("b", violation.property, class_="property"),
            tag("span", violation.badge, class_="badge") if violation.badge else None,
            tag("span", f"found by {violation.engine}", class_="quiet") if violation.engine else None,
            class_="kicker",
        ),
        tag("h2", text(violation.story.headline, 1_200)),
        [tag("p", note, class_="note") for note in violation.notes[: limits.rows]],
        tag("p", tag("b", "Setup "), text(violation.setup, 1_200), class_="setup") if violation.setup else None,
        class_="top",
    )


def _because(steps: Steps) -> Markup | None:
    story = steps.violation.story
    pairs = [*zip(story.events, story.chain, strict=True)][: steps.limits.rows]
    if not pairs and not steps.violation.why:
        return None
    told = [tag("li", _link(steps, event.step), tag("span", sentence), class_=event.kind) for event, sentence in pairs]
    why = steps.violation.why
    return section("Because", gathered(
        tag("ol", told, class_="because") if told else None,
        tag("p", "In the words of ", tag("b", steps.violation.property), ": ", why, class_="quiet") if why else None,
    ), "why")  # fmt: skip


def _link(steps: Steps, step: int) -> Markup:
    return step_link(steps, step) if step in steps.lines else tag("span", step, class_="to-step")


def _counterfactuals(violation: Violation, limits: Limits) -> Markup | None:
    rows = violation.analysis.counterfactuals[: limits.rows]
    if not rows:
        return None
    most = max((abs(each.price) for each in rows if each.price is not None), default=0)
    head = tag("tr", [tag("th", name, scope="col") for name in ("guard", "outcome", "first difference", "price")])
    body = [_counterfactual(each, most) for each in rows]
    return section("The same steps under every guard", gathered(
        tag("div", tag("table", tag("thead", head), tag("tbody", body)), class_="scroll", tabindex=0, role="group",
            aria_label="The same steps under every guard"),
        tag("p", "Price: slot-steps that references held beyond what they held in this run, up to the last step that "
                 "both have; a dash where the steps cannot be compared.", class_="quiet"),
    ), "guards")  # fmt: skip


def _counterfactual(each: Counterfactual, most: int) -> Markup:
    differs = "nowhere" if each.differs_at is None else f"step {each.differs_at}: {each.difference}"
    price: Child = "–"
    if each.price is not None:
        width = 0 if not most else 60 * abs(each.price) / most
        bar = tag("svg", tag("rect", width=width, height=8, class_="price"), width=60, height=8, aria_hidden="true")
        price = gathered(bar, " ", f"{each.price:+d}" if each.price else "0")
    kind, icon = ("bad", "✕ ") if each.violated else ("good", "✓ ") if each.outcome == "passes" else ("unsure", "! ")
    outcome = tag("span", icon, aria_hidden="true")
    own = tag("span", "this run", class_="tag")
    return tag("tr", tag("th", each.guard, " ", own if each.own else None, scope="row"),
               tag("td", outcome, each.outcome, class_=kind), tag("td", differs),
               tag("td", price, class_="price"), class_="own" if each.own else None)  # fmt: skip


def _what_if(violation: Violation, limits: Limits) -> Markup | None:
    """The nearest run that passes, and what may change without losing the failure."""
    analysis = violation.analysis
    parts: list[Child] = []
    if analysis.neighbour is not None:
        near = analysis.neighbour
        parts.append(tag("p", tag("b", "The nearest run that passes: "), near.name, " ", tag("del", near.old), " → ",
                         tag("ins", near.new), f" ({near.note})", class_="neighbour"))  # fmt: skip
    if analysis.freedoms:
        parts.append(tag("p", tag("b", "What can change without losing the failure")))
        parts.append(tag("ul", [
            tag("li", each.words())
            for each in analysis.freedoms[: limits.rows]
        ], class_="freedoms"))  # fmt: skip
    parts += [tag("p", note, class_="quiet") for note in analysis.notes[: limits.rows]]
    return section("What if", gathered(parts), "what-if") if parts else None


def _shrunk(violation: Violation, limits: Limits) -> Markup | None:
    words = violation.shrink_words()
    if not words:
        return None
    found, final = violation.shrink.get("found_length"), violation.shrink.get("final_length")
    parts: list[Child] = [tag("p", f"{words}.")]
    if isinstance(found, int) and isinstance(final, int) and found >= final > 0:
        parts.append(_lengths(found, final))
    parts.append(_moved(violation.shrink, limits))
    return section("How it shrank", gathered(parts), "shrink")


def _lengths(found: int, final: int) -> Markup:
    """Two bars, one under the other."""
    title = f"{count_of(found, 'action')} found, {final} left"
    bars = [
        tag("rect", x=0, y=at * 20, width=f"{round(70 * length / found)}%", height=14, class_=f"length l{at}")
        for at, length in enumerate((found, final))
    ]
    names = [
        tag("text", f"{length} {what}", x=f"{round(70 * length / found)}%", dx=6, y=at * 20 + 12, class_="name")
        for at, (length, what) in enumerate(((found, "found"), (final, "shown")))
    ]
    return tag("svg", tag("title", title), bars, names, width="100%", height=36, role="img", class_="lengths")


def _moved(shrink: Mapping[str, Any], limits: Limits) -> Markup | None:
    before, after = shrink.get("found_numbers", {}), shrink.get("final_numbers", {})
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return None
    moved = [(name, old, after[name]) for name, old in before.items() if after.get(name, old) != old]
    rows = [
        tag("li", tag("code", name, class_="field"), " ", tag("del", str(old)), " → ", tag("ins", str(new)))
        for name, old, new in moved[: limits.rows]
    ]
    return tag("ul", rows, class_="changes") if rows else None


def _again(violation: Violation, out: str, limits: Limits) -> Markup | None:
    parts: list[Child] = []
    if violation.replay:
        command = tag("pre", tag("code", text(violation.replay, 2_000)))
        copy = tag("button", "Copy", type="button", class_="copy", hidden=True)
        parts.append(tag("div", command, copy, class_="command"))
    if violation.files:
        parts.append(files_list(violation.files, out, limits))
    return section("Run it again", gathered(parts), "replay") if parts else None
