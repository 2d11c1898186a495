"""The story of a request that is stuck: where it stands, why the gate gives it nothing, who holds the room.

Belongs here: reading the pass that would come next, recorded rule by rule.
"""

from outlives.model.book import live_drafts
from outlives.model.contract import Action, Refusal
from outlives.model.setup import request_name
from outlives.model.state import ABSENT, FINISHED, PAUSED, RUNNING, WAITING, State, items_of, limit_of

from .story_cause import stopped_by
from .story_routes import routes_taken
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
    losses = {moment.at for moment in seen.moments if _lost(moment.after) > _lost(moment.before)}
    events = [event for event in routes_taken(seen) if event.step in losses]
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


def _lost(state: State) -> int:
    return sum(request.lost for request in state.requests)


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
        why = _unasked(seen, end, number, calls)
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
    _world, setup, _book, request, number, computed, _count, _limit = call.arguments
    taken = {*call.result.references, *call.result.planned, *call.result.second}
    stop = next(
        (
            each
            for index, each in enumerate(items_of(setup, request, number))
            if each.end > computed and index not in taken
        ),
        None,
    )
    if stop is None or stop.start <= computed or setup.encoder_decoder == 1:
        return ""
    between = stop.start - computed
    whole = setup.whole_items == 1 and seen.world.switches.whole_cut_look_ahead == 1
    shift = setup.look_ahead if seen.world.switches.cut_look_ahead == 1 or whole else 0
    given = max(0, between - shift)
    if given != call.result.tokens:
        return f"the gate leaves {call.result.tokens} of the {count_of(between, 'token')} before it"
    return f"the cut leaves {stop.start} - ({computed} + {shift}) = {between - shift} of the tokens before it"


def _unasked(seen: Witness, end: State, number: int, calls: list[Call]) -> str:
    """Why a pass does not come to ask the gate for the request."""
    request = end.requests[number]
    counters = request.counters
    limit = limit_of(end.setup, request, number)
    if request.status == PAUSED:
        return "its turn has ended, and its next one does not begin"
    if number not in (*end.running, *end.waiting):
        how = ": a stale output ended its turn, which took it out again" if request.lost == 1 else ""
        return f"it is in no queue{how}"
    if request.status == WAITING:
        ahead = _ends_admissions(seen, end, number, calls)
        if ahead:
            return ahead
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


def _ends_admissions(seen: Witness, end: State, number: int, calls: list[Call]) -> str:
    """What ends the admissions before the request has its turn; empty where nothing does."""
    counters, setup = end.requests[number].counters, end.setup
    for call in calls:
        if call.rule != "gate":
            continue
        other = call.arguments[4]
        stalled = other in end.waiting and call.result.tokens <= 0
        if stalled and seen.world.switches.skip_stalled == 0:
            return f"{request_name(other)} before it gets no token, which ends the admissions"
    padded = 1 + setup.drafts
    if counters.known - counters.computed == 1 and setup.drafts > 0 and padded > setup.budget:
        return f"its one token is padded to {padded}, and a step may hold {count_of(setup.budget, 'token')}"
    return ""


def _holders(seen: Witness, end: State, at: int, events: list[Event]) -> None:
    """Who holds the slots, and why the guard does not let go."""
    if end.book.strangers:
        events.append(Event(kind="held", step=at, text=f"strangers hold {count_of(end.book.strangers, 'slot')}"))
    for number, request in enumerate(end.requests):
        for index in request.references:
            item = seen.item(number, index)
            holds = f"{item_words(number, index, item)} holds {count_of(item.size, 'slot')}"
            if end.setup.encoder_decoder == 1:
                text = f"{holds} until an output of it is processed with computed above 0"
                events.append(Event(kind="held", step=at, text=text))
                continue
            words = guard_words(seen.world, request.counters, item.end, end.setup.look_ahead)
            text = f"{holds} by {words}"
            if request.status != RUNNING and request.counters.computed > 0:
                text += "; its turn ended, and no output of it will ask again before it runs"
            elif seen.world.guard_in_force.lets_go(
                request.counters, item.end, end.setup.look_ahead, live_drafts(end.steps, number)
            ):
                text += "; it holds, but is asked only when a step leaves or an output is processed"
            numbers = {"end": item.end, "computed": request.counters.computed,
                       "placeholders": request.counters.placeholders, "look_ahead": end.setup.look_ahead}  # fmt: skip
            if not any(event.text == text for event in events):
                events.append(Event(kind="held", step=at, text=text, numbers=numbers))
