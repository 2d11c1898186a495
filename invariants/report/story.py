"""Why a property is violated, as data: a headline sentence with numbers, and the events that led there.

Belongs here: the records, and the choice of who tells it. `story_gather` tells of reads that found nothing,
`story_progress` of requests that are stuck; of every other property the property's own explanation is told, with what
the failing step did.
"""

from outlives.model.setup import request_name
from outlives.model.world import World

from ..verdict import Trace
from .story_cause import release_words
from .story_gather import tell_gather
from .story_progress import tell_progress
from .story_routes import routes_taken
from .telling import Event, Story, count_of
from .witness import Witness, watch

__all__ = ["Event", "Story", "tell"]


def tell(trace: Trace, world: World | None = None) -> Story:
    """The story of a trace. Without the world that it ran in, or of another model, it is the property's own `why`."""
    seen = None if world is None else watch(trace, world)
    if seen is not None and seen.end.misses and trace.property == "GATHER-AFTER-FREE":
        return tell_gather(seen)
    if seen is not None and trace.property == "PROGRESS" and not seen.end.misses:
        story = tell_progress(seen, int(trace.shrink.get("fair_from", len(trace.steps) - 1)))
        if story is not None:
            return story
    return _plainly(trace, seen)


def _plainly(trace: Trace, seen: Witness | None) -> Story:
    """The property's own explanation, at its step, with what that step did to the cache."""
    at = len(trace.steps) - 1
    last = trace.steps[-1].action if trace.steps else None
    where = f"step {at}, {last}" if last is not None else "the initial state"
    why = trace.why or "the model gives no explanation"
    events = [] if seen is None else [*routes_taken(seen), *_deeds(seen, at)]
    events.append(Event(kind="violated", step=at, text=f"{where}: {why}"))
    return Story(headline=f"{trace.property} is violated at {where}: {why}.", events=tuple(events))


def _deeds(seen: Witness, at: int) -> list[Event]:
    """What the step released, evicted and encoded."""
    events = []
    for call in seen.calls_to("release", at):
        number, item = call.arguments[4], call.arguments[5]
        name = request_name(number)
        if item in call.arguments[3].references:
            words = release_words(seen, call)
            events.append(Event(kind="released", step=at, text=f"{name} released item{item} {words}"))
        elif call.arguments[1].encoder_decoder == 1 and call.result[0].free > call.arguments[2].free:
            size = call.result[0].free - call.arguments[2].free
            text = f"{name} was credited {count_of(size, 'slot')} for item{item}, which held none any more"
            numbers = {"free": call.result[0].free, "slots": call.arguments[1].slots}
            events.append(Event(kind="credited", step=at, text=text, numbers=numbers))
    for call in seen.calls_to("evict_oldest", at):
        events.append(Event(kind="evicted", step=at, text=f"{call.arguments[1].idle[0]} was evicted from the book"))
    for call in seen.calls_to("allocate", at):
        key, owner = call.arguments[2], request_name(call.arguments[4])
        events.append(Event(kind="planned", step=at, text=f"{key} entered the book for {owner}"))
    return events
