"""Scopes next to a given one: what the tests of the catalogue hold its smallest scopes against."""

from collections.abc import Iterator

from outlives.model.setup import RARE_ROUTES, RequestSetup, Setup

__all__ = ["lowered"]

_LEAST = {"slots": 1, "budget": 1, "depth": 1}
_NUMBERS = (
    "slots",
    "budget",
    "encoder_budget",
    "chunk_cap",
    "drafts",
    "look_ahead",
    "depth",
    "whole_items",
    "strangers",
)


def lowered(setup: Setup) -> Iterator[Setup]:
    """Every sensible setup with one number one less, one request, item, turn or rare route less; and with a slot less
    besides, where that makes it sensible or still is."""
    for each in _lowered(setup):
        for fewer in (each, each._replace(slots=each.slots - 1)):
            if fewer.slots > 0 and _fits(fewer):
                yield fewer


def _lowered(setup: Setup) -> Iterator[Setup]:
    for name in (*_NUMBERS, "by_priority", "synchronous"):
        if getattr(setup, name) > _LEAST.get(name, 0):
            yield setup._replace(**{name: getattr(setup, name) - 1})
    for at, asked in enumerate(setup.requests):
        others = setup.requests[:at], setup.requests[at + 1 :]
        if len(setup.requests) > 1:
            yield setup._replace(requests=others[0] + others[1])
        for less in _asks_less(asked):
            yield setup._replace(requests=(*others[0], less, *others[1]))
    for route in RARE_ROUTES:
        if route not in setup.left_out:
            yield setup._replace(
                left_out=tuple(each for each in RARE_ROUTES if each in setup.left_out or each == route)
            )


def _asks_less(asked: RequestSetup) -> Iterator[RequestSetup]:
    yield asked._replace(outputs=asked.outputs - 1)
    yield asked._replace(prompt=asked.prompt - 1)
    if asked.turns:
        last = asked.turns[-1]
        yield asked._replace(turns=asked.turns[:-1])
        yield asked._replace(turns=(*asked.turns[:-1], last._replace(prompt=last.prompt - 1)))
        yield asked._replace(turns=(*asked.turns[:-1], last._replace(outputs=last.outputs - 1)))
    for at, item in enumerate(asked.items):
        before, after = asked.items[:at], asked.items[at + 1 :]
        nearer = tuple(each._replace(start=each.start - 1) for each in after)
        shorter = item._replace(length=item.length - 1, size=min(item.size, item.length - 1))
        yield asked._replace(items=before + after)
        yield asked._replace(items=(*before, shorter, *after))
        yield asked._replace(items=(*before, shorter, *nearer), prompt=asked.prompt - 1)
        yield asked._replace(items=(*before, item._replace(size=item.size - 1), *after))
        yield asked._replace(items=(*before, item._replace(start=item.start - 1), *nearer))
        yield asked._replace(items=(*before, item._replace(start=item.start - 1), *nearer), prompt=asked.prompt - 1)


def _fits(setup: Setup) -> bool:
    for asked in setup.requests:
        ends = [0, *(item.end for item in asked.items)]
        if asked.prompt < max(1, ends[-1]) or asked.outputs < 1:
            return False
        if any(item.start < end for item, end in zip(asked.items, ends, strict=False)):
            return False
        if any(not 1 <= item.size <= setup.slots or item.length < 1 for item in asked.items):
            return False
        if any(turn.prompt < 1 or turn.outputs < 1 for turn in asked.turns):
            return False
    return True
