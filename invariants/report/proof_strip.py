"""The token strips of a counterexample to induction: the abstract state before the transition, and the one after it.

Belongs here: what a strip's fields are in an abstract state, which has one request, one item and at most one step in
flight that is followed. Writers draw these strips as they draw those of a trace.
"""

from typing import TYPE_CHECKING

from outlives.model.contract import Refusal
from outlives.model.lifetime import confirmed
from outlives.model.setup import key_name, request_name
from outlives.model.state import RUNNING, WAITING

from .content import DataTable
from .strip import Strip, StripItem, Window
from .strip_text import marks_words, scale_of, strip_legend, strip_line

if TYPE_CHECKING:  # the solver takes long to load, and most reports have no proof
    from ..proof.life import Life, Terms
    from ..proof.theorem import Obligation, ProofReport

__all__ = ["induction_strips", "strip_of_life", "strips_table"]

_SHOWN = 8
"""Obligations whose states are drawn; the others are in `--json`."""


def induction_strips(report: "ProofReport", obligation: "Obligation") -> tuple[Strip, ...]:
    """Before and after, where the solver has numbers for it; the state alone at the beginning and at the goal; nothing
    for an obligation that is proved or not decided, and where the transition raises."""
    from ..proof.relation import TRANSITIONS
    from ..proof.theorem import life_of

    values = obligation.solved.values
    if not values:
        return ()
    before = life_of(values)
    first = strip_of_life(report.terms, before, 0)
    taken = next((each for each in TRANSITIONS if each.name == obligation.transition), None)
    if taken is None:
        return (first,)
    try:
        after = taken.apply(report.terms, before, **{name: values.get(f"?{name}", 0) for name in taken.choices})
    except Exception:  # the arithmetic may be a user's: what it raises is what obligation TOTAL is about
        return (first,)
    if isinstance(after, Refusal):
        return (first,)
    return first, strip_of_life(report.terms, after, 1, before)


def strips_table(report: "ProofReport") -> DataTable | None:
    """The states that break obligations, drawn before and after the transition; None where the solver has none."""
    drawn = [(each.name, strips) for each in report.failed if (strips := induction_strips(report, each))]
    if not drawn:
        return None
    shown = drawn[:_SHOWN]
    scale = scale_of(strip for _, strips in shown for strip in strips)
    rows = []
    for name, strips in shown:
        for place, strip in enumerate(strips):
            when = ("before", "after")[place] if len(strips) > 1 else "state"
            line = strip_line(strip, scale, ascii_only=True)
            rows.append((name if place == 0 else "", when, line, marks_words(strip)))
    more = f"; {len(drawn) - _SHOWN} further ones are in --json" if len(drawn) > _SHOWN else ""
    legend = strip_legend([strip for _, strips in shown for strip in strips], ascii_only=True)
    return DataTable(
        name="induction-strips",
        title="These states, as tokens of the request: before the transition and after it",
        columns=("obligation", "", "tokens", "the step in flight, and what became of the item"),
        rows=tuple(rows),
        legend=(f"{legend}{more}",),
    )


def strip_of_life(terms: "Terms", life: "Life", step: int, before: "Life | None" = None) -> Strip:
    """One abstract state. The item's place is the book's, its shelf the one that the next step will find; the window is
    that of the step that is followed, as low as its kind of reader may begin."""
    counters = life.counters
    return Strip(
        step=step,
        request=request_name(0),
        status=RUNNING if life.running == 1 else WAITING,
        known=counters.known,
        computed=counters.computed,
        confirmed=confirmed(counters),
        in_flight=counters.in_flight,
        items=(_item(life, before),) if life.there == 1 else (),
        windows=(_window(terms, life),) if life.flight.active == 1 else (),
    )


def _item(life: "Life", before: "Life | None") -> StripItem:
    place = "held" if life.referenced == 1 else "idle" if life.booked == 1 else "absent"
    marks = []
    if before is not None:
        had, has = (before.referenced, before.booked), (life.referenced, life.booked)
        marks += ["planned"] if has[1] > had[1] else []
        marks += ["referenced"] if has[0] > had[0] else []
        marks += ["released"] if has[0] < had[0] else []
        marks += ["evicted"] if has[1] < had[1] else []
    return StripItem(0, life.start, life.end, key_name(0), place, life.shelf_next == 1, tuple(marks))


def _window(terms: "Terms", life: "Life") -> Window:
    flight = life.flight
    low, high = flight.start, flight.start + flight.tokens
    if terms.assumed.reader == "any":
        low = flight.lowest
    if terms.assumed.reader == "true":
        low, high = flight.true_start, flight.true_start + flight.tokens
    meets = life.there == 1 and life.start < high and life.end > low
    return Window("target", low, high, (0,) if meets and flight.present == 0 else ())
