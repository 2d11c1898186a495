"""A live scheduler of the user's own, handed over as an object: from the protocol `Subject` to a model for the engines.

Belongs here: what makes an object a subject, its exceptions told as failures, and its traces taken again on it. The
installed vLLM has a way of its own, in a process of its own (`own.py`, `guard.py`).
"""

import inspect
from pathlib import Path

from outlives.model.contract import Action, Refusal
from outlives.model.setup import Setup
from outlives.model.state import State
from outlives.model.trace import Recorded, setup_from_plain

from ..configuration import Configuration
from ..replay import Replay, replay_from
from ..verdict import Trace
from .live import CACHING, SubjectModel, on_or_off, subject_properties
from .plain import caches
from .subject import Failure, Observation, Subject, failure_of

__all__ = ["about_given", "given_model", "given_name", "is_subject", "replay_on_given"]

_METHODS = ("start", "take", "observe")


def is_subject(thing: object) -> bool:
    """Whether an object has the methods of a `Subject`."""
    return not isinstance(thing, type) and all(callable(getattr(thing, name, None)) for name in _METHODS)


class _Caught:
    """The subject, whose exceptions are failures: the engine is dead, and its last state is what is left of it."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self._last: State | None = None
        self._failure: Failure | None = None
        file = inspect.getsourcefile(type(subject))
        self._folder = Path(file or ".").resolve().parent

    @property
    def caches_prefixes(self) -> bool:
        return self.subject.caches_prefixes

    def start(self, setup: Setup, *, caching: bool = False) -> Observation:
        self._failure = None
        seen = self.subject.start(setup, caching=caching)
        self._last = seen.state
        return seen

    def take(self, action: Action) -> Refusal | None:
        try:
            return self.subject.take(action)
        except (Exception, SystemExit) as error:
            self._failure = failure_of(error, self._folder)
            return None

    def observe(self) -> Observation:
        if self._failure is None:
            try:
                seen = self.subject.observe()
                self._last = seen.state
                return seen
            except (Exception, SystemExit) as error:
                self._failure = failure_of(error, self._folder)
        assert self._last is not None  # `start` came first
        return Observation(self._last, self._failure)


def given_model(subject: Subject, configuration: Configuration) -> SubjectModel:
    """The subject over the scope of this configuration, with its properties and NO-EXCEPTION."""
    world = configuration.world()
    judged = subject_properties(configuration.judged(world))
    return SubjectModel(_Caught(subject), world, configuration.scope(), judged)


def given_name(model: SubjectModel) -> str:
    """What the user's class is called."""
    inner = model.subject.subject if isinstance(model.subject, _Caught) else model.subject
    return type(inner).__name__


def about_given(model: SubjectModel, trace: Trace) -> dict[str, object]:
    """What a trace says of the subject that it is of, and of its prefix cache."""
    return {"subject": {"class": given_name(model), CACHING: on_or_off(caches(trace))}}


def replay_on_given(recorded: Recorded, model: SubjectModel) -> Replay:
    """A recorded run, taken again on the live subject from the numbers that it recorded. Raises `BadTrace`."""
    setup = setup_from_plain(recorded.meta.get("setup"), recorded.where)
    about = recorded.meta.get("subject")
    caching = isinstance(about, dict) and about.get(CACHING) == on_or_off(True)
    return replay_from(recorded, None, model, model.begin(setup, caching=caching))
