"""Which lemmas carry the proof under which assumptions, and those that the theorem itself does without.

Belongs here: the lemmas about readers at their true start, about synchronous scheduling and about notices that overtake
steps in flight, and `lemma_sets`. Rules as in `lemmas`.

With A1 relaxed a notice may reach a step that has not executed. Then whatever a live step in flight may still read must
be referenced (SETTLED-COVERAGE: it ends above computed less all that is in flight), and whatever a stale one may still
read must be pinned (STALE-PINNED), for as long as that step is in flight.
"""

from .lemmas import (
    BOOKED,
    COUNTERS,
    INSIDE,
    KNOWN,
    LEMMAS,
    NUMBERS,
    QUEUE,
    SHELVED,
    STALE,
    STEP,
    TYPES,
    UPKEEP,
    WAITING,
    Lemma,
    finds,
    reach,
    reads_checked,
    reads_true_or_lower,
)
from .life import Assumed, Life, Terms

__all__ = ["lemma_sets"]


def _past_prompt(terms: Terms, life: Life) -> bool:  # noqa: ARG001
    if life.live_drafts > 0:
        return life.counters.computed - life.live_drafts >= life.prompt
    return True


def _true_past_prompt(terms: Terms, life: Life) -> bool:  # noqa: ARG001
    flight = life.flight
    if flight.active == 0 or (flight.draft_margin == 0 and flight.true_start == flight.start):
        return True
    return flight.true_start - flight.draft_margin >= life.prompt


def _front(terms: Terms, life: Life) -> bool:  # noqa: ARG001
    flight = life.flight
    if flight.active == 0:
        return True
    if flight.tokens < 1:
        return False
    if flight.live == 0:
        return flight.true_start <= flight.start and life.counters.stale >= flight.tokens
    return (
        flight.true_start == life.counters.computed - flight.rest
        and flight.true_start <= flight.start
        and flight.rest >= flight.tokens
        and flight.rest <= life.live_tokens - flight.draft_margin
    )


def _ends_above_settled(life: Life) -> bool:
    return life.running == 1 and life.end > life.counters.computed - life.live_tokens


def _settled_coverage(terms: Terms, life: Life) -> bool:
    begun = life.there == 1 and life.live_tokens > 0 and life.start < life.counters.computed + reach(terms, life)
    if begun and _ends_above_settled(life):
        return life.referenced == 1
    return True


def _settled_present(terms: Terms, life: Life) -> bool:
    flight = life.flight
    reached = flight.live == 1 and life.start < flight.true_start + flight.tokens + reach(terms, life)
    if reached and _ends_above_settled(life):
        return flight.present == 1
    return True


def _held(terms: Terms, life: Life) -> bool:
    if reads_checked(terms, life):
        if life.flight.present == 0:
            return False
        if life.flight.live == 1:
            return life.referenced == 1
        return life.pinned == 1
    return True


def _stale_pinned(terms: Terms, life: Life) -> bool:
    if life.flight.live == 0 and reads_true_or_lower(terms, life):
        return life.pinned == 1 and life.flight.present == 1
    return True


def _at_start(terms: Terms, life: Life) -> bool:  # noqa: ARG001
    if life.counters.placeholders != 0 or life.live_promises != 0:
        return False
    return life.flight.active == 0 or life.flight.lowest == life.flight.start


def _all_computed(terms: Terms, life: Life) -> bool:  # noqa: ARG001
    return life.live_tokens <= life.counters.computed


def _solo(terms: Terms, life: Life) -> bool:  # noqa: ARG001
    return life.live_drafts == 0 or life.counters.computed >= life.counters.known


def _unshifted(terms: Terms, life: Life) -> bool:  # noqa: ARG001
    flight = life.flight
    return flight.active == 0 or (flight.true_start == flight.start and flight.draft_margin == 0)


def _last(terms: Terms, life: Life) -> bool:  # noqa: ARG001
    flight = life.flight
    if flight.live == 0:
        return True
    if flight.tokens < 1 or flight.rest < flight.tokens or flight.rest > life.live_tokens:
        return False
    if flight.sampled == 0:
        return True
    return flight.rest == flight.tokens and life.counters.computed >= life.counters.known


def _window_coverage(terms: Terms, life: Life) -> bool:  # noqa: ARG001
    begun = life.there == 1 and life.start < life.counters.computed
    if life.running == 1 and life.live_drafts > 0 and begun and life.end > life.counters.computed - life.live_drafts:
        return life.referenced == 1
    return True


CHECKED = Lemma("CHECKED-READER", "a step finds the key in the window that the gate saw", finds(reads_checked))
PAST_PROMPT = Lemma("PAST-PROMPT", "with all live drafts rejected, computed is at or above the prompt", _past_prompt)
TRUE_PAST = Lemma("TRUE-PAST-PROMPT", "a step that rejections shift starts at or above the prompt", _true_past_prompt)
AT_START = Lemma("AT-START", "nothing is promised, so no step may begin below the scheduler's start", _at_start)
SOLO = Lemma("SOLO", "while drafts are in flight, all that is known is computed: nothing leaves behind them", _solo)
UNSHIFTED = Lemma("UNSHIFTED", "no rejection is pending that would move a step's true start", _unshifted)
LAST = Lemma("LAST", "a live step that samples is the last one in flight", _last)
ALL_COMPUTED = Lemma("ALL-COMPUTED", "what is live in flight counts as computed", _all_computed)
FRONT = Lemma("FRONT", "a live step truly starts at computed less what is in flight from it on", _front)
SETTLED = Lemma("SETTLED-COVERAGE", "an item that ends above what is settled is referenced", _settled_coverage)
SETTLED_PRESENT = Lemma("SETTLED-PRESENT", "and on the shelf of every step in flight that reaches it", _settled_present)
HELD = Lemma(
    "HELD-IN-FLIGHT", "what the window of a step in flight needs is on its shelf, and referenced or pinned", _held
)
STALE_PINNED = Lemma("STALE-PINNED", "what a stale step may still read is pinned and on its shelf", _stale_pinned)

WINDOW = Lemma(
    "WINDOW-COVERAGE",
    "while drafts are in flight, a begun item that ends above computed - drafts is referenced",
    _window_coverage,
)
TRUE_READER = Lemma(
    "TRUE-READER",
    "a step finds the key at its true start, whatever is still rejected",
    finds(reads_true_or_lower),
    reads_true_or_lower,
)
_COMMON = (TYPES, QUEUE, STALE, WAITING, BOOKED, SHELVED, UPKEEP, KNOWN, STEP)


def lemma_sets(assumed: Assumed) -> tuple[tuple[Lemma, ...], ...]:
    """The sets of lemmas that may prove the goal under these assumptions, the likeliest first."""
    sets: list[tuple[Lemma, ...]] = []
    inside = () if assumed.anywhere else (INSIDE,)
    if "A1" in assumed.relaxed:
        synchronous = (TYPES, QUEUE, STALE, WAITING, BOOKED, SHELVED, AT_START, SOLO, UNSHIFTED, LAST, ALL_COMPUTED)
        common = (*(synchronous if assumed.asynchronous == 0 else (*_COMMON, COUNTERS)), FRONT)
        if assumed.reader == "checked":
            return ((*common, HELD),)
        return ((*common, NUMBERS, SETTLED, SETTLED_PRESENT, STALE_PINNED),)
    if assumed.asynchronous == 0:
        # Nothing is promised: all readers begin at the scheduler's start, whichever is asked about.
        readers = {"checked": (), "any": (AT_START,), "true": (QUEUE, STALE, WAITING, AT_START, SOLO, UNSHIFTED, LAST)}
        return ((TYPES, BOOKED, SHELVED, CHECKED, *readers[assumed.reader]),)
    if assumed.reader == "checked":
        sets.append((TYPES, BOOKED, SHELVED, CHECKED))
    if assumed.reader == "true" and inside:
        sets.append((*_COMMON, NUMBERS, PAST_PROMPT, TRUE_PAST, CHECKED, *inside))
    if assumed.reader == "true":
        sets.append((*_COMMON, NUMBERS, WINDOW, TRUE_READER, *inside))
    sets.append((*LEMMAS, *inside))
    return tuple(sets)
