"""The real vLLM scheduler as a subject: it takes the model's actions, and its objects are read as the model's state.

Theory of operation
-------------------
Every action of the model is turned into what an engine would do to the scheduler:

    arrive               `add_request`
    speculate            the request's list of draft tokens is replaced by one of that length
    schedule(short_at)   `schedule`, with `allocate_slots` saying once that there are no blocks for that request
    resume(kept)         `schedule`, with the request first in its queue and a prefix of `kept` tokens found for it
    preempt              the request is taken out of `running` and given to `_preempt_request`, then `schedule` with no
                         token to give: a stranger's pass, whose step holds nothing of ours
    evict(count)         the manager's own `can_allocate` is asked for so much room that `count` entries must go
    occupy(slots)        likewise; then the slots are taken from both of the manager's counters
    execute              the worker's twin executes the oldest step
    accept, reject       the same, then `update_from_output` with 1 + accepted tokens for each part that samples
    finish, abort        `finish_requests`

What it refuses beyond the model's own refusals: `not-on-this-subject` (an action that it does not know), and at the
start a setup that the release has no way to be (`Contradiction`).

What is not vLLM's here: the choice of the environment (above), and the worker (`twin`). Everything else that is observed
is read from the scheduler's objects and from its output objects.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

from outlives.model.contract import Action, Refusal
from outlives.model.errors import Contradiction
from outlives.model.lifetime import Counters
from outlives.model.setup import Setup, clamp, request_name, request_number
from outlives.model.state import ABSENT, FINISHED, RUNNING, WAITING, Book, Entry, Miss, Request, State

from .ledger import Ledger
from .release import Release, accepted
from .subject import Failure, Observation, failure_of
from .twin import WorkerTwin

__all__ = ["VllmSubject"]

_ANY_TOKEN = 7
_ALL = 1 << 30
_URGENT = -(1 << 40)


class VllmSubject:
    """One live scheduler of one release."""

    def __init__(self, release: Release, policy: str = "fcfs") -> None:
        self.release = release
        self.policy = policy
        self._tolerant = release.profile_version() >= (0, 24)

    # --- the protocol -----------------------------------------------------------------------------------------

    def start(self, setup: Setup) -> Observation:
        """Begin anew. Raises `Contradiction` for numbers that this release cannot have."""
        if setup.look_ahead > self.release.most_look_ahead():
            raise Contradiction(
                f"vLLM {self.release.version} knows a look-ahead of at most {self.release.most_look_ahead()}, "
                f"not of {setup.look_ahead}."
            )
        self.setup = setup
        self.count = len(setup.requests)
        self.requests: dict[int, Any] = {}
        self.strangers = 0
        self.misses: tuple[Miss, ...] = ()
        self.failure: Failure | None = None
        self.ledger = Ledger()
        self.worker = WorkerTwin(setup.look_ahead, self._tolerant)
        self._short_at: str | None = None
        self._kept: tuple[str, int] | None = None
        self.scheduler = self.release.scheduler(setup, self.policy)
        self._wrap_blocks()
        self._last = self._state()
        return Observation(self._last)

    def take(self, action: Action) -> Refusal | None:
        """Take the action; an exception of the scheduler is kept as the failure, and the action counts as taken."""
        if self.misses or self.failure is not None:
            return Refusal("engine-dead")
        handler = _HANDLERS.get(action.name)
        if handler is None:
            return Refusal("not-on-this-subject")
        try:
            refusal = handler(self, action)
            if refusal is None:
                self.ledger.orphan(self._runs)
                self._last = self._state()
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            self.failure = failure_of(error, "vllm")
            return None
        return refusal

    def observe(self) -> Observation:
        """The state after the last action; where that failed, the state before it."""
        return Observation(self._last, self.failure)

    # --- reading the real objects -------------------------------------------------------------------------------

    def _state(self) -> State:
        setup = self.setup
        requests = tuple(self._request(number) for number in range(self.count))
        number_of = self._number
        return State(
            setup=setup,
            requests=requests,
            running=tuple(number_of(request) for request in self.scheduler.running),
            waiting=tuple(number_of(request) for request in self._waiting()),
            book=self._book(),
            steps=self.ledger.steps,
            shelf=tuple(sorted(self.worker.shelf)),
            misses=self.misses,
        )

    def _request(self, number: int) -> Request:
        request = self.requests.get(number)
        if request is None:
            return Request(ABSENT, Counters(0, 0, 0, 0, 0))
        references = self._references(number, request)
        if request.is_finished():
            return Request(FINISHED, Counters(0, 0, 0, 0, 0), references=references)
        in_flight = getattr(request, "num_in_flight_tokens", None)
        stale = getattr(request, "num_stale_output_tokens", 0)
        return Request(
            status=RUNNING if self._runs(number) else WAITING,
            counters=Counters(
                computed=request.num_computed_tokens,
                placeholders=request.num_output_placeholders,
                in_flight=self.ledger.in_flight(number) if in_flight is None else in_flight,
                stale=stale,
                known=request.num_tokens,
            ),
            drafts=len(request.spec_token_ids),
            decoding=int(number in self.ledger.decoding),
            references=references,
            drop=int(stale > 0 and getattr(request, "drop_stale_output", False)),
        )

    def _references(self, number: int, request: Any) -> tuple[int, ...]:
        """The items it references; where the release keeps only who references a key, every item of that key."""
        manager = self.scheduler.encoder_cache_manager
        by_request = getattr(manager, "request_cached_ids", None)
        if by_request is not None:
            return tuple(sorted(by_request.get(request.request_id, ())))
        return tuple(
            place
            for place, item in enumerate(self.setup.requests[number].items)
            if request.request_id in manager.cached.get(item.key, ())
        )

    def _book(self) -> Book:
        manager = self.scheduler.encoder_cache_manager
        sizes = {item.key: item.size for asked in self.setup.requests for item in asked.items}
        sizes.update(getattr(manager, "num_embeds_by_hash", {}))
        return Book(
            entries=tuple(
                Entry(key, sizes[key], tuple(sorted(int(name[1:]) for name in holders)))
                for key, holders in sorted(manager.cached.items())
            ),
            idle=tuple(manager.freeable),
            evicted=tuple(manager.freed),
            free=manager.num_free_slots,
            reclaimable=manager.num_freeable_slots,
            strangers=self.strangers,
        )

    def _queues(self) -> list[Any]:
        """The waiting queues, the one that is scanned first in front."""
        names = ("kv_holding_waiting", "skipped_waiting", "waiting")
        return [getattr(self.scheduler, name) for name in names if hasattr(self.scheduler, name)]

    def _waiting(self) -> list[Any]:
        waiting = [request for queue in self._queues() for request in queue]
        if self.policy == "priority":
            waiting.sort(key=lambda request: (request.priority, request.arrival_time))
        return waiting

    def _number(self, request: Any) -> int:
        return int(request.request_id[1:])

    def _runs(self, number: int) -> bool:
        request = self.requests.get(number)
        return request is not None and request.status == self.release.classes["RequestStatus"].RUNNING

    def _waits(self, number: int) -> bool:
        request = self.requests.get(number)
        return request is not None and not request.is_finished() and not self._runs(number)

    def _subject(self, action: Action) -> int | None:
        return request_number(action.get("request", "none"), self.count)

    # --- a pass -------------------------------------------------------------------------------------------------

    def _wrap_blocks(self) -> None:
        """KV blocks as the environment chooses: shortage once at one request, and a prefix found for another."""
        manager = self.scheduler.kv_cache_manager
        allocate, look_up = manager.allocate_slots, manager.get_computed_blocks

        def allocate_slots(request: Any, num_new_tokens: int, *rest: Any, **named: Any) -> Any:
            if request.request_id == self._short_at:
                self._short_at = None
                return None
            if self._kept is not None and request.request_id == self._kept[0]:
                # No block was really found: the prefix gets blocks of its own, as if it were computed now.
                named["num_new_computed_tokens"] = 0
                return allocate(request, num_new_tokens + self._kept[1], *rest, **named)
            return allocate(request, num_new_tokens, *rest, **named)

        def get_computed_blocks(request: Any, *rest: Any, **named: Any) -> Any:
            found = look_up(request, *rest, **named)
            if self._kept is not None and request.request_id == self._kept[0]:
                return (found[0], self._kept[1], *found[2:])
            return found

        manager.allocate_slots = allocate_slots
        manager.get_computed_blocks = get_computed_blocks

    def _pass(self, put_back: Callable[[], None] = lambda: None) -> Refusal | None:
        """One pass, and then `put_back`. Where nothing came of it, it is as if it had not been."""
        before = self._last
        promised = {
            request.request_id: request.num_output_placeholders for request in self.scheduler.requests.values()
        }
        output = self.scheduler.schedule()
        put_back()
        if not output.num_scheduled_tokens and not output.free_encoder_mm_hashes and self._state() == before:
            self.ledger.hold_back(output)
            return Refusal("nothing-scheduled")
        self._dispatch(output, promised)
        return None

    def _dispatch(self, output: Any, before: Mapping[str, int]) -> None:
        self.ledger.orphan(self._runs)
        requests = self.scheduler.requests
        promised = {
            name: requests[name].num_output_placeholders - before.get(name, 0) for name in output.num_scheduled_tokens
        }
        self.ledger.dispatch(output, lambda name: not requests[name].is_prefill_chunk, promised)

    def _schedule(self, action: Action) -> Refusal | None:
        if len(self.ledger.flights) >= self.setup.depth:
            return Refusal("pipeline-full")
        short_at = request_number(action.get("short_at", "none"), self.count)
        self._short_at = None if short_at is None else request_name(short_at)
        try:
            return self._pass()
        finally:
            self._short_at = None

    def _resume(self, action: Action) -> Refusal | None:
        number = self._subject(action)
        if number is None or not self._waits(number):
            return Refusal("not-waiting")
        if len(self.ledger.flights) >= self.setup.depth:
            return Refusal("pipeline-full")
        request = self.requests[number]
        kept = clamp(action.get("kept", 0), 0, request.num_tokens - 1)
        self._kept = (request.request_id, kept) if kept > 0 else None
        order = [list(queue) for queue in self._queues()]
        priority = request.priority
        self._put_first(request)

        def put_back() -> None:
            request.priority = priority
            if self._waits(number):
                self._put_back(order)

        try:
            return self._pass(put_back)
        finally:
            self._kept = None

    def _put_first(self, request: Any) -> None:
        queues = self._queues()
        for queue in queues:
            if request in list(queue):
                queue.remove_request(request)
        first = next((queue for queue in queues if len(queue)), queues[-1])
        request.priority = _URGENT if self.policy == "priority" else request.priority
        first.prepend_request(request)

    def _put_back(self, order: list[list[Any]]) -> None:
        """The request that was to be first was not admitted: the queues as they were, less those who were."""
        left = {request.request_id for queue in self._queues() for request in queue}
        for queue, before in zip(self._queues(), order, strict=True):
            queue.remove_requests(list(queue))
            for request in before:
                if request.request_id in left:
                    queue.add_request(request)

    def _preempt(self, action: Action) -> Refusal | None:
        number = self._subject(action)
        if number is None or not self._runs(number):
            return Refusal("not-running")
        if len(self.ledger.flights) >= self.setup.depth:
            return Refusal("pipeline-full")
        scheduler, request = self.scheduler, self.requests[number]
        scheduler.running.remove(request)
        scheduler._preempt_request(request, time.monotonic())
        tokens, scheduler.max_num_scheduled_tokens = scheduler.max_num_scheduled_tokens, 0
        try:
            output = scheduler.schedule()
        finally:
            scheduler.max_num_scheduled_tokens = tokens
        self._dispatch(output, {})
        return None

    # --- outputs ------------------------------------------------------------------------------------------------

    def _run_worker(self, at: int) -> None:
        flight = self.ledger.flights[at]
        self.misses = tuple(self.worker.execute(flight.output, flight.finished, self.ledger.rejected(at)))
        self.ledger.mark_executed(at)

    def _execute(self, _: Action) -> Refusal | None:
        at = next((place for place, step in enumerate(self.ledger.steps) if step.executed == 0), None)
        if at is None:
            return Refusal("nothing-to-execute")
        self._run_worker(at)
        return None

    def _accept(self, _: Action) -> Refusal | None:
        return self._process(_ALL)

    def _reject(self, action: Action) -> Refusal | None:
        steps = self.ledger.steps
        if not steps:
            return Refusal("pipeline-empty")
        drafts = max((part.drafts for part in steps[0].parts if part.sampled == 1), default=0)
        if drafts == 0:
            return Refusal("nothing-to-reject")
        return self._process(clamp(action.get("accepted", 0), 0, drafts - 1))

    def _process(self, most: int) -> Refusal | None:
        if not self.ledger.flights:
            return Refusal("pipeline-empty")
        if self.ledger.steps[0].executed == 0:
            self._run_worker(0)
            if self.misses:
                return None
        flight = self.ledger.flights.pop(0)
        sampled: dict[str, list[int]] = {}
        for part in flight.step.parts:
            took = min(most, part.drafts)
            sampled[request_name(part.request)] = [_ANY_TOKEN] * (1 + took) if part.sampled == 1 else []
            if part.sampled == 1 and part.drafts > took:
                self.ledger.shift(part.request, part.drafts - took)
        names = list(sampled)
        output = accepted(
            self.release.classes["ModelRunnerOutput"],
            req_ids=names,
            req_id_to_index={name: place for place, name in enumerate(names)},
            sampled_token_ids=list(sampled.values()),
            logprobs=None,
            prompt_logprobs_dict={},
            pooler_output=[],
        )
        self.scheduler.update_from_output(flight.output, output)
        return None

    # --- the environment ----------------------------------------------------------------------------------------

    def _arrive(self, action: Action) -> Refusal | None:
        number = self._subject(action)
        if number is None:
            return Refusal("unknown-request")
        if number in self.requests:
            return Refusal("already-arrived")
        if number > 0 and number - 1 not in self.requests:
            return Refusal("not-its-turn")
        setup, asked, classes = self.setup, self.setup.requests[number], self.release.classes
        for item in asked.items:
            whole = setup.whole_items == 1 and item.length > setup.step_limit
            if item.size > setup.slots or item.size > setup.encode_limit or whole:
                return Refusal("never-fits")
        features = [
            accepted(
                classes["MultiModalFeatureSpec"],
                data=None,
                modality="image",
                identifier=item.key,
                mm_position=classes["PlaceholderRange"](offset=item.start, length=item.length),
                mm_hash=item.key,
            )
            for item in asked.items
        ]
        request = accepted(
            classes["Request"],
            request_id=request_name(number),
            prompt_token_ids=[_ANY_TOKEN] * asked.prompt,
            sampling_params=classes["SamplingParams"](max_tokens=asked.outputs, ignore_eos=True),
            pooling_params=None,
            eos_token_id=None,
            mm_features=features,
            priority=asked.priority if self.policy == "priority" else 0,
            arrival_time=float(number),
        )
        self.requests[number] = request
        self.scheduler.add_request(request)
        return None

    def _speculate(self, action: Action) -> Refusal | None:
        number = self._subject(action)
        if number is None or not self._runs(number):
            return Refusal("not-running")
        if number not in self.ledger.decoding:
            return Refusal("still-prefilling")
        request = self.requests[number]
        drafts = clamp(action.get("drafts", 0), 0, self.setup.drafts)
        if drafts == len(request.spec_token_ids):
            return Refusal("no-change")
        request.spec_token_ids = [-1] * drafts
        return None

    def _finish(self, action: Action) -> Refusal | None:
        number = self._subject(action)
        if number is None or not self._runs(number):
            return Refusal("not-running")
        if self.requests[number].num_tokens <= self.setup.requests[number].prompt:
            return Refusal("no-output-yet")
        self._end(number, "FINISHED_STOPPED")
        return None

    def _abort(self, action: Action) -> Refusal | None:
        number = self._subject(action)
        if number is None or not (self._runs(number) or self._waits(number)):
            return Refusal("not-there")
        self._end(number, "FINISHED_ABORTED")
        return None

    def _end(self, number: int, status: str) -> None:
        self.scheduler.finish_requests(request_name(number), getattr(self.release.classes["RequestStatus"], status))

    def _evict(self, action: Action) -> Refusal | None:
        manager = self.scheduler.encoder_cache_manager
        idle = list(manager.freeable.values())
        if not idle:
            return Refusal("nothing-idle")
        count = clamp(action.get("count", 1), 1, len(idle))
        self._make_room(manager.num_free_slots + sum(idle[:count]))
        return None

    def _occupy(self, action: Action) -> Refusal | None:
        manager = self.scheduler.encoder_cache_manager
        most = min(self.setup.strangers, manager.num_freeable_slots + self.strangers)
        more = clamp(action.get("slots", 0), 0, most) - self.strangers
        if more == 0:
            return Refusal("no-change")
        if more > 0:
            self._make_room(more)
        manager.num_free_slots -= more
        manager.num_freeable_slots -= more
        self.strangers += more
        return None

    def _make_room(self, slots: int) -> None:
        """Ask the manager for that much room on a stranger's behalf: it evicts as for anybody."""
        self.scheduler.encoder_cache_manager.can_allocate(_Stranger(slots), 0, slots, 0)


class _Stranger:
    """A request outside the model that wants room for one item."""

    def __init__(self, slots: int) -> None:
        self.slots = slots

    def get_num_encoder_embeds(self, _: int) -> int:
        return self.slots

    get_num_encoder_tokens = get_num_encoder_embeds


_HANDLERS: Mapping[str, Callable[[VllmSubject, Action], Refusal | None]] = {
    "arrive": VllmSubject._arrive,
    "speculate": VllmSubject._speculate,
    "schedule": VllmSubject._schedule,
    "preempt": VllmSubject._preempt,
    "resume": VllmSubject._resume,
    "evict": VllmSubject._evict,
    "occupy": VllmSubject._occupy,
    "execute": VllmSubject._execute,
    "accept": VllmSubject._accept,
    "reject": VllmSubject._reject,
    "finish": VllmSubject._finish,
    "abort": VllmSubject._abort,
}
