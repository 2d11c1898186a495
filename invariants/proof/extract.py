"""From plain functions to terms: states of symbols, and transitions as terms over the state before them.

Belongs here: what the proof and bounded checking share. A state is a NamedTuple of integers and of such NamedTuples;
its leaves are named by their path, e.g. `counters.computed`. What a transition does not change keeps its symbol: the
frame is never written down.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import z3
from outlives.model.contract import Refusal

from .executor import ANYTHING, Outcome, Paths, execute, symbol, term_of
from .life import Terms
from .relation import FLAGS, Phase
from .solvers import fresh_context

__all__ = ["Extracted", "Extractor", "leaves", "rebuilt"]


def leaves(state: Any, prefix: str = "") -> dict[str, Any]:
    """Path -> value of every integer in the state, in order of the fields."""
    flat: dict[str, Any] = {}
    for name, value in zip(type(state)._fields, state, strict=True):
        if hasattr(type(value), "_fields"):
            flat |= leaves(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def rebuilt(template: Any, values: Callable[[str], Any], prefix: str = "") -> Any:
    """A state of the template's shape, each leaf being `values(path)`."""
    return type(template)(
        *(
            rebuilt(value, values, f"{prefix}{name}.") if hasattr(type(value), "_fields") else values(f"{prefix}{name}")
            for name, value in zip(type(template)._fields, template, strict=True)
        )
    )


class _PhaseTerms(NamedTuple):
    """A phase as terms over the state before it: where it is taken, where it raises, and each field it changes."""

    enabled: Any
    raises: Any
    after: tuple[tuple[Any, Any], ...]
    paths: int


@dataclass(frozen=True, slots=True)
class Extracted:
    """A transition as terms over the state before it."""

    name: str
    choices: tuple[str, ...]
    enabled: Any
    raises: Any
    after: tuple[tuple[Any, Any], ...]
    """(symbol before, term after) of every leaf that can change."""
    paths: int
    """How many paths were run for it; phases run for an earlier transition are not counted again."""

    def moved(self, formula: Any) -> Any:
        """A formula over states, said of the state after the transition."""
        return z3.substitute(formula, *self.after) if self.after else formula


class Extractor:
    """Runs phases on a state of symbols and composes them."""

    def __init__(self, terms: Terms, template: Any) -> None:
        self.terms = terms
        self.context = fresh_context()
        self.state = rebuilt(template, lambda path: symbol(path, self.context))
        self._phases: dict[Phase, _PhaseTerms] = {}
        self._formulas: dict[str, Any] = {}

    def transition(self, name: str, phases: Sequence[Phase]) -> Extracted:
        """Each phase runs on the leaves before the transition; its terms are then moved to where it stands."""
        choices = tuple(dict.fromkeys(choice for phase in phases for choice in phase.choices))
        moved: dict[str, tuple[Any, Any]] = {}
        enabled: Any = z3.And([self._flag(choice) for choice in choices if choice in FLAGS] + [self._constant(True)])
        raises = self._constant(False)
        paths = 0
        for phase in phases:
            paths += 0 if phase in self._phases else self._phase(phase).paths
            terms = self._phase(phase)
            pairs = list(moved.values())
            raises = z3.Or(raises, z3.And(enabled, z3.substitute(terms.raises, *pairs)))
            enabled = z3.And(enabled, z3.substitute(terms.enabled, *pairs))
            moved |= {
                before.decl().name(): (before, z3.substitute(after, *pairs) if pairs else after)
                for before, after in terms.after
            }
        return Extracted(name, choices, z3.simplify(enabled), z3.simplify(raises), tuple(moved.values()), paths)

    def formula(self, name: str, holds: Callable[[Terms, Any], bool]) -> Any:
        """A predicate over states as a term; extracted once per name."""
        if name not in self._formulas:
            paths = execute(lambda: bool(holds(self.terms, self.state)), context=self.context)
            self._formulas[name] = term_of(paths.merge(), self.context)
        return self._formulas[name]

    def _constant(self, value: bool) -> Any:
        return z3.BoolVal(value, self.context)

    def _flag(self, choice: str) -> Any:
        term = symbol(f"?{choice}", self.context).term
        return z3.And(term >= 0, term <= 1)

    def _phase(self, phase: Phase) -> _PhaseTerms:
        if phase not in self._phases:
            choices = {name: symbol(f"?{name}", self.context) for name in phase.choices}
            flags = [(choice >= 0) & (choice <= 1) for name, choice in choices.items() if name in FLAGS]
            function = partial(phase.apply, self.terms, self.state, *choices.values())
            paths = execute(function, context=self.context, assume=flags)
            after = paths.merge(_after)
            self._phases[phase] = _PhaseTerms(
                enabled=self._truth(paths, lambda outcome: outcome.error is None and not _refused(outcome)),
                raises=self._truth(paths, lambda outcome: outcome.error is not None),
                after=() if after is ANYTHING else tuple(self._changes(after)),
                paths=len(paths.outcomes),
            )
        return self._phases[phase]

    def _truth(self, paths: Paths, select: Callable[[Outcome], bool]) -> Any:
        return term_of(paths.merge(select), self.context)

    def _changes(self, after: Any) -> Iterator[tuple[Any, Any]]:
        before: Mapping[str, Any] = leaves(self.state)
        for name, value in leaves(after).items():
            if value is not before[name]:
                yield before[name].term, term_of(value, self.context)


def _refused(outcome: Outcome) -> bool:
    return isinstance(outcome.value, Refusal)


def _after(outcome: Outcome) -> Any:
    return ANYTHING if outcome.error is not None or _refused(outcome) else outcome.value
