"""Measure the machine: rule calls per second, against a machine with the same rules and strategies that do nothing.

Run by hand: `python tests/bench/machine_rate.py [cases] [steps]`. Not a test: a busy computer would fail it.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from hypothesis import seed
from hypothesis.stateful import run_state_machine_as_test
from outlives.invariants.machine import machine_class, machine_profile, random_walk, run_machine
from outlives.invariants.machine_rules import ModelMachine
from outlives.invariants.machine_settings import MachineSettings, hypothesis_settings, runs_of_their_own
from outlives.invariants.properties import scheduler_properties
from outlives.model.contract import Model
from outlives.model.profiles import PROFILES, RELEASED_RULES
from outlives.model.scheduler import SchedulerModel
from outlives.model.setup import Scope
from outlives.model.world import World
from toy_models import CounterModel, TankModel


def scheduler() -> SchedulerModel:
    """The model that the engines are for, in its default scope."""
    profile = PROFILES["repaired"]
    world = World(rules=RELEASED_RULES, switches=profile.switches, guard=profile.guard)
    return SchedulerModel(world, Scope(), scheduler_properties(world))


def empty_rate(model: Model[Any], chosen: MachineSettings) -> float:
    """Rule calls per CPU second of the machine with its rules emptied."""
    machine = machine_class(model, settings=chosen)
    calls = 0

    def nothing(_: ModelMachine, *__: object) -> None:
        nonlocal calls
        calls += 1

    machine.step = nothing  # type: ignore[method-assign, assignment]
    machine.begin = lambda self, *_: setattr(self, "current", model)  # type: ignore[method-assign, assignment]
    machine.teardown = lambda _: None  # type: ignore[method-assign, assignment]
    began = process_time()
    with runs_of_their_own():
        run_state_machine_as_test(seed(1)(machine), settings=hypothesis_settings(chosen))
    return calls / (process_time() - began)


def full_rate(model: Model[Any], chosen: MachineSettings) -> float:
    """Rule calls per CPU second of the machine as it is, judging every property."""
    began = process_time()
    run = run_machine(model, settings=chosen, seed=1)
    return run.calls / (process_time() - began)


def main() -> None:
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 150
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    chosen = machine_profile("ci").changed(cases=cases, steps=steps)
    models: dict[str, Callable[[], Model[Any]]] = {
        "counter": lambda: CounterModel(faulty=False),
        "tank": TankModel,
        "scheduler": scheduler,
    }
    for name, make in models.items():
        empty = median(empty_rate(make(), chosen) for _ in range(3))
        full = median(full_rate(make(), chosen) for _ in range(3))
        began = process_time()
        walked = sum(1 for _ in random_walk(make(), 5_000, 1))
        walk = walked / (process_time() - began)
        print(
            f"{name}: {full:,.0f} rule calls/s, empty {empty:,.0f}, ratio {full / empty:.2f}; walk {walk:,.0f} steps/s"
        )


if __name__ == "__main__":
    main()
