"""The world around a lifted method: recording stubs for the scheduler, its encoder cache manager and one request.

Belongs here: which attributes are known, what each one means as a number, and between which bounds it lies. A method
that reads anything else is not judged. Names on the left are vLLM's; names on the right are ours.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal

from .allowed import Callee, Stub, UnknownRead

__all__ = ["SYMBOLS", "Symbol", "World", "end_of", "item_symbols", "symbols_for"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    """One number that a method may read. `kind` says where it comes from; a switch is 0 or 1."""

    name: str
    kind: Literal["item", "counter", "scheduler", "switch"]
    low: int = 0


SYMBOLS: Final[tuple[Symbol, ...]] = (
    Symbol(name="computed", kind="counter"),
    Symbol(name="placeholders", kind="counter"),
    Symbol(name="in flight", kind="counter"),
    Symbol(name="stale", kind="counter"),
    Symbol(name="prompt", kind="counter", low=1),
    Symbol(name="outputs", kind="counter"),
    Symbol(name="drafts", kind="counter"),
    Symbol(name="preemptions", kind="counter"),
    Symbol(name="frames to discard", kind="counter"),
    Symbol(name="num_prefill_lookahead", kind="scheduler"),
    Symbol(name="num_lookahead_tokens", kind="scheduler"),
    Symbol(name="num_spec_tokens", kind="scheduler"),
    Symbol(name="use_eagle", kind="switch"),
    Symbol(name="prefill chunk", kind="switch"),
    Symbol(name="drop stale output", kind="switch"),
    Symbol(name="discard latest tokens", kind="switch"),
    Symbol(name="has EC connector", kind="switch"),
    Symbol(name="has KV connector", kind="switch"),
    Symbol(name="log_stats", kind="switch"),
)
"""In the order in which they are minimised, after the item's end."""


def item_symbols(index: int) -> tuple[Symbol, ...]:
    """Start, length and number of embeddings (at most the length) of the item at that index."""
    return (
        Symbol(name=f"start {index}", kind="item"),
        Symbol(name=f"length {index}", kind="item", low=1),
        Symbol(name=f"embeddings {index}", kind="item"),
    )


def symbols_for(items: int) -> tuple[Symbol, ...]:
    """Every symbol of a world with that many items."""
    return (*SYMBOLS, *(symbol for index in range(items) for symbol in item_symbols(index)))


def end_of(values: Mapping[str, Any], index: int) -> Any:
    """The position after the item: start + length."""
    return values[f"start {index}"] + values[f"length {index}"]


_COUNTERS: Final = {
    "num_computed_tokens": "computed",
    "num_output_placeholders": "placeholders",
    "num_in_flight_tokens": "in flight",
    "num_stale_output_tokens": "stale",
    "num_prompt_tokens": "prompt",
    "num_output_tokens": "outputs",
    "num_preemptions": "preemptions",
    "async_tokens_to_discard": "frames to discard",
    "is_prefill_chunk": "prefill chunk",
    "drop_stale_output": "drop stale output",
    "discard_latest_async_tokens": "discard latest tokens",
}
_SCHEDULER: Final = ("num_prefill_lookahead", "num_lookahead_tokens", "num_spec_tokens", "use_eagle", "log_stats")


class World:
    """The stubs of one run, over numbers that are all symbolic or all plain, and the record of what was released."""

    def __init__(self, values: Mapping[str, Any], items: int, *, encoder_decoder: bool) -> None:
        self.released: list[int] = []
        self._items = items
        self.request = Stub("request", self._request(values))
        manager = Stub(
            "self.encoder_cache_manager",
            {
                "get_cached_input_ids": Callee("get_cached_input_ids", self._cached),
                "free_encoder_input": Callee("free_encoder_input", self._free_item),
                "free": Callee("free", self._free_all),
            },
        )
        self.attributes: Mapping[str, Any] = MappingProxyType(
            {
                **{name: values[name] for name in _SCHEDULER},
                "is_encoder_decoder": encoder_decoder,
                "encoder_cache_manager": manager,
                "ec_connector": self._optional("self.ec_connector", values["has EC connector"]),
                "connector": self._optional("self.connector", values["has KV connector"]),
            }
        )

    def _request(self, values: Mapping[str, Any]) -> dict[str, Any]:
        positions = [
            Stub(
                f"the position of item {index}",
                {
                    "offset": values[f"start {index}"],
                    "length": values[f"length {index}"],
                    "num_embeds": values[f"embeddings {index}"],
                    "get_num_embeds": Callee("get_num_embeds", _constantly(values[f"embeddings {index}"])),
                },
            )
            for index in range(self._items)
        ]
        names = [f"item-{index}" for index in range(self._items)]
        features = [
            Stub(
                f"request.mm_features[{index}]",
                {"mm_position": position, "identifier": name, "mm_hash": name, "modality": "image", "data": None},
            )
            for index, (position, name) in enumerate(zip(positions, names, strict=True))
        ]
        tokens = values["prompt"] + values["outputs"]
        return {
            **{name: values[ours] for name, ours in _COUNTERS.items()},
            "num_tokens": tokens,
            "num_tokens_with_spec": tokens + values["drafts"],
            "request_id": "request-0",
            "mm_features": features,
            "mm_positions": positions,
            "mm_hashes": names,
            "has_encoder_inputs": True,
            "num_encoder_inputs": self._items,
        }

    def _optional(self, what: str, present: Any) -> Stub.Later:
        told = {"update_state_after_free": Callee("update_state_after_free", self._told)}
        return Stub.Later(lambda: Stub(what, told) if present else None)

    def _told(self, request: Any, index: Any) -> None:
        self._one(request, index)

    def _cached(self, request: Any) -> set[int]:
        self._own(request)
        return {index for index in range(self._items) if index not in self.released}

    def _free_item(self, request: Any, input_id: Any) -> None:
        self.released.append(self._one(request, input_id))

    def _free_all(self, request: Any) -> None:
        self._own(request)
        self.released.extend(range(self._items))

    def _own(self, request: Any) -> None:
        if request is not self.request:
            raise UnknownRead("it asks about another request than the one that it was given")

    def _one(self, request: Any, index: Any) -> int:
        self._own(request)
        if type(index) is not int or not 0 <= index < self._items:
            raise UnknownRead("it names an item that the request does not have")
        return index


def _constantly(value: Any) -> Callable[[], Any]:
    return lambda: value
