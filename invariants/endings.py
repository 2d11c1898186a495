"""How runs end, counted over every state: deadlocks, and requests that could run and never get a token again.

Belongs here: properties that only count, for the exhaustive engine to keep a shortest trace of; and what they add up
to. None is a verdict of its own: where nothing can happen, or a request is stuck, there is no progress, which PROGRESS
says.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from outlives.model.contract import Action, Property, Refusal
from outlives.model.scheduler import SchedulerModel
from outlives.model.setup import Scope
from outlives.model.state import State
from outlives.model.world import World

from .explore import Exploration
from .judge_requests import all_finished
from .verdict import Trace

__all__ = [
    "CYCLE",
    "DEADLOCK",
    "ENDINGS",
    "STANDSTILL",
    "ending_properties",
    "ends_of",
    "how_runs_end",
    "shortest_way",
]

DEADLOCK = "DEADLOCK"
STANDSTILL = "STANDSTILL"
CYCLE = "STUCK-CYCLE"

ENDINGS: Mapping[str, str] = {
    DEADLOCK: "deadlocks",
    STANDSTILL: "standstills",
    CYCLE: "stuck cycles",
}
"""Property -> what it counts, as reports say it."""

_PROGRESS = "PROGRESS"


def ending_properties(world: World, judged: Sequence[Property[State]]) -> tuple[Property[State], ...]:
    """The properties that count endings. The two that need the fair run are there only where PROGRESS is judged.

    A deadlock is a state in which every action is refused while a request is unfinished. From a standstill or a stuck
    cycle things may still happen, but left alone by the environment the scheduler goes on without that request: it
    comes to rest, or goes round for ever. Either way a request that waits or runs never gets a token again.
    """
    model = SchedulerModel(world, Scope())

    def stopped(_before: State, _action: Action | None, after: State) -> bool:
        if _all_done(after):
            return False
        try:
            return all(isinstance(model.next_state(after, action), Refusal) for action in model.actions(after))
        except Exception:  # a user's rules: the search meets the same action next, and tells it with its place
            return False

    def rests(_before: State, _action: Action | None, end: State) -> bool:
        return not _all_done(end) and not _fair_goes_on(model, end)

    def goes_round(_before: State, _action: Action | None, end: State) -> bool:
        return not _all_done(end) and _fair_goes_on(model, end)

    counted = [_counting(DEADLOCK, "every action is refused while a request is unfinished", stopped)]
    if any(each.name == _PROGRESS for each in judged):
        counted += [
            _counting(STANDSTILL, "left alone, the scheduler rests while a request is unfinished", rests, fair=True),
            _counting(CYCLE, "left alone, the scheduler goes round while a request is stuck", goes_round, fair=True),
        ]
    return tuple(counted)


def _all_done(state: State) -> bool:
    """As PROGRESS means it."""
    return all_finished(state, None, state)


def _fair_goes_on(model: SchedulerModel, end: State) -> bool:
    """Whether the fair run could go on from where it was ended: then it repeats itself, or has no end in sight."""
    action = model.fair_action(end)
    return action is not None and not isinstance(model.next_state(end, action), Refusal)


def _counting(
    name: str, phrase: str, arises: Callable[[State, Action | None, State], bool], *, fair: bool = False
) -> Property[State]:
    """A property that is broken wherever this arises."""
    return Property(
        name=name,
        phrase=f"it does not happen that {phrase}",
        holds=lambda before, action, after: not arises(before, action, after),
        explain=lambda _before, _action, _after: phrase,
        situation=lambda _before, _action, _after: False,
        situation_phrase="a request was unfinished",
        kind="progress" if fair else "state",
    )


# --- what they add up to ----------------------------------------------------------------------------------------------


def ends_of(found: Exploration) -> dict[str, int]:
    """Ending -> states, as far as each was counted; first the states in which all is done."""
    counted = {words: found.broken[name] for name, words in ENDINGS.items() if name in found.broken}
    # What the engine calls a deadlock is any state in which every action is refused, all being finished or not.
    rest = found.deadlocks + found.ends - found.broken.get(DEADLOCK, 0)
    return {"nothing left to do": rest, **counted}


def how_runs_end(searches: Iterable[Exploration]) -> dict[str, int | str]:
    """Ending -> states of all searches together; of those that should not be, with a shortest way into the first."""
    sums: dict[str, int] = {}
    ways: dict[str, Trace] = {}
    for found in searches:
        for words, states in ends_of(found).items():
            sums[words] = sums.get(words, 0) + states
        for name, words in ENDINGS.items():
            trace = found.traces.get(name)
            if trace is not None and (words not in ways or len(trace.actions) < len(ways[words].actions)):
                ways[words] = trace
    return {
        words: f"{count:,} ({shortest_way(ways[words])})" if words in ways else count for words, count in sums.items()
    }


def shortest_way(trace: Trace) -> str:
    """The trace of an ending in one line."""
    actions = ", ".join(map(str, trace.actions)) or "it begins there"
    return f"shortest way: {actions}"
