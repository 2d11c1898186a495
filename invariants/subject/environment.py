"""The environment of a live scheduler: KV blocks, prefixes, and requests outside the model.

Belongs here: what stands between the scheduler and its KV-cache manager, so that shortage and prefix hits are the
run's choice, or the prefix cache's answer is seen; the stranger who wants room in the encoder cache; and request
objects as a front end would send them.
"""

from collections.abc import Callable, Mapping
from typing import Any

from outlives.model.setup import Item, Setup, request_name
from outlives.model.state import Entry

from .reading import Slots
from .release import accepted
from .twin import request_of

__all__ = ["ANY_TOKEN", "Blocks", "Stranger", "make_request", "record_slots"]

ANY_TOKEN = 7
"""Which tokens are computed makes no difference to a scheduler, as long as none of them is a stop token. That all are
the same makes every prefix a common one, up to the first item that two requests do not share."""


class Blocks:
    """KV blocks as the run chooses: shortage once at one request. What is found of a prefix is the run's choice too,
    unless the manager has a prefix cache (`caching`): then it is the cache's own answer, which is written down."""

    def __init__(self, manager: Any, *, caching: bool, ran_short: Callable[[], None]) -> None:
        self.short_at: str | None = None
        """The id of the request at which blocks run short; None once they have."""
        self.answers: dict[int, int] = {}
        """What the prefix cache answered since `look_up_anew`: request -> positions that it found."""
        self.caching = caching
        self._ran_short = ran_short
        self._chosen: Mapping[int, int] = {}
        self._found: set[int] = set()
        """Whose chosen prefix was looked up in this pass: a request that holds blocks is not looked up."""
        self._allocate = manager.allocate_slots
        self._look_up = manager.get_computed_blocks
        manager.allocate_slots = self.allocate_slots
        manager.get_computed_blocks = self.get_computed_blocks

    def look_up_anew(self, chosen: Mapping[int, int]) -> None:
        """A pass begins. Without a prefix cache, `chosen` says of which requests how many positions are found."""
        self.answers = {}
        self._chosen = {} if self.caching else {number: kept for number, kept in chosen.items() if kept > 0}
        self._found = set()

    def allocate_slots(self, request: Any, num_new_tokens: int, *rest: Any, **named: Any) -> Any:
        """In the place of the manager's own."""
        if request.request_id == self.short_at:
            self.short_at = None
            return None
        if self._found and request_of(request.request_id) in self._found:
            number = request_of(request.request_id)
            self._found.discard(number)
            # No block was really found: the prefix gets blocks of its own, as if it were computed now.
            named["num_new_computed_tokens"] = 0
            num_new_tokens += self._chosen[number]
        blocks = self._allocate(request, num_new_tokens, *rest, **named)
        if blocks is None:
            self._ran_short()  # without having been asked to
        return blocks

    def get_computed_blocks(self, request: Any, *rest: Any, **named: Any) -> Any:
        """In the place of the manager's own."""
        found = self._look_up(request, *rest, **named)
        number = request_of(request.request_id)
        if self.caching:
            self.answers[number] = found[1]
        elif number in self._chosen:
            self._found.add(number)
            return (found[0], self._chosen[number], *found[2:])
        return found


class Stranger:
    """A request outside the model that wants room for one item."""

    def __init__(self, slots: int) -> None:
        self.slots = slots

    def get_num_encoder_embeds(self, _: int) -> int:
        """Its size in slots."""
        return self.slots

    get_num_encoder_tokens = get_num_encoder_embeds


def record_slots(manager: Any) -> Slots:
    """From now on, write down what an encoder-decoder manager takes and credits, which it does not itself."""
    slots = Slots({}, {})
    allocate, free = manager.allocate, manager.free_encoder_input

    def taken(request: Any, input_id: int) -> None:
        allocate(request, input_id)
        number, feature = request_of(request.request_id), request.mm_features[input_id]
        slots.entries[feature.identifier] = Entry(feature.identifier, feature.mm_position.length, (number,))
        slots.references.setdefault(number, set()).add(input_id)

    def credited(request: Any, input_id: int) -> None:
        free(request, input_id)
        slots.entries.pop(request.mm_features[input_id].identifier, None)
        slots.references.get(request_of(request.request_id), set()).discard(input_id)

    manager.allocate, manager.free_encoder_input = taken, credited
    return slots


def make_request(
    classes: Mapping[str, Any],
    setup: Setup,
    number: int,
    prompt: int,
    outputs: int,
    items: tuple[Item, ...],
    resumable: bool,
    *,
    hasher: Any = None,
) -> Any:
    """A request object, as the front end would send it. `hasher` makes the names of its blocks in a prefix cache."""
    cross = setup.encoder_decoder == 1
    features = [
        accepted(
            classes["MultiModalFeatureSpec"],
            data=None,
            modality="image",
            identifier=item.key,
            mm_position=classes["PlaceholderRange"](offset=0 if cross else item.start, length=item.length),
            mm_hash=item.key,
        )
        for item in items
    ]
    asked = setup.requests[number]
    return accepted(
        classes["Request"],
        request_id=request_name(number),
        prompt_token_ids=[ANY_TOKEN] * prompt,
        sampling_params=classes["SamplingParams"](max_tokens=outputs, ignore_eos=True),
        pooling_params=None,
        eos_token_id=None,
        mm_features=features,
        priority=asked.priority if setup.by_priority == 1 else 0,
        arrival_time=float(number),
        resumable=resumable,
        block_hasher=hasher,
    )
