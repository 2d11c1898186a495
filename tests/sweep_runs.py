"""How the tests sweep: specifications, what a folder holds, and a profile that ends its worker."""

import sys
import tomllib
from pathlib import Path

from outlives.invariants.sweep_items import planned
from outlives.invariants.sweep_spec import spec_of

__all__ = ["OUTLIVES", "OWN", "SMALL", "WITH_OWN", "files_of", "keys", "spec_file"]

OUTLIVES = (sys.executable, "-m", "outlives.invariants.command")

SMALL = """
profiles = ["0.24.0", "repaired"]
guards = ["own", "confirmed"]
assumptions = ["A1-A4", "A3 any"]
scopes = ["last-chunk", { scenario = "gap-one" }]
engines = ["machine"]
settings = "quick"
cases = 8
seeds = [3, 4]
"""

OWN = """
import multiprocessing, os, signal
from pathlib import Path
from outlives.model.profiles import profile_named

mine = profile_named("repaired")
mark = Path(__file__).with_name("died")
if multiprocessing.parent_process() is not None and {when}:
    mark.open("a").write("x")
    os.kill(os.getpid(), signal.SIGKILL)
"""
WITH_OWN = "profiles = ['repaired', 'mine.py:mine']\nscopes = ['last-chunk', 'chunk-end']\n"


def spec_file(folder: Path, text: str = SMALL, name: str = "s.toml") -> str:
    """A specification in a folder; its name."""
    (folder / name).write_text(text, encoding="utf-8")
    return name


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file of a sweep's folder but the lock."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def keys(text: str) -> list[str]:
    """The keys of the items of a specification."""
    return list(planned(spec_of(tomllib.loads(text), "s.toml", Path()), "s.toml").items)
