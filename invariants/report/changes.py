"""What a step changed: the fields of a state as flat names and values, and those that differ between two states.

Belongs here: flattening and comparing, for any model. How changes are laid out is the writers'.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from outlives.model.contract import DescribedModel
from outlives.model.describe import describe
from outlives.model.state import State

__all__ = ["Change", "changes", "flat", "value_words"]


class Change(NamedTuple):
    """One field that a step changed."""

    name: str
    """Flattened, e.g. `r0.computed`."""
    old: Any
    """None where the field was not there."""
    new: Any

    def words(self) -> str:
        """`r0.computed: 0 → 4`; of a longer sequence only what came (+) and went (-)."""
        if _is_sequence(self.old) and _is_sequence(self.new) and max(len(self.old), len(self.new)) > 1:
            before, after = Counter(map(str, self.old)), Counter(map(str, self.new))
            moves = [f"- {each}" for each in (before - after).elements()]
            moves += [f"+ {each}" for each in (after - before).elements()]
            if moves:
                return f"{self.name}: {' '.join(moves)}"
        return f"{self.name}: {value_words(self.old)} → {value_words(self.new)}"


def value_words(value: Any) -> str:
    """A value as a reader wants to see it: sequences without brackets, `none` where there is nothing."""
    if _is_sequence(value):
        return " | ".join(str(each) for each in value) if value else "none"
    return "none" if value is None else str(value)


def flat(state: Any, model: object = None) -> dict[str, Any]:
    """The fields of a state by flattened name, in a fixed order.

    A scheduler state is described by the model package, another one by its model's `describe`; failing that its own
    fields are taken (dataclass, named tuple, mapping), and else the state is one field, `state`.
    """
    if isinstance(state, State):
        shown: Any = describe(state)
    elif isinstance(model, DescribedModel):
        shown = model.describe(state)
    else:
        shown = state
    found = dict(_flatten("", shown))
    return found if "" not in found else {"state": found[""]}


def _flatten(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    inside = _members(value)
    if inside is None or not inside:
        yield prefix, sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        return
    for name, member in inside.items():
        yield from _flatten(f"{prefix}.{name}" if prefix else str(name), member)


def _members(value: Any) -> Mapping[Any, Any] | None:
    if isinstance(value, Mapping):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        named: Mapping[Any, Any] = value._asdict()
        return named
    return None


def changes(before: Any, after: Any, model: object = None) -> tuple[Change, ...]:
    """Every field that differs, in the order of the fields; fields that came or went have None on the other side."""
    if before is after:
        return ()
    old, new = flat(before, model), flat(after, model)
    names = [*new, *(name for name in old if name not in new)]
    return tuple(Change(name, old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name))


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
