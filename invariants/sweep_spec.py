"""The specification of a sweep: a TOML file, checked key by key, as one plain record.

Belongs here: the keys, what each may hold, and the one sentence that says in which file and under which key something
is wrong. Which items follow from it is in `sweep_items`; docs/sweep.md lists the keys for readers.
"""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from outlives.model.errors import BadUserFile, OutlivesError, UnknownName
from outlives.model.lifetime import guard_named
from outlives.model.profiles import profile_named
from outlives.model.scenarios import scenario_named
from outlives.model.world import ASSUMPTIONS

from .check import ENGINES
from .command_options import NUMBER_OPTIONS, range_of
from .machine_settings import machine_profile
from .project import lines_of_keys
from .properties import OF_SUBJECTS, known_property
from .scopes import NAMED_SCOPES

__all__ = ["ALL_HELD", "OWN", "USUAL", "ScopeEntry", "Spec", "read_spec", "spec_of"]

OWN = "own"
"""In `guards`: the profile's own."""
ALL_HELD = "A1-A4"
"""In `assumptions`: none is relaxed."""
USUAL = "usual"
"""In `scopes`: the numbers that `check` draws when nothing is said."""
_MOST_BYTES = 1_000_000
_MOST_SEEDS = 100_000
_FLAGS = ("items-anywhere", "split", "synchronous", "diffusion", "encoder-decoder")
_TEXTS = ("name", "scope", "scenario", "policy", "arrivals")
_NUMBERS = tuple(name.replace("_", "-") for name in NUMBER_OPTIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeEntry:
    """One entry of `scopes`: numbers, modes and routes under a name."""

    name: str
    visit: str | None = None
    """The named scope of which every state is visited; None: the engines run as in `check`."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """Fields of a `Configuration` with the values that the entry gives them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What to sweep over, and how each item is run. Every axis has at least one value, none twice."""

    title: str = ""
    profiles: tuple[str, ...] = ("repaired",)
    """Names, and `path.py:name` with the whole path."""
    guards: tuple[str, ...] = (OWN,)
    assumptions: tuple[str, ...] = (ALL_HELD,)
    scopes: tuple[ScopeEntry, ...] = (ScopeEntry(name=USUAL),)
    seeds: tuple[int, ...] = (0,)
    engines: tuple[str, ...] = ENGINES
    settings: str = "ci"
    cases: int | None = None
    states: int | None = None
    """The most states of a scope that is visited whole; None: no bound but memory."""
    properties: tuple[str, ...] = ()
    fault: str | None = None

    def plain(self) -> dict[str, Any]:
        """As JSON values; `from_plain` reads it back."""
        made: dict[str, Any] = _listed(asdict(self))
        return made

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "Spec":
        """Read back what `plain` wrote. Raises `TypeError` or `KeyError` for anything else."""
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()
        }
        values["scopes"] = tuple(ScopeEntry(**{**each, "given": _tupled(each["given"])}) for each in plain["scopes"])
        return cls(**values)


def _listed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _listed(each) for name, each in value.items()}
    return [_listed(each) for each in value] if isinstance(value, list | tuple) else value


def _tupled(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _tupled(each) for name, each in value.items()}
    return tuple(_tupled(each) for each in value) if isinstance(value, list) else value


# --- reading ----------------------------------------------------------------------------------------------------------


class _Wrong(Exception):
    """What is wrong with a value, in words that follow its key."""


def read_spec(where: str | Path) -> Spec:
    """The specification in this file. Raises `BadUserFile`, which names the file and the key."""
    path = Path(where)
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise BadUserFile(f"{path}: more than {_MOST_BYTES // 10**6} MB is no specification of a sweep.")
        text = path.read_text(encoding="utf-8")
        table = tomllib.loads(text)
    except FileNotFoundError:
        raise BadUserFile(f"{path}: there is no such file; docs/sweep.md shows what to write into one.") from None
    except tomllib.TOMLDecodeError as error:
        raise BadUserFile(f"{path} is not TOML: {error}.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise BadUserFile(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    return spec_of(table, str(path), path.parent, lines_of_keys(text))


def spec_of(table: Mapping[str, Any], file: str, folder: Path, lines: Mapping[str, int] = MappingProxyType({})) -> Spec:
    """The specification in a table that was read from a file; its Python files are named from `folder`. `lines`: on
    which line each key stands, as far as it can be told.

    Raises `BadUserFile`."""
    values: dict[str, Any] = {}
    for key, value in table.items():
        where = f"{file}, line {lines[key]}" if key in lines else file
        if key not in _KEYS:
            raise BadUserFile(f"{where}: {UnknownName('key', key, _KEYS)}")
        try:
            values[key] = _KEYS[key](value, folder)
        except (_Wrong, OutlivesError) as error:
            raise BadUserFile(f"{where}: {key}{' ' if isinstance(error, _Wrong) else ': '}{error}") from None
    spec = Spec(**values)
    if set(spec.engines) == {"proof"} and set(spec.properties) - {"GATHER-AFTER-FREE"}:
        raise BadUserFile(f"{file}: engines is the proof alone, which is of GATHER-AFTER-FREE and none of properties.")
    return spec


def _shown(value: Any) -> str:
    text = "true" if value is True else "false" if value is False else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _list(value: Any, of: str) -> list[Any]:
    if not isinstance(value, list):
        raise _Wrong(f"must be a list of {of}, not {_shown(value)}.")
    if not value:
        raise _Wrong("is an empty list: leave the key out, or give it a value.")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _Wrong(f"must be a text, not {_shown(value)}.")
    _check_printed(value)
    return value


def _check_printed(text: str) -> None:
    if not text.strip():
        raise _Wrong("has an empty text: leave it out, or write something.")
    if not text.isprintable():
        odd = next(letter for letter in text if not letter.isprintable())
        raise _Wrong(f"has a character that cannot be printed in one line ({odd!r}): {_shown(text)}.")


def _texts(value: Any) -> tuple[str, ...]:
    found: list[str] = []
    for each in _list(value, "texts"):
        if not isinstance(each, str):
            raise _Wrong(f"must be a list of texts, and {_shown(each)} is none.")
        _check_printed(each)
        if each in found:
            raise _Wrong(f"has {each!r} twice.")
        found.append(each)
    return tuple(found)


def _count(value: Any) -> int:
    if type(value) is not int or not 1 <= value <= 10**12:
        raise _Wrong(f"must be a number from 1 on, not {_shown(value)}.")
    return value


def _own_file(name: str, folder: Path) -> str:
    """`path.py:name` with the whole path; other names as they are."""
    path, colon, inside = name.rpartition(":")
    if not colon or not path.endswith(".py"):
        return name
    return f"{(folder / path).resolve()}:{inside}"


def _profiles(value: Any, folder: Path) -> tuple[str, ...]:
    names = tuple(_own_file(name, folder) for name in _texts(value))
    for name in names:
        if ".py:" not in name:
            profile_named(name)
    return names


def _guards(value: Any, _: Path) -> tuple[str, ...]:
    names = _texts(value)
    for name in names:
        if name != OWN:
            guard_named(name)
    return names


def _assumptions(value: Any, _: Path) -> tuple[str, ...]:
    names = _texts(value)
    for name in names:
        listed, _space, reader = name.partition(" ")
        if name == ALL_HELD:
            continue
        for each in listed.split(","):
            if each not in ASSUMPTIONS:
                raise UnknownName("assumption", each, (ALL_HELD, *ASSUMPTIONS))
        if reader and (reader not in ("true", "any") or "A3" not in listed.split(",")):
            raise _Wrong(f"has {name!r}: after a list with A3 there may be true or any, where readers start.")
    return names


def _seeds(value: Any, _: Path) -> tuple[int, ...]:
    if isinstance(value, str):
        low, high = range_of("seeds", value)
        if high - low >= _MOST_SEEDS:
            raise _Wrong(f"is a range of {high - low + 1:,} numbers; at most {_MOST_SEEDS:,} are swept over.")
        return tuple(range(low, high + 1))
    found = _list(value, 'numbers, or a text "LOW..HIGH"')
    for each in found:
        if type(each) is not int or abs(each) >= 10**18:
            raise _Wrong(f"must be a list of whole numbers, and {_shown(each)} is none.")
    if len(set(found)) < len(found):
        raise _Wrong(f"has {next(each for each in found if found.count(each) > 1)} twice.")
    return tuple(found)


def _engines(value: Any, _: Path) -> tuple[str, ...]:
    names = _texts(value)
    for name in names:
        if name not in ENGINES:
            raise UnknownName("engine", name, ENGINES)
    return tuple(name for name in ENGINES if name in names)


def _settings(value: Any, _: Path) -> str:
    return machine_profile(_text(value)).name


def _cases(value: Any, _: Path) -> int:
    return machine_profile("ci").changed(cases=_count(value)).cases


def _properties(value: Any, _: Path) -> tuple[str, ...]:
    names = _texts(value)
    for name in names:
        known_property(name)
        if name in OF_SUBJECTS:
            raise _Wrong(f"has {name}, which is asked of a real scheduler: see outlives check --subject vllm.")
    return names


# --- scopes -----------------------------------------------------------------------------------------------------------


def _scopes(value: Any, _: Path) -> tuple[ScopeEntry, ...]:
    entries: list[ScopeEntry] = []
    for number, each in enumerate(_list(value, "names and tables"), 1):
        try:
            entry = _scope(each)
        except _Wrong as error:
            raise _Wrong(f"is wrong in entry {number}: {error}") from None
        if any(entry.name == other.name for other in entries):
            raise _Wrong(f"has {entry.name!r} twice: give each entry a name of its own.")
        entries.append(entry)
    return tuple(entries)


def _scope(value: Any) -> ScopeEntry:
    if value == USUAL:
        return ScopeEntry(name=USUAL)
    if isinstance(value, str):
        return ScopeEntry(name=value, visit=_named_scope(value))
    if not isinstance(value, dict):
        raise _Wrong(f"it must be the name of a scope, or a table, not {_shown(value)}.")
    known = (*_TEXTS, "without", *_FLAGS, *_NUMBERS)
    given: dict[str, Any] = {}
    numbers: dict[str, tuple[int, int]] = {}
    for key, each in value.items():
        if key not in known:
            raise UnknownName("key of a scope", key, known)
        try:
            if key in _TEXTS:
                given[key] = _text(each)
            elif key == "without":
                given[key] = _texts(each)
            elif key in _FLAGS:
                if not isinstance(each, bool):
                    raise _Wrong(f"must be true or false, not {_shown(each)}.")
                given |= {key.replace("-", "_"): True} if each else {}
            else:
                if type(each) is not int and not isinstance(each, str):
                    raise _Wrong(f'must be a number or a text "LOW..HIGH", not {_shown(each)}.')
                numbers[key.replace("-", "_")] = range_of(key.replace("-", "_"), str(each))
        except _Wrong as error:
            raise _Wrong(f"{key} {error}") from None
    name, visit = given.pop("name", None), given.pop("scope", None)
    if visit is not None:
        _named_scope(visit)
    if "scenario" in given:
        scenario_named(given["scenario"])
    given |= {"numbers": numbers} if numbers else {}
    label = ", ".join(f"{key} {_words(each)}" for key, each in value.items() if key != "name")
    return ScopeEntry(name=name or label or USUAL, visit=visit, given=given)


def _words(value: Any) -> str:
    return "+".join(map(str, value)) if isinstance(value, list) else str(value).lower()


def _named_scope(name: str) -> str:
    names = [each.name for each in NAMED_SCOPES]
    if name not in names:
        raise UnknownName("scope", name, (USUAL, *names))
    return name


_KEYS: Mapping[str, Callable[[Any, Path], Any]] = {
    "title": lambda value, _: _text(value),
    "profiles": _profiles,
    "guards": _guards,
    "assumptions": _assumptions,
    "scopes": _scopes,
    "seeds": _seeds,
    "engines": _engines,
    "settings": _settings,
    "cases": _cases,
    "states": lambda value, _: _count(value),
    "properties": _properties,
    "fault": lambda value, folder: _own_file(_text(value), folder),
}
"""Key -> what makes its value a field of `Spec`."""
