"""Mutants that survive for a reason: what was changed makes no difference that any run could show.

Belongs here: data, keyed by function and expression, as `mutants` names them. That each of them walks exactly as the
original does, state by state, is checked in `tests/test_mutant_alike.py`.
"""

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["EQUIVALENT"]

_REPLACED_APART = "The two statements give other fields their values, and neither reads what the other one gives."
_GUARD_LEAVES_COUNTERS = "The guard is asked about the request as it is, and changes its references alone."
_IDLE_HAS_ENTRY = "What is idle is in the book: an entry leaves it together with its place in the queue."
_WANTS_NOTHING = (
    "A request that wants nothing has computed all that it knows. No item of a prompt reaches past that, so the gate "
    "looks at none and grants nothing; one among outputs was looked at by the pass before, and is held since."
)
_SHORTCUT = "It only says when a copy can be spared: the copy that is made instead is equal to the steps as they were."

EQUIVALENT: Mapping[str, str] = MappingProxyType(
    {
        "lifetime.carried_drafts: beyond > 0 -> beyond >= 0": "With none beyond, both branches say 0.",
        "lifetime.fail_kv: valid < computed -> valid <= computed": "Where the two are equal, so is the result.",
        "lifetime.continue_turn: c.computed < c.known -> c.computed <= c.known": (
            "Where the two are equal, both branches add `more` to the same number."
        ),
        "lifetime.settled: c.in_flight > c.placeholders -> c.in_flight >= c.placeholders": (
            "Where the two are equal, both branches compare with the same number."
        ),
        "book.hit: if request in entry.holders:; if not entry.holders: -> "
        "if not entry.holders:; if request in entry.holders:": (
            "An entry that the request holds has a holder: at most one of the conditions is true."
        ),
        "book.make_room: book.free < size + planned and book.idle -> book.free < size + planned": (
            "Room is made only where it is reclaimable, that is free or idle (SLOTS-ADD-UP): the loop has enough "
            "before the queue is empty."
        ),
        "book.evict_oldest: 0 if entry is None else entry.size -> entry.size": _IDLE_HAS_ENTRY,
        "book.release: book = book._replace(entries=_with_entry(book, entry._replace(holders=holders))); "
        "if not holders: -> if not holders:; "
        "book = book._replace(entries=_with_entry(book, entry._replace(holders=holders)))": _REPLACED_APART,
        "book._held: setup.encoder_decoder == 1 and world.switches.credit_once == 0 -> setup.encoder_decoder == 1": (
            "With `credit_once`, `credit` passes over an item that is not held: asking it about all items, in the same "
            "order, comes to the same."
        ),
        "book.withdraw: continue -> pass": (
            "Never reached: what a victim was granted in this very pass is in the book; nobody could evict it since."
        ),
        "gate.gate: 'A2' in world.relaxed and index in request.seen -> index in request.seen": (
            "What was seen is kept only where A2 is relaxed: elsewhere nothing is."
        ),
        "batch._serve_running: continue -> pass (3)": _WANTS_NOTHING,
        "batch._serve_running: count <= 0 -> count < 0": _WANTS_NOTHING,
        "batch._serve_running: setup.by_priority == 1 and work.world.switches.go_on_after_self == 1 -> "
        "work.world.switches.go_on_after_self == 1": (
            "Without the priority policy the victim is the last of the running: nobody is left to go on with."
        ),
        "batch._skips_next: work.running.index(victim) < work.running.index(number) -> "
        "work.running.index(victim) <= work.running.index(number)": (
            "The two are equal where a request is its own victim, and there the pass ends before anybody is skipped: "
            "no profile that skips goes on after itself."
        ),
        "batch._admit_waiting: world.switches.isolate_stale == 1 and request.counters.stale > 0 and "
        "(request.drop == 0) -> request.counters.stale > 0 and request.drop == 0": (
            "Without `isolate_stale` nothing is ever counted as stale: the switches that settle came after it."
        ),
        "batch._admit_waiting: request._replace(status=RUNNING, counters=counters, decoding=0) -> "
        "request._replace(status=RUNNING, counters=counters)": (
            "A request that waits does not decode: whatever makes it wait, or lets it pause before, says so."
        ),
        "batch._referencing: request = request._replace(references=references); if 'A2' in work.world.relaxed: -> "
        "if 'A2' in work.world.relaxed:; request = request._replace(references=references)": _REPLACED_APART,
        "batch._preempt: 0 if entry is None else entry.size -> entry.size": (
            "What is handed over is held by somebody, and so it is in the book."
        ),
        "batch._dispatch: start = state.requests[number].counters.computed if victim else request.counters.computed; "
        "if world.guard.site == 'before-advance': -> if world.guard.site == 'before-advance':; "
        "start = state.requests[number].counters.computed if victim else request.counters.computed": (
            _GUARD_LEAVES_COUNTERS
        ),
        "batch._dispatch: if world.guard.site == 'before-advance':; "
        "counters = rules.advance(request.counters, share.tokens) -> "
        "counters = rules.advance(request.counters, share.tokens); if world.guard.site == 'before-advance':": (
            _GUARD_LEAVES_COUNTERS
        ),
        "batch._dispatch: if world.guard.site == 'after-advance':; "
        "counters, sampled, promised = rules.promise(counters, share.drafts, setup.base, setup.asynchronous) -> "
        "counters, sampled, promised = rules.promise(counters, share.drafts, setup.base, setup.asynchronous); "
        "if world.guard.site == 'after-advance':": (
            "The one guard that is asked there looks at `computed` alone, of which nothing is promised."
        ),
        "batch._grant: work.state.setup.encoder_decoder == 1 -> work.state.setup.encoder_decoder != 1": (
            "What is planned is not in the book, and there both ways enter it alike: the one that would look for it "
            "first finds nothing."
        ),
        "batch.orphan: requests[part.request].status == RUNNING or part.live == 0 -> part.live == 0": _SHORTCUT,
        "batch.orphan: requests[part.request].status == RUNNING or part.live == 0 -> "
        "requests[part.request].status == RUNNING": _SHORTCUT,
        "output.process: state = state._replace(steps=world.rules.shift_readers(world, state.steps, part.request, "
        "rejected)); if failed is not None and part.request == failed[0]: -> "
        "if failed is not None and part.request == failed[0]:; "
        "state = state._replace(steps=world.rules.shift_readers(world, state.steps, part.request, rejected))": (
            "The one says where steps in flight truly start, which processing an output neither reads nor changes."
        ),
        "output.process: part.drafts - min(accepted, part.drafts) if part.sampled == 1 else 0 -> "
        "part.drafts - min(accepted, part.drafts)": (
            "What does not sample carries no drafts, but for victims of 0.11.0: their next step begins a new "
            "admission, and there shifting ends."
        ),
        "output._process_part: if world.guard.site == 'at-output':; limit = limit_of(state.setup, request, number) -> "
        "limit = limit_of(state.setup, request, number); if world.guard.site == 'at-output':": (
            "The guard changes references alone, not where the turn ends."
        ),
        "output._process_part: limit = limit_of(state.setup, request, number); if discarded: -> "
        "if discarded:; limit = limit_of(state.setup, request, number)": (
            "Where the turn ends is a matter of the prompt and its outputs, not of frames or counters."
        ),
        "output._process_part: if world.guard.site == 'after-delivery':; if part.sampled == 1 and (not discarded): -> "
        "if part.sampled == 1 and (not discarded):; if world.guard.site == 'after-delivery':": (
            "The two differ where tokens are cut off, and there the request or its turn ends at once: all references "
            "go, in the same order, or those up to what is confirmed, which lies past every item."
        ),
        "output._process_part: part.sampled == 1 and (not discarded) -> part.sampled == 1": (
            "What is discarded is delivered to nobody and leaves its request below its limit, so that nothing is cut "
            "off; and only asynchronous outputs are."
        ),
        "output._process_part: request.counters.known >= limit and part.sampled == 1 and (not discarded) -> "
        "request.counters.known >= limit and part.sampled == 1": (
            "What is discarded was in flight at a reset, and until it has come nothing is delivered: its request stays "
            "below its limit."
        ),
        "output._delivered: cut > 0 -> cut >= 0": "To cut off nothing changes nothing.",
        "output._delivered: request = request._replace(counters=counters); "
        "if setup.synchronous == 1 and request.status == RUNNING and (stale == 0): -> "
        "if setup.synchronous == 1 and request.status == RUNNING and (stale == 0):; "
        "request = request._replace(counters=counters)": _REPLACED_APART,
        "output._delivered: setup.synchronous == 1 and request.status == RUNNING and (stale == 0) -> "
        "setup.synchronous == 1 and request.status == RUNNING": (
            "A request that runs beside stale outputs of its own is one whose stale outputs vanish before: any other "
            "is not admitted until they have come."
        ),
        "worker.gather: setup.requests[part.request].items + part.extra -> setup.requests[part.request].items": (
            "Encoder-decoder models have no sessions, and so no items of later turns."
        ),
    }
)
"""Mutant -> why nothing can tell it from the original."""
