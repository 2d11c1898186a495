"""The abstract scheduler as a model for every engine: its actions, the transition function, the fair run.

Theory of operation
-------------------
One pass is atomic. Executing a step and processing its output are one action unless `World.split` asks for two:
the worker reads only its shelf, which only executed steps change, so nothing that happens between the two makes a
difference to either; with A1 relaxed, where evictions reach the shelf out of order, executing late sees every one of
them. Every action is total: arguments are clamped into their range, and what makes no sense here is refused by name.

Requests arrive in the order of their numbers unless `World.any_arrival` asks for any order. Under first-come service
the order of arrival alone tells requests apart, so an order left out is, the requests being renamed, the order of the
numbers in the setup that has them the other way round. Under the priority policy equals go by their numbers, whoever
came first: there the two are not the same.

The environment is arbitrary: strangers (requests outside the model) take slots (`occupy`), push idle entries out
(`evict`) and take KV blocks in a pass of their own (`preempt`); blocks run short in a pass (`schedule`'s `short_at`);
prefix-cache hits of any length come and go (`resume`'s `kept`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from .batch import most_drafts, overtake, preempt_between, run_pass
from .book import empty_book
from .contract import Action, ActionTable, Argument, Choice, Property, Range, Refusal
from .lifetime import Counters
from .output import finish_request, process, with_request
from .setup import Scope, Setup, clamp, request_name, request_number
from .state import ABSENT, FINISHED, RUNNING, WAITING, Request, State
from .worker import execute
from .world import World

__all__ = ["ALL_ACCEPTED", "SchedulerModel", "initial_state", "most_accepted"]

_NONE = "none"


ALL_ACCEPTED = 1 << 30
"""More drafts than any step carries."""


def most_accepted(state: State, action: Action) -> int | None:
    """How many drafts each part of the oldest step has accepted at most by `accept` or `reject`; None where there is
    no draft to reject."""
    if action.name == "accept":
        return ALL_ACCEPTED
    drafts = max((part.drafts for part in state.steps[0].parts if part.sampled == 1), default=0)
    return None if drafts == 0 else clamp(action.get("accepted", 0), 0, drafts - 1)


def initial_state(setup: Setup) -> State:
    """Nothing has arrived, the cache is empty, the pipeline too."""
    return State(
        setup=setup,
        requests=tuple(Request(ABSENT, Counters(0, 0, 0, 0, 0)) for _ in setup.requests),
        running=(),
        waiting=(),
        book=empty_book(setup.slots),
        steps=(),
        shelf=(),
    )


class SchedulerModel:
    """A scheduler (`world`) over the setups of a scope, with the properties that an engine is to judge."""

    def __init__(self, world: World, scope: Scope, properties: Sequence[Property[State]] = ()) -> None:
        self.world = world
        self.scope = scope
        self._properties = tuple(properties)
        self._names = tuple(request_name(number) for number in range(scope.requests))

    # --- the five functions ---------------------------------------------------------------------------------

    def initial_states(self) -> Iterable[State]:
        """The state of the scope's lowest numbers; engines that vary the numbers use `initial_state`."""
        return (self.initial_state({}),)

    def properties(self) -> Sequence[Property[State]]:
        """The properties given to the constructor."""
        return self._properties

    def within(self, state: State) -> bool:
        """Every state belongs to the model; after a miss the engine is dead and nothing is enabled."""
        return not state.misses

    def actions(self, state: State) -> Iterator[Action]:
        """Every action that is worth trying, with every argument that can make a difference."""
        if state.misses:
            return
        for number, request in enumerate(state.requests):
            name = self._names[number]
            if request.status == ABSENT:
                yield Action.of("arrive", request=name)
                if not self.world.any_arrival:
                    break
        yield from self._passes(state)
        if state.steps:
            yield from self._outputs(state)
        for number, request in enumerate(state.requests):
            name = self._names[number]
            if request.status == RUNNING:
                if request.decoding == 1:
                    for drafts in range(most_drafts(self.world, state.setup) + 1):
                        if drafts != request.drafts:
                            yield Action.of("speculate", request=name, drafts=drafts)
                if self._open("preempt"):
                    yield Action.of("preempt", request=name)
                yield Action.of("finish", request=name)
            if request.status in (RUNNING, WAITING) and self._open("abort"):
                yield Action.of("abort", request=name)
        for count in range(1, len(state.book.idle) + 1):
            yield Action.of("evict", count=count)
        for slots in range(min(state.setup.strangers, state.book.reclaimable + state.book.strangers) + 1):
            if slots != state.book.strangers:
                yield Action.of("occupy", slots=slots)

    def next_state(self, state: State, action: Action) -> State | Refusal:
        """The state after the action, or the named reason why it is not taken."""
        if state.misses:
            return Refusal("engine-dead")
        handler = _HANDLERS.get(action.name)
        if handler is None:
            return Refusal("unknown-action")
        return handler(self, state, action)

    # --- optional parts of the contract ---------------------------------------------------------------------

    @property
    def action_table(self) -> ActionTable:
        """Action -> argument -> range, from which the machine's rules are generated."""
        scope = self.scope
        one = {"request": Choice(self._names)}
        table: dict[str, dict[str, Range | Choice]] = {"arrive": dict(one)}
        schedule: dict[str, Range | Choice] = {}
        if self._open("preempt"):
            schedule["short_at"] = Choice((*[_NONE] * 3 * len(self._names), *self._names))
        if "A4" in self.world.relaxed:
            schedule["omit"] = Choice((_NONE, *self._keys()))
        table["schedule"] = schedule
        output: dict[str, Range | Choice] = {}
        if self.world.reader == "any":
            output["back"] = Range(0, scope.depth.high * (self.world.base + scope.drafts.high))
        if self.world.split:
            table["execute"] = dict(output)
            output = {}
        table["accept"] = dict(output)
        if scope.drafts.high > 0:
            table["reject"] = {"accepted": Range(0, max(0, scope.drafts.high - 1)), **output}
            table["speculate"] = {**one, "drafts": Range(0, scope.drafts.high)}
        table["resume"] = {**one, "kept": Range(0, self._longest())}
        table["evict"] = {"count": Range(1, max(1, scope.requests * scope.items.high))}
        if scope.strangers.high > 0:
            table["occupy"] = {"slots": Range(0, scope.strangers.high)}
        if self._open("preempt"):
            table["preempt"] = dict(one)
        table["finish"] = dict(one)
        if self._open("abort"):
            table["abort"] = dict(one)
        return table

    @property
    def action_weights(self) -> Mapping[str, int]:
        """How often an action is drawn against the others: what carries a run on, more often than what ends it."""
        return {"schedule": 4, "accept": 2, "reject": 3, "evict": 2}

    @property
    def setup_table(self) -> Mapping[str, Range | Choice]:
        """The numbers of a setup, drawn by the machine."""
        return self.scope.table()

    def initial_state(self, arguments: Mapping[str, Argument]) -> State:
        """The initial state of the setup with these numbers, clamped into the scope."""
        setup = self.scope.setup(arguments)
        if not self._open("look-ahead"):
            setup = setup._replace(look_ahead=0)
        return initial_state(setup)

    def fair_action(self, state: State) -> Action | None:
        """Nobody gets in the way any more: strangers leave, passes are made while they change anything, outputs are
        accepted. None: all is done, or stuck."""
        if state.misses or all(request.status in (ABSENT, FINISHED) for request in state.requests):
            return None
        if state.book.strangers > 0:
            return Action.of("occupy", slots=0)
        schedule = Action.of("schedule")
        if not isinstance(self.next_state(state, schedule), Refusal):
            return schedule
        if not state.steps:
            return None
        if self.world.split and state.steps[0].executed == 0:
            return Action.of("execute")
        return Action.of("accept")

    def fair_bound(self, state: State) -> int:
        """Actions within which the fair run must end: a pass and an output per token that is left, and the steps in
        flight. A preempted request computes everything again."""
        tokens = sum(asked.prompt + 2 * asked.outputs for asked in state.setup.requests)
        return 4 * tokens + 2 * len(state.steps) + 8

    # --- helpers ------------------------------------------------------------------------------------------------

    def _open(self, route: str) -> bool:
        return route not in self.world.closed

    def _keys(self) -> tuple[str, ...]:
        items = self.scope.requests * self.scope.items.high
        return tuple(f"k{number}" for number in range(items))

    def _longest(self) -> int:
        table = self.setup_table
        spans = [span.high for name, span in table.items() if isinstance(span, Range) and name.startswith("r0_")]
        base = self.scope.base or {}
        return max(sum(spans), sum(number for name, number in base.items() if name.startswith("r0_")))

    def _passes(self, state: State) -> Iterator[Action]:
        omits = [_NONE]
        if "A4" in self.world.relaxed and state.omitted == 0:
            omits += [item.key for asked in state.setup.requests for item in asked.items]
        for omit in omits:
            extra = {} if omit == _NONE else {"omit": omit}
            yield Action.of("schedule", **extra)
            if self._open("preempt"):
                for number, request in enumerate(state.requests):
                    if request.status in (RUNNING, WAITING):
                        yield Action.of("schedule", short_at=self._names[number], **extra)
        for number in state.waiting:
            for kept in range(1, state.requests[number].counters.known):
                yield Action.of("resume", request=self._names[number], kept=kept)

    def _outputs(self, state: State) -> Iterator[Action]:
        step = next((step for step in state.steps if step.executed == 0), state.steps[0])
        reach = max((part.start - part.lowest for part in step.parts), default=0)
        backs = range(reach + 1) if self.world.reader == "any" else range(1)
        extras = [{"back": back} if back else {} for back in backs]
        if self.world.split:
            if step.executed == 0:
                for extra in extras:
                    yield Action.of("execute", **extra)
            if state.steps[0].executed == 0:
                return
            extras = [{}]
        for extra in extras:
            yield Action.of("accept", **extra)
        drafts = max((part.drafts for part in state.steps[0].parts if part.sampled == 1), default=0)
        for accepted in range(drafts):
            for extra in extras:
                yield Action.of("reject", accepted=accepted, **extra)

    def _subject(self, state: State, action: Action) -> int | None:
        return request_number(action.get("request", _NONE), len(state.requests))

    # --- one handler per action -----------------------------------------------------------------------------

    def _arrive(self, state: State, action: Action) -> State | Refusal:
        number = self._subject(state, action)
        if number is None:
            return Refusal("unknown-request")
        if state.requests[number].status != ABSENT:
            return Refusal("already-arrived")
        if number > 0 and state.requests[number - 1].status == ABSENT and not self.world.any_arrival:
            return Refusal("not-its-turn")
        asked, setup = state.setup.requests[number], state.setup
        for item in asked.items:
            whole = setup.whole_items == 1 and item.length > setup.step_limit
            if item.size > setup.slots or item.size > setup.encode_limit or whole:
                return Refusal("never-fits")
        request = Request(WAITING, Counters(0, 0, 0, 0, asked.prompt))
        return with_request(state, number, request)._replace(waiting=(*state.waiting, number))

    def _schedule(self, state: State, action: Action) -> State | Refusal:
        short_at = None
        if self._open("preempt"):
            short_at = request_number(action.get("short_at", _NONE), len(state.requests))
        return run_pass(self.world, state, short_at, None, 0, self._omit(action))

    def _resume(self, state: State, action: Action) -> State | Refusal:
        number = self._subject(state, action)
        if number is None or state.requests[number].status != WAITING:
            return Refusal("not-waiting")
        kept = clamp(action.get("kept", 0), 0, state.requests[number].counters.known - 1)
        return run_pass(self.world, state, None, number, kept, self._omit(action))

    def _omit(self, action: Action) -> str | None:
        omit = action.get("omit", _NONE) if "A4" in self.world.relaxed else _NONE
        return str(omit) if omit != _NONE else None

    def _execute(self, state: State, action: Action) -> State | Refusal:
        if not self.world.split:
            return Refusal("merged-with-output")
        at = next((index for index, step in enumerate(state.steps) if step.executed == 0), None)
        if at is None:
            return Refusal("nothing-to-execute")
        if self.world.reader == "true" and self._awaits_outcome(state, at):
            return Refusal("needs-earlier-outcome")
        return execute(self.world, state, clamp(action.get("back", 0), 0, 1 << 30))

    def _awaits_outcome(self, state: State, at: int) -> bool:
        """Whether the true start of step `at` depends on drafts whose fate the next `reject` will choose."""
        mine = {part.request for part in state.steps[at].parts if part.live == 1}
        return any(
            part.request in mine and part.live == 1 and part.drafts > 0 and part.sampled == 1
            for step in state.steps[:at]
            for part in step.parts
        )

    def _accept(self, state: State, action: Action) -> State | Refusal:
        return self._process(state, action, ALL_ACCEPTED)

    def _reject(self, state: State, action: Action) -> State | Refusal:
        if not state.steps:
            return Refusal("pipeline-empty")
        most = most_accepted(state, action)
        if most is None:
            return Refusal("nothing-to-reject")
        return self._process(state, action, most)

    def _process(self, state: State, action: Action, accepted: int) -> State | Refusal:
        if not state.steps:
            return Refusal("pipeline-empty")
        if state.steps[0].executed == 0:
            if self.world.split:
                return Refusal("not-executed")
            state = execute(self.world, state, clamp(action.get("back", 0), 0, 1 << 30))
            if state.misses:
                return state
        return process(self.world, state, accepted)

    def _speculate(self, state: State, action: Action) -> State | Refusal:
        number = self._subject(state, action)
        if number is None or state.requests[number].status != RUNNING:
            return Refusal("not-running")
        request = state.requests[number]
        if request.decoding == 0:
            return Refusal("still-prefilling")
        drafts = clamp(action.get("drafts", 0), 0, most_drafts(self.world, state.setup))
        if drafts == request.drafts:
            return Refusal("no-change")
        return with_request(state, number, request._replace(drafts=drafts))

    def _preempt(self, state: State, action: Action) -> State | Refusal:
        if not self._open("preempt"):
            return Refusal("route-closed")
        number = self._subject(state, action)
        if number is None or state.requests[number].status != RUNNING:
            return Refusal("not-running")
        return preempt_between(self.world, state, number)

    def _finish(self, state: State, action: Action) -> State | Refusal:
        number = self._subject(state, action)
        if number is None or state.requests[number].status != RUNNING:
            return Refusal("not-running")
        if state.requests[number].counters.known <= state.setup.requests[number].prompt:
            return Refusal("no-output-yet")
        return finish_request(self.world, state, number)

    def _abort(self, state: State, action: Action) -> State | Refusal:
        if not self._open("abort"):
            return Refusal("route-closed")
        number = self._subject(state, action)
        if number is None or state.requests[number].status not in (RUNNING, WAITING):
            return Refusal("not-there")
        return finish_request(self.world, state, number)

    def _evict(self, state: State, action: Action) -> State | Refusal:
        if not state.book.idle:
            return Refusal("nothing-idle")
        book = state.book
        for _ in range(clamp(action.get("count", 1), 1, len(book.idle))):
            book = self.world.rules.evict_oldest(self.world, book)
        return state._replace(book=book, shelf=overtake(self.world, book, state.shelf))

    def _occupy(self, state: State, action: Action) -> State | Refusal:
        book = state.book
        most = min(state.setup.strangers, book.reclaimable + book.strangers)
        more = clamp(action.get("slots", 0), 0, most) - book.strangers
        if more == 0:
            return Refusal("no-change")
        while book.free < more and book.idle:
            book = self.world.rules.evict_oldest(self.world, book)
        book = book._replace(
            free=book.free - more, reclaimable=book.reclaimable - more, strangers=book.strangers + more
        )
        return state._replace(book=book, shelf=overtake(self.world, book, state.shelf))


_HANDLERS = {
    "arrive": SchedulerModel._arrive,
    "speculate": SchedulerModel._speculate,
    "schedule": SchedulerModel._schedule,
    "preempt": SchedulerModel._preempt,
    "resume": SchedulerModel._resume,
    "evict": SchedulerModel._evict,
    "occupy": SchedulerModel._occupy,
    "execute": SchedulerModel._execute,
    "accept": SchedulerModel._accept,
    "reject": SchedulerModel._reject,
    "finish": SchedulerModel._finish,
    "abort": SchedulerModel._abort,
}
