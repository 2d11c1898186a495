"""The catalogue of faults: what schedulers really had wrong, each named, with the smallest setup that shows it.

Belongs here: data. A fault is released switches turned back, another guard, or a rule replaced by one of `fault_rules`.
Rows are those of the list of public faults from which the catalogue was made; `fault_rows` names the rows that the
model cannot show. Beside the faults stand negatives: changes that were made as fixes, and without which nothing goes
wrong under A1 to A4. An engine that reports one of them is wrong.
"""

from collections.abc import Mapping
from types import MappingProxyType

from . import fault_rules
from .errors import UnknownName
from .fault import Fault, asks, one_request, setup_of

__all__ = ["FAULTS", "NEGATIVES", "Fault", "fault_named", "one_request"]

_GATHER, _PROGRESS, _KEPT, _SOUND = "GATHER-AFTER-FREE", "PROGRESS", "PLACEHOLDERS-KEPT", "COUNTERS-SOUND"
_ASSERTED = {"tolerate_look_ahead": 0}
_BY_COUNT = {"isolate_stale": 0, "discard_counts": 1}
_CHUNK_END = one_request((1, 2), prompt=2, look_ahead=1)
_ADJACENT = one_request((0, 1), (1, 2), prompt=2, look_ahead=1)

_FAULTS = (
    Fault(
        name="drafter-window-unseen",
        rows=(1,),
        source="#29750",
        phrase="the drafter reads one position past the chunk, and the encoder gate does not look there",
        breaks=_GATHER,
        scope=_CHUNK_END,
        actions=3,
        mended="0.12.0",
        switches={"gate_look_ahead": 0},
        beside=_ASSERTED,
    ),
    Fault(
        name="shortcut-skips-look-ahead",
        rows=(2,),
        source="#30475, mended by #51603",
        phrase="an item without a position in the window less the look-ahead is neither encoded nor referenced, though "
        "the drafter reads its first position",
        breaks=_GATHER,
        scope=_CHUNK_END,
        actions=3,
        mended="0.28.0",
        switches={"gate_shortcut": 1},
        beside=_ASSERTED,
    ),
    Fault(
        name="whole-item-cut-without-look-ahead",
        rows=(3,),
        source="#32469, mended by #34220",
        phrase="where an item may not be split the chunk is cut right before it, and the drafter reads its first "
        "position",
        breaks=_GATHER,
        scope=one_request((1, 3), prompt=3, size=1, budget=2, look_ahead=1, whole_items=1),
        actions=3,
        mended="0.17.0",
        switches={"whole_cut_look_ahead": 0},
        beside={**_ASSERTED},
    ),
    Fault(
        name="look-ahead-miss-is-fatal",
        rows=(4,),
        source="#46315",
        phrase="the worker ends the engine where only the drafter's look-ahead is missing: here of an item for which "
        "there is no room yet",
        breaks=_GATHER,
        scope=_ADJACENT,
        actions=3,
        mended="0.24.0",
        switches=_ASSERTED,
    ),
    Fault(
        name="free-waits-for-look-ahead",
        rows=(4,),
        source="#46315, taken back in 0.33.0",
        phrase="an item is kept until the look-ahead has passed it, and the next one, adjacent to it, needs its room",
        breaks=_PROGRESS,
        scope=_ADJACENT,
        actions=1,
        mended="0.33.0",
        guard="confirmed-lookahead",
    ),
    Fault(
        name="announces-what-came-back",
        rows=(9,),
        source="#52482",
        phrase="a key that is evicted and allocated again in one pass is still announced as evicted, to a worker that "
        "encodes before it drops",
        breaks="PLANNED-ENCODED",
        scope=one_request((0, 1), prompt=2),
        actions=8,
        mended="0.28.0",
        switches={"filter_readded": 0},
        rules={"shelve": fault_rules.encode_before_drop},
    ),
    Fault(
        name="repeated-item-debited-twice",
        rows=(10,),
        source="#23544 (after #22711)",
        phrase="of two equal items in one request, each is planned and takes its slots",
        breaks="SLOTS-ADD-UP",
        scope=one_request((0, 2), (2, 4), prompt=4, slots=2, budget=2, key="k0"),
        actions=2,
        mended="0.11.0",
        rules={
            "gate": fault_rules.gate_plans_each_occurrence,
            "allocate": fault_rules.allocate_each_occurrence,
        },
    ),
    Fault(
        name="cut-stops-short",
        rows=(16,),
        source="#40707 and #47738, mended in 0.33.0",
        phrase="where there is no room the chunk stops the look-ahead short of the next item, so the one before it is "
        "never computed to its end",
        breaks=_PROGRESS,
        scope=_ADJACENT,
        actions=1,
        mended="0.33.0",
        switches={"cut_look_ahead": 1},
    ),
    Fault(
        name="free-waits-for-what-the-cut-forbids",
        rows=(17,),
        source="vllm-ascend #17195",
        phrase="with a gap of one token, the free condition waits for a position that the cut before the next item "
        "forbids",
        breaks=_PROGRESS,
        scope=one_request((0, 1), (2, 3), prompt=3, look_ahead=1),
        actions=1,
        mended="0.33.0",
        guard="confirmed-lookahead",
        beside={"cut_look_ahead": 1},
    ),
    Fault(
        name="stalled-head-ends-scan",
        rows=(18,),
        source="tests of 0.33.0",
        phrase="a waiting request without room for its item ends the scan, and behind it waits the one that holds the "
        "room",
        breaks=_PROGRESS,
        scope=setup_of(asks((0, 1), prompt=1, turn=(1, 1)), asks((0, 1), prompt=1, first_key=1), routes="sessions"),
        actions=2,
        mended="0.33.0",
        switches={"skip_stalled": 0},
        beside={"held_first": 0, "free_at_turn_end": 0},
    ),
    Fault(
        name="nothing-to-encode-is-no-admission",
        rows=(19,),
        source="tenstorrent/vllm #332",
        phrase="a derived scheduler takes 'nothing to encode' for 'cannot be scheduled' and ends the scan, so a "
        "request whose item is cached already is never admitted",
        breaks=_PROGRESS,
        scope=one_request((0, 1), prompt=2),
        actions=4,
        mended="the plug-in's own",
        switches={"skip_stalled": 0},
        rules={"gate": fault_rules.gate_needs_an_encode},
    ),
    Fault(
        name="reset-reaches-one-side",
        rows=(25,),
        source="#33481, #42759",
        phrase="a reset of the encoder cache empties the scheduler's book and not the worker's shelf",
        breaks="SHELF-AGREES",
        scope=one_request((0, 1), prompt=1, routes="reset-encoder-cache"),
        actions=4,
        mended="0.16.0",
        rules={"clear_shelf": fault_rules.clear_nothing},
    ),
    Fault(
        name="gathers-only-own-encodes",
        rows=(29,),
        source="vllm-gaudi #823",
        phrase="the worker encodes what the step lists and gathers as if every item of the request had been listed, so "
        "an entry that another request brought is missing",
        breaks=_GATHER,
        scope=setup_of(asks((0, 2), prompt=2), asks((0, 2), prompt=2), slots=2),
        actions=4,
        mended="the plug-in's own",
        rules={"gather": fault_rules.gather_own_encodes},
    ),
    Fault(
        name="stale-output-drains-promises",
        rows=(32,),
        source="#48245 (#47900, #41190, #49620)",
        phrase="placeholders outlive a preemption and are drained by outputs from before it, so the resumed step "
        "promises nothing",
        breaks=_KEPT,
        scope=one_request(prompt=1, depth=3),
        actions=4,
        mended="0.27.0",
        switches={"isolate_stale": 0},
    ),
    Fault(
        name="rejects-before-discarding",
        rows=(33,),
        source="#46066",
        phrase="an output that a reset discards takes its rejected drafts back all the same, from the resumed counters",
        breaks=_SOUND,
        scope=one_request(prompt=2, budget=3, drafts=2, depth=2, routes="reset-prefix-cache"),
        actions=5,
        mended="0.25.0",
        switches={"discard_before_rejection": 0},
        beside=_BY_COUNT,
        closed=("preempt",),
    ),
    Fault(
        name="reset-discards-a-good-output",
        rows=(34,),
        source="#42043, mended by #42117",
        phrase="a reset discards one output even where none is in flight: a good token is lost, and stays promised",
        breaks=_KEPT,
        scope=one_request(prompt=1, outputs=2, routes="reset-prefix-cache"),
        actions=6,
        mended="0.22.0",
        switches={"discard_counts": 0},
        beside={"isolate_stale": 0},
        closed=("preempt",),
    ),
    Fault(
        name="discarded-output-stays-promised",
        rows=(35,),
        source="#49860",
        phrase="an output that is discarded leaves its placeholders behind, so the request stops late",
        breaks=_KEPT,
        scope=one_request(prompt=1, outputs=2, depth=2, routes="reset-prefix-cache"),
        actions=8,
        mended="0.27.0",
        switches=_BY_COUNT,
        closed=("preempt",),
    ),
    Fault(
        name="plug-in-misses-stale",
        rows=(37,),
        source="vllm-gaudi #1794, tpu-inference #3312",
        phrase="a plug-in's override delivers stale outputs as live ones, and they give up placeholders that are not "
        "theirs",
        breaks=_SOUND,
        scope=one_request(prompt=1, outputs=2, depth=2),
        actions=4,
        mended="the plug-ins' own",
        rules={"deliver": fault_rules.deliver_as_live},
    ),
    Fault(
        name="plug-in-asks-placeholders",
        rows=(37,),
        source="vllm-gaudi #1803",
        phrase="a plug-in's override takes an output for stale where no placeholder is left, instead of by the stale "
        "share",
        breaks=_KEPT,
        scope=one_request(prompt=1, outputs=2, depth=2, routes="reset-prefix-cache"),
        actions=5,
        mended="the plug-ins' own",
        rules={"receive": fault_rules.receive_by_placeholders},
    ),
    Fault(
        name="old-output-meets-new-turn",
        rows=(38,),
        source="#52693, mended by #52765",
        phrase="a turn ends with a step in flight, and its output is taken for one of the next turn",
        breaks=_KEPT,
        scope=one_request(prompt=1, outputs=2, budget=1, depth=2, routes="sessions", turn=(1, 1)),
        actions=7,
        mended="0.31.0",
        switches={"settle_turn": 0},
        beside={"free_at_turn_end": 0, "keep_outputs": 0},
    ),
    Fault(
        name="stopped-session-leaves-its-queue",
        rows=(38,),
        source="#42490, mended in 0.33.0",
        phrase="a session whose turn ends by an output from before its preemption is queued and taken out again",
        breaks=_PROGRESS,
        scope=one_request(prompt=1, depth=2, routes="sessions", turn=(1, 1)),
        actions=3,
        mended="0.33.0",
        switches={"requeue_stopped": 0},
    ),
    Fault(
        name="trimmed-tokens-stay-computed",
        rows=(38,),
        source="#42760, mended in 0.33.0",
        phrase="tokens cut off at a turn's end stay computed, and the next turn is one token short of what it asks for",
        breaks=_PROGRESS,
        scope=one_request(prompt=1, outputs=2, budget=2, drafts=1, synchronous=1, routes="sessions", turn=(1, 1)),
        actions=1,
        mended="0.33.0",
        switches={"trim_computed": 0},
    ),
    Fault(
        name="turn-end-keeps-computed",
        rows=(39,),
        source="vllm-omni #5183",
        phrase="a turn's end discards one output and zeroes the placeholders whatever is in flight, and leaves "
        "computed where it was: the session can never be scheduled again",
        breaks=_PROGRESS,
        scope=one_request(prompt=1, outputs=2, routes="sessions", turn=(1, 1)),
        actions=5,
        mended="the plug-in's own",
        rules={"end_turn": fault_rules.end_turn_keeping_computed},
    ),
    Fault(
        name="boundary-charges-whole-item",
        rows=(60,),
        source="SGLang #38627",
        phrase="where a chunk ends inside an item, a counter subtracts the whole item instead of what is left of it",
        breaks="SLOTS-ADD-UP",
        scope=one_request((0, 2), prompt=2, size=1),
        actions=2,
        mended="SGLang's own",
        rules={"gate": fault_rules.gate_charges_whole_item},
    ),
)

FAULTS: Mapping[str, Fault] = MappingProxyType({fault.name: fault for fault in _FAULTS})
"""The catalogue by name, in the order of its rows."""

NEGATIVES: Mapping[str, Fault] = MappingProxyType(
    {
        fault.name: fault
        for fault in (
            Fault(
                name="frees-after-the-advance",
                rows=(5,),
                source="#38907",
                phrase="references are dropped right after the optimistic advance",
                breaks=_GATHER,
                mended="0.20.0",
                guard="optimistic-after-advance",
                why_not="an eviction is decided in a later pass and reaches the worker in that pass's message (A1): "
                "every step before it has read by then, and every later one is checked anew (A2)",
            ),
            Fault(
                name="frees-promised-positions",
                rows=(6,),
                source="#45347",
                phrase="the free condition counts promised positions as confirmed",
                breaks=_GATHER,
                mended="0.24.0",
                guard="optimistic-at-output",
                why_not="a rejection takes back drafts, which lie past the prompt, and no step reads below the start "
                "it was checked for (A3); the lowered window is checked anew (A2)",
            ),
        )
    }
)
"""What must not be reported, by name."""


def fault_named(name: str) -> Fault:
    """The fault or negative of that name; raises `UnknownName` with the known ones."""
    known = {**FAULTS, **NEGATIVES}
    try:
        return known[name]
    except KeyError:
        raise UnknownName("fault", name, known) from None
