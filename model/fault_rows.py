"""The rows of the list of public faults that the model cannot show, each with what it lacks.

Belongs here: data. Covered rows are those of `faults`; the two together are the whole list.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

__all__ = ["NOT_COVERED", "NotCovered"]


class NotCovered(NamedTuple):
    """One row without a fault in the catalogue."""

    source: str
    about: str
    lacks: str
    """What the model would have to have."""


_KV = "KV blocks as things that are owned, shared and freed: here they are the environment's yes or no"
_CONNECTOR = "a connector: a second writer, transfers, and what they hold"
_SENDER = "the pair of item caches in front of the scheduler (sender and receiver)"
_SLOTS = "worker slots, adapters, and the limit on how many requests run"

NOT_COVERED: Mapping[int, NotCovered] = MappingProxyType(
    {
        7: NotCovered("#39543, #39544, #38622, #53451, #45199", "proposals: never evict, skip on a miss, late drops",
                      "nothing: they are no faults but what operators reached for (guard `retain` is one of them)"),
        15: NotCovered("#40707, #47738, #51582", "the encoder's cut, floored to a block of state, gives no token",
                       "recurrent state and the alignment of chunks to its blocks"),
        23: NotCovered("#57696", "an item's identifier is used again with another size",
                       "keys that name different contents: a setup with two sizes of one key is refused at arrival"),
        24: NotCovered("#44910, #45093, #46125, #48762", "entries survive a change of the weights",
                       "contents that go out of date: an entry has a key and no epoch"),
        26: NotCovered("#51222", "an encode-only instance gathers an item that the connector holds", _CONNECTOR),
        27: NotCovered("#50860, #50871", "raw item data is dropped at the free, and the item cannot be encoded again",
                       "the raw data of an item beside its encoder output"),
        28: NotCovered("#57368", "raw item data is kept through decode",
                       "the raw data of an item beside its encoder output"),
        30: NotCovered("#34749, #28525, #46451, #43001, #57833", "the order of sender and receiver diverges", _SENDER),
        31: NotCovered("#47958, #47966", "two threads change one queue", f"{_SENDER}, and threads"),
        36: NotCovered("#38624, #40768", "earlier attempts discard an output at every preemption",
                       "discarding by count at an ordinary preemption: a closed proposal that no release has"),
        40: NotCovered("tests of 0.33.0", "paused and preempted requests hold worker slots not counted at admission",
                       _SLOTS),
        41: NotCovered("#53130, #49097", "admission is blocked once running and deferred ones reach the limit", _SLOTS),
        42: NotCovered("#47728", "sliding-window blocks are freed on the optimistic computed", _KV),
        43: NotCovered("#45357, #45096", "freed blocks are loaded into before the write in flight", _CONNECTOR),
        44: NotCovered("#33997", "recurrent state is freed by a computed with drafts in it", "recurrent state"),
        45: NotCovered("#43569, #41400, #57580, #56525", "block hashes are published before they are computed", _KV),
        46: NotCovered("#55178", "a padded tail writes recurrent state past the prompt", "recurrent state"),
        47: NotCovered("#53919, #53613", "accepted counts are copied while rows move",
                       "the worker's rows: parts of a step are found by their request"),
        48: NotCovered("#45387, #45388, #44560, #45406", "loads hold the blocks that the head needs", _CONNECTOR),
        49: NotCovered("#43433", "nothing polls while a finished request waits to be freed", _CONNECTOR),
        50: NotCovered("neuralmagic #92, #18411", "received blocks are not freed where admission fails", _CONNECTOR),
        51: NotCovered("0.33.0; SGLang #23141; #47724", "adapters are counted for scheduled rows only", _SLOTS),
        52: NotCovered("SGLang #27731", "more is committed than was allocated, and a page is freed twice", _KV),
        53: NotCovered("SGLang #22862", "a session resumes with a shorter prefix and its tail leaks", _KV),
        54: NotCovered("SGLang #11981, #11970, #14972", "retraction beside an overlapped step leaks", _KV),
        55: NotCovered("SGLang #25805", "recycled pages keep their old mapping", _KV),
        56: NotCovered("SGLang #12107", "a flush while a step holds a node of the old tree", _KV),
        57: NotCovered("SGLang #36595, #32404, #25462; LMCache #4086", "a truncated hash collides",
                       "keys that name different contents"),
        58: NotCovered("SGLang #16067, #20185", "slots of waiting requests leak, or seem to", _KV),
        59: NotCovered("sgl-jax #982, #994", "a slot is released by two paths", _KV),
        61: NotCovered("TRT-LLM #12816, #12416", "a response and the end of a transfer both end it", _CONNECTOR),
        62: NotCovered("TRT-LLM #9693", "a rewind after the cache was released", _CONNECTOR),
        63: NotCovered("TRT-LLM #15018", "an early return leaves blocks to nobody", _KV),
        64: NotCovered("LMCache #5248, #2158, #1969, #2294", "a preempted request keeps what tracked it", _CONNECTOR),
        65: NotCovered("inference-sim #1061, #1065", "a failed allocation deletes the whole map of a request", _KV),
    }
)  # fmt: skip
"""Row -> why the catalogue has no fault for it."""
