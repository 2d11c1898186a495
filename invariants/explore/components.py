"""How a model shows its parts, so that its rules can be remembered: components, moves, looks.

Belongs here: the optional interface `ComponentModel`. A model that has it is explored many times faster, because most
states share most of their components: a rule that reads two small components is called once for each pair of values,
not once for each state.

The one discipline: a rule reads nothing but its arguments. The engine cannot see a rule that looks elsewhere; it
compares a sample of states with `next_state` while it runs, and tests compare whole scopes.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

from outlives.model.contract import Action

__all__ = ["Branch", "ComponentModel", "Follower", "Gate", "Look", "Move", "Refused"]


class Branch(NamedTuple):
    """One outcome of a move."""

    action: Action
    writes: Mapping[str, Hashable]
    """Component -> new value. Whatever is not named stays as it is, apart from what followers write."""
    note: Hashable = None
    """What the followers of the move have to know."""


class Refused(NamedTuple):
    """An action that is offered and not taken."""

    action: Action
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Follower:
    """The rest of a move, in a component that the choice does not depend on: e.g. corrections of a later step."""

    reads: tuple[str, ...]
    writes: tuple[str, ...]
    rule: Callable[..., tuple[Hashable, ...]]
    """`rule(note, *values of reads)` -> the new values of `writes`, in order. Reads the state before the move, and is
    asked for every branch of its move."""
    hears: int | None = None
    """Where notes are tuples: the one place of them that the rule is told; None: the whole note. The less it is told,
    the fewer answers have to be remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A condition of a whole move in components that its choices do not depend on."""

    reads: tuple[str, ...]
    rule: Callable[..., bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One or more actions that read the same components."""

    names: tuple[str, ...]
    """The names of its actions. Moves may not interleave by name: all of one come before all of the next. Moves of one
    action each may share its name, e.g. one move per request: all actions of one come before all of the next."""
    reads: tuple[str, ...]
    rule: Callable[..., Iterable[Branch | Refused]]
    """`rule(*values of reads)` -> every action of these names that the model offers for such states."""
    followers: tuple[Follower, ...] = ()
    """No two of them, and no branch beside them, write the same component."""
    gate: Gate | None = None
    """Where it says no, none of these actions is offered, and the rule is not asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a property reads: components of the state before and after. (It may always read the action.)"""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    """Of a `state` property and of `within`, `holds` looks at these and at nothing before."""
    test_before: tuple[str, ...] = ()
    """What the situation reads, likewise."""
    test_after: tuple[str, ...] = ()


@runtime_checkable
class ComponentModel(Protocol):
    """A model of the contract that can also be run by its components. `components` are named in a fixed order.

    A model may have a mapping `component_bits` beside: how many bits are enough to number a component's values. It is
    a hint: fewer bits make the search faster, and too few make it begin again.
    """

    @property
    def components(self) -> tuple[str, ...]: ...

    def split(self, state: Any) -> tuple[Hashable, ...]:
        """The components of a state, in order: small, immutable, hashable."""
        ...

    def join(self, values: tuple[Any, ...]) -> Any:
        """The state of these components; `join(split(state)) == state`. A None stands for one that is not looked at."""
        ...

    def moves(self) -> Sequence[Move]:
        """The rules, by component. Together they offer what `actions` offers, with the answers of `next_state`."""
        ...

    def looks(self) -> Mapping[str, Look]:
        """Property name -> what it reads, and `within` -> what the boundary reads. A name left out reads everything."""
        ...
