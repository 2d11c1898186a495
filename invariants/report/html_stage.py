"""The stage: the time line of the steps, and the panel of the one that is selected, with its strips large.

Belongs here: their layout. It works without a script: a link of the time line names a panel, which `:target` shows.
"""

from typing import Final

from outlives.model.state import FINISHED

from .html_cut import Gap
from .html_markup import Child, Markup, gathered, number, tag
from .html_steps import Steps, changes_list, event_words, guard_lines, item_lines, property_list
from .html_strip import Cause, large_strip
from .strip import Strip
from .telling import count_of

__all__ = ["stage"]

_NARROW: Final = 12
"""Up to so many steps the time line takes the width there is; with more of them it scrolls."""
_EACH: Final = 10
"""Pixels between two steps of a time line that scrolls."""
_NAMED: Final = 12
"""Up to so many steps the actions' names stand under their numbers, each cut to so many characters."""


def stage(steps: Steps) -> Markup:
    """Time line, buttons, and a panel per step that is shown."""
    numbers = [each for each in steps.shown if isinstance(each, int)]
    panels = [_panel(steps, each) for each in numbers]
    return tag(
        "section",
        tag("div", _time_line(steps), class_="scroll line", tabindex=0, role="group", aria_label="Time line"),
        tag(
            "div",
            _button("first", "|◀", "First step (Home)"),
            _button("previous", "◀", "Previous step (left arrow or k)"),
            _button("next", "▶", "Next step (right arrow or j)"),
            _button("last", "▶|", "Last step (End)"),
            *_jumps(steps),
            tag("span", tag("kbd", "←"), tag("kbd", "→"), " or ", tag("kbd", "j"), tag("kbd", "k"), class_="keys"),
            class_="buttons",
            hidden=True,
        ),
        tag("p", role="status", class_="spoken"),
        tag("div", panels, class_="panels"),
        _legend() if steps.strips else None,
        class_="stage",
        tabindex=0,
        aria_label="Steps; arrow keys go from one to the next",
    )


def _button(what: str, icon: str, label: str) -> Markup:
    return tag("button", icon, type="button", data_go=what, aria_label=label, title=label)


def _jumps(steps: Steps) -> list[Markup]:
    joined, words = steps.violation.joined, event_words(steps.violation)
    if joined is None or words is None:
        return []
    return [
        tag("button", f"{word}: step {step}", type="button", data_go=steps.link(step)[1:], class_="jump")
        for step, word in dict(zip(joined, words, strict=True)).items()
        if word
    ]


# --- the time line ----------------------------------------------------------------------------------------------------


def _time_line(steps: Steps) -> Markup:
    count = len(steps.shown)
    places = {each: 100 * (at + 0.5) / count for at, each in enumerate(steps.shown) if isinstance(each, int)}
    gaps = [100 * (at + 0.5) / count for at, each in enumerate(steps.shown) if isinstance(each, Gap)]
    named = count <= _NAMED
    top = 18
    wide = max(26, 12 + 8 * max((len(str(each)) for each in places), default=1))
    parts: list[Child] = [
        tag("line", x1=f"{number(50 / count)}%", x2=f"{number(100 - 50 / count)}%", y1=top, y2=top, class_="axis"),
        *(tag("text", "…", x=f"{number(x)}%", y=top + 5, text_anchor="middle", class_="gap") for x in gaps),
        *(_stop(steps, each, x, top, wide, named) for each, x in places.items()),
    ]
    below = top + (38 if named else 20)
    joined, words = steps.violation.joined, event_words(steps.violation)
    height = below
    if joined is not None and words is not None and joined[0] != joined[1] and {*joined} <= places.keys():
        parts.append(_join(places[joined[0]], places[joined[1]], below, f"{words[0]} → {words[1]}"))
        height = below + 28
    width = "100%" if count <= _NARROW else count * (wide + _EACH)
    return tag("svg", *parts, class_="time", width=width, height=height, role="group",
               aria_label=f"{count_of(count, 'place')} on the time line")  # fmt: skip


def _stop(steps: Steps, step: int, x: float, top: int, wide: int, named: bool) -> Markup:
    line = steps.lines[step]
    joined = steps.violation.joined or (-1, -1)
    bad = steps.violation.outcome == "violated"
    kind = " cause" if step == joined[0] else ""
    kind += " end" if step == steps.failing and bad else ""
    kind += " denied" if line.refused is not None else ""
    kind += " fair" if line.fair else ""
    word = line.name or "start"
    word = word if len(word) <= _NAMED else f"{word[: _NAMED - 1]}…"
    name = tag("text", word, x=f"{number(x)}%", y=top + 28, text_anchor="middle", class_="action")
    return tag(
        "a",
        tag("svg", tag("rect", x=-wide / 2, y=-13, width=wide, height=26, rx=13), x=f"{number(x)}%", y=top,
            class_="shape"),
        tag("text", step, x=f"{number(x)}%", y=top + 4, text_anchor="middle", class_="count"),
        name if named else None,
        href=Markup(steps.link(step)),
        class_=f"stop{kind}",
        aria_label=f"step {step}: {line.action}",
    )  # fmt: skip


def _join(left: float, right: float, top: int, words: str) -> Markup:
    """The step that let the entry go, and an arrow to the one that needed it."""
    a, b = f"{number(left)}%", f"{number(right)}%"
    middle = (left + right) / 2
    anchor, x = ("middle", middle) if 20 < middle < 80 else ("start", left) if middle <= 20 else ("end", right)
    return gathered(
        tag("line", x1=a, x2=a, y1=top - 2, y2=top + 10, class_="join"),
        tag("line", x1=a, x2=b, y1=top + 10, y2=top + 10, class_="join"),
        tag("line", x1=b, x2=b, y1=top + 10, y2=top, class_="join", marker_end="url(#arrow)"),
        tag("text", words, x=f"{number(x)}%", y=top + 24, text_anchor=anchor, class_="joined"),
    )


# --- the panel of a step ----------------------------------------------------------------------------------------------


def _panel(steps: Steps, step: int) -> Markup:
    line, limits = steps.lines[step], steps.limits
    strips = steps.strips.get(step, ())
    facts = steps.facts.get(step)
    story = steps.violation.story
    events = [each for each in zip(story.events, story.chain, strict=True) if each[0].step == step]
    last = steps.violation.lines[-1].number
    cards: list[Child] = [_card("What changed", changes_list(line, limits))]
    if facts is not None and facts.guards:
        cards.append(_card("The guard, with its numbers", guard_lines(facts.guards, limits)))
    if facts is not None and facts.judged:
        cards.append(_card("Properties", property_list(facts, limits)))
    return tag(
        "article",
        tag("h3", tag("span", f"Step {step} of {last}", class_="count"), " ", tag("code", line.action),
            _tags(steps, step)),
        [tag("p", sentence, class_=f"event {event.kind}") for event, sentence in events[: limits.events]],
        _figures(steps, step),
        tag("p", f"{count_of(len(strips) - limits.strips, 'more request')} not drawn", class_="quiet")
        if len(strips) > limits.strips
        else None,
        tag("div", *cards, class_="cards"),
        id=f"{steps.ident}-s{step}",
        class_=f"panel{' selected' if step == steps.failing else ''}",
        data_step=step,
    )  # fmt: skip


def _tags(steps: Steps, step: int) -> list[Markup]:
    line = steps.lines[step]
    joined, words = steps.violation.joined, event_words(steps.violation)
    told = []
    if joined is not None and words is not None:
        told += [(words[at], kind) for at, kind in enumerate(("cause", "end")) if joined[at] == step and words[at]]
    if line.fair:
        told.append(("left alone", "fair"))
    return [tag("span", word, class_=f"tag {kind}") for word, kind in told]


def _card(title: str, content: Markup) -> Markup:
    return tag("div", tag("h4", title), content, class_="card")


def _figures(steps: Steps, step: int) -> Markup | None:
    figures = []
    for at, strip in enumerate(steps.strips.get(step, ())[: steps.limits.strips]):
        ident = f"{steps.ident}-s{step}-{at}"
        past = steps.pasts[step, strip.request]
        figures.append(tag(
            "figure",
            tag("figcaption", tag("b", strip.request), f" {strip.status}", _counters(strip)),
            tag("div", large_strip(strip, steps.view, ident, past, steps.limits.items, _cause(steps, strip)),
                class_="drawing"),
            item_lines(steps, strip),
        ))  # fmt: skip
    return gathered(figures)


def _cause(steps: Steps, strip: Strip) -> Cause | None:
    """Of the strip in which something is missed: the one of the step that let it go."""
    joined, words = steps.violation.joined, event_words(steps.violation)
    if joined is None or words is None or joined[1] != strip.step or joined[0] >= strip.step:
        return None
    if not any(each.missed for each in strip.windows):
        return None
    then = steps.strips.get(joined[0], ())
    own = [each for each in then if each.request == strip.request]
    other = [each for each in then if any("released" in item.marks for item in each.items)]
    found = [each for each in own if each in other] or other or own
    if not found:
        return None
    whose = "" if found[0].request == strip.request else f" for {found[0].request}"
    return Cause(found[0], steps.pasts[joined[0], found[0].request], f"step {joined[0]}: {words[0]}{whose}")


def _counters(strip: Strip) -> Markup | None:
    if strip.status == FINISHED:
        return None
    return gathered(
        f": {strip.known} known, {strip.computed} computed, ",
        tag("b", f"{strip.confirmed} confirmed"),
        f", {strip.in_flight} in flight",
    )


def _legend() -> Markup:
    told = (
        ("there", "item, on the worker’s shelf"),
        ("gone", "item, not on it"),
        ("hatched", "computed but not confirmed: a rejection can take it back"),
        ("target", "read by the target"),
        ("draft", "read by the drafter"),
        ("missing", "needed and not found"),
        ("flag", "released here"),
        ("cross", "evicted"),
    )
    return tag("ul", [tag("li", tag("span", {"flag": "⚑", "cross": "✕"}.get(kind, ""), class_=f"swatch {kind}"), words)
                      for kind, words in told], class_="legend", aria_label="Legend of the strips")  # fmt: skip
