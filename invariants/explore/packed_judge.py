"""Judging properties over packed states: each asked once per value of what it looks at.

Belongs here: the bridge between properties, which are functions of whole states, and the tables of `tables.py`. The
counts and first violations are kept by the plain `Judge`, so both engines report from one place.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from outlives.model.contract import Action, Property
from outlives.model.errors import BadModel

from .components import ComponentModel, Look
from .judge import Finding, Judge
from .packing import Packing

__all__ = ["PackedJudge", "Watch"]


class Watch:
    """One property asked in each transition by some branches, because it looks at more than the move knows."""

    def __init__(self, owner: "PackedJudge", each: Property[Any], look: Look | None) -> None:
        self.each = each
        self._owner = owner
        self._looks: tuple[tuple[str, ...] | None, tuple[str, ...] | None] = (None, None)
        self._memo = look is not None
        if look is not None:
            step = each.kind == "step"
            self._looks = (
                look.test_before + (look.before if step else ()),
                look.test_after + (look.after if step else ()),
            )
        self._before, self._after = (owner.mask(each.name, names) for names in self._looks)
        self._known: dict[tuple[int, int, Action], tuple[bool, bool]] = {}

    def see(self, before: int, action: Action, after: int, number: int) -> None:
        """Judge the transition out of state `number`."""
        answer = self._answer(before & self._before, action, after & self._after)
        situation, holds = answer
        judge = self._owner.judge
        if situation:
            judge.situations[self.each.name] += 1
        if not holds:
            judge.break_(self.each, Finding(number, action))

    def plain(self, action: Action, before: int, known: int, after: int, written: int, later: int) -> bool | None:
        """The situation as far as a move alone decides it; None where each transition must be asked."""
        if not self._memo or self._before & ~known or self._after & (later | ~(known | written)):
            return None
        then = (before & ~written | after) & self._after
        situation, holds = self._answer(before & self._before, action, then)
        return situation if holds else None

    def _answer(self, before: int, action: Action, after: int) -> tuple[bool, bool]:
        key = (before, after, action)
        answer = self._known.get(key)
        if answer is None:
            answer = self._owner.ask(self.each, self._looks, *key)
            if self._memo:
                self._known[key] = answer
        return answer


class PackedJudge:
    """All properties of a search over one packing."""

    def __init__(self, model: ComponentModel, packing: Packing, judge: Judge) -> None:
        self.judge = judge
        self._model = model
        self._packing = packing
        looks = self._looks()
        self._watches = [Watch(self, each, looks.get(each.name)) for each in (*judge.on_states, *judge.on_steps)]
        self.looked = [
            (each, looks[each.name].after, self.mask(each.name, self._after(looks, each.name)), set[int](), set[int]())
            for each in judge.on_states
            if each.name in looks
        ]
        """Properties of states that say what they look at: with what, with which bits, and known keys, good and bad."""
        self._unlooked = [each for each in judge.on_states if each.name not in looks]
        self.within = looks.get("within")
        self.within_mask = self.mask("within", self._after(looks, "within"))

    def mask(self, name: str, components: tuple[str, ...] | None) -> int:
        """The bits that a property looks at."""
        if components is None:
            return self._packing.all
        return self._packing.mask(components, f"the look of {name}")

    def branch(
        self, action: Action, before: int, known: int, after: int, written: int, later: int
    ) -> tuple[tuple[Watch, ...], list[str]]:
        """See `BranchJudge` in `tables.py`."""
        asked, situations = [], []
        for watch in self._watches:
            plain = watch.plain(action, before, known, after, written, later)
            if plain is None:
                asked.append(watch)
            elif plain:
                situations.append(watch.each.name)
        return tuple(asked), situations

    def ask(
        self,
        each: Property[Any],
        looks: tuple[tuple[str, ...] | None, tuple[str, ...] | None],
        before: int,
        after: int,
        action: Action,
    ) -> tuple[bool, bool]:
        """(situation, holds) of a transition; a state property's `holds` is asked elsewhere, once per state."""
        first, then = self.state(before, looks[0]), self.state(after, looks[1])
        situation = self.judge.situation(each, first, action, then)
        return situation, each.kind == "state" or self.judge.holds(each, first, action, then)

    def state(self, packed: int, only: Sequence[str] | None = None) -> Any:
        """The state, or one with only these components."""
        return self._model.join(self._packing.unpack(packed, only))

    def new_states(self, states: Sequence[int], first: int) -> None:
        """Judge states seen for the first time, numbered from `first` on."""
        for place, (each, _, mask, good, bad) in enumerate(self.looked):
            for key in set(map(mask.__and__, states)) - good - bad:
                (good if self.holds(place, key) else bad).add(key)
            if bad:
                for number, packed in enumerate(states, first):
                    if packed & mask in bad:
                        self.judge.break_(each, Finding(number))
        if self.looks_at_whole_states:
            self.whole_states(states, first)

    def holds(self, place: int, key: int) -> bool:
        """Whether the state property at this place of `looked` holds, asked with what it looks at."""
        each, after, *_ = self.looked[place]
        part = self.state(key, after)
        return self.judge.holds(each, part, None, part)

    @property
    def looks_at_whole_states(self) -> bool:
        """Whether something has to be asked once per state."""
        return bool(self._unlooked or self.judge.on_fair_runs)

    def whole_states(self, states: Sequence[int], first: int) -> None:
        """Judge new states by those properties that look at all of them, or at their fair runs."""
        for number, packed in enumerate(states, first):
            whole = self.state(packed)
            for each in self._unlooked:
                if not self.judge.holds(each, whole, None, whole):
                    self.judge.break_(each, Finding(number))
            if self.judge.on_fair_runs:
                self.judge.fair_run(whole, number)

    def watch(self, name: str) -> Watch:
        """The watch of a property."""
        return next(watch for watch in self._watches if watch.each.name == name)

    def inside(self, key: int) -> bool:
        """Whether the boundary lets the search go on, asked with what it looks at."""
        return self.judge.careful.within(self.state(key, None if self.within is None else self.within.after))

    def _looks(self) -> Mapping[str, Look]:
        looks = self._model.looks()
        known = {"within", *(each.name for each in self._model.properties())}  # type: ignore[attr-defined]
        for name in looks:
            if name not in known:
                raise BadModel(f"the model's looks name {name!r}, which is no property and not 'within'.")
        return looks

    def _after(self, looks: Mapping[str, Look], name: str) -> tuple[str, ...] | None:
        return looks[name].after if name in looks else None
