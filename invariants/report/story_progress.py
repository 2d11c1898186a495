"""The story of a request that is stuck: where it stands, why the gate gives it nothing, who holds the room.

Belongs here: reading the pass that would come next, recorded rule by rule.
"""

from outlives.model.contract import Action, Refusal
from outlives.model.setup import request_name
from outlives.model.state import ABSENT, FINISHED, State

from .story_cause import stopped_by
from .telling import Event, Story, count_of, guard_words, item_words, window
from .witness import Call, Witness, calls_of

__all__ = ["tell_progress"]


def tell_progress(seen: Witness, fair_from: int) -> Story | None:
    """The story of every request that does not finish; None where all do."""
    end = seen.end
    after, calls = calls_of(seen.world, end, Action.of("schedule"))
    at = seen.moments[-1].at if seen.moments else 0
    stuck = [number for number, each in enumerate(end.requests) if each.status not in (ABSENT, FINISHED)]
    if not stuck:
        return None
    events: list[Event] = []
    reasons = []
    for number in stuck:
        reasons.append(_position(end, number) + _gate(seen, end, calls, number, at, events))
        _holders(seen, end, at, events)
    if isinstance(after, Refusal):
        text = f"so a further pass is refused ({after.reason}), and no output is in flight that could change that"
    else:
        text = "so further passes come back to a state that was there before"
    events.append(Event(kind="stuck", step=at, text=text))
    alone = f"Left alone from step {fair_from} on"
    return Story(headline=f"{alone}, {'; '.join(reasons)}.", events=tuple(events))


def _position(end: State, number: int) -> str:
    counters = end.requests[number].counters
    return (
        f"{request_name(number)} is stuck at {counters.computed} of {count_of(counters.known, 'known token')} "
        f"({end.requests[number].status})"
    )


def _gate(seen: Witness, end: State, calls: list[Call], number: int, at: int, events: list[Event]) -> str:
    """Tell what the gate gives the request in the next pass; the clause for the headline."""
    call = next((each for each in calls if each.rule == "gate" and each.arguments[4] == number), None)
    if call is None:
        why = _unasked(seen, end, number)
        events.append(Event(kind="stuck", step=at, text=f"after step {at} a pass does not come to ask the encoder gate "
                            f"for {request_name(number)}: {why}"))  # fmt: skip
        return f": {why}"
    world, setup, _book, _request, _number, computed, count, _limit = call.arguments
    ahead = setup.look_ahead if world.switches.gate_look_ahead == 1 else 0
    text = (
        f"after step {at} a pass asks for {count_of(count, 'token')} of {request_name(number)}, and the gate looks at "
        f"{window(computed, computed + count + ahead)} and leaves {call.result.tokens}"
    )
    reason = ""
    if call.result.tokens < count:
        replayed = Witness(world=world, end=end, calls=calls)
        reason = stopped_by(replayed, call)
        text += f": {reason}"
        shift = _shift(seen, call)
        if shift:
            text += f"; {shift}"
    numbers = {"computed": computed, "asked": count, "left": call.result.tokens, "look_ahead": setup.look_ahead}
    events.append(Event(kind="stuck", step=at, text=text, numbers=numbers))
    return f": {reason}" if reason else ""


def _shift(seen: Witness, call: Call) -> str:
    """How the cut is computed where tokens lie between computed and the item that stopped it."""
    _world, setup, _book, _request, number, computed, _count, _limit = call.arguments
    taken = {*call.result.references, *call.result.planned, *call.result.second}
    stop = next(
        (each for index, each in enumerate(setup.requests[number].items) if each.end > computed and index not in taken),
        None,
    )
    if stop is None or stop.start <= computed:
        return ""
    between = stop.start - computed
    whole = setup.whole_items == 1 and seen.world.switches.whole_cut_look_ahead == 1
    shift = setup.look_ahead if seen.world.switches.cut_look_ahead == 1 or whole else 0
    given = max(0, between - shift)
    if given != call.result.tokens:
        return f"the gate leaves {call.result.tokens} of the {count_of(between, 'token')} before it"
    return f"the cut leaves {stop.start} - ({computed} + {shift}) = {between - shift} of the tokens before it"


def _unasked(seen: Witness, end: State, number: int) -> str:
    request = end.requests[number]
    counters = request.counters
    asked = end.setup.requests[number]
    limit = asked.prompt + asked.outputs
    if seen.world.switches.isolate_stale == 1 and counters.stale > 0 and request.drop == 0:
        return f"{count_of(counters.stale, 'token')} of stale output are still in flight"
    if counters.placeholders > 0 and counters.computed + 2 - counters.placeholders >= limit:
        return (
            f"its promised outputs count as its last ones: computed {counters.computed} + 2 - placeholders "
            f"{counters.placeholders} >= prompt + outputs {limit}"
        )
    return (
        f"it asks for nothing: known {counters.known} + drafts {request.drafts} + placeholders "
        f"{counters.placeholders} - computed {counters.computed}"
    )


def _holders(seen: Witness, end: State, at: int, events: list[Event]) -> None:
    """Who holds the slots, and why the guard does not let go."""
    if end.book.strangers:
        events.append(Event(kind="held", step=at, text=f"strangers hold {count_of(end.book.strangers, 'slot')}"))
    for number, request in enumerate(end.requests):
        for index in request.references:
            item = seen.item(number, index)
            words = guard_words(seen.world, request.counters, item.end, end.setup.look_ahead)
            text = f"{item_words(number, index, item)} holds {count_of(item.size, 'slot')} by {words}"
            if seen.world.condition(request.counters, item.end, end.setup.look_ahead):
                text += "; it holds, but is asked only when a step leaves or an output is processed"
            numbers = {"end": item.end, "computed": request.counters.computed,
                       "placeholders": request.counters.placeholders, "look_ahead": end.setup.look_ahead}  # fmt: skip
            if not any(event.text == text for event in events):
                events.append(Event(kind="held", step=at, text=text, numbers=numbers))
