"""What is true of every reachable abstract state: the lemmas, which together say that the reader finds its key.

Belongs here: the lemmas of the theorem as named values, the goal, and where lives begin. Which lemmas carry the proof
under other assumptions is in `lemma_sets`. A lemma is a plain predicate over `Life`: the proof runs it on symbolic
numbers, the tie on those of an executed run.

Theory of operation (readers may begin anywhere in [computed - live promises, computed])
-----------------------------------------------------------------------------------------
A step reads the item if its window overlaps it. Either the item ends after the scheduler's start: then the gate has
looked at it in the very pass that dispatched the step (REFERENCED-BOOKED, BOOKED-SHELVED). Or it ends between the
lowest position a reader may take and the start: then the request still references it (COVERAGE), because the guard
let it go only below confirmed, confirmed never falls (CONFIRMED-MONOTONE), and nothing is promised that the
placeholders do not count (UPKEEP). So the key is on the shelf when the next step reads; and an eviction decided later
reaches the worker with a later step (assumption A1), so it is there when this step reads (READER).
"""

from collections.abc import Callable
from dataclasses import dataclass

from outlives.model.lifetime import confirmed

from .life import Life, Terms

__all__ = ["GOAL", "LEMMAS", "Lemma", "finds", "initial", "reach", "reads_checked", "reads_true_or_lower", "safe"]


@dataclass(frozen=True, slots=True)
class Lemma:
    """A named predicate over abstract states. Only the truth of what `holds` returns is asked."""

    name: str
    phrase: str
    holds: Callable[[Terms, Life], bool]
    premise: Callable[[Terms, Life], bool] | None = None
    """Where it says something at all; None: everywhere."""


def _flag(value: int) -> bool:
    return value >= 0 and value <= 1


def _flags(terms: Terms, life: Life) -> bool:  # noqa: ARG001
    flight = life.flight
    return (
        _flag(life.base)
        and _flag(life.there)
        and _flag(life.running)
        and _flag(life.referenced)
        and _flag(life.booked)
        and _flag(life.shelf_next)
        and _flag(flight.active)
        and _flag(flight.live)
        and _flag(flight.present)
        and flight.live <= flight.active
        and flight.active <= life.there
        and life.referenced <= life.there
    )


def _numbers(terms: Terms, life: Life) -> bool:
    if life.start < 0 or life.start >= life.end or life.look_ahead < 0 or life.prompt < 1:
        return False
    if terms.assumed.anywhere:
        return life.counters.known >= 1
    return life.counters.known >= life.prompt


def _queue(terms: Terms, life: Life) -> bool:
    if terms.assumed.asynchronous == 0:
        drafted = life.live_drafts >= 0 and life.live_drafts <= life.live_tokens
        return drafted and life.live_tokens <= life.counters.in_flight
    return (
        life.live_drafts >= 0
        and life.live_drafts <= life.live_promises
        and life.live_promises <= life.live_tokens
        and life.live_tokens <= life.counters.in_flight
    )


def _stale_share(terms: Terms, life: Life) -> bool:
    if terms.assumed.isolate == 0:
        return life.counters.stale == 0
    return life.counters.stale == life.counters.in_flight - life.live_tokens


def _counters(terms: Terms, life: Life) -> bool:  # noqa: ARG001
    return life.counters.placeholders >= 0 and life.counters.placeholders <= life.counters.computed


def _waiting(terms: Terms, life: Life) -> bool:  # noqa: ARG001
    if life.running == 1:
        return True
    counters = life.counters
    if counters.computed != 0 or counters.placeholders != 0 or life.floor != 0:
        return False
    return life.live_tokens == 0 and life.flight.live == 0


def _referenced_booked(terms: Terms, life: Life) -> bool:  # noqa: ARG001
    return life.referenced == 0 or life.booked == 1


def _booked_shelved(terms: Terms, life: Life) -> bool:  # noqa: ARG001
    return life.booked == 0 or life.shelf_next == 1


def _upkeep(terms: Terms, life: Life) -> bool:  # noqa: ARG001
    return life.counters.placeholders == life.live_promises


def _known_ahead(terms: Terms, life: Life) -> bool:  # noqa: ARG001
    return life.running == 0 or confirmed(life.counters) <= life.counters.known - life.base


def _monotone(terms: Terms, life: Life) -> bool:  # noqa: ARG001
    return life.floor >= 0 and (life.running == 0 or confirmed(life.counters) >= life.floor)


def _partly_computed(terms: Terms, life: Life) -> bool:  # noqa: ARG001
    begun = life.there == 1 and life.start < life.counters.computed
    return life.running == 1 and life.counters.placeholders > 0 and begun


def _coverage(terms: Terms, life: Life) -> bool:
    if _partly_computed(terms, life) and life.end > life.floor:
        return life.referenced == 1
    return True


def _step(terms: Terms, life: Life) -> bool:  # noqa: ARG001
    flight = life.flight
    if flight.active == 0:
        return True
    return (
        flight.tokens >= 1
        and flight.drafts >= 0
        and flight.drafts <= flight.share
        and flight.share <= flight.tokens
        and flight.draft_margin >= 0
        and flight.draft_margin <= flight.margin
    )


def _true_start(terms: Terms, life: Life) -> bool:  # noqa: ARG001
    flight = life.flight
    if flight.active == 0:
        return True
    return flight.true_start - flight.margin >= flight.lowest and flight.true_start <= flight.start


def _inside(terms: Terms, life: Life) -> bool:  # noqa: ARG001
    return life.there == 0 or life.end <= life.prompt


def reach(terms: Terms, life: Life) -> int:
    """How far past a window a read counts: a drafter that tolerates to miss what lies past it needs nothing there."""
    return 0 if terms.assumed.tolerate == 1 else life.look_ahead


def _reads(terms: Terms, life: Life, low: int, high: int) -> bool:
    """Whether a step that may begin from `low` on and ends at `high` at the latest reads the item."""
    return life.flight.active == 1 and life.start < high + reach(terms, life) and life.end > low


def _reads_any(terms: Terms, life: Life) -> bool:
    return _reads(terms, life, life.flight.lowest, life.flight.start + life.flight.tokens)


def reads_checked(terms: Terms, life: Life) -> bool:
    return _reads(terms, life, life.flight.start, life.flight.start + life.flight.tokens)


def _reads_true(terms: Terms, life: Life) -> bool:
    return _reads(terms, life, life.flight.true_start, life.flight.true_start + life.flight.tokens)


def finds(reads: Callable[[Terms, Life], bool]) -> Callable[[Terms, Life], bool]:
    def finds(terms: Terms, life: Life) -> bool:
        if reads(terms, life):
            return life.flight.present == 1
        return True

    return finds


def reads_true_or_lower(terms: Terms, life: Life) -> bool:
    """At its true start, wherever the rejections that are still to come may take it."""
    flight = life.flight
    return _reads(terms, life, flight.true_start - flight.draft_margin, flight.true_start + flight.tokens)


TYPES = Lemma(
    "TYPES", "flags are 0 or 1, only steps in flight are live, and nobody reads an item that is not there", _flags
)
NUMBERS = Lemma("NUMBERS", "the item is not empty, and the prompt is known", _numbers)
QUEUE = Lemma("QUEUE", "live drafts <= live promises <= live tokens <= tokens in flight", _queue)
STALE = Lemma("STALE-SHARE", "the stale share is what is in flight beside the live steps", _stale_share)
COUNTERS = Lemma("COUNTERS", "0 <= placeholders <= computed", _counters)
WAITING = Lemma("WAITING", "a waiting request has computed nothing and promised nothing", _waiting)
BOOKED = Lemma("REFERENCED-BOOKED", "a referenced entry is in the book", _referenced_booked)
SHELVED = Lemma("BOOKED-SHELVED", "an entry in the book is on the shelf when the next step reads", _booked_shelved)
UPKEEP = Lemma("UPKEEP", "placeholders are what the live steps in flight have promised", _upkeep)
KNOWN = Lemma("KNOWN-AHEAD", "the last known token is not computed for good: confirmed <= known - base", _known_ahead)
MONOTONE = Lemma("CONFIRMED-MONOTONE", "confirmed has never fallen in this admission", _monotone)
COVERAGE = Lemma(
    "COVERAGE", "while outputs are promised, a begun item that ends above confirmed is referenced", _coverage
)
STEP = Lemma("STEP", "a step promises at most its tokens, and carries at most as many drafts as it promises", _step)
TRUE_START = Lemma(
    "TRUE-START",
    "a step's true start is at or above confirmed at its dispatch, whatever is still rejected",
    _true_start,
)
READER = Lemma("READER", "a step finds the key wherever in its allowance it begins", finds(_reads_any), _reads_any)
INSIDE = Lemma("INSIDE", "the item lies inside the prompt", _inside)

LEMMAS: tuple[Lemma, ...] = (
    TYPES,
    NUMBERS,
    QUEUE,
    STALE,
    WAITING,
    BOOKED,
    SHELVED,
    UPKEEP,
    KNOWN,
    MONOTONE,
    COVERAGE,
    STEP,
    TRUE_START,
    READER,
)
"""The lemmas of the theorem: readers anywhere between confirmed and the scheduler's start."""


_READS = {"any": _reads_any, "checked": reads_checked, "true": _reads_true}


def safe(terms: Terms, life: Life) -> bool:
    """The goal: the tracked step finds the key wherever its kind of reader looks for it."""
    return finds(_READS[terms.assumed.reader])(terms, life)


GOAL = Lemma("OUTLIVES", "the entry outlives its last reader: whoever reads the item finds its key", safe)


def initial(terms: Terms, life: Life) -> bool:
    """Where lives begin: the request waits, nothing is in flight; a stranger may have had the key encoded already."""
    counters = life.counters
    if (
        not _flags(terms, life)
        or not _numbers(terms, life)
        or (not terms.assumed.anywhere and not _inside(terms, life))
    ):
        return False
    return (
        counters.computed == 0
        and counters.placeholders == 0
        and counters.in_flight == 0
        and counters.stale == 0
        and counters.known == life.prompt
        and life.running == 0
        and life.referenced == 0
        and life.pinned == 0
        and life.seen == 0
        and life.omitted == 0
        and life.shelf_next == life.booked
        and life.floor == 0
        and life.live_tokens == 0
        and life.live_promises == 0
        and life.live_drafts == 0
        and life.flight.active == 0
        and life.flight.live == 0
    )
