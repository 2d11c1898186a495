"""The worker: its shelf of encoder outputs, and the reads of each step.

Theory of operation
-------------------
Executing one step: drop the told keys; run the told encoders and put their outputs on the shelf; gather for the
target every item that overlaps [w, w + n); then the drafter gathers over its own window, shifted by the look-ahead.
An item that starts at or after w + n is only the drafter's look-ahead: missing it is a crash up to 0.23.0 and
tolerated from 0.24.0 (#46315). w is where the reader begins: the scheduler's start (A3 held), the true start, which is
the scheduler's less the drafts rejected in earlier steps of the same admission, or anywhere from confirmed to the
start.
"""

from .setup import Item, Setup
from .state import Miss, Part, State, Step
from .world import World

__all__ = ["clear_shelf", "execute", "gather", "shelve", "shift_readers"]


def shelve(world: World, shelf: tuple[str, ...], step: Step) -> tuple[str, ...]:  # noqa: ARG001
    """The shelf once a step's notices and encodes are done: drop first, then encode."""
    if not step.drop and not step.encode:
        return shelf
    kept = {key for key in shelf if key not in step.drop}
    return tuple(sorted(kept | set(step.encode)))


def gather(world: World, setup: Setup, shelf: tuple[str, ...], part: Part, back: int) -> tuple[Miss, ...]:
    """The reads of one request's part that find nothing on the shelf; `back` counts only under reader `any`."""
    begin = part.start
    if setup.encoder_decoder == 1:
        # Cross attention reads an encoder output in the step that encodes it, and keeps what it needs.
        if begin > 0:
            return ()
        every = setup.requests[part.request].items + part.extra
        return tuple(
            Miss(part.request, index, "target", 0, part.tokens)
            for index, item in enumerate(every)
            if item.key not in shelf
        )
    if world.reader == "true":
        begin = world.rules.reader_start(part.start, part.rejected)
    elif world.reader == "any":
        begin = max(part.lowest, part.start - back)
    end = begin + part.tokens
    misses = _absent(setup, shelf, part, "target", begin, end, None)
    if setup.look_ahead > 0:
        tolerated_from = end if world.switches.tolerate_look_ahead == 1 else None
        ahead = setup.look_ahead
        misses += _absent(setup, shelf, part, "draft", begin + ahead, end + ahead, tolerated_from)
    return misses


def _absent(
    setup: Setup, shelf: tuple[str, ...], part: Part, reader: str, low: int, high: int, tolerated_from: int | None
) -> tuple[Miss, ...]:
    items = setup.requests[part.request].items
    if part.extra:
        items += part.extra
    return tuple(
        Miss(part.request, index, reader, low, high)
        for index, item in enumerate(items)
        if item.key not in shelf and _reads(item, low, high, tolerated_from)
    )


def _reads(item: Item, low: int, high: int, tolerated_from: int | None) -> bool:
    if item.start >= high or item.end <= low:
        return False
    return tolerated_from is None or item.start < tolerated_from


def execute(world: World, state: State, back: int) -> State:
    """The worker executes the oldest step that is not executed yet. Parts of preempted, finished and aborted requests
    are executed like any other: a step in flight cannot be called back."""
    at = next(index for index, step in enumerate(state.steps) if step.executed == 0)
    step = state.steps[at]
    shelf = world.rules.shelve(world, state.shelf, step)
    misses = tuple(miss for part in step.parts for miss in world.rules.gather(world, state.setup, shelf, part, back))
    if step.clear == 1:
        shelf = ()
    steps = state.steps[:at] + (step._replace(executed=1, clear=0),) + state.steps[at + 1 :]
    return state._replace(steps=steps, shelf=shelf, misses=misses)


def clear_shelf(world: World, state: State) -> State:  # noqa: ARG001
    """The encoder cache is reset: the worker empties its shelf after all steps dispatched so far, before the next."""
    waiting = [at for at, step in enumerate(state.steps) if step.executed == 0]
    if not waiting:
        return state._replace(shelf=())
    last = waiting[-1]
    return state._replace(steps=state.steps[:last] + (state.steps[last]._replace(clear=1),))


def shift_readers(world: World, steps: tuple[Step, ...], number: int, rejected: int) -> tuple[Step, ...]:
    """Drafts of the request were rejected: the steps of the same admission still in flight begin so much lower."""
    if world.reader != "true":
        return steps
    shifted = []
    same = True
    for step in steps:
        same = same and all(part.request != number or part.first == 0 for part in step.parts)
        parts = step.parts
        if same:
            parts = tuple(
                part._replace(rejected=part.rejected + rejected) if part.request == number else part for part in parts
            )
        shifted.append(step._replace(parts=parts))
    return tuple(shifted)
