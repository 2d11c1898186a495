"""The ITF file format, independent of what a trace is about: values to JSON and back, and safe reading of any file.

Belongs here: the encoding of values, the limits that a file must keep before its content is looked at, and the
canonical bytes. What a trace of ours carries in its `#meta` is in `trace`. Nothing here executes what it reads.

Format: the trace format of Apalache (its ADR 015), with integers always written as `#bigint`.
"""

import json
import math
import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from keyword import iskeyword
from pathlib import Path
from typing import Any, NoReturn

from .errors import BadTrace

__all__ = [
    "MOST_BYTES",
    "MOST_DIGITS",
    "MOST_NESTING",
    "MOST_STATES",
    "Unserializable",
    "itf_text",
    "load_itf",
    "parse_itf",
    "quoted",
    "value_from_itf",
    "value_to_itf",
]

MOST_BYTES = 16 * 1024 * 1024
"""Largest trace file that is read."""
MOST_STATES = 100_000
MOST_NESTING = 64
"""Objects and arrays inside each other; a state of ours needs six."""
MOST_DIGITS = 100
"""Digits of one integer."""

_DIGITS = re.compile(r"-?[0-9]+\Z")
_ROOT_ORDER = ("#meta", "params", "vars", "states", "loop")


@dataclass(frozen=True, slots=True)
class Unserializable:
    """A value that ITF has no form for, as the text that stands in its place."""

    text: str


def quoted(text: object, most: int = 60) -> str:
    """Something from a file, safe to print: quoted, on one line, printable ASCII only, cut to `most` characters."""
    if text is None:
        return "nothing"
    shown = text[: most + 1] if isinstance(text, str) else str(text)[: most + 1]
    return ascii(shown if len(shown) <= most else shown[: most - 3] + "...")


# --- values -----------------------------------------------------------------------------------------------------------


def value_to_itf(value: Any) -> Any:
    """A plain value as an ITF expression.

    Mappings whose names are identifiers become records, other mappings `#map`; tuples `#tup`; lists arrays; sets
    `#set` in a fixed order; whatever else there is becomes `#unserializable` with its text.
    """
    if isinstance(value, bool | str):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, int):
        return {"#bigint": str(int(value))}
    if isinstance(value, Unserializable):
        return {"#unserializable": value.text}
    if isinstance(value, tuple):
        return {"#tup": [value_to_itf(part) for part in value]}
    if isinstance(value, list):
        return [value_to_itf(part) for part in value]
    if isinstance(value, frozenset | set):
        return {"#set": sorted((value_to_itf(part) for part in value), key=_one_line)}
    if isinstance(value, Mapping):
        if _is_record(value):
            return {name: value_to_itf(part) for name, part in value.items()}
        return {"#map": [[value_to_itf(key), value_to_itf(part)] for key, part in value.items()]}
    return {"#unserializable": str(value)}


def _is_record(value: Mapping[Any, Any]) -> bool:
    """Whether readers will take it for a record: the names are identifiers, and it does not look like a variant."""
    return set(value) != {"tag", "value"} and all(
        isinstance(name, str) and name.isidentifier() and not name.startswith("_") and not iskeyword(name)
        for name in value
    )


def value_from_itf(expression: Any, where: str) -> Any:
    """The plain value of an ITF expression; `where` names its place in messages.

    Plain JSON integers are taken, as the format once allowed. Raises `BadTrace` where it is no expression.
    """
    if isinstance(expression, str | bool):
        return expression
    if isinstance(expression, int):
        return expression
    if isinstance(expression, list):
        return [value_from_itf(part, where) for part in expression]
    if not isinstance(expression, dict):
        raise BadTrace(f"{where}: {quoted(json.dumps(expression))} is no ITF value.")
    special = [name for name in expression if name.startswith("#")]
    if not special:
        return {name: value_from_itf(part, where) for name, part in expression.items()}
    if len(expression) != 1:
        raise BadTrace(f"{where}: an object with {quoted(special[0])} must have no other member.")
    return _special(special[0], expression[special[0]], where)


def _special(form: str, content: Any, where: str) -> Any:
    if form == "#bigint" and isinstance(content, str):
        if not _DIGITS.match(content):
            raise BadTrace(f"{where}: #bigint {quoted(content)} is no whole number.")
        return _whole_number(content, where)
    if form == "#unserializable" and isinstance(content, str):
        return Unserializable(content)
    if form == "#tup" and isinstance(content, list):
        return tuple(value_from_itf(part, where) for part in content)
    try:
        if form == "#set" and isinstance(content, list):
            return frozenset(value_from_itf(part, where) for part in content)
        if form == "#map" and isinstance(content, list):
            pairs = [(value_from_itf(key, where), value_from_itf(part, where)) for key, part in content]
            return dict(pairs)
    except (TypeError, ValueError):
        raise BadTrace(f"{where}: this {form} has a member that cannot be a key, or that is no pair.") from None
    raise BadTrace(f"{where}: {quoted(form)} is no ITF value, or has the wrong content.")


def _whole_number(digits: str, where: str) -> int:
    if len(digits) > MOST_DIGITS + 1:
        raise BadTrace(f"{where}: a number of {len(digits):,} digits; at most {MOST_DIGITS} are read.")
    return int(digits)


# --- reading ----------------------------------------------------------------------------------------------------------


def load_itf(path: Path) -> dict[str, Any]:
    """The root object of an ITF file. Raises `BadTrace`; nothing is read where the file is too large or no file."""
    name = quoted(str(path), 200)
    try:
        facts = os.stat(path)
        if stat.S_ISDIR(facts.st_mode):
            raise BadTrace(f"{name} is a folder; name a trace file (.itf.json).")
        if not stat.S_ISREG(facts.st_mode):
            raise BadTrace(f"{name} is no regular file; copy the trace into one.")
        if facts.st_size > MOST_BYTES:
            _too_large(name, facts.st_size)
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadTrace(f"cannot read the trace {name}: {reason}.") from error
    if len(content) > MOST_BYTES:
        _too_large(name, len(content))
    return parse_itf(content, name)


def _too_large(name: str, size: int) -> NoReturn:
    raise BadTrace(f"{name} has {size:,} bytes; traces of up to {MOST_BYTES:,} bytes are read.")


def parse_itf(content: bytes, where: str) -> dict[str, Any]:
    """The root object of these bytes, checked to be ITF in shape: variables, and states that bind all of them.

    Values are checked when they are read (`value_from_itf`). Raises `BadTrace`.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadTrace(f"{where} is not text in UTF-8 (byte {error.start:,}), so it is no trace.") from None
    if not text.strip():
        raise BadTrace(f"{where} is empty.")
    try:
        root = json.loads(
            text,
            object_pairs_hook=lambda pairs: _object(pairs, where),
            parse_int=lambda digits: _whole_number(digits, where),
            parse_float=lambda digits: _fraction(digits, where),
            parse_constant=lambda name: _constant(name, where),
        )
    except json.JSONDecodeError as error:
        said = error.msg.removesuffix(" at")  # the library's sentence for a string that does not end
        raise BadTrace(
            f"{where} is no JSON, or was cut off: {said} at line {error.lineno:,}, column {error.colno:,}."
        ) from None
    except RecursionError:
        raise BadTrace(f"{where} nests objects too deeply; at most {MOST_NESTING} levels are read.") from None
    _check_tree(root, where)
    return _check_root(root, where)


def _object(pairs: list[tuple[str, Any]], where: str) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise BadTrace(f"{where}: an object has the member {quoted(twice)} twice.")
    return members


def _fraction(digits: str, where: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise BadTrace(f"{where}: the number {quoted(digits)} is too large.")
    return number


def _constant(name: str, where: str) -> NoReturn:
    raise BadTrace(f"{where}: {name} is no JSON value.")


def _check_tree(root: Any, where: str) -> None:
    """Nesting, and strings that could not be printed. Level by level, not recursive: the tree may be deep."""
    level: list[Any] = [root]
    depth = 0
    while level:
        depth += 1
        if depth > MOST_NESTING + 1:
            raise BadTrace(f"{where} nests objects too deeply; at most {MOST_NESTING} levels are read.")
        below: list[Any] = []
        for node in level:
            if isinstance(node, str):
                _check_text(node, where)
            elif isinstance(node, dict):
                for name in node:
                    _check_text(name, where)
                below.extend(node.values())
            elif isinstance(node, list):
                below.extend(node)
        level = below


def _check_text(text: str, where: str) -> None:
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise BadTrace(f"{where}: the text {quoted(text)} holds half a character (a lone surrogate).")


def _check_root(root: Any, where: str) -> dict[str, Any]:
    if not isinstance(root, dict):
        raise BadTrace(f"{where} is JSON but no ITF trace: the root must be an object, not {_kind(root)}.")
    for name, kind in (("vars", list), ("states", list)):
        if name not in root:
            raise BadTrace(f"{where} is JSON but no ITF trace: it has no {name!r}.")
        if not isinstance(root[name], kind):
            raise BadTrace(f"{where} is no ITF trace: {name!r} must be an array, not {_kind(root[name])}.")
    names, states = root["vars"], root["states"]
    if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        raise BadTrace(f"{where} is no ITF trace: 'vars' must be distinct names.")
    if not isinstance(root.get("#meta", {}), dict):
        raise BadTrace(f"{where} is no ITF trace: '#meta' must be an object.")
    if not states:
        raise BadTrace(f"{where} has no state; a trace begins with the initial one.")
    if len(states) > MOST_STATES:
        raise BadTrace(f"{where} has {len(states):,} states; at most {MOST_STATES:,} are read.")
    for place, state in enumerate(states):
        if not isinstance(state, dict) or not isinstance(state.get("#meta", {}), dict):
            raise BadTrace(f"{where}: state {place} must be an object, and its '#meta' too.")
        missing = next((name for name in names if name not in state), None)
        if missing is not None:
            raise BadTrace(f"{where}: state {place} has no value for the variable {quoted(missing)}.")
    return root


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


# --- writing ----------------------------------------------------------------------------------------------------------


def itf_text(root: Mapping[str, Any]) -> str:
    """The canonical text of a root object: members in a fixed order, one line per state and per member of `#meta`.

    Members that the format does not know come last, by name. ASCII only; ends with a newline.
    """
    names = [name for name in _ROOT_ORDER if name in root]
    names += sorted(name for name in root if name not in _ROOT_ORDER)
    return "{\n" + ",\n".join(f"{_one_line(name)}: {_member(name, root[name])}" for name in names) + "\n}\n"


def _member(name: str, value: Any) -> str:
    if name == "states" and value:
        return _lines("[", (_one_line(state) for state in value), "]")
    if name == "#meta" and value:
        return _lines("{", (f"{_one_line(key)}: {_one_line(part)}" for key, part in value.items()), "}")
    return _one_line(value)


def _lines(opening: str, lines: Iterable[str], closing: str) -> str:
    return opening + "\n  " + ",\n  ".join(lines) + "\n" + closing


def _one_line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False)
