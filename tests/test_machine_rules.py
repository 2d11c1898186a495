"""The generated state machine itself, bad models, and the random walk."""

import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test
from outlives.invariants.configuration import Configuration
from outlives.invariants.machine import machine_class, machine_profile, random_walk, run_machine
from outlives.invariants.machine_record import Recorder
from outlives.invariants.machine_rules import PropertyViolated, action_names
from outlives.invariants.machine_settings import MACHINE_PROFILES, MachineSettings, hypothesis_settings
from outlives.invariants.verdict import Verdict
from outlives.model.contract import Action, ActionTable, Choice, Range, Refusal
from outlives.model.errors import BadModel, OutOfRange, UnknownName
from toy_models import (
    BrokenModel,
    CounterModel,
    FickleModel,
    ForgetfulModel,
    LockModel,
    MutableModel,
    SetupCounterModel,
    Tally,
    TankModel,
)

QUICK = machine_profile("quick")


def rule_names(machine: type[RuleBasedStateMachine]) -> list[str]:
    return sorted(rule.function.__name__ for rule in machine.setup_state().rules)


def test_rules_are_named_as_the_actions_and_total() -> None:
    machine = machine_class(CounterModel(faulty=False))
    assert rule_names(machine) == ["add", "remove", "rest"]
    assert all(not rule.preconditions for rule in machine.setup_state().rules)
    by_name = {rule.function.__name__: rule.arguments for rule in machine.setup_state().rules}
    assert list(by_name["add"]) == ["amount"]


def test_without_a_table_the_names_are_those_met_first() -> None:
    assert action_names(LockModel(faulty=False)) == ("ask", "enter", "leave")
    assert rule_names(machine_class(LockModel(faulty=False))) == ["ask", "enter", "leave"]


def test_the_setup_is_drawn_by_an_initialize_rule() -> None:
    machine = machine_class(SetupCounterModel())
    assert [rule.function.__name__ for rule in machine.setup_state().initializers] == ["begin"]
    assert not machine_class(CounterModel(faulty=False)).setup_state().initializers


def test_every_initial_state_is_tried() -> None:
    begun = set()

    class Several(CounterModel):
        def initial_states(self):  # type: ignore[no-untyped-def]
            return [Tally(value, 12) for value in (0, 1, 2)]

        def next_state(self, state, action):  # type: ignore[no-untyped-def]
            begun.add(state.value)
            return Refusal("never")

    run_machine(Several(faulty=False), settings=QUICK)
    assert begun == {0, 1, 2}


def test_users_run_the_class_like_any_other_machine() -> None:
    with pytest.raises(PropertyViolated, match="BELOW-LIMIT: it must hold that the value stays"):
        run_state_machine_as_test(
            machine_class(CounterModel(faulty=True), properties=CounterModel(faulty=True).properties()[:1]),
            settings=hypothesis_settings(QUICK, shrink=True),
        )
    run_state_machine_as_test(machine_class(TankModel()), settings=hypothesis_settings(QUICK))


def test_an_argument_with_a_name_that_hypothesis_keeps_is_refused() -> None:
    class Clash(CounterModel):
        @property
        def action_table(self) -> ActionTable:
            return {"add": {"target": Range(0, 1)}}

    with pytest.raises(BadModel, match="add has an argument called 'target'"):
        machine_class(Clash(faulty=False))


# --- models that break their contract -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            BrokenModel(),
            r"next_state raised \(ZeroDivisionError: seven is too many\), at \w+\(.*\) in the state .*value=",
        ),
        (
            ForgetfulModel(faulty=False),
            r"next_state returned None, not a state or a Refusal, at \w+\(.*\) in the state .*value=",
        ),
        (FickleModel(), "next_state gave two different answers to the same question, at "),
        (MutableModel(), r"states must be hashable and immutable .*unhashable type: 'list'.* \[0, 12\]"),
    ],
)
def test_a_bad_model_is_not_a_violation(model: CounterModel, message: str) -> None:
    with pytest.raises(BadModel, match=message):
        run_machine(model, settings=QUICK)


@pytest.mark.parametrize("method", ["actions", "next_state"])
def test_a_model_without_a_table_that_raises_is_told_the_same_way(method: str) -> None:
    def raises(*_: object) -> None:
        raise KeyError("k9")

    model = LockModel(faulty=False)
    setattr(model, method, raises)
    with pytest.raises(BadModel, match=rf"breaks its contract: {method} raised \(KeyError: 'k9'\).* in the state "):
        run_machine(model, settings=QUICK)


def test_a_state_changed_in_place_is_noticed() -> None:
    class Box:
        def __init__(self) -> None:
            self.value = 0

        def __hash__(self) -> int:
            return hash(self.value)

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Box) and self.value == other.value

    class InPlace(CounterModel):
        def initial_states(self):  # type: ignore[no-untyped-def]
            return [Box()]

        def next_state(self, state, action):  # type: ignore[no-untyped-def]
            state.value += 1
            return state

        def properties(self):  # type: ignore[no-untyped-def]
            return []

        def within(self, state):  # type: ignore[no-untyped-def]
            return True

    recorder = Recorder(InPlace(faulty=False), [])
    with pytest.raises(BadModel, match="changed a state in place"):
        recorder.take(Box(), Action.of("add", amount=1), 1)


def test_a_property_that_raises_is_the_models_fault() -> None:
    class Raising(CounterModel):
        def properties(self):  # type: ignore[no-untyped-def]
            first, *_ = super().properties()
            return [first.__class__(**{**_fields(first), "holds": lambda *_: 1 // 0})]

    with pytest.raises(BadModel, match="property BELOW-LIMIT raised"):
        run_machine(Raising(faulty=False), settings=QUICK)


def _fields(prop: object) -> dict[str, object]:
    return {name: getattr(prop, name) for name in prop.__dataclass_fields__}  # type: ignore[attr-defined]


def test_a_progress_property_needs_a_fair_run() -> None:
    class Unfair(CounterModel):
        def properties(self):  # type: ignore[no-untyped-def]
            return TankModel().properties()

    with pytest.raises(BadModel, match="fair_action and fair_bound"):
        run_machine(Unfair(faulty=False), settings=QUICK)


@pytest.mark.parametrize("what", ["states", "actions"])
def test_a_model_with_nothing_in_it_is_refused(what: str) -> None:
    class Empty(LockModel):
        def initial_states(self):  # type: ignore[no-untyped-def]
            return [] if what == "states" else super().initial_states()

        def actions(self, state):  # type: ignore[no-untyped-def]
            return [] if what == "actions" else super().actions(state)

    with pytest.raises(BadModel, match=f"no {what[:-1] if what == 'actions' else 'initial state'}"):
        run_machine(Empty(faulty=False), settings=QUICK)


# --- detours --------------------------------------------------------------------------------------------------------


class Winding(CounterModel):
    """A counter that refuses to rest, so that draws are refused; once it is at 3 it can go down and up again."""

    action_detours = (("remove", "add", "remove"),)

    def actions(self, state: Tally) -> Iterator[Action]:
        yield Action.of("add", amount=1)
        yield Action.of("add", amount=2)
        if state.value >= 3:
            yield Action.of("remove", amount=1)

    def next_state(self, state: Tally, action: Action) -> Tally | Refusal:
        return Refusal("never") if action.name == "rest" else super().next_state(state, action)


def test_a_detour_begins_where_its_ends_are_offered() -> None:
    model = Winding(faulty=False)
    recorder = Recorder(model, ())
    begun = [recorder.detour(Tally(value, 12), turn) for value in (2, 3) for turn in range(6)]
    way = model.action_detours[0]
    assert begun == [(), (), (), (), (), (), way, (), (), way, (), ()]
    assert Recorder(CounterModel(faulty=False), ()).detour(Tally(3, 12), 0) == ()


def test_a_detour_goes_on_whatever_is_drawn() -> None:
    machine = machine_class(Winding(faulty=False))()
    machine.detour = ("remove", "add", "remove")
    machine.current = Tally(5, 12)
    for _ in range(4):
        machine.step(Action.of("add", amount=3), "add", 2)
    names = [action.name for action in machine.actions]
    assert names == ["remove", "add", "remove", "add"]
    assert machine.actions[-1] == Action.of("add", amount=3)
    assert machine.recorder.calls == 4


def test_a_detour_ends_where_its_next_action_is_not_offered() -> None:
    machine = machine_class(Winding(faulty=False))()
    machine.detour = ("remove", "add", "remove")
    machine.step(Action.of("add", amount=3), "add", 2)
    assert (machine.actions, machine.detour) == ([Action.of("add", amount=3)], ())


def test_a_setback_between_a_draft_and_its_rejection_is_met() -> None:
    """Three draws in a row would have to come just there: without detours, one run in a thousand."""
    run = run_machine(
        Configuration(profile="0.17.1").model(),
        settings=machine_profile("ci").changed(cases=150, shrink_replays=0),
        properties=["CONFIRMED-MONOTONE"],
    )
    assert [result.verdict for result in run.results] == [Verdict.VIOLATED]


# --- settings -------------------------------------------------------------------------------------------------------


def test_the_profiles() -> None:
    sizes = {name: (each.cases, each.steps) for name, each in MACHINE_PROFILES.items() if name != "debug"}
    assert sizes == {"quick": (50, 20), "ci": (1_500, 40), "nightly": (20_000, 80)}
    with pytest.raises(UnknownName, match="quick, ci, nightly, debug"):
        machine_profile("fast")


@pytest.mark.parametrize("wrong", [{"cases": 0}, {"steps": 0}, {"steps": 10**9}, {"fair_every": -1}])
def test_numbers_without_meaning_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(OutOfRange):
        MachineSettings(**{"name": "t", "cases": 1, "steps": 1, **wrong})  # type: ignore[arg-type]


def test_hypothesis_gets_every_setting_that_matters(tmp_path: Path) -> None:
    given = hypothesis_settings(QUICK.changed(database=tmp_path))
    assert given.deadline is None
    assert not given.derandomize
    assert given.database is not None
    assert given.print_blob
    assert "explain" not in {phase.name for phase in given.phases}
    assert (given.max_examples, given.stateful_step_count) == (50, 20)


# --- the random walk ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model", [CounterModel(faulty=False), LockModel(faulty=False), TankModel(), SetupCounterModel()]
)
def test_the_walk_is_made_of_transitions(model: CounterModel) -> None:
    walked = list(random_walk(model, 500, seed=4))
    assert len(walked) == 500
    assert all(model.next_state(before, action) == after for before, action, after in walked)
    joined = sum(first[2] == second[0] for first, second in pairwise(walked))
    assert joined >= 480, "one step goes on from the one before, new beginnings apart"
    assert walked == list(random_walk(model, 500, seed=4))
    assert walked != list(random_walk(model, 500, seed=5))


def test_the_walk_of_a_dead_model_ends() -> None:
    class Dead(CounterModel):
        def next_state(self, state, action):  # type: ignore[no-untyped-def]
            return Refusal("never")

    assert list(random_walk(Dead(faulty=False), 10)) == []


def test_the_walk_names_every_action() -> None:
    names = {action.name for _, action, _ in random_walk(CounterModel(faulty=False), 300)}
    assert names == {"add", "remove", "rest"}


def test_what_is_remembered_changes_no_answer() -> None:
    model, fresh = Configuration(profile="0.24.0").model(), Configuration(profile="0.24.0").model
    for before, chosen, after in random_walk(model, 300, seed=6):
        again = fresh()
        assert again.next_state(before, chosen) == after
        assert list(again.actions(before)) == list(model.actions(before))
        assert again.fair_action(before) == model.fair_action(before)


def test_a_preset_begins_as_its_numbers_do() -> None:
    model = Configuration().model()
    for name, _ in model.scope.presets:
        first = model.initial_state({"preset": name})
        assert model.initial_state({"preset": name, "slots": 1}) == first
        assert model.initial_state(model.settled({"preset": name})) == first


# --- the same in every process --------------------------------------------------------------------------------------

_PROGRAM = """
from toy_models import CounterModel, LockModel, SetupCounterModel, TankModel
from outlives.invariants.machine import machine_profile, run_machine
for model in (CounterModel(faulty=True), SetupCounterModel(), LockModel(faulty=True), LockModel(faulty=False),
              TankModel(stuck=True), TankModel()):
    run = run_machine(model, settings=machine_profile("quick"), seed=7)
    print(run.cases, run.calls, run.taken, run.fired, run.refused, run.situations, run.rounds)
    for result in run.results:
        trace = result.trace
        print(result.property, result.verdict, result.coverage, result.note)
        if trace is not None:
            shrink = {name: value for name, value in trace.shrink.items() if name != "seconds"}
            print([str(step) for step in trace.steps], trace.why, shrink)
"""


def test_results_do_not_depend_on_the_hash_seed() -> None:
    printed = []
    for hash_seed in ("0", "4711"):
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            cwd=Path(__file__).parent,
            env={"PYTHONHASHSEED": hash_seed, "PATH": "", "PYTHONPATH": str(Path(__file__).parent)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout)
    assert printed[0] == printed[1]
    assert len(re.findall("violated", printed[0])) >= 5


def test_choices_shrink_to_the_first_name() -> None:
    class Named(CounterModel):
        @property
        def action_table(self) -> ActionTable:
            return {"rest": {"how": Choice(("plain", "odd", "even"))}}

        def next_state(self, state, action):  # type: ignore[no-untyped-def]
            bad = action.get("how", "plain") in ("odd", "even")
            return Tally(13 if bad else 0, 12)

    run = run_machine(Named(faulty=True), settings=QUICK, properties=["BELOW-LIMIT"])
    shown = run.results[0].trace
    assert shown is not None
    assert [str(action) for action in shown.actions] == ["rest(how=odd)"]
