"""Takes the recorded walks anew on a real release, and writes what it showed into the package.

    python tests/vllm/record_walks.py [WALK ...]

In an environment with vLLM (`environment.sh`); the release is the installed one, or that of the unpacked folder in
OUTLIVES_VLLM. The walks of other releases, and where some are named all others, stay as they are.
"""

import os
import sys
from pathlib import Path
from textwrap import fill

from outlives.invariants.subject import walks_seen
from outlives.invariants.subject.conform import PairModel
from outlives.invariants.subject.release import Release, installed_release
from outlives.invariants.subject.vllm_subject import VllmSubject
from outlives.invariants.subject.walks import WALKS, Walk, recorded

HEAD = '''"""What releases showed in the walks of `walks`: a digest of each run.

Belongs here: data, written by `tests/vllm/record_walks.py` with the release beside the model.
"""

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["SEEN"]

_SEEN = {
'''
_IN = 8 * " "
FOOT = '''}

SEEN: Mapping[str, tuple[str, ...]] = MappingProxyType({name: tuple(runs.split()) for name, runs in _SEEN.items()})
"""Walk -> its runs."""
'''


def beside(release: Release, walk: Walk) -> PairModel:
    """The walk's profile and the release, side by side."""
    world = walk.world()
    subject = VllmSubject(release, world.closed)
    return PairModel(subject, world, walk.scope(), items_known=release.items_known)


def written(seen: dict[str, tuple[str, ...]]) -> str:
    """The module's text."""
    text = HEAD
    for name in WALKS:
        if name in seen:
            runs = fill(" ".join(seen[name]), 112, initial_indent=_IN, subsequent_indent=_IN)
            text += f'    "{name}": """\n{runs}\n    """,\n'
    return text + FOOT


def main(names: list[str]) -> None:
    release = installed_release(os.environ.get("OUTLIVES_VLLM"))
    seen = dict(walks_seen.SEEN)
    for walk in WALKS.values():
        if walk.release == release.version and (not names or walk.name in names):
            seen[walk.name] = recorded(walk, beside(release, walk))
            print(f"{walk.name}: {len(seen[walk.name])} runs")
    Path(walks_seen.__file__).write_text(written(seen), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
