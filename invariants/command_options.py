"""Options as records: what the user typed, as the fields of a `Configuration`, ranges and folders.

Belongs here: what several commands read of their options. The parser is in `command`; what a command does, in
`commands`.
"""

import argparse
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from outlives.model.errors import Contradiction, OutOfRange, UnknownName, Unwritable

__all__ = ["NUMBER_OPTIONS", "checked_formats", "formats_of", "given_of", "option_names", "out_folder", "range_of"]

NUMBER_OPTIONS = (
    "requests",
    "turns",
    "items",
    "slots",
    "drafts",
    "depth",
    "budget",
    "encoder_budget",
    "chunk_cap",
    "look_ahead",
)
MOST_REQUESTS = 3
TERMINAL = "terminal"
"""The format that is none of a file."""


def formats_of(options: argparse.Namespace) -> tuple[str, ...]:
    """The formats that were asked for; none: the terminal's. Raises `UnknownName`, and `Contradiction` where they
    cannot all go where they would."""
    names = checked_formats(getattr(options, "format", None) or ())
    if names and options.json:
        raise Contradiction("--json and --format contradict: each decides what is printed. Drop one of them.")
    if len(names) > 1 and not options.out_typed:
        raise Contradiction(f"--format {names[0]} and {names[1]} cannot both be printed: give --out DIR for files.")
    return names


def checked_formats(given: Iterable[str]) -> tuple[str, ...]:
    """These formats, each once, without the terminal's. Raises `UnknownName`."""
    from .report.writers import WRITERS

    names = tuple(dict.fromkeys(given))
    for name in names:
        if name not in (*WRITERS, TERMINAL):
            raise UnknownName("format", name, (TERMINAL, *WRITERS))
    return tuple(name for name in names if name != TERMINAL)


def given_of(options: argparse.Namespace) -> dict[str, Any]:
    """The fields of a `Configuration` that the user typed, and no others."""
    given: dict[str, Any] = {}
    for name in ("profile", "guard", "fault", "reader", "policy", "scenario", "arrivals"):
        value = getattr(options, name, None)
        if value is not None:
            given[name] = value
    if getattr(options, "relax", None) is not None:
        given["relax"] = tuple(part.strip() for part in options.relax.split(",") if part.strip())
        if not given["relax"]:
            raise Contradiction("--relax names no assumption; write for example --relax A1,A3.")
    if options.without:
        given["without"] = tuple(dict.fromkeys(options.without))
    for name in ("items_anywhere", "split", "synchronous", "diffusion", "encoder_decoder"):
        if getattr(options, name):
            given[name] = True
    if getattr(options, "property", None):
        given["properties"] = tuple(dict.fromkeys(options.property))
    numbers = {}
    for name in NUMBER_OPTIONS:
        text = getattr(options, name)
        if text is not None:
            numbers[name] = range_of(name, text)
    if numbers:
        given["numbers"] = numbers
    return given


def option_names(given: dict[str, Any]) -> list[str]:
    """The options behind these fields, as they are typed."""
    names: list[str] = []
    for name, value in given.items():
        names += [f"--{number.replace('_', '-')}" for number in value] if name == "numbers" else [f"--{name}"]
    return [name.replace("_", "-").replace("--properties", "--property") for name in names]


def range_of(name: str, text: str) -> tuple[int, int]:
    """`4` or `2..6` as a pair."""
    option = f"--{name.replace('_', '-')}"
    found = re.fullmatch(r"(-?[0-9]{1,18})(?:\.\.(-?[0-9]{1,18}))?", text, re.ASCII)
    if found is None:
        shown = text if len(text) <= 40 else text[:37] + "..."
        raise Contradiction(f"{option} {shown!r} is neither a number nor a range LOW..HIGH.")
    low, high = found.groups()
    span = (int(low), int(low if high is None else high))
    if span[1] < span[0]:
        raise Contradiction(f"{option} {text}: the range ends below its beginning; write {span[1]}..{span[0]}.")
    if name == "requests" and not (span[0] == span[1] and 1 <= span[0] <= MOST_REQUESTS):
        raise OutOfRange(option, text, 1, MOST_REQUESTS)
    return span


def out_folder(options: argparse.Namespace) -> Path:
    """The folder of `--out`, or the default one."""
    from .folder import DEFAULT_OUT

    if options.out == "":
        raise Unwritable("--out names no folder; leave it out for .outlives.")
    return DEFAULT_OUT if options.out is None else Path(options.out)
