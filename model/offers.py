"""Which actions are worth trying in a state, with which arguments; and the ranges from which arguments are drawn.

Belongs here: what the explorer enumerates (`offered`), what the machine's rules are generated from (`table_of`), and
which prefixes an action says are found (`hits_of`).
What an action does, and when it is refused, is in `scheduler`.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType

from .batch import most_drafts, run_pass
from .contract import Action, Argument, Choice, Range, Refusal
from .routes import failing_part, has_more_turns
from .setup import Scope, clamp, request_name, request_number
from .state import ABSENT, PAUSED, RUNNING, WAITING, State
from .world import World

__all__ = ["DETOURS", "HIT", "NONE", "WEIGHTS", "PlainPass", "hits_of", "offered", "table_of"]

NONE = "none"

HIT = "hit_"
"""Arguments of a pass that begin so, `hit_r0`, are what a real prefix cache answered when that request was looked up.
No engine draws them: they stand in traces of a scheduler that has one."""

WEIGHTS: Mapping[str, int] = MappingProxyType(
    {
        "arrive": 3,
        "schedule": 6,
        "accept": 3,
        "reject": 9,
        "resume": 5,
        "preempt": 2,
        "reset_prefix_cache": 4,
        "reset_encoder_cache": 2,
        "fail_kv_load": 5,
        "continue_session": 3,
    }
)
"""How often the machine draws an action against the others: what carries a run on, more often than what ends it."""

_SETBACKS = ("reset_prefix_cache", "fail_kv_load", "continue_session")
DETOURS = tuple((setback, "schedule", "reject") for setback in _SETBACKS)
"""What may come between a step with drafts and their rejection: its request is set back, and is scheduled again beside
the output that is to come. Three draws in a row seldom do that just there."""


class PlainPass:
    """The last pass without arguments, kept for those who ask for the same one again: whether there is one (the fair
    run), whom it serves (the offers), what comes of it (the transition)."""

    __slots__ = ("_after", "_state", "_to_hand_out", "_world")

    def __init__(self) -> None:
        self._world: World | None = None
        self._state: State | None = None
        self._after: State | Refusal | None = None
        self._to_hand_out = False

    def look(self, world: World, state: State) -> State | Refusal:
        """What comes of it, for who only wants to know."""
        after = self._after
        if after is None or self._state is not state or self._world is not world:
            after = self.take(world, state)
            self._to_hand_out = True
        return after

    def take(self, world: World, state: State) -> State | Refusal:
        """What comes of it, as a transition. Each answer is handed out once and then made anew, so that a rule that
        answers the same question in two ways is found out."""
        after = self._after
        if self._to_hand_out and after is not None and self._state is state and self._world is world:
            self._to_hand_out = False
            return after
        self._after, self._to_hand_out = None, False
        after = run_pass(world, state)
        self._world, self._state, self._after = world, state, after
        return after

    def looked(self, state: State) -> None:
        """Who took it only wanted to know: it may be handed out to who takes it next."""
        self._to_hand_out = self._state is state


@lru_cache(maxsize=10_000)
def _action(name: str, *arguments: tuple[str, Argument]) -> Action:
    """The action, made once: the same few are offered again and again."""
    return Action(name, arguments)


def offered(world: World, state: State, plain: PlainPass | None = None) -> Iterator[Action]:
    """Every action that is worth trying, with every argument that can make a difference, in a fixed order. `plain` may
    know the state's plain pass already."""
    for number, request in enumerate(state.requests):
        if request.status == ABSENT:
            yield _action("arrive", ("request", request_name(number)))
            if not world.any_arrival:
                break
    yield from _passes(world, state, PlainPass() if plain is None else plain)
    if state.steps:
        yield from _outputs(world, state)
    for number in range(len(state.requests)):
        yield from _of_request(world, state, number)
    for count in range(1, len(state.book.idle) + 1):
        yield _action("evict", ("count", count))
    for slots in range(min(state.setup.strangers, state.book.reclaimable + state.book.strangers) + 1):
        if slots != state.book.strangers:
            yield _action("occupy", ("slots", slots))
    if state.running and world.opens("reset-prefix-cache", state.setup):
        yield _action("reset_prefix_cache")
    if (state.book.entries or state.book.evicted or state.book.due) and world.opens("reset-encoder-cache", state.setup):
        yield _action("reset_encoder_cache")


def _of_request(world: World, state: State, number: int) -> Iterator[Action]:
    request, name = state.requests[number], request_name(number)
    if request.status == RUNNING:
        if request.decoding == 1 and state.setup.diffusion == 0:
            for drafts in range(most_drafts(world, state.setup) + 1):
                if drafts != request.drafts:
                    yield _action("speculate", ("request", name), ("drafts", drafts))
        if world.opens("preempt", state.setup):
            yield _action("preempt", ("request", name))
        yield _action("finish", ("request", name))
        part = failing_part(state, number) if world.opens("kv-load-failure", state.setup) else None
        if part is not None:
            for valid in range(part.start):
                yield _action("fail_kv_load", ("request", name), ("valid", valid))
    if request.status in (RUNNING, WAITING, PAUSED) and world.opens("abort", state.setup):
        yield _action("abort", ("request", name))
    if request.status == PAUSED and has_more_turns(state, number):
        yield _action("continue_session", ("request", name))


def _passes(world: World, state: State, plain: PlainPass) -> Iterator[Action]:
    served = _served(world, state, plain) if world.opens("preempt", state.setup) else []
    omits = [NONE]
    if "A4" in world.relaxed and state.omitted == 0:
        omits += [item.key for asked in state.setup.requests for item in asked.items]
    for omit in omits:
        extra = () if omit == NONE else (("omit", omit),)
        yield _action("schedule", *extra)
        for number in served:
            yield _action("schedule", ("short_at", request_name(number)), *extra)
    for number in state.waiting:
        counters = state.requests[number].counters
        if counters.computed > 0 or state.setup.encoder_decoder == 1:
            continue  # a session that goes on holds its blocks; encoder-decoder models cache no prefix
        for kept in range(1, counters.known):
            yield _action("resume", ("request", request_name(number)), ("kept", kept))


def _served(world: World, state: State, plain: PlainPass) -> list[int]:
    """The requests to which a pass comes that is short of nothing, in order: up to the one at which blocks run short a
    pass goes the same way, so at any other they cannot."""
    try:
        after = plain.look(world, state)
    except Exception:  # of a user's rule: the pass itself, which is offered, says where and why
        return []
    if isinstance(after, Refusal):
        return []
    return sorted(part.request for part in after.steps[-1].parts)


def _outputs(world: World, state: State) -> Iterator[Action]:
    step = next((step for step in state.steps if step.executed == 0), state.steps[0])
    reach = max((part.start - part.lowest for part in step.parts), default=0)
    backs = range(reach + 1) if world.reader == "any" else range(1)
    extras: list[tuple[tuple[str, int], ...]] = [(("back", back),) if back else () for back in backs]
    if world.split:
        if step.executed == 0:
            for extra in extras:
                yield _action("execute", *extra)
        if state.steps[0].executed == 0:
            return
        extras = [()]
    for extra in extras:
        yield _action("accept", *extra)
    drafts = max((part.drafts for part in state.steps[0].parts if part.sampled == 1), default=0)
    for accepted in range(drafts):
        for extra in extras:
            yield _action("reject", ("accepted", accepted), *extra)


def table_of(world: World, scope: Scope) -> dict[str, dict[str, Range | Choice]]:
    """Action -> argument -> range, from which the machine's rules are generated."""
    names = tuple(request_name(number) for number in range(scope.requests))
    one: dict[str, Range | Choice] = {"request": Choice(names)}
    table: dict[str, dict[str, Range | Choice]] = {"arrive": dict(one)}
    schedule: dict[str, Range | Choice] = {}
    if world.opens("preempt"):
        schedule["short_at"] = Choice((*[NONE] * len(names), *names))
    if "A4" in world.relaxed:
        keys = (scope.items.high + max(0, scope.turns.high - 1)) * scope.requests
        schedule["omit"] = Choice((NONE, *(f"k{number}" for number in range(keys))))
    table["schedule"] = schedule
    output: dict[str, Range | Choice] = {}
    if world.reader == "any":
        output["back"] = Range(0, scope.depth.high * (1 + scope.drafts.high))
    if world.split:
        table["execute"] = dict(output)
        output = {}
    table["accept"] = dict(output)
    if scope.drafts.high > 0:
        table["reject"] = {"accepted": Range(0, max(0, scope.drafts.high - 1)), **output}
        table["speculate"] = {**one, "drafts": Range(0, scope.drafts.high)}
    # Larger ones are clamped, so most draws would be the largest; a chunk's length is what matters.
    longest = _longest(scope) // 5
    table["resume"] = {**one, "kept": Range(0, longest)}
    table["evict"] = {"count": Range(1, max(1, scope.requests * scope.items.high))}
    if scope.strangers.high > 0:
        table["occupy"] = {"slots": Range(0, scope.strangers.high)}
    if world.opens("preempt"):
        table["preempt"] = dict(one)
    table["finish"] = dict(one)
    if world.opens("abort"):
        table["abort"] = dict(one)
    if world.opens("reset-prefix-cache"):
        table["reset_prefix_cache"] = {}
    if world.opens("reset-encoder-cache"):
        table["reset_encoder_cache"] = {}
    if world.opens("kv-load-failure"):
        table["fail_kv_load"] = {**one, "valid": Range(0, longest)}
    if world.opens("sessions") and scope.turns.high > 1:
        table["continue_session"] = dict(one)
    return table


def _longest(scope: Scope) -> int:
    """At least the most tokens that a request of the scope can know."""
    table = scope.table()
    spans = [span.high for name, span in table.items() if isinstance(span, Range) and name.startswith("r0_")]
    base = scope.base or {}
    return max(sum(spans), sum(number for name, number in base.items() if name.startswith("r0_")))


def hits_of(state: State, action: Action, first: int | None = None) -> Mapping[int, int]:
    """How many positions of whose prefix the action says are found: `kept` of the request `first`, and what a real
    prefix cache answered. Never a request's last token, and nothing for encoder-decoder models."""
    hits = {} if first is None else {first: action.get("kept", 0)}
    for name, value in action.arguments:
        number = request_number(name[len(HIT) :], len(state.requests)) if name.startswith(HIT) else None
        if number is not None:
            hits[number] = value
    if state.setup.encoder_decoder == 1:
        return {}
    return {number: clamp(hit, 0, state.requests[number].counters.known - 1) for number, hit in hits.items()}
