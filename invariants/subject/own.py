"""A scheduler and a configuration of the user's own: their names, how they are loaded, what may be wrong with them.

Belongs here: from the options `--scheduler-cls` and `--vllm-config` to a `Release`, and the trial step that shows
whether a scheduler can be made and read at all. Nothing here imports vLLM before a release is wanted.
"""

import importlib
import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from outlives.model.contract import Action
from outlives.model.errors import BadUserFile, OutlivesError
from outlives.model.setup import Item, RequestSetup, Setup
from outlives.model.world import ROUTES, World

from ..userfile import call_named, load_named
from .release import NoVllm, Release, installed_release
from .subject import failure_of
from .vllm_subject import VllmSubject

__all__ = ["SubjectChoice", "closed_routes", "load_release", "try_out", "unobserved"]

_NEEDED = ("add_request", "schedule", "update_from_output", "finish_requests")
_TRIAL = Setup((RequestSetup(4, 2, (Item(1, 2, "k0", 2),)),), slots=4, budget=4, depth=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectChoice:
    """Which real scheduler: plain data, so that a process of its own can load it."""

    scheduler_cls: str | None = None
    """`package.module.Class`; None: the release's own."""
    vllm_config: str | None = None
    """`path.py:function`, which takes nothing and returns a `VllmConfig`."""

    def options(self) -> str:
        """As it is typed after `--subject vllm`."""
        named = (("--scheduler-cls", self.scheduler_cls), ("--vllm-config", self.vllm_config))
        return " ".join(["--subject vllm", *(f"{option} {value}" for option, value in named if value is not None)])


def load_release(choice: SubjectChoice) -> Release:
    """The installed vLLM with the user's class and configuration. Raises `NoVllm` or `BadUserFile`, with what is wrong.

    The configuration is made before the class is imported: a plug-in of another platform wants it so.
    """
    where = choice.vllm_config
    release = installed_release(None, None if where is None else _configuration(where))
    if choice.scheduler_cls is None:
        return release
    made = scheduler_class(choice.scheduler_cls)
    file = inspect.getsourcefile(made)
    packages = () if file is None else (_package(made, Path(file)),)
    return replace(release, asynchronous_class=made, synchronous_class=made, packages=packages)


def _package(made: type, file: Path) -> Path:
    """The folder of the top package that the class is from; of a plain module, its file."""
    depth = made.__module__.count(".")
    return file if depth == 0 else file.parents[depth - 1 if file.name != "__init__.py" else depth]


def _configuration(where: str) -> Callable[[Any], Any]:
    function = load_named(where, "vllm-config")

    def configure(kind: Any) -> Any:
        made = call_named(where, "vllm-config")
        if not isinstance(made, kind):
            raise BadUserFile(f"--vllm-config {where} returned {type(made).__name__}, not a VllmConfig.")
        return made

    if not callable(function):
        raise BadUserFile(f"--vllm-config {where} is {type(function).__name__}, not a function.")
    return configure


def scheduler_class(name: str) -> type:
    """The class `package.module.Class`. Modules of the current folder are found too. Raises `BadUserFile`."""
    asked = f"--scheduler-cls {name}"
    module_name, _, class_name = name.rpartition(".")
    if not module_name or not all(part.isidentifier() for part in name.split(".")):
        raise BadUserFile(f"{asked}: write it as package.module.Class.")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise BadUserFile(
            f"{asked}: there is no module {error.name!r} here. Install its package beside vLLM, or go to its folder."
        ) from error
    except (Exception, SystemExit) as error:
        raise BadUserFile(f"{asked}: importing {module_name} raised {_words(error)}.") from error
    made = getattr(module, class_name, None)
    if made is None:
        classes = sorted(
            each for each, value in vars(module).items() if isinstance(value, type) and value.__module__ == module_name
        )
        has = f"Its classes: {', '.join(classes[:12])}." if classes else "It has no class."
        raise BadUserFile(f"{asked}: {module_name} has no {class_name!r}. {has}")
    if not isinstance(made, type):
        raise BadUserFile(f"{asked} is {type(made).__name__}, not a class.")
    missing = [method for method in _NEEDED if not callable(getattr(made, method, None))]
    if missing:
        raise BadUserFile(f"{asked} is no scheduler: it has no {', '.join(missing)}.")
    if inspect.isabstract(made):
        names = ", ".join(sorted(getattr(made, "__abstractmethods__", ())))
        raise BadUserFile(f"{asked} is abstract: it has no {names}.")
    return made


def try_out(release: Release, *, synchronous: bool) -> VllmSubject:
    """A scheduler with one small request whose first step is under way, which is what can be read of it.

    Raises `NoVllm` where none can be made, or where it does not have what is read. What it does wrong by itself is not
    said here: that is for the run to find.
    """
    subject = VllmSubject(release)
    kind = release.synchronous_class if synchronous else release.asynchronous_class
    setup = _TRIAL._replace(synchronous=int(synchronous))
    try:
        subject.start(setup)
        for action in (Action.of("arrive", request="r0"), Action.of("schedule")):
            subject.take(action)
    except OutlivesError:
        raise
    except (Exception, SystemExit) as error:
        raise NoVllm(f"{kind.__module__}.{kind.__name__} of vLLM {release.version} cannot be made or read here: "
                     f"{failure_of(error, release.root, release.packages)}.") from error  # fmt: skip
    if subject.failure is not None and "outlives" in subject.failure.where.split(":")[0]:
        raise NoVllm(f"{kind.__name__} of vLLM {release.version} cannot be read here: {subject.failure}.")
    return subject


def unobserved(release: Release, subject: VllmSubject) -> tuple[str, ...]:
    """What the release does not keep, and what is read in its place."""
    request = subject.requests.get(0)
    said = []
    if not release.items_known:
        said.append(
            "which item of a request holds an entry: only which request does, and all its items of that key count"
        )
    manager = subject.scheduler.encoder_cache_manager
    if not hasattr(manager, "num_embeds_by_hash"):
        said.append("the size of an entry: it is taken from the item")
    if request is not None and not hasattr(request, "num_in_flight_tokens"):
        said.append("tokens in flight: they are counted from the steps")
    if request is not None and not hasattr(request, "num_stale_output_tokens"):
        said.append("stale tokens after a preemption: they read as 0")
    said.append("an encoder-decoder manager's entries: it keeps none, and its calls are written down instead")
    said.append("the worker: its place is taken by a twin, which is told no more than the scheduler's output says")
    return tuple(said)


def closed_routes(release: Release, world: World) -> dict[str, str]:
    """Routes that the profile has and this scheduler has not, with the reason."""
    return {
        route: "this scheduler does not have it"
        for route in ROUTES
        if world.opens(route) and not release.has_route(route)
    }


def _words(error: BaseException) -> str:
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
