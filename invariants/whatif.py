"""What if: the same run with one thing changed — another guard, another number — and what becomes of it.

Belongs here: taking the actions of a trace again under a changed world, setup or argument, and comparing. What is said
of the answers is data of `report.analysis`.

Every question is a handful of calls of the model, so all of them together are asked within a budget of actions that
keeps a report under a second; what was not asked for want of it is said.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple

from outlives.model.contract import Action, Choice, Property, Refusal
from outlives.model.errors import BadModel, OutlivesError
from outlives.model.lifetime import GUARDS
from outlives.model.scheduler import SchedulerModel, initial_state
from outlives.model.setup import Scope, Setup
from outlives.model.state import State
from outlives.model.trace import setup_from_plain, setup_to_plain
from outlives.model.world import World

from .fair import FairJudge
from .report.analysis import Analysis, Counterfactual, Freedom, Neighbour
from .report.changes import changes, value_words
from .verdict import Trace

__all__ = ["what_if"]

_MOST_ACTIONS = 6_000
"""Actions taken for the questions about numbers, all together."""
_LONGEST = 60
"""Actions of a trace up to which its numbers are asked about."""
_NEAR = (-1, 1, -2, 2, -3, 3, 4)
"""How far from its own value a number is tried, nearest first."""
_SETUP_NUMBERS = ("slots", "budget", "encoder_budget", "chunk_cap", "drafts", "look_ahead", "depth", "strangers")


class _Played(NamedTuple):
    """One run of the actions."""

    actions: tuple[Action, ...]
    """Those of the trace, and where progress is judged those of the fair run behind them."""
    states: tuple[State, ...]
    """After each action; of a refused one the state before it."""
    refused: tuple[str | None, ...]
    violated_at: int | None
    """The first step at which the property was false; None: at none."""

    def refusals(self) -> int:
        """How many actions were refused."""
        return sum(reason is not None for reason in self.refused)


class _Question(NamedTuple):
    """A number of the run that can be another one."""

    name: str
    value: int | str
    others: tuple[int | str, ...]
    """Nearest first."""
    change: Callable[[int | str], tuple[Setup, Sequence[Action]]]
    """The setup and the actions with another value; raises `OutlivesError` where there is no such run."""


def what_if(trace: Trace, world: World, prop: Property[Any]) -> Analysis:
    """Every answer about this trace of ours; empty for a model that is not ours."""
    first = trace.steps[0].state if trace.steps else None
    if type(first) is not State:  # also what was observed of a real scheduler, which cannot be asked here
        return Analysis()
    run = _Run(trace, world, prop)
    counterfactuals = tuple(run.under(name) for name in GUARDS)
    if len(run.actions) > _LONGEST:
        note = f"which numbers matter was not asked: the trace has more than {_LONGEST} actions"
        return Analysis(counterfactuals=counterfactuals, notes=(note,))
    if run.own.violated_at is None:
        return Analysis(counterfactuals=counterfactuals)
    freedoms, neighbour, cut = run.numbers()
    notes = ("not every number was tried: the budget of this question ran out",) if cut else ()
    return Analysis(counterfactuals=counterfactuals, freedoms=freedoms, neighbour=neighbour, notes=notes)


class _Run:
    """The trace's own run, and how to take it otherwise."""

    def __init__(self, trace: Trace, world: World, prop: Property[Any]) -> None:
        fair_from = trace.shrink.get("fair_from")
        self.world, self.prop = world, prop
        self.setup: Setup = trace.steps[0].state.setup
        taken = trace.steps[1:] if fair_from is None else trace.steps[1 : fair_from + 1]
        self.actions = tuple(step.action for step in taken if step.action is not None)
        self.spent = 0
        self.own = self.play(world, self.setup, self.actions)

    def play(self, world: World, setup: Setup, actions: Sequence[Action]) -> _Played:
        """Take the actions in this world. Raises what the model raises."""
        model = SchedulerModel(world, Scope(requests=len(setup.requests)), (self.prop,))
        state = initial_state(setup)
        states: list[State] = []
        refused: list[str | None] = []
        violated: int | None = None
        for number, action in enumerate(actions, 1):
            self.spent += 1
            after = model.next_state(state, action)
            if isinstance(after, Refusal):
                refused.append(after.reason)
            else:
                if violated is None and self.prop.kind != "progress" and not self.prop.holds(state, action, after):
                    violated = number
                state = after
                refused.append(None)
            states.append(state)
        taken = list(actions)
        if self.prop.kind == "progress":
            fair = FairJudge(model).run(state)
            violated = None if self.prop.holds(state, None, fair.end) else len(actions)
            taken += fair.actions
            states += fair.states
            refused += [None] * len(fair.states)
        return _Played(tuple(taken), tuple(states), tuple(refused), violated)

    # --- other guards ---------------------------------------------------------------------------------------------

    def under(self, name: str) -> Counterfactual:
        """The same actions under this guard."""
        own = name == self.world.guard.name and self.world.rules.guard is None
        if own:
            other = self.own
        else:
            rules = replace(self.world.rules, guard=None)
            other = self.play(replace(self.world, guard=GUARDS[name], rules=rules), self.setup, self.actions)
        differs_at, difference = self._difference(other)
        return Counterfactual(
            guard=name,
            own=own,
            outcome=self._outcome(other),
            violated=other.violated_at is not None,
            differs_at=differs_at,
            difference=difference,
            price=sum(_held(theirs) - _held(mine) for mine, theirs in zip(self.own.states, other.states, strict=False)),
        )

    def _outcome(self, other: _Played) -> str:
        if other.violated_at is not None:
            return f"violated at step {other.violated_at}"
        refused = other.refusals() - self.own.refusals()
        return "passes" if refused <= 0 else f"passes, {refused} of {len(self.actions)} steps refused"

    def _difference(self, other: _Played) -> tuple[int | None, str]:
        pairs = zip(self.own.states, other.states, self.own.refused, other.refused, strict=False)
        for number, (mine, theirs, my_refusal, their_refusal) in enumerate(pairs, 1):
            if my_refusal != their_refusal:
                told = f"refused ({their_refusal})" if their_refusal else f"taken, not refused ({my_refusal})"
                return number, f"{self.own.actions[number - 1]} is {told}"
            for change in changes(mine, theirs):
                return number, f"{change.name} is {value_words(change.new)}, not {value_words(change.old)}"
        return None, ""

    # --- other numbers --------------------------------------------------------------------------------------------

    def numbers(self) -> tuple[tuple[Freedom, ...], Neighbour | None, bool]:
        """Which numbers may be others, the nearest run that passes, and whether something was not tried."""
        freedoms: list[Freedom] = []
        passing: list[tuple[tuple[int, int, int], Neighbour]] = []
        cut = False
        for place, question in enumerate((*self._of_setup(), *self._of_arguments())):
            tried, still = [], []
            for other in question.others:
                if self.spent > _MOST_ACTIONS:
                    cut = True
                    break
                played = self._changed(question, other)
                if played is None:
                    continue
                tried.append(other)
                if played.violated_at is not None:
                    still.append(other)
                else:
                    passing.append(self._neighbour(question, other, played, place))
            if still:
                freedoms.append(
                    Freedom(name=question.name, value=question.value, still=tuple(still), tried=tuple(tried))
                )
        nearest = min(passing, key=lambda found: found[0], default=None)
        return tuple(freedoms), None if nearest is None else nearest[1], cut

    def _changed(self, question: _Question, other: int | str) -> _Played | None:
        """The run with the other value; None where there is none."""
        try:
            setup, actions = question.change(other)
            return self.play(self.world, setup, actions)
        except BadModel:
            raise
        except OutlivesError:
            return None

    def _neighbour(
        self, question: _Question, other: int | str, played: _Played, place: int
    ) -> tuple[tuple[int, int, int], Neighbour]:
        refused = played.refusals() - self.own.refusals()
        note = "every step is taken" if refused <= 0 else f"{refused} of {len(self.actions)} steps are refused"
        far = abs(other - question.value) if isinstance(other, int) and isinstance(question.value, int) else 1
        found = Neighbour(name=question.name, old=question.value, new=other, note=note)
        return (max(0, refused), far, place), found

    def _of_setup(self) -> Iterator[_Question]:
        plain = setup_to_plain(self.setup)
        paths: list[tuple[str, tuple[Any, ...]]] = [(f"{name.replace('_', '-')}", (name,)) for name in _SETUP_NUMBERS]
        for number, asked in enumerate(plain["requests"]):
            for name in ("prompt", "outputs"):
                paths.append((f"r{number}.{name}", ("requests", number, name)))
            for place, _item in enumerate(asked["items"]):
                paths += [(f"r{number}.item{place}.{name}", ("requests", number, "items", place, name))
                          for name in ("start", "length")]  # fmt: skip
        for name, path in paths:
            value = _at(plain, path)
            limited = path[-1] in ("encoder_budget", "chunk_cap") and value == 0  # no limit: no number to move
            if not limited:
                others = tuple(value + far for far in _NEAR if value + far >= 0)
                yield _Question(f"setup: {name}", value, others, self._setup_with(plain, path))

    def _setup_with(self, plain: Any, path: Sequence[Any]) -> Callable[[int | str], tuple[Setup, Sequence[Action]]]:
        def change(other: int | str) -> tuple[Setup, Sequence[Action]]:
            changed = deepcopy(plain)
            _at(changed, path[:-1])[path[-1]] = other
            if path[-1] == "length":  # an item takes as many slots as before, but never more than its positions
                item = _at(changed, path[:-1])
                item["size"] = other if item["size"] == _at(plain, path) else min(item["size"], other)
            return setup_from_plain(changed, "the changed run"), self.actions

        return change

    def _of_arguments(self) -> Iterator[_Question]:
        table = SchedulerModel(self.world, Scope(requests=len(self.setup.requests)), ()).action_table
        for number, action in enumerate(self.actions, 1):
            if self.own.refused[number - 1] is not None:
                continue
            for name, value in action.arguments:
                domain = table.get(action.name, {}).get(name)
                if domain is None:
                    continue
                if isinstance(domain, Choice):
                    every: Iterable[int | str] = dict.fromkeys(domain.names)
                elif isinstance(value, int):
                    every = [value + far for far in _NEAR if domain.low <= value + far <= domain.high]
                else:
                    every = ()
                others = tuple(other for other in every if other != value)
                if others:
                    yield _Question(f"step {number}, {action.name}: {name}", value, others,
                                    self._argument_with(number - 1, name))  # fmt: skip

    def _argument_with(self, place: int, name: str) -> Callable[[int | str], tuple[Setup, Sequence[Action]]]:
        def change(other: int | str) -> tuple[Setup, Sequence[Action]]:
            action = self.actions[place]
            arguments = tuple((each, other if each == name else value) for each, value in action.arguments)
            changed = action._replace(arguments=arguments)
            return self.setup, (*self.actions[:place], changed, *self.actions[place + 1 :])

        return change


def _at(plain: Any, path: Sequence[Any]) -> Any:
    for name in path:
        plain = plain[name]
    return plain


def _held(state: State) -> int:
    """Slots of entries that somebody references."""
    return sum(entry.size for entry in state.book.entries if entry.holders)
