"""How weak a guard may be: what is proved of the threshold, the same on the model's states; the ladder; the pins."""

from dataclasses import replace
from itertools import pairwise, product

import pytest
import worlds
from outlives.invariants.explore import Bounds, breadth_first
from outlives.invariants.proof.cells import COLUMNS
from outlives.invariants.proof.evidence import necessity, vacuity
from outlives.invariants.proof.life import PINS, Arithmetic, Assumed, Terms
from outlives.invariants.proof.theorem import prove
from outlives.invariants.proof.weakest import AT_ONCE, LADDER, ordered_by, threshold_facts, weakest_known
from outlives.invariants.proof.weakest_on_model import continuation, exposed, let_go, resting
from outlives.invariants.properties import scheduler_properties
from outlives.invariants.verdict import Verdict
from outlives.model import lifetime
from outlives.model.contract import Refusal
from outlives.model.lifetime import GUARDS, WEAKEST, Counters, guard_named
from outlives.model.scheduler import SchedulerModel, initial_state
from outlives.model.setup import Scope

CONFIRMED = Terms(guard=guard_named("confirmed"))
COLUMN = {column.name: column for column in COLUMNS}
A1 = Assumed(reader="true", relaxed=frozenset({"A1"}), early_resume=0, pins=PINS)
SETTLED = Terms(guard=guard_named("settled"), assumed=A1)


def proved(guard, **fields):
    return prove(Terms(guard=guard, assumed=Assumed(**fields)), until_failure=True).verdict is Verdict.PROVED


# --- the threshold ----------------------------------------------------------------------------------------------------


def test_an_unchecked_read_exists_exactly_between_confirmed_and_computed():
    facts = {fact.name: fact.proved for fact in threshold_facts(CONFIRMED)}
    assert facts == dict.fromkeys(
        ("CONTINUATION", "MISSED", "STAYS-MISSED", "OTHERWISE-CHECKED", "KEPT-FOR-NOTHING"), True
    )


@pytest.mark.parametrize(
    ("rules", "fact"),
    [
        # A step counts from one position further: the last item of the interval is not read.
        ({"advance": lambda c, n: c._replace(computed=c.computed + n, in_flight=c.in_flight + n + 1)}, None),
        ({"deliver": lambda c, tokens, stale, dropped, a: c._replace(known=c.known + tokens)}, "KEPT-FOR-NOTHING"),
    ],
)
def test_the_facts_are_about_the_rules(rules, fact):
    terms = replace(CONFIRMED, arithmetic=Arithmetic()._replace(**rules))
    assert [each.name for each in threshold_facts(terms) if not each.proved] == ([fact] if fact else [])


def states_of(setup):
    """Every state of the setup in which nothing is ever let go, and no request is cut short."""
    world = worlds.world("repaired", guard="retain", reader="any", relaxed=("A3",), closed=("preempt", "abort"))
    model = worlds.FixedModel(world, [setup], anywhere=True)
    seen, front = set(), [initial_state(setup)]
    while front:
        state = front.pop()
        if state in seen:
            continue
        seen.add(state)
        for action in model.actions(state):
            after = model.next_state(state, action)
            if not isinstance(after, Refusal):
                front.append(after)
    return model, seen


GRID = [
    worlds.setup([(start, end)], prompt, outputs=4, slots=end - start, budget=budget, drafts=drafts)
    for start, end, prompt, budget, drafts in product((0, 1), (2, 3), (1, 2), (2, 3), (0, 1, 2))
]


def test_the_model_misses_in_the_continuation_exactly_where_the_formula_says_so():
    judged = {True: 0, False: 0}
    unexposed = []
    for setup in GRID:
        model, states = states_of(setup)
        for state in states:
            if not resting(state, 0, 0):
                continue
            released = let_go(model, state, 0, 0)
            if not exposed(state, 0, 0):
                unexposed.append(released)
                judged[False] += 1
                continue
            run = list(continuation(model, released, 0, 0))
            if not run:
                continue  # the request has all the tokens that it wants: no other dispatch is possible
            judged[True] += 1
            assert run[-1][1].misses, (state, run)
            assert run[-1][1].misses[0].low < setup.requests[0].items[0].end
    assert judged[True] > 100
    assert judged[False] > 1_000
    confirmed = worlds.world("repaired", guard="confirmed", reader="any", relaxed=("A3",), closed=("preempt", "abort"))
    checked = SchedulerModel(
        confirmed,
        Scope(anywhere=True),
        [each for each in scheduler_properties(confirmed) if each.name == "GATHER-AFTER-FREE"],
    )
    found = breadth_first(checked, bounds=Bounds(states=2_000_000), initial=unexposed)
    assert found.complete
    assert not found.traces


# --- the ladder -------------------------------------------------------------------------------------------------------


def test_each_guard_of_the_ladder_lets_go_what_the_next_one_does():
    for weaker, stronger in pairwise(LADDER):
        answer = ordered_by(weaker, stronger, lambda life: life.look_ahead == 0).answer
        assert answer == "unsat", (weaker.name, stronger.name)
    assert ordered_by(guard_named("confirmed"), guard_named("true-window"), lambda life: True).answer == "sat"


@pytest.mark.parametrize(
    ("column", "anywhere", "name"),
    [
        ("A1-A4", True, "at once"),
        ("A3 true", False, "at once"),
        ("A3 true", True, "true-window"),
        ("A3 any", False, "confirmed-after-delivery"),
    ],
)
def test_the_weakest_known_guard(column, anywhere, name):
    found = weakest_known(COLUMN[column], anywhere=anywhere)
    assert (found.name, found.pinned) == (name, False)
    assert bool(found.stops_at) is (found.guard is not AT_ONCE)


@pytest.mark.campaign
@pytest.mark.parametrize(("column", "name"), [("A1", "settled, with pins"), ("A2", "none"), ("A4", "none")])
@pytest.mark.parametrize("anywhere", [False, True])
def test_the_weakest_known_guard_where_notices_overtake_and_where_no_guard_helps(column, name, anywhere):
    assert weakest_known(COLUMN[column], anywhere=anywhere).name == name


def test_after_delivery_confirmed_is_safe_for_readers_anywhere():
    assert proved(WEAKEST["confirmed-after-delivery"])
    early = replace(
        WEAKEST["confirmed-after-delivery"], condition=lambda c, end, ahead: end - 1 <= c.computed - c.placeholders
    )
    assert not proved(early)


def test_counting_drafts_alone_is_safe_for_readers_at_their_true_start():
    guard = WEAKEST["true-window"]
    report = prove(Terms(guard=guard, assumed=Assumed(reader="true")))
    assert (report.verdict, len(report.obligations)) == (Verdict.PROVED, 181)
    assert not proved(guard, reader="any")
    early = replace(guard, condition=lambda c, end, ahead, drafts: end - 1 <= c.computed - drafts)
    assert not proved(early, reader="true")


def test_what_carries_the_true_window_is_needed_and_possible():
    terms = Terms(guard=WEAKEST["true-window"], assumed=Assumed(reader="true"))
    lemmas = prove(terms).lemmas
    broken = necessity(terms, lemmas)
    assert broken["WINDOW-COVERAGE"] == "TRUE-READER / dispatch"
    assert {name for name, cell in broken.items() if not cell} <= {"NUMBERS"}
    assert all(check.possible for check in vacuity(terms, lemmas))


# --- overtaking notices: settled, with pins ---------------------------------------------------------------------------


@pytest.mark.parametrize("asynchronous", [0, 1])
def test_settled_with_pins_is_proved_for_true_windows_though_notices_overtake(asynchronous):
    report = prove(replace(SETTLED, assumed=replace(A1, asynchronous=asynchronous)))
    assert (report.verdict, report.failed) == (Verdict.PROVED, ())


@pytest.mark.parametrize("dropped", sorted(PINS))
def test_without_one_pin_it_falls_exactly_there(dropped):
    report = prove(replace(SETTLED, assumed=replace(A1, pins=PINS - {dropped})))
    assert [each.name for each in report.failed] == [f"STALE-PINNED / {dropped}"]


def test_confirmed_does_not_do_there_even_with_pins():
    report = prove(replace(SETTLED, guard=guard_named("confirmed")))
    assert [each.name for each in report.failed] == [
        "SETTLED-COVERAGE / live-output",
        "SETTLED-COVERAGE / stale-output",
    ]


def test_what_carries_settled_with_pins_is_possible():
    assert [check.name for check in vacuity(SETTLED, prove(SETTLED).lemmas) if not check.possible] == []


def test_drafts_are_counted_by_the_guard_alone():
    guard = WEAKEST["true-window"]
    now = Counters(10, 3, 5, 0, 8)
    assert [guard.lets_go(now, end, 7, 2) for end in (8, 9)] == [True, False]
    assert GUARDS["confirmed"].lets_go(now, 7, 0, 2)
    assert lifetime.true_window(now, 8, 0, 2)
