"""What came after what in an entry's life: a release, its eviction, a later read, a rejection, a resumption.

Belongs here: the predicates of the situations (`situations`) that are about an order of events. A state has no history;
what happened before is read from what is still on its way: notices that no step has taken yet, those of steps in
flight, and entries that nobody references any more.
"""

from outlives.model.contract import Action
from outlives.model.state import RUNNING, WAITING, State, Step, items_of

__all__ = ["encoded_again", "read_after_eviction", "rejected_after_release", "resumed_after_eviction"]


def _sent(before: State, after: State) -> Step | None:
    """The step that left."""
    return after.steps[-1] if len(after.steps) > len(before.steps) else None


def _told(state: State, steps: tuple[Step, ...]) -> tuple[str, ...]:
    """Keys that were evicted, of which the worker is not told yet, or by one of these steps."""
    told = state.book.evicted
    for step in steps:
        if step.drop:
            told += step.drop
    return told


def read_after_eviction(before: State, action: Action | None, _after: State) -> bool:
    """A step in flight executes, and reads a key that was evicted after the step had left."""
    if action is None or action.name not in ("accept", "reject", "execute", "fail_kv_load"):
        return False
    gone = _told(before, before.steps)
    if not gone:
        return False
    at = next((at for at, step in enumerate(before.steps) if step.executed == 0), None)
    if at is None or (action.name != "execute" and at > 0):
        return False
    gone = _told(before, before.steps[at + 1 :])
    return bool(gone) and any(
        item.key in gone and item.start < part.start + part.tokens and item.end > part.start
        for part in before.steps[at].parts
        for item in items_of(before.setup, before.requests[part.request], part.request)
    )


def encoded_again(before: State, _action: Action | None, after: State) -> bool:
    """A step leaves that encodes a key of whose eviction the worker is still to be told."""
    sent = _sent(before, after)
    if sent is None or not sent.encode:
        return False
    gone = _told(before, before.steps)
    return any(key in gone for key in sent.encode)


def rejected_after_release(before: State, action: Action | None, after: State) -> bool:
    """Drafts of a running request are rejected, and an item of its lies idle, or was evicted, before them."""
    if action is None or action.name != "reject" or len(after.steps) >= len(before.steps):
        return False
    book = before.book
    if not book.idle and not book.evicted:
        return False
    loose = {*book.idle, *book.evicted}
    return any(
        item.key in loose and item.end <= before.requests[part.request].counters.computed
        for part in before.steps[0].parts
        if part.sampled == 1 and part.drafts > 0 and part.live == 1
        and before.requests[part.request].status == RUNNING
        for item in items_of(before.setup, before.requests[part.request], part.request)
    )  # fmt: skip


def resumed_after_eviction(before: State, _action: Action | None, after: State) -> bool:
    """A preempted request that had outputs is admitted again, and of the eviction of a key of its the worker is still
    to be told, or is told by that step."""
    sent = _sent(before, after) if before.waiting else None
    if sent is None:
        return False
    for part in sent.parts:
        request = before.requests[part.request]
        begun = request.counters.known > before.setup.requests[part.request].prompt
        if part.first == 1 and request.status == WAITING and request.turn == 0 and begun:
            gone = _told(before, after.steps)
            if any(item.key in gone for item in items_of(before.setup, request, part.request)):
                return True
    return False
