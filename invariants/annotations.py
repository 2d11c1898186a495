"""Annotations for GitHub's jobs, from a SARIF report: one line for each distinct failure.

`python -m outlives.invariants.annotations REPORT.sarif` prints them; the reusable workflow does so. Belongs here: which
results are told, where they are put, and how the lines are escaped. A failure is a property and how grave it is: what
several engines find of it is told once. What is known already (suppressed) is not told.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from outlives.model.errors import BadUserFile, OutlivesError

__all__ = ["annotations", "main"]

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}
_MOST_BYTES = 20_000_000
_LONGEST = 4_000


def annotations(report: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """The lines. A file is named where the run was about a user's own, or where the place lies below `folder`."""
    told: set[tuple[str, str]] = set()
    for run in report.get("runs", ()):
        own = _own_file(run)
        results = [each for each in run.get("results", ()) if not each.get("suppressions")]
        for result in sorted(results, key=lambda each: "codeFlows" not in each):  # the one with a trace says most
            command = _COMMANDS.get(str(result.get("level", "error")))
            name = str(result.get("ruleId", "outlives"))
            if command is None or (command, name) in told:
                continue
            told.add((command, name))
            place = {"file": own} if own else dict(_place(result, folder))
            settings = ",".join(f"{key}={_escaped(value, ':,')}" for key, value in {**place, "title": name}.items())
            yield f"::{command} {settings}::{_escaped(_words(result))}"


def _own_file(run: Mapping[str, Any]) -> str:
    configuration = run.get("properties", {}).get("configuration", {})
    for name in ("fault", "profile"):
        value = configuration.get(name)
        if isinstance(value, str) and ".py:" in value:
            return value.rpartition(":")[0]
    return ""


def _place(result: Mapping[str, Any], folder: Path) -> Iterator[tuple[str, str]]:
    for location in result.get("locations", ())[:1]:
        physical = location.get("physicalLocation", {})
        name = str(physical.get("artifactLocation", {}).get("uri", ""))
        if name and (folder / name).is_file():
            yield "file", name
            yield "line", str(physical.get("region", {}).get("startLine", 1))


def _words(result: Mapping[str, Any]) -> str:
    text = str(result.get("message", {}).get("text", ""))
    replay = result.get("properties", {}).get("replay")
    return f"{text}\n{replay}"[:_LONGEST] if replay else text[:_LONGEST]


def _escaped(text: str, more: str = "") -> str:
    """As a workflow command wants it: a name or a message must not begin a command of its own."""
    for letter in "%\r\n" + more:
        text = text.replace(letter, f"%{ord(letter):02X}")
    return "".join(letter for letter in text if letter.isprintable())


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the annotations of each report; 0, or 2 with one sentence."""
    names = sys.argv[1:] if arguments is None else arguments
    try:
        for name in names:
            for line in annotations(_read(Path(name)), Path.cwd()):
                sys.stdout.write(line + os.linesep)
    except OutlivesError as error:
        sys.stderr.write(f"outlives: {error}\n")
        return 2
    return 0


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise BadUserFile(f"{path} has more than {_MOST_BYTES // 10**6} MB; it is no report of outlives.")
        root = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BadUserFile(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    if not isinstance(root, dict) or not isinstance(root.get("runs"), list):
        raise BadUserFile(f"{path} is no SARIF report.")
    return root


if __name__ == "__main__":
    sys.exit(main())
