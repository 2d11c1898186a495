"""Causes within one step: why a reference went, why an entry was evicted, why the gate did not plan an encode.

Belongs here: reading the recorded calls of one step. Each answer is computed from what the rules were given and
returned, so that a replaced rule is described by what it did.
"""

from typing import NamedTuple

from outlives.model.lifetime import confirmed
from outlives.model.setup import NO_LIMIT, request_name, request_number
from outlives.model.state import Step, items_of

from .telling import count_of, guard_words, window
from .witness import Call, Witness

__all__ = [
    "GateView",
    "eviction_words",
    "gate_view",
    "not_told",
    "release_rule",
    "release_words",
    "short_of",
    "stopped_by",
]


def release_rule(seen: Witness, call: Call) -> str:
    """By which rule a reference went: `guard`, `credit` (encoder-decoder models), `preemption`, `prefix-cache reset`,
    `failed KV load`, `abort`, `finish`, `failed admission` or `the rules`."""
    if call.caller("free_pass") is not None:
        return "credit" if call.arguments[1].encoder_decoder == 1 else "guard"
    drop = call.caller("drop_references")
    if drop is None:
        return "the rules"
    action = seen.action(call.at)
    if action.name in ("abort", "finish"):
        return action.name
    if action.name == "reset_prefix_cache":
        return "prefix-cache reset"
    if action.name == "fail_kv_load":
        failed = request_number(action.get("request", ""), len(seen.end.requests))
        return "failed KV load" if drop.arguments[4] == failed else "finish"
    if action.name in ("accept", "reject"):
        return "finish"
    after = [each.rule for each in seen.calls if each.at == call.at]
    ended = next(place for place, each in enumerate(_at(seen, call.at)) if _is(each, drop))
    # The victim of a pass may have had a part in it, which is withdrawn between the two.
    following = [rule for rule in after[ended + 1 : ended + 3] if rule != "withdraw"]
    return "preemption" if following[:1] == ["preempt"] else "failed admission"


def _at(seen: Witness, at: int) -> list[Call]:
    return [call for call in seen.calls if call.at == at]


def _is(call: Call, other: Call) -> bool:
    """The same call: its record while it ran has no result yet, but the very same arguments."""
    return call.rule == other.rule and call.arguments is other.arguments


def release_words(seen: Witness, call: Call) -> str:
    """How a reference went, with the guard's numbers where the guard let it go."""
    rule = release_rule(seen, call)
    if rule == "guard":
        _world, setup, _book, request, number, item = call.arguments
        end = items_of(setup, request, number)[item].end
        words = f"by {guard_words(seen.world, request.counters, end, setup.look_ahead)}"
        ended = any(each.result == request.counters for each in seen.calls_to("end_turn", call.at))
        return f"{words}, asked once more at its turn's end" if ended else words
    return {
        "credit": f"because it has computed {call.arguments[3].counters.computed}, which credits all its slots",
        "prefix-cache reset": "because the prefix cache was reset, which drops all references of running requests",
        "failed KV load": "because KV blocks of its prefix failed to load, which drops all its references",
        "preemption": "because it was preempted, which drops all its references",
        "abort": "because the client aborted, which drops all its references",
        "finish": "because it finished, which drops all its references",
        "failed admission": "because its admission got no KV blocks, which drops all its references",
    }.get(rule, "outside of the guard")


def eviction_words(seen: Witness, at: int, key: str) -> str:
    """Who evicted the key at this step."""
    action = seen.action(at)
    call = next((each for each in seen.calls_to("evict_oldest", at) if key in each.arguments[1].idle[:1]), None)
    gate = None if call is None else call.caller("gate")
    room = None if call is None else call.caller("make_room")
    if gate is not None and room is not None:
        return (
            f"by the pass of step {at}, to make {room.arguments[2]} slots of room for {request_name(gate.arguments[4])}"
        )
    if action.name == "evict":
        return f"at step {at} under a stranger's pressure, {action}"
    if action.name == "occupy":
        return f"at step {at} for strangers that took slots, {action}"
    return f"at step {at}, {action}"


class GateView(NamedTuple):
    """Why the encoder gate did or did not plan an encode for one item."""

    why: str
    """`behind`, `not-looked-at-again`, `hit`, `planned`, `outside`, `no-look-ahead`, `cut`, `shortcut`, `passed-over`,
    `same-key`, `no-room` or `no-call`."""
    words: str
    """A clause whose subject is the gate."""


def gate_view(seen: Witness, at: int, number: int, item: int) -> GateView:
    """What the gate saw of the item in the pass at step `at`, for this request."""
    call = next((each for each in seen.calls_to("gate", at) if each.arguments[4] == number), None)
    if call is None:
        return GateView("no-call", "the gate was not asked for this request in that pass")
    world, setup, _book, request, _number, computed, count, _limit = call.arguments
    gated = call.result
    what = items_of(setup, request, number)[item]
    name = f"item{item}"
    ahead = setup.look_ahead if world.switches.gate_look_ahead == 1 else 0
    looked = window(computed, computed + count + ahead)
    if item in gated.planned:
        return GateView("planned", f"the gate looked at {looked} and planned an encode of {what.key}")
    if setup.encoder_decoder == 1 and computed > 0:
        passed = f"the gate looks at a request's items where its computed is 0, and here it was {computed}"
        return GateView("behind", passed)
    if what.end <= computed:
        behind = f"the gate looked only from computed {computed} on, and {name} ends at {what.end}"
        return GateView("behind", behind)
    if "A2" in world.relaxed and item in request.seen:
        return GateView("not-looked-at-again", f"the gate did not look at {name} again (A2 relaxed)")
    if item in gated.references and item not in request.references:
        return GateView("hit", f"the gate found {what.key} in the book, took a reference and planned no encode")
    if what.start >= computed + count + ahead:
        if ahead < setup.look_ahead:
            without = f"the gate knows no look-ahead: it looked at {looked}, and {name} starts at {what.start}"
            return GateView("no-look-ahead", without)
        return GateView("outside", f"the gate looked at {looked}, and {name} starts at {what.start}")
    if gated.tokens < count and what.start >= computed + gated.tokens:
        cut = f"the gate cut the chunk from {count} to {gated.tokens} tokens, to end at {computed + gated.tokens}"
        return GateView("cut", f"{cut}: {stopped_by(seen, call)}")
    if item in request.references:
        return GateView("hit", f"the gate found {what.key} referenced already and planned no encode")
    if world.switches.gate_shortcut == 1 and what.start >= computed + count:
        short = f"the gate's shortcut left {name} out: no position of it is in {window(computed, computed + count)}"
        return GateView("shortcut", f"{short}, only in the look-ahead of {count_of(ahead, 'position')}")
    if any(items_of(setup, request, number)[other].key == what.key for other in gated.planned):
        return GateView("same-key", f"the gate had planned {what.key} for an earlier item of the same window")
    obstacle = _obstacle(seen, call)
    if obstacle:
        ended = f"the chunk ends before {name} anyway, at {computed + gated.tokens}"
        return GateView("no-room", f"the gate planned no encode of {what.key}: {obstacle}; {ended}")
    return GateView("passed-over", f"the gate looked at {looked} and passed {name} over")


def stopped_by(seen: Witness, call: Call) -> str:
    """At which item a gate call that cut its chunk stopped, and why, with the numbers."""
    return _obstacle(seen, call) or f"the rule gave {call.result.tokens} of {count_of(call.arguments[6], 'token')}"


def _obstacle(seen: Witness, call: Call) -> str:
    """What keeps the first item that the gate neither referenced nor planned from being encoded; empty: nothing."""
    _world, setup, book, request, number, computed, count, limit = call.arguments
    gated = call.result
    items = items_of(setup, request, number)
    if setup.encoder_decoder == 1:
        slots = sum(each.size for each in items)
        return (
            f"all its items need {count_of(slots, 'slot')} at once, and {min(book.free, limit)} of {setup.slots} "
            f"can be had ({book.free} free, {limit} left to this step)"
        )
    taken = {*gated.references, *gated.planned, *gated.second}
    left = next((index for index, each in enumerate(items) if each.end > computed and index not in taken), None)
    if left is None:
        return ""
    item = items[left]
    name = f"item{left} {window(item.start, item.end)}"
    rooms = [each for each in seen.calls_to("make_room", call.at) if _inside(each, call)]
    if rooms and rooms[-1].result is None:
        _rules, there, size, planned = rooms[-1].arguments
        beside = f" beside {planned} just planned" if planned else ""
        return (
            f"{name} needs {count_of(size, 'slot')}{beside}, and {there.reclaimable} of {setup.slots} "
            f"can be had ({there.free} free, {there.reclaimable - there.free} idle)"
        )
    if setup.whole_items == 1 and computed + count < item.end:
        chunk = f"the chunk of {count_of(count, 'token')}"
        return f"{name} may not be split, and {chunk} would end at {computed + count}"
    budget = limit - sum(items[other].size for other in gated.planned)
    if item.size > budget:
        limited = "the cache" if setup.encoder_budget == NO_LIMIT else "the encoder budget"
        needs = count_of(item.size, "slot")
        return f"{name} needs to encode {needs}, and {limited} leaves {budget} of {setup.encode_limit} to this step"
    return ""


def _inside(call: Call, outer: Call) -> bool:
    return any(_is(outer, each) for each in call.callers)


def not_told(seen: Witness, at: int, key: str, step: Step) -> str:
    """Why a planned encode is not in the step that left: an empty string where it is."""
    if key in step.encode:
        return ""
    moment = next(each for each in seen.moments if each.at == at)
    if moment.after.omitted > moment.before.omitted:
        return "the environment left the encode out (A4 relaxed), though the book has the entry"
    return "the encode was withdrawn from the step with its request's preemption, and the book was not told"


def short_of(call: Call, end: int) -> int:
    """How many positions of the item were not confirmed when its reference went; at most 0: all were."""
    return end - confirmed(call.arguments[3].counters)
