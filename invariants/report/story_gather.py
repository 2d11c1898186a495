"""The story of a read that found nothing: was the entry never encoded, or released, evicted and dropped, and when.

Belongs here: following one key from its encode to the read that missed it.
"""

from outlives.model.setup import Item, request_name
from outlives.model.state import Miss, Part

from .story_cause import GateView, eviction_words, gate_view, not_told, release_rule, release_words, short_of
from .telling import Event, Story, confirmed_words, count_of, item_words, window
from .witness import Call, Flight, Witness

__all__ = ["tell_gather"]


def tell_gather(seen: Witness) -> Story:
    """The story of the first read that missed; further ones are named at the end."""
    miss = seen.end.misses[0]
    return _Telling(seen, miss).story()


class _Telling:
    """One miss, and what is known about its key."""

    def __init__(self, seen: Witness, miss: Miss) -> None:
        self.seen = seen
        self.miss = miss
        self.item: Item = seen.item(miss.request, miss.item)
        self.read_at = seen.moments[-1].at
        self.flight = next(each for each in reversed(seen.flights) if each.executed_at == self.read_at)
        self.part: Part = next(part for part in self.flight.step.parts if part.request == miss.request)
        self.events: list[Event] = []

    def story(self) -> Story:
        shelved = [flight for flight in self.seen.flights if self._encodes(flight)]
        reason = self._lost(shelved[-1]) if shelved else self._never_encoded()
        self._read()
        owner = item_words(self.miss.request, self.miss.item, self.item)
        low, high = self.miss.low, self.miss.high
        needed = (
            f"the {self._reader()} read {window(low, high)} at step {self.read_at} and needed "
            f"{count_of(self._overlap(), 'position')} of it"
        )
        in_order = sorted(self.events, key=lambda event: event.step)
        return Story(headline=f"{owner} {reason}; {needed}.", events=tuple(in_order))

    def _reader(self) -> str:
        return "drafter" if self.miss.reader == "draft" else self.miss.reader

    def _overlap(self) -> int:
        return min(self.item.end, self.miss.high) - max(self.item.start, self.miss.low)

    def _encodes(self, flight: Flight) -> bool:
        executed = flight.executed_at is not None and flight.executed_at <= self.read_at
        return executed and self.item.key in flight.step.encode

    def _tell(self, kind: str, step: int, text: str, **numbers: int | str) -> None:
        self.events.append(Event(kind=kind, step=step, text=text, numbers=numbers))

    # --- never encoded --------------------------------------------------------------------------------------------

    def _never_encoded(self) -> str:
        """Tell of each pass that could have encoded it; the clause for the headline."""
        seen, key, number = self.seen, self.item.key, self.miss.request
        withheld = self._withheld(0)
        view = gate_view(seen, self.flight.left_at, number, self.miss.item)
        start, tokens = self.part.start, self.part.tokens
        self._tell(
            "not-encoded",
            self.flight.left_at,
            f"step {self.flight.left_at} dispatched {window(start, start + tokens)} of "
            f"{request_name(number)}: {view.words}",
            computed=start,
            tokens=tokens,
            item_start=self.item.start,
            item_end=self.item.end,
        )
        if not withheld and view.why == "planned":  # an encoder-decoder model's: nothing enters the book by a rule
            lost = not_told(seen, self.flight.left_at, key, self.flight.step)
            withheld = (
                f"step {self.flight.left_at} planned {key} for {request_name(number)}, but {lost}" if lost else ""
            )
        if withheld:
            return f"was never encoded: {withheld}"
        if view.why in ("hit", "same-key"):
            return f"was never encoded, though the book has it since step {self._entered()}"
        late = [flight for flight in seen.flights if key in flight.step.encode]
        reason = f"at step {self.flight.left_at} {_short(view, start, tokens)}"
        if late:
            return f"was not encoded in time: {reason} (its encode left only at step {late[0].left_at})"
        return f"was never encoded: {reason}"

    def _withheld(self, since: int) -> str:
        """Tell of each encode that was planned after step `since` and not told to the worker; the last one's clause."""
        clause = ""
        for call in self.seen.calls_to("allocate"):
            if call.arguments[2] != self.item.key or not since < call.at <= self.flight.left_at:
                continue
            step = next(flight.step for flight in self.seen.flights if flight.left_at == call.at)
            lost = not_told(self.seen, call.at, self.item.key, step)
            if lost:
                clause = f"step {call.at} planned {self.item.key} for {request_name(call.arguments[4])}, but {lost}"
                self._tell("not-encoded", call.at, clause)
        return clause

    def _entered(self) -> int:
        calls = [call.at for call in self.seen.calls_to("allocate") if call.arguments[2] == self.item.key]
        return calls[-1] if calls else self.flight.left_at

    # --- encoded once, and gone ------------------------------------------------------------------------------------

    def _lost(self, encoded: Flight) -> str:
        """Tell of the encode, the releases, the eviction, the notice; the clause for the headline."""
        seen, key = self.seen, self.item.key
        executed = encoded.executed_at or 0
        self._tell(
            "planned",
            encoded.left_at,
            f"step {encoded.left_at} planned {key} for item{self.miss.item}, and step {executed} encoded it",
        )
        releases = self._releases(encoded.left_at)
        for call in releases:
            self._release(call)
        dropped = self._dropped_at(executed)
        self._eviction(encoded.left_at)
        notice = next((each for each in seen.flights if each.left_at > encoded.left_at and key in each.step.drop), None)
        if notice is not None:
            executes = f", and took effect when it executed at step {notice.executed_at}" if notice.executed_at else ""
            self._tell("announced", notice.left_at, f"the step that left at step {notice.left_at} told the worker to "
                       f"drop {key}{executes}")  # fmt: skip
        reset = self._cleared(encoded.left_at, dropped)
        clause = f"the reset of the encoder cache at step {reset} took it from the worker" if reset else ""
        if not clause and dropped is not None and (notice is None or notice.executed_at != dropped):
            clause = f"the worker lost it at step {dropped}, ahead of the notice (A1 relaxed)"
            self._tell("dropped", dropped, clause)
        clause = self._withheld(encoded.left_at) or clause
        at, start = self.flight.left_at, self.part.start
        view = gate_view(seen, at, self.miss.request, self.miss.item)
        dispatched = f"{window(start, start + self.part.tokens)} of {request_name(self.miss.request)}"
        self._tell("not-encoded", at, f"step {at} dispatched {dispatched}: {view.words}")
        if view.why == "not-looked-at-again":
            clause = f"at step {at} {view.words}"
        if reset and not releases:
            return f"was taken from the worker by the reset of the encoder cache at step {reset}"
        released = self._released_words(releases)
        return f"{released}, and {clause}" if clause else released

    def _cleared(self, since: int, dropped: int | None) -> int:
        """Tell of the resets of the encoder cache since the encode; the step of the one that took the key, or 0."""
        reset = 0
        for moment in self.seen.moments:
            if moment.action.name != "reset_encoder_cache" or moment.at < since:
                continue
            entry = next((each for each in moment.before.book.entries if each.key == self.item.key), None)
            held = " and ".join(request_name(holder) for holder in entry.holders) if entry is not None else ""
            referenced = f", though {held} referenced it" if held else ""
            self._tell("cleared", moment.at, f"step {moment.at}, {moment.action}, emptied the book{referenced}")
            if dropped is None or dropped < moment.at:
                continue
            reset = moment.at
            if dropped == moment.at:
                text = (
                    f"step {dropped}, {moment.action}, emptied the shelf at once, as no step had to execute before it"
                )
            else:
                text = (
                    f"step {dropped}, {self.seen.action(dropped)}, emptied the shelf after the last step from before it"
                )
            self._tell("cleared", dropped, text)
        return reset

    def _releases(self, since: int) -> list[Call]:
        """The calls by which a reference to the key went, since it was encoded."""
        found = []
        for call in self.seen.calls_to("release"):
            request, number, item = call.arguments[3:6]
            mine = self.seen.item(number, item).key == self.item.key
            if mine and since <= call.at and item in request.references and item not in call.result[1].references:
                found.append(call)
        return found

    def _release(self, call: Call) -> None:
        number, item = call.arguments[4:6]
        short = short_of(call, self.seen.item(number, item).end)
        text = f"step {call.at}, {self.seen.action(call.at)}, released it for {request_name(number)} "
        text += release_words(self.seen, call)
        if release_rule(self.seen, call) == "guard":
            text += f"; {confirmed_words(call.arguments[3].counters)}"
            text += f", {count_of(short, 'position')} short of its end" if short > 0 else ", so all of it was confirmed"
        counters = call.arguments[3].counters
        self._tell("released", call.at, text, computed=counters.computed, placeholders=counters.placeholders,
                   in_flight=counters.in_flight, end=self.seen.item(number, item).end, short=max(0, short))  # fmt: skip

    def _eviction(self, since: int) -> None:
        for call in self.seen.calls_to("evict_oldest"):
            if call.at >= since and call.arguments[1].idle[:1] == (self.item.key,):
                words = eviction_words(self.seen, call.at, self.item.key)
                self._tell("evicted", call.at, f"{self.item.key} was idle and was evicted {words}")

    def _dropped_at(self, since: int) -> int | None:
        """The step at which the key left the worker's shelf."""
        for moment in self.seen.moments:
            if moment.at > since and self.item.key in moment.before.shelf and self.item.key not in moment.after.shelf:
                return moment.at
        return None

    def _released_words(self, releases: list[Call]) -> str:
        mine = [call for call in releases if call.arguments[4] == self.miss.request] or releases
        if not mine:
            return "was dropped although nothing released it"
        call = mine[-1]
        rule = release_rule(self.seen, call)
        if rule != "guard":
            return f"was released at step {call.at} by {rule}"
        words = release_words(self.seen, call)
        short = short_of(call, self.item.end)
        how = f", {count_of(short, 'position')} short of confirmed" if short > 0 else ", with all of it confirmed"
        return f"was released at step {call.at} {words}{how}"

    # --- the read -------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        seen, miss, part = self.seen, self.miss, self.part
        ahead = seen.end.setup.look_ahead if miss.reader == "draft" else 0
        back = part.start + ahead - miss.low
        text = (
            f"step {self.read_at}, {seen.action(self.read_at)}, executed the step that left at step "
            f"{self.flight.left_at}: the {self._reader()} read {window(miss.low, miss.high)}"
        )
        if ahead:
            text += f" ({ahead} ahead of the target)"
        if back > 0:
            text += f", {back} below the scheduler's start {part.start} (confirmed at its dispatch was {part.lowest})"
        text += (
            f", which meets {window(self.item.start, self.item.end)} in {count_of(self._overlap(), 'position')}, "
            f"and {self.item.key} is not on the worker's shelf"
        )
        self._tell("read", self.read_at, text, low=miss.low, high=miss.high, back=back, overlap=self._overlap())
        others = len(seen.end.misses) - 1
        if others:
            self._tell("read", self.read_at, f"{count_of(others, 'further read')} of that step found nothing either")


def _short(view: GateView, start: int, tokens: int) -> str:
    """The gate's reason in a few words, for the headline."""
    return {
        "no-look-ahead": f"the gate looked at {window(start, start + tokens)} and no further",
        "shortcut": f"the gate's shortcut left it out, as no position of it is in {window(start, start + tokens)}",
        "cut": f"the gate cut the chunk to end at {start + tokens}, before it",
        "no-room": "the gate planned no encode of it",
        "outside": "the gate did not look that far",
        "behind": f"the gate looked only from {start} on",
    }.get(view.why, view.words)
