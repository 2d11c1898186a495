"""The plain exhaustive search on small models whose answers are known."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from outlives.invariants.explore import Bounds, breadth_first
from outlives.invariants.verdict import Verdict
from outlives.model.contract import Action, Refusal
from outlives.model.errors import BadModel, Contradiction, OutOfRange, UnknownName
from toy_models import BrokenModel, CounterModel, FickleModel, LockModel, LockState, MutableModel, Tally, TankModel


def test_sound_counter_is_exhausted_with_exact_counts() -> None:
    found = breadth_first(CounterModel(faulty=False, limit=12))
    assert found.complete
    assert found.states == 13
    assert found.levels == (1, 5, 5, 2)
    assert found.depth == 3
    adds = sum(min(5, 12 - value) for value in range(13))
    removes = sum(min(5, value) for value in range(13))
    assert found.actions["add"].fired == adds
    assert found.actions["add"].refused == {"limit": 13 * 5 - adds}
    assert found.actions["remove"].refused == {"empty": 13 * 5 - removes}
    assert found.transitions == adds + removes + 13
    by_name = {result.property: result for result in found.results()}
    assert by_name["BELOW-LIMIT"].verdict is Verdict.EXHAUSTED
    assert by_name["NEVER-HUGE"].verdict is Verdict.VACUOUS
    assert "the value reached a million" in by_name["NEVER-HUGE"].note
    assert (
        by_name["BELOW-LIMIT"].coverage
        == f"every state of the scope: 13 states, {found.transitions} transitions, depth 3"
    )


def test_each_property_has_its_own_shortest_and_least_trace() -> None:
    found = breadth_first(CounterModel(faulty=True, limit=7))
    below = found.traces["BELOW-LIMIT"]
    assert below.actions == (Action.of("add", amount=3), Action.of("add", amount=5))
    assert below.shortest == "shortest possible"
    assert below.why == "the value is 8, the limit 7"
    small = found.traces["SMALL-STEPS"]
    assert small.actions == (Action.of("add", amount=5),)
    assert small.why == "the value went from 0 to 5"
    assert found.outside > 0  # it went on to the boundary, beyond both violations
    assert [step.state.value for step in below.steps] == [0, 3, 8]


def test_two_inside_the_lock() -> None:
    found = breadth_first(LockModel(faulty=True))
    trace = found.traces["ONE-INSIDE"]
    ann, bob = (("client", name) for name in ("ann", "bob"))
    assert trace.actions == (
        Action("ask", (ann,)),
        Action("ask", (bob,)),
        Action("enter", (ann,)),
        Action("enter", (bob,)),
    )
    assert breadth_first(LockModel(faulty=False)).results()[0].verdict is Verdict.EXHAUSTED


@pytest.mark.parametrize("options", [{"stuck": True}, {"slow": True}], ids=["stuck", "slow"])
def test_progress_gives_a_shortest_prefix_to_a_stuck_state(options: dict[str, bool]) -> None:
    found = breadth_first(TankModel(**options))
    result = found.results()[0]
    assert result.verdict is Verdict.VIOLATED
    assert result.trace is not None
    wanted = ("fill", "jam") if "stuck" in options else ("fill",)
    assert tuple(action.name for action in result.trace.actions) == wanted
    assert result.trace.why.startswith("the level stays at")


def test_progress_of_a_good_tank_is_exhausted() -> None:
    found = breadth_first(TankModel())
    assert found.states == 42
    assert found.results()[0].verdict is Verdict.EXHAUSTED
    assert found.situations["EMPTIES"] == 40


def test_progress_without_a_fair_run_is_unknown() -> None:
    model = TankModel(stuck=True)

    class Bare:
        initial_states, actions = model.initial_states, model.actions
        next_state, properties, within = model.next_state, model.properties, model.within

    result = breadth_first(Bare()).results()[0]
    assert result.verdict is Verdict.UNKNOWN
    assert "no fair run" in result.note


class Corridor(LockModel):
    """A walk of five steps to a place where the only action is always refused; `teleport` is never possible."""

    def __init__(self) -> None:
        super().__init__(faulty=False)
        self.action_table = {"walk": {}, "teleport": {}, "fly": {}}

    def actions(self, state: LockState) -> Iterable[Action]:
        return [Action.of("walk"), Action.of("teleport")] if len(state.inside) < 5 else [Action.of("teleport")]

    def next_state(self, state: LockState, action: Action) -> LockState | Refusal:
        return LockState((*state.inside, "x")) if action.name == "walk" else Refusal("no-magic")


def test_deadlock_unreached_action_and_never_true_guard() -> None:
    found = breadth_first(Corridor(), properties=[])
    assert found.deadlocks == 1
    assert found.deadlock is not None
    assert len(found.deadlock.actions) == 5
    assert found.deadlock.why == "every action is refused: teleport(): no-magic"
    assert found.never_fired == ("fly", "teleport")
    assert found.actions["teleport"].refused == {"no-magic": 6}
    assert found.actions["fly"].refused == {}


@pytest.mark.parametrize(
    ("bounds", "states", "searched"),
    [(Bounds(depth=2), 11, 2), (Bounds(states=8), 8, 1), (Bounds(states=6), 6, 1)],
)
def test_a_bound_answers_unknown_with_what_was_covered(bounds: Bounds, states: int, searched: int) -> None:
    found = breadth_first(CounterModel(faulty=False, limit=12), bounds=bounds)
    assert not found.complete
    assert (found.states, found.searched) == (states, searched)
    result = found.results()[0]
    assert result.verdict is Verdict.UNKNOWN
    assert f"every run of {searched} actions" in result.coverage
    assert "at least the" in result.note


def test_time_and_memory_bounds_stop_the_search() -> None:
    class Endless(CounterModel):
        def within(self, state: Tally) -> bool:
            return True

    model = Endless(faulty=True)
    assert "seconds" in str(breadth_first(model, bounds=Bounds(seconds=0.05)).stopped)
    assert "MiB" in str(breadth_first(model, bounds=Bounds(memory=1)).stopped)


def test_a_violation_found_before_a_bound_stays_a_violation() -> None:
    found = breadth_first(CounterModel(faulty=True, limit=7), bounds=Bounds(depth=2))
    assert found.results()[0].verdict is Verdict.VIOLATED
    assert found.results()[0].trace is not None


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (BrokenModel(), ["next_state raised ZeroDivisionError: seven is too many", "add(amount=1)", "value=7"]),
        (FickleModel(), ["not deterministic", "add(amount=1)", "Tally(value=0"]),
        (MutableModel(), ["not hashable", "[0, 12]"]),
    ],
    ids=["raises", "fickle", "mutable"],
)
def test_a_bad_model_is_reported_in_words(model: CounterModel, words: list[str]) -> None:
    with pytest.raises(BadModel) as caught:
        breadth_first(model)
    for word in words:
        assert word in str(caught.value)


class Hidden:
    """Hashable and equal by identity only; `next_state` of its model changes it."""

    def __init__(self) -> None:
        self.values = [0]

    def __repr__(self) -> str:
        return f"Hidden({self.values})"


class Mutator(LockModel):
    """Changes the state it is given, on `second` only."""

    def __init__(self) -> None:
        super().__init__(faulty=False)

    def initial_states(self) -> Iterable[LockState]:
        return [Hidden()]  # type: ignore[list-item]

    def actions(self, state: LockState) -> Iterable[Action]:
        return [Action.of("first"), Action.of("second")]

    def next_state(self, state: LockState, action: Action) -> LockState | Refusal:
        if action.name == "second":
            state.values.append(1)  # type: ignore[attr-defined]
        return state


def test_a_model_that_changes_its_state_is_named_with_the_action() -> None:
    with pytest.raises(BadModel, match=r"changes the state it is given, on action second\(\) in state Hidden"):
        breadth_first(Mutator(), properties=[])


def test_bad_bounds_and_unknown_properties_are_refused() -> None:
    with pytest.raises(OutOfRange, match="bound on states is 0"):
        Bounds(states=0)
    with pytest.raises(Contradiction, match="the bound on seconds is 0; it must be above 0"):
        Bounds(seconds=0)
    with pytest.raises(UnknownName, match="BELOW-LIMIT"):
        breadth_first(CounterModel(faulty=False), properties=["BELOW"])


def test_progress_lines_come_once_a_level_at_least() -> None:
    lines = []
    breadth_first(CounterModel(faulty=False), listener=lines.append)
    assert [line.level for line in lines] == [0, 1, 2, 3]
    assert lines[-1].waiting == 0
    assert lines[-1].states == 13


_PRINT = """
import sys
sys.path.insert(0, {tests!r})
from outlives.invariants.explore import breadth_first
from toy_models import LockModel, TankModel
for model in (LockModel(faulty=True), TankModel(stuck=True)):
    found = breadth_first(model)
    print(found.states, found.transitions, found.levels, found.traces, found.actions, found.situations)
"""


def test_the_answer_does_not_depend_on_the_hash_seed() -> None:
    script = _PRINT.format(tests=str(Path(__file__).parent))
    said = {
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert len(said) == 1
    assert "ONE-INSIDE" in said.pop()
