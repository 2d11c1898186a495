"""The tie: each executed step of the model is a step of the relation that the theorem is about.

Belongs here: the check of one abstract step (`check_step`), and of one executed action of the model (`untied`). It runs
the transition functions of the proof on the numbers of the run; no solver is involved.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from outlives.model.contract import Action, Refusal
from outlives.model.scheduler import OUTPUTS
from outlives.model.setup import Item, RequestSetup, Setup, request_name
from outlives.model.state import FINISHED, State
from outlives.model.world import World

from .extract import leaves
from .life import Arithmetic, Assumed, Life, Terms
from .projection import all_items, changes, part_of, project, projected_items
from .relation import TRANSITIONS

__all__ = ["check_step", "terms_of", "untied"]

_BY_NAME = {each.name: each for each in TRANSITIONS}
_GHOSTS = frozenset({"floor"})
_PESSIMISTIC = frozenset({"shelf_next", "flight.present"})
"""With A1 or A4 relaxed the relation says that a key is gone where in the run an older copy may still be there."""
_MARGINS = frozenset({"flight.margin", "flight.draft_margin", "flight.rest"})
"""Of a stale step: the queue does not say which of the steps before it were of its admission."""


def terms_of(world: World, setup: Setup) -> Terms:
    """What the proof is asked about this world."""
    assumed = Assumed(
        relaxed=world.relaxed - {"A3"},
        reader=world.reader,
        early_resume=int(
            world.opens("reset-prefix-cache") or world.opens("sessions") or world.opens("kv-load-failure")
        ),
        asynchronous=setup.asynchronous,
        encoder_reset=1,
    ).behaving(world.switches)
    return Terms(guard=world.guard_in_force, arithmetic=Arithmetic.of(world.rules), assumed=assumed)


def check_step(
    terms: Terms, before: Life, taken: Sequence[tuple[str, Mapping[str, int]]], after: Life, ignore: frozenset[str]
) -> str:
    """Whether these transitions lead from one abstract state to the other; empty where they do, else what differs.

    `ignore` names leaves that are not compared (`Life` says what each of them means).
    """
    life = before
    for name, choices in taken:
        result = _BY_NAME[name].apply(terms, life, **choices)
        if isinstance(result, Refusal):
            return f"the relation refuses {name}: {result.reason}"
        life = result
    theirs, ours = leaves(after), leaves(life)
    better = _PESSIMISTIC if terms.assumed.relaxed & {"A1", "A4"} else frozenset()
    for name, value in ours.items():
        if name not in ignore and theirs[name] != value and not (name in better and theirs[name] > value):
            what = " then ".join(step for step, _ in taken) or "nothing"
            return f"{name} is {theirs[name]} in the run and {value} in the relation, after {what}"
    return ""


def untied(world: World, before: State, action: Action, after: State) -> Iterator[str]:
    """Where an executed action of the model is not a step of the relation: one sentence per difference.

    Total on any two states; an action that changed nothing ties.
    """
    if after.misses or before == after:
        return
    terms = terms_of(world, before.setup)
    yield from _reader_strays(world, before, action, after)
    processed = 1 if action.name in OUTPUTS and len(after.steps) < len(before.steps) else 0
    # What a turn brings is projected from the action on with which the turn begins.
    first = after if action.name == "continue_session" else before
    for request in range(len(before.requests)):
        items = all_items(first, request)
        for item in projected_items(first, request):
            for tracked in _worth_tracking(before, after, request, item):
                then = None if tracked is None or tracked < processed else tracked - processed
                taken = [*changes(before, action, after, request, item, tracked)]
                difference = check_step(
                    terms,
                    project(world, before, request, item, _in_flight(before, tracked), items[item]),
                    taken,
                    project(world, after, request, item, then, items[item]),
                    _ignored(world, before, action, after, request, items[item], then),
                )
                if difference:
                    step = "" if tracked is None else f", step {tracked} in flight"
                    yield f"{request_name(request)}, item {item}{step}: {difference}"


def _worth_tracking(before: State, after: State, request: int, item: int) -> Iterator[int | None]:
    """Each step in flight with a part of the request that was told of the item, and the one that has just left; none,
    where there is none."""
    steps = (*before.steps, *after.steps[len(before.steps) :])
    at_first = len(before.setup.requests[request].items)
    positions = []
    for at, step in enumerate(steps):
        part = part_of(step, request) if step.executed == 0 else None
        if part is not None and item < at_first + len(part.extra):
            positions.append(at)
    if positions:
        yield from positions
    else:
        yield None


def _in_flight(before: State, tracked: int | None) -> int | None:
    """A step that only leaves with this action is not tracked before it."""
    return None if tracked is None or tracked >= len(before.steps) else tracked


def _ignored(
    world: World, before: State, action: Action, after: State, request: int, item: Item, tracked: int | None
) -> frozenset[str]:
    ignored = _GHOSTS if "A2" in world.relaxed else _GHOSTS | {"seen"}
    if world.reader != "true":
        ignored |= {"flight.true_start"}  # the model only keeps it for readers that use it
    if after.omitted > before.omitted and action.get("omit", "") != item.key:
        ignored |= {"omitted"}  # the encode of another key was left out
    if after.requests[request].status == FINISHED:
        ignored |= {"counters.known", "seen"}  # the model forgets what a finished request knew
        if world.switches.isolate_stale == 0:
            # Without a stale share the relation would go on processing the outputs of a request that is gone.
            ignored |= {"counters.computed", "counters.placeholders", "counters.stale"}
    part = None if tracked is None else part_of(after.steps[tracked], request)
    if part is not None and part.live == 0:
        ignored |= _MARGINS
    if tracked is not None and after.steps[tracked].executed == 1:
        ignored |= {"flight.present"}  # it has read (`--split`): the shelf may be emptied behind it
    return ignored


@cache
def _probe(requests: int) -> Setup:
    """Requests that are one item each, from the lowest position to the highest: a read of it shows its window."""
    everything = RequestSetup(1, 1, (Item(-(1 << 40), 1 << 41, "probe", 1),))
    return Setup(requests=(everything,) * requests, slots=1, budget=1)


def _reader_strays(world: World, before: State, action: Action, after: State) -> Iterator[str]:
    """The step that executes with this action begins to read within its allowance: lowest <= begin <= start."""
    if action.name not in (*OUTPUTS, "execute") or not before.steps:
        return
    at = next((index for index, step in enumerate(before.steps) if step.executed == 0), None)
    if at is None or (action.name == "execute" and len(after.steps) <= at):
        return
    back = action.get("back", 0)
    for part in before.steps[at].parts:
        reads = world.rules.gather(world, _probe(len(before.requests)), (), part, back if isinstance(back, int) else 0)
        for miss in reads:
            if miss.reader == "target" and not part.lowest <= miss.low <= part.start:
                yield (
                    f"{request_name(part.request)}: a step reads from {miss.low}, outside its allowance from "
                    f"{part.lowest} to {part.start}"
                )
