"""The exhaustive engine: every state of a scope, and the shortest trace to whatever is wrong in it.

The public face of the package; what the names mean stands where they are defined.
"""

from .bounds import Bounds, Progress
from .breadth import breadth_first
from .checkpoint import BadCheckpoint, Checkpoint
from .exploration import ActionCount, Exploration
from .handing_over import NotInstalled
from .interned import interned_search
from .shortest import Shortest, explore, shortest

__all__ = [
    "ActionCount",
    "BadCheckpoint",
    "Bounds",
    "Checkpoint",
    "Exploration",
    "NotInstalled",
    "Progress",
    "Shortest",
    "breadth_first",
    "explore",
    "interned_search",
    "shortest",
]
