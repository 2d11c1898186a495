"""The rare routes that a trace took, each in a sentence: resets, failed KV loads, the turns of a session.

Belongs here: what such a step did to counters, references and queues, read from the recorded calls. The story of a
violation is told elsewhere; these sentences say how it came to it.
"""

from outlives.model.setup import request_name
from outlives.model.state import PAUSED, RUNNING

from .telling import Event, count_of
from .witness import Call, Moment, Witness

__all__ = ["routes_taken"]


def routes_taken(seen: Witness) -> list[Event]:
    """One event per rare route that was taken, in order."""
    events: list[Event] = []
    for moment in seen.moments:
        texts = []
        if moment.action.name == "reset_prefix_cache":
            texts.append(_reset(seen, moment))
        elif moment.action.name == "reset_encoder_cache":
            texts.append(_emptied(moment))
        elif moment.action.name == "continue_session":
            texts.append(_continued(seen, moment))
        texts += [_failed(call, moment) for call in seen.calls_to("fail_kv", moment.at)]
        texts += [_ended(call, moment) for call in seen.calls_to("end_turn", moment.at)]
        events += [Event(kind="route", step=moment.at, text=f"step {moment.at}, {text}") for text in texts]
    return events


def _names(numbers: tuple[int, ...]) -> str:
    return " and ".join(request_name(number) for number in numbers)


def _reset(seen: Witness, moment: Moment) -> str:
    text = f"{moment.action}, preempted {_names(moment.before.running)}"
    for number in moment.before.running:
        request = moment.after.requests[number]
        if seen.world.switches.isolate_stale == 1:
            if request.counters.stale > 0:
                vanishing = (
                    f"{count_of(request.counters.stale, 'token')} in flight for {request_name(number)} will vanish"
                )
                text += f"; {vanishing}"
        elif request.frames > 0:
            flying = sum(part.request == number for step in moment.after.steps for part in step.parts)
            text += (
                f"; the next {count_of(request.frames, 'sampled output')} of {request_name(number)} will be discarded, "
                f"with {count_of(flying, 'step')} in flight"
            )
    return text


def _emptied(moment: Moment) -> str:
    held = [entry.key for entry in moment.before.book.entries if entry.holders]
    text = f"{moment.action}, emptied the book"
    if held:
        text += f", and with it the references to {', '.join(held)}"
    waits = any(step.clear == 1 for step in moment.after.steps)
    return text + ("; the shelf is emptied after the steps in flight" if waits else ", and the shelf")


def _failed(call: Call, moment: Moment) -> str:
    before, after = call.arguments[0], call.result
    text = f"{moment.action}: computed fell from {before.computed} to {after.computed}, and the output was skipped"
    if after.placeholders > 0:
        kept = count_of(after.placeholders, "placeholder")
        return f"{text}; {kept} stayed, those that the failed step had promised among them"
    if before.placeholders > 0:
        return f"{text}; its placeholders went, and what is in flight will vanish"
    return text


def _ended(call: Call, moment: Moment) -> str:
    before, after = call.arguments[0], call.result
    paused = [(number, each) for number, each in enumerate(moment.after.requests) if each.status == PAUSED]
    number = next((number for number, each in paused if each.counters == after), None)
    if number is None:
        return f"{moment.action}, ended a turn"
    text = f"{moment.action}, ended a turn of {request_name(number)}"
    if after.computed < before.computed:
        text += f": computed fell back from {before.computed} to {after.computed}"
    elif before.in_flight > 0:
        text += f": computed stayed at {after.computed}, with {count_of(before.in_flight, 'token')} in flight"
    if moment.before.requests[number].status != RUNNING:
        text += ", by a stale output"
    if moment.after.requests[number].lost == 1:
        text += "; the session is in no queue any more"
    return text


def _continued(seen: Witness, moment: Moment) -> str:
    call = next(seen.calls_to("continue_turn", moment.at))
    before, more = call.arguments[0], call.arguments[1]
    kept = call.result.known - more
    return (
        f"{moment.action}: {kept} of {count_of(before.known, 'known token')} were kept and {more} added behind them, "
        f"with {call.result.computed} computed"
    )
