"""The routes out of the ordinary, taken by a live vLLM scheduler: resets, KV blocks that failed to load, sessions.

Belongs here: one function per route, each with the refusals of the model. A route that the release does not have is
refused as a closed one, like in the model.
"""

from contextlib import suppress
from typing import TYPE_CHECKING

from outlives.model.book import emptied
from outlives.model.contract import Action, Refusal
from outlives.model.scheduler import never_fits
from outlives.model.setup import clamp, request_name
from outlives.model.state import PAUSED

from .environment import make_request
from .reading import queues_of

if TYPE_CHECKING:
    from .vllm_subject import VllmSubject

__all__ = [
    "SHARED_BLOCK",
    "continue_session",
    "fail_kv_load",
    "has_sessions",
    "reset_encoder_cache",
    "reset_prefix_cache",
    "stop_turn",
]


SHARED_BLOCK = "block-is-shared"
"""The refusal of a run with prefix caching that the model does not know."""


def _opens(subject: "VllmSubject", route: str) -> bool:
    return route not in subject.closed and subject.release.has_route(route)


def has_sessions(subject: "VllmSubject") -> bool:
    """Whether the release has resumable sessions, and they are wanted."""
    return _opens(subject, "sessions")


def reset_prefix_cache(subject: "VllmSubject", _: Action) -> Refusal | None:
    """Every running request is preempted. The call then fails where somebody else still holds KV blocks (a paused
    session): its caller is told, and the engine goes on."""
    if not _opens(subject, "reset-prefix-cache"):
        return Refusal("route-closed")
    if not subject.scheduler.running:
        return Refusal("nothing-running")
    with suppress(RuntimeError):
        subject.scheduler.reset_prefix_cache(reset_running_requests=True)
    return None


def reset_encoder_cache(subject: "VllmSubject", _: Action) -> Refusal | None:
    """The book is emptied; the worker is told by a call that travels with the steps."""
    if not _opens(subject, "reset-encoder-cache"):
        return Refusal("route-closed")
    book = subject.observe().state.book
    if book == emptied(book, subject.setup.slots):
        return Refusal("cache-empty")
    subject.scheduler.reset_encoder_cache()
    subject.strangers = 0
    if subject.slots is not None:
        subject.slots.entries.clear()
        subject.slots.references.clear()
    if not subject.ledger.clear_after_last():
        subject.worker.shelf.clear()
    return None


def fail_kv_load(subject: "VllmSubject", action: Action) -> Refusal | None:
    """The output of the oldest step reports the request's KV block at `valid` as invalid (a block has one token). One
    that is shared, as a prefix cache makes them, is not: it would fail for several requests."""
    if not _opens(subject, "kv-load-failure"):
        return Refusal("route-closed")
    number = subject.named(action)
    steps = subject.ledger.steps
    part = None
    if number is not None and steps and subject.runs(number):
        mine = [each for each in steps[0].parts if each.request == number and each.live == 1]
        part = next((each for each in mine if each.first == 1 and each.start > 0), None)
    if number is None or part is None:
        return Refusal("nothing-was-loaded")
    valid = clamp(action.get("valid", 0), 0, part.start - 1)
    manager = subject.scheduler.kv_cache_manager
    (blocks,) = manager.get_block_ids(request_name(number))
    if subject.blocks.caching and manager.block_pool.blocks[blocks[valid]].ref_cnt > 1:
        return Refusal(SHARED_BLOCK)
    return subject.process(failed=number, block=blocks[valid])


def stop_turn(subject: "VllmSubject", number: int) -> None:
    """A stop token ends the present turn of a session that has more of them: what `update_from_output` does for a
    request that stopped."""
    scheduler, request = subject.scheduler, subject.requests[number]
    request.status = subject.release.classes["RequestStatus"].FINISHED_STOPPED
    finished = scheduler._handle_stopped_request(request)
    if finished:
        scheduler._free_request(request)
    scheduler.running.remove(request)
    queued = any(request is each for queue in queues_of(scheduler) for each in queue)
    if not finished and not queued:  # from 0.33 on the caller queues it
        scheduler._enqueue_waiting_request(request)


def continue_session(subject: "VllmSubject", action: Action) -> Refusal | None:
    """The client sends the next turn; with the last one, also that there will be no other."""
    if not _opens(subject, "sessions"):
        return Refusal("route-closed")
    number = subject.named(action)
    if number is None:
        return Refusal("unknown-request")
    turns, at = subject.setup.requests[number].turns, subject.turns.get(number, 0)
    if subject.status(number) != PAUSED or at >= len(turns):
        return Refusal("not-paused")
    turn = turns[at]
    if never_fits(subject.setup, (*subject.items(number), *turn.items)[len(subject.setup.requests[number].items) :]):
        return Refusal("never-fits")
    subject.turns[number] = at + 1
    classes, setup = subject.release.classes, subject.setup
    subject.scheduler.add_request(make_request(classes, setup, number, turn.prompt, turn.outputs, turn.items, True))
    if subject.requests[number].num_computed_tokens > 0:
        subject.ledger.held.add(number)
    if at + 1 == len(turns):
        subject.scheduler.add_request(make_request(classes, setup, number, 1, 1, (), False))
    return None
