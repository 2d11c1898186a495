"""The token strip: what lies where in a request's tokens after each step, as data that every writer draws.

Belongs here: the records, and how they follow from the states of a trace. How a strip looks is the writers'.

Positions are token positions; a range is `[low, high)`. Everything is read from the states and, for the windows of the
readers, from the worker's own rule, so that a strip shows what the model did and not what it should have done.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from outlives.model.lifetime import confirmed
from outlives.model.setup import Item, Setup, request_name
from outlives.model.state import ABSENT, FINISHED, Request, State, items_of
from outlives.model.world import World

from ..verdict import Step, Trace

__all__ = ["Strip", "StripItem", "Window", "strips_of"]

_EVERYWHERE = 1_000_000_000
"""Past every position of a run."""


class StripItem(NamedTuple):
    """One item of the request, after the step."""

    number: int
    start: int
    end: int
    key: str
    place: str
    """Where the book has its entry: `absent`, `held` (this request references it), `other` (only others reference it),
    `idle` (nobody does: it may be evicted), `evicted` (the worker is still to be told)."""
    on_shelf: bool
    """Whether the worker holds its encoder output."""
    marks: tuple[str, ...]
    """What this step did to it, of `planned`, `encoded`, `referenced`, `released`, `evicted`, `dropped`, `missed`."""


class Window(NamedTuple):
    """What a reader read in this step."""

    reader: str
    """`target` or `draft`."""
    low: int
    high: int
    missed: tuple[int, ...]
    """Numbers of the items of which it found nothing."""


class Strip(NamedTuple):
    """One request after one step."""

    step: int
    request: str
    status: str
    known: int
    """Tokens that exist: prompt and outputs so far."""
    computed: int
    confirmed: int
    """computed - placeholders: no rejection can take these back."""
    in_flight: int
    items: tuple[StripItem, ...]
    windows: tuple[Window, ...]

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        shown: dict[str, Any] = {name: getattr(self, name) for name in self._fields[:7]}
        shown["items"] = [{**item._asdict(), "marks": list(item.marks)} for item in self.items]
        shown["windows"] = [{**window._asdict(), "missed": list(window.missed)} for window in self.windows]
        return shown


def strips_of(trace: Trace, world: World | None) -> tuple[Strip, ...]:
    """A strip per step and request that has arrived, in the order of the steps; none for a model that is not ours.

    Without a world the windows are those of the reads that found nothing alone.
    """
    if not trace.steps or not isinstance(trace.steps[0].state, State):
        return ()
    return tuple(_strips(trace.steps, world))


def _strips(steps: Sequence[Step], world: World | None) -> Iterator[Strip]:
    known: dict[int, tuple[Item, ...]] = {}
    for number, step in enumerate(steps):
        state: State = step.state
        before: State = steps[number - 1].state if number else state
        for place, request in enumerate(state.requests):
            items = items_of(state.setup, request, place)
            # The items of later turns are forgotten when the request ends; here they stay.
            items = known[place] = items if len(items) >= len(known.get(place, ())) else known[place]
            if request.status == ABSENT and before.requests[place].status == ABSENT:
                continue
            yield _strip(number, place, items, before, state, world if step.refused is None else None, _back(step))


def _strip(
    number: int, place: int, items: tuple[Item, ...], before: State, after: State, world: World | None, back: int
) -> Strip:
    request = after.requests[place]
    counters = request.counters
    over = request.status in (ABSENT, FINISHED)
    windows = tuple(_windows(place, before, after, world, back)) if before is not after else ()
    missed = {each for window in windows for each in window.missed}
    return Strip(
        step=number,
        request=request_name(place),
        status=request.status,
        known=counters.known,
        computed=0 if over else counters.computed,
        confirmed=0 if over else confirmed(counters),
        in_flight=0 if over else counters.in_flight,
        items=tuple(
            StripItem(
                number=index,
                start=item.start,
                end=item.end,
                key=item.key,
                place=_place(item.key, index, place, request, after),
                on_shelf=item.key in after.shelf,
                marks=tuple(_marks(item.key, index, place, before, after, index in missed)),
            )
            for index, item in enumerate(items)
        ),
        windows=windows,
    )


def _back(step: Step) -> int:
    """How far the reader of the step began below its start: an argument where readers may begin anywhere."""
    back = 0 if step.action is None else step.action.get("back", 0)
    return back if isinstance(back, int) else 0


def _place(key: str, index: int, number: int, request: Request, state: State) -> str:
    if index in request.references:
        return "held"
    entry = next((each for each in state.book.entries if each.key == key), None)
    if entry is not None:
        return "held" if number in entry.holders else "other" if entry.holders else "idle"
    return "evicted" if key in state.book.evicted else "absent"


def _marks(key: str, index: int, number: int, before: State, after: State, missed: bool) -> Iterator[str]:
    if before is after:
        return
    had, has = before.requests[number].references, after.requests[number].references
    known_before, known_after = ({each.key for each in state.book.entries} for state in (before, after))
    left = {told for step in after.steps[len(before.steps) - _processed(before, after) :] for told in step.encode}
    if key in left:
        yield "planned"
    if index in has and index not in had:
        yield "referenced"
    if key in after.shelf and key not in before.shelf:
        yield "encoded"
    if index in had and index not in has:
        yield "released"
    if key in known_before and key not in known_after:
        yield "evicted"
    if key in before.shelf and key not in after.shelf:
        yield "dropped"
    if missed:
        yield "missed"


def _processed(before: State, after: State) -> int:
    """How many steps left the pipeline by having their output processed: the oldest ones that are gone."""
    for gone in range(len(before.steps) + 1):
        rest = before.steps[gone:]
        if len(rest) <= len(after.steps) and all(
            _same_dispatch(old, new) for old, new in zip(rest, after.steps, strict=False)
        ):
            return gone
    return len(before.steps)


def _same_dispatch(old: Any, new: Any) -> bool:
    """The same engine step, whatever became of it since."""
    told = [[(part.request, part.start, part.tokens) for part in step.parts] for step in (old, new)]
    return told[0] == told[1] and old.encode == new.encode and old.drop == new.drop


def _windows(number: int, before: State, after: State, world: World | None, back: int) -> Iterator[Window]:
    """What the readers of this request read, where this step executed one of its parts."""
    found = [miss for miss in after.misses if miss.request == number]
    executed = _executed(before, after)
    readers: dict[str, tuple[int, int]] = {}
    if world is not None and executed is not None:
        for part in before.steps[executed].parts:
            if part.request == number:
                # One item that lies everywhere and is not on the shelf: the rule then tells where it looked.
                whole = Item(0, _EVERYWHERE, "", 0)
                asked = before.setup.requests[number]._replace(items=(whole,))
                requests = (*before.setup.requests[:number], asked, *before.setup.requests[number + 1 :])
                setup: Setup = before.setup._replace(requests=requests)
                for miss in world.rules.gather(world, setup, (), part._replace(extra=()), back):
                    readers[miss.reader] = (miss.low, miss.high)
    for miss in found:  # what really happened goes before: a reader may have begun lower
        readers[miss.reader] = (miss.low, miss.high)
    for reader, (low, high) in readers.items():
        missed = tuple(miss.item for miss in found if miss.reader == reader)
        yield Window(reader, low, high, missed)


def _executed(before: State, after: State) -> int | None:
    """The step of the pipeline that the worker executed between the two states."""
    first = next((at for at, step in enumerate(before.steps) if step.executed == 0), None)
    if first is None:
        return None
    if after.misses:
        return first
    gone = _processed(before, after)
    if first < gone:
        return first
    return first if after.steps[first - gone].executed == 1 else None
