"""Is a counterexample to induction real? Its lemma is looked for in every reachable state of small setups.

Belongs here: the search that follows an obligation that fails. The solver's state satisfies the lemmas and a transition
breaks one; nothing says that a run gets there. If some reachable state breaks the lemma, the failure is of the subject
(a shortest run is shown); if none does within the setups that were visited whole, the state is out of reach there, and
the lemmas are too weak, or the lemma is right and cannot be shown in this way.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from outlives.model.contract import Action, Property
from outlives.model.scheduler import SchedulerModel, initial_state
from outlives.model.setup import Scope, Setup, request_name
from outlives.model.state import State
from outlives.model.world import World

from ..explore import Bounds, explore
from ..properties import scheduler_properties
from ..verdict import Trace, Verdict
from .extract import leaves
from .lemmas import GOAL, MONOTONE, Lemma
from .life import Life, Terms
from .projection import part_of, project, projected_items
from .theorem import ProofReport

__all__ = ["Reached", "as_property", "reach"]

_MOST_STATES = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """What became of one obligation's counterexample."""

    obligation: str
    """`LEMMA / transition`."""
    trace: Trace | None
    """A shortest run to a state that breaks the lemma; None: none was met."""
    searched: str
    """What was searched, in words."""
    whole: bool
    """Every state of the setups was seen."""

    @property
    def label(self) -> str:
        """`reachable`, `unreachable within the scope`, or how far it was looked for."""
        if self.trace is not None:
            return "reachable"
        return "unreachable within the scope" if self.whole else "not met"

    def words(self) -> str:
        """The run, or what was searched."""
        if self.trace is None:
            return self.searched
        return f"{len(self.trace.actions)} actions: {', '.join(map(str, self.trace.actions))}; {self.trace.why}"


def _lives(world: World, state: State) -> Iterator[tuple[str, Life]]:
    """Every abstract state that this state is: for each item, following each step that has not executed, or none."""
    for request in range(len(state.requests)):
        flying = [
            at for at, step in enumerate(state.steps) if step.executed == 0 and part_of(step, request) is not None
        ]
        for item in projected_items(state, request):
            for tracked in (None, *flying):
                step = "" if tracked is None else f", step {tracked} in flight"
                yield f"{request_name(request)}, item {item}{step}", project(world, state, request, item, tracked)


def as_property(lemma: Lemma, terms: Terms, world: World) -> Property[State]:
    """The lemma as a property of the model's states, by their projections.

    That confirmed never falls is said of a ghost, which a state does not have: there it is a property of steps.
    """
    if lemma.name == MONOTONE.name:
        return next(each for each in scheduler_properties(world) if each.name == lemma.name)

    def broken(state: State) -> Iterator[str]:
        if state.misses:
            return  # the engine is dead, and the relation ends before
        for where, life in _lives(world, state):
            if not lemma.holds(terms, life):
                numbers = ", ".join(f"{name} {value}" for name, value in leaves(life).items() if value)
                yield f"{where}: {numbers}"

    return Property(
        name=lemma.name,
        phrase=lemma.phrase,
        holds=lambda _before, _action, after: next(broken(after), None) is None,
        explain=lambda _before, _action, after: next(broken(after), ""),
        situation=_always,
        situation_phrase="a state was reached",
    )


def _always(_before: State, _action: Action | None, _after: State) -> bool:
    return True


def reach(report: ProofReport, world: World, setups: Sequence[Setup]) -> tuple[Reached, ...]:
    """A label for each obligation that a state breaks, in the report's order.

    Every state of the setups is visited, up to a bound that the label then tells. An obligation without a state (the
    budget ran out), or of a transition that raises, has none.
    """
    lemmas = {each.name: each for each in (*report.lemmas, GOAL)}
    failed = [each for each in report.failed if each.verdict is Verdict.VIOLATED and each.lemma in lemmas]
    if not failed:
        return ()
    names = tuple(dict.fromkeys(each.lemma for each in failed))
    model = SchedulerModel(
        world, Scope(anywhere=True), tuple(as_property(lemmas[name], report.terms, world) for name in names)
    )
    found = explore(
        model,
        bounds=Bounds(states=_MOST_STATES),
        initial=[initial_state(each) for each in setups],
        stop_when_found=True,
    )
    which = "each of the" if found.complete else "the first"
    searched = f"the lemma holds in {which} {found.states:,} states of {len(setups)} small setups"
    return tuple(
        Reached(obligation=each.name, trace=found.traces.get(each.lemma), searched=searched, whole=found.complete)
        for each in failed
    )
