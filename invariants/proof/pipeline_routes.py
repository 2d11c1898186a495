"""Moves of the rare routes, for bounded checking: resets of both caches, failed KV loads, the turns of a session.

Belongs here: `ROUTE_MOVES`, and which of them a search takes. As in `pipeline`, the life's own rules are those of
`routes` and `relation`; what the executable model keeps beside (who waits, which outputs vanish) is in the `Run`.
"""

from outlives.model import lifetime
from outlives.model.contract import Refusal

from . import relation, routes
from .life import Assumed, Terms
from .pipeline import DISPATCH, FLOOR, HELD, NONE_LIVE, PAUSED, PLACE, RUNS, Next, Run, Slot, admission, land, lived
from .relation import Phase

__all__ = ["MOST_PROMPT", "ROUTE_MOVES", "risky_routes"]

MOST_PROMPT = 4
"""Prompt tokens that a later turn brings at most."""


def _reset(terms: Terms, run: Run) -> Next:
    if terms.assumed.isolate == 0:
        return Refusal("discards-outputs-by-count")  # which the relation does not describe
    after = lived(run, routes.reset(terms, run.life))
    if isinstance(after, Refusal):
        return after
    if after.life.counters.stale > 0:
        return after._replace(drop=1)
    return after


def _reset_encoder_cache(terms: Terms, run: Run) -> Next:
    if run.life.booked == 0:
        return Refusal("cache-empty")
    return lived(run, routes.reset_encoder_cache(terms, run.life))


def _failing(terms: Terms, run: Run, valid: int) -> Next:  # noqa: ARG001
    flight = run.first.flight
    if run.used < 1 or flight.live == 0 or run.first.loaded == 0:
        return Refusal("nothing-was-loaded")
    if valid < 0 or valid >= flight.start:
        return Refusal("nothing-was-loaded")
    return run


def _land_all_accepted(terms: Terms, run: Run) -> Next:
    return land(terms, run, run.first.flight.drafts)


def _fail(terms: Terms, run: Run, valid: int) -> Next:
    decoding = run.decoding
    failed = lived(run, routes.fail_kv(terms, run.life, run.tokens, valid))
    if isinstance(failed, Refusal):
        return failed
    failed = failed._replace(tokens=0, drafts=0, planned=0)
    if terms.assumed.settle_kv == 0:
        return failed._replace(decoding=decoding)
    if failed.life.counters.stale > 0:
        failed = failed._replace(drop=1)
    return failed


def _over_if_settled(terms: Terms, run: Run) -> Next:
    if terms.assumed.settle_kv == 1:
        after: Next = NONE_LIVE.apply(terms, run)
        return after
    return run


def recomputes(slot: Slot, counters: lifetime.Counters) -> bool:
    """The step in flight computes tokens anew that had been confirmed: its request has no output now."""
    return slot.flight.live == 1 and slot.flight.start < lifetime.confirmed(counters)


def _end_turn(terms: Terms, run: Run) -> Next:
    """The client ends the turn, right after an output."""
    counters = run.life.counters
    if counters.known <= run.known or lifetime.confirmed(counters) != counters.known - run.life.base:
        return Refusal("no-output-now")
    if recomputes(run.first, counters) or recomputes(run.second, counters) or recomputes(run.third, counters):
        return Refusal("no-output-now")
    ended = lived(run, routes.end_turn(terms, run.life, 0))
    if isinstance(ended, Refusal):
        return ended
    ended = ended._replace(between=PAUSED)
    if terms.assumed.settle_turn == 1:
        ended = ended._replace(drop=0)
        if ended.life.counters.stale > 0:
            ended = ended._replace(drop=1)
    return ended


def _free_at_turn_end(terms: Terms, run: Run) -> Next:
    return lived(run, relation.free_at_turn_end(terms, run.life))


def _more_prompt(terms: Terms, run: Run, more: int) -> Next:
    if run.between != PAUSED or more > MOST_PROMPT:
        return Refusal("not-paused")
    continued = lived(run, routes.more_prompt(terms, run.life, more, 0))
    if isinstance(continued, Refusal):
        return continued
    return continued._replace(between=HELD, known=continued.life.counters.known)


def _hold_on(terms: Terms, run: Run) -> Next:
    if run.between != HELD:
        return Refusal("not-waiting")
    if terms.assumed.isolate == 1 and run.drop == 0 and run.life.counters.stale > 0:
        return Refusal("stale-output-in-flight")
    held = routes.hold_on(terms, run.life)
    if isinstance(held, Refusal):
        return held
    return admission(run, held)


ROUTE_MOVES: dict[str, tuple[str, tuple[Phase, ...]]] = {
    "reset": ("reset-prefix-cache", (RUNS, Phase(_reset), NONE_LIVE)),
    "reset-encoder": ("reset-encoder-cache", (Phase(_reset_encoder_cache),)),
    "kv-failure": (
        "kv-load-failure",
        (
            RUNS,
            Phase(_failing, ("number",)),
            Phase(_land_all_accepted),
            Phase(_fail, ("number",)),
            Phase(_over_if_settled),
            FLOOR,
        ),
    ),
    "turn-end": ("sessions", (RUNS, Phase(_end_turn), Phase(_free_at_turn_end), NONE_LIVE)),
    "more-prompt": ("sessions", (Phase(_more_prompt, ("number",)),)),
    "go-on": ("sessions", (PLACE, Phase(_hold_on), FLOOR, *DISPATCH)),
}
"""Name -> route, phases. `number`: the valid positions of a failed load, the prompt tokens of a later turn."""


def risky_routes(assumed: Assumed) -> frozenset[str]:
    """The open routes that do not do what the theorem needs of them: a run to a miss may lead along them."""
    risky = set()
    if assumed.settle_kv == 0:
        risky.add("kv-load-failure")
    if assumed.settle_turn == 0:
        risky.add("sessions")
    if assumed.encoder_reset == 1:
        risky.add("reset-encoder-cache")
    return frozenset(risky - assumed.closed)
