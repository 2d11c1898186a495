"""What no scope, release or price tells apart, told run by run: what is right at the end and why, and for which
mutant of the model's rules it is there.

Belongs here: data. That the model ends each run so, and that the mutant does not, is checked in
`tests/test_mutant_told.py`.
"""

from collections.abc import Mapping

from outlives.model.setup import Item, RequestSetup, Setup, Turn
from outlives.model.state import Miss

from .configuration import Configuration
from .mutant_told import Told
from .subject.corners import corner

__all__ = ["TOLD"]

_K0 = Item(0, 1, "k0", 1)
_REPEATED = (_K0, Item(1, 1, "k1", 1), Item(2, 1, "k0", 1))
_WINDOW = Configuration(reader="true", guard="true-window", items_anywhere=True)


def _chunked(*requests: tuple[str, int, int]) -> Setup:
    """Prompts of eight, computed by two at a time, with an item at 2: its key, the request's priority and outputs."""
    asked = tuple(RequestSetup(8, outputs, (Item(2, 1, key, 1),), urgency) for key, urgency, outputs in requests)
    return Setup(asked, slots=3, budget=6, encoder_budget=1, chunk_cap=2, depth=4, by_priority=1)


_ALL_RUN = ("arrive(request=r0)", "arrive(request=r1)", "arrive(request=r2)", "resume(request=r0, kept=0)")
_ONE = RequestSetup(1, 1, ())

TOLD: Mapping[str, Told] = {
    "a failed admission, references by key": Told(
        "Where references are by key, a failed admission lets go the entries that are held, in the order of the items.",
        Configuration(profile="0.20.0"),
        corner(
            Setup((RequestSetup(4, 2, _REPEATED),), slots=2, budget=8, depth=2),
            "arrive(request=r0)", "schedule()", "accept()", "preempt(request=r0)", "accept()",
            "schedule(short_at=r0, hit_r0=1)",
        ),
        {"book.idle": ("k1", "k0")},
        "book._held: setup.encoder_decoder == 1 and world.switches.credit_once == 0 -> world.switches.credit_once == 0",
    ),
    "drafts of others": Told(
        "Only a request's own drafts in flight keep its item: 4 computed less 2 drafts is past the end, 1.",
        _WINDOW,
        corner(
            Setup((RequestSetup(1, 6, (_K0,)), RequestSetup(1, 6, ())), slots=1, budget=8, drafts=2, depth=3),
            "arrive(request=r0)", "arrive(request=r1)", "schedule()", "schedule()", "accept()",
        ),
        {"r0.computed": 4, "r0.references": ()},
        "book.live_drafts: part.request == number and part.live == 1 -> part.live == 1",
    ),
    "drafts from before a reset": Told(
        "Drafts that were in flight at a reset are of no admission any more, and keep nothing.",
        Configuration(profile="0.24.0", guard="true-window", items_anywhere=True),
        corner(
            Setup((RequestSetup(1, 2, (_K0,)),), slots=1, budget=2, drafts=1, depth=3),
            "arrive(request=r0)", "resume(request=r0, kept=0)", "schedule()", "reset_prefix_cache()", "schedule()",
            "accept()",
        ),
        {"r0.computed": 1, "r0.references": ()},
        "book.live_drafts: part.request == number and part.live == 1 -> part.request == number",
    ),
    "a victim's planned encode": Told(
        "What a victim of the same pass was to have encoded is withdrawn from the step, while the book keeps it.",
        Configuration(profile="0.12.0"),
        corner(
            Setup((RequestSetup(4, 1, (Item(3, 1, "k1", 1),), 1), RequestSetup(2, 1, ())),
                  slots=1, budget=2, chunk_cap=1, depth=1, by_priority=1),
            "arrive(request=r0)", "resume(request=r0, kept=1)", "accept()", "arrive(request=r1)", "schedule()",
            "accept()", "schedule(short_at=r1)",
        ),
        {"steps[-1].withdrawn": ("k1",), "steps[-1].encode": ()},
        "batch._preempt: work.withdrawn += share.encode -> pass",
    ),
    "a victim of 0.11.0": Told(
        "In 0.11.0 a victim of the same pass keeps its tokens in the step, from where it stood before.",
        Configuration(profile="0.11.0"),
        corner(
            Setup((RequestSetup(4, 1, (), 1), RequestSetup(2, 1, ())),
                  slots=1, budget=2, chunk_cap=1, depth=2, by_priority=1),
            "arrive(request=r0)", "schedule()", "arrive(request=r1)", "accept()", "schedule(short_at=r0)", "accept()",
            "resume(request=r0, kept=2)", "schedule(short_at=r1)",
        ),
        {"steps[-1].r0.start": 3, "steps[-1].r0.tokens": 1, "r0.status": "waiting"},
        "batch._dispatch: state.requests[number].counters.computed if victim else request.counters.computed -> "
        "request.counters.computed",
    ),
    "a victim of 0.11.0 beside a rejection": Told(
        "A victim's step samples nothing, whatever it carries, and no draft of it is rejected.",
        Configuration(profile="0.11.0"),
        corner(
            Setup((RequestSetup(1, 6, (), 2), RequestSetup(1, 6, (), 1), RequestSetup(12, 1, ())),
                  slots=1, budget=8, drafts=3, chunk_cap=2, depth=1, by_priority=1, synchronous=1),
            *_ALL_RUN, "accept()", "schedule(short_at=r2)",
        ),
        {"steps[-1].r0.sampled": 0, "steps[-1].r0.drafts": 1, "steps[-1].r1.sampled": 1},
        "batch._dispatch: counters, sampled, promised = rules.promise(counters, share.drafts, setup.base, "
        "setup.asynchronous); if victim: -> if victim:; counters, sampled, promised = rules.promise(counters, "
        "share.drafts, setup.base, setup.asynchronous)",
    ),
    "a victim of 0.11.0 whose step is rejected": Told(
        "The step of a victim sampled nothing: its drafts are not taken back from what it has computed since.",
        Configuration(profile="0.11.0"),
        corner(
            Setup((RequestSetup(1, 6, (), 2), RequestSetup(1, 6, (), 1), RequestSetup(12, 1, ())),
                  slots=1, budget=8, drafts=3, chunk_cap=2, depth=1, by_priority=1, synchronous=1),
            *_ALL_RUN, "accept()", "schedule(short_at=r2)", "reject(accepted=0)",
        ),
        {"r0.computed": 2},
        "output._process_part: part.drafts - accepted if part.sampled == 1 else 0 -> part.drafts - accepted",
    ),
    "no drafts with asynchronous scheduling in 0.11.0": Told(
        "0.11.0 drafts nothing with asynchronous scheduling.",
        Configuration(profile="0.11.0"),
        corner(Setup((_ONE,), slots=1, budget=1, drafts=1, depth=1), "arrive(request=r0)", "schedule()"),
        {"r0.drafts": 0, "r0.decoding": 1},
        "batch.most_drafts: setup.synchronous == 1 -> setup.synchronous != 1",
    ),
    "drafts without asynchronous scheduling in 0.11.0": Told(
        "0.11.0 drafts with synchronous scheduling.",
        Configuration(profile="0.11.0", synchronous=True),
        corner(
            Setup((RequestSetup(1, 2, ()),), slots=1, budget=1, drafts=1, depth=1, synchronous=1),
            "arrive(request=r0)", "schedule()", "accept()",
        ),
        {"r0.drafts": 1, "r0.known": 2},
        "batch.most_drafts: world.switches.drafts_when_asynchronous == 1 or setup.synchronous == 1 -> "
        "world.switches.drafts_when_asynchronous == 1",
    ),
    "an encode left out": Told(
        "With A4 relaxed one encode may be left out, and the run remembers that it was.",
        Configuration(relax=("A4",)),
        corner(
            Setup((RequestSetup(1, 1, (_K0,)),), slots=1, budget=1, depth=1),
            "arrive(request=r0)", "schedule(omit=k0)",
        ),
        {"omitted": 1, "steps[-1].encode": ()},
        "batch._dispatch: state._replace(requests=tuple(work.requests), running=tuple(work.running), "
        "waiting=tuple(work.waiting), book=book, steps=orphan(state.steps, work.requests) + (Step(tuple(parts), "
        "encode, drop, withdrawn=work.withdrawn),), shelf=shelf, omitted=omitted) -> "
        "state._replace(requests=tuple(work.requests), running=tuple(work.running), waiting=tuple(work.waiting), "
        "book=book, steps=orphan(state.steps, work.requests) + (Step(tuple(parts), encode, drop, "
        "withdrawn=work.withdrawn),), shelf=shelf)",
    ),
    "two encodes left out": Told(
        "A second one is not left out.",
        Configuration(relax=("A4",)),
        corner(
            Setup((RequestSetup(4, 1, (_K0, Item(2, 1, "k1", 1))),), slots=2, budget=2, depth=4),
            "arrive(request=r0)", "schedule(omit=k0)", "schedule(omit=k1)",
        ),
        {"steps[0].encode": (), "steps[-1].encode": ("k1",)},
        "batch._dispatch: omit in encode and omitted == 0 -> omit in encode",
    ),
    "a notice that overtakes": Told(
        "With A1 relaxed an eviction reaches the worker before the steps that were dispatched earlier.",
        Configuration(relax=("A1",)),
        corner(
            Setup((RequestSetup(1, 1, (Item(0, 1, "k1", 1),)), RequestSetup(1, 1, (Item(0, 1, "k2", 1),))),
                  slots=1, budget=1, depth=1),
            "arrive(request=r0)", "schedule()", "accept()", "arrive(request=r1)", "schedule()",
        ),
        {"shelf": (), "book.evicted": ()},
        "batch._dispatch: state._replace(requests=tuple(work.requests), running=tuple(work.running), "
        "waiting=tuple(work.waiting), book=book, steps=orphan(state.steps, work.requests) + (Step(tuple(parts), "
        "encode, drop, withdrawn=work.withdrawn),), shelf=shelf, omitted=omitted) -> "
        "state._replace(requests=tuple(work.requests), running=tuple(work.running), waiting=tuple(work.waiting), "
        "book=book, steps=orphan(state.steps, work.requests) + (Step(tuple(parts), encode, drop, "
        "withdrawn=work.withdrawn),), omitted=omitted)",
    ),
    "computed again after a failed load": Told(
        "Who computes again after a failed KV load begins a new admission with that step, and with no other.",
        Configuration(),
        corner(
            Setup((RequestSetup(2, 1, ()),), slots=1, budget=1, depth=1),
            "arrive(request=r0)", "resume(request=r0, kept=1)", "fail_kv_load(request=r0, valid=0)", "schedule()",
        ),
        {"steps[-1].r0.first": 1, "r0.rebase": 0},
        "batch._dispatch: number in work.admitted or request.rebase == 1 -> number in work.admitted",
    ),
    "others beside a failed load": Told(
        "A failed KV load ends the admission of its own request, and of no other in the same step.",
        Configuration(),
        corner(
            Setup((RequestSetup(2, 1, ()), _ONE), slots=1, budget=1, depth=2),
            "arrive(request=r0)", "resume(request=r0, kept=1)", "arrive(request=r1)", "schedule()",
            "fail_kv_load(request=r0, valid=0)",
        ),
        {"steps[-1].r1.live": 1},
        "batch.end_admission: part._replace(live=0) if part.request == number else part -> part._replace(live=0)",
    ),
    "a session that goes on in a chunk": Told(
        "Until its first whole step, a session that goes on keeps the drafts that it was taken up with.",
        Configuration(profile="0.17.1"),
        corner(
            Setup((RequestSetup(1, 1, (), 0, (Turn(2, 1),)),), slots=1, budget=1, drafts=1, depth=2),
            "arrive(request=r0)", "schedule()", "accept()", "continue_session(request=r0)", "schedule()",
        ),
        {"r0.turn": 1, "r0.decoding": 0, "r0.drafts": 1},
        "batch._dispatch: request.drafts if number in work.admitted else 0 -> 0",
    ),
    "a chunk that is in flight": Told(
        "Without promises, who gets a token beside a chunk of its prompt in flight neither decodes nor drafts.",
        Configuration(profile="0.12.0", synchronous=True),
        corner(
            Setup((RequestSetup(7, 1, (Item(3, 4, "k0", 1),), 2), RequestSetup(17, 2, ())),
                  slots=1, budget=4, drafts=1, depth=3, whole_items=1, by_priority=1, synchronous=1),
            "arrive(request=r0)", "arrive(request=r1)", "schedule(short_at=r0)", "accept()", "preempt(request=r1)",
            "resume(request=r1, kept=15)", "accept()", "preempt(request=r1)", "schedule()", "accept()",
        ),
        {"r1.known": 18, "r1.decoding": 0, "r1.drafts": 0},
        "output._delivered: 0 if chunk == 1 else most_drafts(world, setup) -> most_drafts(world, setup)",
    ),
    "a whole step that is in flight": Told(
        "Who gets a token while a step that samples is in flight decodes.",
        Configuration(profile="0.12.0", synchronous=True),
        corner(
            Setup((RequestSetup(1, 2, ()),), slots=1, budget=1, depth=2, synchronous=1),
            "arrive(request=r0)", "resume(request=r0, kept=0)", "reset_prefix_cache()", "resume(request=r0, kept=0)",
            "accept()",
        ),
        {"r0.known": 2, "r0.decoding": 1},
        "output._dispatched_as_chunk: 1 - parts[-1].sampled -> 1",
    ),
    "the last of several steps in flight": Told(
        "Of several steps in flight the last one says whether a request decodes.",
        Configuration(profile="0.13.0", synchronous=True),
        corner(
            Setup((RequestSetup(3, 2, (), 2), RequestSetup(14, 2, (), 1), RequestSetup(4, 1, (), 1)),
                  slots=1, budget=2, chunk_cap=2, depth=4, synchronous=1),
            "arrive(request=r0)", "arrive(request=r1)", "schedule()", "schedule(short_at=r1)", "arrive(request=r2)",
            "resume(request=r2, kept=2)", "resume(request=r1, kept=15)", "accept()", "accept()", "accept()",
            "schedule(short_at=r0)", "resume(request=r1, kept=11)", "schedule()", "accept()",
        ),
        {"r1.known": 15, "r1.decoding": 1},
        "output._dispatched_as_chunk: parts[-1] -> parts[0]",
    ),
    "a paused session and an old step that samples nothing": Told(
        "A step that samples nothing ends no turn, whatever its request knows by then.",
        Configuration(profile="0.17.1"),
        corner(
            Setup((RequestSetup(4, 1, (), 0, (Turn(1, 2),)),), slots=1, budget=4, depth=4),
            "arrive(request=r0)", "schedule()", "preempt(request=r0)", "schedule()", "accept()", "accept()", "accept()",
        ),
        {"r0.lost": 0},
        "output._process_part: request.counters.known >= limit and part.sampled == 1 and (not discarded) -> "
        "request.counters.known >= limit and (not discarded)",
    ),
    "cross attention, read from before the start": Told(
        "Cross attention reads its item in the first step alone, wherever other readers begin.",
        Configuration(reader="any", encoder_decoder=True),
        corner(
            Setup((RequestSetup(1, 3, (_K0,)),), slots=1, budget=4, depth=2, encoder_decoder=1),
            "arrive(request=r0)", "schedule()", "schedule()", "accept()", "accept(back=1)",
        ),
        {"misses": (), "r0.known": 3},
        "worker.gather: if setup.encoder_decoder == 1:; if world.reader == 'true': -> "
        "if world.reader == 'true':; if setup.encoder_decoder == 1:",
    ),
    "cross attention to what nobody encoded": Told(
        "The first step of an encoder-decoder model reads its item, and misses it where the encode was left out.",
        Configuration(relax=("A4",), encoder_decoder=True),
        corner(
            Setup((RequestSetup(1, 1, (_K0,)),), slots=1, budget=1, depth=1, encoder_decoder=1),
            "arrive(request=r0)", "schedule(omit=k0)", "accept()",
        ),
        {"misses": (Miss(0, 0, "target", 0, 1),)},
        "worker.gather: begin > 0 -> begin >= 0",
    ),
    "an item of a later turn that nobody encodes": Told(
        "A step of a later turn reads the items of that turn as well.",
        Configuration(relax=("A4",)),
        corner(
            Setup((RequestSetup(1, 1, (), 0, (Turn(2, 2, (_K0,)),)),), slots=1, budget=4, depth=2),
            "arrive(request=r0)", "schedule()", "accept()", "continue_session(request=r0)", "schedule(omit=k0)",
            "accept()",
        ),
        {"misses": (Miss(0, 0, "target", 1, 3),)},
        "worker._absent: items += part.extra -> pass",
    ),
    "an item read from before the start": Told(
        "A reader that begins earlier than the scheduler said reads what lies there, and misses it where it is gone.",
        Configuration(reader="any", guard="optimistic-after-advance"),
        corner(
            Setup((RequestSetup(2, 4, (Item(0, 2, "k0", 2),)),), slots=2, budget=4, drafts=1, depth=3),
            "arrive(request=r0)", "schedule()", "evict(count=1)", "schedule()", "accept()", "accept(back=2)",
        ),
        {"misses": (Miss(0, 0, "target", 1, 3),)},
        "worker.gather: part.start - back -> part.start",
    ),
    "not before what is confirmed": Told(
        "No reader begins before what was confirmed when its step was dispatched, however far back it would.",
        Configuration(reader="any"),
        corner(
            Setup((RequestSetup(5, 1, (_K0,)),), slots=1, budget=1, depth=1),
            "arrive(request=r0)", "resume(request=r0, kept=4)", "accept(back=4)",
        ),
        {"misses": (), "r0.status": "finished"},
        "worker.gather: max(part.lowest, part.start - back) -> min(part.lowest, part.start - back)",
    ),
    "a drafter that misses beside its target": Told(
        "What the target misses too, the drafter's miss does not excuse: both are told.",
        Configuration(profile="0.33.0"),
        corner(
            Setup((_ONE, RequestSetup(3, 1, ()), RequestSetup(6, 1, (Item(4, 2, "k2", 1),))),
                  slots=1, budget=4, chunk_cap=2, look_ahead=1, depth=1, by_priority=1),
            "arrive(request=r0)", "arrive(request=r1)", "arrive(request=r2)", "schedule()", "accept()",
            "preempt(request=r1)", "accept()", "schedule()", "accept()", "schedule(short_at=r1)", "accept()",
            "resume(request=r2, kept=4)", "accept()",
        ),
        {"misses": (Miss(2, 0, "target", 4, 6), Miss(2, 0, "draft", 5, 7))},
        "worker._reads: tolerated_from is None or item.start < tolerated_from -> tolerated_from is None",
    ),
    "an encode handed over to who has no share yet": Told(
        "What a victim was to encode and another request holds is encoded by the step, at the cost of its slots: "
        "for another item nothing is left.",
        Configuration(),
        corner(
            _chunked(("k0", 2, 2), ("k0", 0, 2), ("k2", 0, 2)), *_ALL_RUN, "schedule(short_at=r1)",
        ),
        {"steps[-1].encode": ("k0",), "r2.computed": 2, "r2.references": ()},
        "batch._preempt: work.encoder_budget -= 0 if entry is None else entry.size -> pass",
    ),
    "an encode handed over to who has one": Told(
        "It is encoded for the one who holds it, though that one had its share already.",
        Configuration(),
        corner(
            _chunked(("k0", 2, 2), ("k0", 0, 2), ("k0", 0, 2)), *_ALL_RUN, "schedule(short_at=r2)",
        ),
        {"steps[-1].encode": ("k0",), "steps[-1].withdrawn": ("k0",)},
        "batch._preempt: work.shares[other] = work.shares[other]._replace(encode=(*work.shares[other].encode, key)) -> "
        "pass",
    ),
    "a rejection before an admission": Told(
        "A rejection shifts where steps of the same admission truly start, not those of one that began since.",
        _WINDOW,
        corner(
            Setup((RequestSetup(1, 3, ()),), slots=1, budget=2, drafts=1, depth=3),
            "arrive(request=r0)", "schedule()", "accept()", "schedule()", "reset_prefix_cache()",
            "resume(request=r0, kept=0)", "schedule()", "reject(accepted=0)",
        ),
        {"steps[0].r0.first": 1, "steps[0].r0.rejected": 0, "steps[-1].r0.rejected": 0},
        "worker.shift_readers: same and all((part.request != number or part.first == 0 for part in step.parts)) -> "
        "all((part.request != number or part.first == 0 for part in step.parts))",
    ),
    "a rejection in the admission before": Told(
        "Nor where the step that began it is the next one.",
        _WINDOW,
        corner(
            Setup((RequestSetup(1, 2, ()),), slots=1, budget=2, drafts=1, depth=3),
            "arrive(request=r0)", "resume(request=r0, kept=0)", "schedule()", "reset_prefix_cache()", "schedule()",
            "accept()", "reject(accepted=0)",
        ),
        {"steps[-1].r0.first": 1, "steps[-1].r0.rejected": 0},
        "worker.shift_readers: part.request != number -> part.request == number",
    ),
    "a rejection beside another's admission": Told(
        "Another request's admission in the same step keeps nothing of a rejection away.",
        Configuration(reader="true", guard="true-window", items_anywhere=True, diffusion=True),
        corner(
            Setup((RequestSetup(1, 3, ()), RequestSetup(1, 1, (), 1)),
                  slots=1, budget=2, drafts=1, depth=2, diffusion=1),
            "arrive(request=r0)", "resume(request=r0, kept=0)", "arrive(request=r1)", "accept()",
            "schedule(short_at=r1)", "schedule()", "reject(accepted=0)",
        ),
        {"steps[-1].r1.first": 1, "steps[-1].r0.rejected": 1},
        "worker.shift_readers: part.request != number or part.first == 0 -> part.first == 0",
    ),
    "another's rejection": Told(
        "A rejection shifts steps of its own request alone.",
        _WINDOW,
        corner(
            Setup((RequestSetup(1, 6, ()), RequestSetup(9, 1, ())),
                  slots=1, budget=8, drafts=1, chunk_cap=3, depth=3),
            "arrive(request=r0)", "schedule()", "arrive(request=r1)", "schedule()", "schedule()", "accept()",
            "reject(accepted=0)",
        ),
        {"steps[-1].r0.rejected": 1, "steps[-1].r1.rejected": 0},
        "worker.shift_readers: part._replace(rejected=part.rejected + rejected) if part.request == number else part -> "
        "part._replace(rejected=part.rejected + rejected)",
    ),
    "two rejections": Told(
        "What was rejected of two steps before adds up.",
        _WINDOW,
        corner(
            Setup((RequestSetup(1, 8, ()),), slots=1, budget=2, drafts=1, depth=3),
            "arrive(request=r0)", "schedule()", "schedule()", "accept()", "schedule()", "schedule()",
            "reject(accepted=0)", "reject(accepted=0)",
        ),
        {"steps[-1].r0.rejected": 2},
        "worker.shift_readers: part.rejected + rejected -> rejected",
    ),
}  # fmt: skip
