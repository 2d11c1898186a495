"""The pipeline seen from outside the scheduler: what each dispatched, unprocessed step was told.

Belongs here: turning output objects into the model's `Step` and `Part` records, and keeping them true until their
output is processed. Everything is read from output objects and from counters before and after a pass.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from outlives.model.state import Part, Step

from .twin import parts_told

__all__ = ["Flight", "Ledger"]


class Flight(NamedTuple):
    """One dispatched step: the scheduler's own output object, and what is known of it."""

    output: Any
    finished: tuple[str, ...]
    """Requests that passes before this one reported finished, in outputs that never left."""
    step: Step


class Ledger:
    """The steps in flight, oldest first."""

    def __init__(self) -> None:
        self.flights: list[Flight] = []
        self.decoding: set[int] = set()
        """Requests of which a step of the present admission was dispatched that samples."""
        self._untold: list[str] = []
        self._keys: dict[str, tuple[str, ...]] = {}

    @property
    def steps(self) -> tuple[Step, ...]:
        """The model's record of the pipeline."""
        return tuple(flight.step for flight in self.flights)

    def in_flight(self, number: int) -> int:
        """Tokens of the request dispatched and not processed."""
        return sum(part.tokens for step in self.steps for part in step.parts if part.request == number)

    def rejected(self, at: int) -> dict[str, int]:
        """Per request of the step at that place, the drafts rejected since its dispatch."""
        return {f"r{part.request}": part.rejected for part in self.flights[at].step.parts}

    def hold_back(self, output: Any) -> None:
        """A pass that changed nothing: its step never leaves, so what it said of finished requests is kept."""
        self._untold += output.finished_req_ids

    def dispatch(self, output: Any, sampling: Callable[[str], bool], promised: Mapping[str, int]) -> Step:
        """A step leaves. `sampling` says whether a request samples in it; `promised` is by how much the pass raised
        its placeholders."""
        parts = []
        for told in parts_told(output):
            number = int(told.request.removeprefix("r"))
            sampled = int(sampling(told.request))
            if told.admitted:
                self.decoding.discard(number)
            lowest = told.start - sum(
                part.promised for step in self.steps for part in step.parts if part.request == number and part.live == 1
            )
            parts.append(
                Part(
                    request=number,
                    start=told.start,
                    tokens=told.tokens,
                    drafts=told.drafts,
                    sampled=sampled,
                    promised=promised.get(told.request, 0),
                    lowest=lowest,
                    first=int(told.admitted),
                )
            )
            if sampled == 1:
                self.decoding.add(number)
        for new in output.scheduled_new_reqs:
            self._keys[new.req_id] = tuple(feature.identifier for feature in new.mm_features)
        encode = tuple(
            self._keys[name][item] for name, items in output.scheduled_encoder_inputs.items() for item in items
        )
        step = Step(parts=tuple(parts), encode=encode, drop=tuple(output.free_encoder_mm_hashes))
        self.flights.append(Flight(output, tuple(self._untold), step))
        self._untold = []
        return step

    def mark_executed(self, at: int) -> None:
        """The worker has executed the step at that place."""
        flight = self.flights[at]
        self.flights[at] = flight._replace(step=flight.step._replace(executed=1))

    def orphan(self, running: Callable[[int], bool]) -> None:
        """Parts of requests that no longer run belong to an admission that is over."""
        for place, flight in enumerate(self.flights):
            if any(part.live == 1 and not running(part.request) for part in flight.step.parts):
                parts = tuple(
                    part if part.live == 0 or running(part.request) else part._replace(live=0)
                    for part in flight.step.parts
                )
                self.flights[place] = flight._replace(step=flight.step._replace(parts=parts))
        self.decoding = {number for number in self.decoding if running(number)}

    def shift(self, number: int, rejected: int) -> None:
        """Drafts of the request were rejected: later steps of the same admission truly begin so much lower."""
        for place, flight in enumerate(self.flights):
            mine = [part for part in flight.step.parts if part.request == number]
            if any(part.first == 1 for part in mine):
                return
            if mine:
                parts = tuple(
                    part._replace(rejected=part.rejected + rejected) if part.request == number else part
                    for part in flight.step.parts
                )
                self.flights[place] = flight._replace(step=flight.step._replace(parts=parts))
