"""Every past fault is a trace file with its verdict: each is replayed, and the same actions hold where they should.

The four regression tests of #45347 stand here as well, as model traces and as tests of the guard.
"""

import json
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from outlives.invariants.proof.cells import COLUMNS, cell
from outlives.invariants.replay import Replay, replay
from outlives.invariants.verdict import Verdict
from outlives.model.contract import Refusal
from outlives.model.lifetime import Counters, guard_named
from outlives.model.setup import RARE_ROUTES
from outlives.model.state import RUNNING, State
from outlives.model.trace import parse_trace
from regressions.record import CASES, DATE
from worlds import FixedModel, fair_end, fixed, run, setup

FOLDER = Path(__file__).parent / "regressions"
EXPECTED: dict[str, dict[str, Any]] = tomllib.loads((FOLDER / "expected.toml").read_text(encoding="utf-8"))
CHANGES = [(name, at) for name, told in EXPECTED.items() for at in range(len(told["passes_with"]))]


def path(name: str) -> Path:
    return FOLDER / f"{name}.itf.json"


def states(name: str) -> list[State]:
    return [step.state for step in replay(path(f"2026-11-30-{name}")).trace.steps]


def changed(name: str, members: dict[str, Any]) -> Replay:
    """The same actions on the same numbers, under another configuration."""
    root = json.loads(path(name).read_bytes())
    root["#meta"].update(members)
    return replay(parse_trace(json.dumps(root).encode(), name))


def test_every_file_has_a_verdict_and_every_verdict_a_file() -> None:
    files = {file.name.removesuffix(".itf.json") for file in FOLDER.glob("*.itf.json")}
    assert files == set(EXPECTED)
    assert {f"{DATE}-{case.name}" for case in CASES} <= files


@pytest.mark.parametrize("name", EXPECTED)
def test_it_happens_again(name: str) -> None:
    told, again = EXPECTED[name], replay(path(name))
    assert again.recorded.property_name == told["property"]
    assert len(again.recorded.steps) - 1 == told["actions"]
    assert again.outcome == told["verdict"]
    if "differs" in told:  # the model has come nearer to the released schedulers since
        assert told["differs"] in str(again.divergence)
    else:
        assert again.divergence is None
    expected = {told["property"], *told.get("also", ())} if told["verdict"] == "violated again" else set()
    assert {found.property for found in again.violations} == expected


@pytest.mark.parametrize(("name", "at"), CHANGES)
def test_the_same_actions_hold_with(name: str, at: int) -> None:
    again = changed(name, EXPECTED[name]["passes_with"][at])
    assert again.outcome == "passes", again.violations


@pytest.mark.parametrize("name", [name for name, told in EXPECTED.items() if "again_with" in told])
def test_the_same_actions_are_wrong_with(name: str) -> None:
    for members in EXPECTED[name]["again_with"]:
        again = changed(name, members)
        assert again.outcome == "violated again"
        assert again.divergence is None


# --- #38907: scheduled but not executed -------------------------------------------------------------------------------

SCHEDULED = ("optimistic-after-advance", "optimistic-before-advance", "optimistic-at-output")
"""The oldest guard, the revision of #38907, and its merged form."""


@pytest.mark.parametrize("guard", SCHEDULED)
def test_scheduled_but_not_executed_is_safe_while_notices_are_in_order(guard: str) -> None:
    """Under A1 to A4 each of the three is proved, for items inside the prompt and anywhere."""
    column = next(column for column in COLUMNS if column.name == "A1-A4")
    for anywhere in (False, True):
        assert cell(guard_named(guard), column, anywhere=anywhere).verdict is Verdict.PROVED


@pytest.mark.parametrize("name", ["38907-scheduled-not-executed-a1", "38907-revision-a1", "38907-merged-a1"])
def test_scheduled_but_not_executed_is_unsafe_where_notices_overtake(name: str) -> None:
    """The item's last chunk has left and not executed, the item is freed and evicted, and the chunk reads it."""
    seen = states(name)
    evicted = seen[-2]
    assert evicted.requests[0].counters.in_flight > 0
    assert (evicted.requests[0].references, evicted.shelf) == ((), ())
    assert evicted.steps[0].parts[0].start < 3 <= evicted.steps[0].parts[0].start + evicted.steps[0].parts[0].tokens
    assert seen[-1].misses


# --- the four regression tests of #45347 ------------------------------------------------------------------------------


def test_the_guard_respects_unconfirmed_placeholders() -> None:
    """Four outputs are promised and the item ends at 150: kept while computed - 4 < 150, let go at equality."""
    guard = guard_named("confirmed").condition

    def let_go(computed: int) -> bool:
        return guard(Counters(computed=computed, placeholders=4, in_flight=4, stale=0, known=250), 150, 1)

    assert [computed for computed in range(145, 160) if let_go(computed)] == [154, 155, 156, 157, 158, 159]
    optimistic = guard_named("optimistic-at-output").condition
    assert optimistic(Counters(computed=151, placeholders=4, in_flight=4, stale=0, known=250), 150, 1)


def reached(model: FixedModel) -> set[State]:
    """Every reachable state."""
    seen = set(model.initial_states())
    open_ends = list(seen)
    while open_ends:
        state = open_ends.pop()
        for action in model.actions(state):
            after = model.next_state(state, action)
            if not isinstance(after, Refusal) and after not in seen:
                seen.add(after)
                open_ends.append(after)
    return seen


def in_prefill_and_promised(states: set[State]) -> list[State]:
    """The shape of the seed's start state: a running request has promised outputs, and its prompt is not computed."""
    return [
        state
        for state in states
        for request, asked in zip(state.requests, state.setup.requests, strict=True)
        if request.status == RUNNING and request.counters.placeholders > 0 and request.counters.computed < asked.prompt
    ]


@pytest.mark.parametrize("depth", [2, 3])
def test_its_start_state_is_reached_by_no_run(depth: int) -> None:
    """Scaled down from prompt 250 with item [50,150): prompt 10, item [2,5), chunks of 4, up to two drafts."""
    drafts = 2 if depth == 2 else 1
    seen = reached(fixed("repaired", setup([(2, 5)], 10, slots=3, budget=4, drafts=drafts, depth=depth)))
    assert sum(state.requests[0].counters.placeholders > 0 for state in seen) > 500
    assert sum(0 < state.requests[0].counters.computed < 10 for state in seen) > 100
    assert in_prefill_and_promised(seen) == []


def test_its_start_state_is_reached_where_placeholders_survive_a_preemption() -> None:
    """Up to 0.26, with three steps in flight (#48245): the promises are of steps from before the preemption."""
    numbers = setup([(2, 5)], 10, slots=3, budget=4, drafts=1, depth=3)
    found = in_prefill_and_promised(reached(fixed("0.24.0", numbers)))
    assert found
    between = [state for state in found for c in (state.requests[0].counters,) if c.computed - c.placeholders < 5]
    assert any(state.requests[0].counters.computed >= 5 for state in between)
    assert in_prefill_and_promised(reached(fixed("0.24.0", numbers._replace(depth=2)))) == []


@pytest.mark.parametrize("profile", ["0.24.0", "0.33.0", "repaired"])
def test_its_start_state_is_reached_where_a_kv_load_fails(profile: str) -> None:
    """The seed: item [50,150), prompt 250, computed 151 or 153 with 4 placeholders. Scaled down to item [2,5), prompt
    10: a failed step keeps its promises in every release, while computed falls into the prompt, to the item's end."""
    numbers = setup([(2, 5)], 10, slots=3, budget=4, drafts=1)
    closed = reached(fixed(profile, numbers, closed=("kv-load-failure",)))
    assert len(closed) > 1_000
    assert in_prefill_and_promised(closed) == []
    others = tuple(route for route in RARE_ROUTES if route != "kv-load-failure")
    opened = reached(fixed(profile, numbers._replace(left_out=others)))
    held = {
        (c.computed, c.placeholders)
        for state in in_prefill_and_promised(opened)
        for c in (state.requests[0].counters,)
        if c.computed - c.placeholders < 5 <= c.computed and state.requests[0].references
    }
    assert len(opened) > len(closed)
    assert ({(5, 1), (6, 3)} <= held) == (profile != "repaired")
    assert ({(6, 4), (8, 4)} <= held) == (profile == "0.33.0")  # a padded admission promises two more
    if profile == "repaired":
        assert held == set()


def test_unchanged_without_speculative_decoding() -> None:
    """No drafts, item [3,5) in a prompt of 7, one token a step: while the prompt is computed nothing is promised; kept
    at computed 4, released at 5, by both guards alike."""
    seen = states("seed-unchanged-without-drafts")
    settled = {
        request.counters.computed: request
        for state in seen
        for request in state.requests
        if request.status == RUNNING and 0 < request.counters.computed < 7 and request.counters.in_flight == 0
    }
    assert {request.counters.placeholders for request in settled.values()} == {0}
    assert {computed: request.references for computed, request in settled.items() if computed >= 4} == {
        4: (0,),
        5: (),
        6: (),
    }
    again = changed("2026-11-30-seed-unchanged-without-drafts", {"guard": "optimistic-at-output"})
    assert [step.state for step in again.trace.steps] == seen


def test_without_drafts_the_guards_differ_by_the_one_output_in_flight() -> None:
    """Items past the prompt: the sampled position in flight is promised, so confirmed waits for its output."""
    numbers = setup([(0, 2)], 1, outputs=5, slots=2, budget=4)
    actions = ("arrive(request=r0)", "schedule()", "schedule()", "accept()")
    kept = {
        guard: run(fixed("repaired", numbers, anywhere=True, guard=guard), *actions).requests[0].references
        for guard in ("confirmed", "optimistic-at-output")
    }
    assert kept == {"confirmed": (0,), "optimistic-at-output": ()}


def test_retained_across_preemption_and_resume() -> None:
    """No eviction between: idle while preempted, then a hit; nothing is told to the worker, nothing encoded again."""
    seen = states("seed-retained-across-preemption")
    preempted, resumed = seen[3], seen[6]
    assert preempted.requests[0].counters.computed == 0
    assert (preempted.requests[0].references, preempted.book.idle) == ((), ("k0",))
    assert (resumed.requests[0].references, resumed.book.idle) == ((0,), ())
    assert resumed.steps[-1].encode == ()
    assert sum(bool(step.drop) for state in seen for step in state.steps) == 0
    assert seen[2].steps[-1].encode == ("k0",)


def test_recomputed_when_evicted_during_preemption() -> None:
    """A stranger takes the slots: announced exactly once, missed at resumption, encoded again."""
    seen = states("seed-recomputed-after-eviction")
    told = [after.steps[-1] for before, after in pairwise(seen) if _dispatched(before, after)]
    assert [step.drop for step in told] == [(), (), ("k0",), ()]
    assert [step.encode for step in told] == [("k0",), (), (), ("k0",)]
    assert [state.shelf for state in seen[-4:]] == [(), (), (), ("k0",)]


@pytest.mark.parametrize(("profile", "drop"), [("0.24.0", ("k0",)), ("repaired", ())])
def test_evicted_and_encoded_again_in_one_pass(profile: str, drop: tuple[str, ...]) -> None:
    """From 0.28.0 the notice is left out (#52482); before, the worker drops first and encodes then."""
    model = fixed(profile, setup([(0, 2)], 3, slots=2, budget=4))
    actions = ("arrive(request=r0)", "schedule()", "preempt(request=r0)", "accept()", "accept()", "evict(count=1)")
    state = run(model, *actions, "schedule()")
    assert (state.steps[-1].encode, state.steps[-1].drop) == (("k0",), drop)
    done = run(model, *actions, "schedule()", "accept()")
    assert (done.shelf, done.misses) == (("k0",), ())


def _dispatched(before: State, after: State) -> bool:
    return len(after.steps) > len(before.steps)


def test_the_guard_alone_does_not_end_the_crash_at_a_chunk_end() -> None:
    """The claim that the condition of #45347 ends the crashes: with it in 0.17.1's place, this one happens again."""
    again = changed("2026-11-30-chunk-end-0.17.1", {"guard": "confirmed"})
    assert again.outcome == "violated again"
    assert [found.property for found in again.violations] == ["GATHER-AFTER-FREE"]


@pytest.mark.parametrize(
    ("profile", "length", "status"),
    [
        ("0.13.0", 32, "running"),
        ("0.17.1", 31, "finished"),
        ("0.17.1", 32, "running"),
        ("0.33.0", 31, "finished"),
        ("0.33.0", 32, "running"),
        ("repaired", 32, "finished"),
    ],
)
def test_an_item_that_may_not_be_split_and_is_as_long_as_the_budget(profile: str, length: int, status: str) -> None:
    """One position before the item a budget of 32 is too short for the rest and all of the item, and the cut leaves 0.

    (0.13.0 does not subtract the look-ahead: there the drafter misses the item instead.)
    """
    numbers = setup([(64, 64 + length)], 128, slots=64, budget=32, look_ahead=1, whole_items=1)
    model = fixed(profile, numbers)
    end = fair_end(model, run(model, "arrive(request=r0)"))
    assert end.requests[0].status == status
    assert bool(end.misses) == (profile == "0.13.0")
    if profile in ("0.17.1", "0.33.0") and length == 32:
        assert end.requests[0].counters.computed == 63
