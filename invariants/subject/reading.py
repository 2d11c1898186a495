"""Reading a live scheduler's objects as the model's state. Nothing here changes anything.

Belongs here: one function per part of the state, and what each is read from. Where a release keeps less than the model
has, the function says what is put in its place.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from outlives.model.lifetime import Counters
from outlives.model.setup import Setup
from outlives.model.state import ABSENT, FINISHED, PAUSED, RUNNING, WAITING, Book, Entry, Request

from .ledger import Ledger
from .twin import items_told, request_of

__all__ = ["Slots", "book_of", "queues_of", "request_record", "status_of", "waiting_of"]

NOBODY = Request(ABSENT, Counters(0, 0, 0, 0, 0))


class Slots(NamedTuple):
    """What an encoder-decoder manager was asked to take and to credit: it keeps no record itself."""

    entries: dict[str, Entry]
    references: dict[int, set[int]]


def queues_of(scheduler: Any) -> list[Any]:
    """The waiting queues, in the order in which they are scanned: those that are not empty come first to last."""
    names = ("kv_holding_waiting", "skipped_waiting", "waiting")
    return [getattr(scheduler, name) for name in names if hasattr(scheduler, name)]


def waiting_of(scheduler: Any, by_priority: bool) -> Iterator[Any]:
    """The waiting requests in the order in which they are served, paused sessions left out."""
    queues: list[list[Any]] = [list(queue) for queue in queues_of(scheduler)]
    if by_priority and not hasattr(scheduler, "kv_holding_waiting"):
        queues = [[request for queue in queues for request in queue]]  # the more urgent head of the two is served
    for requests in queues:
        if by_priority:
            requests.sort(key=lambda request: (request.priority, request.arrival_time))
        for request in requests:
            if status_of(request) == WAITING:
                yield request


def status_of(request: Any) -> str:
    """The status in the model's words."""
    if request.is_finished():
        return FINISHED
    name = request.status.name
    if name == "RUNNING":
        return RUNNING
    return PAUSED if name in ("WAITING_FOR_STREAMING_REQ", "WAITING_FOR_STREAMING") else WAITING


def request_record(
    scheduler: Any, setup: Setup, ledger: Ledger, number: int, request: Any, turn: int, slots: Slots | None
) -> Request:
    """The scheduler's view of a request."""
    if request is None:
        return NOBODY
    status = status_of(request)
    given = len(setup.requests[number].items)
    extra = items_told(request.mm_features[given:])
    references = _references(scheduler, request, number, slots)
    if status == FINISHED:
        return NOBODY._replace(status=FINISHED, references=references, turn=turn, extra=extra if references else ())
    in_flight = getattr(request, "num_in_flight_tokens", None)
    stale = getattr(request, "num_stale_output_tokens", 0)
    queued = status == RUNNING or any(request is each for queue in queues_of(scheduler) for each in queue)
    frames = getattr(request, "async_tokens_to_discard", getattr(request, "discard_latest_async_tokens", 0))
    return Request(
        status=status,
        counters=Counters(
            computed=request.num_computed_tokens,
            placeholders=request.num_output_placeholders,
            in_flight=ledger.in_flight(number) if in_flight is None else in_flight,
            stale=stale,
            known=request.num_tokens,
        ),
        drafts=len(request.spec_token_ids),
        decoding=int(number in ledger.decoding),
        references=references,
        drop=int(stale > 0 and getattr(request, "drop_stale_output", False)),
        turn=turn,
        extra=extra,
        limit=request.num_tokens - request.num_output_tokens + request.max_tokens if turn > 0 else 0,
        frames=int(frames),
        lost=int(not queued),
    )


def _references(scheduler: Any, request: Any, number: int, slots: Slots | None) -> tuple[int, ...]:
    """The items it references; where the release keeps only who references a key, every item of that key."""
    if slots is not None:
        return tuple(sorted(slots.references.get(number, ())))
    manager = scheduler.encoder_cache_manager
    by_request = getattr(manager, "request_cached_ids", None)
    if by_request is not None:
        return tuple(sorted(by_request.get(request.request_id, ())))
    return tuple(
        place
        for place, feature in enumerate(request.mm_features)
        if request.request_id in manager.cached.get(feature.identifier, ())
    )


def book_of(scheduler: Any, sizes: dict[str, int], strangers: int, slots: Slots | None) -> Book:
    """The encoder-cache manager. `sizes` are those of all keys: before 0.31 the manager does not keep them."""
    manager = scheduler.encoder_cache_manager
    if slots is not None:
        return Book(
            entries=tuple(sorted(slots.entries.values())),
            idle=(),
            evicted=(),
            free=manager.num_free_slots,
            reclaimable=manager.num_free_slots,
            strangers=strangers,
            due=tuple(sorted(set(getattr(manager, "to_free", ())))),
        )
    kept = getattr(manager, "num_embeds_by_hash", sizes)
    return Book(
        entries=tuple(
            Entry(key, kept.get(key, sizes[key]), tuple(sorted(map(request_of, holders))))
            for key, holders in sorted(manager.cached.items())
        ),
        idle=tuple(manager.freeable),
        evicted=tuple(manager.freed),
        free=manager.num_free_slots,
        reclaimable=manager.num_freeable_slots,
        strangers=strangers,
    )
