"""The trace on disk: what a run of ours carries in an ITF file, and the setup's numbers as plain values.

Belongs here: the members of `#meta`, building the file's text, reading it back into a `Recorded` run, and `Setup` to
plain values and back, with the caps that keep a replay finite. Pure: no model is built here and nothing is executed.
Which configuration a trace names, and its replay, are in `outlives.invariants.replay`.

Root `#meta`: `format`, `version`, `outlives` (the version that wrote it), `property`, `why`, `shortest` (the badge),
`shrink`, what the run was about (`configuration`'s members: profile, guard, relaxed, reader, routes, policy, scope,
scenario, ...), and `setup`, its exact numbers. Each state's `#meta`: `index`, `action` (null for the initial state),
`arguments` by name, `refused` (the named reason, or null).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from .contract import Action
from .errors import BadTrace, UnknownName
from .itf import itf_text, load_itf, parse_itf, quoted, value_from_itf, value_to_itf
from .setup import MODE_WORDS, NO_LIMIT, RARE_ROUTES, Item, RequestSetup, Setup, Turn

__all__ = [
    "FORMAT",
    "FORMAT_VERSION",
    "MOST_TEXT",
    "SUFFIX",
    "Recorded",
    "RecordedStep",
    "parse_trace",
    "read_trace",
    "setup_from_plain",
    "setup_to_plain",
    "trace_text",
]

FORMAT = "outlives-trace"
FORMAT_VERSION = 1
SUFFIX = ".itf.json"

MOST_NUMBER = 1_000_000
"""Largest number of a setup, as for the ranges of a scope."""
MOST_REQUESTS = 100
MOST_ITEMS = 1_000
"""Items of all requests together."""
MOST_TURNS = 100
MOST_PASSES = 20_000
"""Passes that the fair run of a setup may need; a setup that needs more would keep a replay busy for minutes."""

MOST_TEXT = 10_000
"""Letters of an explanation."""

_KEY = re.compile(r"[A-Za-z0-9_.:-]{1,100}\Z")
_STATE_META = ("index", "action", "arguments", "refused")
_ARGUMENT_BOUND = 10**12


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """One state of a file: the action that led to it (None for the first), its refusal if any, its values."""

    action: Action | None
    refused: str | None
    values: Mapping[str, Any]
    """Variable -> plain value, in the order of `vars`."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A trace file of ours, checked in shape. Names in it are not checked yet against any model."""

    where: str
    """The file, quoted for messages."""
    root: Mapping[str, Any]
    """The file's JSON, unknown members included."""
    steps: tuple[RecordedStep, ...]
    property_name: str
    why: str
    shortest: str
    shrink: Mapping[str, Any]

    @property
    def meta(self) -> Mapping[str, Any]:
        """The root's `#meta`, unknown members included."""
        meta: Mapping[str, Any] = self.root["#meta"]
        return meta

    def text(self) -> str:
        """The file again, in canonical form, unknown members included."""
        return itf_text(self.root)


# --- writing ----------------------------------------------------------------------------------------------------------


def trace_text(meta: Mapping[str, Any], steps: Sequence[RecordedStep], keep: Mapping[str, Any] | None = None) -> str:
    """The text of a trace file: `meta` (JSON values) behind format and version, one ITF state per step.

    `keep` is the root of a file that is written anew: its members that are unknown here are kept, those of its `#meta`
    as well, and those of its states as long as the steps are the same number. Same arguments, same bytes.
    """
    old = keep or {}
    old_states = old.get("states", ())
    same = len(old_states) == len(steps)
    head = {"format": FORMAT, "version": FORMAT_VERSION, **meta}
    head |= {name: value for name, value in old.get("#meta", {}).items() if name not in head}
    names = list(dict.fromkeys(name for step in steps for name in step.values))
    states = [_state(place, step, names, old_states[place] if same else {}) for place, step in enumerate(steps)]
    return itf_text({**old, "#meta": head, "vars": names, "states": states})


def _state(place: int, step: RecordedStep, names: Iterable[str], old: Mapping[str, Any]) -> dict[str, Any]:
    meta: dict[str, Any] = {
        "index": place,
        "action": None if step.action is None else step.action.name,
        "arguments": {} if step.action is None else dict(step.action.arguments),
        "refused": step.refused,
    }
    meta |= {name: value for name, value in old.get("#meta", {}).items() if name not in meta}
    state = {"#meta": meta} | {name: value_to_itf(step.values.get(name)) for name in names}
    return state | {name: value for name, value in old.items() if name not in state}


# --- reading ----------------------------------------------------------------------------------------------------------


def read_trace(path: Path | str) -> Recorded:
    """The run in a trace file. Raises `BadTrace` with one sentence, whatever the file holds; executes nothing."""
    return _recorded(load_itf(Path(path)), quoted(str(path), 200))


def parse_trace(content: bytes, where: str = "the trace") -> Recorded:
    """The run in these bytes; as `read_trace`."""
    return _recorded(parse_itf(content, where), where)


def _recorded(root: dict[str, Any], where: str) -> Recorded:
    meta = root.get("#meta", {})
    if meta.get("format") != FORMAT:
        raise BadTrace(
            f"{where} is an ITF trace of another tool: its #meta has no format {FORMAT!r}, so there is nothing "
            "that says what to replay."
        )
    version = meta.get("version")
    if not _is_whole(version) or version != FORMAT_VERSION:
        raise BadTrace(
            f"{where} has trace format version {quoted(version)}; this outlives reads version {FORMAT_VERSION}. "
            "Replay it with the version that wrote it."
        )
    name = meta.get("property")
    if not _is_name(name):
        raise BadTrace(f"{where}: 'property' in #meta must name a property, not {quoted(name)}.")
    shrink = meta.get("shrink", {})
    if not isinstance(shrink, dict):
        raise BadTrace(f"{where}: 'shrink' in #meta must be an object.")
    return Recorded(
        where=where,
        root=root,
        steps=tuple(_step(state, place, root["vars"], where) for place, state in enumerate(root["states"])),
        property_name=name,
        why=_text(meta, "why", where),
        shortest=_text(meta, "shortest", where),
        shrink=shrink,
    )


def _text(meta: Mapping[str, Any], name: str, where: str) -> str:
    text = meta.get(name, "")
    if not isinstance(text, str) or len(text) > MOST_TEXT or not text.isprintable():
        raise BadTrace(f"{where}: {name!r} in #meta must be a line of text.")
    return text


def _step(state: Mapping[str, Any], place: int, names: Iterable[str], where: str) -> RecordedStep:
    at = f"{where}, state {place}"
    meta = state.get("#meta", {})
    index = meta.get("index", place)
    if not _is_whole(index) or index != place:
        raise BadTrace(f"{at}: its #meta says that it is number {quoted(index)}; states are missing or out of order.")
    refused = meta.get("refused")
    if refused is not None and not _is_name(refused):
        raise BadTrace(f"{at}: 'refused' must be null or the name of a reason, not {quoted(refused)}.")
    return RecordedStep(
        action=_action(meta, place, at),
        refused=refused,
        values={name: value_from_itf(state[name], f"{at}, {quoted(name)}") for name in names},
    )


def _action(meta: Mapping[str, Any], place: int, at: str) -> Action | None:
    name = meta.get("action")
    arguments = meta.get("arguments", {})
    if place == 0:
        if name is not None:
            raise BadTrace(f"{at}: the first state is the initial one, but has the action {quoted(name)}.")
        return None
    if not _is_name(name):
        raise BadTrace(f"{at}: its #meta must name the action that led to it, not {quoted(name)}.")
    if not isinstance(arguments, dict):
        raise BadTrace(f"{at}: 'arguments' of {name} must be an object of names and values.")
    for argument, value in arguments.items():
        if not _is_name(argument):
            raise BadTrace(f"{at}: {name} cannot have an argument named {quoted(argument)}.")
        good = _is_name(value) or (_is_whole(value) and abs(value) <= _ARGUMENT_BOUND)
        if not good:
            raise BadTrace(f"{at}: argument {argument} of {name} must be a number or a name, not {quoted(value)}.")
    return Action(name, tuple(arguments.items()))


def _is_name(value: Any) -> TypeGuard[str]:
    """Short enough and plain enough to stand in a message or a report."""
    return isinstance(value, str) and 0 < len(value) <= 100 and value.isprintable()


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


# --- the setup --------------------------------------------------------------------------------------------------------


def setup_to_plain(setup: Setup) -> dict[str, Any]:
    """The exact numbers of a setup as JSON values, by the names of its fields."""
    requests = [
        {**_plain_items(asked), "turns": [_plain_items(turn) for turn in asked.turns]} for asked in setup.requests
    ]
    return {**setup._asdict(), "requests": requests, "left_out": list(setup.left_out)}


def _plain_items(asked: RequestSetup | Turn) -> dict[str, Any]:
    return {**asked._asdict(), "items": [item._asdict() for item in asked.items]}


def setup_from_plain(plain: Any, where: str) -> Setup:
    """Read back what `setup_to_plain` wrote. Raises `BadTrace` where a number is missing, absurd or contradictory."""
    at = f"{where}: the setup"
    lowest = {"budget": 1, "depth": 1}
    highest = {"depth": 1_000, "whole_items": 1, "by_priority": 1, **dict.fromkeys(MODE_WORDS.values(), 1)}
    fields = _members(plain, Setup, at)
    numbers = {
        name: _number(fields[name], lowest.get(name, 0), highest.get(name, MOST_NUMBER), f"{at}'s {name}")
        for name in Setup._fields
        if name not in ("requests", "left_out")
    }
    requests = _list(fields["requests"], 1, MOST_REQUESTS, f"{at}'s requests")
    asked = tuple(_request(request, f"{at}'s request r{place}") for place, request in enumerate(requests))
    # A file that is older than the rare routes takes none of them, which is the default.
    left_out = tuple(_list(_from_default(fields["left_out"]), 0, len(RARE_ROUTES), f"{at}'s left_out"))
    for route in left_out:
        if route not in RARE_ROUTES:
            raise BadTrace(f"{at}: {UnknownName('route', str(route), RARE_ROUTES)}")
    setup = Setup(requests=asked, left_out=left_out, **numbers)
    _check_items(setup, at)
    _check_length(setup, at)
    return setup


def _request(plain: Any, at: str) -> RequestSetup:
    fields = _members(plain, RequestSetup, at)
    items = _list(fields["items"], 0, MOST_ITEMS, f"the items of {at}")
    return RequestSetup(
        prompt=_number(fields["prompt"], 1, MOST_NUMBER, f"{at}: prompt"),
        outputs=_number(fields["outputs"], 1, MOST_NUMBER, f"{at}: outputs"),
        items=tuple(_item(item, f"{at}, item{place}") for place, item in enumerate(items)),
        priority=_number(fields["priority"], 0, MOST_NUMBER, f"{at}: priority"),
        turns=tuple(
            _turn(turn, f"{at}, turn {place}")
            for place, turn in enumerate(_list(_from_default(fields["turns"]), 0, MOST_TURNS, f"the turns of {at}"), 1)
        ),
    )


def _turn(plain: Any, at: str) -> Turn:
    fields = _members(plain, Turn, at)
    items = _list(_from_default(fields["items"]), 0, MOST_ITEMS, f"the items of {at}")
    return Turn(
        prompt=_number(fields["prompt"], 1, MOST_NUMBER, f"{at}: prompt"),
        outputs=_number(fields["outputs"], 1, MOST_NUMBER, f"{at}: outputs"),
        items=tuple(_item(item, f"{at}, item{place}") for place, item in enumerate(items)),
    )


def _item(plain: Any, at: str) -> Item:
    fields = _members(plain, Item, at)
    key = fields["key"]
    if not isinstance(key, str) or not _KEY.match(key):
        raise BadTrace(f"{at}: its key must be a short name, not {quoted(key)}.")
    length = _number(fields["length"], 1, MOST_NUMBER, f"{at}: length")
    return Item(
        start=_number(fields["start"], 0, MOST_NUMBER, f"{at}: start"),
        length=length,
        key=key,
        size=_number(fields["size"], 1, length, f"{at}: size (slots, at most its length)"),
    )


def _check_items(setup: Setup, at: str) -> None:
    sizes: dict[str, int] = {}
    for place, turn, asked in _every_turn(setup):
        end = 0
        for number, item in enumerate(asked.items):
            name = f"r{place}, {turn}item{number} [{item.start},{item.end})"
            if item.start < end:
                raise BadTrace(f"{at}: {name} begins before the item in front of it ends, at {end}.")
            end = item.end
            if sizes.setdefault(item.key, item.size) != item.size:
                raise BadTrace(f"{at}: {name} takes {item.size} slots, but its key took {sizes[item.key]} before.")
    count = sum(len(asked.items) for _, _, asked in _every_turn(setup))
    if count > MOST_ITEMS:
        raise BadTrace(f"{at} has {count:,} items; at most {MOST_ITEMS:,} are replayed.")


def _every_turn(setup: Setup) -> Iterator[tuple[int, str, RequestSetup | Turn]]:
    for place, asked in enumerate(setup.requests):
        yield place, "", asked
        for number, turn in enumerate(asked.turns, 1):
            yield place, f"turn {number}, ", turn


def _check_length(setup: Setup, at: str) -> None:
    step = setup.budget if setup.chunk_cap == NO_LIMIT else setup.step_limit
    passes = sum(-(-asked.prompt // step) + asked.outputs for _, _, asked in _every_turn(setup))
    if passes > MOST_PASSES:
        raise BadTrace(f"{at} needs {passes:,} passes to finish; at most {MOST_PASSES:,} are replayed.")


def _members(plain: Any, record: type[Any], at: str) -> Mapping[str, Any]:
    """The members of a record's plain form; one that has a default may be missing (it was added later)."""
    names: Sequence[str] = record._fields
    if not isinstance(plain, Mapping):
        raise BadTrace(f"{at} must be an object with {', '.join(names)}; it is {quoted(plain)}.")
    defaults: Mapping[str, Any] = record._field_defaults
    missing = [name for name in names if name not in plain and name not in defaults]
    if missing:
        raise BadTrace(f"{at} lacks {', '.join(missing)}.")
    return {**defaults, **plain}


def _from_default(value: Any) -> Any:
    """A member that is missing has its default, which is a tuple; what a file says is left as it is."""
    return list(value) if isinstance(value, tuple) else value


def _list(plain: Any, low: int, high: int, at: str) -> Sequence[Any]:
    if not isinstance(plain, list) or not low <= len(plain) <= high:
        count = f"{len(plain):,}" if isinstance(plain, list) else quoted(plain)
        raise BadTrace(f"{at} must be a list of {low} to {high:,}, not {count}.")
    return plain


def _number(value: Any, low: int, high: int, what: str) -> int:
    if not _is_whole(value) or not low <= value <= high:
        raise BadTrace(f"{what} must be a whole number from {low:,} to {high:,}, not {quoted(value)}.")
    return int(value)
