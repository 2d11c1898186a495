"""A live subject as a model of the contract: states are immutable, `next_state` is pure, one scheduler lives behind.

Theory of operation
-------------------
A state is what was observed after an action, and remembers the state and the action that it came from. `next_state` of
the state where the live subject stands takes the action on it; for any other state the subject is started anew and
brought there by the actions of its history. Two states are equal when what was observed is equal, whatever their
histories: a subject that behaves differently after equal observations breaks the contract, and the machine says so.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from outlives.model.contract import Action, Argument, Choice, Property, Range, Refusal
from outlives.model.errors import BadModel
from outlives.model.offers import HIT
from outlives.model.scheduler import SchedulerModel
from outlives.model.setup import Scope, Setup, request_name
from outlives.model.state import State
from outlives.model.world import World

from .subject import Failure, Subject

__all__ = [
    "ALIKE",
    "CACHING",
    "NO_EXCEPTION",
    "Observed",
    "SubjectModel",
    "on_or_off",
    "subject_properties",
    "with_hits",
]

CACHING = "prefix_caching"
"""The number of a run, beside those of its setup, that switches the subject's own prefix cache `on` or `off`."""
_CACHED = "+prefix-caching"
"""What a preset with prefix caching on has behind its name."""


class Observed(State):
    """What was observed of a subject, with the way there."""

    origin: "Observed | None"
    action: Action | None
    failure: Failure | None
    hits: tuple[tuple[int, int], ...]
    """What the subject's own prefix cache answered in the action."""
    caching: bool
    """The run has such a cache."""
    known: tuple[Action, "Observed | Refusal", tuple[tuple[int, int], ...]] | None
    """The last answer of `next_state` here, with what the cache answered: engines often ask twice."""

    @classmethod
    def of(
        cls,
        state: State,
        failure: Failure | None = None,
        origin: "Observed | None" = None,
        action: Action | None = None,
        *,
        hits: tuple[tuple[int, int], ...] = (),
        caching: bool = False,
    ) -> "Observed":
        """The observation as a state."""
        made = cls._make(state)
        made.origin, made.action, made.failure, made.known = origin, action, failure, None
        made.hits, made.caching = hits, caching
        return made

    def history(self) -> list[Action]:
        """The actions taken from the start."""
        actions = []
        at: Observed | None = self
        while at is not None:
            if at.action is not None:
                actions.append(at.action)
            at = at.origin
        return actions[::-1]

    def __eq__(self, other: object) -> bool:
        mine, theirs = getattr(self, "failure", None), getattr(other, "failure", None)
        return tuple.__eq__(self, other) is True and mine == theirs

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return tuple.__hash__(self)


def on_or_off(caching: bool) -> str:
    """The value of `CACHING`."""
    return "on" if caching else "off"


def with_hits(action: Action, hits: Iterable[tuple[int, int]]) -> Action:
    """The action of a run whose prefixes are found by the subject's own cache, as the model and a trace have it: what
    the cache found, in the place of what was asked for."""
    if action.name not in ("schedule", "resume"):
        return action
    asked = [(name, value) for name, value in action.arguments if name != "kept" and not name.startswith(HIT)]
    found = [(f"{HIT}{request_name(number)}", hit) for number, hit in hits if hit > 0]
    return Action(action.name, (*asked, *found))


def _failure(state: State) -> Failure | None:
    return getattr(state, "failure", None)


NO_EXCEPTION: Property[State] = Property(
    name="NO-EXCEPTION",
    phrase="the scheduler raises nothing and no assertion of its own fails",
    holds=lambda _before, _action, after: _failure(after) is None,
    explain=lambda _before, action, after: f"{action} ended in {_failure(after)}",
    situation=lambda _before, action, _after: action is not None,
    situation_phrase="an action was taken",
)


ALIKE: Property[Any] = Property(
    name="CONFORMS",
    phrase="the release and the profile show the same after each action",
    holds=lambda _before, _action, after: not _differs(after),
    explain=lambda _before, action, after: f"after {action}, " + "; ".join(map(str, _differs(after))),
    situation=lambda _before, action, _after: action is not None,
    situation_phrase="an action was compared",
)
"""Of a profile and a release side by side (`conform`); never false of one of them alone."""


def _differs(state: Any) -> tuple[Any, ...]:
    differs: tuple[Any, ...] = getattr(state, "differs", ())
    return differs


def subject_properties(properties: Sequence[Property[State]]) -> tuple[Property[State], ...]:
    """The model's properties as far as they can be asked of a subject, and that it raises nothing.

    RELEASE-ONCE speaks of a rule of the model and is left out. A subject that is dead makes no progress, which is what
    NO-EXCEPTION already says.
    """
    kept: list[Property[State]] = [NO_EXCEPTION]
    for prop in properties:
        if prop.name == "RELEASE-ONCE":
            continue
        if prop.kind == "progress":
            prop = replace(prop, holds=_unless_failed(prop.holds))
        kept.append(prop)
    return tuple(kept)


def _unless_failed(holds: Callable[[State, Action | None, State], bool]) -> Callable[..., bool]:
    def judged(before: State, action: Action | None, after: State) -> bool:
        return _failure(after) is not None or holds(before, action, after)

    return judged


class SubjectModel(SchedulerModel):
    """A live subject over the setups of a scope. Actions, their arguments and the fair run are those of the model; the
    world (of the nearest profile) serves only to know which routes are open."""

    def __init__(
        self, subject: Subject, world: World, scope: Scope, properties: Sequence[Property[State]] = ()
    ) -> None:
        super().__init__(world, scope, properties)
        self.subject = subject
        self.replays = 0
        """How often the subject was brought back to a state by its history."""
        self.performed = 0
        """Actions that the subject took, or refused: those of runs, of fair runs, and of ways back to a state."""
        self.hits = 0
        """How often the subject's own prefix cache found something."""
        self.last_hits: tuple[tuple[int, int], ...] = ()
        """What it answered in the last action, refused ones too."""
        self._table = dict(super().setup_table)
        if subject.caches_prefixes:
            self._table[CACHING] = Choice(("off", "off", "on"))
            presets = self._table.get("preset")
            if isinstance(presets, Choice):  # a run that begins with one has no number of its own
                cached = tuple(f"{name}{_CACHED}" for name, _ in scope.presets)
                self._table["preset"] = Choice((*presets.names, *presets.names[len(cached) :], *cached))
        self._at: Observed | None = None
        self._fair_at: State | None = None
        """Where the fair run under way has come to."""
        self._model = SchedulerModel(world, scope)

    @property
    def setup_table(self) -> Mapping[str, Range | Choice]:
        """As the model's, which is made anew whenever it is asked for."""
        return self._table

    def settled(self, arguments: Mapping[str, Argument]) -> Mapping[str, Argument]:
        """As the model's, with or without prefix caching as drawn, or as the name of a preset has it."""
        preset = str(arguments.get("preset", ""))
        settled = super().settled({**arguments, "preset": preset.removesuffix(_CACHED)} if preset else arguments)
        if CACHING not in self._table:
            return settled
        cached = preset.endswith(_CACHED)
        return {**settled, CACHING: on_or_off(cached or arguments.get(CACHING) == "on")}

    def initial_states(self) -> Iterable[State]:
        """The start of the scope's lowest numbers."""
        return (self.initial_state({}),)

    def initial_state(self, arguments: Mapping[str, Argument]) -> State:
        """The start of the setup with these numbers."""
        numbers = self.settled(arguments)
        return self.begin(super().initial_state(numbers).setup, caching=numbers.get(CACHING) == "on")

    def begin(self, setup: Setup, *, caching: bool = False) -> Observed:
        """The start of this setup, with or without a prefix cache of the subject's own."""
        self._at = Observed.of(self.subject.start(setup, caching=caching).state, caching=caching)
        return self._at

    def within(self, state: State) -> bool:
        """Nothing is done with a dead engine."""
        return not state.misses and _failure(state) is None

    def fair_bound(self, state: State) -> int:
        """As the model's. A fair run begins with this question."""
        self._fair_at = state
        return super().fair_bound(state)

    def fair_action(self, state: State) -> Action | None:
        """In a fair run, that of the subject itself, which is asked whether a pass changes anything. Elsewhere it is
        but one of several actions that may be taken next, and what the model says of it will do: the subject would
        have to be brought back from the pass."""
        if state is not self._fair_at:
            with suppress(Exception):  # rules of the model meet states that they never make themselves
                return self._model.fair_action(state)
        return super().fair_action(state)

    def next_state(self, state: State, action: Action) -> State | Refusal:
        """Take the action on the live subject, which is brought to that state first."""
        if not isinstance(state, Observed):
            raise BadModel("a subject's states come from the subject: this one was built by hand.")
        if not self.within(state):
            return Refusal("engine-dead")
        if state.known is not None and state.known[0] == action:
            self.last_hits = state.known[2]
            return self._go_on(state, state.known[1])
        if self._at is not state:
            self._bring_to(state)
        answer: Observed | Refusal
        self.performed += 1
        refusal = self.subject.take(action)
        seen = self.subject.observe()
        if refusal is not None:
            answer = refusal
        else:
            answer = self._at = Observed.of(
                seen.state, seen.failure, state, action, hits=seen.hits, caching=state.caching
            )
        self.last_hits = seen.hits
        self.hits += sum(hit > 0 for _, hit in seen.hits)
        state.known = action, answer, seen.hits
        return self._go_on(state, answer)

    def _go_on(self, state: State, answer: "Observed | Refusal") -> "Observed | Refusal":
        """The answer; where it was given to a fair run, that is there now."""
        if state is self._fair_at and isinstance(answer, Observed):
            self._fair_at = answer
        return answer

    def _bring_to(self, state: Observed) -> None:
        self.replays += 1
        self.subject.start(state.setup, caching=state.caching)
        for action in state.history():
            self.performed += 1
            refusal = self.subject.take(action)
            if refusal is not None:
                raise BadModel(f"the subject refused {action} ({refusal.reason}), which it took before.")
        seen = self.subject.observe()
        if Observed.of(seen.state, seen.failure) != state:
            raise BadModel("the same actions led the subject to another state than before.")
        self._at = state
