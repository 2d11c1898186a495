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
prefix-cache hits of any length come and go (`resume`'s `kept`; in traces of a scheduler with a prefix cache of its own
`hit_r0`, for any request that a pass looks up).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from .batch import most_drafts, overtake, preempt_between, run_pass
from .book import empty_book
from .contract import Action, ActionTable, Argument, Choice, Property, Range, Refusal
from .lifetime import Counters, confirmed
from .offers import DETOURS, NONE, WEIGHTS, PlainPass, hits_of, offered, table_of
from .output import ALL_ACCEPTED, finish_request, most_accepted, process, stop, with_request
from .routes import continue_session, failing_part, has_more_turns, reset_encoder_cache, reset_prefix_cache
from .setup import Item, Scope, Setup, clamp, request_name, request_number
from .state import ABSENT, FINISHED, PAUSED, RUNNING, WAITING, Request, State
from .worker import execute
from .world import World

__all__ = ["ALL_ACCEPTED", "OUTPUTS", "SchedulerModel", "initial_state", "most_accepted"]

_SCHEDULE, _ACCEPT = Action.of("schedule"), Action.of("accept")
OUTPUTS = frozenset({"accept", "reject", "fail_kv_load"})
"""The actions that process the oldest step."""


def never_fits(setup: Setup, items: Iterable[Item]) -> bool:
    """Whether one of the items can never be encoded: too large for the cache, the encoder budget, or, where it may not
    be chunked, the step. Encoder-decoder models encode all at once."""
    sizes = [item.size for item in items]
    if setup.encoder_decoder == 1:
        sizes = [sum(sizes)]
    if any(size > setup.slots or size > setup.encode_limit for size in sizes):
        return True
    whole = setup.whole_items == 1 and setup.encoder_decoder == 0
    return whole and any(item.length > setup.step_limit for item in items)


def two_sizes(setup: Setup) -> bool:
    """Whether a key has two sizes. Refused from 0.31.0; before, the book's capacity drifted by the difference (not
    modelled)."""
    items = [item for asked in setup.requests for item in asked.items]
    items += [item for asked in setup.requests for turn in asked.turns for item in turn.items]
    return len({(item.key, item.size) for item in items}) > len({item.key for item in items})


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
        self.action_detours = DETOURS
        self._plain = PlainPass()
        self._begun: dict[Argument, State | None] = dict.fromkeys([name for name, _ in scope.presets])
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
        """After a miss the engine is dead and nothing is enabled. Where the book counts more free slots than there are,
        as released encoder-decoder managers come to do, it would go on counting without end."""
        return not state.misses and state.book.free <= state.setup.slots

    def actions(self, state: State) -> Iterator[Action]:
        """Every action that is worth trying, with every argument that can make a difference."""
        if state.misses:
            return iter(())
        return offered(self.world, state, self._plain)

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
        return table_of(self.world, self.scope)

    @property
    def action_weights(self) -> Mapping[str, int]:
        """How often an action is drawn against the others: what carries a run on, more often than what ends it."""
        return WEIGHTS

    @property
    def setup_table(self) -> Mapping[str, Range | Choice]:
        """The numbers of a setup, drawn by the machine."""
        return self.scope.table()

    def settled(self, arguments: Mapping[str, Argument]) -> Mapping[str, Argument]:
        """The same setup with every number written out, where a preset was drawn."""
        return {name: value for name, value in self.scope.settled(arguments).items() if name in self.setup_table}

    def initial_state(self, arguments: Mapping[str, Argument]) -> State:
        """The initial state of the setup with these numbers, clamped into the scope; of a preset it is made once."""
        preset = arguments.get("preset", NONE)
        begun = self._begun.get(preset)
        if begun is not None:
            return begun
        setup = self.scope.setup(arguments)
        if not self.world.opens("look-ahead", setup):
            setup = setup._replace(look_ahead=0)
        if self.world.policy != "both":
            setup = setup._replace(by_priority=int(self.world.policy == "priority"))
        begun = initial_state(setup)
        if preset in self._begun:
            self._begun[preset] = begun
        return begun

    def fair_action(self, state: State) -> Action | None:
        """Nobody gets in the way any more: strangers leave, passes are made while they change anything, outputs are
        accepted. None: all is done, or stuck."""
        if state.misses or all(request.status in (ABSENT, FINISHED) for request in state.requests):
            return None
        if state.book.strangers > 0:
            return Action.of("occupy", slots=0)
        after = self.next_state(state, _SCHEDULE)
        self._plain.looked(state)
        if not isinstance(after, Refusal):
            return _SCHEDULE
        if not state.steps:
            return self._next_turn(state)
        if self.world.split and state.steps[0].executed == 0:
            return Action.of("execute")
        return _ACCEPT

    def _next_turn(self, state: State) -> Action | None:
        for number, request in enumerate(state.requests):
            if request.status == PAUSED:
                action = Action.of("continue_session", request=self._names[number])
                if not isinstance(self.next_state(state, action), Refusal):
                    return action
        return None

    def fair_bound(self, state: State) -> int:
        """Actions within which the fair run must end: a pass and an output per token that is left, and the steps in
        flight. A preempted request computes everything again."""
        tokens = sum(asked.prompt + 2 * asked.outputs for asked in state.setup.requests)
        tokens += sum(turn.prompt + 2 * turn.outputs for asked in state.setup.requests for turn in asked.turns)
        return 4 * tokens + 2 * len(state.steps) + 8

    # --- helpers ------------------------------------------------------------------------------------------------

    def _subject(self, state: State, action: Action) -> int | None:
        return request_number(action.get("request", NONE), len(state.requests))

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
        if never_fits(setup, asked.items) or any(never_fits(setup, turn.items) for turn in asked.turns):
            return Refusal("never-fits")
        if two_sizes(setup):
            return Refusal("key-with-two-sizes")
        if setup.diffusion == 1 and (self.world.switches.diffusion == 0 or most_drafts(self.world, setup) == 0):
            return Refusal("never-samples")
        if setup.encoder_decoder == 1 and self.world.switches.encoder_decoder == 0:
            return Refusal("no-encoder-decoder-models")
        request = Request(WAITING, Counters(0, 0, 0, 0, asked.prompt))
        return with_request(state, number, request)._replace(waiting=(*state.waiting, number))

    def _schedule(self, state: State, action: Action) -> State | Refusal:
        if not action.arguments:
            return self._plain.take(self.world, state)
        short_at = None
        if self.world.opens("preempt", state.setup):
            short_at = request_number(action.get("short_at", NONE), len(state.requests))
        return run_pass(self.world, state, short_at, None, hits_of(state, action), self._omit(action))

    def _resume(self, state: State, action: Action) -> State | Refusal:
        number = self._subject(state, action)
        if number is None or state.requests[number].status != WAITING:
            return Refusal("not-waiting")
        return run_pass(self.world, state, None, number, hits_of(state, action, number), self._omit(action))

    def _omit(self, action: Action) -> str | None:
        omit = action.get("omit", NONE) if "A4" in self.world.relaxed else NONE
        return str(omit) if omit != NONE else None

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

    def _process(
        self, state: State, action: Action, accepted: int, failed: tuple[int, int] | None = None
    ) -> State | Refusal:
        if not state.steps:
            return Refusal("pipeline-empty")
        if state.steps[0].executed == 0:
            if self.world.split:
                return Refusal("not-executed")
            state = execute(self.world, state, clamp(action.get("back", 0), 0, 1 << 30))
            if state.misses:
                return state
        return process(self.world, state, accepted, failed)

    def _speculate(self, state: State, action: Action) -> State | Refusal:
        number = self._subject(state, action)
        if number is None or state.requests[number].status != RUNNING:
            return Refusal("not-running")
        request = state.requests[number]
        if state.setup.diffusion == 1:
            return Refusal("drafts-are-fixed")
        if request.decoding == 0:
            return Refusal("still-prefilling")
        drafts = clamp(action.get("drafts", 0), 0, most_drafts(self.world, state.setup))
        if drafts == request.drafts:
            return Refusal("no-change")
        return with_request(state, number, request._replace(drafts=drafts))

    def _preempt(self, state: State, action: Action) -> State | Refusal:
        if not self.world.opens("preempt", state.setup):
            return Refusal("route-closed")
        number = self._subject(state, action)
        if number is None or state.requests[number].status != RUNNING:
            return Refusal("not-running")
        return preempt_between(self.world, state, number)

    def _finish(self, state: State, action: Action) -> State | Refusal:
        number = self._subject(state, action)
        if number is None or state.requests[number].status != RUNNING:
            return Refusal("not-running")
        if state.requests[number].counters.known <= self._prompt(state, number):
            return Refusal("no-output-yet")
        counters = state.requests[number].counters
        if has_more_turns(state, number) and confirmed(counters) != counters.known - state.setup.base:
            # A turn ends with an output that has just been processed: not while a prompt is computed again, and not
            # while a synchronous step is in flight.
            return Refusal("no-output-now")
        if has_more_turns(state, number) and any(
            part.request == number and part.live == 1 and part.start < confirmed(counters)
            for step in state.steps
            for part in step.parts
        ):
            return Refusal("no-output-now")  # a step is in flight that computes tokens anew which were confirmed
        return stop(self.world, state, number)

    def _prompt(self, state: State, number: int) -> int:
        """Known tokens before the first output of the present turn."""
        request, asked = state.requests[number], state.setup.requests[number]
        return asked.prompt if request.turn == 0 else request.limit - asked.turns[request.turn - 1].outputs

    def _abort(self, state: State, action: Action) -> State | Refusal:
        if not self.world.opens("abort", state.setup):
            return Refusal("route-closed")
        number = self._subject(state, action)
        if number is None or state.requests[number].status not in (RUNNING, WAITING, PAUSED):
            return Refusal("not-there")
        return finish_request(self.world, state, number)

    def _reset_prefix_cache(self, state: State, action: Action) -> State | Refusal:  # noqa: ARG002
        if not self.world.opens("reset-prefix-cache", state.setup):
            return Refusal("route-closed")
        return reset_prefix_cache(self.world, state)

    def _reset_encoder_cache(self, state: State, action: Action) -> State | Refusal:  # noqa: ARG002
        if not self.world.opens("reset-encoder-cache", state.setup):
            return Refusal("route-closed")
        return reset_encoder_cache(self.world, state)

    def _fail_kv_load(self, state: State, action: Action) -> State | Refusal:
        if not self.world.opens("kv-load-failure", state.setup):
            return Refusal("route-closed")
        number = self._subject(state, action)
        part = None if number is None else failing_part(state, number)
        if number is None or part is None:
            return Refusal("nothing-was-loaded")
        valid = clamp(action.get("valid", 0), 0, part.start - 1)
        return self._process(state, action, ALL_ACCEPTED, (number, valid))

    def _continue_session(self, state: State, action: Action) -> State | Refusal:
        if not self.world.opens("sessions", state.setup):
            return Refusal("route-closed")
        number = self._subject(state, action)
        if number is None:
            return Refusal("unknown-request")
        after = continue_session(self.world, state, number)
        if not isinstance(after, Refusal) and never_fits(after.setup, after.requests[number].extra):
            return Refusal("never-fits")
        return after

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
    "reset_prefix_cache": SchedulerModel._reset_prefix_cache,
    "reset_encoder_cache": SchedulerModel._reset_encoder_cache,
    "fail_kv_load": SchedulerModel._fail_kv_load,
    "continue_session": SchedulerModel._continue_session,
}
