"""Calling a model with care: its failures are told in words, with the action and the state, never as a violation.

Belongs here: the one place where engines of this package call `next_state` and `actions`, and the audit that finds a
model which is not deterministic or changes a state under our hands.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from outlives.model.contract import Action, Model, Refusal
from outlives.model.errors import BadModel

__all__ = ["Careful", "in_order", "shown", "told"]

_AUDIT_FIRST = 300
"""So many states are gone on from twice and compared, from the first on ..."""
_AUDIT_EVERY = 64
"""... and afterwards every so many-th: a slip that depends on the state is then found later, or by the replay."""


def shown(state: Any, limit: int = 400) -> str:
    """A state in one line of a message."""
    text = repr(state)
    return text if len(text) <= limit else f"{text[:limit]}..."


def told(error: Exception) -> str:
    """An exception in one phrase of a message."""
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _key(action: Action) -> tuple[object, ...]:
    return (action.name, tuple((name, isinstance(value, str), value) for name, value in action.arguments))


def in_order(actions: Iterable[Action]) -> list[Action]:
    """Actions by name, then arguments: the order in which the least of equally short traces is meant."""
    listed = list(actions)
    if len(listed) < 2:
        return listed
    try:
        listed.sort()
    except TypeError:  # one argument is a number here and a name there
        listed.sort(key=_key)
    return listed


class Careful:
    """A model behind glass. Every method raises `BadModel` where the model breaks its contract."""

    def __init__(self, model: Model[Any], initial: Sequence[Any] | None = None) -> None:
        self.model = model
        self._initial = initial
        self._audited = 0

    def initial_states(self) -> list[Any]:
        """The initial states, in the model's order (or as they were given), without repetitions."""
        try:
            states = list(self.model.initial_states() if self._initial is None else self._initial)
        except Exception as error:
            raise BadModel(f"the model's initial_states raised {told(error)}.") from error
        for state in states:
            self._hash(state)
        if not states:
            raise BadModel("the model has no initial state, so there is nothing to explore.")
        return list(dict.fromkeys(states))

    def within(self, state: Any) -> bool:
        """Whether the search goes on from this state."""
        try:
            return bool(self.model.within(state))
        except Exception as error:
            raise BadModel(f"the model's within raised {told(error)} in state {shown(state)}.") from error

    def moves(self, state: Any) -> list[tuple[Action, Any]]:
        """Every action of a state with what `next_state` answers, in the order of `in_order`."""
        self._audited += 1
        if self._audited <= _AUDIT_FIRST or self._audited % _AUDIT_EVERY == 0:
            return self._audit(state)
        return self._moves(state)

    def next_state(self, state: Any, action: Action) -> Any:
        """One answer of the model, checked to be usable as a state."""
        try:
            after = self.model.next_state(state, action)
        except Exception as error:
            raise BadModel(
                f"the model's next_state raised {told(error)} on action {action} in state {shown(state)}."
            ) from error
        if after is None:
            raise BadModel(
                f"the model's next_state returned None on action {action} in state {shown(state)}; "
                "it must return a state or a Refusal."
            )
        return after

    def inconsistent(self, before: Any, after: Any) -> BadModel:
        """The error for a step that was taken once and cannot be repeated."""
        return BadModel(
            f"the model is not deterministic: a step from {shown(before, 200)} to {shown(after, 200)} "
            "was taken once and no action repeats it."
        )

    def _moves(self, state: Any) -> list[tuple[Action, Any]]:
        try:
            actions = in_order(self.model.actions(state))
        except Exception as error:
            raise BadModel(f"the model's actions raised {told(error)} in state {shown(state)}.") from error
        return [(action, self.next_state(state, action)) for action in actions]

    def _audit(self, state: Any) -> list[tuple[Action, Any]]:
        text, number = repr(state), self._hash(state)
        first = self._moves(state)
        if repr(state) != text or self._hash(state) != number:
            raise BadModel(self._culprit(state, [action for action, _ in first], text))
        second = self._moves(state)
        if [action for action, _ in first] != [action for action, _ in second]:
            raise BadModel(f"the model is not deterministic: asked twice, actions differs in state {shown(state)}.")
        for (action, after), (_, again) in zip(first, second, strict=True):
            if not isinstance(after, Refusal):
                self._hash(after)
            if after != again:
                raise BadModel(
                    f"the model is not deterministic: asked twice, next_state differs on action {action} "
                    f"in state {shown(state)}: {shown(after, 200)} and {shown(again, 200)}."
                )
        return first

    def _culprit(self, state: Any, actions: list[Action], text: str) -> str:
        was = text if len(text) <= 400 else f"{text[:400]}..."
        for action in actions:
            before = repr(state)
            self.next_state(state, action)
            if repr(state) != before:
                return f"the model's next_state changes the state it is given, on action {action} in state {was}."
        return f"the model changes the state it is given (state {was}); one of {', '.join(map(str, actions))} did."

    def _hash(self, state: Any) -> int:
        try:
            return hash(state)
        except TypeError as error:
            raise BadModel(
                f"a state of the model is not hashable ({error}): {shown(state)}. States must be immutable."
            ) from error
