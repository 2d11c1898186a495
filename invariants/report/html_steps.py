"""What the page says of one step: changed fields, the guard with its numbers, each property's state, each item.

Belongs here: which steps there are, and the pieces that the panel of the selected step (`html_stage`) and the table of
all steps (`html_step_table`) share.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from .analysis import GuardLine, StepFacts
from .changes import Change, value_words
from .content import Line, Violation
from .html_cut import Gap, Limits, kept
from .html_markup import Child, Markup, gathered, tag, text
from .html_strip import PLACES
from .html_view import Past, View, pasts_of, view_of
from .strip import Strip
from .telling import window

__all__ = [
    "Steps",
    "changes_list",
    "event_words",
    "guard_lines",
    "item_lines",
    "property_icons",
    "property_list",
    "step_link",
    "steps_of",
]

_CAUSES: Final = {
    "released": "released",
    "cleared": "cleared",
    "dropped": "dropped",
    "not-encoded": "left out",
    "held": "held",
}
_ENDS: Final = {"read": "needed", "stuck": "stuck", "violated": "violated"}
_STATES: Final = {"holds": "yes", "violated": "no", "not asked": "none"}
_ICONS: Final = {"yes": "✓", "no": "✕", "none": "·"}


class Steps(NamedTuple):
    """What every part about the steps needs."""

    violation: Violation
    ident: str
    """Of the violation in the page; the step's panel is `{ident}-s{number}`."""
    limits: Limits
    shown: tuple[int | Gap, ...]
    lines: dict[int, Line]
    strips: dict[int, tuple[Strip, ...]]
    facts: dict[int, StepFacts]
    view: View
    pasts: dict[tuple[int, str], Past]

    @property
    def failing(self) -> int:
        """The step that the page opens with: where the property fails. There is at least the initial state."""
        joined = self.violation.joined
        last = self.violation.lines[-1].number
        return joined[1] if joined is not None and joined[1] in self.lines else last

    def link(self, step: int) -> str:
        """The fragment that shows a step, or the nearest one that is shown."""
        shown = [each for each in self.shown if isinstance(each, int)]
        return f"#{self.ident}-s{min(shown, key=lambda each: (abs(each - step), each), default=0)}"


def steps_of(violation: Violation, ident: str, limits: Limits) -> Steps:
    """Everything by step number, for the steps that are shown."""
    shown = kept(violation, limits)
    numbers = {each for each in shown if isinstance(each, int)}
    strips: dict[int, tuple[Strip, ...]] = {}
    for strip in violation.strips:
        if strip.step in numbers:
            strips[strip.step] = (*strips.get(strip.step, ()), strip)
    return Steps(
        violation=violation,
        ident=ident,
        limits=limits,
        shown=shown,
        lines={line.number: line for line in violation.lines if line.number in numbers},
        strips=strips,
        facts={each.step: each for each in violation.analysis.facts if each.step in numbers},
        view=view_of(violation),
        pasts=pasts_of(violation),
    )


def event_words(violation: Violation) -> tuple[str, str] | None:
    """What the two joined steps are, in a word each: `released`, `needed`."""
    joined = violation.joined
    if joined is None:
        return None
    first = next((_CAUSES[event.kind] for event in violation.story.events
                  if event.step == joined[0] and event.kind in _CAUSES), "")  # fmt: skip
    last = next((_ENDS[event.kind] for event in violation.story.events
                 if event.step == joined[1] and event.kind in _ENDS), "")  # fmt: skip
    return first, last


def _icon(state: str, label: str) -> Markup:
    kind = _STATES.get(state, "none")
    return tag("span", _ICONS[kind], class_=f"icon {kind}", role="img", aria_label=label, title=label)


# --- what is said of one step -----------------------------------------------------------------------------------------


def changed(change: Change, limits: Limits) -> Markup:
    """A field, old → new; of a longer sequence what came and went."""
    name, _, told = change.words().partition(": ")
    old, new = value_words(change.old), value_words(change.new)
    if told == f"{old} → {new}":
        values: Child = [tag("del", text(old, limits.text)), " → ", tag("ins", text(new, limits.text))]
    else:
        values = tag("span", text(told, limits.text))
    return tag("li", tag("code", text(name, limits.text), class_="field"), " ", tag("span", values, class_="values"))


def changes_list(line: Line, limits: Limits) -> Markup:
    """Every changed field of a step, or why there is none."""
    if line.refused is not None:
        return tag("p", "refused: ", text(line.refused, limits.text), class_="refused")
    if not line.changes:
        return tag("p", "the run begins" if line.number == 0 else "nothing", class_="quiet")
    more = len(line.changes) - limits.changes
    rows = [changed(each, limits) for each in line.changes[: limits.changes]]
    return tag("ul", rows, tag("li", f"{more} more fields") if more > 0 else None, class_="changes")


def guard_lines(lines: Sequence[GuardLine], limits: Limits) -> Markup:
    """The free condition with its numbers, per item."""
    return tag("ul", [_guard_line(each) for each in lines[: limits.rows]], class_="guards")


def _guard_line(each: GuardLine) -> Markup:
    state = "none" if each.holds is None else "yes" if each.holds else "no"
    said = {"yes": "true", "no": "false", "none": "not an inequality"}[state]
    if each.held and each.holds is not None:
        said += ": it may go" if each.holds else ": it stays"
    whose = f"{each.request} item{each.item}{'' if each.held else ', not held'}"
    return tag("li", tag("span", whose, class_="of"), " ", tag("code", each.inequality), " ",
               tag("span", said, class_=f"said {state}"))  # fmt: skip


def property_icons(facts: StepFacts, limits: Limits) -> Markup:
    """A mark per property, the violated ones with their name."""
    icons = []
    for name, state in [*facts.judged.items()][: limits.rows]:
        icons.append(_icon(state, f"{name}: {state}"))
    names = [name for name, state in facts.judged.items() if state == "violated"]
    bad = [tag("strong", name, class_="bad") for name in names[: limits.rows]]
    return gathered(tag("span", icons, class_="icons"), bad)


def property_list(facts: StepFacts, limits: Limits) -> Markup:
    """Each property with its state, the violated ones first."""
    order = {"violated": 0, "holds": 1}
    judged = sorted(facts.judged.items(), key=lambda each: order.get(each[1], 2))[: limits.rows]
    rows = []
    for name, state in judged:
        kind = _STATES.get(state, "none")
        rows.append(tag("li", _icon(state, state), " ", name, class_=f"state {kind}"))
    return tag("ul", rows, class_="properties")


def item_lines(steps: Steps, strip: Strip) -> Markup:
    """What the drawing cannot hold, an item a line: positions, key, where its entry and its output are."""
    past = steps.pasts[strip.step, strip.request]
    rows = []
    for item in strip.items[: steps.limits.items]:
        before = past.released.get(item.number)
        marks = [tag("b", mark, class_=f"mark {mark}") for mark in item.marks]
        place = PLACES.get(item.place, item.place)
        since = f"; released at step {before}" if before is not None and before != strip.step else ""
        shelf = "on the worker’s shelf" if item.on_shelf else "not on the worker’s shelf"
        rows.append(tag("li", tag("span", class_=f"swatch {'there' if item.on_shelf else 'gone'}"),
                        f"item{item.number} {window(item.start, item.end)} ", tag("code", item.key),
                        f" {place}, {shelf}{since} ", marks))  # fmt: skip
    more = len(strip.items) - steps.limits.items
    return tag("ul", rows, tag("li", f"{more} more items") if more > 0 else None, class_="items")


def step_link(steps: Steps, step: int) -> Markup:
    """The step's number as a link to it."""
    return tag("a", step, href=Markup(steps.link(step)), class_="to-step")
