"""The pass: one call of the scheduler, which builds and dispatches one step.

Theory of operation
-------------------
Running requests first, in the order in which they were admitted; then the waiting queue, unless the pass preempted
somebody. Each takes what it wants, cut by budget and chunk cap, then by the encoder gate, then needs KV blocks. Where
these run short (the environment's choice), a victim is preempted, whose part of this very step is withdrawn. KV
shortage at an admission preempts nobody: admissions end.

Every pass that changes anything sends its step, be it empty: an empty one carries drops, and takes its place in the
pipeline as in the engine, which waits for the oldest output after it. A pass that would change nothing is refused.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .book import ask_guard, find
from .contract import Refusal
from .cross import notice, take_slots
from .lifetime import Counters, carried_drafts, wanted
from .setup import NO_LIMIT, Setup
from .state import RUNNING, WAITING, Book, Part, Request, State, Step, items_of, limit_of
from .world import World

__all__ = [
    "choose_victim",
    "end_admission",
    "live_promises",
    "most_drafts",
    "orphan",
    "overtake",
    "preempt_between",
    "run_pass",
]


NO_HITS: Mapping[int, int] = {}
"""No prefix is found for anybody."""


class _Share(NamedTuple):
    """What one request was granted in the pass under way."""

    tokens: int
    drafts: int
    encode: tuple[str, ...]
    slots: int


class _Pass:
    """The pass under way: working copies, written back into a new state at its end."""

    __slots__ = (
        "admitted",
        "book",
        "encoder_budget",
        "handed_over",
        "preempted",
        "requests",
        "running",
        "shares",
        "state",
        "token_budget",
        "waiting",
        "withdrawn",
        "world",
    )  # fmt: skip

    def __init__(self, world: World, state: State) -> None:
        self.world = world
        self.state = state
        self.requests = list(state.requests)
        self.running = list(state.running)
        self.waiting = list(state.waiting)
        self.book: Book = state.book
        self.token_budget = state.setup.budget
        self.encoder_budget = state.setup.encode_limit
        self.shares: dict[int, _Share] = {}
        self.preempted = False
        self.withdrawn: tuple[str, ...] = ()
        self.handed_over: tuple[str, ...] = ()
        self.admitted: set[int] = set()


def run_pass(
    world: World,
    state: State,
    short_at: int | None = None,
    first: int | None = None,
    hits: Mapping[int, int] = NO_HITS,
    omit: str | None = None,
) -> State | Refusal:
    """One pass. KV blocks run short at request `short_at`; `first` is admitted before all others; `hits` are the
    positions of a request's prefix that are found in the KV cache, should it be admitted (0 where it has none there);
    `omit` is a planned encode that the environment leaves out (A4 relaxed)."""
    if len(state.steps) >= state.setup.depth:
        return Refusal("pipeline-full")
    work = _Pass(world, state)
    _serve_running(work, short_at)
    if not work.preempted:
        _admit_waiting(work, short_at, first, hits)
    after = _dispatch(work, omit)
    if after._replace(steps=state.steps) == state:
        return Refusal("nothing-scheduled")
    return after


def preempt_between(world: World, state: State, number: int) -> State | Refusal:
    """A stranger's pass preempts the request. Its step holds nothing of ours and takes its place in the pipeline."""
    if len(state.steps) >= state.setup.depth:
        return Refusal("pipeline-full")
    work = _Pass(world, state)
    _preempt(work, number)
    return _dispatch(work, None)


def choose_victim(world: World, state: State, running: tuple[int, ...]) -> int:  # noqa: ARG001
    """Who loses its KV blocks: the last of the running requests, or under the priority policy the least urgent one,
    which may have been scheduled in this very pass."""
    if state.setup.by_priority == 1:
        return max(running, key=lambda number: (state.setup.requests[number].priority, number))
    return running[-1]


def _serve_running(work: _Pass, short_at: int | None) -> None:
    setup = work.state.setup
    skips = 0
    for number in tuple(work.running):
        if work.token_budget == 0:
            return
        if skips:
            skips -= 1
            continue
        request = work.requests[number]
        if request.status != RUNNING or _reaches_limit(work, number, request):
            continue
        count = _cut(work, wanted(request.counters, request.drafts))
        if count <= 0:
            continue
        computed = request.counters.computed
        gated = work.world.rules.gate(
            work.world, setup, work.book, request, number, computed, count, work.encoder_budget
        )
        work.book = gated.book
        work.requests[number] = request = _referencing(work, request, gated.references)
        if gated.tokens <= 0:
            continue
        if number == short_at:
            victim = work.world.rules.choose_victim(work.world, work.state, tuple(work.running))
            skips += _skips_next(work, victim, number)
            _preempt(work, victim)
            if victim == number:
                if setup.by_priority == 1 and work.world.switches.go_on_after_self == 1:
                    continue
                return
        _grant(work, number, gated.tokens, gated.planned, gated.second)


def _skips_next(work: _Pass, victim: int, number: int) -> int:
    """1 where the pass loses its place: up to 0.27.0, behind a victim that stood before and was not scheduled."""
    before = work.running.index(victim) < work.running.index(number)
    return int(work.world.switches.victim_skips_next == 1 and before and victim not in work.shares)


def _admit_waiting(work: _Pass, short_at: int | None, first: int | None, hits: Mapping[int, int]) -> None:
    world, setup = work.world, work.state.setup
    queue = list(work.waiting)
    if setup.by_priority == 1:
        queue.sort(key=lambda number: (setup.requests[number].priority, number))
    if world.switches.held_first == 1:
        queue.sort(key=lambda number: work.requests[number].counters.computed == 0)
    if first in queue:
        queue.remove(first)
        queue.insert(0, first)
    for number in queue:
        if work.token_budget == 0:
            return
        request = work.requests[number]
        if world.switches.isolate_stale == 1 and request.counters.stale > 0 and request.drop == 0:
            continue
        counters = world.rules.admit(request.counters, hits.get(number, 0))
        count = _padded(work, counters)
        if count > work.token_budget and count > counters.known - counters.computed:
            return
        count = _cut(work, count)
        gated = world.rules.gate(
            world, setup, work.book, request, number, counters.computed, count, work.encoder_budget
        )
        work.book = gated.book
        work.requests[number] = request = _referencing(work, request, gated.references)
        if gated.tokens <= 0:
            if world.switches.skip_stalled == 1:
                continue
            return
        if number == short_at:
            if world.switches.drop_at_failed_admission == 1:
                work.book, work.requests[number] = world.rules.drop_references(world, setup, work.book, request, number)
            return
        work.requests[number] = request._replace(status=RUNNING, counters=counters, decoding=0)
        work.waiting.remove(number)
        work.running.append(number)
        work.admitted.add(number)
        _grant(work, number, gated.tokens, gated.planned, gated.second)


def _padded(work: _Pass, counters: Counters) -> int:
    """What an admission asks for: all that is known. From 0.25.0 on, one token beside a batch that only decodes is
    padded with drafts, so that the batch stays uniform. (Of who was served in this pass, the step before counts.)"""
    setup, switches = work.state.setup, work.world.switches
    count = counters.known - counters.computed
    if count != 1 or switches.pad_admission == 0 or setup.diffusion == 1:
        return count
    if switches.pad_fitting == 1 and 1 + setup.drafts > setup.step_limit:
        return count  # no pass would ever have the room
    ran = [number for number in work.shares if number not in work.admitted]
    if not ran and not (switches.pad_when_alone == 1 and counters.computed > 0):
        return count
    if any(work.state.requests[number].decoding == 0 for number in ran):
        return count
    return 1 + setup.drafts


def _reaches_limit(work: _Pass, number: int, request: Request) -> bool:
    """Whether the outputs already promised reach the request's limit even if every draft is rejected."""
    counters = request.counters
    limit = limit_of(work.state.setup, request, number)
    return counters.placeholders > 0 and counters.computed + 2 - counters.placeholders >= limit


def _cut(work: _Pass, count: int) -> int:
    cap = work.state.setup.chunk_cap
    if work.world.switches.cap_when_alone == 0 and len(work.state.running) + len(work.state.waiting) <= 1:
        cap = NO_LIMIT
    if cap != NO_LIMIT:
        count = min(count, cap)
    return min(count, work.token_budget)


def _referencing(work: _Pass, request: Request, references: tuple[int, ...]) -> Request:
    if references == request.references:
        return request
    request = request._replace(references=references)
    if "A2" in work.world.relaxed:
        request = request._replace(seen=tuple(sorted({*request.seen, *references})))
    return request


def _grant(work: _Pass, number: int, count: int, planned: tuple[int, ...], second: tuple[int, ...]) -> None:
    """KV blocks are there: the share is fixed and its planned encodes enter the book."""
    request = work.requests[number]
    items = items_of(work.state.setup, request, number)
    for item in planned:
        if work.state.setup.encoder_decoder == 1:
            work.book = take_slots(work.book, items[item].key, items[item].size, number)
        else:
            work.book = work.world.rules.allocate(work.world, work.book, items[item].key, items[item].size, number)
    references = tuple(sorted({*request.references, *planned, *second}))
    work.requests[number] = _referencing(work, request, references)
    slots = sum(items[item].size for item in planned)
    drafts = carried_drafts(request.counters, count)
    work.shares[number] = _Share(count, drafts, tuple(items[item].key for item in planned), slots)
    work.token_budget -= count
    work.encoder_budget -= slots


def _preempt(work: _Pass, number: int) -> None:
    """The request loses its blocks: its share of this pass is withdrawn (the book is not told of a withdrawn encode;
    0.11.0 leaves the share in the step), its references are dropped, and it goes back to the front of the waiting
    queue."""
    world = work.world
    share = work.shares.pop(number, None) if world.switches.withdraw_victim == 1 else None
    if share is not None:
        work.token_budget += share.tokens
        work.encoder_budget += share.slots
    request = work.requests[number]
    work.book, request = world.rules.drop_references(world, work.state.setup, work.book, request, number)
    if share is not None:
        work.withdrawn += share.encode
        work.book, moved = world.rules.withdraw(world, work.book, number, share.encode)
        for key, other in moved:
            entry = find(work.book, key)
            work.encoder_budget -= 0 if entry is None else entry.size
            if other in work.shares:
                work.shares[other] = work.shares[other]._replace(encode=(*work.shares[other].encode, key))
            else:
                # Who holds it has no share yet, or none in this pass: the step encodes it all the same.
                work.handed_over += (key,)
    counters = world.rules.preempt(request.counters, world.switches.isolate_stale)
    work.requests[number] = request._replace(status=WAITING, counters=counters, drafts=0, decoding=0)
    work.running.remove(number)
    work.waiting.insert(0, number)
    work.preempted = True


def most_drafts(world: World, setup: Setup) -> int:
    """How many drafts a decode step may carry."""
    return setup.drafts if world.switches.drafts_when_asynchronous == 1 or setup.synchronous == 1 else 0


def live_promises(steps: tuple[Step, ...], number: int) -> int:
    """What the live steps in flight have promised to the request: the truth that `placeholders` keeps book of."""
    return sum(part.promised for step in steps for part in step.parts if part.request == number and part.live == 1)


def _dispatch(work: _Pass, omit: str | None) -> State:
    """The step leaves: the worker is told, then the counters advance."""
    world, state = work.world, work.state
    rules, setup = world.rules, work.state.setup
    shelf = overtake(world, work.book, state.shelf)
    encode = work.handed_over + tuple([key for share in work.shares.values() for key in share.encode])
    if setup.encoder_decoder == 1:
        book, drop = notice(world, work.book, encode)
    else:
        book, drop = rules.announce(world, work.book)
    omitted = state.omitted
    if omit in encode and omitted == 0:
        encode = tuple(key for key in encode if key != omit)
        omitted = 1
    parts = []
    for number, share in work.shares.items():
        request = work.requests[number]
        # A victim of 0.11.0 is in the step with what it was given, and waits with these tokens counted from 0.
        victim = request.status == WAITING
        start = state.requests[number].counters.computed if victim else request.counters.computed
        if world.guard.site == "before-advance":
            book, request = ask_guard(world, state, book, request, number)
        counters = rules.advance(request.counters, share.tokens)
        if world.guard.site == "after-advance":
            book, request = ask_guard(world, state, book, request._replace(counters=counters), number)
        counters, sampled, promised = rules.promise(counters, share.drafts, setup.base, setup.asynchronous)
        if victim:
            # The worker was told nothing new of it and counts from where its step before began, so that these tokens
            # never bring it to the last known one: it samples nothing, and nothing is promised.
            sampled = promised = 0
        lowest = start - live_promises(state.steps, number)
        # A session that goes on with the blocks it holds looks no prefix up: nothing is loaded that could fail.
        held = number in work.admitted and state.requests[number].counters.computed > 0
        first = 2 if held else int(number in work.admitted or request.rebase == 1)
        parts.append(
            Part(
                request=number,
                start=start,
                tokens=share.tokens,
                drafts=share.drafts,
                sampled=sampled,
                promised=promised,
                lowest=lowest,
                first=first,
                live=int(not victim),
                extra=request.extra,
            )
        )
        drafts, decoding = request.drafts if number in work.admitted else 0, 0
        if sampled == 1:
            # Asynchronous scheduling attaches a full set of drafts to the next decode step as soon as this one leaves;
            # without it they come with the output.
            decoding = setup.asynchronous
            drafts = most_drafts(world, setup) if decoding == 1 else 0
        work.requests[number] = request._replace(counters=counters, drafts=drafts, decoding=decoding, rebase=0)
    return state._replace(
        requests=tuple(work.requests),
        running=tuple(work.running),
        waiting=tuple(work.waiting),
        book=book,
        steps=orphan(state.steps, work.requests) + (Step(tuple(parts), encode, drop, withdrawn=work.withdrawn),),
        shelf=shelf,
        omitted=omitted,
    )


def end_admission(steps: tuple[Step, ...], number: int) -> tuple[Step, ...]:
    """The steps, with every part of the request marked: the worker's next step of it begins anew."""
    return tuple(
        step._replace(parts=tuple(part._replace(live=0) if part.request == number else part for part in step.parts))
        for step in steps
    )


def overtake(world: World, book: Book, shelf: tuple[str, ...]) -> tuple[str, ...]:
    """With A1 relaxed a notice overtakes the steps in flight: evicted keys leave the shelf at once. (The notice also
    travels with the next step, so that nothing stays behind.)"""
    if "A1" in world.relaxed:
        return tuple(key for key in shelf if key not in book.evicted)
    return shelf


def orphan(steps: tuple[Step, ...], requests: Sequence[Request]) -> tuple[Step, ...]:
    """The steps, with the parts of requests that no longer run marked: their admission is over."""
    if all(requests[part.request].status == RUNNING or part.live == 0 for step in steps for part in step.parts):
        return steps
    return tuple(
        step._replace(
            parts=tuple(
                part if requests[part.request].status == RUNNING else part._replace(live=0) for part in step.parts
            )
        )
        for step in steps
    )
