"""The items of a sweep: which there are, in their one order, each as plain data under a key that stays the same.

Belongs here: from a specification to cells and items, the key, and how a user's files are told apart from what they
were before. Running one is in `sweep_item`.

An item is a dictionary of JSON values: where it runs, how often and beside what changes nothing about it. Cells that
ask the same (a profile's own guard, and that guard by its name; another seed for an engine that draws nothing) share
one item, which is run once and counted in each.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from outlives.model.errors import BadUserFile, Contradiction, OutlivesError, OutOfRange

from .configuration import Configuration
from .scope_choice import chosen_scopes
from .sweep_spec import ALL_HELD, OWN, ScopeEntry, Spec

__all__ = ["Cell", "Item", "Plan", "canonical", "configuration_of", "digest_of", "planned"]

MOST_ITEMS = 100_000
_KEY_LETTERS = 12


class Cell(NamedTuple):
    """One place of the matrix: the words of the specification."""

    profile: str
    guard: str
    assumptions: str
    scope: str

    def words(self) -> str:
        """For a reader: `0.24.0, guard own, A1-A4, usual`."""
        return f"{self.profile}, guard {self.guard}, {self.assumptions}, {self.scope}"


@dataclass(frozen=True, slots=True)
class Item:
    """One piece of work."""

    key: str
    about: Mapping[str, Any]
    """JSON values, nothing else: all that `sweep_item` is given."""


@dataclass(slots=True)
class Plan:
    """Everything that a specification asks for."""

    spec: Spec
    items: dict[str, Item] = field(default_factory=dict)
    """Key -> item, in the order of the axes."""
    cells: dict[Cell, tuple[str, ...]] = field(default_factory=dict)
    """Cell -> its items' keys, one per seed that makes a difference."""
    names: dict[str, str] = field(default_factory=dict)
    """Profile -> what it is called in cells."""
    impossible: dict[Cell, str] = field(default_factory=dict)
    """Cells that cannot be: a mode that the release does not have, and the like."""


def canonical(value: Any) -> str:
    """JSON in one form: the same value gives the same text."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def digest_of(path: str) -> str:
    """What a file holds, as a digest. Raises `BadUserFile` where it cannot be read."""
    try:
        return sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise BadUserFile(f"{path} cannot be read: {error.strerror or error}.") from None


def configuration_of(about: Mapping[str, Any]) -> Configuration:
    """The configuration of an item. Raises what `Configuration` raises."""
    given = dict(about["given"])
    numbers = {name: (span[0], span[1]) for name, span in given.pop("numbers", {}).items()}
    if "without" in given:
        given["without"] = tuple(given["without"])
    return Configuration(
        profile=about["profile"],
        guard=about["guard"],
        relax=tuple(about["relax"]),
        reader=about["reader"],
        fault=about["fault"],
        properties=tuple(about["properties"]),
        numbers=numbers,
        **given,
    )


def planned(spec: Spec, where: str) -> Plan:
    """The cells and items of a specification. Raises `BadUserFile`, which names the file `where`, the key, and why:
    a user's file that cannot be loaded, or an entry that fits nothing."""
    digests = {name: digest_of(name.rpartition(":")[0]) for name in _own_files(spec, where)}
    count = len(spec.profiles) * len(spec.guards) * len(spec.assumptions) * len(spec.scopes) * len(spec.seeds)
    if count > MOST_ITEMS:
        raise BadUserFile(f"{where}: {OutOfRange('the number of items', f'{count:,}', 1, MOST_ITEMS)}")
    plan = Plan(spec, names=_names(spec))
    own = {profile: _own_guard(profile, where) for profile in spec.profiles}
    for profile, guard, assumptions, entry in product(spec.profiles, spec.guards, spec.assumptions, spec.scopes):
        cell = Cell(plan.names[profile], guard, assumptions, entry.name)
        asked = None if guard in (OWN, own[profile]) else guard
        try:
            about = list(_items(spec, profile, asked, assumptions, entry, digests))
        except Contradiction as error:
            plan.impossible[cell] = str(error)
            continue
        except OutlivesError as error:
            raise BadUserFile(f"{where}: {_key_of(error, entry)}: {error}") from None
        keys = []
        for each in about:
            key = sha256(canonical(each).encode()).hexdigest()[:_KEY_LETTERS]
            plan.items.setdefault(key, Item(key, each))
            keys.append(key)
        plan.cells[cell] = tuple(dict.fromkeys(keys))
    for entry in spec.scopes:
        why = [reason for cell, reason in plan.impossible.items() if cell.scope == entry.name]
        if not any(cell.scope == entry.name for cell in plan.cells):
            raise BadUserFile(f"{where}: scopes: {entry.name!r} goes with nothing else in it: {why[0]}")
    return plan


def _own_files(spec: Spec, where: str) -> list[str]:
    names = [name for name in (*spec.profiles, spec.fault or "") if ".py:" in name]
    for name in names:
        if not Path(name.rpartition(":")[0]).is_file():
            key = "fault" if name == spec.fault else "profiles"
            raise BadUserFile(f"{where}: {key}: there is no file {name.rpartition(':')[0]}.")
    return names


def _own_guard(profile: str, where: str) -> str:
    try:
        return Configuration(profile=profile).subject().guard.name
    except OutlivesError as error:
        raise BadUserFile(f"{where}: profiles: {error}") from None


def _names(spec: Spec) -> dict[str, str]:
    """Profile -> what it is called in tables: of a file its last part, if that is enough to tell them apart."""
    short = {name: name.rpartition("/")[2] for name in spec.profiles}
    return short if len(set(short.values())) == len(short) else {name: name for name in spec.profiles}


def _key_of(error: OutlivesError, entry: ScopeEntry) -> str:
    return "fault" if "--fault" in str(error) else f"scopes: {entry.name!r}"


def _items(
    spec: Spec, profile: str, guard: str | None, assumptions: str, entry: ScopeEntry, digests: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """The items of a cell, one for each seed that makes a difference. Raises what makes the cell impossible."""
    listed, _, reader = assumptions.partition(" ")
    given = json.loads(canonical(entry.given))
    about: dict[str, Any] = {
        "profile": profile,
        "guard": guard,
        "relax": [] if assumptions == ALL_HELD else listed.split(","),
        "reader": reader or None,
        "given": given,
        "visit": entry.visit,
        "properties": list(spec.properties),
        "fault": spec.fault,
        "states": spec.states,
        "settings": spec.settings,
        "cases": spec.cases,
        "files": {name.rpartition(":")[0]: digest for name, digest in digests.items() if name in (profile, spec.fault)},
    }
    configuration = configuration_of(about)
    configuration.world()
    if entry.visit is not None:
        chosen_scopes(configuration, [entry.visit])
        yield {**about, "engines": ["exhaustive"], "seed": 0}
        return
    engines = [each for each in spec.engines if each != "proof" or not configuration.encoder_decoder]
    if not engines:
        raise Contradiction("the proof is of decoder models, and no other engine is asked.")
    drawing = [each for each in engines if each != "exhaustive"]
    for number, seed in enumerate(spec.seeds):
        # What draws nothing answers the same for every seed: it is asked once.
        asked = engines if number == 0 else drawing
        if asked:
            yield {**about, "engines": asked, "seed": seed if drawing else 0}
