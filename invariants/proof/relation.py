"""The life of one cache entry as a transition relation: one request, one item, unbounded numbers.

Belongs here: the transitions between the states of `life`, what they assume of the environment, and nothing of any
solver. All of it is plain Python over integers: the proof and bounded checking run it on symbolic numbers, the tie on
the numbers of an executed run.

Theory of operation
-------------------
The counters move by the functions of `outlives.model.lifetime` and by nothing else; they come in as an `Arithmetic`,
so that a rule that a user replaces is the rule that is proved about. The pipeline is seen as sums: the tokens, the
promises and the drafts of the *live* steps in flight (dispatched since the last admission), kept as ghosts that the
scheduler does not have. Beside the sums stands one step in flight, chosen freely at its dispatch (`Flight`): what is
true of it is true of every step. The cache is seen as three flags of the one entry. Everything else, other requests
and other items included, is the environment: it takes entries into the book and evicts what this request does not
reference, whenever it likes.

What the environment may do is said by refusals. Those that are facts about a queue of steps are marked FACT: the sum
over a part of the steps in flight relates as each step does, outputs are processed in dispatch order. A step's own
side of each is a lemma about the tracked step, and the tie checks all of them on the model's real queue.

Rules as in `lifetime`: flags are 0 or 1 and tested with `== 1`, choices come in as arguments, ifs are statements.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from outlives.model import lifetime
from outlives.model.contract import Refusal

from .in_flight import take_live, take_stale
from .life import Assumed, Flight, Life, Terms
from .routes import end_turn, fail_kv, hold_on, more_prompt, preempt, reset, reset_encoder_cache, unpin

__all__ = ["FLAGS", "TRANSITIONS", "Outcome", "Phase", "Transition", "transitions"]
__all__ += ["admit", "advance", "evict", "gate", "only_running", "process", "raise_floor"]

Outcome = Life | Refusal


def raise_floor(terms: Terms, life: Life) -> Outcome:  # noqa: ARG001
    """The ghost of the highest confirmed position follows."""
    if life.running == 1:
        now = lifetime.confirmed(life.counters)
        if now > life.floor:
            return life._replace(floor=now)
    return life


def _ask_guard(terms: Terms, life: Life, site: str) -> Life:
    return _free_pass(terms, life) if terms.guard.site == site else life


def _free_pass(terms: Terms, life: Life) -> Life:
    if life.referenced == 1:  # noqa: SIM102 -- each question is a decision of its own
        if terms.guard.lets_go(life.counters, life.end, life.look_ahead, life.live_drafts):
            return life._replace(referenced=0)
    return life


def free_at_turn_end(terms: Terms, life: Life) -> Outcome:
    """After a turn the guard is asked once more, wherever it is asked otherwise."""
    if terms.assumed.settle_turn == 1 and terms.assumed.free_at_turn_end == 1:
        return _free_pass(terms, life)
    return life


def gate(terms: Terms, life: Life, count: int, encoded: int, ahead: int) -> Outcome:
    """The encoder gate over [computed, computed + count), where it lets the whole window pass.

    A planned encode is told with the step (`encoded`), save the one that A4 relaxed lets the environment leave out. An
    item that only the look-ahead reaches is looked at too, or cut off (`ahead` 0) where a drafter tolerates to miss it.
    """
    if count < 1:
        return Refusal("nothing-scheduled")
    if life.there == 0:
        return life
    if life.end <= life.counters.computed:
        return life
    if life.start >= life.counters.computed + count:
        if ahead == 0 and terms.assumed.tolerate == 1:
            return life
        if life.start >= life.counters.computed + count + life.look_ahead:
            return life
    if "A2" in terms.assumed.relaxed and life.seen == 1:
        return life
    if life.booked == 1:
        return life._replace(referenced=1, seen=1)
    if encoded == 1:
        return life._replace(referenced=1, seen=1, booked=1, shelf_next=1)
    if "A4" in terms.assumed.relaxed and life.omitted == 0:
        return life._replace(referenced=1, seen=1, booked=1, shelf_next=0, omitted=1)
    return Refusal("planned-is-encoded")


def only_running(terms: Terms, life: Life) -> Outcome:  # noqa: ARG001 -- one signature for every phase
    """What only a running request does."""
    if life.running == 0:
        return Refusal("not-running")
    return life


def advance(terms: Terms, life: Life, count: int, track: int) -> Outcome:
    """`count` tokens leave with the step that the gate has just let pass. `track`: follow this step."""
    before = life.counters
    if terms.assumed.asynchronous == 0:
        if before.computed > before.known - life.base:
            return Refusal("FACT: without promises a request waits for its output")
        if life.live_drafts > 0 or (life.flight.live == 1 and life.flight.sampled != 0):
            return Refusal("FACT: without promises a request waits for the output of a step that samples")
    drafts = lifetime.carried_drafts(before, count)
    shelved = life.shelf_next
    life = _ask_guard(terms, life, "before-advance")
    life = _ask_guard(terms, life._replace(counters=terms.arithmetic.advance(before, count)), "after-advance")
    counters, sampled, share = terms.arithmetic.promise(life.counters, drafts, life.base, terms.assumed.asynchronous)
    if sampled == 0:
        drafts = 0
    flight = life.flight
    if track == 1:
        if flight.active == 1:
            return Refusal("already-tracking")
        if life.there == 0:
            return Refusal("not-a-reader-of-it")
        flight = Flight(
            active=1,
            live=1,
            start=before.computed,
            tokens=count,
            drafts=drafts,
            sampled=sampled,
            share=share,
            lowest=before.computed - life.live_promises,
            true_start=terms.arithmetic.reader_start(before.computed, 0),
            margin=life.live_promises,
            draft_margin=life.live_drafts,
            rest=count,
            present=shelved,
        )
    elif flight.live == 1:
        flight = flight._replace(rest=flight.rest + count)
    return life._replace(
        counters=counters,
        live_tokens=life.live_tokens + count,
        live_promises=life.live_promises + share,
        live_drafts=life.live_drafts + drafts,
        flight=flight,
    )


def process(
    terms: Terms, life: Life, count: int, drafts: int, accepted: int, sampled: int, dropped: int = 0
) -> Outcome:
    """The order of the protocol: receive, roll back, the free pass, deliver (or the free pass last: no release)."""
    rules = terms.arithmetic
    counters, stale = rules.receive(life.counters, count, terms.assumed.isolate)
    life = unpin(terms, life._replace(counters=counters))
    if stale == 1 and dropped == 1:
        return life
    if stale == 1 and life.running == 1 and terms.assumed.asynchronous == 0:
        return Refusal("FACT: a request resumes beside its stale outputs only where they are to vanish")
    counters = rules.roll_back(counters, drafts - accepted, stale)
    life = _ask_guard(terms, life._replace(counters=counters), "at-output")
    if sampled == 1:
        tokens = life.base + accepted
        counters = rules.deliver(life.counters, tokens, stale, dropped, terms.assumed.asynchronous)
        life = life._replace(counters=counters)
    return _ask_guard(terms, life, "after-delivery")


def admit(terms: Terms, life: Life, hit: int) -> Outcome:
    """A waiting request is admitted with `hit` positions of its prefix in the KV cache."""
    if life.running == 1:
        return Refusal("not-waiting")
    if hit < 0 or hit > life.counters.known - life.base:
        return Refusal("a hit never covers the last known token")
    if terms.assumed.early_resume == 0 and terms.assumed.isolate == 1 and life.counters.stale > 0:
        return Refusal("stale-output-in-flight")
    return life._replace(counters=terms.arithmetic.admit(life.counters, hit), running=1)


def touch(terms: Terms, life: Life) -> Outcome:  # noqa: ARG001
    """The gate takes a reference to an entry that is there, and then nothing is dispatched; the request may wait."""
    if life.booked == 0 or life.there == 0:
        return Refusal("not-there")
    return life._replace(referenced=1, seen=1)


def let_go(terms: Terms, life: Life) -> Outcome:
    """A request that waits (a failed admission, an abort) drops what its gate had taken: nothing of it is promised."""
    if life.running == 1:
        if life.counters.placeholders > 0 or life.live_tokens > 0:
            return Refusal("not-waiting")  # but a session between two turns, which holds what it has computed
        if terms.assumed.leaves == 0:
            return Refusal("not-waiting")
    return life._replace(referenced=0)


def evict(terms: Terms, life: Life, spared: int) -> Outcome:
    """The entry goes, which this request does not reference. In order, the notice reaches no step in flight; where A1
    is relaxed it reaches those that have not executed, save what they encode themselves (`spared`)."""
    if life.booked == 0 or life.referenced == 1 or life.pinned == 1:
        return Refusal("nothing-idle")
    life = life._replace(booked=0, shelf_next=0)
    if "A1" in terms.assumed.relaxed and spared == 0:
        return life._replace(flight=life.flight._replace(present=0))
    return life


def stranger(terms: Terms, life: Life, encoded: int) -> Outcome:
    """Another request has the same key encoded. References of strangers only keep an entry from being evicted."""
    if life.booked == 1:
        return Refusal("already-there")
    if encoded == 1:
        return life._replace(booked=1, shelf_next=1)
    if "A4" in terms.assumed.relaxed and life.omitted == 0:
        return life._replace(booked=1, shelf_next=0, omitted=1)
    return Refusal("planned-is-encoded")


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a transition, and the choices that it reads. Phases are extracted one by one and composed, so that the
    paths through a transition add up instead of multiplying."""

    apply: Callable[..., Any]
    """(terms, state, choices ...) -> the state after it, or a refusal."""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Transition:
    """A named transition: its phases, in order."""

    name: str
    phases: tuple[Phase, ...]
    phrase: str

    @property
    def choices(self) -> tuple[str, ...]:
        """The names of its choices, in order of their first use."""
        return tuple(dict.fromkeys(name for phase in self.phases for name in phase.choices))

    def apply(self, terms: Terms, life: Life, **choices: int) -> Outcome:
        """The state after it, or the refusal of the first phase that refuses."""
        for phase in self.phases:
            after = phase.apply(terms, life, *(choices[name] for name in phase.choices))
            if isinstance(after, Refusal):
                return after
            life = after
        return life


FLAGS = frozenset({"encoded", "ahead", "track", "sampled", "own", "same", "dropped", "spared", "born"})
"""Choices that are 0 or 1; the others are any number."""

_RUNNING = Phase(only_running)
_FLOOR = Phase(raise_floor)
_DISPATCH = (Phase(gate, ("count", "encoded", "ahead")), Phase(advance, ("count", "track")), _FLOOR)
_STEP = ("count", "drafts", "accepted", "sampled")

TRANSITIONS: tuple[Transition, ...] = (
    Transition("dispatch", (_RUNNING, *_DISPATCH), "a step of the running request is dispatched"),
    Transition(
        "live-output",
        (Phase(take_live, (*_STEP, "own")), Phase(process, _STEP), _FLOOR),
        "the output of a live step is processed",
    ),
    Transition(
        "stale-output",
        (Phase(take_stale, (*_STEP, "own", "same")), Phase(process, (*_STEP, "dropped")), _FLOOR),
        "the output of a step from before the last preemption is processed",
    ),
    Transition("preempt", (_RUNNING, Phase(preempt)), "the request is preempted; finished or aborted: and stays away"),
    Transition("resume", (Phase(admit, ("hit",)), _FLOOR, *_DISPATCH), "the request is admitted and dispatched"),
    Transition("reset", (_RUNNING, Phase(reset)), "a prefix-cache reset preempts the request"),
    Transition(
        "kv-failure",
        (Phase(take_live, (*_STEP, "own")), Phase(fail_kv, ("count", "valid"))),
        "KV blocks of a live step failed to load; its output is skipped",
    ),
    Transition("turn-end", (Phase(end_turn, ("cut",)), Phase(free_at_turn_end)), "a turn of a session ends"),
    Transition("more-prompt", (Phase(more_prompt, ("more", "born")),), "a session's next turn begins"),
    Transition("go-on", (Phase(hold_on), *_DISPATCH), "a session is admitted with what it holds, and dispatched"),
    Transition("reset-encoder-cache", (Phase(reset_encoder_cache),), "the encoder cache is reset"),
    Transition("touch", (Phase(touch),), "the gate takes a reference and dispatches nothing"),
    Transition("let-go", (Phase(let_go),), "a waiting request drops its reference"),
    Transition("evict", (Phase(evict, ("spared",)),), "the entry is evicted"),
    Transition("stranger", (Phase(stranger, ("encoded",)),), "another request has the key encoded"),
)
"""Every transition. A new one is a line here; the proof, bounded checking and the tie take it from this table."""


_OF_ROUTES = {
    "reset-prefix-cache": {"reset"},
    "kv-load-failure": {"kv-failure"},
    "sessions": {"turn-end", "more-prompt", "go-on"},
}
"""Route -> the transitions that there are only where it is open. (A request can always finish, which is a preemption
without a resume.)"""


def transitions(assumed: Assumed) -> tuple[Transition, ...]:
    """The transitions that there are under these assumptions."""
    without = set() if assumed.encoder_reset == 1 else {"reset-encoder-cache"}
    for route, names in _OF_ROUTES.items():
        if route in assumed.closed:
            without |= names
    if assumed.leaves == 0:
        without |= {"preempt", "stale-output", "reset", "kv-failure", "turn-end", "more-prompt", "go-on"}
    return tuple(each for each in TRANSITIONS if each.name not in without)
