"""Traces between verdict and disk: writing one with its configuration, and the configuration that a file names.

Belongs here: the `#meta` of a run of ours, the write that never overwrites, and what options may say beside a file.
The format is in `outlives.model.trace`; running a file again is in `replay`. Reading executes nothing: a profile or
fault from somebody's Python file is loaded only where the user names it again.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from outlives.model.contract import Range
from outlives.model.describe import describe as describe_scheduler
from outlives.model.errors import BadTrace, Contradiction, OutlivesError, Unwritable
from outlives.model.itf import itf_text, quoted
from outlives.model.lifetime import GUARDS, WEAKEST
from outlives.model.setup import MODE_WORDS, Scope, Setup
from outlives.model.state import State
from outlives.model.trace import MOST_TEXT, SUFFIX, Recorded, RecordedStep, read_trace, setup_to_plain, trace_text

from .configuration import Configuration
from .folder import appear_whole
from .verdict import Trace

__all__ = [
    "describe_state",
    "installed_version",
    "is_user_file",
    "itf_path",
    "recorded_configuration",
    "rewrite_meta",
    "trace_bytes",
    "write_trace",
]

_RENAMED = {"numbers": "scope", "without": "routes"}
"""Members of a configuration's plain form whose name in a file is another one."""
_NOT_WRITTEN = {"setup", "seconds"}
"""Of the shrink record: the setup stands beside it, and seconds differ between equal runs."""
_FLAGS = ("items_anywhere", "split", *MODE_WORDS.values())
"""Members that are true or false; one that is missing is false."""


# --- writing ----------------------------------------------------------------------------------------------------------


def itf_path(path: Path) -> Path:
    """The path with the ending that ITF files have, `.itf.json`."""
    name = path.name
    for ending in (SUFFIX, ".json"):
        name = name.removesuffix(ending)
    return path.with_name(name + SUFFIX)


def describe_state(state: Any) -> Mapping[str, Any]:
    """A state as variables: ours by its description, records by their fields, anything else as one text."""
    if isinstance(state, State):
        return describe_scheduler(state)
    if isinstance(state, Mapping):
        return state
    if isinstance(state, tuple) and hasattr(state, "_asdict"):
        named: Mapping[str, Any] = state._asdict()
        return named
    if is_dataclass(state):
        return {part.name: getattr(state, part.name) for part in fields(state)}
    return {"state": repr(state)}


def trace_bytes(
    trace: Trace,
    configuration: Configuration | None,
    *,
    describe: Callable[[Any], Mapping[str, Any]] = describe_state,
    keep: Recorded | None = None,
    about: Mapping[str, Any] | None = None,
) -> bytes:
    """The trace as an ITF file; the same trace and configuration give the same bytes.

    Without a configuration the trace is of a model that is not ours; it replays with `replay_on`. `keep` is the file
    that is written anew: its unknown members are kept. `about` are further members of `#meta`.
    """
    shrink = {name: value for name, value in trace.shrink.items() if name not in _NOT_WRITTEN}
    meta: dict[str, Any] = {
        "outlives": installed_version("outlives") or "unknown",
        "property": trace.property,
        "why": " ".join(trace.why.split())[:MOST_TEXT],
        "shortest": trace.shortest,
        "shrink": _json_value(shrink),
    }
    for name, value in (configuration.plain() if configuration is not None else {}).items():
        meta[_RENAMED.get(name, name)] = {"closed": value} if name == "without" else value
    first = trace.steps[0].state
    meta["setup"] = (
        setup_to_plain(first.setup) if isinstance(first, State) else _json_value(trace.shrink.get("setup", {}))
    )
    meta |= _json_value(about or {})
    steps = [RecordedStep(step.action, step.refused, describe(step.state)) for step in trace.steps]
    return trace_text(meta, steps, None if keep is None else keep.root).encode("ascii")


def write_trace(
    trace: Trace,
    configuration: Configuration | None,
    path: Path,
    *,
    describe: Callable[[Any], Mapping[str, Any]] = describe_state,
    keep: Recorded | None = None,
    about: Mapping[str, Any] | None = None,
) -> Path:
    """Write the trace as an ITF file and say where: `path`, with `.itf.json` at its end. Folders are made.

    The file appears complete or not at all. Raises `Unwritable`, also where there is such a file already: nothing is
    ever overwritten.
    """
    target = itf_path(path)
    content = trace_bytes(trace, configuration, describe=describe, keep=keep, about=about)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise Unwritable(f"cannot make the folder {target.parent}: {_reason(error)}.") from error
    try:
        appear_whole(target, content, appear=_unless_there)
    except FileExistsError:
        raise Unwritable(f"{target} exists already; traces are never overwritten. Name another --out.") from None
    except (OSError, ValueError) as error:
        raise Unwritable(f"cannot write the trace to {target}: {_reason(error)}.") from error
    return target


def rewrite_meta(path: Path, more: Mapping[str, Any]) -> None:
    """Add members to a file's `#meta`, its own run's last word about it. The file is there, old or new, at any moment.

    Raises `BadTrace` where it is no trace of ours any more, and `Unwritable`.
    """
    recorded = read_trace(path)
    root = {**recorded.root, "#meta": {**recorded.meta, **_json_value(more)}}
    try:
        appear_whole(path, itf_text(root).encode("ascii"))
    except (OSError, ValueError) as error:
        raise Unwritable(f"cannot write the trace to {path}: {_reason(error)}.") from error


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _unless_there(partial: str, target: Path) -> None:
    """Give the finished file its name, unless something has it: a link does both in one step."""
    try:
        os.link(partial, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: take the name first, then fill it
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        os.replace(partial, target)


def _json_value(value: Any) -> Any:
    """A value of a record as JSON: what JSON has no form for becomes text."""
    if isinstance(value, Mapping):
        return {str(name): _json_value(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(part) for part in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def installed_version(package: str) -> str:
    """The version of an installed package; empty where it is not installed, as in a checkout that is run as it is."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


# --- the configuration that a file names ------------------------------------------------------------------------------


def is_user_file(name: str) -> bool:
    """Whether a profile or fault is named as `path.py:name`: loading it would execute that file."""
    return ".py:" in name


def recorded_configuration(recorded: Recorded, setup: Setup, given: Mapping[str, Any]) -> Configuration:
    """The configuration of a file. `given` are the options that the user gave, by field of `Configuration`.

    Options cannot change what a trace is about. They may repeat it, name the Python file of its profile or fault, and
    choose which properties are judged besides. Raises `Contradiction`, `BadTrace`, or what `Configuration` raises for
    the given options.
    """
    options = {name: value for name, value in given.items() if value is not None and value not in ((), {}, False)}
    asked = Configuration(**options)
    plain = _plain(recorded)
    for kind in ("profile", "fault"):
        named = plain[kind]
        if isinstance(named, str) and is_user_file(named) and kind not in options:
            raise BadTrace(
                f"{recorded.where} was made with --{kind} {quoted(named, 120)}, a Python file. A trace never executes "
                f"code by itself: give --{kind} as well, if you trust that file."
            )
    _contradictions(recorded, plain, setup, asked, options)
    own_guard = plain["guard"] not in (*GUARDS, *WEAKEST) and is_user_file(plain["profile"])
    try:
        configuration = Configuration.from_plain({**plain, "guard": None if own_guard else plain["guard"]})
    except (OutlivesError, TypeError, ValueError, LookupError) as error:
        raise BadTrace(f"{recorded.where}: {error}") from None
    configuration = replace(
        configuration,
        properties=asked.properties,
        profile=asked.profile if is_user_file(plain["profile"]) else configuration.profile,
        fault=asked.fault if plain["fault"] is not None and is_user_file(plain["fault"]) else configuration.fault,
    )
    guard = _world_guard(recorded, configuration)
    if guard != plain["guard"]:
        raise Contradiction(
            f"{recorded.where} was made with guard {plain['guard']}, but {configuration.profile} has {guard} now."
        )
    return configuration


def _world_guard(recorded: Recorded, configuration: Configuration) -> str:
    if is_user_file(configuration.profile) or is_user_file(configuration.fault or ""):
        return configuration.world().guard.name
    try:
        return configuration.world().guard.name
    except OutlivesError as error:
        raise BadTrace(f"{recorded.where}: {error}") from None


def _plain(recorded: Recorded) -> dict[str, Any]:
    """The members of `#meta` that describe a configuration, checked in type, under the names of `plain`."""
    meta, where = recorded.meta, recorded.where
    if "profile" not in meta:
        raise BadTrace(f"{where} names no profile: it is of a model that outlives does not have.")
    texts = {"profile": False, "guard": False, "reader": False, "policy": False, "scenario": True, "fault": True}
    plain: dict[str, Any] = {_internal(name): value for name, value in meta.items()}
    for name, optional in texts.items():
        value = plain.get(name)
        if not (isinstance(value, str) and len(value) <= 1_000 and value.isprintable()) and not (
            optional and value is None
        ):
            raise BadTrace(f"{where}: {name!r} in #meta must be a name, not {quoted(value)}.")
        plain[name] = value
    routes = meta.get("routes")
    plain["without"] = _names(routes.get("closed") if isinstance(routes, dict) else None, "routes' closed", where)
    plain["relaxed"] = _names(meta.get("relaxed"), "relaxed", where)
    for name in _FLAGS:
        if not isinstance(plain.get(name, False), bool):
            raise BadTrace(f"{where}: {name!r} in #meta must be true or false, not {quoted(plain[name])}.")
    plain.setdefault("arrivals", "in-order")  # what every file says that is older than the choice
    plain["numbers"] = _ranges(meta.get("scope", {}), where)
    return plain


def _internal(name: str) -> str:
    return next((inside for inside, outside in _RENAMED.items() if outside == name), name)


def _names(value: Any, what: str, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise BadTrace(f"{where}: {what} in #meta must be a list of names, not {quoted(value)}.")
    return value


def _ranges(value: Any, where: str) -> dict[str, list[int]]:
    if not isinstance(value, dict):
        raise BadTrace(f"{where}: 'scope' in #meta must be an object, not {quoted(value)}.")
    known = [name for name in Scope._fields if name == "requests" or isinstance(getattr(Scope(), name), Range)]
    for name, span in value.items():
        if name not in known:
            raise BadTrace(f"{where}: 'scope' in #meta has no number {quoted(name)}. Known: {', '.join(known)}.")
        whole = isinstance(span, list) and len(span) == 2 and all(type(number) is int for number in span)
        if not whole or (name == "requests" and not 1 <= span[0] <= 100):
            raise BadTrace(f"{where}: {name!r} of 'scope' in #meta must be a range [low, high], not {quoted(span)}.")
    return value


# --- options beside a file --------------------------------------------------------------------------------------------


def _contradictions(
    recorded: Recorded, plain: Mapping[str, Any], setup: Setup, asked: Configuration, options: Mapping[str, Any]
) -> None:
    own = "priority" if setup.by_priority == 1 else "fcfs"
    if options.get("policy", plain["policy"]) == own:
        plain = {**plain, "policy": own}  # of a run that might have had either
    for name in ("profile", "guard", "reader", "scenario", "policy", "arrivals", "fault", *_FLAGS):
        if name in options and not _same(options[name], plain.get(name, False)):
            what, has = _option(name), plain.get(name)
            raise Contradiction(
                f"--{what} {options[name]} contradicts {recorded.where}, which was made with "
                f"{'no ' + what if has in (None, False) else what + ' ' + str(has)}. Drop the option."
            )
    for name, listed in (("relax", plain["relaxed"]), ("without", plain["without"])):
        # A route that is open and that this very run left out is as good as closed.
        taken_out = setup.left_out if name == "without" else ()
        other = [value for value in getattr(asked, name) if value not in (*listed, *taken_out)]
        if other:
            raise Contradiction(
                f"--{name} {','.join(other)} contradicts {recorded.where}, which was made with "
                f"{', '.join(listed) or 'none'}. Drop the option."
            )
    for name, (low, high) in asked.numbers.items():
        for number in setup_numbers(setup, name):
            if not low <= number <= high:
                raise Contradiction(
                    f"--{_option(name)} {low}..{high} contradicts {recorded.where}, which was made with {number}. "
                    "Drop the option."
                )


def setup_numbers(setup: Setup, name: str) -> Sequence[int]:
    """The numbers of a setup that a range of the scope speaks of (none for a name that speaks of no setup)."""
    if name in Setup._fields and name != "requests":
        return (getattr(setup, name),)
    return tuple(_request_numbers(setup, name))


def _request_numbers(setup: Setup, name: str) -> Iterator[int]:
    if name == "requests":
        yield len(setup.requests)
    for asked in setup.requests:
        if name == "turns":
            yield 1 + len(asked.turns)
        elif name == "priority":
            yield asked.priority
        end = 0
        for item in asked.items:
            if name in ("lead", "length"):
                yield item.start - end if name == "lead" else item.length
            end = item.end
        if name == "items":
            yield len(asked.items)
        elif name in ("prompt", "outputs"):
            yield getattr(asked, name)
        elif name == "tail":
            yield asked.prompt - end


def _same(given: Any, recorded: Any) -> bool:
    """Equal; or the same name in a file of the same name, which may lie elsewhere on this machine."""
    if given == recorded:
        return True
    if isinstance(given, str) and isinstance(recorded, str) and is_user_file(given) and is_user_file(recorded):
        return _last(given) == _last(recorded)
    return False


def _last(name: str) -> str:
    return name.replace("\\", "/").rsplit("/", 1)[-1]


def _option(name: str) -> str:
    return name.replace("_", "-")
