"""The environment of a live scheduler: KV blocks, prefixes, and requests outside the model.

Belongs here: what stands between the scheduler and its KV-cache manager, so that shortage and prefix hits are the
run's choice; the stranger who wants room in the encoder cache; and
request objects as a front end would send them.
"""

from collections.abc import Mapping
from typing import Any

from outlives.model.setup import Item, Setup, request_name
from outlives.model.state import Entry

from .reading import Slots
from .release import accepted
from .twin import request_of

__all__ = ["ANY_TOKEN", "Blocks", "Stranger", "make_request", "record_slots"]

ANY_TOKEN = 7
"""Which tokens are computed makes no difference to a scheduler, as long as none of them is a stop token."""


class Blocks:
    """KV blocks as the run chooses: shortage once at one request, and a prefix found for another."""

    def __init__(self, manager: Any) -> None:
        self.short_at: str | None = None
        """The id of the request at which blocks run short; None once they have."""
        self.kept: tuple[str, int] | None = None
        """The id of a request, and how many positions of its prefix are found."""
        self.short = 0
        """How often blocks ran short without having been asked to."""
        self._found = False
        """The prefix was looked up and found in this pass: a request that holds blocks is not looked up."""
        self._allocate = manager.allocate_slots
        self._look_up = manager.get_computed_blocks
        manager.allocate_slots = self.allocate_slots
        manager.get_computed_blocks = self.get_computed_blocks

    def find(self, name: str, kept: int) -> None:
        """In the next pass, `kept` positions of this request's prefix are found."""
        self.kept, self._found = (name, kept), False

    def find_nothing(self) -> None:
        """No prefix is found."""
        self.kept, self._found = None, False

    def allocate_slots(self, request: Any, num_new_tokens: int, *rest: Any, **named: Any) -> Any:
        """In the place of the manager's own."""
        if request.request_id == self.short_at:
            self.short_at = None
            return None
        if self.kept is not None and self._found and request.request_id == self.kept[0]:
            self._found = False
            # No block was really found: the prefix gets blocks of its own, as if it were computed now.
            named["num_new_computed_tokens"] = 0
            num_new_tokens += self.kept[1]
        blocks = self._allocate(request, num_new_tokens, *rest, **named)
        self.short += blocks is None
        return blocks

    def get_computed_blocks(self, request: Any, *rest: Any, **named: Any) -> Any:
        """In the place of the manager's own."""
        found = self._look_up(request, *rest, **named)
        if self.kept is not None and request.request_id == self.kept[0]:
            self._found = True
            return (found[0], self.kept[1], *found[2:])
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
) -> Any:
    """A request object, as the front end would send it."""
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
    )
