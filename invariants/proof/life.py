"""The life of one cache entry: the abstract state, and what a verdict about it assumes. Records only, no transition.

Belongs here: `Life` and `Flight` (the state), `Arithmetic` (the counter functions that the relation runs on),
`Assumed` and `Terms`. What each field means of the executable model is said at the field; `projection` computes it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from outlives.model import lifetime
from outlives.model.lifetime import Counters, Guard
from outlives.model.world import Reader, Switches

__all__ = ["EMPTY", "PINS", "Arithmetic", "Assumed", "Flight", "Life", "Terms", "landed"]

PINS = frozenset({"preempt", "reset", "kv-failure", "turn-end"})
"""The transitions by which a request may leave steps in flight behind that are no longer live."""


class Arithmetic(NamedTuple):
    """The counter functions that the relation runs on; by default the ones of `lifetime`."""

    advance: Callable[[Counters, int], Counters] = lifetime.advance
    promise: Callable[[Counters, int, int, int], tuple[Counters, int, int]] = lifetime.promise
    receive: Callable[[Counters, int, int], tuple[Counters, int]] = lifetime.receive
    roll_back: Callable[[Counters, int, int], Counters] = lifetime.roll_back
    deliver: Callable[[Counters, int, int, int, int], Counters] = lifetime.deliver
    preempt: Callable[[Counters, int], Counters] = lifetime.preempt
    admit: Callable[[Counters, int], Counters] = lifetime.admit
    reader_start: Callable[[int, int], int] = lifetime.reader_start
    reset: Callable[[Counters, int], Counters] = lifetime.reset
    fail_kv: Callable[[Counters, int, int], Counters] = lifetime.fail_kv
    trim: Callable[[Counters, int, int, int, int], Counters] = lifetime.trim
    end_turn: Callable[[Counters, int], Counters] = lifetime.end_turn
    continue_turn: Callable[[Counters, int, int, int], Counters] = lifetime.continue_turn

    @classmethod
    def of(cls, rules: Any) -> "Arithmetic":
        """The arithmetic of a model's rules: any record that has these names."""
        return cls(*(getattr(rules, name) for name in cls._fields))


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """Under which assumptions a verdict is given."""

    relaxed: frozenset[str] = frozenset()
    """Relaxed ones of A1, A2 and A4. A3 is relaxed by `reader`."""
    reader: Reader = "any"
    """Where a step may begin to read: `checked` (A3 held), `true`, or `any`."""
    anywhere: bool = True
    """Items may reach past the prompt; False: they lie inside it."""
    closed: frozenset[str] = frozenset()
    """Closed routes. With *preempt* and *abort* closed a request can still finish, which drops references as well."""
    leaves: int = 1
    """0: nothing drops references before the guard does, no preemption, abort or finish. No run of the command assumes
    it; it says under which condition *settled* would be safe with A1 relaxed."""
    pins: frozenset[str] = frozenset()
    """At these of `PINS`, what the request references is pinned until its stale share is 0: it may not be evicted, and
    who references it does not matter. No release does it; with A1 relaxed it is what *settled* needs."""
    isolate: int = 1
    """1: what was in flight at a preemption is remembered as stale (0.27.0 on)."""
    early_resume: int = 1
    """1: a request may resume while stale outputs are in flight (drop mode); 0: not before they are processed."""
    tolerate: int = 1
    """1: a drafter that misses an item which starts past its step's window goes on (0.24.0 on); 0: it crashes, and the
    gate looks as far ahead as the drafter."""
    asynchronous: int = 1
    """0: synchronous scheduling, which promises nothing."""
    encoder_reset: int = 0
    """1: the encoder cache may be reset while requests run: safe only for readers that start where they are checked."""
    settle_kv: int = 1
    """1: where KV blocks failed to load, promises and references go and what is in flight is stale; 0: as released."""
    settle_turn: int = 1
    """1: a turn's end takes computed back to confirmed (0.31.0 on)."""
    free_at_turn_end: int = 1
    """1: and asks the guard once more."""
    keep_outputs: int = 1
    """1: a session goes on after all outputs but the last one (0.33.0 on)."""
    keep_all_of_diffusion: int = 1
    """1: and after all of them where nothing is sampled beside the drafts."""
    trim_computed: int = 1
    """1: tokens cut off at a stop no longer count as computed (0.33.0 on)."""

    def behaving(self, switches: Switches) -> "Assumed":
        """The same of a release: its switches in the place of those of `repaired`."""
        return replace(
            self,
            isolate=switches.isolate_stale,
            tolerate=switches.tolerate_look_ahead,
            settle_kv=switches.settle_kv_failure,
            settle_turn=switches.settle_turn,
            free_at_turn_end=switches.free_at_turn_end,
            keep_outputs=switches.keep_outputs,
            keep_all_of_diffusion=switches.keep_all_of_diffusion,
            trim_computed=switches.trim_computed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the relation is about: a guard, the arithmetic, the assumptions."""

    guard: Guard
    arithmetic: Arithmetic = field(default_factory=Arithmetic)
    assumed: Assumed = field(default_factory=Assumed)


class Flight(NamedTuple):
    """One step in flight, as it was dispatched, and what has happened since."""

    active: int
    """1: there is such a step."""
    live: int
    """1: its request still runs, without a preemption since."""
    start: int
    """The scheduler's start: computed at dispatch."""
    tokens: int
    """How many it was given."""
    drafts: int
    sampled: int
    """1: it samples."""
    share: int
    """Promised outputs: 0 where it does not sample, else base + drafts; 0 with synchronous scheduling."""
    lowest: int
    """Computed less the live promises, both at dispatch: no reader may begin below it."""
    true_start: int
    """The start less the drafts rejected so far in earlier steps of the same admission."""
    margin: int
    """Promises of the earlier steps of the same admission that are still unprocessed."""
    draft_margin: int
    """Drafts of the same steps."""
    rest: int
    """Tokens in flight of this step and all later ones of the same admission."""
    present: int
    """1: the key is on the shelf when this step reads, after its own notices and encodes."""


_LANDED = Flight(*[0] * len(Flight._fields))


def landed() -> Flight:
    """No step is tracked."""
    return _LANDED


class Life(NamedTuple):
    """The abstract state. Constants first; a frame is what a transition does not `_replace`."""

    base: int
    """Tokens sampled per step beside the drafts: 1, or 0 for diffusion models. Constant."""
    start: int
    """First position of the item. Constant."""
    end: int
    """First position after it. Constant."""
    look_ahead: int
    """How far past its window a drafter reads. Constant."""
    prompt: int
    """Known tokens when the turn began that brought the item: at first the prompt. Constant once the item is there."""
    there: int
    """1: the item is there; 0: it comes with a later turn of the session, and nobody looks at it before."""
    counters: Counters
    """The request's counters, as the scheduler has them. A finished or aborted request counts as preempted."""
    running: int
    """1: admitted, or a session between two turns that holds what it has computed; 0: waiting, preempted or gone."""
    referenced: int
    """1: the request references the item's entry (the item's number is among its references)."""
    pinned: int
    """1: it may not be evicted, for the sake of steps in flight that are no longer live (0 unless `Assumed.pins`)."""
    seen: int
    """1: it once did (only read where A2 is relaxed)."""
    booked: int
    """1: the key is in the book."""
    shelf_next: int
    """1: the key would be on the shelf when the next dispatched step reads, were that step told only what is told
    already or waits in the evicted list: shelf, then every dispatched step's drops and encodes, then the notices
    that the next step will carry."""
    omitted: int
    """1: the one encode that A4 relaxed lets the environment leave out was left out."""
    floor: int
    """Ghost: the highest confirmed position of this admission (0 while waiting)."""
    live_tokens: int
    """Ghost: tokens of the live steps in flight."""
    live_promises: int
    """Ghost: their promises."""
    live_drafts: int
    """Ghost: their drafts."""
    flight: Flight


EMPTY = Life(0, 0, 0, 0, 0, 0, Counters(0, 0, 0, 0, 0), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, _LANDED)
"""The shape of a state, all zeros."""
