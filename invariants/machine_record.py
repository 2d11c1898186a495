"""One step of any model, taken and judged: the part that the Hypothesis machine and the random walk have in common.

Belongs here: taking an action, judging the properties, counting what happened, and saying so when the model breaks its
contract. Nothing here knows Hypothesis.
"""

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from itertools import islice
from typing import Any, Generic, NoReturn, Protocol, TypeVar, runtime_checkable

from outlives.model.contract import Action, DescribedModel, FairModel, Model, Property, Refusal, WeightedModel
from outlives.model.errors import BadModel

from .fair import FairJudge

__all__ = ["DetourModel", "Recorder", "answer", "broken", "initial_states", "show_state"]

State = TypeVar("State")
_PURITY_CHECK_AT = (1, 7, 29)  # taken actions of a run whose transition is made twice; few, since each costs a step
_MOST_INITIAL_STATES = 10_000
_FAIR, _VARIED, _ANY, _KINDS = 1, 1, 2, 6
"""Of six actions that take a refused one's place: a fair one, one of its name, two of any name; the others have a name
that was drawn in this run."""
_DETOUR_EVERY = 3
"""Where detours begin, a refused draw in so many takes one."""


@runtime_checkable
class DetourModel(Protocol):
    """A model that names short ways round to an action that could be taken at once, since what happens in between
    matters: each is the names of its actions in order, and begins where the first and the last of them are offered."""

    @property
    def action_detours(self) -> Sequence[Sequence[str]]: ...


def show_state(model: Model[Any], state: Any) -> str:
    """A state in words, cut to what fits in a message."""
    try:
        shown = str(dict(model.describe(state))) if isinstance(model, DescribedModel) else repr(state)
    except Exception as error:  # a message about a broken model must not break itself
        shown = f"a state that cannot be shown ({type(error).__name__})"
    return shown if len(shown) <= 400 else shown[:397] + "..."


def broken(
    model: Model[Any], what: str, state: Any, action: Action | None = None, cause: Exception | None = None
) -> NoReturn:
    """Raise BadModel: what is wrong, at which action, in which state (None: before there was one)."""
    why = "" if cause is None else f" ({type(cause).__name__}: {cause})"
    at = "" if action is None else f", at {action}"
    where = "" if state is None else f"{'' if at else ','} in the state {show_state(model, state)}"
    raise BadModel(f"the model breaks its contract: {what}{why}{at}{where}.") from cause


def answer(model: Model[State], state: State, action: Action) -> State | Refusal:
    """What `next_state` answers. Raises BadModel where it raises, or forgets to return anything."""
    try:
        after: State | Refusal | None = model.next_state(state, action)
    except Exception as error:
        broken(model, "next_state raised", state, action, error)
    if after is None:
        broken(model, "next_state returned None, not a state or a Refusal", state, action)
    return after


def initial_states(model: Model[State]) -> tuple[State, ...]:
    """The initial states of a model, at most ten thousand. Raises BadModel where there is none."""
    try:
        states = tuple(islice(model.initial_states(), _MOST_INITIAL_STATES))
    except Exception as error:
        raise BadModel(f"the model's initial_states raised {type(error).__name__}: {error}.") from error
    if not states:
        raise BadModel("the model has no initial state: initial_states() gave none.")
    return states


class Recorder(Generic[State]):
    """Takes and judges actions of one model, and counts. One recorder lives through all cases of a run."""

    def __init__(self, model: Model[State], properties: Sequence[Property[State]]) -> None:
        self.model = model
        self.counting = True
        """Off while a violation is replayed, so that counts speak of the generated runs only."""
        self.calls = 0
        self.cases = 0
        self.taken = 0
        self.outside = 0
        """Runs that reached the boundary."""
        self.fired: Counter[str] = Counter()
        self.refused: Counter[tuple[str, str]] = Counter()
        self.situations: Counter[str] = Counter()
        self.bad: BadModel | None = None
        self._opening: frozenset[str] = frozenset()
        self._offered: tuple[State, tuple[Action, ...]] | None = None
        self._weights = model.action_weights if isinstance(model, WeightedModel) else {}
        self._detours = model.action_detours if isinstance(model, DetourModel) else ()
        self._fair: FairJudge[State] | None = None
        self._fair_model = model if isinstance(model, FairModel) else None
        self.judge_only(properties)

    def judge_only(self, properties: Sequence[Property[State]]) -> None:
        """From now on judge these properties and no others."""
        self.properties = tuple(properties)
        self._moments = tuple((prop, 1 << place) for place, prop in enumerate(properties) if prop.kind != "progress")
        self._ends = tuple((prop, 1 << place) for place, prop in enumerate(properties) if prop.kind == "progress")
        if self._ends and self._fair is None:
            self._fair = FairJudge(self.model)

    @property
    def judges_progress(self) -> bool:
        """Whether any of the judged properties speaks of the fair run."""
        return bool(self._ends)

    def fail(self, what: str, state: Any, action: Action | None = None, cause: Exception | None = None) -> NoReturn:
        """Remember and raise BadModel."""
        try:
            broken(self.model, what, state, action, cause)
        except BadModel as error:
            self._remember(error)
            raise

    def _remember(self, error: BadModel) -> None:
        """Hypothesis may wrap what a rule raises, so it is kept here as well."""
        self.bad = self.bad or error

    def start(self, make: Callable[[], State]) -> State:
        """The initial state that `make` builds, checked to be hashable and not to change when it is made again."""
        try:
            state = make()
        except Exception as error:
            self.fail("the initial state could not be built", None, None, error)
        try:
            hash(state)
        except TypeError as error:
            self.fail("states must be hashable and immutable", state, None, error)
        self._opening = frozenset(action.name for action in self._offers(state)[:1])
        return state

    def take(self, before: State, action: Action, position: int) -> State | None:
        """The state after the action, or None where it is refused. `position` counts the actions taken before it."""
        try:
            after = answer(self.model, before, action)
        except BadModel as error:
            self._remember(error)
            raise
        if isinstance(after, Refusal):
            self.refuse(action.name, after.reason)
            return None
        if position in _PURITY_CHECK_AT:
            self._check_purity(before, action, after)
        if self.counting:
            self.taken += 1
            self.fired[action.name] += 1
        return after

    def refuse(self, name: str, reason: str) -> None:
        """Count a refusal that the model did not have to speak."""
        if self.counting:
            self.refused[name, reason] += 1

    def _check_purity(self, before: State, action: Action, after: State) -> None:
        try:
            mark = hash(before), hash(after)
            again = self.model.next_state(before, action)
            unchanged = (hash(before), hash(after)) == mark
        except Exception as error:
            self.fail("states must be hashable, and next_state must give the same answer twice", before, action, error)
        if not unchanged:
            self.fail("next_state changed a state in place", before, action)
        if again != after:
            self.fail("next_state gave two different answers to the same question", before, action)

    def judge(self, before: State, action: Action | None, after: State) -> tuple[Property[State] | None, int]:
        """The first `state` or `step` property that is false here, and which situations arose, as bits."""
        return self._judge(self._moments, before, action, after)

    def _offers(self, state: State, what: str = "actions raised") -> Sequence[Action]:
        """The actions that the model offers here, in its order; those of the last state are remembered, for an action
        that is refused there asks twice. `what` says how their failing is reported."""
        if self._offered is None or self._offered[0] is not state:
            try:
                self._offered = state, tuple(self.model.actions(state))
            except Exception as error:
                self.fail(what, state, None, error)
        return self._offered[1]

    def meant(self, state: State, name: str, turn: int, *, plain: bool = False) -> Action | None:
        """An action of this name that the model offers in this state, picked by `turn`, with `plain` every other time
        the first one; None where it offers none."""
        offered = [each for each in self._offers(state) if each.name == name]
        if not offered:
            return None
        return offered[0] if plain and turn // len(offered) % 2 else offered[turn % len(offered)]

    def detour(self, state: State, turn: int) -> Sequence[str]:
        """Where an action was refused, now and then the names of actions to take one after the other; else nothing."""
        if not self._detours or turn % _DETOUR_EVERY:
            return ()
        names = {action.name for action in self._offers(state)}
        ways = [way for way in self._detours if way[0] in names and way[-1] in names]
        return ways[turn // _DETOUR_EVERY % len(ways)] if ways else ()

    def go_on(self, state: State, position: int, turn: int, wanted: Container[str]) -> tuple[Action, State] | None:
        """Where a drawn action was refused, another one that is taken. None: the run is over.

        `turn`, a number without pattern, chooses: now and then the fair action, or it with other arguments; else one of
        the model's own, mostly among those whose name is `wanted` or with which runs begin, by their weights. Where
        the fair run is over, runs go on only with what begins them.
        """
        kind, turn = turn % _KINDS, turn // _KINDS
        raised = "fair_action or actions raised"
        try:
            fair = None if self._fair_model is None else self._fair_model.fair_action(state)
        except Exception as error:
            self.fail(raised, state, None, error)
        over = fair is None and self._fair_model is not None and position > 0
        offered = list(self._offers(state, raised)) if fair is None or kind >= _FAIR else []
        if over:
            offered = [action for action in offered if action.name in self._opening]
        elif fair is not None and kind < _FAIR + _VARIED:
            offered = [action for action in offered if action.name == fair.name]
        elif fair is not None and kind >= _FAIR + _VARIED + _ANY:
            also = self._opening if kind == _KINDS - 1 else ()
            offered = [action for action in offered if action.name in wanted or action.name in also]
        options = [] if fair is None else [fair]
        if offered:
            names: list[str] = []
            for name in dict.fromkeys([action.name for action in offered]):
                names += [name] * self._weights.get(name, 1)
            name, turn = names[turn % len(names)], turn // len(names)
            same = [action for action in offered if action.name == name]
            options.insert(0, same[turn % len(same)])
            if fair is None:
                options += offered
        for action in options:
            after = self.take(state, action, position)
            if after is not None:
                return action, after
        return None

    def fair_end(self, state: State) -> State:
        """Where the fair run from this state ends."""
        if self._fair is None:
            self._fair = FairJudge(self.model)
        try:
            return self._fair.end(state)
        except BadModel:
            raise
        except Exception as error:
            self.fail("the fair run raised", state, None, error)

    def judge_progress(self, state: State) -> tuple[Property[State] | None, int]:
        """The first `progress` property that is false from here, and which situations arose, as bits."""
        return self._judge(self._ends, state, None, self.fair_end(state)) if self._ends else (None, 0)

    def _judge(
        self, properties: tuple[tuple[Property[State], int], ...], before: State, action: Action | None, after: State
    ) -> tuple[Property[State] | None, int]:
        arose = 0
        prop = None
        try:
            for prop, bit in properties:
                if prop.situation(before, action, after):
                    arose |= bit
                    if self.counting:
                        self.situations[prop.name] += 1
                if not prop.holds(before, action, after):
                    return prop, arose
        except Exception as error:
            self.fail(f"property {prop.name if prop else '?'} raised", after, action, error)
        return None, arose

    def refusals(self) -> Mapping[str, Mapping[str, int]]:
        """Action -> reason -> how often, both in alphabetical order."""
        table: dict[str, dict[str, int]] = {}
        for (name, reason), count in sorted(self.refused.items()):
            table.setdefault(name, {})[reason] = count
        return table
