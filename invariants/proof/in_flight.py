"""Steps leaving the pipeline, seen through sums: what outputs look like, and the facts about a queue of steps.

Belongs here: `take_live` and `take_stale`, which take the oldest step in flight out of the sums of a life and out of
its tracked step, and nothing that the scheduler does then. Rules as in `relation`, which says what a FACT is.
"""

from outlives.model.contract import Refusal

from .life import Flight, Life, Terms, landed

__all__ = ["share_of", "shift", "take_live", "take_stale"]

Outcome = Life | Refusal


def shift(terms: Terms, flight: Flight, rejected: int, share: int, drafts: int) -> Flight:
    """An earlier step of the same admission was processed: `rejected` of its drafts move the true start down."""
    return flight._replace(
        true_start=terms.arithmetic.reader_start(flight.true_start, rejected),
        margin=flight.margin - share,
        draft_margin=flight.draft_margin - drafts,
    )


def share_of(terms: Terms, life: Life, drafts: int, sampled: int) -> int:
    """What a step promised: 0 where it does not sample, else base + drafts."""
    if sampled == 1 and terms.assumed.asynchronous == 1:
        return life.base + drafts
    return 0


def _wrong_output(terms: Terms, life: Life, count: int, drafts: int, accepted: int, sampled: int) -> Refusal | None:
    """What no output looks like."""
    if count < 1 or accepted < 0 or accepted > drafts:
        return Refusal("no-such-output")
    if sampled == 0 and drafts > 0:
        return Refusal("only-sampling-steps-carry-drafts")
    if share_of(terms, life, drafts, sampled) > count:
        return Refusal("FACT: a step promises at most its tokens")  # proved of the tracked step: lemma STEP
    return None


def take_live(terms: Terms, life: Life, count: int, drafts: int, accepted: int, sampled: int, own: int) -> Outcome:
    """The oldest step in flight is live, and leaves the pipeline. `own`: it is the tracked one."""
    wrong = _wrong_output(terms, life, count, drafts, accepted, sampled)
    if wrong is not None:
        return wrong
    if life.running == 0 or life.counters.in_flight > life.live_tokens:
        return Refusal("FACT: stale steps are older than live ones")
    share = share_of(terms, life, drafts, sampled)
    if count > life.live_tokens or share > life.live_promises or drafts > life.live_drafts:
        return Refusal("FACT: the sum is at least each of its parts")
    left = life.live_promises - share
    if left > life.live_tokens - count or life.live_drafts - drafts > _drafted(terms, left, life.live_tokens - count):
        return Refusal("FACT: what is left promises at most its tokens, and drafts at most its promises")
    if terms.assumed.asynchronous == 0 and sampled == 1 and count < life.live_tokens:
        return Refusal("FACT: without promises nothing leaves behind a step that samples")  # lemma LAST
    flight = life.flight
    if own == 1:
        wrong = _not_the_tracked(flight, 1, count, drafts, sampled, share)
        if wrong is not None:
            return wrong
        flight = landed()
    elif flight.active == 1:
        if flight.live == 0:
            return Refusal("FACT: stale steps are older than live ones")
        if count > life.live_tokens - flight.rest or share > flight.margin or drafts > flight.draft_margin:
            return Refusal("FACT: the sum is at least each of its parts")
        if flight.draft_margin - drafts > life.live_tokens - flight.rest - count:
            return Refusal("FACT: what is left promises at most its tokens, and drafts at most its promises")
        wrong = _wrong_margin(terms, flight, drafts, share)
        if wrong is not None:
            return wrong
        flight = shift(terms, flight, drafts - accepted, share, drafts)
    return life._replace(
        live_tokens=life.live_tokens - count, live_promises=left, live_drafts=life.live_drafts - drafts, flight=flight
    )


def _drafted(terms: Terms, promised: int, tokens: int) -> int:
    """How many drafts there can be at most among so many promises; where nothing is promised, among so many tokens."""
    if terms.assumed.asynchronous == 1:
        return promised
    return tokens


def _wrong_margin(terms: Terms, flight: Flight, drafts: int, share: int) -> Refusal | None:
    if terms.assumed.asynchronous == 1 and flight.draft_margin - drafts > flight.margin - share:
        return Refusal("FACT: what is left promises at most its tokens, and drafts at most its promises")
    return None


def _not_the_tracked(flight: Flight, live: int, count: int, drafts: int, sampled: int, share: int) -> Refusal | None:
    if flight.active == 0 or flight.live != live:
        return Refusal("not-the-tracked-step")
    if flight.tokens != count or flight.drafts != drafts or flight.share != share or flight.sampled != sampled:
        return Refusal("not-the-tracked-step")
    if flight.margin != 0 or flight.draft_margin != 0:
        return Refusal("FACT: outputs are processed in dispatch order")
    return None


def take_stale(
    terms: Terms, life: Life, count: int, drafts: int, accepted: int, sampled: int, own: int, same: int
) -> Outcome:
    """The oldest step in flight was dispatched before the last preemption, and leaves the pipeline. `own`: it is the
    tracked one; `same`: the tracked one is of its admission, and is shifted."""
    wrong = _wrong_output(terms, life, count, drafts, accepted, sampled)
    if wrong is not None:
        return wrong
    if count > life.counters.in_flight - life.live_tokens:
        return Refusal("FACT: the sum is at least each of its parts")
    share = share_of(terms, life, drafts, sampled)
    flight = life.flight
    if own == 1:
        wrong = _not_the_tracked(flight, 0, count, drafts, sampled, share)
        if wrong is not None:
            return wrong
        return life._replace(flight=landed())
    if flight.active == 1 and flight.live == 0:  # noqa: SIM102 -- each question is a decision of its own
        if count > life.counters.in_flight - life.live_tokens - flight.tokens:
            return Refusal("FACT: the sum is at least each of its parts")
    if same == 1:
        if flight.active == 0 or flight.live == 1:
            return Refusal("not-of-one-admission")
        if share > flight.margin or drafts > flight.draft_margin:
            return Refusal("FACT: the sum is at least each of its parts")
        wrong = _wrong_margin(terms, flight, drafts, share)
        if wrong is not None:
            return wrong
        flight = shift(terms, flight, drafts - accepted, share, drafts)
    return life._replace(flight=flight)
