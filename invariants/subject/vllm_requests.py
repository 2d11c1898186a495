"""Requests that come, speculate, stop and go, and strangers who want slots, for a live vLLM scheduler.

Belongs here: one function per action that is no pass, no output and no rare route, each with the refusals of the model.
"""

from typing import TYPE_CHECKING

from outlives.model.contract import Action, Refusal
from outlives.model.scheduler import never_fits, two_sizes
from outlives.model.setup import clamp, request_name
from outlives.model.state import FINISHED, PAUSED, RUNNING, WAITING

from .environment import Stranger, make_request
from .vllm_routes import has_sessions, stop_turn

if TYPE_CHECKING:
    from .vllm_subject import VllmSubject

__all__ = ["abort", "arrive", "evict", "finish", "occupy", "speculate"]


def arrive(subject: "VllmSubject", action: Action) -> Refusal | None:
    number = subject.named(action)
    if number is None:
        return Refusal("unknown-request")
    if number in subject.requests:
        return Refusal("already-arrived")
    if number > 0 and number - 1 not in subject.requests:
        return Refusal("not-its-turn")
    setup, asked = subject.setup, subject.setup.requests[number]
    if any(never_fits(setup, items) for items in (asked.items, *(turn.items for turn in asked.turns))):
        return Refusal("never-fits")
    if two_sizes(setup):
        return Refusal("key-with-two-sizes")
    if setup.diffusion == 1 and (setup.drafts == 0 or not subject.release.diffusion):
        return Refusal("never-samples")
    if setup.encoder_decoder == 1 and "EncoderDecoderCacheManager" not in subject.release.classes:
        return Refusal("no-encoder-decoder-models")
    session = len(asked.turns) > 0 and has_sessions(subject)
    request = make_request(
        subject.release.classes,
        setup,
        number,
        asked.prompt,
        asked.outputs,
        asked.items,
        session,
        hasher=subject.hasher,
    )
    subject.requests[number] = request
    subject.scheduler.add_request(request)
    return None


def speculate(subject: "VllmSubject", action: Action) -> Refusal | None:
    number = subject.named(action)
    if number is None or not subject.runs(number):
        return Refusal("not-running")
    if subject.setup.diffusion == 1:
        return Refusal("drafts-are-fixed")
    if number not in subject.ledger.decoding:
        return Refusal("still-prefilling")
    request = subject.requests[number]
    drafts = clamp(action.get("drafts", 0), 0, subject.setup.drafts)
    if drafts == len(request.spec_token_ids):
        return Refusal("no-change")
    request.spec_token_ids = [-1] * drafts
    return None


def finish(subject: "VllmSubject", action: Action) -> Refusal | None:
    number = subject.named(action)
    if number is None or not subject.runs(number):
        return Refusal("not-running")
    if subject.requests[number].num_tokens <= subject.requests[number].num_prompt_tokens:
        return Refusal("no-output-yet")
    request = subject.requests[number]
    further = subject.turns.get(number, 0) < len(subject.setup.requests[number].turns)
    confirmed = request.num_computed_tokens - request.num_output_placeholders
    if further and confirmed != request.num_tokens - subject.setup.base:
        return Refusal("no-output-now")
    if further and subject.ledger.computes_anew(number, confirmed):
        return Refusal("no-output-now")
    if further and request.resumable:
        stop_turn(subject, number)
        return None
    _end(subject, number, "FINISHED_STOPPED")
    return None


def abort(subject: "VllmSubject", action: Action) -> Refusal | None:
    if "abort" in subject.closed:
        return Refusal("route-closed")
    number = subject.named(action)
    if number is None or subject.status(number) not in (RUNNING, WAITING, PAUSED):
        return Refusal("not-there")
    _end(subject, number, "FINISHED_ABORTED")
    return None


def _end(subject: "VllmSubject", number: int, status: str) -> None:
    subject.scheduler.finish_requests(request_name(number), getattr(subject.release.classes["RequestStatus"], status))
    assert subject.status(number) == FINISHED


def evict(subject: "VllmSubject", action: Action) -> Refusal | None:
    manager = subject.scheduler.encoder_cache_manager
    idle = [] if subject.slots is not None else list(manager.freeable.values())
    if not idle:
        return Refusal("nothing-idle")
    count = clamp(action.get("count", 1), 1, len(idle))
    _make_room(subject, manager.num_free_slots + sum(idle[:count]))
    return None


def occupy(subject: "VllmSubject", action: Action) -> Refusal | None:
    manager = subject.scheduler.encoder_cache_manager
    free = manager.num_free_slots if subject.slots is not None else manager.num_freeable_slots
    more = clamp(action.get("slots", 0), 0, min(subject.setup.strangers, free + subject.strangers)) - subject.strangers
    if more == 0:
        return Refusal("no-change")
    if more > 0:
        _make_room(subject, more)
    manager.num_free_slots -= more
    if subject.slots is None:
        manager.num_freeable_slots -= more
    subject.strangers += more
    return None


def _make_room(subject: "VllmSubject", slots: int) -> None:
    """Ask the manager for that much room on a stranger's behalf: it evicts as for anybody."""
    subject.scheduler.encoder_cache_manager.can_allocate(Stranger(slots), 0, slots, 0)
