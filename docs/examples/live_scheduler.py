"""A live scheduler as `docs/own-scheduler.md` hands it over: an object that changes, behind the methods of `Subject`.

What lives here is the built-in scheduler, with or without a leak, so that the example runs anywhere; yours is behind
`take` and `observe` instead.
"""

from dataclasses import replace

from outlives.invariants.testing import Observation
from outlives.model import Action, Refusal, book
from outlives.model.profiles import profile_named
from outlives.model.scheduler import SchedulerModel, initial_state
from outlives.model.setup import Scope, Setup
from outlives.model.state import Book, Request, State
from outlives.model.world import World


def leaking(world: World, setup: Setup, held: Book, request: Request, number: int, item: int) -> tuple[Book, Request]:
    """The request forgets its item, and the book is never told."""
    return held, book.release(world, setup, held, request, number, item)[1]


class LiveScheduler:
    """A scheduler with a state of its own."""

    caches_prefixes = False

    def __init__(self, *, leaks: bool = False) -> None:
        profile = profile_named("repaired")
        rules = replace(profile.rules, release=leaking) if leaks else profile.rules
        self._engine = SchedulerModel(World(rules=rules, switches=profile.switches, guard=profile.guard), Scope())
        self._state: State

    def start(self, setup: Setup, *, caching: bool = False) -> Observation:
        """An engine with these numbers, to which nothing has arrived."""
        self._state = initial_state(setup)
        return self.observe()

    def take(self, action: Action) -> Refusal | None:
        """What the action is for this engine; a refusal leaves it as it was."""
        answer = self._engine.next_state(self._state, action)
        if isinstance(answer, Refusal):
            return answer
        self._state = answer
        return None

    def observe(self) -> Observation:
        """The engine's objects, read as the model's record."""
        return Observation(self._state)
