"""Recorded walks: what real releases showed in random runs, kept as digests, so that a model can be held to them later.

Belongs here: which walks there are, how one is taken, and the comparison. The digests are data, in `walks_seen`.

Theory of operation
-------------------
`conform` compares a profile with a release that is there. What it saw can be kept: a walk is a number of runs of one
profile whose every choice is drawn from one seed, and of each run a digest of all actions, taken or refused and why,
and of all observables of the release after each. The model of the profile, given the same draws, has to come to the
same digests. One that offers another action, or shows another number anywhere, does not; so a change of the model's
rules is told from the original without the release, as long as it makes a difference in any of these runs.

A run in which the release fails, as it was foretold (`conform.foretold`), is kept up to there.
"""

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

from outlives.model.contract import Action, Refusal
from outlives.model.errors import BadModel
from outlives.model.scheduler import SchedulerModel, initial_state
from outlives.model.setup import PLAIN, Scope, Setup
from outlives.model.state import State
from outlives.model.world import World

from ..configuration import Configuration
from .conform import IDLE, RUN_LENGTH, Drawer, Pair, PairModel, drawn, observables
from .corners import CORNERS, Corner

__all__ = ["WALKS", "Walk", "departure", "recorded"]

_SIZE = 3
"""Bytes of a digest: of a difference one in 16 million goes unnoticed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """A number of runs of one release."""

    release: str
    """The vLLM release that they were seen on."""
    about: str
    configuration: Configuration
    runs: int
    corners: tuple[Corner, ...] = ()
    """The runs, where they are not drawn: corners that draws hardly ever meet."""

    @property
    def name(self) -> str:
        """Release and what it is about."""
        return f"{self.release} {self.about}"

    def world(self) -> World:
        """The profile's."""
        return self.configuration.world()

    def scope(self) -> Scope:
        """Where no mode is asked for, the usual one alone."""
        scope = self.configuration.scope()
        return scope._replace(modes=(PLAIN,)) if self.configuration.mode() == PLAIN else scope


# --- which there are --------------------------------------------------------------------------------------------------

_MANY = {
    "chunk_cap": (0, 0),
    "depth": (1, 3),
    "drafts": (0, 3),
    "encoder_budget": (0, 6),
    "outputs": (1, 6),
    "requests": (3, 3),
    "turns": (1, 1),
}
_ONE = {**_MANY, "requests": (1, 1)}
_TWO = {**_MANY, "requests": (2, 2)}
_CAPPED = {"chunk_cap": (0, 4)}
_TURNS = {"turns": (1, 3)}
_LOADS = ("kv-load-failure",)
_RESETS = ("reset-prefix-cache", "reset-encoder-cache", *_LOADS)
_PROFILES = {"0.33.0": "0.33.0", "0.19.1": "0.17.1", "0.28.0": "0.28.0", "0.24.0": "0.24.0", "0.32.0": "0.32.0"}
"""Release -> the profile that it is read as; those first that differ most, where a wrong rule is noticed soonest. What
is not compared, and why, is in `docs/vllm.md`."""
_TWO_QUEUES = ("0.28.0",)
"""Releases that are compared under the priority policy alone."""
_IN_TURNS = ("0.32.0", "0.33.0")
"""Releases whose sessions are compared."""
_ONE_STAGE = ("0.19.1", "0.24.0")
"""Releases that are compared on one stage where nothing is promised."""


def _walks() -> Iterator[Walk]:
    for release, profile in _PROFILES.items():

        def walk(about: str, runs: int, *, of: str = release, profile: str = profile, **more: Any) -> Walk:
            return Walk(release=of, about=about, configuration=Configuration(profile=profile, **more), runs=runs)

        yield _corners(release, profile)
        yield walk("one request", 40, policy="fcfs", numbers=_ONE)
        turns = _TURNS if release in _IN_TURNS else {}
        synchronous = {**_TWO, **turns, **({"depth": (1, 1)} if release in _ONE_STAGE else {})}
        resets = (*_RESETS, "sessions") if release == "0.24.0" else ("sessions",)
        for policy in ("priority",) if release in _TWO_QUEUES else ("priority", "fcfs"):
            yield walk(policy, 60, policy=policy, numbers=_MANY)
            yield walk(f"{policy}, chunk cap", 60, policy=policy, numbers={**_MANY, **_CAPPED})
            if turns:
                loads = () if policy == "priority" else _LOADS
                yield walk(f"{policy}, sessions", 80, policy=policy, numbers={**_TWO, **turns}, without=loads)
            yield walk(
                f"{policy}, synchronous", 40, policy=policy, numbers=synchronous, without=_LOADS, synchronous=True
            )
            if release != "0.19.1":
                numbers = {**_TWO, **_CAPPED}
                yield walk(f"{policy}, diffusion", 40, policy=policy, numbers=numbers, without=resets, diffusion=True)
            yield walk(f"{policy}, encoder-decoder", 100, policy=policy, numbers=_TWO, encoder_decoder=True)


def _corners(release: str, profile: str) -> Walk:
    corners = tuple(corner for since, corner in CORNERS if since <= release)
    configuration = Configuration(profile=profile, numbers=_MANY)
    return Walk(release=release, about="corners", configuration=configuration, runs=len(corners), corners=corners)


WALKS: Mapping[str, Walk] = {walk.name: walk for walk in _walks()}
"""By name, in the order in which a model is held to them."""


# --- taking one -------------------------------------------------------------------------------------------------------


def recorded(walk: Walk, pair: PairModel, most: int | None = None) -> tuple[str, ...]:
    """What the release shows in the walk's runs, or in the first `most` of them; `pair` is both side by side. Of each
    run a digest, and after an @ how many draws it has if the release failed then. Raises `BadModel` where they differ:
    there is nothing to hold a model to."""
    return tuple(map(str, _Taker(walk, pair).runs(([None] * walk.runs)[:most])))


def departure(walk: Walk, seen: Sequence[str]) -> str:
    """The first run in which the model of the walk's profile does not show what the release did (`seen`); "": none."""
    counts = [int(each.partition("@")[2]) if "@" in each else None for each in seen]
    for number, run in enumerate(_Taker(walk).runs(counts)):
        if str(run) != seen[number]:
            return f"run {number} of {walk.name} is not what the release showed"
    return ""


class _Run(NamedTuple):
    digest: str
    draws: int | None
    """Of a run that does not go on to its end; None: it does."""

    def __str__(self) -> str:
        return self.digest if self.draws is None else f"{self.digest}@{self.draws}"


class _Taker:
    """Takes the runs of a walk, with the model alone or with the release beside it."""

    def __init__(self, walk: Walk, pair: PairModel | None = None) -> None:
        self.walk = walk
        world = walk.world()
        self.alone = SchedulerModel(world, walk.scope())
        self.pair = pair
        self.held_first = world.switches.held_first == 1
        self.items_known = world.switches.item_references == 1

    def runs(self, counts: Sequence[int | None]) -> Iterator[_Run]:
        """One after the other; of each as many draws as it has, or so many."""
        seeds = random.Random(self.walk.name)
        table = self.alone.setup_table
        draw = Drawer(self.pair or self.alone, seeds)
        for corner, count in zip(self.walk.corners, counts, strict=False):
            yield self._run(corner.setup, _Told(corner), count)
        for count in () if self.walk.corners else counts:
            draw.choose = random.Random(seeds.random())  # what happens in a run changes nothing of the next one
            numbers = {name: drawn(span, draw.choose) for name, span in table.items()}
            yield self._run(self.alone.initial_state(numbers).setup, draw, count)

    def _run(self, setup: Setup, draw: Callable[[Any], Action | None], count: int | None) -> _Run:
        state: Any = initial_state(setup) if self.pair is None else self.pair.begin(setup)
        digest = blake2b(self._shown(state), digest_size=_SIZE)
        draws = taken = idle = 0
        while draws != count and taken < RUN_LENGTH and idle < IDLE and self.alone.within(_of_model(state)):
            action = draw(state)
            if action is None:
                break
            after = (self.pair or self.alone).next_state(state, action)
            if isinstance(after, Pair) and after.differs:
                raise BadModel(f"{self.walk.name}: profile and release differ: {after.differs[0]}.")
            if isinstance(after, Pair) and after.real.failure is not None:
                count = draws  # as foretold
                break
            draws += 1
            digest.update(json.dumps((action.name, action.arguments)).encode())
            if isinstance(after, Refusal):
                idle += 1
                digest.update(after.reason.encode())
                continue
            idle, taken, state = 0, taken + 1, after
            digest.update(self._shown(state))
        return _Run(digest.hexdigest(), count)

    def _shown(self, state: Any) -> bytes:
        """The observables: of the release, where it is there."""
        seen = state.real if isinstance(state, Pair) else state
        values = [value for _, value in observables(seen, self.held_first, self.items_known)]
        return json.dumps(values).encode()


class _Told:
    """The actions of a corner, in the place of drawn ones."""

    def __init__(self, corner: Corner) -> None:
        self.left = list(corner.actions)

    def __call__(self, _state: Any) -> Action | None:
        return self.left.pop(0) if self.left else None


def _of_model(state: Any) -> State:
    return state.model if isinstance(state, Pair) else state
