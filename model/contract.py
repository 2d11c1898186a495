"""What a model is, for every engine: the five functions, and the values that pass through them.

Belongs here: the `Model` protocol and the small records of its vocabulary (action, refusal, argument ranges,
property). Nothing here knows about schedulers or caches.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

__all__ = [
    "Action",
    "ActionTable",
    "Argument",
    "Choice",
    "DescribedModel",
    "FairModel",
    "Model",
    "Property",
    "Range",
    "Refusal",
    "SetupModel",
    "TableModel",
    "WeightedModel",
]

State = TypeVar("State")
Argument = int | str


class Action(NamedTuple):
    """One step of a run: a name and named arguments. Replay is by these names, never by an index."""

    name: str
    arguments: tuple[tuple[str, Argument], ...] = ()

    @classmethod
    def of(cls, name: str, /, **arguments: Argument) -> "Action":
        """Build an action: `Action.of("reject", accepted=1)`."""
        return cls(name, tuple(arguments.items()))

    def get(self, argument: str, default: Argument) -> Argument:
        """The value of a named argument, or the default where the action does not carry it."""
        for name, value in self.arguments:
            if name == argument:
                return value
        return default

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value}' for name, value in self.arguments)})"


class Refusal(NamedTuple):
    """An action that the model does not take in this state. The state stays as it was."""

    reason: str
    """A stable kebab-case name, e.g. `pipeline-full`; refusals are counted by it."""


@dataclass(frozen=True, slots=True)
class Range:
    """An argument that is a whole number from `low` to `high`, both included."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Choice:
    """An argument that is one of these names; the first is the simplest, to which a trace shrinks. A name may be
    repeated to be drawn more often."""

    names: tuple[str, ...]


ActionTable = Mapping[str, Mapping[str, Range | Choice]]
"""Action name -> argument name -> its range, in declaration order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Property(Generic[State]):
    """What must hold, as a value. Each property is checked, counted and reported on its own.

    `holds(before, action, after)` judges one transition; an initial state is judged as `(state, None, state)`.
    For kind `progress`, `before` is a reached state and `after` is where the model's own fair run from it ended
    (see `FairModel`); the property says whether that end is good.
    """

    name: str
    """Stable identifier, e.g. `GATHER-AFTER-FREE`; never renamed, reports and known-findings files use it."""
    phrase: str
    """What it says, as a sentence fragment that completes "It must hold that ..."."""
    holds: Callable[[State, Action | None, State], bool]
    explain: Callable[[State, Action | None, State], str]
    """Why it is false here, in words and numbers. Called only where `holds` is false."""
    situation: Callable[[State, Action | None, State], bool]
    """Whether this transition puts the property to the test; a run in which it never does is vacuous for it."""
    situation_phrase: str
    """That situation in words, e.g. "a step read an item"."""
    kind: Literal["state", "step", "progress"] = "state"
    """`state` reads only `after`; `step` reads all three; `progress` as above."""
    towards: tuple[str, ...] = ()
    """Properties whose situations come before this one's, the first one first: where this one's never arose, reports
    tell how far runs got. Names that the model does not have are passed over."""
    more: str = ""
    """What to raise, where no situation but this property's own is missing: `--drafts`, `the tank's capacity`."""


class Model(Protocol[State]):
    """Five functions. States and actions are immutable and hashable, and `next_state` is pure."""

    def initial_states(self) -> Iterable[State]:
        """Where runs begin."""
        ...

    def actions(self, state: State) -> Iterable[Action]:
        """The actions worth trying in this state, in a fixed order; some may still be refused."""
        ...

    def next_state(self, state: State, action: Action) -> State | Refusal:
        """The state after the action, or why it is not taken. Total: any action of the model, any arguments."""
        ...

    def properties(self) -> Sequence[Property[State]]:
        """What must hold."""
        ...

    def within(self, state: State) -> bool:
        """The boundary: engines do not go on from a state outside it (its properties are still judged)."""
        ...


@runtime_checkable
class TableModel(Protocol):
    """A model that says which arguments its actions take; the machine's rules are generated from it."""

    @property
    def action_table(self) -> ActionTable: ...


@runtime_checkable
class WeightedModel(Protocol):
    """A model that says how often an action is drawn against the others (1 where it says nothing)."""

    @property
    def action_weights(self) -> Mapping[str, int]: ...


@runtime_checkable
class SetupModel(Protocol):
    """A model whose initial state has numbers of its own, drawn by the machine and lowered when it shrinks."""

    @property
    def setup_table(self) -> Mapping[str, Range | Choice]: ...

    def initial_state(self, arguments: Mapping[str, Argument]) -> Any:
        """The initial state with these numbers, clamped into what makes sense. Total."""
        ...


@runtime_checkable
class PresetModel(Protocol):
    """A setup model some of whose drawn numbers stand for a whole set of them."""

    def settled(self, arguments: Mapping[str, Argument]) -> Mapping[str, Argument]:
        """The same setup with every number written out, so that each can be lowered."""
        ...


@runtime_checkable
class FairModel(Protocol):
    """A model that can say what happens next when the environment no longer gets in the way."""

    def fair_action(self, state: Any) -> Action | None:
        """The next action of the fair run from this state, or None where nothing is left to do."""
        ...

    def fair_bound(self, state: Any) -> int:
        """In how many actions the fair run from this state must have ended."""
        ...


@runtime_checkable
class DescribedModel(Protocol):
    """A model that can show a state as plain values (names to numbers, strings, tuples, nested mappings)."""

    def describe(self, state: Any) -> Mapping[str, Any]: ...
