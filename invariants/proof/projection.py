"""From the model's state to the abstract state, and from an executed action to abstract transitions.

Belongs here: how each field of `Life` and `Flight` is read off a state of the model for one item of one request, and
which transitions an action amounts to. What is read off is never taken from the relation: placeholders come from the
request's record, live promises from the queue, the shelf from the worker and the messages on their way to it.

The ghost `floor` is not in the model's state; it is confirmed, which is what the lemmas say that it is. Not projected:
items whose key another item of the same request has too.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from outlives.model.contract import Action
from outlives.model.lifetime import Counters, confirmed
from outlives.model.scheduler import OUTPUTS, most_accepted
from outlives.model.setup import Item, request_name
from outlives.model.state import ABSENT, FINISHED, PAUSED, RUNNING, WAITING, Part, State, Step, items_of
from outlives.model.world import World

from .life import Flight, Life, landed

__all__ = ["Taken", "all_items", "changes", "holds_progress", "part_of", "project", "projected_items"]


class Taken(NamedTuple):
    """One abstract transition and its choices."""

    transition: str
    choices: dict[str, int]


def all_items(state: State, request: int) -> tuple[Item, ...]:
    """The request's items that are there; of a finished request, those that its steps in flight were told of."""
    record = state.requests[request]
    if record.status != FINISHED:
        return items_of(state.setup, record, request)
    told = [part.extra for step in state.steps for part in step.parts if part.request == request]
    return state.setup.requests[request].items + max(told, key=len, default=())


def projected_items(state: State, request: int) -> tuple[int, ...]:
    """The items of the request that the abstraction covers: those whose key no other item of it has. Items of later
    turns are covered once they are there; encoder-decoder models share nothing, and are not."""
    if state.setup.encoder_decoder == 1:
        return ()
    items = all_items(state, request)
    keys = [item.key for item in items]
    return tuple(index for index, item in enumerate(items) if keys.count(item.key) == 1)


def part_of(step: Step, request: int) -> Part | None:
    """The request's part of a step."""
    for part in step.parts:
        if part.request == request:
            return part
    return None


def _parts(steps: Sequence[Step], request: int, *, live: int | None = None) -> list[Part]:
    found = [part for step in steps for part in step.parts if part.request == request]
    return [part for part in found if live is None or part.live == live]


def _shelf_after(shelf: frozenset[str], steps: Sequence[Step]) -> frozenset[str]:
    """What the worker will hold once these steps have executed: drops first, then encodes."""
    for step in steps:
        if step.executed == 0:
            shelf = frozenset() if step.clear == 1 else (shelf - set(step.drop)) | set(step.encode)
    return shelf


def _read_by(shelf: frozenset[str], steps: Sequence[Step], position: int) -> frozenset[str]:
    """What the worker holds when step `position` reads: a shelf that is emptied after that step is not empty yet."""
    return _shelf_after(shelf, (*steps[:position], steps[position]._replace(clear=0)))


def holds_progress(state: State, request: int) -> bool:
    """Whether the request counts as running for the relation: it runs, or is a session that holds what it computed."""
    record = state.requests[request]
    return record.status == RUNNING or (record.status in (PAUSED, WAITING) and record.counters.computed > 0)


def _shelved_next(state: State, key: str) -> int:
    shelf = _shelf_after(frozenset(state.shelf), state.steps)
    booked = any(entry.key == key for entry in state.book.entries)
    # A key that was evicted and has entered the book again is encoded by the step that carries the notice.
    return int(key in shelf and (booked or key not in state.book.evicted))


def _counters(state: State, request: int) -> Counters:
    record = state.requests[request]
    if record.status in (RUNNING, WAITING, PAUSED):
        return record.counters
    # A request that is gone, or has not come yet, is one that waits: nothing computed, what is in flight is stale.
    flying = sum(part.tokens for part in _parts(state.steps, request))
    return Counters(0, 0, flying, flying, state.setup.requests[request].prompt)


def _flight(world: World, state: State, request: int, key: str, position: int) -> Flight:
    """The request's part of step `position`."""
    part = part_of(state.steps[position], request)
    if part is None:
        return landed()
    earlier = [
        other
        for other in _parts(state.steps[:position], request, live=part.live)
        if part.live == 1 or _same_admission(state, request, other, part)
    ]
    shelf = _read_by(frozenset(state.shelf), state.steps, position)
    later = _parts(state.steps[position:], request, live=1) if part.live == 1 else [part]
    return Flight(
        active=1,
        live=part.live,
        start=part.start,
        tokens=part.tokens,
        drafts=part.drafts if part.sampled == 1 else 0,
        sampled=part.sampled,
        share=part.promised,
        lowest=part.lowest,
        true_start=world.rules.reader_start(part.start, part.rejected),
        margin=sum(other.promised for other in earlier),
        draft_margin=sum(other.drafts for other in earlier if other.sampled == 1),
        rest=sum(other.tokens for other in later),
        # With A1 relaxed a notice that has not left yet may still overtake the steps in flight.
        present=int(key in shelf and not ("A1" in world.relaxed and key in state.book.evicted)),
    )


def _same_admission(state: State, request: int, earlier: Part, later: Part) -> bool:
    """Of two parts in flight: no other admission begins after the earlier one, up to the later one."""
    passed = False
    for part in _parts(state.steps, request):
        if passed and part.first != 0:
            return False
        passed = passed or part is earlier
        if part is later:
            break
    return True


def known_at_birth(state: State, request: int, item: int, subject: Item) -> int:
    """Known tokens when the turn began that brought the item."""
    asked = state.setup.requests[request]
    behind = len(asked.items)
    if item < behind:
        return asked.prompt
    for turn in asked.turns:
        if item < behind + len(turn.items):
            return subject.start - turn.items[item - behind].start + turn.prompt
        behind += len(turn.items)
    return asked.prompt


def project(
    world: World, state: State, request: int, item: int, tracked: int | None, subject: Item | None = None
) -> Life:
    """The abstract state for one item of one request, following step `tracked` of those in flight (or none).

    `subject` is the item where the state does not have it: not yet, or no more.
    """
    there = all_items(state, request)
    if item < len(there):
        subject = there[item]
    assert subject is not None
    born = state.requests[request].status == FINISHED or item < len(there)
    record = state.requests[request]
    counters = _counters(state, request)
    running = int(holds_progress(state, request))
    live = _parts(state.steps, request, live=1)
    flight = landed() if tracked is None else _flight(world, state, request, subject.key, tracked)
    return Life(
        base=state.setup.base,
        start=subject.start,
        end=subject.end,
        look_ahead=state.setup.look_ahead,
        prompt=known_at_birth(state, request, item, subject) if born else state.setup.requests[request].prompt,
        there=int(born),
        counters=counters,
        running=running,
        referenced=int(item in record.references),
        pinned=0,
        seen=int(item in record.seen) if "A2" in world.relaxed else 0,
        booked=int(any(entry.key == subject.key for entry in state.book.entries)),
        shelf_next=_shelved_next(state, subject.key),
        omitted=state.omitted,
        floor=confirmed(counters) if running == 1 else 0,
        live_tokens=sum(part.tokens for part in live),
        live_promises=sum(part.promised for part in live),
        live_drafts=sum(part.drafts for part in live if part.sampled == 1),
        flight=flight,
    )


def changes(
    before: State, action: Action, after: State, request: int, item: int, tracked: int | None
) -> Iterator[Taken]:
    """The abstract transitions that the executed action amounts to for this item, in order.

    They are derived from what happened to the request, its step and its key; whether the numbers follow is for the tie
    to say.
    """
    if action.name in OUTPUTS:
        yield from _output(before, action, after, request, tracked)
        return
    if action.name == "reset_encoder_cache":
        yield Taken("reset-encoder-cache", {})
        return
    if action.name == "continue_session":
        if before.requests[request].status == PAUSED and after.requests[request].status == WAITING:
            born = int(item >= len(all_items(before, request)))
            yield Taken("more-prompt", {"more": _added(before, request), "born": born})
        return
    if after.requests[request].status == PAUSED and before.requests[request].status == RUNNING:
        yield Taken("turn-end", {"cut": 0})
        return
    key = all_items(before, request)[item].key
    was, now = before.requests[request], after.requests[request]
    left = after.steps[-1] if len(after.steps) > len(before.steps) else None
    part = part_of(left, request) if left is not None else None
    had = any(entry.key == key for entry in before.book.entries)
    has = any(entry.key == key for entry in after.book.entries)
    encoded = left is not None and key in left.encode
    omitted = after.omitted > before.omitted and action.get("omit", "") == key
    ran, runs = holds_progress(before, request), holds_progress(after, request)
    if ran and not runs:
        yield Taken("reset" if action.name == "reset_prefix_cache" else "preempt", {})
    if had and (not has or encoded or omitted):
        yield Taken("evict", {"spared": 0})
        had = False
    # With A2 relaxed an item once seen is not looked at again: whoever has it encoded then is somebody else.
    mine = part is not None and item not in was.seen and _overlaps(before, after, request, item, part)
    if has and not had and not mine:
        yield Taken("stranger", {"encoded": int(not omitted)})
    if part is not None:
        choices = {"count": part.tokens, "encoded": int(not omitted), "track": int(tracked == len(before.steps))}
        # Planned and released again in the same pass, as far as the keys tell: another request may have planned it.
        own = not any(
            other.key == key
            for number in range(len(before.requests))
            if number != request
            for other in all_items(before, number)
        )
        choices["ahead"] = int(item in now.references or (own and has and not had))
        if ran:
            yield Taken("dispatch" if was.status == RUNNING else "go-on", choices)
        else:
            yield Taken("resume", {"hit": part.start, **choices})
    elif item in now.references and item not in was.references:
        yield Taken("touch", {})
    elif item in now.seen and item not in was.seen:
        # And dropped in the same pass: by a failed admission, or a preemption that also takes the encode back.
        gone = not has and not had
        if gone:
            yield Taken("stranger", {"encoded": 1})
        yield Taken("touch", {})
        yield Taken("let-go", {})
        if gone:
            yield Taken("evict", {"spared": 0})
    if now.status != RUNNING and was.status != RUNNING and item in was.references and item not in now.references:  # noqa: SIM102
        if not (ran and not runs):
            yield Taken("let-go", {})


def _added(state: State, request: int) -> int:
    """Prompt tokens of the turn that begins next."""
    return state.setup.requests[request].turns[state.requests[request].turn].prompt


def _overlaps(before: State, after: State, request: int, item: int, part: Part) -> bool:
    """Whether the gate looked at the item for this part and took it."""
    subject = all_items(before, request)[item]
    end = part.start + part.tokens
    if subject.end <= part.start or subject.start >= end + after.setup.look_ahead:
        return False
    return subject.start < end or item in after.requests[request].references


def _output(before: State, action: Action, after: State, request: int, tracked: int | None) -> Iterator[Taken]:
    if after.misses or not before.steps:
        return
    part = part_of(before.steps[0], request)
    if part is not None:
        most = most_accepted(before, action)
        drafts = part.drafts if part.sampled == 1 else 0
        choices = {
            "count": part.tokens,
            "drafts": drafts,
            "accepted": min(drafts if most is None else most, drafts),
            "sampled": part.sampled,
            "own": int(tracked == 0),
        }
        failed = action.name == "fail_kv_load" and action.get("request", "") == request_name(request)
        if failed:
            valid = after.requests[request].counters.computed
            yield Taken("kv-failure", {**choices, "valid": valid})
        elif part.live == 1:
            yield Taken("live-output", choices)
        else:
            gone = before.requests[request].status in (ABSENT, FINISHED) or before.requests[request].drop == 1
            same = int(_shifted(before, after, request, tracked))
            yield Taken("stale-output", {**choices, "same": same, "dropped": int(gone)})
    if after.requests[request].status == PAUSED and before.requests[request].status != PAUSED:
        yield Taken("turn-end", {"cut": _cut(before, action, after, request)})
    elif holds_progress(before, request) and not holds_progress(after, request):
        yield Taken("preempt", {})


def _cut(before: State, action: Action, after: State, request: int) -> int:
    """How many of the delivered tokens lay past the stop."""
    part, most = part_of(before.steps[0], request), most_accepted(before, action)
    if part is None or part.sampled == 0:
        return 0
    delivered = before.setup.base + min(part.drafts if most is None else most, part.drafts)
    return before.requests[request].counters.known + delivered - after.requests[request].counters.known


def _shifted(before: State, after: State, request: int, tracked: int | None) -> bool:
    """Whether the output of a stale step moved the true start of the tracked one."""
    if tracked is None or tracked == 0:
        return False
    was, now = part_of(before.steps[tracked], request), part_of(after.steps[tracked - 1], request)
    return was is not None and now is not None and was.rejected != now.rejected
