"""How a scheduler behaves: its rules (named functions), its switches, its guard, and what is assumed around it.

Belongs here: the types `Rules`, `Switches`, `World` and the assumptions. Which release has which switch is data in
`profiles`; what the rules do is in `lifetime`, `book`, `gate`, `batch`, `output` and `worker`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from .lifetime import Counters, Guard
from .setup import Setup
from .state import Book, Miss, Part, Request, State, Step

__all__ = ["ASSUMPTIONS", "ROUTES", "Gated", "Policy", "Reader", "Rules", "Switches", "World"]

ASSUMPTIONS = {
    "A1": "in-order notice: an eviction reaches the worker inside the next step's message and is applied at its front",
    "A2": "re-check: every pass checks every item that overlaps the window it is about to compute",
    "A3": "equal windows: the worker needs no item outside the window that was checked",
    "A4": "planned means encoded: whatever the book allocates in a pass is encoded by that same step",
}
"""The structural facts that carry the safety of released schedulers. Each can be relaxed."""

ROUTES = {
    "preempt": "a running request loses its KV blocks, in a pass or between two, and resumes",
    "abort": "the client goes away",
    "reset-prefix-cache": "every running request is preempted at once, and may resume beside its stale output",
    "reset-encoder-cache": "the book is emptied at once, the worker's shelf in its turn",
    "kv-load-failure": "KV blocks that were to be loaded are invalid: computed falls back",
    "sessions": "a turn ends, and the request goes on with more prompt and items",
    "look-ahead": "a drafter reads past the window of its step",
}
"""The routes by which references and counters change out of the ordinary. Each can be closed."""

Policy = Literal["fcfs", "priority", "both"]
"""In which order the waiting queue is served, and who is the victim; `both`: each setup says (`Setup.by_priority`)."""

Reader = Literal["checked", "true", "any"]
"""Where a worker starts to read: at the scheduler's start; at the true start; anywhere from confirmed to the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """What differs between releases, each as 0 or 1. `profiles.SWITCHES` has phrase, source and releases of each."""

    withdraw_victim: int = 1
    gate_look_ahead: int = 1
    gate_shortcut: int = 0
    cut_look_ahead: int = 0
    whole_cut_look_ahead: int = 1
    whole_at_start: int = 1
    whole_before_hit: int = 1
    isolate_stale: int = 1
    filter_readded: int = 1
    tolerate_look_ahead: int = 1
    skip_stalled: int = 1
    drop_at_failed_admission: int = 1
    last_occurrence: int = 1
    second_reference: int = 1
    take_back_encodes: int = 1
    drafts_when_asynchronous: int = 1
    cap_when_alone: int = 0
    item_references: int = 1
    victim_skips_next: int = 0
    reset_running: int = 1
    discard_counts: int = 0
    discard_before_rejection: int = 1
    encoder_reset: int = 1
    kv_recompute: int = 1
    settle_kv_failure: int = 1
    sessions: int = 1
    settle_turn: int = 1
    free_at_turn_end: int = 1
    keep_outputs: int = 1
    keep_all_of_diffusion: int = 1
    trim_computed: int = 1
    drop_after_use: int = 1
    credit_once: int = 1
    go_on_after_self: int = 1
    parked_apart: int = 0
    requeue_stopped: int = 1
    held_first: int = 1
    pad_admission: int = 1
    pad_when_alone: int = 1
    pad_fitting: int = 1
    encoder_decoder: int = 1
    diffusion: int = 1


class Gated(NamedTuple):
    """What the encoder gate decided for one request."""

    tokens: int
    """Tokens that are left of what was asked for."""
    book: Book
    """With hits referenced and room made by evicting; neither is undone where the pass gives up later."""
    references: tuple[int, ...]
    """The request's references after the hits."""
    planned: tuple[int, ...]
    """Items to encode; they enter the book once KV blocks were granted."""
    second: tuple[int, ...] = ()
    """Further occurrences of a planned key that take a reference of their own (0.32.0 on)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Every rule of the scheduler and its worker as a named function. A fault is this record with one replaced.

    The first block is the arithmetic of `lifetime`, which the proof runs as well.
    """

    # counters
    advance: Callable[[Counters, int], Counters]
    promise: Callable[[Counters, int, int, int], tuple[Counters, int, int]]
    receive: Callable[[Counters, int, int], tuple[Counters, int]]
    roll_back: Callable[[Counters, int, int], Counters]
    deliver: Callable[[Counters, int, int, int, int], Counters]
    preempt: Callable[[Counters, int], Counters]
    admit: Callable[[Counters, int], Counters]
    reader_start: Callable[[int, int], int]
    reset: Callable[[Counters, int], Counters]
    fail_kv: Callable[[Counters, int, int], Counters]
    trim: Callable[[Counters, int, int, int, int], Counters]
    end_turn: Callable[[Counters, int], Counters]
    continue_turn: Callable[[Counters, int, int, int], Counters]
    # book
    hit: Callable[["World", Book, str, int], Book | None]
    make_room: Callable[["World", Book, int, int], Book | None]
    evict_oldest: Callable[["World", Book], Book]
    allocate: Callable[["World", Book, str, int, int], Book]
    release: Callable[["World", Setup, Book, Request, int, int], tuple[Book, Request]]
    announce: Callable[["World", Book], tuple[Book, tuple[str, ...]]]
    # guard
    guard: Callable[[Counters, int, int], bool] | None
    """None: the condition of the profile's guard. A fault in a guard puts its own condition here."""
    free_pass: Callable[..., tuple[Book, Request]]
    """(world, setup, book, request, number), and of a guard that counts them the drafts in flight."""
    # pass
    gate: Callable[["World", Setup, Book, Request, int, int, int, int], Gated]
    choose_victim: Callable[["World", State, tuple[int, ...]], int]
    withdraw: Callable[["World", Book, int, tuple[str, ...]], tuple[Book, tuple[tuple[str, int], ...]]]
    drop_references: Callable[["World", Setup, Book, Request, int], tuple[Book, Request]]
    # worker
    shelve: Callable[["World", tuple[str, ...], Step], tuple[str, ...]]
    gather: Callable[["World", Setup, tuple[str, ...], Part, int], tuple[Miss, ...]]
    shift_readers: Callable[["World", tuple[Step, ...], int, int], tuple[Step, ...]]
    clear_shelf: Callable[["World", State], State]


_NEEDS = {
    "reset-prefix-cache": "reset_running",
    "reset-encoder-cache": "encoder_reset",
    "kv-load-failure": "kv_recompute",
    "sessions": "sessions",
}
"""Route -> the switch without which a release has no such route."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One scheduler under stated assumptions: everything that does not change along a run, save its numbers."""

    rules: Rules
    switches: Switches
    guard: Guard
    relaxed: frozenset[str] = frozenset()
    """Relaxed assumptions, of `ASSUMPTIONS`."""
    reader: Reader = "checked"
    """`checked` unless A3 is relaxed."""
    closed: frozenset[str] = frozenset()
    """Closed routes, of `ROUTES`."""
    policy: Policy = "both"
    """Which policies its setups may have."""
    split: bool = False
    """Execute and process as two actions; False: one, since nothing can fall between (see `scheduler`)."""
    any_arrival: bool = False
    """Requests arrive in any order; False: in that of their numbers (see `scheduler` for where that is sound)."""

    def opens(self, route: str, setup: Setup | None = None) -> bool:
        """Whether the route is open, in this setup or in some: neither closed nor left out, and the release has it."""
        if route in self.closed or (setup is not None and route in setup.left_out):
            return False
        there = _NEEDS.get(route)
        return there is None or getattr(self.switches, there) == 1

    @property
    def guard_in_force(self) -> Guard:
        """The guard, with the condition that a fault may have put in the place of its own."""
        if self.rules.guard is None:
            return self.guard
        return replace(self.guard, condition=self.rules.guard, counts_drafts=0)
