"""The real vLLM scheduler as a subject: it takes the model's actions, and its objects are read as the model's state.

Theory of operation
-------------------
Every action of the model is turned into what an engine would do to the scheduler:

    arrive               `add_request`; with further turns, as a resumable session
    speculate            the request's list of draft tokens is replaced by one of that length
    schedule(short_at)   `schedule`, with `allocate_slots` saying once that there are no blocks for that request
    resume(kept)         `schedule`, with the request first in its queue and a prefix of `kept` tokens found for it;
                         with prefix caching on, the release's own cache says what is found
    preempt              the request is taken out of `running` and given to `_preempt_request`, then `schedule` with no
                         token to give: a stranger's pass, whose step holds nothing of ours
    evict(count)         the manager's own `can_allocate` is asked for so much room that `count` entries must go
    occupy(slots)        likewise; then the slots are taken from both of the manager's counters
    execute              the worker's twin executes the oldest step
    accept, reject       the same, then `update_from_output` with 1 + accepted tokens for each part that samples;
                         without asynchronous scheduling, `update_draft_token_ids` follows
    fail_kv_load(valid)  the same as accept, with the block at `valid` reported as invalid
    finish, abort        `finish_requests`; where a session has further turns, what the scheduler does when one stops
    continue_session     `add_request` with the same id; with the last turn, also the client's closing message
    resets               `reset_prefix_cache(reset_running_requests=True)`, `reset_encoder_cache`

What it refuses beyond the model's own refusals: `not-on-this-subject` (an action that it does not know), and at the
start a look-ahead that the release cannot have (`Contradiction`).

What is not vLLM's here: the choices of the environment (above), and the worker (`twin`). Everything else that is
observed is read from the scheduler's objects and from its output objects.
"""

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from outlives.model.contract import Action, Refusal
from outlives.model.errors import Contradiction
from outlives.model.offers import hits_of
from outlives.model.setup import Item, Setup, clamp, request_name, request_number
from outlives.model.state import RUNNING, WAITING, Miss, State

from . import vllm_requests, vllm_routes
from .environment import ANY_TOKEN, Blocks, record_slots
from .ledger import Ledger
from .reading import book_of, queues_of, request_record, status_of, waiting_of
from .release import Release, accepted
from .subject import Failure, Observation, failure_of
from .twin import WorkerTwin, items_told, request_of

__all__ = ["VllmSubject"]

_ALL = 1 << 30
_URGENT = -(1 << 40)


class VllmSubject:
    """One live scheduler of one release. `closed` are routes that are not taken."""

    def __init__(self, release: Release, closed: Collection[str] = ()) -> None:
        self.release = release
        self._closed = self.closed = frozenset(closed)
        self._tolerant = release.numbers >= (0, 24)
        self.ran_short = 0
        """How often, in all runs, KV blocks ran short without having been asked to."""

    # --- the protocol -----------------------------------------------------------------------------------------

    @property
    def caches_prefixes(self) -> bool:
        """Whether the release's prefix cache can be switched on."""
        return self.release.hasher is not None

    def start(self, setup: Setup, *, caching: bool = False) -> Observation:
        """Begin anew. Raises `Contradiction` for numbers that this release cannot have."""
        if caching and not self.caches_prefixes:
            raise Contradiction(f"the prefix cache of vLLM {self.release.version} cannot be switched on here.")
        if setup.look_ahead > self.release.most_look_ahead():
            raise Contradiction(
                f"vLLM {self.release.version} knows a look-ahead of at most {self.release.most_look_ahead()}, "
                f"not of {setup.look_ahead}."
            )
        self.setup = setup
        self.closed = self._closed | frozenset(setup.left_out)
        self.count = len(setup.requests)
        self.requests: dict[int, Any] = {}
        self.turns: dict[int, int] = {}
        self.strangers = 0
        self.misses: tuple[Miss, ...] = ()
        self.failure: Failure | None = None
        cross = setup.encoder_decoder == 1
        items = [item for asked in setup.requests for item in asked.items]
        items += [item for asked in setup.requests for turn in asked.turns for item in turn.items]
        self.sizes = {item.key: item.size for item in items}
        self.ledger = Ledger(tuple(len(asked.items) for asked in setup.requests), encoder_decoder=cross)
        self.worker = WorkerTwin(setup.look_ahead, self._tolerant, encoder_decoder=cross)
        caching = caching and not cross  # these models have none
        self.hasher = self.release.hasher if caching else None
        self.scheduler = self.release.scheduler(setup, caching=caching)
        self.blocks = Blocks(self.scheduler.kv_cache_manager, caching=caching, ran_short=self._ran_short)
        self.slots = record_slots(self.scheduler.encoder_cache_manager) if cross else None
        self._last = self._state()
        return Observation(self._last)

    def take(self, action: Action) -> Refusal | None:
        """Take the action; an exception of the scheduler is kept as the failure, and the action counts as taken."""
        if self.misses or self.failure is not None:
            return Refusal("engine-dead")
        handler = _HANDLERS.get(action.name)
        if handler is None:
            return Refusal("not-on-this-subject")
        self.blocks.answers = {}
        try:
            refusal = handler(self, action)
            if refusal is None:
                self.ledger.orphan(self.runs)
                self._last = self._state()
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            self.failure = failure_of(error, self.release.root, self.release.packages)
            return None
        return refusal

    def observe(self) -> Observation:
        """The state after the last action; where that failed, the state before it."""
        return Observation(self._last, self.failure, tuple(sorted(self.blocks.answers.items())))

    def _state(self) -> State:
        return State(
            setup=self.setup,
            requests=tuple(
                request_record(
                    self.scheduler,
                    self.setup,
                    self.ledger,
                    number,
                    self.requests.get(number),
                    self.turns.get(number, 0),
                    self.slots,
                )
                for number in range(self.count)
            ),
            running=tuple(request_of(request.request_id) for request in self.scheduler.running),
            waiting=tuple(
                request_of(request.request_id) for request in waiting_of(self.scheduler, self.setup.by_priority == 1)
            ),
            book=book_of(self.scheduler, self.sizes, self.strangers, self.slots),
            steps=self.ledger.steps,
            shelf=tuple(sorted(self.worker.shelf)),
            misses=self.misses,
        )

    def _ran_short(self) -> None:
        self.ran_short += 1

    # --- what handlers ask --------------------------------------------------------------------------------------

    def status(self, number: int) -> str | None:
        """The status of a request that has arrived, or None."""
        request = self.requests.get(number)
        return None if request is None else status_of(request)

    def runs(self, number: int) -> bool:
        """Whether the request is running."""
        return self.status(number) == RUNNING

    def named(self, action: Action) -> int | None:
        """The request that the action names."""
        return request_number(action.get("request", "none"), self.count)

    def full(self) -> bool:
        """Whether no further step fits into the pipeline."""
        return len(self.ledger.flights) >= self.setup.depth

    def items(self, number: int) -> tuple[Item, ...]:
        """The items that the request has now."""
        return items_told(self.requests[number].mm_features)

    # --- a pass -------------------------------------------------------------------------------------------------

    def _pass(self, put_back: Callable[[], None] = lambda: None) -> Refusal | None:
        """One pass, and then `put_back`. Where nothing came of it, it is as if it had not been."""
        before = self._last
        promised = self._placeholders()
        output = self.scheduler.schedule()
        put_back()
        if not output.num_scheduled_tokens and not output.free_encoder_mm_hashes and self._state() == before:
            self.ledger.hold_back(output)
            return Refusal("nothing-scheduled")
        self._dispatch(output, promised)
        return None

    def _placeholders(self) -> dict[int, int]:
        requests = self.scheduler.requests
        return {request_of(name): request.num_output_placeholders for name, request in requests.items()}

    def _dispatch(self, output: Any, before: Mapping[int, int]) -> None:
        self.ledger.orphan(self.runs)
        now = self._placeholders()
        promised = {number: count - before.get(number, 0) for number, count in now.items()}
        requests = self.requests
        self.ledger.dispatch(output, lambda number: not requests[number].is_prefill_chunk, promised, self.items)
        if self.setup.synchronous == 1:
            for name in output.num_scheduled_tokens:
                self.ledger.decoding.discard(request_of(name))

    def _schedule(self, action: Action) -> Refusal | None:
        if self.full():
            return Refusal("pipeline-full")
        short_at = request_number(action.get("short_at", "none"), self.count)
        if short_at is not None and "preempt" not in self.closed:
            self.blocks.short_at = request_name(short_at)
        self.blocks.look_up_anew(hits_of(self._last, action))
        try:
            return self._pass()
        finally:
            self.blocks.short_at = None

    def _resume(self, action: Action) -> Refusal | None:
        number = self.named(action)
        if number is None or self.status(number) != WAITING:
            return Refusal("not-waiting")
        if self.full():
            return Refusal("pipeline-full")
        request = self.requests[number]
        self.blocks.look_up_anew(hits_of(self._last, action, number))
        order = [list(queue) for queue in queues_of(self.scheduler)]
        priority = request.priority
        self._put_first(request)

        def put_back() -> None:
            request.priority = priority
            if self.status(number) == WAITING:
                self._put_back(order)

        return self._pass(put_back)

    def _put_first(self, request: Any) -> None:
        queues = queues_of(self.scheduler)
        own = next((queue for queue in queues if any(request is each for each in queue)), None)
        if own is None:
            return  # a session that no queue has any more
        own.remove_request(request)
        first = next((queue for queue in queues if len(queue)), queues[-1])
        if self.setup.by_priority == 1:
            request.priority = _URGENT
        first.prepend_request(request)

    def _put_back(self, order: list[list[Any]]) -> None:
        """The request that was to be first was not admitted: the queues as they were, less those who were."""
        queues = queues_of(self.scheduler)
        left = {id(request) for queue in queues for request in queue}
        for queue, before in zip(queues, order, strict=True):
            queue.remove_requests(list(queue))
            for request in before:
                if id(request) in left:
                    queue.add_request(request)

    def _preempt(self, action: Action) -> Refusal | None:
        if "preempt" in self.closed:
            return Refusal("route-closed")
        number = self.named(action)
        if number is None or not self.runs(number):
            return Refusal("not-running")
        if self.full():
            return Refusal("pipeline-full")
        scheduler, request = self.scheduler, self.requests[number]
        self.blocks.look_up_anew({})
        scheduler.running.remove(request)
        scheduler._preempt_request(request, time.monotonic())
        tokens, scheduler.max_num_scheduled_tokens = scheduler.max_num_scheduled_tokens, 0
        try:
            output = scheduler.schedule()
        finally:
            scheduler.max_num_scheduled_tokens = tokens
        self._dispatch(output, self._placeholders())
        return None

    # --- outputs ------------------------------------------------------------------------------------------------

    def _run_worker(self, at: int) -> None:
        self.misses = tuple(self.worker.execute(self.ledger.flights[at].told, self.ledger.rejected(at)))
        if self.ledger.mark_executed(at):
            self.worker.shelf.clear()

    def _execute(self, _: Action) -> Refusal | None:
        at = self.ledger.unexecuted()
        if at is None:
            return Refusal("nothing-to-execute")
        self._run_worker(at)
        return None

    def _accept(self, _: Action) -> Refusal | None:
        return self.process(_ALL)

    def _reject(self, action: Action) -> Refusal | None:
        steps = self.ledger.steps
        if not steps:
            return Refusal("pipeline-empty")
        drafts = max((part.drafts for part in steps[0].parts if part.sampled == 1), default=0)
        if drafts == 0:
            return Refusal("nothing-to-reject")
        return self.process(clamp(action.get("accepted", 0), 0, drafts - 1))

    def process(self, most: int = _ALL, failed: int | None = None, block: int = -1) -> Refusal | None:
        """Execute the oldest step if it has not, and process its output with at most `most` drafts of each part
        accepted. Of the request `failed` this KV block failed to load."""
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
            sampled[request_name(part.request)] = [ANY_TOKEN] * (self.setup.base + took) if part.sampled == 1 else []
            if part.sampled == 1 and part.drafts > took:
                self.ledger.shift(part.request, part.drafts - took)
        classes = self.release.classes
        names = list(sampled)
        output = accepted(
            classes["ModelRunnerOutput"],
            req_ids=names,
            req_id_to_index={name: place for place, name in enumerate(names)},
            sampled_token_ids=list(sampled.values()),
            logprobs=None,
            prompt_logprobs_dict={},
            pooler_output=[],
        )
        if failed is not None:
            output.kv_connector_output = classes["KVConnectorOutput"](invalid_block_ids={block})
        fresh = {
            number
            for number, request in self.requests.items()
            if not getattr(request, "num_stale_output_tokens", 0) and self.runs(number)
        }
        self.scheduler.update_from_output(flight.output, output)
        if self.setup.synchronous == 1:
            sampled_now = [part.request for part in flight.step.parts if part.sampled == 1]
            self._propose([number for number in sampled_now if number in fresh and number != failed])
        return None

    def _propose(self, numbers: list[int]) -> None:
        """Without asynchronous scheduling drafts come with the output."""
        numbers = [number for number in numbers if self.runs(number)]
        drafts = [[-1] * self.setup.drafts for _ in numbers]
        make = self.release.classes["DraftTokenIds"]
        self.scheduler.update_draft_token_ids(make([request_name(number) for number in numbers], drafts))
        self.ledger.decoding.update(number for number in numbers if not self.requests[number].is_prefill_chunk)


_HANDLERS: Mapping[str, Callable[[VllmSubject, Action], Refusal | None]] = {
    "arrive": vllm_requests.arrive,
    "speculate": vllm_requests.speculate,
    "schedule": VllmSubject._schedule,
    "preempt": VllmSubject._preempt,
    "resume": VllmSubject._resume,
    "evict": vllm_requests.evict,
    "occupy": vllm_requests.occupy,
    "execute": VllmSubject._execute,
    "accept": VllmSubject._accept,
    "reject": VllmSubject._reject,
    "finish": vllm_requests.finish,
    "abort": vllm_requests.abort,
    "reset_prefix_cache": vllm_routes.reset_prefix_cache,
    "reset_encoder_cache": vllm_routes.reset_encoder_cache,
    "fail_kv_load": vllm_routes.fail_kv_load,
    "continue_session": vllm_routes.continue_session,
}
