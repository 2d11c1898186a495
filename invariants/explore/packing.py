"""Components as small integers, and states as one integer each.

Belongs here: the numbering and the packing. The tables over packed states are in `tables.py`.

Theory of operation. Each distinct value of a component gets a number, in the order in which it is first met; a state
is the numbers of its components side by side in one integer, each in a field of its own width. Widths are checked: a
component with more values than its field can number raises `TooNarrow`, and the search begins again with wider fields.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from outlives.model.errors import BadModel

__all__ = ["Packing", "TooNarrow"]


class TooNarrow(Exception):
    """A component has more values than its field can number. Never leaves this package."""

    def __init__(self, component: str) -> None:
        super().__init__(component)
        self.component = component


class Packing:
    """Between component values and bits."""

    def __init__(self, names: Sequence[str], widths: Mapping[str, int]) -> None:
        if len(set(names)) != len(names) or not names:
            raise BadModel(f"the model's components must have distinct names, at least one: {', '.join(names)}.")
        self.names = tuple(names)
        self.widths = {name: widths[name] for name in self.names}
        self.shifts, self.words = _placed(self.widths)
        self._fields = {name: (1 << self.widths[name]) - 1 for name in self.names}
        self.all = sum(self._fields[name] << self.shifts[name] for name in self.names)
        self._masks: dict[tuple[str, ...], int] = {}
        self._numbers: dict[str, dict[Hashable, int]] = {name: {} for name in self.names}
        self._values: dict[str, list[Hashable]] = {name: [] for name in self.names}

    def reader(self, names: Sequence[str]) -> Callable[[int], list[Hashable]]:
        """A function from a packed state to the values of these components."""
        fields = [(self._values[name], self.shifts[name], self._fields[name]) for name in names]
        return lambda packed: [values[packed >> shift & field] for values, shift, field in fields]

    def mask(self, names: tuple[str, ...], where: str) -> int:
        """The bits of these components. Raises `BadModel` for an unknown one, saying where it was named."""
        mask = self._masks.get(names)
        if mask is None:
            for name in names:
                if name not in self.shifts:
                    raise BadModel(f"{where} names the component {name!r}; the model has {', '.join(self.names)}.")
            mask = self._masks[names] = sum(self._fields[name] << self.shifts[name] for name in set(names))
        return mask

    def bits(self, name: str, value: Hashable) -> int:
        """A value's number, in its place."""
        numbers = self._numbers[name]
        number = numbers.get(value)
        if number is None:
            number = len(numbers)
            if number > self._fields[name]:
                raise TooNarrow(name)
            numbers[value] = number
            self._values[name].append(value)
        return number << self.shifts[name]

    def value(self, name: str, packed: int) -> Hashable:
        """The value of one component of a packed state (or of a part of one that has these bits)."""
        return self._values[name][packed >> self.shifts[name] & self._fields[name]]

    def pack(self, values: Sequence[Hashable]) -> int:
        """All components of a state as one integer."""
        if len(values) != len(self.names):
            raise BadModel(f"split gave {len(values)} values for the {len(self.names)} components of the model.")
        return sum(self.bits(name, value) for name, value in zip(self.names, values, strict=True))

    def unpack(self, packed: int, only: Sequence[str] | None = None) -> tuple[Any, ...]:
        """The components, in order; None in place of those that are not asked for."""
        return tuple(self.value(name, packed) if only is None or name in only else None for name in self.names)

    def saved(self) -> dict[str, Any]:
        """For a checkpoint: the widths, and the values in the order of their numbers."""
        return {"widths": dict(self.widths), "values": {name: list(values) for name, values in self._values.items()}}

    def restore(self, saved: Mapping[str, Any]) -> Callable[[int], int]:
        """Take up the values of a checkpoint; answers how a state packed there is packed here. Raises `ValueError`."""
        if list(saved["widths"]) != list(self.names) or list(saved["values"]) != list(self.names):
            raise ValueError("the components are others")
        there = Packing(self.names, saved["widths"])
        for name in self.names:
            for number, value in enumerate(saved["values"][name]):
                if self.bits(name, value) != number << self.shifts[name]:
                    raise ValueError(f"a value of {name} is there twice")
        return there.mover(self)

    def mover(self, other: "Packing") -> Callable[[int], int]:
        """How a state packed here is packed there, the values having the same numbers."""
        if self.widths == other.widths:
            return lambda packed: packed
        moved = [(self.shifts[name], self._fields[name], other.shifts[name]) for name in self.names]
        return lambda packed: sum((packed >> old & field) << new for old, field, new in moved)

    def with_widths(self, widths: Mapping[str, int]) -> "Packing":
        """The same values with the same numbers (shared with this one) in fields of other widths."""
        other = Packing(self.names, widths)
        other._numbers, other._values = self._numbers, self._values
        return other

    def sizes(self) -> dict[str, int]:
        """Component -> how many distinct values were met."""
        return {name: len(values) for name, values in self._values.items()}


def _placed(widths: Mapping[str, int]) -> tuple[dict[str, int], int]:
    """Where each field begins, and how many words of 64 bits that takes. A field that fits a word is within one."""
    shifts: dict[str, int] = {}
    room: list[int] = []
    for name, width in widths.items():
        word = next((word for word, free in enumerate(room) if width <= free), None)
        if word is None:
            shifts[name] = 64 * len(room)
            filled, rest = divmod(width, 64)
            room += [0] * filled + ([64 - rest] if rest else [])
        else:
            shifts[name] = 64 * word + 64 - room[word]
            room[word] -= width
    return shifts, len(room)
