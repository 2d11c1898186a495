"""Is there a shorter trace? A bounded search for one property, and the badge that a trace may then carry.

Belongs here: what follows a violation that another engine found. Also `explore`, which picks the engine for a model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from outlives.model.contract import Model

from ..verdict import Trace
from .bounds import Bounds, Listener
from .breadth import breadth_first
from .checkpoint import Checkpoint
from .components import ComponentModel
from .exploration import Exploration
from .interned import interned_search
from .outcome import SHORTEST

__all__ = ["Shortest", "explore", "shortest"]


def explore(
    model: Model[Any],
    *,
    bounds: Bounds | None = None,
    listener: Listener | None = None,
    properties: Sequence[str] | None = None,
    checkpoint: Checkpoint | None = None,
    initial: Sequence[Any] | None = None,
    stop_when_found: bool = False,
    compiled: bool | None = None,
) -> Exploration:
    """`interned_search` where the model shows its components, else `breadth_first`; the same record either way.

    `compiled` as in `interned_search`; of a model that shows no components it changes nothing.
    """
    if isinstance(model, ComponentModel):
        return interned_search(
            model,
            bounds=bounds,
            listener=listener,
            properties=properties,
            checkpoint=checkpoint,
            initial=initial,
            stop_when_found=stop_when_found,
            compiled=compiled,
        )
    return breadth_first(
        model,
        bounds=bounds,
        listener=listener,
        properties=properties,
        checkpoint=checkpoint,
        initial=initial,
        stop_when_found=stop_when_found,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortest:
    """What a bounded search says about the shortest violation of one property."""

    trace: Trace | None
    """A shortest trace, the least among the equally short; None: the search met none."""
    searched: int
    """Every run of up to this many actions was judged."""
    badge: str
    """What the trace (or the known one, where none shorter was met) may be called."""
    contradicts: bool
    """A violation is known, and the search covered runs of its length, all of the scope even, without meeting one:
    the engines disagree."""
    exploration: Exploration


def shortest(
    model: Model[Any],
    property: str,
    *,
    known: int | None = None,
    initial: Sequence[Any] | None = None,
    bounds: Bounds | None = None,
    listener: Listener | None = None,
) -> Shortest:
    """Search for the shortest violation of one property within the bounds.

    `known` is the length (in actions taken, refused ones not counted) of a trace that is known to break it, from one
    of the `initial` states; nothing longer is searched for. Raises `UnknownName` for the property, `BadModel`.
    """
    limits = bounds or Bounds()
    if known is not None:
        depth = known if limits.depth is None else min(known, limits.depth)
        limits = Bounds(states=limits.states, depth=depth, memory=limits.memory, seconds=limits.seconds)
    found = explore(
        model, bounds=limits, listener=listener, properties=[property], initial=initial, stop_when_found=True
    )
    trace = found.traces.get(property)
    searched = found.searched
    if trace is not None or (known is not None and searched >= known - 1):
        badge = SHORTEST
    else:
        badge = f"shrunk; not proved shortest (searched to depth {searched})"
    contradicts = trace is None and known is not None and (found.complete or searched >= known)
    return Shortest(trace=trace, searched=searched, badge=badge, contradicts=contradicts, exploration=found)
