"""Judgements on the requests: counters, promises, the confirmed position, progress. The predicates behind `properties`.

A judgement that ends in text returns what is wrong, in words and numbers, or the empty string.
"""

from outlives.model.batch import live_promises
from outlives.model.book import find
from outlives.model.contract import Action
from outlives.model.lifetime import confirmed
from outlives.model.setup import request_name
from outlives.model.state import ABSENT, FINISHED, RUNNING, State, items_of
from outlives.model.world import World

DECLARED_LOWERINGS = frozenset({"preempt", "reset_prefix_cache", "reset_encoder_cache", "fail_kv_load"})
"""What may lower a request's confirmed position. (A pass preempts too, and a turn ends: the request then does not run.)
"""


# --- counters -----------------------------------------------------------------------------------------------------


def _bad_counters(state: State) -> list[str]:
    bad = []
    for number, request in enumerate(state.requests):
        for name, value in request.counters._asdict().items():
            if value < 0:
                bad.append(f"{request_name(number)}.{name} is {value}")
        if request.status == RUNNING and request.counters.placeholders > request.counters.computed:
            bad.append(
                f"{request_name(number)} has {request.counters.placeholders} placeholders, "
                f"more than the {request.counters.computed} tokens it counts as computed"
            )
    return bad


def counters_sound(_before: State, _action: Action | None, after: State) -> bool:
    for request in after.requests:
        counters = request.counters
        if min(counters) < 0 or (request.status == RUNNING and counters.placeholders > counters.computed):
            return False
    return True


def why_counters(_before: State, _action: Action | None, after: State) -> str:
    return "; ".join(_bad_counters(after))


def output_processed(before: State, action: Action | None, after: State) -> bool:
    processed = action is not None and action.name in ("accept", "reject") and len(after.steps) < len(before.steps)
    return processed and bool(before.steps[0].parts)


# --- placeholders are kept ----------------------------------------------------------------------------------------


def _unkept(state: State) -> list[tuple[int, int, int]]:
    return [
        (number, request.counters.placeholders, promised)
        for number, request in enumerate(state.requests)
        if request.status == RUNNING
        and request.counters.placeholders != (promised := live_promises(state.steps, number))
    ]


def placeholders_kept(_before: State, _action: Action | None, after: State) -> bool:
    return not after.running or not _unkept(after)


def why_unkept(_before: State, _action: Action | None, after: State) -> str:
    return "; ".join(
        f"{request_name(number)} counts {kept} placeholders, but its live steps in flight have promised {promised}"
        for number, kept, promised in _unkept(after)
    )


def promises(_before: State, _action: Action | None, after: State) -> bool:
    return any(request.counters.placeholders > 0 for request in after.requests)


# --- confirmed never falls ----------------------------------------------------------------------------------------


def _fallen(before: State, action: Action | None, after: State) -> list[tuple[int, int, int]]:
    if action is None or action.name in DECLARED_LOWERINGS:
        return []
    fallen = []
    for number, (old, new) in enumerate(zip(before.requests, after.requests, strict=True)):
        if old.status == RUNNING and new.status == RUNNING:
            was, now = _safe_from_rejection(before, number), _safe_from_rejection(after, number)
            if now < was:
                fallen.append((number, was, now))
    return fallen


def _safe_from_rejection(state: State, number: int) -> int:
    """Confirmed. Without asynchronous scheduling nothing is promised, and the drafts in flight say what can still be
    taken back."""
    position = confirmed(state.requests[number].counters)
    if state.setup.synchronous == 1:
        position -= sum(part.drafts for step in state.steps for part in step.parts if part.request == number)
    return position


def monotone(before: State, action: Action | None, after: State) -> bool:
    return before.requests == after.requests or not _fallen(before, action, after)


def why_fallen(before: State, action: Action | None, after: State) -> str:
    return "; ".join(
        f"confirmed of {request_name(number)} fell from {old} to {new} by {action}, which no declared lowering covers"
        for number, old, new in _fallen(before, action, after)
    )


def output_of_running(before: State, action: Action | None, after: State) -> bool:
    processed = action is not None and action.name in ("accept", "reject") and len(after.steps) < len(before.steps)
    return processed and any(part.live == 1 for part in before.steps[0].parts)


# --- progress -----------------------------------------------------------------------------------------------------


def all_finished(_before: State, _action: Action | None, end: State) -> bool:
    return bool(end.misses) or all(request.status in (ABSENT, FINISHED) for request in end.requests)


def someone_unfinished(before: State, _action: Action | None, _end: State) -> bool:
    """Judged by the fair run from `before`."""
    return any(request.status not in (ABSENT, FINISHED) for request in before.requests)


def why_stuck(world: World, end: State) -> str:
    stuck = []
    for number, request in enumerate(end.requests):
        if request.status in (ABSENT, FINISHED):
            continue
        counters = request.counters
        text = (
            f"{request_name(number)} gets no further token: {counters.computed} of {counters.known} known tokens are "
            f"computed, and every further pass changes nothing"
        )
        ahead = end.setup.look_ahead if world.switches.gate_look_ahead == 1 else 0
        reach = counters.computed + end.setup.step_limit + ahead
        items = items_of(end.setup, request, number)
        for index, item in enumerate(items):
            if item.end > counters.computed and item.start < reach and find(end.book, item.key) is None:
                text += (
                    f"; item{index} [{item.start},{item.end}) needs {item.size} slots, "
                    f"{end.book.reclaimable} of {end.setup.slots} are reclaimable"
                )
                break
        for index in request.references:
            item = items[index]
            if item.end <= counters.computed + ahead:
                text += (
                    f"; item{index} [{item.start},{item.end}) is still referenced: {world.guard.formula} "
                    f"does not hold with end {item.end}, computed {counters.computed}, "
                    f"placeholders {counters.placeholders}, look-ahead {end.setup.look_ahead}"
                )
        stuck.append(text)
    return "; ".join(stuck)
