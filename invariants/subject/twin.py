"""The worker's twin: what a worker would hold and read, from nothing but what the scheduler's output objects say.

Theory of operation
-------------------
A step travels as a message, so what it says is written down when it leaves (`StepTold`): later changes of the
scheduler's objects do not reach the worker. Executing one: forget the requests that are told finished; take over the
items of requests that are new or begin anew; drop the told keys; encode the told items; gather for the target every
item that overlaps [start, start + n), then for the drafter the same window moved by the look-ahead. An item that starts
at or after start + n is only the drafter's look-ahead: its absence is tolerated from 0.24.0 on.

The window begins where the scheduler said (the target of the V1 runner from 0.19 on, both readers of the V2 runner from
0.27 on), or lower by the drafts rejected since (`corrected`: the V1 runner's drafter from 0.19 on, and its target
before). Encoder-decoder models read all their items in the step that starts at 0, and none later.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from outlives.model.setup import Item
from outlives.model.state import Miss

__all__ = ["PartTold", "StepTold", "WorkerTwin", "told"]


class PartTold(NamedTuple):
    """What is said of one scheduled request."""

    request: int
    start: int
    tokens: int
    drafts: int
    admitted: bool
    """It was in the list of new requests, or among the resumed ones."""


class StepTold(NamedTuple):
    """What one output object says to the worker."""

    parts: tuple[PartTold, ...]
    encode: tuple[tuple[int, int], ...]
    """Request and number of the item."""
    drop: tuple[str, ...]
    finished: tuple[int, ...]
    items: tuple[tuple[int, tuple[Item, ...]], ...]
    """The items of each request in the list of new requests."""


def request_of(name: str) -> int:
    """The number in a request's id: `r3` is 3."""
    return int(name.removeprefix("r"))


def items_told(features: Iterable[Any]) -> tuple[Item, ...]:
    """Multimodal features as items."""
    return tuple(
        Item(
            start=feature.mm_position.offset,
            length=feature.mm_position.length,
            key=feature.identifier,
            size=feature.mm_position.length,
        )
        for feature in features
    )


def told(output: Any) -> StepTold:
    """What the output object says, written down."""
    starts: dict[str, int] = {}
    admitted: set[str] = set()
    for new in output.scheduled_new_reqs:
        starts[new.req_id] = new.num_computed_tokens
        admitted.add(new.req_id)
    cached = output.scheduled_cached_reqs
    starts.update(zip(cached.req_ids, cached.num_computed_tokens, strict=True))
    admitted.update(cached.resumed_req_ids)
    drafts = output.scheduled_spec_decode_tokens
    return StepTold(
        parts=tuple(
            PartTold(request_of(name), starts[name], tokens, len(drafts.get(name, ())), name in admitted)
            for name, tokens in output.num_scheduled_tokens.items()
        ),
        encode=tuple(
            (request_of(name), item) for name, items in output.scheduled_encoder_inputs.items() for item in items
        ),
        drop=tuple(output.free_encoder_mm_hashes),
        finished=tuple(sorted(request_of(name) for name in output.finished_req_ids)),
        items=tuple((request_of(new.req_id), items_told(new.mm_features)) for new in output.scheduled_new_reqs),
    )


class WorkerTwin:
    """One worker. `look_ahead` is how far its drafter reads past its window; 0: no drafter reads items."""

    def __init__(
        self, look_ahead: int, tolerant: bool, *, encoder_decoder: bool = False, corrected: Sequence[str] = ()
    ) -> None:
        self.look_ahead = look_ahead
        self.tolerant = tolerant
        self.encoder_decoder = encoder_decoder
        self.corrected = frozenset(corrected)
        """Which readers (`target`, `draft`) begin at the start less the drafts rejected since."""
        self.shelf: set[str] = set()
        self._items: dict[int, tuple[Item, ...]] = {}

    def execute(self, step: StepTold, rejected: Mapping[int, int]) -> list[Miss]:
        """Execute the step. `rejected` counts, per request, the drafts rejected in earlier steps of its admission that
        were in flight at the dispatch. Raises KeyError where it speaks of a request that the worker does not know."""
        for number in step.finished:
            self._items.pop(number, None)
        self._items.update(step.items)
        self.shelf.difference_update(step.drop)
        self.shelf.update(self._items[number][item].key for number, item in step.encode)
        misses: list[Miss] = []
        for part in step.parts:
            back = rejected.get(part.request, 0)
            if self.encoder_decoder:
                misses += self._cross(part)
                continue
            misses += self._gather(part, "target", 0, back)
            if self.look_ahead > 0:
                misses += self._gather(part, "draft", self.look_ahead, back)
        return misses

    def _gather(self, part: PartTold, reader: str, ahead: int, back: int) -> list[Miss]:
        begin = part.start - (back if reader in self.corrected else 0)
        low, high = begin + ahead, begin + ahead + part.tokens
        tolerated = begin + part.tokens if self.tolerant and ahead else high
        return self._absent(part, reader, low, high, lambda item: item.end > low and item.start < min(high, tolerated))

    def _cross(self, part: PartTold) -> list[Miss]:
        if part.start > 0:
            return []
        return self._absent(part, "target", 0, part.tokens, lambda _: True)

    def _absent(self, part: PartTold, reader: str, low: int, high: int, reads: Callable[[Item], bool]) -> list[Miss]:
        return [
            Miss(part.request, index, reader, low, high)
            for index, item in enumerate(self._items[part.request])
            if item.key not in self.shelf and reads(item)
        ]
