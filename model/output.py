"""Processing the output of the oldest executed step: accept and reject drafts, free, deliver, stop.

Theory of operation
-------------------
Per request of the step that still exists, in this order: receive (in flight and stale share fall by n); the rejected
drafts are rolled back; the free pass asks the guard, also for a step that sampled nothing; then the sampled and
accepted tokens join the known ones and give up their placeholders; then the stop check. So the guard still counts the
output just accepted as promised, and a request that is not scheduled again sees no later output.
"""

from .batch import most_drafts, orphan
from .book import ask_guard
from .contract import Action
from .lifetime import Counters
from .routes import end_turn, has_more_turns, skip_failed
from .setup import clamp
from .state import FINISHED, PAUSED, RUNNING, WAITING, Part, Request, State, limit_of
from .world import World

__all__ = ["ALL_ACCEPTED", "finish_request", "most_accepted", "process", "stop", "with_request"]

ALL_ACCEPTED = 1 << 30
"""More drafts than any step carries."""


def most_accepted(state: State, action: Action) -> int | None:
    """How many drafts each part of the oldest step has accepted at most by `accept` or `reject`; None where there is
    no draft to reject."""
    if action.name in ("accept", "fail_kv_load"):
        return ALL_ACCEPTED
    drafts = max((part.drafts for part in state.steps[0].parts if part.sampled == 1), default=0)
    return None if drafts == 0 else clamp(action.get("accepted", 0), 0, drafts - 1)


def process(world: World, state: State, accepted: int, failed: tuple[int, int] | None = None) -> State:
    """Process the oldest step, which has executed; each of its parts has at most `accepted` drafts accepted. `failed`:
    a request whose KV blocks failed to load, and how many positions before them are valid."""
    step, state = state.steps[0], state._replace(steps=state.steps[1:])
    for part in step.parts:
        # The worker's affair, whatever became of the request meanwhile.
        rejected = part.drafts - min(accepted, part.drafts) if part.sampled == 1 else 0
        state = state._replace(steps=world.rules.shift_readers(world, state.steps, part.request, rejected))
        if failed is not None and part.request == failed[0]:
            state = skip_failed(world, state, part, failed[1])
        elif state.requests[part.request].status in (RUNNING, WAITING, PAUSED):
            state = _process_part(world, state, part, min(accepted, part.drafts))
    return state


def _process_part(world: World, state: State, part: Part, accepted: int) -> State:
    rules = world.rules
    number = part.request
    request = state.requests[number]
    isolate = world.switches.isolate_stale
    counters, stale = rules.receive(request.counters, part.tokens, isolate)
    if stale == 1 and request.drop == 1:
        drop = 1 if counters.stale > 0 else 0
        return with_request(state, number, request._replace(counters=counters, drop=drop))
    switches = world.switches
    rejected = part.drafts - accepted if part.sampled == 1 else 0
    returned = state.setup.base + accepted if part.sampled == 1 else 0
    # An output without a token (a diffusion step of which nothing was accepted) is none, and discards nothing.
    discarded = returned > 0 and request.frames > 0 and state.setup.synchronous == 0
    if discarded and switches.discard_before_rejection == 1:
        rejected = 0
    counters = rules.roll_back(counters, rejected, stale)
    book, request = state.book, request._replace(counters=counters)
    if world.guard.site == "at-output":
        book, request = ask_guard(world, state, book, request, number)
    limit = limit_of(state.setup, request, number)
    if discarded:
        request = request._replace(frames=request.frames - 1)
    elif part.sampled == 1:
        counters = rules.deliver(request.counters, returned, stale, request.drop, state.setup.asynchronous)
        request = request._replace(counters=counters)
    if world.guard.site == "after-delivery":
        book, request = ask_guard(world, state, book, request, number)
    if part.sampled == 1 and not discarded:
        request = _delivered(world, state, request, number, returned, stale, limit)
    state = with_request(state._replace(book=book), number, request)
    if request.counters.known >= limit and part.sampled == 1 and not discarded:
        return stop(world, state, number)
    return state


def _delivered(
    world: World, state: State, request: Request, number: int, tokens: int, stale: int, limit: int
) -> Request:
    """The sampled and accepted tokens have joined the known ones; what lies past the stop is cut off."""
    rules, setup = world.rules, state.setup
    counters = request.counters
    cut = min(tokens, max(0, counters.known - limit))
    if cut > 0:
        counters = rules.trim(counters, cut, stale, world.switches.trim_computed, setup.asynchronous)
    request = request._replace(counters=counters)
    if setup.synchronous == 1 and request.status == RUNNING and stale == 0:
        chunk = _dispatched_as_chunk(state, number)
        request = request._replace(decoding=1 - chunk, drafts=0 if chunk == 1 else most_drafts(world, setup))
    return request


def _dispatched_as_chunk(state: State, number: int) -> int:
    """1: the last step in flight of the request is a chunk of its prompt, as after a failed KV load: no drafts then."""
    parts = [part for step in state.steps for part in step.parts if part.request == number]
    return 1 - parts[-1].sampled if parts else 0


def stop(world: World, state: State, number: int) -> State:
    """The request has reached its end: a session's turn, or all of it."""
    if world.opens("sessions", state.setup) and has_more_turns(state, number):
        return end_turn(world, state, number)
    return finish_request(world, state, number)


def with_request(state: State, number: int, request: Request) -> State:
    """The state with this record in the place of the request's."""
    return state._replace(requests=state.requests[:number] + (request,) + state.requests[number + 1 :])


def finish_request(world: World, state: State, number: int) -> State:
    """The request is over (length, stop token or abort): its references are dropped; its steps in flight still
    execute, and their output is ignored. The worker is told with the next step."""
    request = state.requests[number]
    book, request = world.rules.drop_references(world, state.setup, state.book, request, number)
    gone = Request(
        status=FINISHED,
        counters=Counters(0, 0, 0, 0, 0),
        references=request.references,
        turn=request.turn,
        extra=request.extra,
    )
    requests = state.requests[:number] + (gone,) + state.requests[number + 1 :]
    return state._replace(
        requests=requests,
        running=tuple(other for other in state.running if other != number),
        waiting=tuple(other for other in state.waiting if other != number),
        book=book,
        steps=orphan(state.steps, requests),
    )
