"""States back from their description: what a file recorded of a scheduler that is not here.

Belongs here: the inverse of `outlives.model.describe`, as far as a report needs it. It is for showing, never for going
on from: what the description leaves out (`decoding`, promises of a part) has its default.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from outlives.model.errors import BadTrace
from outlives.model.lifetime import Counters
from outlives.model.setup import Item, Setup, request_number
from outlives.model.state import Book, Entry, Miss, Part, Request, State, Step
from outlives.model.trace import Recorded, setup_from_plain

from .verdict import Step as TraceStep
from .verdict import Trace

__all__ = ["observed_trace", "state_of"]

_PART: Final = re.compile(r"(r\d+)\[(-?\d+),(-?\d+)\)(?: with (\d+) drafts)?(?:, truly from (-?\d+))?( \(stale\))?")
_MISS: Final = re.compile(r"(r\d+) item(\d+) (\w+) \[(-?\d+),(-?\d+)\)")
_REFERENCE: Final = re.compile(r"item(\d+):")


def observed_trace(recorded: Recorded) -> Trace | None:
    """The recorded states as a trace; None where they are not described as ours are."""
    try:
        setup = setup_from_plain(recorded.meta.get("setup"), recorded.where)
        extras: dict[int, tuple[Item, ...]] = {}
        steps = tuple(
            TraceStep(step.action, state_of(setup, step.values, extras), step.refused) for step in recorded.steps
        )
    except (BadTrace, LookupError, TypeError, ValueError, AttributeError):
        return None
    fair_from = recorded.shrink.get("fair_from")
    shrink = {"fair_from": fair_from} if type(fair_from) is int else {}
    return Trace(
        steps=steps, property=recorded.property_name, why=recorded.why, shortest=recorded.shortest, shrink=shrink
    )


def state_of(setup: Setup, values: Mapping[str, Any], extras: dict[int, tuple[Item, ...]] | None = None) -> State:
    """The state of this description. `extras` are the items of later turns by request, as the states before it showed
    them; those of a turn that has just begun are added. Raises `LookupError`, `TypeError` or `ValueError` where the
    description is none."""
    count = len(setup.requests)
    book = values["book"]
    extras = {} if extras is None else extras
    requests = tuple(_request(setup, number, values[f"r{number}"], extras) for number in range(count))
    return State(
        setup=setup,
        requests=requests,
        running=tuple(number for number in range(count) if requests[number].status == "running"),
        waiting=tuple(number for number in range(count) if requests[number].status == "waiting"),
        book=Book(
            entries=_entries(setup, book, count),
            idle=tuple(book["idle"]),
            evicted=tuple(book["evicted"]),
            free=book["free"],
            reclaimable=book["reclaimable"],
            strangers=book.get("strangers", 0),
            due=tuple(book.get("due", ())),
        ),
        steps=tuple(_step(text, count) for text in values["steps"]),
        shelf=tuple(values["shelf"]),
        misses=tuple(_miss(text, count) for text in values["misses"]),
    )


def _request(setup: Setup, number: int, view: Mapping[str, Any], extras: dict[int, tuple[Item, ...]]) -> Request:
    begun = setup.requests[number].turns[: view.get("turn", 0)]
    have = extras.get(number, ())
    if begun and len(have) < sum(len(turn.items) for turn in begun):
        base = view["known"] - begun[-1].prompt  # where the tokens of the turn begin that has just begun
        extras[number] = have + tuple(item._replace(start=base + item.start) for item in begun[-1].items)
    counters = Counters(
        computed=view["computed"],
        placeholders=view["placeholders"],
        in_flight=view["in_flight"],
        stale=view["stale"],
        known=view["known"],
    )
    references = tuple(sorted(int(found.group(1)) for text in view["references"] if (found := _REFERENCE.match(text))))
    return Request(
        status=view["status"],
        counters=counters,
        drafts=view["drafts"],
        references=references,
        drop=view.get("drop", 0),
        frames=view.get("discard", 0),
        turn=view.get("turn", 0),
        lost=view.get("lost", 0),
        extra=extras.get(number, ()) if begun else (),
    )


def _number(name: str, count: int) -> int:
    number = request_number(name, count)
    if number is None:
        raise ValueError(name)
    return number


def _entries(setup: Setup, book: Mapping[str, Any], count: int) -> tuple[Entry, ...]:
    sizes = {item.key: item.size for asked in setup.requests for item in asked.items}
    sizes |= {item.key: item.size for asked in setup.requests for turn in asked.turns for item in turn.items}
    entries = [Entry(key, sizes.get(key, 1), ()) for key in book["idle"]]
    for text in book["held"]:
        key, _, holders = text.partition("<-")
        entries.append(Entry(key, sizes.get(key, 1), tuple(_number(name, count) for name in holders.split("+"))))
    return tuple(sorted(entries))


def _step(text: str, count: int) -> Step:
    parts = []
    for found in _PART.finditer(text.partition(";")[0]):
        name, start, end, drafts, truly, stale = found.groups()
        low = int(start)
        parts.append(
            Part(
                request=_number(name, count),
                start=low,
                tokens=int(end) - low,
                drafts=int(drafts or 0),
                sampled=0,
                promised=0,
                lowest=low,
                rejected=0 if truly is None else low - int(truly),
                live=0 if stale else 1,
            )
        )
    told = [part.strip() for part in text.split(";")[1:]]
    keys = {word: part[len(word) :].split() for part in told for word in ("encode", "drop") if part.startswith(word)}
    return Step(
        parts=tuple(parts),
        encode=tuple(keys.get("encode", ())),
        drop=tuple(keys.get("drop", ())),
        executed=int("executed" in told),
        clear=int("then clear the shelf" in told),
    )


def _miss(text: str, count: int) -> Miss:
    found = _MISS.fullmatch(text)
    if found is None:
        raise ValueError(text)
    name, item, reader, low, high = found.groups()
    return Miss(_number(name, count), int(item), reader, int(low), int(high))
