"""What becomes of an item that is let go in a given state of the executable model: the continuation, action by action.

Belongs here: `let_go` (the state as if the guard had just said yes), `exposed` (what the formula says of it), and
`continuation` (the family of `weakest`, as actions). Nothing is taken from the relation.
"""

from collections.abc import Iterator

from outlives.model.contract import Action, Refusal
from outlives.model.lifetime import confirmed
from outlives.model.scheduler import SchedulerModel
from outlives.model.state import RUNNING, Part, State, items_of

__all__ = ["continuation", "exposed", "let_go", "resting"]


def resting(state: State, request: int, item: int) -> bool:
    """The formula speaks of this item in this state: it is begun and referenced, the request runs, and a place in the
    pipeline is free."""
    record = state.requests[request]
    if state.misses or record.status != RUNNING or item not in record.references:
        return False
    begun = items_of(state.setup, record, request)[item].start < record.counters.computed
    return begun and len(state.steps) < state.setup.depth


def exposed(state: State, request: int, item: int) -> bool:
    """confirmed < end <= computed: a reader may come, and the gate does not look again."""
    record = state.requests[request]
    end = items_of(state.setup, record, request)[item].end
    return confirmed(record.counters) < end <= record.counters.computed


def let_go(model: SchedulerModel, state: State, request: int, item: int) -> State:
    """The state as if the guard had let the item go in it, and the cache had needed the room: evicted, not yet told."""
    rules, world = model.world.rules, model.world
    book, record = rules.release(world, state.setup, state.book, state.requests[request], request, item)
    requests = (*state.requests[:request], record, *state.requests[request + 1 :])
    key = items_of(state.setup, record, request)[item].key
    while key in book.idle:
        book = rules.evict_oldest(world, book)
    return state._replace(book=book, requests=requests)


def continuation(model: SchedulerModel, state: State, request: int, item: int) -> Iterator[tuple[Action, State]]:
    """From a state in which the item was let go: a step is dispatched, every output before it rejects all drafts, and
    it reads from end - 1. The actions with the states after them; it ends early where one of them is refused."""
    end = items_of(state.setup, state.requests[request], request)[item].end
    before = len(state.steps)
    start = state.requests[request].counters.computed
    actions = [Action.of("schedule")]
    actions += [_nothing_accepted(step.parts) for step in state.steps]
    actions.append(Action.of("accept", back=max(0, start - (end - 1))))
    for number, action in enumerate(actions):
        after = model.next_state(state, action)
        if isinstance(after, Refusal):
            return
        if number == 0 and (
            len(after.steps) != before + 1 or all(part.request != request for part in after.steps[-1].parts)
        ):
            return  # nothing was left for this request to compute
        state = after
        yield action, state


def _nothing_accepted(parts: tuple[Part, ...]) -> Action:
    drafted = any(part.drafts > 0 and part.sampled == 1 for part in parts)
    return Action.of("reject", accepted=0) if drafted else Action.of("accept")
