"""The arithmetic of a cache entry's life: the counters of one request, and the conditions that free an entry.

Theory of operation
-------------------
A scheduler counts a token as computed when it is dispatched. So five numbers move, per request:

    computed      positions counted as computed, dispatched and speculative ones included   (num_computed_tokens)
    placeholders  output positions promised by dispatched steps, not confirmed yet          (num_output_placeholders)
    in_flight     tokens dispatched whose output has not been processed                     (num_in_flight_tokens)
    stale         the share of in_flight dispatched before the last preemption              (num_stale_output_tokens)
    known         known tokens: the prompt and the outputs delivered so far                 (num_tokens)

    confirmed = computed - placeholders: the position that no rejection can take back.

A dispatch of n tokens with d drafts advances computed and in_flight by n; where it reaches the end of what is known
it will sample, and promises base + d outputs. Processing that output with a of the d drafts accepted takes the
r = d - a rejected ones back from computed and placeholders, then delivers base + a tokens, which the placeholders
give up. Between the two, the guard decides which entries are freed.

Rules of this file
------------------
1. Every function is plain Python over integers, and the only place where its arithmetic is written. The abstract
   scheduler calls it with ints; the proof calls the same function with solver integers. Therefore flags are 0 or 1
   and tested with `== 1`; choices come in as arguments; decisions are `if` statements; nothing here uses range,
   indexing, hashing, isinstance or truth values of numbers.
2. A guard's result is only ever tested for truth.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple, get_args

from .errors import Contradiction, UnknownName

__all__ = [
    "GUARDS",
    "WEAKEST",
    "Counters",
    "Guard",
    "Site",
    "admit",
    "advance",
    "carried_drafts",
    "confirmed",
    "continue_turn",
    "deliver",
    "end_turn",
    "fail_kv",
    "guard_named",
    "preempt",
    "promise",
    "reader_start",
    "receive",
    "reset",
    "roll_back",
    "trim",
    "wanted",
]


class Counters(NamedTuple):
    """The counters of one request, in tokens; the head of this file says what each one means."""

    computed: int
    placeholders: int
    in_flight: int
    stale: int
    known: int


def confirmed(c: Counters) -> int:
    """The position that no rejection can take back, in tokens."""
    return c.computed - c.placeholders


def wanted(c: Counters, drafts: int) -> int:
    """How many tokens a running request asks for: all that is known and promised, and its drafts."""
    return c.known + drafts + c.placeholders - c.computed


def carried_drafts(c: Counters, count: int) -> int:
    """How many of `count` tokens, about to be dispatched, lie past what is known and promised: the drafts."""
    beyond = c.computed + count - c.known - c.placeholders
    if beyond > 0:
        return beyond
    return 0


def admit(c: Counters, kept: int) -> Counters:
    """A waiting request is admitted with `kept` positions of its prefix in the KV cache.

    A session that goes on holds its blocks: it is admitted with what it has computed, and no prefix is looked up.
    """
    if c.computed > 0:
        return c
    return c._replace(computed=kept)


def advance(c: Counters, count: int) -> Counters:
    """`count` tokens are dispatched: from now on they count as computed."""
    return c._replace(computed=c.computed + count, in_flight=c.in_flight + count)


def promise(c: Counters, drafts: int, base: int, asynchronous: int) -> tuple[Counters, int, int]:
    """After `advance`: whether the step samples (0 or 1), and how many outputs it promises.

    It samples when computed has reached the end of what is known and promised. `base` is the number of tokens sampled
    beside the drafts: 1, or 0 for diffusion models. Without asynchronous scheduling nothing is promised.
    """
    if c.computed >= c.known + c.placeholders:
        if asynchronous == 1:
            return c._replace(placeholders=c.placeholders + base + drafts), 1, base + drafts
        return c, 1, 0
    return c, 0, 0


def receive(c: Counters, count: int, isolate: int) -> tuple[Counters, int]:
    """The output of a step of `count` tokens arrives; tells whether it is stale (0 or 1).

    `isolate` is 1 from 0.27.0 on: what was in flight at a preemption is remembered as stale (#48245).
    """
    if isolate == 1:
        if c.stale > 0:
            return c._replace(in_flight=c.in_flight - count, stale=c.stale - count), 1
        return c._replace(in_flight=c.in_flight - count), 0
    return c._replace(in_flight=c.in_flight - count), 0


def roll_back(c: Counters, rejected: int, stale: int) -> Counters:
    """`rejected` drafts of an arrived output were wrong: they are taken back, unless the output is stale.

    Each counter is left alone where it is not positive, which does not stop it from passing below zero.
    """
    if stale == 1:
        return c
    computed = c.computed
    placeholders = c.placeholders
    if computed > 0:
        computed = computed - rejected
    if placeholders > 0:
        placeholders = placeholders - rejected
    return c._replace(computed=computed, placeholders=placeholders)


def deliver(c: Counters, tokens: int, stale: int, dropped: int, asynchronous: int) -> Counters:
    """`tokens` of an arrived output join the known ones and, unless stale, their placeholders are given up.

    A stale output is delivered all the same, except in drop mode (`dropped`), where it vanishes.
    """
    if stale == 1:
        if dropped == 1:
            return c
        return c._replace(known=c.known + tokens)
    if asynchronous == 1:
        return c._replace(known=c.known + tokens, placeholders=c.placeholders - tokens)
    return c._replace(known=c.known + tokens)


def preempt(c: Counters, isolate: int) -> Counters:
    """The request loses its KV blocks and starts again from 0.

    With `isolate` (0.27.0 on, #48245) everything in flight becomes stale and the placeholders go; before, they stay
    and are drained by the outputs still to come.
    """
    if isolate == 1:
        return c._replace(computed=0, placeholders=0, stale=c.in_flight)
    return c._replace(computed=0)


def reset(c: Counters, isolate: int) -> Counters:
    """A prefix-cache reset preempts the request, whose placeholders go in every release that has it (from 0.12.0)."""
    if isolate == 1:
        return c._replace(computed=0, placeholders=0, stale=c.in_flight)
    return c._replace(computed=0, placeholders=0)


def fail_kv(c: Counters, valid: int, settle: int) -> Counters:
    """KV blocks that were to be loaded are invalid: computed falls to the `valid` positions before the first of them.

    That is all that a release does. With `settle` (repaired) what is in flight, which was computed on invalid blocks,
    is stale, and its placeholders go.
    """
    computed = c.computed
    if valid < computed:
        computed = valid
    if settle == 1:
        return c._replace(computed=computed, placeholders=0, stale=c.in_flight)
    return c._replace(computed=computed)


def trim(c: Counters, cut: int, stale: int, both: int, asynchronous: int) -> Counters:
    """The last `cut` delivered tokens lie past a stop and are cut off. They are taken back from computed as well
    (`both`, from 0.33.0); before, they stay promised, and without asynchronous scheduling they stay computed."""
    if stale == 1:
        return c._replace(known=c.known - cut)
    if both == 1:
        return c._replace(known=c.known - cut, computed=c.computed - cut)
    if asynchronous == 1:
        return c._replace(known=c.known - cut, placeholders=c.placeholders + cut)
    return c._replace(known=c.known - cut)


def end_turn(c: Counters, settle: int) -> Counters:
    """A turn of a resumable session ends. With `settle` (0.31.0 on, #52765) computed falls back to confirmed, the
    placeholders go, and what is in flight is stale; before, computed stays ahead of the truth."""
    if settle == 1:
        return c._replace(computed=c.computed - c.placeholders, placeholders=0, stale=c.in_flight)
    return c


def continue_turn(c: Counters, more: int, keep: int, last: int) -> Counters:
    """The session goes on with `more` prompt tokens, after the outputs that are kept: all but the `last` (`keep`, from
    0.33.0, where it is one), or those that count as computed."""
    if keep == 1:
        return c._replace(known=c.known - last + more)
    if c.computed < c.known:
        return c._replace(known=c.computed + more)
    return c._replace(known=c.known + more)


def reader_start(start: int, rejected: int) -> int:
    """Where a step truly starts: the scheduler's start less the drafts rejected in earlier steps of the same
    admission that were in flight when it was dispatched."""
    return start - rejected


# --- guards: may the request's reference to an item that ends at `end` be dropped? ------------------------------


def optimistic(c: Counters, end: int, look_ahead: int) -> bool:  # noqa: ARG001 -- one signature for every guard
    """end <= computed (up to 0.23.0)."""
    return end <= c.computed


def confirmed_lookahead(c: Counters, end: int, look_ahead: int) -> bool:
    """end + look-ahead <= computed - placeholders (0.24.0 to 0.32.0, #45347 and #46315)."""
    return end + look_ahead <= c.computed - c.placeholders


def confirmed_guard(c: Counters, end: int, look_ahead: int) -> bool:  # noqa: ARG001
    """end <= computed - placeholders (0.33.0, and the condition of #45347)."""
    return end <= c.computed - c.placeholders


def true_window(c: Counters, end: int, look_ahead: int, drafts: int) -> bool:  # noqa: ARG001
    """end <= computed - the drafts of the live steps in flight: where the next step truly starts, at the lowest."""
    return end <= c.computed - drafts


def settled(c: Counters, end: int, look_ahead: int) -> bool:  # noqa: ARG001
    """end <= computed - max(placeholders, in flight) (0.33 uses the expression for input data, #57368)."""
    if c.in_flight > c.placeholders:
        return end <= c.computed - c.in_flight
    return end <= c.computed - c.placeholders


def retain(c: Counters, end: int, look_ahead: int) -> bool:  # noqa: ARG001
    """Never while the request runs (a rejected proposal, #39544): safe and wasteful, the baseline of cost."""
    return False


Site = Literal["after-advance", "before-advance", "at-output", "after-delivery"]
"""When the guard is asked: right after dispatch with computed advanced or not yet, or when an output is processed,
after accept and reject, before the accepted tokens are delivered (as released) or after."""


SITES: tuple[Site, ...] = get_args(Site)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """A free condition together with the place from which it is asked."""

    name: str
    condition: Callable[..., bool]
    """(counters, end, look-ahead) -> may the reference go?"""
    site: Site
    formula: str
    released_in: str
    source: str
    counts_drafts: int = 0
    """1: the condition has a fourth argument, the drafts of the request's live steps in flight. No release counts
    them; placeholders are these drafts and one more for each of those steps that samples."""

    def lets_go(self, c: Counters, end: int, look_ahead: int, drafts: int) -> bool:
        """The condition's answer; `drafts` are those of the live steps in flight, which most do not look at."""
        if self.counts_drafts == 1:
            return self.condition(c, end, look_ahead, drafts)
        return self.condition(c, end, look_ahead)

    def __post_init__(self) -> None:
        if self.site not in SITES:
            raise UnknownName("site of a guard", str(self.site), SITES)
        if not callable(self.condition):
            raise Contradiction(
                f"the condition of guard {self.name} is {type(self.condition).__name__}, not a function."
            )


GUARDS: Mapping[str, Guard] = MappingProxyType(
    {
        guard.name: guard
        for guard in (
            Guard(
                name="optimistic-after-advance",
                condition=optimistic,
                site="after-advance",
                formula="end <= computed",
                released_in="up to 0.19.1",
                source="the code before #38907",
            ),
            Guard(
                name="optimistic-before-advance",
                condition=optimistic,
                site="before-advance",
                formula="end <= computed",
                released_in="no release",
                source="a revision of #38907",
            ),
            Guard(
                name="optimistic-at-output",
                condition=optimistic,
                site="at-output",
                formula="end <= computed",
                released_in="0.20.0 to 0.23.0",
                source="#38907 as merged",
            ),
            Guard(
                name="confirmed-lookahead",
                condition=confirmed_lookahead,
                site="at-output",
                formula="end + look-ahead <= computed - placeholders",
                released_in="0.24.0 to 0.32.0",
                source="#45347 with #46315",
            ),
            Guard(
                name="confirmed",
                condition=confirmed_guard,
                site="at-output",
                formula="end <= computed - placeholders",
                released_in="0.33.0",
                source="#45347",
            ),
            Guard(
                name="settled",
                condition=settled,
                site="at-output",
                formula="end <= computed - max(placeholders, in flight)",
                released_in="no release (0.33 uses it for input data)",
                source="#57368",
            ),
            Guard(
                name="retain",
                condition=retain,
                site="at-output",
                formula="never",
                released_in="no release",
                source="#39544",
            ),
        )
    }
)
"""Every guard of the table, from the oldest to the most careful."""

WEAKEST: Mapping[str, Guard] = MappingProxyType(
    {
        guard.name: guard
        for guard in (
            Guard(
                name="confirmed-after-delivery",
                condition=confirmed_guard,
                site="after-delivery",
                formula="end <= computed - placeholders",
                released_in="no release",
                source="the weakest threshold for readers anywhere",
            ),
            Guard(
                name="true-window",
                condition=true_window,
                site="at-output",
                formula="end <= computed - live drafts",
                released_in="no release",
                source="the weakest known for readers at their true start",
                counts_drafts=1,
            ),
        )
    }
)
"""Two more, which nobody released: as weak as readers anywhere, and readers at their true start, allow."""


def guard_named(name: str) -> Guard:
    """The guard of that name; raises `UnknownName` with the known ones."""
    try:
        return GUARDS[name] if name in GUARDS else WEAKEST[name]
    except KeyError:
        raise UnknownName("guard", name, (*GUARDS, *WEAKEST)) from None
