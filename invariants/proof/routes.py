"""What the routes out of the ordinary do to a life: preemption, resets, failed KV loads, the turns of a session.

Belongs here: one function per route, as the transitions of `relation` use them. What a route must do for the theorem
to stand is a field of `Assumed`, so that it can be left out; the proof then fails where the route is taken. Rules as
in `relation`.
"""

from outlives.model import lifetime
from outlives.model.contract import Refusal

from .life import Life, Terms

__all__ = ["end_turn", "fail_kv", "hold_on", "more_prompt", "preempt", "reset", "reset_encoder_cache", "unpin"]

Outcome = Life | Refusal


def pin(terms: Terms, life: Life, route: str) -> Life:
    """What is referenced is pinned, where this route does so and leaves stale steps in flight behind."""
    if route in terms.assumed.pins:  # noqa: SIM102 -- each question is a decision of its own
        if life.counters.stale > 0:  # noqa: SIM102
            if life.referenced == 1:
                return life._replace(pinned=1)
    return life


def unpin(terms: Terms, life: Life) -> Life:
    """Nothing is pinned any more once no step in flight is stale."""
    if terms.assumed.pins and life.counters.stale == 0:
        return life._replace(pinned=0)
    return life


def preempt(terms: Terms, life: Life) -> Outcome:
    """The running request loses its blocks and its references; what is in flight still executes."""
    counters = terms.arithmetic.preempt(life.counters, terms.assumed.isolate)
    life = pin(terms, life._replace(counters=counters), "preempt")
    return _admission_over(life._replace(running=0, referenced=0, floor=0))


def reset(terms: Terms, life: Life) -> Outcome:
    """A prefix-cache reset preempts the running request. Its outputs in flight are to vanish."""
    counters = terms.arithmetic.reset(life.counters, terms.assumed.isolate)
    life = pin(terms, life._replace(counters=counters), "reset")
    return _admission_over(life._replace(running=0, referenced=0, floor=0))


def _admission_over(life: Life) -> Life:
    """Nothing in flight is live any more."""
    return life._replace(live_tokens=0, live_promises=0, live_drafts=0, flight=life.flight._replace(live=0))


def fail_kv(terms: Terms, life: Life, count: int, valid: int) -> Outcome:
    """KV blocks of the step that has just left the pipeline failed to load: its output is skipped.

    Computed falls to `valid`. As released that is all; what keeps the theorem is that promises and references go and
    that the steps in flight are no longer live (`settle_kv`).
    """
    if valid < 0 or valid > life.counters.known - life.base or valid > life.counters.computed:
        return Refusal("FACT: a prefix that was to be loaded never covers the last known token")
    counters, _ = terms.arithmetic.receive(life.counters, count, terms.assumed.isolate)
    life = life._replace(counters=terms.arithmetic.fail_kv(counters, valid, terms.assumed.settle_kv))
    life = life._replace(floor=lifetime.confirmed(life.counters))
    if terms.assumed.settle_kv == 1:
        return _admission_over(pin(terms, life, "kv-failure")._replace(referenced=0))
    return life


def end_turn(terms: Terms, life: Life, cut: int) -> Outcome:
    """A turn of a session ends; its last `cut` tokens lie past the stop. The request keeps its references and what it
    has computed, or waits where it was preempted and a stale output brought the end."""
    rules = terms.arithmetic
    stale = 1 - life.running
    least = life.prompt
    if terms.assumed.anywhere:
        least = 1  # nothing else is needed there, and not every release keeps a prompt
    if cut < 0 or life.counters.known - cut < least:
        return Refusal("FACT: what is cut off was delivered in this turn")
    if life.running == 1:  # noqa: SIM102 -- each question is a decision of its own
        if lifetime.confirmed(life.counters) < cut:
            return Refusal("FACT: what is cut off was delivered in this turn")
    counters = life.counters
    if cut > 0:
        counters = rules.trim(counters, cut, stale, terms.assumed.trim_computed, terms.assumed.asynchronous)
    life = life._replace(counters=rules.end_turn(counters, terms.assumed.settle_turn))
    life = _admission_over(pin(terms, life, "turn-end"))
    if life.running == 1:
        life = life._replace(floor=lifetime.confirmed(life.counters))
    return life


def more_prompt(terms: Terms, life: Life, more: int, born: int) -> Outcome:
    """The session's next turn begins, with `more` prompt tokens after the outputs that are kept. `born`: it brings the
    item."""
    if more < 1:
        return Refusal("nothing-to-add")
    if life.live_tokens > 0:
        return Refusal("FACT: nothing in flight is live between two turns")
    last = 1
    if terms.assumed.keep_all_of_diffusion == 1:
        last = life.base
    counters = terms.arithmetic.continue_turn(life.counters, more, terms.assumed.keep_outputs, last)
    life = life._replace(counters=counters)
    if born == 0:
        return life
    if life.there == 1:
        return Refusal("already-there")
    if not terms.assumed.anywhere and life.end > life.counters.known:
        return Refusal("past-the-prompt")
    return life._replace(there=1, prompt=life.counters.known)


def hold_on(terms: Terms, life: Life) -> Outcome:
    """A session that waits with what it has computed is admitted with just that: no prefix is looked up."""
    if life.running == 0 or life.counters.computed <= 0:
        return Refusal("holds-nothing")
    if life.live_tokens > 0:
        return Refusal("FACT: nothing in flight is live between two turns")
    if terms.assumed.early_resume == 0 and terms.assumed.isolate == 1 and life.counters.stale > 0:
        return Refusal("stale-output-in-flight")
    return life._replace(counters=terms.arithmetic.admit(life.counters, 0))


def reset_encoder_cache(terms: Terms, life: Life) -> Outcome:  # noqa: ARG001
    """The book is emptied, and the shelf after all steps dispatched so far."""
    return life._replace(booked=0, referenced=0, shelf_next=0)
