"""What holds for every test: commands work in this process unless a test asks for workers.

Many tests change a function and then run a command, which no process of its own would notice; and a pool for each of
hundreds of commands takes its time. `test_workers.py` asks for workers.
"""

import pytest


@pytest.fixture(autouse=True)
def _one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outlives.invariants.workers.default_workers", lambda: 1)
