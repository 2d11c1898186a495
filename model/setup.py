"""The numbers of one run (`Setup`), and the ranges from which runs draw them (`Scope`).

Belongs here: what a run is given and never changes: requests with their items, cache slots, budgets, depth. How a
scheduler behaves is in `world` and `profiles`.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from .contract import Argument, Choice, Range
from .errors import OutOfRange, UnknownName

__all__ = [
    "ALL_ROUTES",
    "MODE_WORDS",
    "NO_LIMIT",
    "PLAIN",
    "PLAIN_ROUTES",
    "RARE_ROUTES",
    "Item",
    "RequestSetup",
    "Scope",
    "Setup",
    "Turn",
]
__all__ += ["check_scope", "clamp", "key_name", "keys_of", "mode_numbers", "request_name", "request_number"]

PLAIN = "plain"
MODE_WORDS = {"synchronous": "synchronous", "diffusion": "diffusion", "encoder-decoder": "encoder_decoder"}
"""Mode -> the number of a setup that it sets to 1. Without any: asynchronous scheduling of a decoder model."""

RARE_ROUTES = ("reset-prefix-cache", "reset-encoder-cache", "kv-load-failure", "sessions")
"""Routes that a run takes only where its setup says so, so that each is met beside many others and alone."""

DRAWN = "drawn"
"""The preset that is none."""
ALL_ROUTES = "all"
PLAIN_ROUTES = "usual"
NO_LIMIT = 0
"""A chunk cap or encoder budget of 0 means that there is none."""


class Item(NamedTuple):
    """One multimodal input of a request: where its tokens lie, and which cache entry its encoder output is."""

    start: int
    """First token position."""
    length: int
    """Token positions."""
    key: str
    """Content hash: two items with one key share one entry."""
    size: int
    """Slots that the entry takes (at most `length`)."""

    @property
    def end(self) -> int:
        """First token position after the item."""
        return self.start + self.length


class Turn(NamedTuple):
    """What a resumable session asks for once the turn before has ended."""

    prompt: int
    """Prompt tokens that it adds."""
    outputs: int
    """Most output tokens of the turn."""
    items: tuple[Item, ...] = ()
    """Their start is counted from the first added token."""


class RequestSetup(NamedTuple):
    """What a client asks for."""

    prompt: int
    """Prompt tokens."""
    outputs: int
    """Most output tokens."""
    items: tuple[Item, ...]
    """In order of their start; they do not overlap."""
    priority: int = 0
    """Less is more urgent; counts only under the priority policy, where equals go by arrival."""
    turns: tuple[Turn, ...] = ()
    """Further turns of a resumable session."""


class Setup(NamedTuple):
    """The numbers of one run."""

    requests: tuple[RequestSetup, ...]
    slots: int
    """Capacity of the encoder cache, in slots."""
    budget: int
    """Tokens per step."""
    encoder_budget: int = NO_LIMIT
    """Slots that may be encoded per step; 0: as many as the cache holds."""
    chunk_cap: int = NO_LIMIT
    """Most tokens of one request per step (long-prefill threshold); 0: no cap."""
    drafts: int = 0
    """Most draft tokens per decode step."""
    look_ahead: int = 0
    """How many positions past its own window the drafter reads (EAGLE/MTP: 1)."""
    depth: int = 2
    """Most steps in flight (dispatched, not processed)."""
    whole_items: int = 0
    """1: an item may not be split over two chunks (chunked multimodal input disabled)."""
    strangers: int = 0
    """Most slots that requests outside the model may hold at a time."""
    by_priority: int = 0
    """1: the priority policy; 0: first come, first served."""
    synchronous: int = 0
    """1: nothing is promised, drafts arrive with the output, `depth` is the number of pipeline stages."""
    diffusion: int = 0
    """1: a step samples nothing beside its drafts."""
    encoder_decoder: int = 0
    """1: an encoder-decoder model (Whisper): no sharing, all items at computed = 0."""
    left_out: tuple[str, ...] = RARE_ROUTES
    """Rare routes that are not taken in this run, though they may be open: a run that takes few goes further along
    them."""

    @property
    def asynchronous(self) -> int:
        """1: asynchronous scheduling, which promises outputs."""
        return 1 - self.synchronous

    @property
    def base(self) -> int:
        """Tokens sampled per step beside the drafts: 1, or 0 for diffusion models."""
        return 1 - self.diffusion

    @property
    def encode_limit(self) -> int:
        """Slots that may be encoded per step."""
        return self.encoder_budget if self.encoder_budget != NO_LIMIT else self.slots

    @property
    def step_limit(self) -> int:
        """Tokens of one request per step."""
        return self.budget if self.chunk_cap == NO_LIMIT else min(self.budget, self.chunk_cap)


def keys_of(setup: Setup) -> set[str]:
    """Every key that a request of the setup has in some turn."""
    keys = {item.key for asked in setup.requests for item in asked.items}
    return keys | {item.key for asked in setup.requests for turn in asked.turns for item in turn.items}


def request_name(number: int) -> str:
    """`r0` is the first request."""
    return f"r{number}"


def request_number(name: Argument, count: int) -> int | None:
    """The request of that name among `count`, or None where there is none (`none` included)."""
    if isinstance(name, str) and name[:1] == "r" and name[1:].isdecimal() and len(name) < 6:
        number = int(name[1:])
        return number if number < count and name == request_name(number) else None
    return None


def key_name(number: int) -> str:
    """`k0` is the key of the first item."""
    return f"k{number}"


def clamp(value: Argument, low: int, high: int) -> int:
    """The number nearest to `value` in the range (its low end for something that is no number)."""
    if not isinstance(value, int):
        return low
    return max(low, min(high, value))


class Scope(NamedTuple):
    """For each number of a setup, the range it may take. A range of one number fixes it."""

    requests: int = 1
    items: Range = Range(1, 2)
    """Items per request."""
    lead: Range = Range(0, 6)
    """Text tokens before an item, counted from the end of the one before it."""
    length: Range = Range(1, 5)
    """Tokens of an item."""
    shared: Range = Range(0, 0)
    """1 lets an item have the key of an earlier one, of the same request or another; it then has its length too."""
    priority: Range = Range(0, 0)
    """Priorities of requests."""
    tail: Range = Range(0, 5)
    """Prompt tokens after the last item. Where items may lie anywhere, `prompt` counts instead."""
    prompt: Range = Range(1, 8)
    anywhere: bool = False
    """Items may reach past the prompt, into outputs (the seed's regression test sets that up)."""
    outputs: Range = Range(1, 4)
    slots: Range = Range(1, 10)
    budget: Range = Range(1, 10)
    encoder_budget: Range = Range(0, 0)
    chunk_cap: Range = Range(0, 0)
    drafts: Range = Range(0, 3)
    look_ahead: Range = Range(0, 1)
    depth: Range = Range(2, 2)
    whole_items: Range = Range(0, 1)
    strangers: Range = Range(0, 3)
    turns: Range = Range(1, 1)
    """Turns of a request: more than 1 is a resumable session."""
    by_priority: Range = Range(0, 0)
    """0: first come, first served; 1: the priority policy."""
    routes: tuple[str, ...] = (PLAIN_ROUTES,)
    """The sets of rare routes that are drawn from: `all`, `usual` (none of them), or names of `RARE_ROUTES` joined by
    `+`."""
    modes: tuple[str, ...] = (PLAIN,)
    """The modes that are drawn from: `plain`, or names of `MODE_WORDS`, several joined by `+`. One that is named more
    often is drawn more often."""
    presets: tuple[tuple[str, Mapping[str, Argument]], ...] = ()
    """Named sets of numbers that a run may begin with instead of drawn ones."""
    base: Mapping[str, int] | None = None
    """The numbers that are always tried (a scenario's), by the names of `table`."""

    def table(self) -> dict[str, Range | Choice]:
        """Name -> range of every number that a setup of this scope is made from, in a fixed order."""
        table: dict[str, Range | Choice] = {}
        if self.base is not None:
            table["numbers"] = Choice(("base", "near"))
        if self.presets:
            names = tuple(name for name, _ in self.presets)
            table["preset"] = Choice((DRAWN,) * len(names) + names)
        for request in range(self.requests):
            name = request_name(request)
            if self.items.low != self.items.high:
                table[f"{name}_items"] = self.items
            for item in range(self.items.high):
                table[f"{name}_lead{item}"] = self.lead_of(item)
                table[f"{name}_length{item}"] = self.length
                if self.shared.high > 0 and (request, item) != (0, 0):
                    table[f"{name}_key{item}"] = Range(0, request * self.items.high + item)
            if self.priority.high > self.priority.low:
                table[f"{name}_priority"] = self.priority
            table[f"{name}_prompt" if self.anywhere else f"{name}_tail"] = self.prompt if self.anywhere else self.tail
            table[f"{name}_outputs"] = self.outputs
            table |= self._turns_table(request)
        for name in ("slots", "budget", "encoder_budget", "chunk_cap", "drafts", "look_ahead", "depth", "whole_items"):
            table[name] = getattr(self, name)
        table["strangers"] = self.strangers
        if self.by_priority.high > self.by_priority.low:
            table["by_priority"] = self.by_priority
        if len(set(self.modes)) > 1:
            table["mode"] = Choice(self.modes)
        if len(set(self.routes)) > 1:
            table["routes"] = Choice(self.routes)
        return table

    def _turns_table(self, request: int) -> dict[str, Range | Choice]:
        name = request_name(request)
        table: dict[str, Range | Choice] = {}
        if self.turns.high > self.turns.low:
            table[f"{name}_turns"] = self.turns
        for turn in range(1, self.turns.high):
            table[f"{name}_turn{turn}_lead"] = self.lead
            table[f"{name}_turn{turn}_length"] = Range(0, self.length.high if self.items.high > 0 else 0)
            if self.shared.high > 0:
                table[f"{name}_turn{turn}_key"] = Range(0, (request + 1) * (self.items.high + turn))
            table[f"{name}_turn{turn}_tail"] = self.tail
        return table

    def settled(self, arguments: Mapping[str, Argument]) -> Mapping[str, Argument]:
        """The arguments with a preset's numbers in the place of the drawn ones, clamped into the ranges."""
        preset = dict(self.presets).get(str(arguments.get("preset", DRAWN)))
        if preset is None:
            return arguments
        settled: dict[str, Argument] = {"preset": DRAWN}
        for name, span in self.table().items():
            if isinstance(span, Range):
                settled[name] = clamp(preset.get(name, span.low), span.low, span.high)
            elif name != "preset":
                wanted = preset.get(name, span.names[0])
                settled[name] = wanted if wanted in span.names else span.names[0]
        return settled

    def lead_of(self, item: int) -> Range:
        """The range of the text before the item of that number. A scenario moves its items together: the text before
        the first one varies, the gaps between them are what the scenario is about."""
        if self.base is None:
            return self.lead
        here = self.base[f"r0_lead{item}"]
        return Range(max(0, here - 2), here + 2) if item == 0 else Range(here, here)

    def setup(self, arguments: Mapping[str, Argument]) -> Setup:
        """The setup with these numbers; missing ones take their lowest, others are clamped into their range.

        An item takes as many slots as it has tokens. Keys are distinct unless drawn otherwise.
        """
        arguments = self.settled(arguments)
        if self.base is not None and arguments.get("numbers", "base") == "base":
            numbers: Mapping[str, Argument] = self.base
            table = dict.fromkeys(self.table(), Range(0, 1 << 40))
        else:
            numbers = arguments
            table = {name: span for name, span in self.table().items() if isinstance(span, Range)}

        def number(name: str) -> int:
            if "_key" in name and (alone or name not in table):
                return 0  # keys are not shared
            span = table.get(name, self.items)  # the one number that is not drawn where its range is a single one
            return clamp(numbers.get(name, span.low), span.low, span.high)

        mode = mode_numbers(_chosen(numbers, "mode", self.modes))
        alone = mode["encoder_decoder"] == 1  # nothing is shared, and a session would begin its items past position 0
        requests = []
        lengths: list[int] = []  # of each key so far
        for request in range(self.requests):
            name = request_name(request)
            items = []
            end = 0
            for item in range(number(f"{name}_items")):
                start = end + number(f"{name}_lead{item}")
                items.append(_item(start, number(f"{name}_length{item}"), number(f"{name}_key{item}"), lengths))
                end = items[-1].end
            prompt = number(f"{name}_prompt") if self.anywhere else end + number(f"{name}_tail")
            urgency = number(f"{name}_priority") if f"{name}_priority" in table else self.priority.low
            outputs = number(f"{name}_outputs")
            count = number(f"{name}_turns") if self.turns.high > self.turns.low else self.turns.low
            if alone or end > max(1, prompt):
                count = 1  # a later turn begins where the prompt ends: an item that reaches past it would lie in both
            turns = tuple(_turn(f"{name}_turn{turn}", number, outputs, lengths) for turn in range(1, count))
            requests.append(RequestSetup(max(1, prompt), outputs, tuple(items), urgency, turns))
        # Room for the largest item, as far as the scope has it: a request that can never fit says nothing.
        largest = max(lengths, default=1)
        other = ("requests", "left_out", "by_priority", *MODE_WORDS.values())
        plain = {name: number(name) for name in Setup._fields if name not in other}
        plain["by_priority"] = number("by_priority") if "by_priority" in table else self.by_priority.low
        plain |= mode
        needed = {"slots": largest, "budget": largest if plain["whole_items"] == 1 else 1}
        if plain["encoder_budget"] != NO_LIMIT:
            needed["encoder_budget"] = largest
        for name, least in needed.items():
            plain[name] = max(plain[name], min(least, table[name].high))
        if plain["diffusion"] == 1:
            plain["drafts"] = max(plain["drafts"], min(1, table["drafts"].high))  # otherwise nothing is ever sampled
        if self.anywhere:
            # An item that reaches past the prompt cannot be asked to fit one chunk whole: it would wait for ever.
            plain["whole_items"] = 0
        left_out = routes_left_out(_chosen(numbers, "routes", self.routes))
        return Setup(requests=tuple(requests), left_out=left_out, **plain)


def _item(start: int, length: int, back: int, lengths: list[int]) -> Item:
    """An item whose key is the one `back` before it, or a new one (0, or too far back: the lowest draw is a key of its
    own, so that a run shrinks to distinct keys). It has its key's length; `lengths` are those of the keys so far."""
    key = len(lengths) - back if 0 < back <= len(lengths) else len(lengths)
    if key == len(lengths):
        lengths.append(length)
    return Item(start, lengths[key], key_name(key), lengths[key])


def _turn(name: str, number: Callable[[str], int], outputs: int, lengths: list[int]) -> Turn:
    """A later turn: text, at most one item (none where its length is 0), text."""
    lead, length, tail = (number(f"{name}_{part}") for part in ("lead", "length", "tail"))
    items: tuple[Item, ...] = ()
    if length > 0:
        items = (_item(lead, length, number(f"{name}_key"), lengths),)
    return Turn(max(1, lead + sum(item.length for item in items) + tail), outputs, items)


def _chosen(numbers: Mapping[str, Argument], name: str, words: tuple[str, ...]) -> str:
    """The word that was drawn, where there is a choice."""
    return str(numbers.get(name, words[0])) if len(set(words)) > 1 else words[0]


def routes_left_out(routes: str) -> tuple[str, ...]:
    """The rare routes that a set of them leaves out. Raises `UnknownName` with the known ones."""
    if routes == ALL_ROUTES:
        return ()
    words = [] if routes == PLAIN_ROUTES else routes.split("+")
    for word in words:
        if word not in RARE_ROUTES:
            raise UnknownName("route", word, (ALL_ROUTES, PLAIN_ROUTES, *RARE_ROUTES))
    return tuple(route for route in RARE_ROUTES if route not in words)


def mode_numbers(mode: str) -> dict[str, int]:
    """The numbers of a setup that a mode fixes. Raises `UnknownName` with the known modes."""
    words = [] if mode == PLAIN else mode.split("+")
    for word in words:
        if word not in MODE_WORDS:
            raise UnknownName("mode", word, (PLAIN, *MODE_WORDS))
    return {name: int(word in words) for word, name in MODE_WORDS.items()}


def check_scope(scope: Scope) -> None:
    """Raise `OutOfRange` where a range is empty or below what makes sense."""
    lowest = {"length": 1, "prompt": 1, "outputs": 1, "slots": 0, "budget": 1, "depth": 1}
    for name, span in scope._asdict().items():
        if not isinstance(span, Range):
            continue
        low = lowest.get(name, 0)
        if span.low < low:
            raise OutOfRange(name.replace("_", "-"), span.low, low, None)
        if span.high < span.low:
            raise OutOfRange(f"the upper end of {name.replace('_', '-')}", span.high, span.low, None)
        if span.high > 1_000_000:
            raise OutOfRange(name.replace("_", "-"), span.high, low, 1_000_000)
