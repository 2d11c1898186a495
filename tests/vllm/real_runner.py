"""The real model runner of the release beside the worker's twin: its own state update, cache handling and gather.

Encoder outputs are zeros, and no model is loaded. The runner takes each step's output object as it was when it left: a
copy, as if it had travelled.
"""

import copy
from typing import Any

from outlives.invariants.subject.release import Release
from outlives.invariants.subject.vllm_subject import VllmSubject
from outlives.model.contract import Action, Refusal
from outlives.model.setup import Setup

_HIDDEN = 4


class _Alone:
    """A pipeline of one stage: the runner asks which one it is."""

    is_first_rank = is_last_rank = True
    world_size = 1


class RealRunner:
    """One `CPUModelRunner`, emptied for each run."""

    def __init__(self, release: Release) -> None:
        import torch
        from vllm.config import set_current_vllm_config
        from vllm.distributed import parallel_state
        from vllm.v1.worker.cpu_model_runner import CPUModelRunner

        self._zeros = torch.zeros
        if parallel_state._PP is None:
            parallel_state._PP = _Alone()
        config = copy.copy(release.config)
        with set_current_vllm_config(config):
            self.runner: Any = CPUModelRunner(config, torch.device("cpu"))
        self.runner.kv_cache_config = release.kv_config(8)
        self.runner._may_reorder_batch = lambda _output: None  # the attention backend's wish: there is none

    def reset(self) -> None:
        """Forget every request and every encoder output."""
        for name in list(self.runner.requests):
            self.runner.requests.pop(name)
            self.runner.input_batch.remove_request(name)
        self.runner.input_batch.condense()
        self.runner.encoder_cache.clear()

    def execute(self, output: Any, look_ahead: int) -> list[str]:
        """Execute a step; the readers that found nothing, with the key: `target k0`."""
        runner = self.runner
        runner._update_states(output)
        if not output.num_scheduled_tokens:
            return []
        for name, items in output.scheduled_encoder_inputs.items():
            for item in items:
                feature = runner.requests[name].mm_features[item]
                length = feature.mm_position.length
                runner.encoder_cache[feature.identifier] = self._zeros(length, _HIDDEN)
        missed = []
        for reader, shift in (("target", 0), ("draft", look_ahead)):
            if reader == "draft" and look_ahead == 0:
                continue
            try:
                runner._gather_mm_embeddings(output, shift_computed_tokens=shift)
            except RuntimeError as error:
                missed.append(f"{reader} {str(error).removesuffix('.').rsplit(' ', 1)[-1]}")
        return missed


class TwoWorkers(VllmSubject):
    """A subject whose every step is executed by the twin and by the real runner, and compared."""

    def __init__(self, release: Release, real: RealRunner) -> None:
        super().__init__(release)
        self.real = real
        self.compared = 0
        self.misses_seen = 0
        self._travelling: dict[int, Any] = {}

    def start(self, setup: Setup, *, caching: bool = False) -> Any:
        self.real.reset()
        self._travelling = {}
        return super().start(setup, caching=caching)

    def take(self, action: Action) -> Refusal | None:
        before = len(self.ledger.flights)
        refusal = super().take(action)
        if refusal is None and len(self.ledger.flights) > before and self.failure is None:
            output = self.ledger.flights[-1].output
            sent = copy.deepcopy(output)
            sent.finished_req_ids = {f"r{number}" for number in self.ledger.flights[-1].told.finished}
            self._travelling[id(output)] = sent
        at_once = not any(step.clear for step in self.ledger.steps)
        if refusal is None and action.name == "reset_encoder_cache" and at_once:
            self.real.runner.reset_encoder_cache()
        return refusal

    def _run_worker(self, at: int) -> None:
        flight = self.ledger.flights[at]
        sent = self._travelling.pop(id(flight.output))
        super()._run_worker(at)
        missed = self.real.execute(sent, self.setup.look_ahead)
        self.compared += 1
        shelf = set(self.worker.shelf) if flight.step.clear == 0 else None
        if flight.step.clear == 1:
            self.real.runner.reset_encoder_cache()
        if shelf is not None and shelf != set(self.real.runner.encoder_cache):
            raise DifferentWorkers(f"shelf {sorted(shelf)}, encoder_cache {sorted(self.real.runner.encoder_cache)}")
        for part in flight.told.parts:
            position = self.real.runner.requests[f"r{part.request}"].num_computed_tokens
            if position != part.start:
                raise DifferentWorkers(f"r{part.request} starts at {part.start}, the runner is at {position}")
        # The real gather stops at its first miss, the twin names them all.
        first: dict[str, str] = {}
        for miss in self.misses:
            key = self.items(miss.request)[miss.item].key
            first.setdefault(miss.reader, key)
        twins = [f"{reader} {first[reader]}" for reader in ("target", "draft") if reader in first]
        self.misses_seen += len(twins)
        if twins != missed:
            raise DifferentWorkers(f"the twin misses {twins}, the runner {missed}")


class DifferentWorkers(AssertionError):
    """The twin and the real runner are not alike."""
