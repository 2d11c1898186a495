"""What each release does: switches, guard and sources, as data. Belongs here: no rule, only which release has which.

A profile is the released rules with the switches and the guard of one release. `repaired` is the newest release with
the repairs that the engines demand, each with its source and the property that fails without it (`docs/findings.md`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from . import batch, book, gate, lifetime, worker
from .errors import Contradiction, UnknownName
from .lifetime import GUARDS, Guard
from .world import Rules, Switches

__all__ = ["PROFILES", "RELEASED_RULES", "SWITCHES", "Profile", "SwitchFact", "profile_named"]

RELEASED_RULES = Rules(
    advance=lifetime.advance,
    promise=lifetime.promise,
    receive=lifetime.receive,
    roll_back=lifetime.roll_back,
    deliver=lifetime.deliver,
    preempt=lifetime.preempt,
    admit=lifetime.admit,
    reader_start=lifetime.reader_start,
    reset=lifetime.reset,
    fail_kv=lifetime.fail_kv,
    trim=lifetime.trim,
    end_turn=lifetime.end_turn,
    continue_turn=lifetime.continue_turn,
    hit=book.hit,
    make_room=book.make_room,
    evict_oldest=book.evict_oldest,
    allocate=book.allocate,
    release=book.release,
    announce=book.announce,
    guard=None,
    free_pass=book.free_pass,
    gate=gate.gate,
    choose_victim=batch.choose_victim,
    withdraw=book.withdraw,
    drop_references=book.drop_references,
    shelve=worker.shelve,
    gather=worker.gather,
    shift_readers=worker.shift_readers,
    clear_shelf=worker.clear_shelf,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchFact:
    """One switch: what it says, who changed it, and in which releases it is on."""

    name: str
    phrase: str
    source: str
    since: str = "0"
    """First release that has it."""
    until: str = "9999"
    """First release that has it no more."""


REPAIRED = "repaired"
_REPAIRED_VERSION = "9000"

_FACTS = (
    SwitchFact(
        name="drafts_when_asynchronous",
        phrase="asynchronous scheduling carries drafts and promises them",
        source="0.11.0 adds one placeholder per step only",
        since="0.12.0",
    ),
    SwitchFact(
        name="withdraw_victim",
        phrase="a victim that was already scheduled in the pass gives back its tokens and encodes",
        source="0.12.0; before, they stay in the step, and the tokens count for the waiting request",
        since="0.12.0",
    ),
    SwitchFact(
        name="gate_look_ahead",
        phrase="the encoder gate looks as far ahead as the drafter reads",
        source="#29750",
        since="0.12.0",
    ),
    SwitchFact(
        name="gate_shortcut",
        phrase="an item without a position in the window less the look-ahead is neither encoded nor referenced",
        source="#30475, mended by #51603",
        since="0.13.0",
        until="0.28.0",
    ),
    SwitchFact(
        name="cut_look_ahead",
        phrase="where there is no room, the chunk is cut to the item's start less the look-ahead",
        source="#29750, taken back in 0.33.0 (reports #40707, #47738)",
        since="0.12.0",
        until="0.33.0",
    ),
    SwitchFact(
        name="whole_cut_look_ahead",
        phrase="where an item may not be chunked, the cut before it subtracts the look-ahead",
        source="#34220",
        since="0.17.0",
        until=_REPAIRED_VERSION,
    ),
    SwitchFact(
        name="whole_at_start",
        phrase="an item that may not be chunked and starts exactly where the chunk starts is not split either",
        source="0.33.0",
        since="0.33.0",
    ),
    SwitchFact(
        name="whole_before_hit",
        phrase="whether an item would be split is asked before the book is (0.30 and 0.31 not read)",
        source="0.32.0",
        since="0.32.0",
    ),
    SwitchFact(
        name="drop_at_failed_admission",
        phrase="references taken for an admission that gets no KV blocks are dropped",
        source="0.14.0",
        since="0.14.0",
    ),
    SwitchFact(
        name="tolerate_look_ahead",
        phrase="the worker tolerates the absence of an item that is only the drafter's look-ahead",
        source="#46315",
        since="0.24.0",
    ),
    SwitchFact(
        name="isolate_stale",
        phrase="what is in flight at a preemption is stale, and the placeholders go",
        source="#48245",
        since="0.27.0",
    ),
    SwitchFact(
        name="filter_readded",
        phrase="a key that was evicted and entered the book again is not announced as evicted",
        source="#52482",
        since="0.28.0",
    ),
    SwitchFact(
        name="last_occurrence",
        phrase="an entry is held until the last referenced occurrence of its key in the request is released",
        source="0.29.0",
        since="0.29.0",
    ),
    SwitchFact(
        name="second_reference",
        phrase="a second occurrence of a key planned in the same pass takes a reference of its own",
        source="0.32.0",
        since="0.32.0",
    ),
    SwitchFact(
        name="take_back_encodes",
        phrase="where a victim's part of the pass is withdrawn, the book is told of its planned encodes",
        source="no release",
        since=_REPAIRED_VERSION,
    ),
    SwitchFact(
        name="reset_running",
        phrase="a prefix-cache reset can preempt the running requests",
        source="0.12.0",
        since="0.12.0",
    ),
    SwitchFact(
        name="discard_counts",
        phrase="a reset discards as many outputs as there were placeholders, instead of the next one",
        source="#42117 (report #42043)",
        since="0.22.0",
        until="0.27.0",
    ),
    SwitchFact(
        name="discard_before_rejection",
        phrase="an output that a reset discards rejects no drafts",
        source="#46066",
        since="0.25.0",
    ),
    SwitchFact(
        name="encoder_reset",
        phrase="the encoder cache can be reset while requests run",
        source="0.16.0",
        since="0.16.0",
    ),
    SwitchFact(
        name="kv_recompute",
        phrase="KV blocks that failed to load are computed again (policy recompute; from 0.17.1 not the default)",
        source="0.12.0",
        since="0.12.0",
    ),
    SwitchFact(
        name="settle_kv_failure",
        phrase="where KV blocks failed to load, what is in flight is stale and its placeholders go",
        source="no release",
        since=_REPAIRED_VERSION,
    ),
    SwitchFact(
        name="sessions",
        phrase="a request can be resumable: its turn ends, and it goes on with more prompt",
        source="0.15.0",
        since="0.15.0",
    ),
    SwitchFact(
        name="settle_turn",
        phrase="at a turn's end computed falls back to confirmed, and what is in flight is stale",
        source="#52765 (report #52693)",
        since="0.31.0",
    ),
    SwitchFact(
        name="free_at_turn_end",
        phrase="at a turn's end the guard is asked once more, with what has been confirmed by then",
        source="no release",
        since=_REPAIRED_VERSION,
    ),
    SwitchFact(
        name="held_first",
        phrase="waiting requests that hold KV blocks are admitted before the others",
        source="0.31.0",
        since="0.31.0",
    ),
    SwitchFact(
        name="keep_outputs",
        phrase="a session keeps all its outputs but the last one, whatever counts as computed",
        source="0.33.0",
        since="0.33.0",
    ),
    SwitchFact(
        name="keep_all_of_diffusion",
        phrase="a session of a diffusion model, which samples nothing ahead, keeps the last output as well",
        source="no release",
        since=_REPAIRED_VERSION,
    ),
    SwitchFact(
        name="trim_computed",
        phrase="tokens cut off at a stop no longer count as computed",
        source="0.33.0 (report #42760)",
        since="0.33.0",
    ),
    SwitchFact(
        name="parked_apart",
        phrase="a session between turns waits in a queue apart, from which a stop does not take it",
        source="0.18.0; from 0.27.0 on it does (mended by requeue_stopped)",
        since="0.18.0",
        until="0.27.0",
    ),
    SwitchFact(
        name="requeue_stopped",
        phrase="a session whose turn ended while it was not running stays in a queue (else it is lost)",
        source="0.33.0",
        since="0.33.0",
    ),
    SwitchFact(
        name="go_on_after_self",
        phrase="under the priority policy a request that preempts itself does not end the loop over the running ones",
        source="0.33.0",
        since="0.33.0",
    ),
    SwitchFact(
        name="pad_admission",
        phrase="an admission of one token beside a batch that only decodes is padded with drafts",
        source="0.25.0",
        since="0.25.0",
    ),
    SwitchFact(
        name="pad_when_alone",
        phrase="the same where nothing runs and a prefix is computed",
        source="0.30.0",
        since="0.30.0",
    ),
    SwitchFact(
        name="pad_fitting",
        phrase="an admission is not padded to more than a step may hold",
        source="no release",
        since=_REPAIRED_VERSION,
    ),
    SwitchFact(
        name="encoder_decoder",
        phrase="encoder-decoder models have a cache manager of their own",
        source="0.13.0",
        since="0.13.0",
    ),
    SwitchFact(
        name="drop_after_use",
        phrase="of encoder-decoder models, the worker drops an output one pass after its encode, not before it",
        source="0.14.0",
        since="0.14.0",
    ),
    SwitchFact(
        name="credit_once",
        phrase="of encoder-decoder models, slots are credited once for each time they were taken",
        source="no release",
        since=_REPAIRED_VERSION,
    ),
    SwitchFact(
        name="diffusion",
        phrase="diffusion models: a step samples nothing beside its drafts",
        source="0.24.0",
        since="0.24.0",
    ),
    SwitchFact(
        name="item_references",
        phrase="references are by item; before, by key: one occurrence releases all (0.21 and 0.22 not read)",
        source="0.23.0",
        since="0.21.0",
    ),
    SwitchFact(
        name="cap_when_alone",
        phrase="the chunk cap also holds for the only request there is",
        source="0.31.0",
        until="0.31.0",
    ),
    SwitchFact(
        name="victim_skips_next",
        phrase="a victim that stands before the request in want and was not scheduled makes the pass skip the next one",
        source="0.28.0",
        until="0.28.0",
    ),
    SwitchFact(
        name="skip_stalled",
        phrase="a waiting request that gets no token is skipped instead of ending the admissions",
        source="0.33.0",
        since="0.33.0",
    ),
)

SWITCHES: Mapping[str, SwitchFact] = MappingProxyType({fact.name: fact for fact in _FACTS})
"""Every switch, in the order in which releases got them."""

_GUARD_SINCE = (
    ("0", "optimistic-after-advance"),
    ("0.20.0", "optimistic-at-output"),
    ("0.24.0", "confirmed-lookahead"),
    ("0.33.0", "confirmed"),
)

RELEASES = (
    "0.11.0",
    "0.12.0",
    "0.13.0",
    "0.17.1",
    "0.20.0",
    "0.24.0",
    "0.27.0",
    "0.28.0",
    "0.29.0",
    "0.32.0",
    "0.33.0",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A named behaviour: rules, switches and guard."""

    name: str
    rules: Rules
    switches: Switches
    guard: Guard

    def __post_init__(self) -> None:
        for name, kind in (("name", str), ("rules", Rules), ("switches", Switches), ("guard", Guard)):
            if not isinstance(getattr(self, name), kind):
                told = type(getattr(self, name)).__name__
                raise Contradiction(f"the {name} of a profile must be {kind.__name__}; it is {told}.")


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def _build(name: str, version: str) -> Profile:
    at = _version(version)
    switches = Switches(
        **{fact.name: int(_version(fact.since) <= at < _version(fact.until)) for fact in SWITCHES.values()}
    )
    guard = [guard for since, guard in _GUARD_SINCE if _version(since) <= at][-1]
    return Profile(name=name, rules=RELEASED_RULES, switches=switches, guard=GUARDS[guard])


PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
        **{release: _build(release, release) for release in RELEASES},
        REPAIRED: _build(REPAIRED, _REPAIRED_VERSION),
    }
)
"""The profiles by name: eleven releases, and `repaired`."""


def profile_named(name: str) -> Profile:
    """The profile of that name; raises `UnknownName` with the known ones."""
    try:
        return PROFILES[name]
    except KeyError:
        raise UnknownName("profile", name, PROFILES) from None
