"""The routes out of the ordinary: resets of both caches, KV blocks that failed to load, the turns of a session.

Theory of operation
-------------------
A prefix-cache reset preempts every running request, the last one first, so that they wait in their old order; what is
in flight for them is to vanish, and they may resume in the next pass, beside it. An encoder-cache reset empties the
book at once and the worker's shelf in its turn. Where KV blocks failed to load, the failing step's output is skipped
for that request and computed falls to the last valid position. A session's turn ends where a request would finish: the
request pauses, its references stay, and it goes on with more prompt and items when its client says so.
"""

from .batch import end_admission, orphan
from .book import emptied
from .contract import Refusal
from .setup import clamp
from .state import PAUSED, RUNNING, WAITING, Part, Request, State
from .world import World

__all__ = [
    "continue_session",
    "end_turn",
    "failing_part",
    "has_more_turns",
    "reset_encoder_cache",
    "reset_prefix_cache",
]
__all__ += ["skip_failed"]


def reset_prefix_cache(world: World, state: State) -> State | Refusal:
    """Every running request is preempted and its outputs in flight are to vanish.

    From 0.27.0 on (#48245) they are its stale share. Before, a number of outputs is discarded: the next one, whatever
    is in flight (0.12.0 to 0.21.0), or as many as there are placeholders (0.22.0 on, #42117).
    """
    if not state.running:
        return Refusal("nothing-running")
    requests, waiting, book = list(state.requests), state.waiting, state.book
    for number in reversed(state.running):
        request = requests[number]
        promised = request.counters.placeholders
        book, request = world.rules.drop_references(world, state.setup, book, request, number)
        counters = world.rules.reset(request.counters, world.switches.isolate_stale)
        request = request._replace(status=WAITING, counters=counters, drafts=0, decoding=0, rebase=0)
        if world.switches.isolate_stale == 1:
            request = request._replace(drop=int(counters.stale > 0))
        elif world.switches.discard_counts == 1:
            request = request._replace(frames=promised)
        else:
            request = request._replace(frames=1)
        requests[number] = request
        waiting = (number, *waiting)
    return state._replace(
        requests=tuple(requests), running=(), waiting=waiting, book=book, steps=orphan(state.steps, requests)
    )


def reset_encoder_cache(world: World, state: State) -> State | Refusal:
    """The book is emptied: entries, references, notices not sent yet. Requests and steps in flight stay (#42759)."""
    empty = emptied(state.book, state.setup.slots)
    if state.book == empty:
        return Refusal("cache-empty")
    requests = tuple(request._replace(references=()) for request in state.requests)
    return world.rules.clear_shelf(world, state._replace(book=empty, requests=requests))


def failing_part(state: State, number: int) -> Part | None:
    """The part of the oldest step whose KV blocks may turn out to be invalid: the first of an admission that began
    with a prefix, which a connector was to load."""
    if not state.steps or state.requests[number].status != RUNNING:
        return None
    for part in state.steps[0].parts:
        if part.request == number and part.live == 1 and part.first == 1 and part.start > 0:
            return part
    return None


def skip_failed(world: World, state: State, part: Part, valid: int) -> State:
    """The failing step's output is skipped for the request: only what is in flight falls by its tokens."""
    number = part.request
    request = state.requests[number]
    settle = world.switches.settle_kv_failure
    counters, _ = world.rules.receive(request.counters, part.tokens, world.switches.isolate_stale)
    counters = world.rules.fail_kv(counters, clamp(valid, 0, part.start - 1), settle)
    request = request._replace(counters=counters)
    steps = state.steps
    book = state.book
    if settle == 1:
        # References go as well: what a later item holds may be the room that an earlier one needs again.
        book, request = world.rules.drop_references(world, state.setup, book, request, number)
        request = request._replace(drop=int(counters.stale > 0), drafts=0, decoding=0, rebase=1)
        steps = end_admission(steps, number)
    requests = state.requests[:number] + (request,) + state.requests[number + 1 :]
    return state._replace(requests=requests, book=book, steps=steps)


def has_more_turns(state: State, number: int) -> bool:
    """Whether the request is a session with a further turn."""
    return state.requests[number].turn < len(state.setup.requests[number].turns)


def end_turn(world: World, state: State, number: int) -> State:
    """The turn is over: the request pauses. References stay; nobody schedules it.

    Up to 0.17.1 and from 0.27.0 to 0.32.0 a request that stopped while it was not running (the output of a step from
    before its preemption reached the end) is queued and then taken out of the queue again: its session is lost.
    """
    request = state.requests[number]
    settle = world.switches.settle_turn
    counters = world.rules.end_turn(request.counters, settle)
    switches = world.switches
    unqueued = request.status != RUNNING and switches.requeue_stopped == 0 and switches.parked_apart == 0
    drafts = 0 if settle == 1 else request.drafts  # before, they stay attached
    request = request._replace(
        status=PAUSED, counters=counters, drafts=drafts, decoding=0, rebase=0, lost=int(unqueued)
    )
    book = state.book
    if settle == 1:
        request = request._replace(drop=int(counters.stale > 0))
        if world.switches.free_at_turn_end == 1:
            # The last free pass came before the turn's last tokens were confirmed, and no other comes before the next
            # turn is admitted, which may need the room.
            # Nothing in flight is live any more, so that there is no draft to count.
            book, request = world.rules.free_pass(world, state.setup, book, request, number)
    requests = state.requests[:number] + (request,) + state.requests[number + 1 :]
    return state._replace(
        book=book,
        requests=requests,
        running=tuple(other for other in state.running if other != number),
        waiting=tuple(other for other in state.waiting if other != number),
        steps=orphan(state.steps, requests),
    )


def continue_session(world: World, state: State, number: int) -> State | Refusal:
    """The next turn begins: its prompt follows the outputs that are kept, its items lie after them."""
    if state.requests[number].status != PAUSED or not has_more_turns(state, number):
        return Refusal("not-paused")
    request: Request = state.requests[number]
    turn = state.setup.requests[number].turns[request.turn]
    switches = world.switches
    # What was sampled last is not computed yet. Diffusion models sample nothing beside drafts that are all computed.
    last = state.setup.base if switches.keep_all_of_diffusion == 1 else 1
    counters = world.rules.continue_turn(request.counters, turn.prompt, switches.keep_outputs, last)
    begin = counters.known - turn.prompt
    request = request._replace(
        status=WAITING,
        counters=counters,
        turn=request.turn + 1,
        extra=request.extra + tuple(item._replace(start=item.start + begin) for item in turn.items),
        limit=counters.known + turn.outputs,
    )
    requests = state.requests[:number] + (request,) + state.requests[number + 1 :]
    if request.lost == 1:
        return state._replace(requests=requests)
    return state._replace(requests=requests, waiting=(*state.waiting, number))
