"""Situations that a run should have met before its green means much: counted, never judged.

Belongs here: one value per situation, of the same type as a property so that every engine counts it, with a predicate
that is always true. `routes` says which of them show that an open route was really taken.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from outlives.model.contract import Action, Property
from outlives.model.setup import request_number
from outlives.model.state import PAUSED, RUNNING, WAITING, State, items_of
from outlives.model.world import ROUTES, World

from .furthest import Furthest
from .judge_cache import planned, released
from .judge_order import encoded_again, read_after_eviction, rejected_after_release, resumed_after_eviction
from .judge_requests import output_processed

__all__ = ["ROUTE_SITUATIONS", "SITUATIONS", "is_situation", "routes_not_taken", "told_unmet", "told_untaken"]

_PREFIX = "SITUATION-"


def is_situation(name: str) -> bool:
    """Whether a row of results only counts a situation."""
    return name.startswith(_PREFIX)


def _preempted_in_pass(before: State, action: Action | None, after: State) -> bool:
    if action is None or action.name not in ("schedule", "resume") or before.waiting == after.waiting:
        return False
    return any(
        old.status == RUNNING and new.status == WAITING
        for old, new in zip(before.requests, after.requests, strict=True)
    )


def _named(name: str) -> Callable[[State, Action | None, State], bool]:
    return lambda _before, action, _after: action is not None and action.name == name


def _dispatched(before: State, after: State) -> bool:
    return len(after.steps) > len(before.steps) and bool(after.steps[-1].parts)


def _chunked(before: State, _action: Action | None, after: State) -> bool:
    return _dispatched(before, after) and any(part.sampled == 0 for part in after.steps[-1].parts)


def _cut_by_gate(before: State, action: Action | None, after: State) -> bool:
    if action is None or action.name not in ("schedule", "resume") or not _dispatched(before, after):
        return False
    limit = after.setup.step_limit
    return any(
        part.sampled == 0 and part.tokens < limit and len(after.steps[-1].parts) == 1 for part in after.steps[-1].parts
    )


def _prefix_hit(before: State, action: Action | None, after: State) -> bool:
    return (
        action is not None
        and action.name == "resume"
        and _dispatched(before, after)
        and any(part.start > 0 for part in after.steps[-1].parts)
    )


def _hit(before: State, _action: Action | None, after: State) -> bool:
    if before.book.idle == after.book.idle:
        return False
    old = set(before.book.idle) - set(after.book.idle)
    return any(entry.holders and entry.key in old for entry in after.book.entries)


def _evicted(before: State, _action: Action | None, after: State) -> bool:
    if before.book.entries is after.book.entries:
        return False
    there = {entry.key for entry in after.book.entries}
    return any(entry.key not in there for entry in before.book.entries)


def _stale_output(before: State, action: Action | None, after: State) -> bool:
    if action is None or action.name not in ("accept", "reject") or len(after.steps) >= len(before.steps):
        return False
    return any(part.live == 0 for part in before.steps[0].parts)


def _read_ahead(before: State, action: Action | None, _after: State) -> bool:
    if action is None or action.name not in ("accept", "reject", "execute") or before.setup.look_ahead == 0:
        return False
    step = next((step for step in before.steps if step.executed == 0), None)
    if step is None:
        return False
    ahead = before.setup.look_ahead
    return any(
        part.start + part.tokens <= item.start < part.start + part.tokens + ahead
        for part in step.parts
        for item in items_of(before.setup, before.requests[part.request], part.request)
    )


def _drafted(before: State, action: Action | None, after: State) -> bool:
    if before.setup.look_ahead == 0 or action is None or action.name not in ("accept", "reject", "execute"):
        return False
    del after
    step = next((step for step in before.steps if step.executed == 0), None)
    return step is not None and bool(step.parts)


def _rejected(before: State, action: Action | None, after: State) -> bool:
    return action is not None and action.name == "reject" and len(after.steps) < len(before.steps)


def _beside_strangers(before: State, action: Action | None, after: State) -> bool:
    del before
    return action is not None and action.name in ("schedule", "resume") and after.book.strangers > 0


def _paused(before: State, after: State) -> list[int]:
    if PAUSED not in [request.status for request in after.requests]:
        return []
    return [
        number
        for number, (old, new) in enumerate(zip(before.requests, after.requests, strict=True))
        if old.status != PAUSED and new.status == PAUSED
    ]


def _turn_ended(before: State, _action: Action | None, after: State) -> bool:
    return bool(_paused(before, after))


def _turn_ended_in_flight(before: State, _action: Action | None, after: State) -> bool:
    return any(after.requests[number].counters.in_flight > 0 for number in _paused(before, after))


def _beside_stale(before: State, _action: Action | None, after: State) -> bool:
    return _dispatched(before, after) and any(
        part.first == 1 and before.requests[part.request].counters.stale > 0 for part in after.steps[-1].parts
    )


def _reset_in_flight(before: State, action: Action | None, _after: State) -> bool:
    asked = action is not None and action.name == "reset_encoder_cache"
    return asked and any(step.executed == 0 for step in before.steps)


def _failed_inside(_before: State, action: Action | None, after: State) -> bool:
    if action is None or action.name != "fail_kv_load":
        return False
    number = request_number(action.get("request", ""), len(after.requests))
    if number is None:
        return False
    request = after.requests[number]
    return any(item.start < request.counters.computed < item.end for item in items_of(after.setup, request, number))


def _victim_planned(before: State, _action: Action | None, after: State) -> bool:
    return len(after.steps) > len(before.steps) and bool(after.steps[-1].withdrawn)


def _priority_victim(before: State, action: Action | None, after: State) -> bool:
    return after.setup.by_priority == 1 and _preempted_in_pass(before, action, after)


def _refilled(before: State, _action: Action | None, after: State) -> bool:
    return len(after.steps) > len(before.steps) and bool(after.steps[-1].encode and after.steps[-1].drop)


def _shared(_before: State, _action: Action | None, after: State) -> bool:
    return len(after.requests) > 1 and any(len(entry.holders) > 1 for entry in after.book.entries)


def _padded(before: State, _action: Action | None, after: State) -> bool:
    return _dispatched(before, after) and any(part.first == 1 and part.drafts > 0 for part in after.steps[-1].parts)


def _output_in(mode: str) -> Callable[[State, Action | None, State], bool]:
    def arises(before: State, action: Action | None, after: State) -> bool:
        processed = action is not None and action.name in ("accept", "reject") and len(after.steps) < len(before.steps)
        return processed and getattr(after.setup, mode) == 1 and bool(before.steps[0].parts)

    return arises


def _left(before: State, _action: Action | None, after: State) -> bool:
    return _dispatched(before, after)


def _situation(
    name: str,
    phrase: str,
    arises: Callable[[State, Action | None, State], bool],
    towards: str = "",
    more: str = "",
) -> Property[State]:
    """`towards`: names of those that come before it, without their prefix; `more`: what to raise. Its kind is `state`,
    so that searches ask whether it holds, which it always does, as seldom as they can."""
    return Property(
        name=_PREFIX + name,
        phrase=phrase,
        holds=lambda _before, _action, _after: True,
        explain=lambda _before, _action, _after: "",
        situation=arises,
        situation_phrase=phrase,
        towards=tuple(_PREFIX + before for before in towards.split()),
        more=more,
    )


SITUATIONS = (
    _situation("DISPATCHED", "a step left with tokens of a request", _left),
    _situation("ENCODED", "a step was told to encode", planned, "DISPATCHED", "--items"),
    _situation("PROCESSED", "an output was processed", output_processed, "DISPATCHED"),
    _situation("RELEASED", "a reference was released", released, "DISPATCHED ENCODED"),
    _situation("PREEMPTED-IN-PASS", "a request was preempted in a pass", _preempted_in_pass, "DISPATCHED"),
    _situation("PREEMPTED-BETWEEN", "a request was preempted by a stranger's pass", _named("preempt"), "DISPATCHED"),
    _situation("ABORTED", "a client went away", _named("abort")),
    _situation("CHUNKED", "a prompt needed several chunks", _chunked, "DISPATCHED"),
    _situation("CUT-BY-GATE", "the encoder gate cut a chunk", _cut_by_gate, "DISPATCHED ENCODED", "--items"),
    _situation("PREFIX-HIT", "a request was admitted with part of its prefix computed", _prefix_hit, "DISPATCHED"),
    _situation("IDLE-HIT", "an idle entry was referenced again", _hit, "ENCODED RELEASED", "--requests or --items"),
    _situation("EVICTED", "an entry was evicted", _evicted, "ENCODED RELEASED", "--items or --requests"),
    _situation(
        "READ-AFTER-EVICTION",
        "a step in flight read a key that was evicted after it had left",
        read_after_eviction,
        "ENCODED RELEASED EVICTED",
        "--depth",
    ),
    _situation(
        "ENCODED-AGAIN",
        "an evicted key was encoded again",
        encoded_again,
        "ENCODED RELEASED EVICTED",
        "--requests or --items",
    ),
    _situation(
        "RESUMED-AFTER-EVICTION",
        "a preempted request resumed after a key of its had been evicted",
        resumed_after_eviction,
        "ENCODED RELEASED EVICTED",
    ),
    _situation("STALE-OUTPUT", "an output arrived after its request was preempted or gone", _stale_output, "PROCESSED"),
    _situation("REJECTED", "drafts were rejected", _rejected, "PROCESSED", "--drafts"),
    _situation(
        "REJECTED-AFTER-RELEASE",
        "drafts were rejected after an item of their request had been released",
        rejected_after_release,
        "ENCODED RELEASED REJECTED",
    ),
    _situation("DRAFTER-READ", "a drafter read past the window of its step", _drafted, "DISPATCHED", "--look-ahead"),
    _situation(
        "READ-AHEAD",
        "the drafter's look-ahead reached an item that the target did not read",
        _read_ahead,
        "ENCODED DRAFTER-READ",
    ),
    _situation(
        "REFILLED", "a pass evicted entries and encoded others", _refilled, "ENCODED RELEASED EVICTED", "--items"
    ),
    _situation("SHARED-KEY", "two requests referenced one entry", _shared, "ENCODED", "--requests"),
    _situation(
        "PRIORITY-VICTIM",
        "a request was preempted in a pass under the priority policy",
        _priority_victim,
        "DISPATCHED PREEMPTED-IN-PASS",
    ),
    _situation(
        "VICTIM-PLANNED",
        "a victim had planned an encode in the very pass",
        _victim_planned,
        "ENCODED PREEMPTED-IN-PASS",
        "--requests",
    ),
    _situation("PREFIX-CACHE-RESET", "the prefix cache was reset", _named("reset_prefix_cache"), "DISPATCHED"),
    _situation("BESIDE-STALE", "a request resumed beside its stale output", _beside_stale, "PREFIX-CACHE-RESET"),
    _situation("ENCODER-CACHE-RESET", "the encoder cache was reset", _named("reset_encoder_cache"), "ENCODED"),
    _situation(
        "RESET-IN-FLIGHT",
        "the encoder cache was reset with steps in flight",
        _reset_in_flight,
        "ENCODED ENCODER-CACHE-RESET",
    ),
    _situation("KV-LOAD-FAILED", "KV blocks failed to load", _named("fail_kv_load"), "DISPATCHED PREFIX-HIT"),
    _situation(
        "FAILED-INSIDE",
        "KV blocks failed to load from the middle of an item on",
        _failed_inside,
        "PREFIX-HIT KV-LOAD-FAILED",
        "--items",
    ),
    _situation("TURN-ENDED", "a session's turn ended", _turn_ended, "PROCESSED", "--turns"),
    _situation(
        "TURN-IN-FLIGHT", "a session's turn ended with steps in flight", _turn_ended_in_flight, "TURN-ENDED", "--depth"
    ),
    _situation(
        "TURN-CONTINUED", "a session went on with its next turn", _named("continue_session"), "PROCESSED TURN-ENDED"
    ),
    _situation("PADDED", "an admission of one token was padded with drafts", _padded, "PREFIX-HIT", "--drafts"),
    _situation("SYNCHRONOUS", "an output was processed under synchronous scheduling", _output_in("synchronous")),
    _situation("DIFFUSION", "an output of a diffusion model was processed", _output_in("diffusion")),
    _situation("ENCODER-DECODER", "an output of an encoder-decoder model was processed", _output_in("encoder_decoder")),
    _situation("STRANGERS-HELD", "a pass was made while strangers held slots", _beside_strangers),
)
"""Every situation, in the order in which reports list them."""

ROUTE_SITUATIONS: Mapping[str, tuple[str, ...]] = {
    "preempt": ("SITUATION-PREEMPTED-IN-PASS", "SITUATION-PREEMPTED-BETWEEN"),
    "abort": ("SITUATION-ABORTED",),
    "reset-prefix-cache": ("SITUATION-PREFIX-CACHE-RESET",),
    "reset-encoder-cache": ("SITUATION-ENCODER-CACHE-RESET",),
    "kv-load-failure": ("SITUATION-KV-LOAD-FAILED",),
    "sessions": ("SITUATION-TURN-ENDED", "SITUATION-TURN-CONTINUED"),
    "look-ahead": ("SITUATION-DRAFTER-READ",),
}
"""Open route -> the situations, one of which must have arisen for the route to have been taken."""


def routes_not_taken(world: World, met: Mapping[str, int], *, look_ahead: bool) -> tuple[str, ...]:
    """The open routes of which no situation was met. `look_ahead`: whether any setup has a drafter that reads ahead."""
    return tuple(
        route
        for route in ROUTES
        if world.opens(route)
        and (look_ahead or route != "look-ahead")
        and not any(met.get(name) for name in ROUTE_SITUATIONS[route])
    )


def told_untaken(
    routes: Iterable[str], at_best: Mapping[str, Furthest] = MappingProxyType({}), *, otherwise: str = "raise --cases"
) -> list[str]:
    """These in words: how far it got (`at_best`, by situation), and what to do, `otherwise` in general."""
    told = []
    for route in routes:
        ways = [at_best[name] for name in ROUTE_SITUATIONS[route] if name in at_best]
        way = max(ways, key=lambda each: len(each.stages), default=None)
        best = f"; {way.words()}" if way is not None and len(way.stages) > 1 else ""
        more = f"raise {way.more}, or " if way is not None and way.more else ""
        told.append(f"open route {route} was never taken{best}; close it with --without {route}, or {more}{otherwise}")
    return told


def told_unmet(world: World, met: Mapping[str, int]) -> list[str]:
    """The situations that did not arise, though no closed route keeps them from it, in words."""
    return [
        f"never: {situation.phrase}"
        for situation in SITUATIONS
        if not met.get(situation.name) and not closes(world, situation.name)
    ]


def closes(world: World, situation: str) -> bool:
    """Whether a closed route, or one that the release lacks, is why this situation cannot arise."""
    return any(situation in names for route, names in ROUTE_SITUATIONS.items() if not world.opens(route))
