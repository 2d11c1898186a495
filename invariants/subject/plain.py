"""Traces of a live run as they are written and shown: without what only the live run needs, with what only it saw.

Belongs here: from the steps of an engine over a subject, or over a pair of model and subject, to steps of plain states.
"""

from dataclasses import replace

from ..verdict import Step, Trace
from .live import Observed, with_hits

__all__ = ["caches", "model_side", "plain_trace"]


def plain_trace(trace: Trace) -> Trace:
    """The trace without the way to each of its states, which is long and of no use elsewhere, and with what a prefix
    cache of the scheduler's own answered, which is nowhere else."""
    return replace(trace, steps=tuple(_plain_step(step) for step in trace.steps))


def model_side(trace: Trace) -> Trace:
    """The model's states of a trace of pairs: a trace file that replays on the model and on the release."""
    steps = [
        replace(step, action=_plain_step(replace(step, state=step.state.real)).action, state=step.state.model)
        for step in trace.steps
    ]
    return replace(trace, steps=tuple(steps))


def caches(trace: Trace) -> bool:
    """Whether the run of a plain trace has a prefix cache of its own."""
    return bool(getattr(trace.steps[0].state, "caching", False))


def _plain_step(step: Step) -> Step:
    state = step.state
    if not isinstance(state, Observed):
        return step
    action = step.action
    if state.caching and action is not None and step.refused is None:
        action = with_hits(action, state.hits)
    return replace(step, action=action, state=Observed.of(state, state.failure, hits=state.hits, caching=state.caching))
