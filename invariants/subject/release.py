"""The vLLM release that is installed: its classes, a configuration without a model, and schedulers made from it.

Belongs here: importing vLLM (only when asked to), what the release can do, and which of our profiles is nearest to it.
A version is never refused for its number: signatures and attributes decide.
"""

import atexit
import copy
import inspect
import json
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from outlives.model.errors import OutlivesError
from outlives.model.profiles import PROFILES, REPAIRED
from outlives.model.setup import Setup

__all__ = ["NoVllm", "Release", "installed_release", "nearest_profile"]

BLOCK = 1
"""Tokens per KV block: any position can be the first that is not valid. Blocks never run short by themselves: shortage
is an argument of the pass."""


class NoVllm(OutlivesError):
    """vLLM is not installed, or it is broken."""


@dataclass(slots=True)
class Release:
    """One vLLM, with what is needed to make schedulers of it."""

    version: str
    profile: str
    """The nearest earlier profile, by version."""
    root: Path
    """The folder of the package."""
    exact: bool
    """The profile is of this very version."""
    asynchronous_class: type
    synchronous_class: type
    config: Any
    """The `VllmConfig`; each scheduler gets a copy."""
    kv_config: Callable[[int], Any]
    classes: dict[str, Any] = field(default_factory=dict)
    hasher: Any = None
    """Makes the names of a request's blocks in the prefix cache; None where prefix caching cannot be switched on."""
    packages: tuple[Path, ...] = ()
    """Further folders or files whose frames are the scheduler's own: where a user's class is defined."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """The version as numbers; one without any counts as newer than all."""
        return version_numbers(self.version) or _NEWEST

    @property
    def diffusion(self) -> bool:
        """Whether it knows models that sample nothing beside their drafts."""
        return self.numbers >= (0, 24)

    @property
    def items_known(self) -> bool:
        """Whether its encoder-cache manager keeps which items a request references, not only which keys."""
        return hasattr(self.classes["EncoderCacheManager"](cache_size=1), "request_cached_ids")

    def has_route(self, route: str) -> bool:
        """Whether the release has this route at all."""
        scheduler, request = self.synchronous_class, self.classes["Request"]
        if route == "reset-encoder-cache":
            return hasattr(scheduler, "reset_encoder_cache")
        if route == "reset-prefix-cache":
            return "reset_running_requests" in _parameters(getattr(scheduler, "reset_prefix_cache", _nothing))
        if route == "kv-load-failure":
            return hasattr(scheduler, "_handle_invalid_blocks")
        if route == "sessions":
            return "resumable" in _parameters(request)
        return True

    def scheduler(self, setup: Setup, *, caching: bool = False) -> Any:
        """A new scheduler with these numbers, and with or without prefix caching. What it has no option for is set on
        the object: the look-ahead, the drafts, the encoder budget, the encoder cache, what kind of model it schedules.
        """
        config = copy.copy(self.config)
        config.scheduler_config = options = copy.copy(self.config.scheduler_config)
        options.policy = "priority" if setup.by_priority == 1 else "fcfs"
        options.disable_chunked_mm_input = setup.whole_items == 1
        options.long_prefill_token_threshold = setup.chunk_cap
        options.max_num_seqs = max(_MOST_RUNNING, options.max_num_seqs)
        config.cache_config = cache_options = copy.copy(self.config.cache_config)
        cache_options.block_size, cache_options.enable_prefix_caching = BLOCK, caching
        cache_options.num_gpu_blocks = cache_options.num_gpu_blocks or 1  # nobody has profiled a device
        sizes = [(each.prompt, each.outputs) for asked in setup.requests for each in asked.turns]
        sizes += [(asked.prompt, asked.outputs) for asked in setup.requests]
        tokens = sum(prompt + outputs + 2 * setup.drafts + 2 for prompt, outputs in sizes)
        made = accepted(
            self.asynchronous_class if setup.synchronous == 0 else self.synchronous_class,
            vllm_config=config,
            kv_cache_config=self.kv_config(tokens // BLOCK + 2 * len(sizes) + 2),
            structured_output_manager=self.classes["structured_output"],
            block_size=BLOCK,
            log_stats=False,
        )
        made.max_num_scheduled_tokens = setup.budget
        made.max_num_encoder_input_tokens = setup.encode_limit
        kind = "EncoderDecoderCacheManager" if setup.encoder_decoder == 1 else "EncoderCacheManager"
        if kind in self.classes:
            made.encoder_cache_manager = self.classes[kind](cache_size=setup.slots)
        made.is_encoder_decoder = setup.encoder_decoder == 1
        made.num_spec_tokens = setup.drafts
        if setup.diffusion == 1 and self.diffusion:
            made.num_sampled_tokens_per_step = 0
        if hasattr(made, "_spec_token_placeholders"):
            made._spec_token_placeholders = [-1] * setup.drafts
        made.use_eagle = setup.look_ahead > 0
        if hasattr(made, "num_prefill_lookahead"):
            made.num_prefill_lookahead = setup.look_ahead
        return made

    def most_look_ahead(self) -> int:
        """How far a drafter may read ahead: one position, before releases knew a number for it."""
        return 1 if self.numbers < (0, 28) else 1 << 10


_NEWEST = (1 << 20,)
_MOST_RUNNING = 64


def _nothing() -> None:
    """Stands for a method that a release does not have."""


def version_numbers(version: str) -> tuple[int, ...]:
    """`0.32.0.dev5+cpu` is (0, 32, 0)."""
    numbers = []
    for part in version.split("+")[0].split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    return tuple(numbers)


def nearest_profile(version: str) -> tuple[str, bool]:
    """The newest profile that is not newer than the version (the oldest where none is), and whether it is that very
    version. A version without numbers counts as the newest."""
    at = version_numbers(version) or _NEWEST
    releases = [name for name in PROFILES if name != REPAIRED]
    earlier = [name for name in releases if version_numbers(name) <= at]
    name = max(earlier, key=version_numbers) if earlier else min(releases, key=version_numbers)
    return name, version_numbers(name) == at


@cache
def _parameters(make: Callable[..., Any]) -> frozenset[str]:
    """The arguments that it takes by name; a class that passes everything on takes what its base takes."""
    names: set[str] = set()
    for each in make.__mro__[:-1] if isinstance(make, type) else (make,):
        parameters = inspect.signature(each).parameters
        names.update(parameters)
        if all(parameter.kind is not inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
            break
    return frozenset(names)


def accepted(make: Callable[..., Any], **arguments: Any) -> Any:
    """Call it with those of the arguments that it takes: signatures differ between releases."""
    names = _parameters(make)
    return make(**{name: value for name, value in arguments.items() if name in names})


@cache
def installed_release(folder: str | None = None, configure: Callable[[Any], Any] | None = None) -> Release:
    """The installed vLLM, or the one whose unpacked `vllm` folder is in `folder`. A process has one vLLM only.

    `configure` makes the `VllmConfig` that schedulers are made with; it is given the class. Raises `NoVllm` with what
    is wrong and what to do.
    """
    if folder is not None and folder not in sys.path:
        if "vllm" in sys.modules:
            raise NoVllm(f"vLLM is already imported from {sys.modules['vllm'].__file__}; {folder} needs a new process.")
        sys.path.insert(0, folder)
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    try:
        return _load(configure, folder)
    except OutlivesError:
        raise
    except ModuleNotFoundError as error:
        raise NoVllm(
            f"vLLM cannot be imported here: no module named {error.name!r}. Install vLLM beside outlives, or name the "
            "environment that has it."
        ) from error
    except (Exception, SystemExit) as error:
        raise NoVllm(
            f"this vLLM cannot be used: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
        ) from error


def _load(configure: Callable[[Any], Any] | None, folder: str | None) -> Release:
    import vllm  # before anything that it needs: where it is missing, it is what is missing

    version = str(vllm.__version__)
    import torch
    from vllm.config import VllmConfig

    config = _plain_config() if configure is None else configure(VllmConfig)

    # A user's configuration may choose the platform, so whatever asks for it comes after.
    from vllm import SamplingParams
    from vllm.multimodal.inputs import MultiModalFeatureSpec, PlaceholderRange
    from vllm.v1.core import encoder_cache_manager
    from vllm.v1.core.sched.async_scheduler import AsyncScheduler
    from vllm.v1.core.sched.scheduler import Scheduler
    from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
    from vllm.v1.outputs import DraftTokenIds, KVConnectorOutput, ModelRunnerOutput
    from vllm.v1.request import Request, RequestStatus
    from vllm.v1.structured_output import StructuredOutputManager

    logging.getLogger("vllm").setLevel(logging.ERROR)
    group = accepted(FullAttentionSpec, block_size=BLOCK, num_kv_heads=1, head_size=8, dtype=torch.float32)

    def kv_config(blocks: int) -> Any:
        return accepted(
            KVCacheConfig,
            num_blocks=blocks,
            kv_cache_tensors=[],
            kv_cache_groups=[KVCacheGroupSpec(["layer"], group)],
        )

    if folder is not None and not Path(vllm.__file__ or "").resolve().is_relative_to(Path(folder).resolve()):
        raise NoVllm(f"there is no whole vLLM in {folder}: {vllm.__file__} was imported instead.")
    profile, exact = nearest_profile(version)
    return Release(
        version=version,
        profile=profile,
        root=Path(vllm.__file__).parent,
        exact=exact,
        asynchronous_class=AsyncScheduler,
        synchronous_class=Scheduler,
        config=config,
        kv_config=kv_config,
        classes={
            **{
                name: getattr(encoder_cache_manager, name)
                for name in ("EncoderCacheManager", "EncoderDecoderCacheManager")
                if hasattr(encoder_cache_manager, name)
            },
            "DraftTokenIds": DraftTokenIds,
            "KVConnectorOutput": KVConnectorOutput,
            "ModelRunnerOutput": ModelRunnerOutput,
            "MultiModalFeatureSpec": MultiModalFeatureSpec,
            "PlaceholderRange": PlaceholderRange,
            "Request": Request,
            "RequestStatus": RequestStatus,
            "SamplingParams": SamplingParams,
            "structured_output": StructuredOutputManager(config),
        },
        hasher=_block_hasher(Request),
    )


def _block_hasher(request_class: type) -> Any:
    """What names a request's blocks in the prefix cache, as the engine makes it; None where there is no such thing."""
    try:
        from vllm.utils.hashing import sha256
        from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
    except ImportError:
        return None
    if "block_hasher" not in _parameters(request_class):
        return None
    init_none_hash(sha256)
    return get_request_block_hasher(BLOCK, sha256)


def _plain_config() -> Any:
    """A configuration without a model."""
    from vllm.config import CacheConfig, DeviceConfig, ModelConfig, ParallelConfig, SchedulerConfig, VllmConfig

    folder = _model_folder()
    longest = 1 << 16
    model = ModelConfig(
        model=folder, tokenizer=folder, skip_tokenizer_init=True, dtype="float32", max_model_len=longest
    )
    options = accepted(
        SchedulerConfig,
        max_num_batched_tokens=longest,
        max_num_seqs=_MOST_RUNNING,
        max_model_len=longest,
        is_encoder_decoder=False,
        enable_chunked_prefill=True,
        async_scheduling=True,
        policy="fcfs",
    )
    cache_config = accepted(CacheConfig, block_size=BLOCK, enable_prefix_caching=False, gpu_memory_utilization=0.5)
    cache_config.num_gpu_blocks = 1
    return VllmConfig(
        model_config=model,
        cache_config=cache_config,
        scheduler_config=options,
        parallel_config=ParallelConfig(),
        device_config=DeviceConfig("cpu"),
    )


def _model_folder() -> str:
    """A folder with the configuration of a tiny text model: nothing is ever loaded from it."""
    folder = Path(tempfile.mkdtemp(prefix="outlives-model-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shape = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "num_hidden_layers": 1,
        "vocab_size": 64,
        "max_position_embeddings": 1 << 17,
        "rms_norm_eps": 1e-6,
    }
    (folder / "config.json").write_text(json.dumps(shape), encoding="utf-8")
    return str(folder)
