"""Rare routes in the proof: what each must do for the theorem to stand, shown by dropping it, and on the model."""

import random
from dataclasses import replace

import pytest
from outlives.invariants.configuration import Configuration
from outlives.invariants.proof.bounded import Move, search
from outlives.invariants.proof.cells import COLUMNS, ENCODER_RESET, ROWS, cell, routes_assumed, row_of
from outlives.invariants.proof.evidence import necessity, vacuity
from outlives.invariants.proof.lemma_sets import lemma_sets
from outlives.invariants.proof.life import EMPTY, Arithmetic, Assumed, Terms
from outlives.invariants.proof.on_model import _actions, _difference, rerun, world_of
from outlives.invariants.proof.pipeline import EMPTY_RUN, MOVES, misses
from outlives.invariants.proof.pipeline_routes import ROUTE_MOVES, risky_routes
from outlives.invariants.proof.reach import reach
from outlives.invariants.proof.relation import TRANSITIONS
from outlives.invariants.proof.theorem import prove
from outlives.invariants.proof_row import proof_row
from outlives.invariants.verdict import Verdict
from outlives.model.contract import Refusal
from outlives.model.errors import UnknownName
from outlives.model.lifetime import GUARDS, guard_named
from outlives.model.profiles import PROFILES
from outlives.model.scheduler import SchedulerModel, initial_state
from outlives.model.setup import RARE_ROUTES, Item, RequestSetup, Scope, Setup, Turn
from worlds import action

COLUMN = {column.name: column for column in COLUMNS}
CONFIRMED = guard_named("confirmed")
ALWAYS = replace(CONFIRMED, name="always", condition=lambda c, end, look_ahead: True)
RARE = frozenset({"reset-prefix-cache", "kv-load-failure", "sessions"})


def failing(**assumed):
    return {each.name for each in prove(Terms(guard=CONFIRMED, assumed=Assumed(**assumed))).failed}


def releasing(**switches):
    """`repaired` with these switches as releases have them."""
    profile = PROFILES["repaired"]
    return replace(profile, switches=replace(profile.switches, **switches))


# --- a failed load of KV blocks: promises must go -------------------------------------------------------------------


@pytest.fixture(scope="module")
def promises_kept():
    terms = Terms(guard=CONFIRMED, assumed=replace(COLUMN["A3 any"].assumed(anywhere=False), settle_kv=0))
    return search(terms).found


def test_a_failed_load_that_keeps_promises_loses_upkeep():
    broken = failing(settle_kv=0)
    assert {each.split(" / ")[1] for each in broken} == {"kv-failure"}
    assert {"UPKEEP / kv-failure", "COVERAGE / kv-failure"} <= broken


def test_a_failed_load_that_keeps_promises_is_missed_in_six_actions(promises_kept):
    assert [move.name for move in promises_kept.moves] == ["resume", "dispatch", "kv-failure", "dispatch", "output"]
    assert len(promises_kept) == 6
    assert promises_kept.end <= promises_kept.prompt
    failed = promises_kept.moves[2].after.life
    assert failed.live_promises < failed.counters.placeholders


def test_the_model_takes_the_run_where_promises_are_kept_and_not_where_they_go(promises_kept):
    kept = rerun(promises_kept, world_of(CONFIRMED, COLUMN["A3 any"], releasing(settle_kv_failure=0)))
    assert kept.difference == ""
    assert [(miss.item, miss.reader) for miss in kept.steps[-1].state.misses] == [(0, "target")]
    assert "fail_kv_load" in {step.action.name for step in kept.steps[1:]}
    settled = rerun(promises_kept, world_of(CONFIRMED, COLUMN["A3 any"]))
    assert settled.difference.startswith("after kv-failure, counters")


def test_a_release_that_keeps_promises_is_judged_by_its_switches():
    judged = cell(CONFIRMED, COLUMN["A3 any"], anywhere=False, switches=PROFILES["0.33.0"].switches)
    assert judged.verdict is Verdict.VIOLATED
    assert "kv-failure" in {move.name for move in judged.found.moves}
    closed = replace(COLUMN["A3 any"], closed=frozenset({"kv-load-failure"}))
    assert risky_routes(closed.assumed(anywhere=False).behaving(PROFILES["0.33.0"].switches)) == frozenset()


# --- a reset of the encoder cache: no reader may start below what the gate looks at ----------------------------------


@pytest.mark.parametrize("guard", ["retain", "confirmed"])
def test_an_encoder_reset_beside_readers_that_go_back_is_unsafe_under_any_guard(guard):
    column = replace(COLUMN["A3 any"], encoder_reset=1)
    report = prove(Terms(guard=guard_named(guard), assumed=column.assumed(anywhere=False)))
    assert {each.name for each in report.failed} == {"COVERAGE / reset-encoder-cache"}
    counterexample = search(Terms(guard=guard_named(guard), assumed=column.assumed(anywhere=False))).found
    assert [move.name for move in counterexample.moves] == ["resume", "reset-encoder", "dispatch", "output"]
    again = rerun(counterexample, world_of(guard_named(guard), column))
    assert again.difference == ""
    assert again.steps[-1].state.misses


@pytest.mark.parametrize("assumed", [Assumed(reader="checked"), Assumed(reader="true", anywhere=False)])
@pytest.mark.parametrize("guard", [*GUARDS.values(), ALWAYS], ids=lambda guard: guard.name)
def test_an_encoder_reset_is_safe_under_every_guard_where_windows_agree_or_items_lie_in_the_prompt(guard, assumed):
    report = prove(Terms(guard=guard, assumed=replace(assumed, encoder_reset=1)))
    assert report.verdict is Verdict.PROVED
    assert "reset-encoder-cache" in report.grid()["CHECKED-READER"]


def test_the_encoder_reset_has_a_row_of_its_own():
    assert (*GUARDS, ENCODER_RESET) == ROWS
    guard, column = row_of(ENCODER_RESET, COLUMN["A3 true"])
    assert (guard.name, column.encoder_reset, column.reader) == ("confirmed", 1, "true")
    assert row_of("settled", COLUMN["A1"]) == (GUARDS["settled"], COLUMN["A1"])
    assert "encoder-cache resets" in routes_assumed(ENCODER_RESET)
    assert "encoder-cache resets" not in routes_assumed("confirmed")
    with pytest.raises(UnknownName, match="unknown guard 'none'"):
        row_of("none", COLUMN["A1"])


# --- a prefix-cache reset: what is in flight must be stale -----------------------------------------------------------


def unmarked(c, isolate):
    return c._replace(computed=0, placeholders=0)


def test_a_prefix_reset_that_leaves_outputs_live_loses_the_stale_share():
    report = prove(Terms(guard=CONFIRMED, arithmetic=Arithmetic(reset=unmarked)))
    assert {each.name for each in report.failed} == {"STALE-SHARE / reset"}


@pytest.mark.campaign
def test_a_prefix_reset_that_leaves_outputs_live_is_missed_in_nine_actions():
    terms = Terms(
        guard=CONFIRMED, arithmetic=Arithmetic(reset=unmarked), assumed=COLUMN["A3 any"].assumed(anywhere=True)
    )
    counterexample = search(terms, routes=frozenset({"reset-prefix-cache"})).found
    assert len(counterexample) == 9
    profile = PROFILES["repaired"]
    faulty = replace(profile, rules=replace(profile.rules, reset=unmarked))
    assert rerun(counterexample, world_of(CONFIRMED, COLUMN["A3 any"], faulty)).difference == ""


# --- a turn's end: computed must fall back, and what is in flight be stale -------------------------------------------


def test_a_turn_that_ends_with_computed_ahead_loses_upkeep():
    assert failing(settle_turn=0) == {"STALE-SHARE / turn-end", "UPKEEP / turn-end", "COVERAGE / turn-end"}


SESSION = Setup(
    (RequestSetup(2, 3, (Item(0, 1, "k0", 1),), turns=(Turn(2, 2, (Item(0, 1, "k1", 1),)),)),),
    slots=1,
    budget=4,
    drafts=1,
    left_out=tuple(route for route in RARE_ROUTES if route != "sessions"),
)


def test_a_run_takes_the_model_to_a_turn_that_ended_with_computed_ahead():
    unsettled = world_of(CONFIRMED, COLUMN["A3 any"], releasing(settle_turn=0))
    report = prove(Terms(guard=CONFIRMED, assumed=Assumed(settle_turn=0)))
    labels = {each.obligation: each for each in reach(report, unsettled, [SESSION])}
    reached = labels["UPKEEP / turn-end"]
    assert reached.label == "reachable"
    state = initial_state(SESSION)
    for each in reached.trace.actions:
        state = SchedulerModel(unsettled, Scope()).next_state(state, each)
    assert state.requests[0].status == "paused"
    assert state.requests[0].counters.placeholders > 0
    assert all(part.live == 0 for step in state.steps for part in step.parts)


# --- what holds with everything done as it must be -------------------------------------------------------------------


def test_no_short_run_along_the_rare_routes_misses_what_confirmed_keeps():
    terms = Terms(guard=CONFIRMED, assumed=COLUMN["A3 any"].assumed(anywhere=True))
    searched = search(terms, routes=RARE, most_moves=5)
    assert (searched.found, searched.searched) == (None, 5)


def test_an_older_session_keeps_the_theorem_where_turns_settle():
    # 0.31.0 and 0.32.0: outputs go that do not count as computed, what is cut off stays promised.
    older = Assumed(keep_outputs=0, trim_computed=0, free_at_turn_end=0)
    assert prove(Terms(guard=CONFIRMED, assumed=older)).verdict is Verdict.PROVED
    inside = replace(older, reader="true", anywhere=False)
    assert [each.name for each in prove(Terms(guard=CONFIRMED, assumed=inside)).failed] == ["NUMBERS / more-prompt"]


def test_an_item_of_a_later_turn_is_not_looked_at_before():
    terms = Terms(guard=CONFIRMED)
    by_name = {each.name: each for each in TRANSITIONS}
    life = EMPTY._replace(base=1, start=4, end=6, prompt=2, counters=EMPTY.counters._replace(known=2))
    choices = {"count": 2, "encoded": 1, "ahead": 0}
    begun = by_name["resume"].apply(terms, life, hit=0, track=0, **choices)
    assert (begun.referenced, begun.booked) == (0, 0)
    assert by_name["resume"].apply(terms, life, hit=0, track=1, **choices) == Refusal("not-a-reader-of-it")
    ended = by_name["turn-end"].apply(terms, begun._replace(counters=begun.counters._replace(known=3)), cut=0)
    there = by_name["more-prompt"].apply(terms, ended, more=4, born=1)
    assert (there.there, there.prompt, there.counters.known) == (1, 6, 6)
    assert by_name["more-prompt"].apply(terms, ended._replace(there=1), more=4, born=1) == Refusal("already-there")
    held = by_name["go-on"].apply(terms, there, track=1, **{**choices, "count": 4})
    assert (held.referenced, held.counters.computed, held.flight.start) == (1, 5, 1)


def test_every_route_can_happen_under_the_lemmas():
    possible = {check.name: check.possible for check in vacuity(Terms(guard=CONFIRMED), lemma_sets(Assumed())[0])}
    assert all(possible[f"enabled {name}"] for name in ("reset", "kv-failure", "turn-end", "more-prompt", "go-on"))


# --- synchronous scheduling and diffusion ----------------------------------------------------------------------------


@pytest.mark.parametrize("reader", ["checked", "true", "any"])
@pytest.mark.parametrize(
    "guard", [GUARDS["optimistic-after-advance"], GUARDS["confirmed"], ALWAYS], ids=lambda g: g.name
)
def test_without_promises_every_guard_is_safe_for_every_reader(guard, reader):
    assert prove(Terms(guard=guard, assumed=Assumed(reader=reader, asynchronous=0))).verdict is Verdict.PROVED


@pytest.mark.parametrize("reader", ["true", "any"])
def test_every_lemma_of_synchronous_scheduling_is_necessary(reader):
    terms = Terms(guard=CONFIRMED, assumed=Assumed(reader=reader, asynchronous=0))
    broken = necessity(terms, lemma_sets(terms.assumed)[0])
    assert all(broken.values()), broken
    assert {"true": "UNSHIFTED", "any": "AT-START"}[reader] in broken


def test_a_cell_is_proved_for_both_kinds_of_scheduling():
    judged = cell(CONFIRMED, COLUMN["A3 any"], anywhere=True)
    assert judged.synchronous.terms.assumed.asynchronous == 0
    assert judged.coverage == "unbounded numbers, any depth; obligations: asynchronous 211, synchronous 76"


def test_the_theorem_covers_models_that_sample_none():
    """Base is a symbol: with it fixed to 0, the lemmas still have states, and both sides of the guard."""
    report = prove(Terms(guard=CONFIRMED))
    assert report.verdict is Verdict.PROVED
    nothing = report.lemmas[0].holds(report.terms, EMPTY._replace(base=0))
    assert nothing
    assert not report.lemmas[0].holds(report.terms, EMPTY._replace(base=2))


# --- every move of bounded checking is what the model does -----------------------------------------------------------

TURNS = (2, 1, 3)
_OFTEN = {"dispatch": 12, "output": 12, "kv-failure": 30, "turn-end": 12, "more-prompt": 30, "go-on": 12, "evict": 2}


def concrete_setup(draw):
    start = draw.randint(0, 3)
    item = Item(start, draw.randint(1, 3), "k0", 1)
    item = item._replace(size=item.length)
    prompt = draw.randint(1, 6)
    turns = tuple(Turn(more, 200) for more in TURNS)
    return Setup(
        (RequestSetup(prompt, 200, (item,), turns=turns),),
        slots=item.size,
        budget=draw.randint(1, 6),
        drafts=draw.randint(0, 2),
        depth=draw.choice((2, 3)),
        left_out=(),
    )


def concrete_run(setup):
    (asked,) = setup.requests
    (item,) = asked.items
    counters = EMPTY.counters._replace(known=asked.prompt)
    life = EMPTY._replace(base=1, start=item.start, end=item.end, prompt=asked.prompt, there=1, counters=counters)
    return EMPTY_RUN._replace(
        life=life, budget=setup.budget, most_drafts=setup.drafts, depth=setup.depth, known=asked.prompt
    )


def move_on(terms, state, phases, number):
    for phase in phases:
        choices = {"number": number, "encoded": 1}
        state = phase.apply(terms, state, *(choices[name] for name in phase.choices))
        if isinstance(state, Refusal):
            return state
    return state


@pytest.mark.parametrize("switches", [{}, {"settle_kv_failure": 0}], ids=["repaired", "promises kept"])
def test_random_runs_of_the_moves_are_runs_of_the_model(switches):
    column = replace(COLUMN["A3 any"], encoder_reset=1)
    profile = releasing(**switches)
    terms = Terms(guard=CONFIRMED, assumed=column.assumed(anywhere=True, early_resume=1).behaving(profile.switches))
    moves = {**MOVES, **{name: phases for name, (_, phases) in ROUTE_MOVES.items()}}
    model = SchedulerModel(world_of(CONFIRMED, column, profile), Scope(anywhere=True))
    taken = dict.fromkeys(moves, 0)
    draw = random.Random(7)
    for _ in range(1_500):
        setup = concrete_setup(draw)
        abstract, state = concrete_run(setup), model.next_state(initial_state(setup), action("arrive(request=r0)"))
        turn = drafts = 0
        for _ in range(100):
            (name,) = draw.choices(list(moves), [_OFTEN.get(name, 1) for name in moves])
            if name in ("more-prompt", "turn-end") and turn == len(TURNS):
                continue  # the model's session has no further turn, and ends
            number = TURNS[turn] if name == "more-prompt" else draw.randint(0, 3)
            if name not in ("resume", "dispatch", "output", "kv-failure", "more-prompt"):
                number = 0
            after = move_on(terms, abstract, moves[name], number)
            if isinstance(after, Refusal):
                continue
            move = Move(name, number, 1, after)
            for each in _actions(state, move, drafts):
                state = model.next_state(state, each)
                assert not isinstance(state, Refusal), (move.name, each, state)
            if state.misses:
                assert misses(terms, abstract)
                break
            assert _difference(state, move) == ""
            abstract, drafts = after, after.first.flight.drafts
            turn += name == "more-prompt"
            taken[name] += 1
    assert min(taken.values()) >= 30, taken


# --- the row beside the other engines --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "without", "verdict", "route"),
    [
        ("repaired", (), Verdict.VIOLATED, "reset_encoder_cache"),
        ("repaired", ("reset-encoder-cache",), Verdict.PROVED, ""),
        ("0.33.0", ("reset-encoder-cache",), Verdict.VIOLATED, "fail_kv_load"),
        ("0.33.0", ("reset-encoder-cache", "kv-load-failure"), Verdict.PROVED, ""),
    ],
)
def test_a_run_is_judged_by_its_routes_and_its_release(profile, without, verdict, route):
    configuration = Configuration(profile=profile, policy="fcfs", relax=("A3",), reader="any", without=without)
    row = proof_row(configuration, configuration.world())
    assert row.verdict is verdict
    assert (route in {step.action.name for step in row.trace.steps[1:]}) if route else row.trace is None
