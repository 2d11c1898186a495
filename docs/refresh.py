"""Writes the generated parts of the pages anew, from the code and from what the command really prints.

`python docs/refresh.py` writes lists and the output of quick commands; `--slow` also runs the long ones again, which
takes ten minutes and sets their date. Names of pages after it: these alone. Belongs here: the kinds of generated
blocks. A block of a page looks like

    <!-- begin files model -->
    ...
    <!-- end -->

and only what is between the two comments is written. Kinds: `files FOLDER`, `lemmas`, `transitions`, `assumptions`,
`guards`, `matrix TRACE ...` (which release violates what with a file's actions), `output COMMAND` (run each time, and
compared by a test), `recorded COMMAND` (run with `--slow`).
"""

import ast
import json
import platform
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from outlives.invariants.proof.lemmas import GOAL, LEMMAS
from outlives.invariants.proof.relation import TRANSITIONS
from outlives.invariants.replay import replay
from outlives.model.lifetime import GUARDS, WEAKEST
from outlives.model.profiles import PROFILES
from outlives.model.trace import parse_trace
from outlives.model.world import ASSUMPTIONS

__all__ = ["BLOCK", "ROOT", "generated", "pages", "printed", "refreshed"]

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"<!-- begin (?P<kind>\w+) ?(?P<rest>[^\n]*?) ?-->\n(?P<body>.*?)<!-- end -->\n", re.DOTALL)
_SKIPPED = {"__pycache__", "golden"}


def pages() -> tuple[Path, ...]:
    """Every page that may have generated blocks."""
    return tuple(sorted((ROOT / "docs").glob("*.md")))


def files(folder: str) -> Iterator[str]:
    """One line per Python file of a folder: its name and the first sentence of its docstring."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not text.strip() or _SKIPPED & set(path.parts):
            continue
        first = " ".join((ast.get_docstring(ast.parse(text)) or "").split("\n\n")[0].split())
        sentence = re.split(r"(?<=[a-z)`])\. ", first)[0].rstrip(".")
        yield f"- `{path.relative_to(ROOT)}`: {sentence}."


def lemmas(_: str) -> Iterator[str]:
    """The lemmas of the theorem, as the proof has them."""
    yield from (f"- **{lemma.name}**: {lemma.phrase}." for lemma in (*LEMMAS, GOAL))


def transitions(_: str) -> Iterator[str]:
    """The transitions of the relation."""
    yield from (f"- `{each.name}`: {each.phrase}." for each in TRANSITIONS)


def assumptions(_: str) -> Iterator[str]:
    """The structural assumptions."""
    yield from (f"- **{name}**, {phrase}." for name, phrase in ASSUMPTIONS.items())


def guards(_: str) -> Iterator[str]:
    """The guards with their conditions and call sites."""
    yield "| guard | condition | asked | released in |"
    yield "| --- | --- | --- | --- |"
    for guard in (*GUARDS.values(), *WEAKEST.values()):
        yield f"| `{guard.name}` | {guard.formula} | {guard.site} | {guard.released_in} |"


def matrix(rest: str) -> Iterator[str]:
    """For each profile, what it violates when it is given the setup and the actions of these trace files."""
    names = rest.split()
    yield "| profile | " + " | ".join(f"`{name}`" for name in names) + " |"
    yield "| --- |" + " --- |" * len(names)
    for profile in PROFILES.values():
        cells = []
        for name in names:
            root = json.loads((ROOT / "tests/regressions" / f"{name}.itf.json").read_bytes())
            root["#meta"] |= {"profile": profile.name, "guard": profile.guard.name}
            found = replay(parse_trace(json.dumps(root).encode(), name)).violations
            cells.append(", ".join(violation.property for violation in found) or "holds")
        yield f"| {profile.name} | " + " | ".join(cells) + " |"


def printed(command: str) -> str:
    """What a command prints, run in a new folder that sees the repository's tests and docs."""
    words = shlex.split(command)
    if words[0] == "outlives":
        words = [sys.executable, "-m", "outlives.invariants.command", *words[1:]]
    with tempfile.TemporaryDirectory() as folder:
        for name in ("tests", "docs"):
            (Path(folder) / name).symlink_to(ROOT / name)
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or "Traceback" in done.stderr:
        raise SystemExit(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    lines = [line.rstrip() for line in done.stdout.strip().splitlines()]
    return "\n".join(["```text", f"$ {command}", *lines, "```"])


def recorded(command: str) -> str:
    """The same, with the date and the versions that it was made with."""
    second = ["cvc5"] if command.startswith(("outlives prove", "outlives table")) else []
    names = ["outlives", "hypothesis", "z3-solver", *second]
    made = ", ".join(f"{name} {version(name)}" for name in names)
    today = datetime.now(UTC).date().isoformat()
    return f"Recorded on {today} with Python {platform.python_version()}, {made}.\n\n{printed(command)}"


_LISTS: dict[str, Callable[[str], Iterator[str]]] = {
    "files": files,
    "lemmas": lemmas,
    "transitions": transitions,
    "assumptions": assumptions,
    "guards": guards,
    "matrix": matrix,
}


def generated(kind: str, rest: str) -> str:
    """What belongs between the comments of such a block."""
    if kind in _LISTS:
        return "\n".join(_LISTS[kind](rest))
    if kind == "output":
        return printed(rest)
    if kind == "recorded":
        return recorded(rest)
    raise SystemExit(f"unknown kind of block {kind!r}; known: {', '.join((*_LISTS, 'output', 'recorded'))}.")


def refreshed(text: str, *, slow: bool = False) -> str:
    """A page with its blocks written anew."""

    def renewed(block: re.Match[str]) -> str:
        if block["kind"] == "recorded" and block["body"].strip() and not slow:
            return block[0]
        begin = f"<!-- begin {block['kind']} {block['rest']}".rstrip()
        return f"{begin} -->\n{generated(block['kind'], block['rest'])}\n<!-- end -->\n"

    return BLOCK.sub(renewed, text)


def store_table() -> None:
    """Judge guard x assumptions and keep the tables for the reports of green runs (minutes)."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "outlives.invariants.command", "table", "--json"]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    tables = json.loads(done.stdout)["tables"]
    kept = {name: table for name, table in tables.items() if name.startswith("guards-by-assumptions-")}
    text = json.dumps({"outlives": version("outlives"), "tables": kept}, indent=1)
    (ROOT / "invariants/report/assets/table.json").write_text(f"{text}\n", encoding="utf-8")


def main() -> None:
    """Refresh every page, or those that are named; with `--table`, the stored table alone."""
    if sys.argv[1:] == ["--table"]:
        store_table()
        return
    slow = "--slow" in sys.argv[1:]
    names = set(sys.argv[1:]) - {"--slow"}
    unknown = names - {page.name for page in pages()}
    if unknown:
        raise SystemExit(f"no page {sorted(unknown)[0]!r}; there are {', '.join(page.name for page in pages())}.")
    for page in pages():
        if names and page.name not in names:
            continue
        old = page.read_text(encoding="utf-8")
        new = refreshed(old, slow=slow)
        if new != old:
            page.write_text(new, encoding="utf-8")
            sys.stderr.write(f"{page.name}: written anew\n")


if __name__ == "__main__":
    main()
