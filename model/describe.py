"""A state as plain values with names: what traces store and reports show. No rule, no judgement.

Which names there are depends on the setup alone, so that every state of a run has the same: `turn` where a request is
a session, `due` for encoder-decoder models, `drop` and `discard` where outputs can vanish at all.
"""

from typing import Any

from .lifetime import confirmed
from .setup import Setup, request_name
from .state import ABSENT, FINISHED, Part, State, Step, items_of

__all__ = ["describe"]


def describe(state: State) -> dict[str, Any]:
    """Names to numbers, strings, tuples and nested mappings, in a fixed order. Every name is an identifier."""
    shown: dict[str, Any] = {}
    vanishing = _outputs_may_vanish(state.setup)
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
        if vanishing:
            view |= {"drop": request.drop, "discard": request.frames}
        if state.setup.requests[number].turns:
            view |= {"turn": request.turn, "lost": request.lost}
        if request.status in (ABSENT, FINISHED):
            kept: dict[str, Any] = {name: view[name] for name in ("status", "references", "turn") if name in view}
            view = {**dict.fromkeys(view, 0), **kept}
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
    if state.setup.encoder_decoder == 1:
        shown["book"]["due"] = book.due
    shown["steps"] = tuple(_step(step) for step in state.steps)
    shown["shelf"] = state.shelf
    shown["misses"] = tuple(
        f"{request_name(miss.request)} item{miss.item} {miss.reader} [{miss.low},{miss.high})" for miss in state.misses
    )
    return shown


def _outputs_may_vanish(setup: Setup) -> bool:
    """Whether some route of the run can make an output in flight vanish: a prefix-cache reset, a turn's end, or KV
    blocks that failed to load."""
    turns = "sessions" not in setup.left_out and any(asked.turns for asked in setup.requests)
    return turns or not {"reset-prefix-cache", "kv-load-failure"} <= set(setup.left_out)


def _step(step: Step) -> str:
    parts = [_part(part) for part in step.parts] or ["nothing of ours"]
    text = ", ".join(parts)
    if step.encode:
        text += f"; encode {' '.join(step.encode)}"
    if step.drop:
        text += f"; drop {' '.join(step.drop)}"
    text += "; executed" if step.executed else ""
    return text + ("; then clear the shelf" if step.clear else "")


def _part(part: Part) -> str:
    text = f"{request_name(part.request)}[{part.start},{part.start + part.tokens})"
    if part.drafts:
        text += f" with {part.drafts} drafts"
    if part.rejected:
        text += f", truly from {part.start - part.rejected}"
    return text if part.live else text + " (stale)"
