"""Engines over the real scheduler: the model of a release under a configuration, and traces replayed on it.

Belongs here: from a `Configuration` to a `SubjectModel`, and from a trace file to what the release does with it. Which
engine is run over the model is the caller's affair: `run_machine` takes it like any other.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outlives.model.errors import Contradiction
from outlives.model.setup import Setup
from outlives.model.trace import Recorded, read_trace, setup_from_plain
from outlives.model.world import World

from ..configuration import Configuration
from ..properties import scheduler_properties
from ..replay import Replay, replay_from
from ..trace_file import recorded_configuration
from .conform import PairModel
from .guard import GuardedSubject
from .live import ALIKE, CACHING, SubjectModel, on_or_off, subject_properties
from .release import Release, installed_release
from .vllm_subject import VllmSubject

__all__ = ["Reproduction", "refuse_what_is_for_the_model", "replay_on_release", "subject_model", "unaskable"]


def subject_model(configuration: Configuration, release: Release | None = None) -> SubjectModel:
    """The installed release under this configuration: its scope, its policy, its properties.

    Raises `Contradiction` where the configuration asks for what a real scheduler is not: a relaxed assumption, a
    fault, a guard of another release.
    """
    release = release or installed_release()
    world = configuration.world()
    refuse_what_is_for_the_model(configuration)
    properties = subject_properties(configuration.judged(world))
    return SubjectModel(VllmSubject(release, world.closed), world, configuration.scope(), properties)


def refuse_what_is_for_the_model(configuration: Configuration) -> None:
    """Raise `Contradiction` where the configuration asks for what a real scheduler is not."""
    for what, wanted in (
        ("a relaxed assumption", bool(configuration.relaxed)),
        ("a fault", configuration.fault is not None),
        ("a guard of one's own", configuration.guard is not None),
    ):
        if wanted:
            raise Contradiction(f"{what} is for the model: the real scheduler is what it is.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """What a release does with the actions of a trace."""

    release: str
    recorded: Recorded
    replay: Replay | None
    """None: the trace cannot be asked of a real scheduler."""
    reason: str = ""
    """Why it cannot."""
    caching: bool = False
    """The release ran with its own prefix cache, as where the trace was recorded."""

    @property
    def label(self) -> str:
        """`reproduced`, `not reproduced` or `not applicable`."""
        if self.replay is None:
            return "not applicable"
        return "reproduced" if self.replay.violated_again else "not reproduced"


def _asked(recorded: Recorded, options: Mapping[str, Any]) -> tuple[Setup, Configuration]:
    """What a trace asks of a release."""
    setup = setup_from_plain(recorded.meta.get("setup"), recorded.where)
    if recorded.meta.get("policy") == "priority":
        setup = setup._replace(by_priority=1)
    return setup, recorded_configuration(recorded, setup, options)


def unaskable(recorded: Recorded, options: Mapping[str, Any]) -> str:
    """Why a trace cannot be asked of any real scheduler; "": nothing that shows before one is loaded. Raises what is
    wrong with the trace or the options."""
    return _relaxes(_asked(recorded, options)[1].world())


def _relaxes(world: World) -> str:
    relaxed = world.relaxed
    return f"it relaxes {', '.join(sorted(relaxed))}, which a real scheduler does not" if relaxed else ""


def replay_on_release(
    source: Path | str | Recorded, release: Release | None = None, options: Mapping[str, Any] | None = None
) -> Reproduction:
    """Give a trace file's setup and actions to the installed release, and judge what it does. `options` as for
    `replay`."""
    release = release or installed_release()
    recorded = source if isinstance(source, Recorded) else read_trace(source)
    setup, configuration = _asked(recorded, options or {})
    world = configuration.world()
    reason = _relaxes(world)
    if reason:
        return Reproduction(release=release.version, recorded=recorded, replay=None, reason=reason)
    subject, scope = GuardedSubject(release, world.closed), configuration.scope()
    model: SubjectModel | PairModel = SubjectModel(
        subject, world, scope, subject_properties(scheduler_properties(world))
    )
    if recorded.property_name == ALIKE.name:
        model = PairModel(subject, world, scope, items_known=release.items_known)
    about = recorded.meta.get("subject")
    caching = isinstance(about, dict) and about.get(CACHING) == on_or_off(True)
    try:
        initial = model.begin(setup, caching=caching)
    except Contradiction as error:
        return Reproduction(release=release.version, recorded=recorded, replay=None, reason=str(error))
    replay = replay_from(recorded, None, model, initial)
    return Reproduction(release=release.version, recorded=recorded, replay=replay, caching=caching)
