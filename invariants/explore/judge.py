"""Judging properties during a search: each on its own, with its first violation and how often it was put to the test.

Belongs here: what a search knows about its properties, and nothing about how states are found.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from outlives.model.contract import Action, FairModel, Property
from outlives.model.errors import BadModel, OutlivesError, UnknownName

from ..fair import FairJudge
from .care import Careful, shown, told

__all__ = ["Finding", "Judge", "chosen"]


class Finding(NamedTuple):
    """The first violation of a property: found at this state, or by this action leaving it."""

    number: int
    """Position of the state in the order of discovery: least traces first."""
    action: Action | None = None
    """None: the state itself is wrong (or its fair run)."""


def chosen(properties: Sequence[Property[Any]], names: Sequence[str] | None) -> tuple[Property[Any], ...]:
    """The named properties in the model's order; all for None. Raises `UnknownName`."""
    if names is None:
        return tuple(properties)
    known = [each.name for each in properties]
    for name in names:
        if name not in known:
            raise UnknownName("property", name, known)
    return tuple(each for each in properties if each.name in names)


class Judge:
    """A search tells it of every transition and every new state; the first violation of each property is kept.

    What `holds` is asked: once per state for kind `state` (it reads only the state), per transition for kind `step`,
    once per state with the end of its fair run for kind `progress`. Situations are asked per transition, initial
    states counting as one each, and per state for `progress`.
    """

    def __init__(self, careful: Careful, properties: Sequence[Property[Any]]) -> None:
        self.careful = careful
        self.properties = tuple(properties)
        self.found: dict[str, Finding] = {}
        self.broken = {each.name: 0 for each in properties}
        self.situations = {each.name: 0 for each in properties}
        progress = [each for each in properties if each.kind == "progress"]
        fair = bool(progress) and isinstance(careful.model, FairModel)
        self.without_fair_run = () if fair else tuple(each.name for each in progress)
        self.on_states = [each for each in properties if each.kind == "state"]
        self.on_steps = [each for each in properties if each.kind == "step"]
        self.on_fair_runs = progress if fair else []
        self._fair = FairJudge(careful.model) if fair else None

    @property
    def all_found(self) -> bool:
        """Whether every property is violated already."""
        return len(self.found) == len(self.properties) > 0

    def initial(self, state: Any, index: int) -> None:
        """An initial state, judged as the contract says: as (state, None, state)."""
        self.transition(state, None, state, index, new=index)

    def transition(self, before: Any, action: Action | None, after: Any, index: int, new: int | None) -> None:
        """A transition out of state number `index`; `new` is the number of the state reached if it is a new one."""
        each: Property[Any] | None = None
        situations = self.situations
        try:
            for each in self.on_steps:
                if each.situation(before, action, after):
                    situations[each.name] += 1
                if not each.holds(before, action, after):
                    self.break_(each, Finding(index, action))
            for each in self.on_states:
                if each.situation(before, action, after):
                    situations[each.name] += 1
            if new is not None:
                for each in self.on_states:
                    if not each.holds(before, action, after):
                        self.break_(each, Finding(new))
        except Exception as error:
            raise _raised(f"property {each.name if each else ''}", error, action, before) from error
        if new is not None and self.on_fair_runs:
            self.fair_run(after, new)

    def fair_run(self, state: Any, index: int) -> None:
        """The fair run from a state seen for the first time."""
        end = self.fair_end(state)
        for each in self.on_fair_runs:
            if self.situation(each, state, None, end):
                self.situations[each.name] += 1
            if not self.holds(each, state, None, end):
                self.break_(each, Finding(index))

    def fair_end(self, state: Any) -> Any:
        """Where the model's fair run from this state ends."""
        assert self._fair is not None
        try:
            return self._fair.end(state)
        except OutlivesError:
            raise
        except Exception as error:
            raise BadModel(f"the model's fair run raised {told(error)} from state {shown(state)}.") from error

    def explain(self, each: Property[Any], before: Any, action: Action | None, after: Any) -> str:
        """The property's own words for a violation."""
        try:
            return each.explain(before, action, after)
        except Exception as error:
            raise _raised(f"the explanation of property {each.name}", error, action, before) from error

    def situation(self, each: Property[Any], before: Any, action: Action | None, after: Any) -> bool:
        """Whether this puts the property to the test."""
        try:
            return bool(each.situation(before, action, after))
        except Exception as error:
            raise _raised(f"the situation of property {each.name}", error, action, before) from error

    def holds(self, each: Property[Any], before: Any, action: Action | None, after: Any) -> bool:
        """Whether the property holds here."""
        try:
            return bool(each.holds(before, action, after))
        except Exception as error:
            raise _raised(f"property {each.name}", error, action, before) from error

    def break_(self, each: Property[Any], finding: Finding, count: int = 1) -> None:
        """Count a violation (or several, of which this is the first); the first is kept."""
        self.broken[each.name] += count
        self.found.setdefault(each.name, finding)

    def saved(self) -> dict[str, Any]:
        """For a checkpoint."""
        found = {name: tuple(finding) for name, finding in self.found.items()}
        return {"found": found, "broken": dict(self.broken), "situations": dict(self.situations)}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """From a checkpoint. Raises `ValueError` where the properties are others."""
        if set(saved["broken"]) != set(self.broken) or set(saved["situations"]) != set(self.situations):
            raise ValueError("other properties were judged")
        self.found = {name: Finding(*finding) for name, finding in saved["found"].items()}
        self.broken, self.situations = dict(saved["broken"]), dict(saved["situations"])


def _raised(what: str, error: Exception, action: Action | None, state: Any) -> BadModel:
    where = "as an initial state" if action is None else f"on action {action}"
    return BadModel(f"{what} raised {told(error)} {where} in state {shown(state)}.")
