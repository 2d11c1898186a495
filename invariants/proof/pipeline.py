"""The same relation with every step in flight by name: what bounded checking searches for a shortest run to a miss.

Belongs here: the state `Run` (one life, its steps in flight in slots, and the numbers of the run), its moves, and when
a read misses. The moves call the phases of `relation`; nothing of the life's rules is written again. Rules as there.

What is narrower than in the proof, so that a run can be replayed on the executable model: a step takes all it can, up
to the run's budget; drafts come only once the admission has sampled; a request with stale outputs in flight waits for
them, unless they are to vanish; a preemption sends a step of its own, which takes a place in the pipeline; one token is
sampled beside the drafts, nobody looks ahead, and no stranger has the key. An admission that would be padded with
drafts is left out, and so is a failed load of anything but the first step after a prefix hit. The moves of the rare
routes are in `pipeline_routes`.
"""

from typing import NamedTuple

from outlives.model import lifetime
from outlives.model.contract import Refusal

from . import relation
from .in_flight import shift, take_live, take_stale
from .life import EMPTY, Flight, Life, Terms, landed
from .relation import Phase
from .routes import preempt

__all__ = ["DEEPEST", "EMPTY_RUN", "MOVES", "Next", "Run", "Slot", "admission", "begins", "land", "lived", "misses"]
__all__ += ["DISPATCH", "FLOOR", "HELD", "NONE_LIVE", "PAUSED", "PLACE", "RUNS"]

DEEPEST = 3
"""Steps in flight at most; how many of them a run uses is one of its numbers."""


class Slot(NamedTuple):
    """A place in the pipeline."""

    flight: Flight
    """Our part of the step in it; not active where it holds none (a stranger's step)."""
    encodes: int
    """1: the step is told to encode the key."""
    loaded: int
    """1: it is the first of an admission that began with a prefix hit, whose KV blocks were to be loaded."""


class Run(NamedTuple):
    """A run: the life, the pipeline, and the numbers that stay."""

    life: Life
    budget: int
    """Tokens per step. Constant."""
    most_drafts: int
    """Constant."""
    depth: int
    """Steps in flight at most, 2 as in asynchronous scheduling on one stage, or 3. Constant."""
    decoding: int
    """1: a step of this admission has sampled."""
    drop: int
    """1: the stale outputs in flight are to vanish, and the request may resume beside them."""
    between: int
    """0: not between two turns of a session; `PAUSED`: a turn has ended; `HELD`: the next one waits to be admitted."""
    known: int
    """Known tokens when the present turn began."""
    used: int
    """Slots that are taken; the first is the oldest."""
    first: Slot
    second: Slot
    third: Slot
    tokens: int
    """Scratch: tokens of the step being built."""
    drafts: int
    """Scratch: drafts that the step in hand was dispatched with."""
    planned: int
    """Scratch: 1 where the step being built encodes the key."""
    loading: int
    """Scratch: 1 where the step being built begins an admission with a prefix hit."""


PAUSED = 1
HELD = 2

_FREE = Slot(landed(), 0, 0)
EMPTY_RUN = Run(EMPTY, 0, 0, 0, 0, 0, 0, 0, 0, _FREE, _FREE, _FREE, 0, 0, 0, 0)
"""The shape of a run, all zeros."""

Next = Run | Refusal


def begins(terms: Terms, run: Run) -> bool:  # noqa: ARG001
    """The bounds within which a shortest run is looked for: small numbers, to be read by people."""
    life = run.life
    return (
        life.base == 1
        and life.there == 1
        and life.look_ahead == 0
        and life.booked == 0
        and run.decoding == 0
        and run.drop == 0
        and run.between == 0
        and run.known == life.prompt
        and run.used == 0
        and run.first.flight.active == 0
        and run.first.encodes == 0
        and run.second.flight.active == 0
        and run.second.encodes == 0
        and run.third.flight.active == 0
        and run.third.encodes == 0
        and run.depth >= 2
        and run.depth <= DEEPEST
        and run.budget >= 1
        and run.budget <= 8
        and run.most_drafts >= 0
        and run.most_drafts <= 3
        and life.end <= 8
        and life.prompt <= 8
    )


def lived(run: Run, after: relation.Outcome) -> Next:
    """The run with its life moved on."""
    if isinstance(after, Refusal):
        return after
    return run._replace(life=after)


def _only_running(terms: Terms, run: Run) -> Next:
    if run.between != 0:
        return Refusal("not-running")
    return lived(run, relation.only_running(terms, run.life))


def _only_with_place(terms: Terms, run: Run) -> Next:  # noqa: ARG001
    if run.used >= run.depth:
        return Refusal("pipeline-full")
    return run


def _take(terms: Terms, run: Run, drafts: int) -> Next:  # noqa: ARG001
    """What a running request takes: all that it wants, up to the budget."""
    if drafts < 0 or drafts > run.most_drafts:
        return Refusal("too-many-drafts")
    if drafts > 0 and run.decoding == 0:
        return Refusal("still-prefilling")
    count = lifetime.wanted(run.life.counters, drafts)
    if count > run.budget:
        count = run.budget
    return run._replace(tokens=count)


def _admit(terms: Terms, run: Run, hit: int) -> Next:
    if run.between == PAUSED:
        return Refusal("not-waiting")
    if terms.assumed.isolate == 1 and run.drop == 0 and run.life.counters.stale > 0:
        return Refusal("stale-output-in-flight")
    admitted = relation.admit(terms, run.life, hit)
    if isinstance(admitted, Refusal):
        return admitted
    return admission(run, admitted)


def admission(run: Run, admitted: Life) -> Next:
    """What an admission takes: all that is known, up to the budget."""
    count = admitted.counters.known - admitted.counters.computed
    if count == 1 and run.most_drafts > 0 and admitted.counters.computed > 0:
        return Refusal("would-be-padded")
    if count > run.budget:
        count = run.budget
    loaded = 0
    if admitted.counters.computed > 0 and run.between == 0:
        loaded = 1
    return run._replace(life=admitted, tokens=count, decoding=0, between=0, loading=loaded)


def _gate(terms: Terms, run: Run, encoded: int) -> Next:
    before = run.life.booked
    gated = relation.gate(terms, run.life, run.tokens, encoded, 0)
    if isinstance(gated, Refusal):
        return gated
    planned = 0
    if before == 0 and gated.booked == 1 and encoded == 1:
        planned = 1
    return run._replace(life=gated, planned=planned)


def _advance(terms: Terms, run: Run) -> Next:
    """The step leaves; the life follows it, as it would follow a tracked one."""
    return lived(run, relation.advance(terms, run.life, run.tokens, 1))


def _push(terms: Terms, run: Run) -> Next:  # noqa: ARG001
    """And takes its place in the pipeline, where it is followed from now on."""
    flight = run.life.flight
    slot = Slot(flight, run.planned, run.loading)
    run = run._replace(life=run.life._replace(flight=landed()), used=run.used + 1, planned=0, loading=0)
    return _placed(run._replace(decoding=flight.sampled), slot)


def _placed(run: Run, slot: Slot) -> Run:
    """The slot is the last of those that are taken."""
    if run.used == 1:
        return run._replace(first=slot)
    if run.used == 2:
        return run._replace(second=slot)
    return run._replace(third=slot)


def _floor(terms: Terms, run: Run) -> Next:
    return lived(run, relation.raise_floor(terms, run.life))


def land(terms: Terms, run: Run, accepted: int) -> Next:
    """The oldest step leaves the pipeline; those behind it are shifted by its rejections."""
    if run.used < 1:
        return Refusal("pipeline-empty")
    flight = run.first.flight
    run = run._replace(used=run.used - 1, tokens=flight.tokens, drafts=flight.drafts)
    first, second = run.second, run.third
    if flight.active == 0:
        if accepted != 0:
            return Refusal("no-such-output")
        return run._replace(first=first, second=second, third=_FREE)
    sampled = flight.sampled
    life = run.life._replace(flight=flight)
    if flight.live == 1:
        taken = take_live(terms, life, flight.tokens, flight.drafts, accepted, sampled, 1)
    else:
        taken = take_stale(terms, life, flight.tokens, flight.drafts, accepted, sampled, 1, 0)
    first = first._replace(flight=_behind(terms, first.flight, flight, accepted))
    second = second._replace(flight=_behind(terms, second.flight, flight, accepted))
    return lived(run._replace(first=first, second=second, third=_FREE, planned=sampled), taken)


def _behind(terms: Terms, flight: Flight, landing: Flight, accepted: int) -> Flight:
    """A step behind the one that lands. Where that one is stale, so is every one of its admission: nothing moves them,
    and they have one step less before them (their margins are no longer kept)."""
    if flight.active == 0:
        return flight
    if landing.live == 0:
        if flight.live == 0:
            return flight._replace(margin=0, draft_margin=0)
        return flight
    return shift(terms, flight, landing.drafts - accepted, landing.share, landing.drafts)


def _process(terms: Terms, run: Run, accepted: int) -> Next:
    """Its output is processed, unless it was a stranger's (no tokens in hand)."""
    if run.tokens == 0:
        return run
    after = relation.process(terms, run.life, run.tokens, run.drafts, accepted, run.planned, run.drop)
    if isinstance(after, Refusal):
        return after
    drop = run.drop
    if after.counters.stale == 0:
        drop = 0
    return run._replace(life=after, tokens=0, drafts=0, planned=0, drop=drop)


def _preempt(terms: Terms, run: Run) -> Next:
    preempted = preempt(terms, run.life)
    if isinstance(preempted, Refusal):
        return preempted
    run = none_live(terms, run._replace(life=preempted))
    return _placed(run._replace(used=run.used + 1), _FREE)


def none_live(terms: Terms, run: Run) -> Run:  # noqa: ARG001
    """The admission is over: nothing in flight is live any more."""
    return run._replace(
        life=run.life._replace(flight=landed()),
        decoding=0,
        first=_with(run.first, live=0),
        second=_with(run.second, live=0),
        third=_with(run.third, live=0),
    )


def _with(slot: Slot, **changed: int) -> Slot:
    return slot._replace(flight=slot.flight._replace(**changed))


def _evict(terms: Terms, run: Run) -> Next:
    """In order, no step in flight notices. With A1 relaxed the key leaves the shelf at once: the steps in flight, none
    of which has executed, find it only from the one on that encodes it."""
    evicted = relation.evict(terms, run.life, 1)
    if isinstance(evicted, Refusal):
        return evicted
    run = run._replace(life=evicted)
    if "A1" not in terms.assumed.relaxed or run.first.encodes == 1:
        return run
    run = run._replace(first=_with(run.first, present=0))
    if run.second.encodes == 1:
        return run
    run = run._replace(second=_with(run.second, present=0))
    if run.third.encodes == 1:
        return run
    return run._replace(third=_with(run.third, present=0))


PLACE = Phase(_only_with_place)
RUNS = Phase(_only_running)
FLOOR = Phase(_floor)
NONE_LIVE = Phase(none_live)
DISPATCH = (Phase(_gate, ("encoded",)), Phase(_advance), FLOOR, Phase(_push))

MOVES: dict[str, tuple[Phase, ...]] = {
    "resume": (PLACE, Phase(_admit, ("number",)), FLOOR, *DISPATCH),
    "dispatch": (PLACE, RUNS, Phase(_take, ("number",)), *DISPATCH),
    "output": (Phase(land, ("number",)), Phase(_process, ("number",)), FLOOR),
    "preempt": (PLACE, RUNS, Phase(_preempt)),
    "evict": (Phase(_evict),),
}
"""Name -> phases. `number`: the prefix hit of a resume, the drafts of a dispatch, the accepted drafts of an output."""


def misses(terms: Terms, run: Run) -> bool:
    """The oldest step in flight executes next, reads the item where its kind of reader may, and finds no key."""
    flight = run.first.flight
    if run.used == 0 or flight.active == 0 or flight.present == 1:
        return False
    low = flight.start
    high = flight.start + flight.tokens
    if terms.assumed.reader == "any":
        low = flight.lowest
    if terms.assumed.reader == "true":
        low = flight.true_start
        high = flight.true_start + flight.tokens
    return run.life.start < high and run.life.end > low
