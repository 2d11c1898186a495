"""Several requests: shared keys, both policies, victims, withdrawn encodes. The right values are written in."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from outlives.invariants.agreement import broken_by_itself, keeps_assumptions
from outlives.invariants.configuration import Configuration
from outlives.invariants.explore import Bounds, breadth_first
from outlives.invariants.machine import random_walk
from outlives.invariants.proof.tie import untied
from outlives.invariants.report import explain
from outlives.invariants.scope_choice import chosen_scopes
from outlives.invariants.scopes import NAMED_SCOPES
from outlives.model.contract import Range
from outlives.model.errors import UnknownName
from outlives.model.setup import Item, RequestSetup, Scope, Setup
from outlives.model.state import WAITING, Entry
from worlds import FixedModel, refusal, run, world
from worlds import action as action_of


def asks(prompt: int, *items: tuple[int, int, str], outputs: int = 1, priority: int = 0) -> RequestSetup:
    """A request with items (start, end, key), each of as many slots as it has tokens."""
    made = tuple(Item(start, end - start, key, end - start) for start, end, key in items)
    return RequestSetup(prompt, outputs, made, priority)


def model_of(profile: str, *requests: RequestSetup, policy: str = "fcfs", **numbers: int) -> FixedModel:
    setup = Setup(requests, **{"slots": 4, "budget": 8, "by_priority": int(policy == "priority"), **numbers})
    model = FixedModel(world(profile, policy=policy), [setup])
    model.scope = model.scope._replace(requests=len(requests))
    model._names = tuple(f"r{number}" for number in range(len(requests)))
    return model


BOTH = ("arrive(request=r0)", "arrive(request=r1)")


def test_two_requests_reference_one_entry_and_one_encode_serves_both() -> None:
    model = model_of("repaired", asks(3, (0, 2, "k0")), asks(4, (1, 3, "k0")))
    state = run(model, *BOTH, "schedule()")
    assert state.steps[0].encode == ("k0",)
    assert state.book.entries == (Entry("k0", 2, (0, 1)),)
    assert [request.references for request in state.requests] == [(0,), (0,)]


def test_a_prefix_cache_answers_for_everybody_who_is_admitted_in_the_pass() -> None:
    """What a real cache found (`hit_r1`), in the place of what a run asks for: never the last token."""
    asked = asks(6, (1, 3, "k0"))
    model = model_of("0.32.0", asked, asked, asks(6, (1, 3, "k1")), budget=20)
    arrived = (*BOTH, "arrive(request=r2)")
    before = run(model, *arrived)
    for text, parts in (
        ("schedule(hit_r1=4, hit_r2=1)", [(0, 0, 6), (1, 4, 2), (2, 1, 5)]),
        ("resume(request=r1, kept=2, hit_r1=3, hit_r0=9)", [(1, 3, 3), (0, 5, 1), (2, 0, 6)]),
    ):
        after = run(model, *arrived, text)
        assert [(part.request, part.start, part.tokens) for part in after.steps[0].parts] == parts
        assert not list(untied(model.world, before, action_of(text), after))


def test_the_entry_is_idle_only_when_both_have_released_it() -> None:
    model = model_of("repaired", asks(3, (0, 2, "k0")), asks(4, (1, 3, "k0")))
    one_gone = run(model, *BOTH, "schedule()", "abort(request=r0)")
    assert (one_gone.book.entries, one_gone.book.idle) == ((Entry("k0", 2, (1,)),), ())
    both_gone = run(model, *BOTH, "schedule()", "abort(request=r0)", "abort(request=r1)")
    assert both_gone.book.idle == ("k0",)


def test_a_second_occurrence_planned_in_one_pass_has_a_reference_of_its_own_from_0_32_on() -> None:
    twice = asks(6, (0, 2, "k0"), (3, 5, "k0"))
    assert run(model_of("0.29.0", twice), "arrive(request=r0)", "schedule()").requests[0].references == (0,)
    assert run(model_of("0.32.0", twice), "arrive(request=r0)", "schedule()").requests[0].references == (0, 1)


def test_under_priority_the_more_urgent_request_is_admitted_first() -> None:
    requests = (asks(3, priority=1), asks(3, priority=0))
    assert run(model_of("repaired", *requests), *BOTH, "schedule()").running == (0, 1)
    assert run(model_of("repaired", *requests, policy="priority"), *BOTH, "schedule()").running == (1, 0)


def test_running_requests_are_served_in_the_order_of_admission_under_both_policies() -> None:
    requests = (asks(6, outputs=3, priority=1), asks(6, outputs=3, priority=0))
    steps = ("arrive(request=r0)", "schedule()", "arrive(request=r1)", "schedule()", "accept()", "schedule()")
    for policy in ("fcfs", "priority"):
        state = run(model_of("repaired", *requests, policy=policy, budget=4), *steps)
        assert [part.request for part in state.steps[-1].parts] == [0, 1]


def test_the_victim_is_the_last_admitted_or_the_least_urgent() -> None:
    requests = (asks(6, outputs=3, priority=1), asks(6, outputs=3, priority=0))
    steps = ("arrive(request=r0)", "schedule()", "arrive(request=r1)", "schedule()", "accept()")
    fcfs = run(model_of("repaired", *requests, budget=4), *steps, "schedule(short_at=r0)")
    assert (fcfs.running, fcfs.waiting) == ((0,), (1,))
    assert [part.request for part in fcfs.steps[-1].parts] == [0]
    urgent = run(model_of("repaired", *requests, policy="priority", budget=4), *steps, "schedule(short_at=r1)")
    assert (urgent.running, urgent.waiting) == ((1,), (0,))
    assert [part.request for part in urgent.steps[-1].parts] == [1], "the victim's part of this pass is withdrawn"


def test_under_priority_a_request_that_preempts_itself_lets_the_pass_go_on() -> None:
    requests = (asks(6, outputs=3, priority=1), asks(6, outputs=3, priority=0))
    steps = ("arrive(request=r0)", "schedule()", "arrive(request=r1)", "schedule()", "accept()")
    state = run(model_of("repaired", *requests, policy="priority", budget=4), *steps, "schedule(short_at=r0)")
    assert (state.running, [part.request for part in state.steps[-1].parts]) == ((1,), [1])


RIVALS = (asks(6, (4, 6, "k0"), priority=1), asks(4, (3, 4, "k1")))
WITHDRAWN = (*BOTH, "resume(request=r0, kept=1)", "schedule(short_at=r1)")


def test_no_release_tells_the_book_that_a_victims_encode_was_withdrawn() -> None:
    numbers = {"slots": 3, "budget": 6, "chunk_cap": 2}
    state = run(model_of("0.33.0", *RIVALS, policy="priority", **numbers), *WITHDRAWN)
    assert state.steps[-1].encode == ("k1",)
    assert "k0" in state.book.idle, "the book has what nobody encodes"
    mended = run(model_of("repaired", *RIVALS, policy="priority", **numbers), *WITHDRAWN)
    assert [entry.key for entry in mended.book.entries] == ["k1"]
    assert (mended.book.free, mended.book.reclaimable) == (2, 2)


def test_a_withdrawn_encode_that_another_request_hit_in_the_same_pass_is_still_run() -> None:
    sharing = (asks(6, (4, 6, "k0"), priority=1), asks(6, (4, 6, "k0"), priority=0), asks(6, priority=0))
    steps = (*BOTH, "arrive(request=r2)", "resume(request=r0, kept=1)", "accept()")
    for profile, encoded in (("0.33.0", ()), ("repaired", ("k0",))):
        model = model_of(profile, *sharing, policy="priority", slots=4, budget=12, chunk_cap=3)
        state = run(model, *steps, "schedule(short_at=r2)")
        assert (state.steps[-1].encode, [part.request for part in state.steps[-1].parts]) == (encoded, [1, 2])
        assert state.book.entries == (Entry("k0", 2, (1,)),)


def test_the_exhaustive_engine_finds_the_withdrawn_encode_and_nothing_once_it_is_repaired() -> None:
    expected = {"GATHER-AFTER-FREE": 8, "PLANNED-ENCODED": 4, "SHELF-AGREES": 6}
    for profile, lengths in (("0.33.0", expected), ("repaired", {})):
        model = model_of(profile, *RIVALS, policy="priority", slots=3, budget=6, chunk_cap=2)
        found = breadth_first(model, bounds=Bounds(states=50_000))
        assert found.complete
        assert {row.property: len(row.trace.actions) for row in found.results() if row.trace} == lengths


@pytest.mark.parametrize(
    ("profile", "computed", "parts", "encode"),
    [("0.11.0", 2, [(0, 2, 0), (1, 2, 1)], ("k0",)), ("0.12.0", 0, [(1, 2, 1)], ())],
)
def test_0_11_0_leaves_a_victim_that_was_already_scheduled_in_the_step(
    profile: str, computed: int, parts: list[tuple[int, int, int]], encode: tuple[str, ...]
) -> None:
    """Its tokens then count for the waiting request, which holds no block. (Request, tokens, live) of each part."""
    requests = (asks(6, (4, 6, "k0"), priority=1), asks(6))
    begin = ("arrive(request=r0)", "schedule()", "arrive(request=r1)", "schedule()", "accept()", "accept()")
    model = model_of(profile, *requests, policy="priority", budget=4, chunk_cap=2)
    state = run(model, *begin, "schedule(short_at=r1)")
    assert state.requests[0].status == WAITING
    assert state.requests[0].counters.computed == computed
    assert [(part.request, part.tokens, part.live) for part in state.steps[0].parts] == parts
    assert state.steps[0].encode == encode


def test_first_come_service_has_no_victim_that_was_already_scheduled() -> None:
    model = model_of("0.33.0", *RIVALS, slots=3, budget=6, chunk_cap=2)
    found = breadth_first(model, bounds=Bounds(states=50_000))
    assert found.complete
    assert not [row.property for row in found.results() if row.trace]


@pytest.mark.parametrize("policy", ["fcfs", "priority"])
@pytest.mark.parametrize("requests", [2, 3])
def test_steps_of_many_requests_are_steps_of_the_proved_relation(policy: str, requests: int) -> None:
    scope = Scope(requests=requests, shared=Range(0, 1), priority=Range(0, 2))
    configuration = Configuration(policy=policy, numbers={"requests": (requests, requests)})
    model = configuration.model(scope)
    taken = 0
    for before, action, after in random_walk(model, 1_500, seed=5):
        taken += 1
        assert next(untied(model.world, before, action, after), None) is None
    assert taken == 1_500


def test_a_profile_that_breaks_an_assumption_by_itself_says_which() -> None:
    assert keeps_assumptions(world("repaired", policy="priority"))
    assert "A4" in broken_by_itself(world("0.33.0", policy="priority"))
    assert "A4" in broken_by_itself(world("0.33.0", policy="both"))
    assert broken_by_itself(world("0.33.0", policy="fcfs")) == ""
    assert "turns end" in broken_by_itself(world("0.29.0", policy="fcfs"))
    assert broken_by_itself(world("0.29.0", policy="fcfs", closed=("sessions",))) == ""
    assert "discards outputs" in broken_by_itself(world("0.24.0", policy="fcfs"))
    assert "A2 and A3" in broken_by_itself(world("0.17.1"))


def test_drawn_setups_share_keys_with_the_length_of_the_first() -> None:
    scope = Scope(requests=2, shared=Range(0, 1), priority=Range(0, 2), items=Range(2, 2))
    rng = random.Random(4)
    shared = 0
    for _ in range(200):
        drawn = scope.setup({name: rng.randint(span.low, span.high) for name, span in scope.table().items()})  # type: ignore[union-attr]
        lengths: dict[str, int] = {}
        for asked in drawn.requests:
            for item in asked.items:
                assert lengths.setdefault(item.key, item.length) == item.length
        shared += len(lengths) < 4
    assert shared > 50
    assert {item.key for asked in scope.setup({}).requests for item in asked.items} == {"k0", "k1", "k2", "k3"}


def test_scopes_of_several_requests_are_visited_only_where_there_are_so_many() -> None:
    many = {scope.name: scope.requests for scope in NAMED_SCOPES if scope.requests > 1}
    assert many == {
        "withdrawn-encode": 2,
        "shared-key": 2,
        "rivals": 2,
        "three-in-line": 3,
        "urgent-victims": 2,
        "urgent-resets": 2,
        "encoder-decoder": 2,
        "shared-and-own": 2,
        "shared-in-one-pass": 2,
        "drafts-beside-prompt": 2,
        "victim-encodes": 2,
    }
    one = chosen_scopes(Configuration(numbers={"requests": (1, 1)}), every_number=False)
    assert not many.keys() & one.keys()
    assert many.keys() <= chosen_scopes(Configuration(), every_number=False).keys()


def test_requests_arrive_in_turn_and_a_policy_has_a_known_name() -> None:
    model = model_of("repaired", *RIVALS)
    assert refusal(model, next(iter(model.initial_states())), "arrive(request=r1)") == "not-its-turn"
    with pytest.raises(UnknownName, match=r"unknown policy 'sjf'\. Known: fcfs, priority, both"):
        Configuration(policy="sjf")  # type: ignore[arg-type]


def test_taking_encodes_back_is_a_rule_that_a_fault_can_replace() -> None:
    fixed = world("repaired", policy="priority")
    broken = replace(fixed, rules=replace(fixed.rules, withdraw=lambda _world, book, _request, _keys: (book, ())))
    model = FixedModel(broken, [Setup(RIVALS, slots=3, budget=6, chunk_cap=2, by_priority=1)])
    model._names = ("r0", "r1")
    state = run(model, *WITHDRAWN)
    assert "k0" in state.book.idle


def test_the_report_tells_a_victim_and_its_priority_from_a_failed_admission() -> None:
    model = model_of("0.33.0", *RIVALS, policy="priority", slots=3, budget=6, chunk_cap=2)
    found = breadth_first(model, bounds=Bounds(states=50_000), properties=("PLANNED-ENCODED",))
    (trace,) = [row.trace for row in found.results() if row.trace]
    violation = explain(trace, world=model.world)
    assert "r0: prompt 6, at most 1 output, priority 1" in violation.setup
    told = [event.text for event in violation.story.events]
    assert any("released item0 because it was preempted" in text for text in told)
    assert not any("admission" in text for text in told)


def test_the_replay_command_can_be_pasted_into_a_shell() -> None:
    command = Configuration().replay_command(Path("a dir; x/t.itf.json"))
    assert command == "outlives replay 'a dir; x/t.itf.json'"
