"""The Hypothesis machine over any model: one rule per action, named as it, each of them total.

Belongs here: how rules, their arguments and the setup are drawn, and what a rule does. Rules have no preconditions
(swarm testing would leave cases without any enabled rule): an action that the model refuses is counted, and then
another one is taken instead, the model's next fair action if it has a fair run. That matters because swarm testing
switches half of the rules off in a typical case, and a run in which nothing may ever be executed shows nothing. What a
model names as detours is then taken now and then, action by action, whatever is drawn meanwhile. A run that is over
before its case is begins again from the same initial state.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis import target
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from outlives.model.contract import (
    Action,
    ActionTable,
    Argument,
    Choice,
    Model,
    PresetModel,
    Property,
    Range,
    Refusal,
    SetupModel,
    TableModel,
    WeightedModel,
)
from outlives.model.errors import BadModel

from .machine_record import Recorder, answer, broken, initial_states
from .machine_settings import MachineSettings, machine_profile

__all__ = ["ModelMachine", "PropertyViolated", "action_names", "argument_strategy", "machine_class"]

State = TypeVar("State")
_RESERVED = {"target", "targets"}  # keywords of Hypothesis's `rule`
_OWN_NUMBERS = 3  # where there are presets, one in so many runs has numbers of its own
_FACTOR, _STEP, _RANGE, _LOW_BITS = 6364136223846793005, 1442695040888963407, 1 << 64, 33  # Knuth's MMIX numbers
_SPREAD = 10_007  # more than an action has arguments, as a rule
_PICKS = 5_040  # divisible by 1 to 10, so that a pick modulo the number of actions is even for the usual numbers


class PropertyViolated(AssertionError):
    """A property is false. Each property has its own subclass, so that Hypothesis tells the failures apart."""

    def __init__(self, prop: Property[Any], why: str) -> None:
        super().__init__(f"{prop.name}: it must hold that {prop.phrase}, but {why}")
        self.property = prop.name
        self.why = why


class ModelMachine(RuleBasedStateMachine):
    """What the rules of every model's machine share. Made by `machine_class`, which sets the class variables."""

    recorder: Recorder[Any]
    options: MachineSettings
    on_found: Callable[["ModelMachine", Property[Any]], None]
    on_case: Callable[["ModelMachine"], None]
    errors: Mapping[str, type[PropertyViolated]]
    starts: tuple[Any, ...]
    places: Mapping[str, int]
    """Each action's place."""
    waits_for_setup: bool

    def __init__(self) -> None:
        super().__init__()
        self.setup: tuple[tuple[str, Argument], ...] | None = None
        self.actions: list[Action] = []
        self.situations = 0
        self.mix = 0
        self.drawn: set[str] = set()
        self.detour: Sequence[str] = ()
        self.outside = False
        self.current: Any = None
        self.initial: Any = None
        self._around = sys.exception()
        if self.recorder.counting:
            self.recorder.cases += 1
        if not self.waits_for_setup:
            self.begin(lambda: self.starts[0], None)

    def begin(self, make: Callable[[], Any], setup: tuple[tuple[str, Argument], ...] | None) -> None:
        """Start the run from the state that `make` builds."""
        self.setup = setup
        self.initial = self.current = state = self.recorder.start(make)
        self.judge(state, None, state)

    def step(self, action: Action | None, name: str, drawn: int) -> None:
        """Take the action of this name; where it is refused, go on with another one, if that is wanted.

        None is an action that the model does not offer in this state; `drawn` is a number that Hypothesis chose.
        """
        recorder = self.recorder
        if recorder.counting:
            recorder.calls += 1
        if self.outside:
            return
        before, position = self.current, len(self.actions)
        # What is picked where a drawn action is refused follows from all that was drawn, and from nothing else.
        self.mix = (self.mix * _FACTOR + _STEP + drawn + _SPREAD * self.places[name]) % _RANGE
        self.drawn.add(name)
        turn = self.mix >> _LOW_BITS
        taken = self.along_detour(turn) or self.as_drawn(action, name, turn)
        if taken is None:
            if not self.options.go_on:
                return
            self.detour = recorder.detour(before, turn)
            taken = self.along_detour(turn) or recorder.go_on(before, position, turn, self.drawn)
            if taken is None:
                self.start_again()
                return
        action, after = taken
        self.actions.append(action)
        self.current = after
        self.judge(before, action, after)
        every = self.options.fair_every
        if every and len(self.actions) % every == 0:
            self.judge_progress()

    def as_drawn(self, action: Action | None, name: str, turn: int) -> tuple[Action, Any] | None:
        """The drawn action, or where it is refused one of its name that the model offers, and the state after it."""
        if action is None:
            self.recorder.refuse(name, "not-available")
            return None
        before, position = self.current, len(self.actions)
        after = self.recorder.take(before, action, position)
        if after is None and action.arguments and self.options.go_on:
            meant = self.recorder.meant(before, action.name, turn)
            if meant is not None:
                action, after = meant, self.recorder.take(before, meant, position)
        return None if after is None else (action, after)

    def along_detour(self, turn: int) -> tuple[Action, Any] | None:
        """The next action of the detour under way, if there is one, and the state after it; the detour ends where that
        action is not to be had."""
        if not self.detour:
            return None
        name, self.detour = self.detour[0], self.detour[1:]
        action = self.recorder.meant(self.current, name, turn, plain=True)
        after = None if action is None else self.recorder.take(self.current, action, len(self.actions))
        if action is None or after is None:
            self.detour = ()
            return None
        return action, after

    def start_again(self) -> None:
        """Where a run is over before its case is, judge its end and begin another one from the same initial state."""
        self.judge_progress()
        self.actions = []
        self.detour = ()
        self.current = self.initial

    def judge(self, before: Any, action: Action | None, after: Any) -> None:
        """Judge the step just taken, and notice the boundary."""
        false, arose = self.recorder.judge(before, action, after)
        self.situations |= arose
        if false is not None:
            self.violated(false, before, action, after)
        if not self.recorder.model.within(after):
            self.outside = True
            if self.recorder.counting:
                self.recorder.outside += 1

    def judge_progress(self) -> None:
        """Judge the fair run from the current state; states outside the boundary are not gone on from."""
        if self.outside or not self.recorder.judges_progress:
            return
        false, arose = self.recorder.judge_progress(self.current)
        self.situations |= arose
        if false is not None:
            self.violated(false, self.current, None, self.recorder.fair_end(self.current))

    def violated(self, prop: Property[Any], before: Any, action: Action | None, after: Any) -> None:
        """Keep the run as it is (before anything shrinks it), then fail the case."""
        self.on_found(self, prop)
        try:
            why = prop.explain(before, action, after)
        except Exception as error:
            self.recorder.fail(f"the explanation of property {prop.name} raised", after, action, error)
        raise self.errors[prop.name](prop, why)

    def teardown(self) -> None:
        """Judge progress once per run, from where it ended; not where the run was cut off by an error."""
        if sys.exception() is not self._around or self.current is None:
            return
        self.judge_progress()
        if self.options.use_target and self.options.cases >= 1_000:
            target(float(self.situations.bit_count()), label="situations reached")
        self.on_case(self)


def argument_strategy(domain: Range | Choice) -> st.SearchStrategy[Argument]:
    """How an argument is drawn: a number shrinks to the low end of its range, a name to the first."""
    if isinstance(domain, Range):
        return st.integers(domain.low, domain.high)
    return st.sampled_from(domain.names)


def _places(domain: Range | Choice) -> Mapping[Argument, int]:
    """Each value of an argument -> its place among them."""
    if isinstance(domain, Range):
        return {value: place for place, value in enumerate(range(domain.low, domain.high + 1))}
    return {name: place for place, name in enumerate(domain.names)}


def action_names(model: Model[State], tries: int = 2_000) -> tuple[str, ...]:
    """The names of a model's actions: from its table, else those met in the first states breadth-first, sorted."""
    if isinstance(model, TableModel):
        return tuple(model.action_table)
    names: set[str] = set()
    states = list(initial_states(model))[:100]
    seen = set(states)
    for state in states:  # grows while it is walked
        try:
            actions = tuple(model.actions(state))
        except Exception as error:
            broken(model, "actions raised", state, cause=error)
        for action in actions:
            names.add(action.name)
            if len(states) < tries:
                after = answer(model, state, action)
                if not isinstance(after, Refusal) and after not in seen and model.within(after):
                    seen.add(after)
                    states.append(after)
    if not names:
        raise BadModel("the model has no action: actions() gave none in the first states.")
    return tuple(sorted(names))


def machine_class(
    model: Model[Any],
    *,
    settings: MachineSettings | None = None,
    properties: Sequence[Property[Any]] | None = None,
    name: str = "Machine",
    recorder: Recorder[Any] | None = None,
    on_found: Callable[[ModelMachine, Property[Any]], None] | None = None,
    on_case: Callable[[ModelMachine], None] | None = None,
) -> type[ModelMachine]:
    """A Hypothesis state machine over a model: `TestMachine = machine_class(model).TestCase` runs it under pytest.

    `properties` are judged (all of the model's unless given); `on_found` is called with the machine and the property
    before the case fails, `on_case` at the end of each case that was not cut off. Raises BadModel.
    """
    judged = tuple(model.properties() if properties is None else properties)
    options = settings or machine_profile("quick")
    base = initial_states(model)
    members: dict[str, Any] = {
        "recorder": recorder or Recorder(model, judged),
        "options": options,
        "on_found": staticmethod(on_found or _nothing),
        "on_case": staticmethod(on_case or _nothing),
        "errors": {prop.name: type(f"Violated_{prop.name}", (PropertyViolated,), {}) for prop in judged},
        "starts": base,
        "waits_for_setup": False,
    }
    begin = _setup_rule(model, base)
    if begin is not None:
        members["waits_for_setup"] = True
        members["begin_rule"] = begin
    table = model.action_table if isinstance(model, TableModel) else None
    weights = model.action_weights if isinstance(model, WeightedModel) else {}
    names = action_names(model) if table is None else tuple(table)
    members["places"] = {action: place for place, action in enumerate(names)}
    for action in names:
        for copy in range(max(1, weights.get(action, 1))):
            made = _picked_rule(model, action) if table is None else _table_rule(action, table)
            members[f"rule_{action}_{copy}" if copy else f"rule_{action}"] = made
    if not any(member.startswith("rule_") for member in members):
        raise BadModel("the model has no action: its action_table is empty.")
    return type(name, (ModelMachine,), members)


def _nothing(*_: object) -> None:
    """Where the caller does not want to be told."""


def _table_rule(name: str, table: ActionTable) -> Any:
    domains = table[name]
    if taken := _RESERVED.intersection(domains):
        raise BadModel(f"action {name} has an argument called {min(taken)!r}; Hypothesis keeps that name for itself.")
    order = tuple(domains)

    if order:
        places = {argument: _places(domain) for argument, domain in domains.items()}

        def fire(self: ModelMachine, /, **arguments: Argument) -> None:
            action = Action(name, tuple([(argument, arguments[argument]) for argument in order]))
            drawn = 0
            for argument, value in action.arguments:
                drawn = drawn * len(places[argument]) + places[argument][value]
            self.step(action, name, drawn)
    else:
        only = Action(name)

        def fire(self: ModelMachine, /, **_: Argument) -> None:
            self.step(only, name, 0)

    return _as_rule(fire, name, {argument: argument_strategy(domain) for argument, domain in domains.items()})


def _picked_rule(model: Model[Any], name: str) -> Any:
    """A rule of a model without a table: the drawn number picks among the state's actions of this name."""

    def fire(self: ModelMachine, /, pick: int) -> None:
        options = [action for action in model.actions(self.current) if action.name == name]
        self.step(options[pick % len(options)] if options else None, name, pick)

    return _as_rule(fire, name, {"pick": st.integers(0, _PICKS - 1)})


def _as_rule(fire: Callable[..., None], name: str, strategies: Mapping[str, st.SearchStrategy[Any]]) -> Any:
    fire.__name__ = fire.__qualname__ = name
    as_rule: Any = rule  # its overloads cannot be told that no argument is called `target`
    return as_rule(**strategies)(fire)


def _setup_rule(model: Model[Any], base: tuple[Any, ...]) -> Any:
    """The rule that draws where a run begins, or None where there is only one place."""
    if isinstance(model, SetupModel):
        return _setup_numbers_rule(model)
    if len(base) == 1:
        return None

    def begin_at(self: ModelMachine, /, which: int) -> None:
        self.begin(lambda: self.starts[which], None)

    begin_at.__name__ = "begin"
    return initialize(which=st.integers(0, len(base) - 1))(begin_at)


def _setup_numbers_rule(model: SetupModel) -> Any:
    """Draw the setup's numbers, each from its range."""
    table = model.setup_table
    order = tuple(table)

    def begin_with(self: ModelMachine, /, numbers: dict[str, Argument]) -> None:
        chosen = model.settled(numbers) if isinstance(model, PresetModel) else numbers
        setup = tuple((number, chosen[number]) for number in order)
        self.begin(lambda: model.initial_state(dict(setup)), setup)

    begin_with.__name__ = "begin"
    strategies = {number: argument_strategy(domain) for number, domain in table.items()}
    drawn = st.fixed_dictionaries(strategies)
    if isinstance(model, PresetModel):
        drawn = _or_preset(model, drawn)
    return initialize(numbers=drawn)(begin_with)


def _or_preset(model: Any, drawn: st.SearchStrategy[dict[str, Argument]]) -> st.SearchStrategy[dict[str, Argument]]:
    """Most of the time the name of a preset alone, which stands for all numbers; a run shrinks to drawn ones."""
    table = model.setup_table
    whole: list[dict[str, Argument]] = [
        {number: name}
        for number, domain in table.items()
        if isinstance(domain, Choice)
        for name in domain.names
        if model.settled({number: name}).keys() == table.keys()
    ]
    if not whole:
        return drawn
    return st.integers(0, _OWN_NUMBERS - 1).flatmap(lambda kind: st.sampled_from(whole) if kind else drawn)
