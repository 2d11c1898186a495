"""The state of the world: the scheduler's book, the steps in flight, the worker's shelf. Records only, no rules.

All records are named tuples: immutable, hashable, and copied at the speed of C, which the explorer and the machine
live on. Requests and items are numbered from 0 inside; reports and traces show their names.
"""

from typing import NamedTuple

from .lifetime import Counters
from .setup import Item, Setup

__all__ = ["ABSENT", "FINISHED", "PAUSED", "RUNNING", "WAITING"]
__all__ += ["Book", "Entry", "Miss", "Part", "Request", "State", "Step", "items_of", "limit_of"]

ABSENT = "absent"
WAITING = "waiting"
RUNNING = "running"
PAUSED = "paused"
FINISHED = "finished"


class Request(NamedTuple):
    """The scheduler's view of one request."""

    status: str
    """absent (not arrived), waiting (new, preempted, or begun its next turn), running, paused (between two turns of a
    session) or finished."""
    counters: Counters
    drafts: int = 0
    """Draft tokens attached to its next decode step."""
    decoding: int = 0
    """1 where the last dispatched step of this admission samples: only then may the next one carry drafts."""
    references: tuple[int, ...] = ()
    """Numbers of its items whose entries it references, ascending."""
    drop: int = 0
    """1: its stale outputs vanish instead of being delivered (prefix-cache reset, end of a turn)."""
    seen: tuple[int, ...] = ()
    """Items it once referenced; kept only where assumption A2 is relaxed."""
    turn: int = 0
    """Turns of its session that have ended and been continued."""
    extra: tuple[Item, ...] = ()
    """Items that came with later turns; they are numbered after the first turn's."""
    limit: int = 0
    """Known tokens at which the present turn ends; 0: the first turn's, from the setup."""
    frames: int = 0
    """Outputs still to be discarded after a prefix-cache reset (0.12.0 to 0.26)."""
    lost: int = 0
    """1: its session is in no queue any more (up to 0.32, a turn that ended by a stale output)."""
    rebase: int = 0
    """1: the worker takes its next step as the first of a new admission."""


class Entry(NamedTuple):
    """One entry of the book."""

    key: str
    size: int
    """Slots."""
    holders: tuple[int, ...]
    """The requests that reference it, ascending; empty: idle."""


class Book(NamedTuple):
    """The scheduler's encoder-cache manager."""

    entries: tuple[Entry, ...]
    """By key, ascending."""
    idle: tuple[str, ...]
    """Keys that nobody references, oldest first: evictable."""
    evicted: tuple[str, ...]
    """Keys evicted since the last step left, in order: the worker has not been told yet."""
    free: int
    """Slots of no entry."""
    reclaimable: int
    """Free slots and those of idle entries."""
    strangers: int = 0
    """Slots held by requests outside the model."""
    due: tuple[str, ...] = ()
    """Of encoder-decoder models: keys of the last pass's encodes, which the next step tells the worker to drop."""


class Part(NamedTuple):
    """One request's part of a step, as it was told at dispatch."""

    request: int
    start: int
    """The scheduler's start: computed at dispatch."""
    tokens: int
    drafts: int
    sampled: int
    """1: it samples; its output delivers tokens."""
    promised: int
    """Placeholders that it added."""
    lowest: int
    """Confirmed at dispatch as the pipeline has it: start less the live promises. No reader may begin below it."""
    rejected: int = 0
    """Drafts rejected since its dispatch in earlier steps of the same admission: the true start is start - rejected."""
    first: int = 0
    """1: the first step of its admission; 2: the same, of a session that goes on with the blocks it holds."""
    live: int = 1
    """0 once the request was preempted, finished or aborted, or its turn ended, after this dispatch."""
    extra: tuple[Item, ...] = ()
    """The items of later turns that the request had at dispatch: a step reads the item list of its dispatch."""


class Step(NamedTuple):
    """A dispatched step whose output has not been processed."""

    parts: tuple[Part, ...]
    encode: tuple[str, ...]
    """Keys that the worker is to encode."""
    drop: tuple[str, ...]
    """Keys that the worker is to drop first."""
    executed: int = 0
    clear: int = 0
    """1: right after this step the worker empties its shelf (encoder-cache reset)."""
    withdrawn: tuple[str, ...] = ()
    """Keys whose encode a victim of the pass had planned, and which was withdrawn with its part."""


class Miss(NamedTuple):
    """A read of a key that is not on the shelf: the engine is dead ("Encoder cache miss")."""

    request: int
    item: int
    reader: str
    """target or draft."""
    low: int
    """First position read."""
    high: int
    """First position not read."""


class State(NamedTuple):
    """Everything. `setup` never changes along a run."""

    setup: Setup
    requests: tuple[Request, ...]
    running: tuple[int, ...]
    """In admission order."""
    waiting: tuple[int, ...]
    """Front first."""
    book: Book
    steps: tuple[Step, ...]
    """In flight, oldest first."""
    shelf: tuple[str, ...]
    """Keys whose encoder output the worker holds, ascending."""
    misses: tuple[Miss, ...] = ()
    """Not empty: the engine died in the last step executed."""
    omitted: int = 0
    """1: the one encode that the environment may leave out (A4 relaxed) was left out."""


def items_of(setup: Setup, request: Request, number: int) -> tuple[Item, ...]:
    """The items of request `number`, those of later turns last."""
    return setup.requests[number].items + request.extra


def limit_of(setup: Setup, request: Request, number: int) -> int:
    """Known tokens at which the request, or its present turn, ends."""
    asked = setup.requests[number]
    return request.limit or asked.prompt + asked.outputs
