"""What the tests of the real scheduler share: the installed release, or the one that OUTLIVES_VLLM names."""

import os
from collections.abc import Callable
from importlib.util import find_spec

import pytest
from outlives.invariants.configuration import Configuration
from outlives.invariants.subject.conform import PairModel
from outlives.invariants.subject.release import Release, installed_release
from outlives.invariants.subject.vllm_subject import VllmSubject
from outlives.model.world import World


@pytest.fixture(scope="session")
def release() -> Release:
    """The release under test: the installed one, or that of the unpacked folder in OUTLIVES_VLLM."""
    folder = os.environ.get("OUTLIVES_VLLM")
    found = find_spec("vllm")
    if folder is None and (found is None or found.origin is None):  # this folder alone is no vLLM
        pytest.skip("vLLM is not installed here; tests/vllm/environment.sh makes an environment with it")
    return installed_release(folder)


@pytest.fixture
def pair(release: Release) -> Callable[..., PairModel]:
    """Makes a pair of the release and a profile (its own unless given) over a scope."""

    def make(configuration: Configuration, world: World | None = None) -> PairModel:
        world = world or configuration.world()
        scope = configuration.scope()
        if configuration.mode() == "plain":
            scope = scope._replace(modes=("plain",))
        subject = VllmSubject(release, world.closed)
        return PairModel(subject, world, scope, items_known=release.items_known)

    return make
