"""A state as plain values with names: what traces store and reports show. No rule, no judgement."""

from typing import Any

from .lifetime import confirmed
from .setup import request_name
from .state import ABSENT, FINISHED, Part, State, Step, items_of

__all__ = ["describe"]


def describe(state: State) -> dict[str, Any]:
    """Names to numbers, strings, tuples and nested mappings, in a fixed order. Every name is an identifier."""
    shown: dict[str, Any] = {}
    for number, request in enumerate(state.requests):
        counters = request.counters
        view: dict[str, Any] = {"status": request.status}
        keys = items_of(state.setup, request, number)
        view |= {
            "computed": counters.computed,
            "placeholders": counters.placeholders,
            "confirmed": confirmed(counters),
            "in_flight": counters.in_flight,
            "stale": counters.stale,
            "known": counters.known,
            "drafts": request.drafts,
            "references": tuple(f"item{item}:{keys[item].key}" for item in request.references),
        }
        if request.status in (ABSENT, FINISHED):
            view = {**dict.fromkeys(view, 0), "status": request.status, "references": view["references"]}
        shown[request_name(number)] = view
    book = state.book
    shown["book"] = {
        "held": tuple(
            f"{entry.key}<-{'+'.join(request_name(holder) for holder in entry.holders)}"
            for entry in book.entries
            if entry.holders
        ),
        "idle": book.idle,
        "evicted": book.evicted,
        "free": book.free,
        "reclaimable": book.reclaimable,
        "strangers": book.strangers,
    }
    shown["steps"] = tuple(_step(step) for step in state.steps)
    shown["shelf"] = state.shelf
    shown["misses"] = tuple(
        f"{request_name(miss.request)} item{miss.item} {miss.reader} [{miss.low},{miss.high})" for miss in state.misses
    )
    return shown


def _step(step: Step) -> str:
    parts = [_part(part) for part in step.parts] or ["nothing of ours"]
    text = ", ".join(parts)
    if step.encode:
        text += f"; encode {' '.join(step.encode)}"
    if step.drop:
        text += f"; drop {' '.join(step.drop)}"
    return text + ("; executed" if step.executed else "")


def _part(part: Part) -> str:
    text = f"{request_name(part.request)}[{part.start},{part.start + part.tokens})"
    if part.drafts:
        text += f" with {part.drafts} drafts"
    if part.rejected:
        text += f", truly from {part.start - part.rejected}"
    return text if part.live else text + " (stale)"
