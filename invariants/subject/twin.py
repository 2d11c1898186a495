"""The worker's twin: what a worker would hold and read, from nothing but the scheduler's output objects.

Theory of operation
-------------------
One step: forget the requests that are told finished; take over what is told of each scheduled request (its items, and
where the scheduler says it starts); drop the told keys; encode the told items; gather for the target every item that
overlaps [start, start + n), then for the drafter the same window moved by the look-ahead. An item that starts at or
after start + n is only the drafter's look-ahead: its absence is tolerated from 0.24.0 on.

The window begins where the scheduler said (the target of the V1 runner from 0.19 on, both readers of the V2 runner from
0.27 on), or less by the drafts rejected since (`corrected`: the V1 runner's drafter from 0.19 on, and its target
before).
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from outlives.model.state import Miss

__all__ = ["Told", "WorkerTwin"]


class Told(NamedTuple):
    """What one scheduled request's part of an output object says to the worker."""

    request: str
    start: int
    tokens: int
    drafts: int
    admitted: bool
    """It was in the list of new requests, or among the resumed ones."""


def parts_told(output: Any) -> list[Told]:
    """The parts of an output object, in the order of its token counts."""
    starts: dict[str, int] = {}
    admitted: set[str] = set()
    for new in output.scheduled_new_reqs:
        starts[new.req_id] = new.num_computed_tokens
        admitted.add(new.req_id)
    cached = output.scheduled_cached_reqs
    starts.update(zip(cached.req_ids, cached.num_computed_tokens, strict=True))
    admitted.update(cached.resumed_req_ids)
    return [
        Told(name, starts[name], tokens, len(output.scheduled_spec_decode_tokens.get(name, ())), name in admitted)
        for name, tokens in output.num_scheduled_tokens.items()
    ]


class _Feature(NamedTuple):
    key: str
    start: int
    end: int


class WorkerTwin:
    """One worker. `look_ahead` is how far its drafter reads past its window; 0: there is no drafter that reads items."""

    def __init__(self, look_ahead: int, tolerant: bool, corrected: Sequence[str] = ()) -> None:
        self.look_ahead = look_ahead
        self.tolerant = tolerant
        self.corrected = frozenset(corrected)
        """Which readers (`target`, `draft`) begin at the start less the drafts rejected since."""
        self.shelf: set[str] = set()
        self._features: dict[str, tuple[_Feature, ...]] = {}

    def execute(self, output: Any, finished: Sequence[str], rejected: Mapping[str, int]) -> list[Miss]:
        """Execute the step. `finished` are requests told finished by passes whose step never left; `rejected` counts,
        per request, the drafts rejected in earlier steps of its admission that were in flight at the dispatch.

        Raises KeyError where the output speaks of a request that the worker was never told of.
        """
        for name in (*finished, *output.finished_req_ids):
            self._features.pop(name, None)
        for new in output.scheduled_new_reqs:
            self._features[new.req_id] = tuple(
                _Feature(
                    feature.identifier,
                    feature.mm_position.offset,
                    feature.mm_position.offset + feature.mm_position.length,
                )
                for feature in new.mm_features
            )
        self.shelf.difference_update(output.free_encoder_mm_hashes)
        for name, items in output.scheduled_encoder_inputs.items():
            features = self._features[name]
            self.shelf.update(features[item].key for item in items)
        misses = []
        for part in parts_told(output):
            back = rejected.get(part.request, 0)
            misses += self._gather(part, "target", 0, back)
            if self.look_ahead > 0:
                misses += self._gather(part, "draft", self.look_ahead, back)
        return misses

    def _gather(self, part: Told, reader: str, ahead: int, back: int) -> list[Miss]:
        begin = part.start - (back if reader in self.corrected else 0)
        low, high = begin + ahead, begin + ahead + part.tokens
        number = int(part.request.removeprefix("r"))
        return [
            Miss(number, index, reader, low, high)
            for index, feature in enumerate(self._features[part.request])
            if feature.start < high
            and feature.end > low
            and feature.key not in self.shelf
            and not (self.tolerant and ahead and feature.start >= begin + part.tokens)
        ]
