"""The pipeline seen from outside the scheduler: what each dispatched, unprocessed step was told.

Belongs here: turning what steps say into the model's `Step` and `Part` records, and keeping them true until their
output is processed.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from outlives.model.setup import Item
from outlives.model.state import Part, Step

from .twin import StepTold, told

__all__ = ["Flight", "Ledger"]


class Flight(NamedTuple):
    """One dispatched step."""

    output: Any
    """The scheduler's own output object, which it wants back with the results."""
    told: StepTold
    step: Step


class Ledger:
    """The steps in flight, oldest first. `keys` are those of each request's items; `given` are the items that it had
    from the start."""

    def __init__(self, given: tuple[int, ...], *, encoder_decoder: bool = False) -> None:
        self.flights: list[Flight] = []
        self.decoding: set[int] = set()
        """Requests whose last dispatched step of the present admission samples."""
        self.held: set[int] = set()
        """Sessions that went on with the blocks they hold, and wait: nothing is loaded when they are admitted."""
        self._given = given
        self._encoder_decoder = encoder_decoder
        self._untold: tuple[int, ...] = ()

    @property
    def steps(self) -> tuple[Step, ...]:
        """The model's record of the pipeline."""
        return tuple(flight.step for flight in self.flights)

    def in_flight(self, number: int) -> int:
        """Tokens of the request dispatched and not processed."""
        return sum(part.tokens for step in self.steps for part in step.parts if part.request == number)

    def computes_anew(self, number: int, confirmed: int) -> bool:
        """Whether a live step computes tokens of the request again that were confirmed."""
        parts = [part for step in self.steps for part in step.parts if part.request == number and part.live == 1]
        return any(part.start < confirmed for part in parts)

    def unexecuted(self) -> int | None:
        """The place of the oldest step that has not executed."""
        return next((place for place, flight in enumerate(self.flights) if flight.step.executed == 0), None)

    def rejected(self, at: int) -> dict[int, int]:
        """Per request of the step at that place, the drafts rejected since its dispatch."""
        return {part.request: part.rejected for part in self.flights[at].step.parts}

    def hold_back(self, output: Any) -> None:
        """A pass that changed nothing: its step never leaves, so what it said of finished requests is kept."""
        self._untold += told(output).finished

    def dispatch(
        self,
        output: Any,
        sampling: Callable[[int], bool],
        promised: Mapping[int, int],
        items: Callable[[int], tuple[Item, ...]],
    ) -> None:
        """A step leaves. `sampling` says whether a request samples in it; `promised` is by how much the pass raised
        its placeholders; `items` are those that it has now."""
        says = told(output)
        says = says._replace(finished=self._untold + says.finished)
        self._untold = ()
        parts = []
        for part in says.parts:
            number = part.request
            sampled = int(sampling(number))
            first = int(part.admitted)
            if part.admitted:
                self.decoding.discard(number)
                first = 2 if number in self.held else 1
                self.held.discard(number)
            (self.decoding.add if sampled == 1 else self.decoding.discard)(number)
            live = sum(
                each.promised for step in self.steps for each in step.parts if each.request == number and each.live == 1
            )
            parts.append(
                Part(
                    request=number,
                    start=part.start,
                    tokens=part.tokens,
                    drafts=part.drafts,
                    sampled=sampled,
                    promised=promised.get(number, 0),
                    lowest=part.start - live,
                    first=first,
                    extra=items(number)[self._given[number] :],
                )
            )
        drop = tuple(sorted(set(says.drop))) if self._encoder_decoder else says.drop
        encode = tuple(items(number)[item].key for number, item in says.encode)
        self.flights.append(Flight(output, says, Step(parts=tuple(parts), encode=encode, drop=drop)))

    def _change(self, place: int, **changes: Any) -> None:
        flight = self.flights[place]
        self.flights[place] = flight._replace(step=flight.step._replace(**changes))

    def mark_executed(self, place: int) -> bool:
        """The worker has executed the step at that place; whether it then empties its shelf."""
        clear = self.flights[place].step.clear == 1
        self._change(place, executed=1, clear=0)
        return clear

    def clear_after_last(self) -> bool:
        """The worker is to empty its shelf after the steps dispatched so far; False: they all have executed."""
        waiting = [place for place, flight in enumerate(self.flights) if flight.step.executed == 0]
        if waiting:
            self._change(waiting[-1], clear=1)
        return bool(waiting)

    def orphan(self, running: Callable[[int], bool]) -> None:
        """Parts of requests that no longer run belong to an admission that is over."""
        for place, flight in enumerate(self.flights):
            if any(part.live == 1 and not running(part.request) for part in flight.step.parts):
                parts = tuple(
                    part if part.live == 0 or running(part.request) else part._replace(live=0)
                    for part in flight.step.parts
                )
                self._change(place, parts=parts)
        self.decoding = {number for number in self.decoding if running(number)}

    def shift(self, number: int, rejected: int) -> None:
        """Drafts of the request were rejected: later steps of the same admission truly begin so much lower."""
        for place, flight in enumerate(self.flights):
            mine = [part for part in flight.step.parts if part.request == number]
            if any(part.first != 0 for part in mine):
                return
            if mine:
                parts = tuple(
                    part._replace(rejected=part.rejected + rejected) if part.request == number else part
                    for part in flight.step.parts
                )
                self._change(place, parts=parts)
