"""Taking a recorded run again, action by action, in a test of one's own: what the generated pytest files import.

Belongs here: `Playback`, which takes actions on the model of a release or on the installed vLLM, shows what each
changed, and says whether a property holds. What a generated file looks like is `report.pytest_file`'s; whole trace
files are taken again by `replay`.

    run = Playback(property="PROGRESS", profile="0.24.0", setup={...})
    assert run.take(Action.of("arrive", request="r0")) == {"r0.status": "waiting", "r0.known": 6}
    assert run.judge().holds
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from outlives.model.contract import Action, Property, Refusal
from outlives.model.errors import BadModel, Contradiction, OutlivesError, UnknownName
from outlives.model.scheduler import SchedulerModel, initial_state
from outlives.model.setup import Scope
from outlives.model.state import State
from outlives.model.trace import setup_from_plain
from outlives.model.world import World

from .configuration import Configuration
from .fair import FairJudge
from .machine_record import answer, broken
from .properties import scheduler_properties
from .report.changes import changes, flat
from .subject.live import ALIKE, NO_EXCEPTION, SubjectModel, subject_properties
from .trace_file import describe_state

__all__ = ["SUBJECTS", "Action", "Judgement", "NotAsked", "Playback"]

SUBJECTS: Final = ("model", "vllm")

_Moment = tuple[State, Action | None, State, int]
"""Before, the action, after, and the number of the step."""


class NotAsked(OutlivesError):
    """What cannot be asked of this subject: a relaxed assumption of a real scheduler, say. A test skips it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Whether a property held in a run."""

    why: str
    """Why it does not hold, with the step; empty where it holds."""
    asked: bool
    """Whether the run put it to the test at all. One that never did says nothing."""
    situation: str
    """What would have put it to the test, in words: `a step read an item`."""

    @property
    def holds(self) -> bool:
        """Nothing false was seen."""
        return not self.why


class Playback:
    """One run, taken again from its setup.

    `property`: its name. `setup`: its exact numbers, as a trace file has them under `setup` (members that are left
    out have their defaults). `profile`: a known release, or `path.py:name` of one's own, which is executed. `guard`:
    None is the profile's own. `subject`: `model`, or `vllm` for the installed one. `options`: further fields of
    `Configuration` by name (`relax`, `reader`, `without`, `policy`, `fault`, `split`, `arrivals`). `fair_from`: after
    how many actions the environment leaves the requests alone, where those that follow are the fair run's.
    `scheduler_cls` and `vllm_config`: as the options of that name, for vLLM; `prefix_caching`: whether its own prefix
    cache says what is found.

    Raises `NotAsked`, `BadTrace` for a setup that is none, and what `Configuration` raises.
    """

    def __init__(
        self,
        *,
        property: str,
        setup: Mapping[str, Any],
        profile: str = "repaired",
        guard: str | None = None,
        subject: str = "model",
        options: Mapping[str, Any] | None = None,
        fair_from: int | None = None,
        scheduler_cls: str | None = None,
        vllm_config: str | None = None,
        prefix_caching: bool = False,
    ) -> None:
        if subject not in SUBJECTS:
            raise UnknownName("subject", subject, SUBJECTS)
        configuration = Configuration(profile=profile, guard=guard, **_as_options(options or {}))
        world = configuration.world()
        numbers = setup_from_plain(setup, "the test")
        scope = Scope(requests=len(numbers.requests))
        self._fair_from = fair_from
        self._model: SchedulerModel
        if subject == "vllm":
            self._begin_on_vllm(property, world, scope, scheduler_cls, vllm_config)
        else:
            self.title = f"profile {profile}, guard {world.guard.name}"
            self._model = SchedulerModel(world, scope, scheduler_properties(world))
        self._property = self._named(property, subject)
        try:
            if subject == "vllm":
                begin: State = self._model.begin(numbers, caching=prefix_caching)  # type: ignore[attr-defined]
            else:
                begin = initial_state(numbers)
        except Contradiction as error:
            raise NotAsked(str(error)) from None
        self._states: list[State] = [begin]
        self._actions: list[Action] = []
        self._refused: list[str | None] = []

    title: str
    """What the run is taken on: `profile 0.24.0, guard confirmed-lookahead` or `vLLM 0.32.0`."""

    def _begin_on_vllm(
        self, name: str, world: World, scope: Scope, scheduler_cls: str | None, vllm_config: str | None
    ) -> None:
        from .subject.conform import PairModel
        from .subject.guard import GuardedSubject
        from .subject.own import SubjectChoice, load_release

        if world.relaxed:
            raise NotAsked(f"the run relaxes {', '.join(sorted(world.relaxed))}, which a real scheduler does not")
        release = load_release(SubjectChoice(scheduler_cls=scheduler_cls, vllm_config=vllm_config))
        self.title = f"vLLM {release.version}" + (f" ({scheduler_cls})" if scheduler_cls else "")
        subject = GuardedSubject(release, world.closed)
        asked = subject_properties(scheduler_properties(world))
        if name == ALIKE.name:
            self._model = PairModel(subject, world, scope, items_known=release.items_known)
        else:
            self._model = SubjectModel(subject, world, scope, asked)

    def _named(self, name: str, subject: str) -> Property[Any]:
        known = {prop.name: prop for prop in self._model.properties()}
        if name in known:
            return known[name]
        every = {prop.name for prop in (*scheduler_properties(self._model.world), NO_EXCEPTION, ALIKE)}
        if name not in every:
            raise UnknownName("property", name, sorted(every))
        raise NotAsked(f"{name} is not asked of subject {subject}")

    @property
    def values(self) -> dict[str, Any]:
        """The state as it is now, by the names of a trace's variables: `r0.computed`, `book.free`, `steps`, ..."""
        return flat(_shown(self._states[-1]))

    def take(self, action: Action) -> dict[str, Any] | str:
        """Take the action: the values that changed, by name; or the name of the reason for which it was refused."""
        before = self._states[-1]
        after = answer(self._model, before, action)
        self._actions.append(action)
        if isinstance(after, Refusal):
            self._refused.append(after.reason)
            self._states.append(before)
            return after.reason
        self._refused.append(None)
        self._states.append(after)
        return {each.name: each.new for each in changes(_shown(before), _shown(after))}

    def judge(self) -> Judgement:
        """Whether the property holds from the first state to the last, and on to where the run comes to by itself once
        the environment leaves it alone. A real scheduler that raised holds nothing.

        Raises `BadModel` where a user's own rules break.
        """
        try:
            return self._judge()
        except BadModel:
            raise
        except Exception as error:
            broken(self._model, "judging raised", self._states[-1], None, error)

    def _judge(self) -> Judgement:
        prop, fair = self._property, FairJudge(self._model)
        rest = fair.run(self._states[-1])
        states: Sequence[State] = (*self._states, *rest.states)
        actions = (*self._actions, *rest.actions)
        steps: list[_Moment] = [(states[0], None, states[0], 0)]
        for at, action in enumerate(actions):
            if at >= len(self._refused) or self._refused[at] is None:
                steps.append((states[at], action, states[at + 1], at + 1))
        if prop.kind == "progress":
            taken = len(self._actions)
            starts = sorted({taken if self._fair_from is None else min(self._fair_from, taken), taken})
            steps = [(self._states[at], None, fair.run(self._states[at]).end, at) for at in starts]
        asked = False
        why = ""
        for before, taking, after, number in steps:
            asked = asked or prop.situation(before, taking, after)
            if not why and not prop.holds(before, taking, after):
                where = f"left alone from step {number} on" if prop.kind == "progress" else f"step {number}"
                if prop.kind != "progress" and number > len(self._actions):
                    where += " (of the fair run that follows)"
                told = "" if taking is None else f", {taking}"
                why = f"{prop.name} is violated, {where}{told}: {prop.explain(before, taking, after)}"
        dead = next((state for state in states if not NO_EXCEPTION.holds(state, None, state)), None)
        if dead is not None and not why:
            at = states.index(dead)
            why = f"step {at}: {NO_EXCEPTION.explain(dead, actions[at - 1] if at else None, dead)}"
        return Judgement(why=why, asked=asked or bool(why), situation=prop.situation_phrase)


def _shown(state: State) -> Mapping[str, Any]:
    """The variables of a state; of a release and a profile side by side those of the profile."""
    return describe_state(getattr(state, "model", state))


def _as_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Lists, as a test file has them, as the tuples that a configuration has."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
