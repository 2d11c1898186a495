"""Which sides of conditions a run takes: what is a condition, what is counted, and that counting changes nothing."""

import importlib.util
import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest
from outlives.invariants.branch_probes import PROBE
from outlives.invariants.branches import Conditions, conditions_in, conditions_of, counted
from outlives.invariants.configuration import Configuration
from outlives.invariants.jobs import subject_model
from outlives.invariants.machine import random_walk
from outlives.invariants.mutants import mutants, planted
from outlives.model import book, lifetime
from outlives.model.lifetime import GUARDS, guard_named
from worlds import fixed as fixed_model
from worlds import run, setup, world


def module_of(source: str, folder: Path) -> ModuleType:
    path = folder / "rules_of_mine.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("rules_of_mine", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def untaken(conditions: Conditions, taken: int) -> list[str]:
    return [f"{condition.text}: {side}" for condition, side in conditions.untaken(taken)]


# --- what is a condition ----------------------------------------------------------------------------------------------

CASES = {
    "if": (
        "def f(x):\n    if x > 1:\n        return 'a'\n    return 'b'",
        [0],
        ["x > 1: True"],
    ),
    "both sides": (
        "def f(x):\n    if x > 1:\n        return 'a'\n    return 'b'",
        [0, 2],
        [],
    ),
    "elif": (
        "def f(x):\n    if x > 1:\n        return 'a'\n    elif x:\n        return 'b'\n    else:\n        return 'c'",
        [2, 1],
        ["x: False"],
    ),
    "while": (
        "def f(x):\n    while x > 0:\n        x -= 1\n    return x",
        [0],
        ["x > 0: True"],
    ),
    "left by break": (
        "def f(x):\n    while x:\n        break\n    else:\n        return 'e'\n    return x",
        [1],
        ["x: False"],
    ),
    "conditional expression": (
        "def f(x):\n    return 'a' if x else 'b'",
        [1],
        ["x: False"],
    ),
    "and": (
        "def f(x):\n    if x > 1 and x < 5:\n        return 1\n    return 0",
        [0, 2],
        ["x < 5: False"],
    ),
    "or": (
        "def f(x):\n    if x > 1 or x < 0:\n        return 1\n    return 0",
        [2],
        ["x > 1: False", "x < 0: True", "x < 0: False"],
    ),
    "not": (
        "def f(x):\n    if not x:\n        return 1\n    return 0",
        [1],
        ["x: False"],
    ),
    "returned comparison": (
        "def f(x):\n    return x >= 3",
        [3, 4],
        ["x >= 3: False"],
    ),
    "value of and": (
        "def f(x):\n    return x and [x]",
        [0, 5],
        [],
    ),
    "value of or": (
        "def f(x):\n    return x or None",
        [0],
        ["x: True"],
    ),
    "comprehension": (
        "def f(x):\n    return [y for y in range(x) if y > 1]",
        [2],
        ["y > 1: True"],
    ),
    "in what a comprehension runs through": (
        "def f(x):\n    return [y for y in (range(x) if x > 1 else ()) if y]",
        [2],
        ["x > 1: False"],
    ),
    "generator": (
        "def f(x):\n    return any(y == 2 for y in range(x))",
        [2],
        ["y == 2: True"],
    ),
    "lambda inside": (
        "def f(x):\n    return sorted([2, 1], key=lambda y: y == x)",
        [7],
        ["y == x: True"],
    ),
    "function inside": (
        "def f(x):\n    def g(y):\n        if y:\n            return 1\n        return 2\n    return g(x)",
        [1],
        ["y: False"],
    ),
    "walrus": (
        "def f(x):\n    if (y := x - 1) > 0:\n        return y\n    return -1",
        [0],
        ["(y := (x - 1)) > 0: True"],
    ),
    "the same text twice": (
        "def f(x):\n    if x:\n        x = 0\n    if x:\n        return 1\n    return 0",
        [1],
        ["x: False", "x: True"],
    ),
    "docstring and global": (
        "N = 0\ndef f(x):\n    '''Text.'''\n    global N\n    if x:\n        N += 1\n    return N * 0",
        [1],
        ["x: False"],
    ),
    "assertions are none": (
        "def f(x):\n    assert x >= 0\n    return x",
        [1],
        [],
    ),
    "constants are none": (
        "def f(x):\n    while True:\n        return x",
        [1],
        [],
    ),
    "declared: no run decides": (
        "def f(x, world=None):\n    return x if world and world.switches.a == 1 else x",
        [1],
        ["world: True"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_counted_and_that_the_answers_are_the_same(name: str, tmp_path: Path) -> None:
    source, calls, missing = CASES[name]
    function = module_of(source, tmp_path).f
    plain = [function(x) for x in calls]
    conditions = conditions_in([function])
    names = set(function.__globals__)
    with counted(conditions) as sides:
        assert [(type(function(x)), function(x)) for x in calls] == [(type(each), each) for each in plain]
    assert untaken(conditions, sides.taken) == missing
    assert conditions.not_counted == ()
    assert set(function.__globals__) == names, "nothing is left behind"


def test_a_value_without_truth_passes_through(tmp_path: Path) -> None:
    module = module_of(
        "class Odd:\n    def __eq__(self, other):\n        return self\n    __hash__ = None\n"
        "    def __bool__(self):\n        raise TypeError('no truth')\n\ndef f(x):\n    return x == 1\n",
        tmp_path,
    )
    odd = module.Odd()
    conditions = conditions_in([module.f])
    with counted(conditions) as sides:
        assert module.f(odd) is odd
    assert sides.taken == 0


def test_what_the_profile_decides_has_no_probe_that_would_cost(tmp_path: Path) -> None:
    source = (
        "def f(world, x):\n    settle = world.switches.a\n"
        "    return (settle == 1, 'A2' in world.relaxed, world.guard.site == 'x', x.reader == 1)\n"
    )
    conditions = conditions_in([module_of(source, tmp_path).f])
    assert [each.text for each in conditions.each] == ["x.reader == 1"], "which is no world's"
    assert len(conditions.declared) == 3
    ((_, made),) = conditions.functions
    assert [name for name in made.code.co_names if name.startswith("_outlives")] == [PROBE]
    probed_places = {each for each in made.code.co_consts if type(each) is int} - {1}  # 1 is what is compared with
    assert probed_places == {3}


def test_a_rule_that_has_taken_every_side_rests(tmp_path: Path) -> None:
    module = module_of("def f(x):\n    return 1 if x else 0\ndef g(x):\n    return 1 if x else 0\n", tmp_path)
    kept = module.f.__code__, module.g.__code__
    conditions = conditions_in([module.f, module.g])
    with counted(conditions) as sides:
        assert (module.f(0), module.f(1), module.g(1)) == (0, 1, 1)
        sides.rest()
        assert module.f.__code__ is kept[0]
        assert module.g.__code__ is not kept[1]
        sides.ease()
        assert module.f.__code__ is kept[0]
    assert untaken(conditions, sides.taken) == ["x: False"]


def test_easing_takes_no_side_away_and_counts_what_comes_after(tmp_path: Path) -> None:
    source = "def f(x):\n    if x > 1 and x < 5:\n        return [y for y in range(x) if y == 2]\n    return x or None"
    function = module_of(source, tmp_path).f
    conditions = conditions_in([function])
    with counted(conditions) as sides:
        answers = [function(2)]
        sides.ease()
        answers += [function(x) for x in (0, 3, 9)]
    assert answers == [[], None, [2], 9]
    assert untaken(conditions, sides.taken) == []
    with counted(conditions) as sides:
        function(2)
        sides.ease()
    assert untaken(conditions, sides.taken) == ["x > 1: False", "x < 5: False", "y == 2: True", "x: True", "x: False"]


def test_the_rules_are_their_own_again_after_an_error() -> None:
    conditions = conditions_of(world())
    before = [function.__code__ for function, _ in conditions.functions]

    def broken_off() -> None:
        with counted(conditions):
            assert book.find.__code__ not in before
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken_off()
    assert [function.__code__ for function, _ in conditions.functions] == before
    assert not [name for name in vars(book) if name.startswith("_outlives")]


# --- whose conditions -------------------------------------------------------------------------------------------------


def test_our_rules_are_all_counted_whatever_the_profile() -> None:
    for profile in ("0.11.0", "0.24.0", "repaired"):
        conditions = conditions_of(world(profile))
        assert conditions.not_counted == ()
        keys = [condition.key for condition in conditions.each]
        assert len(set(keys)) == len(keys) > 200


@pytest.mark.parametrize("guard", GUARDS)
def test_of_the_guards_only_the_one_in_force_is_counted(guard: str) -> None:
    functions = {condition.function for condition in conditions_of(world(guard=guard)).each}
    others = {each.condition.__name__ for each in GUARDS.values()} - {guard_named(guard).condition.__name__}
    assert not functions & others
    assert guard == "retain" or guard_named(guard).condition.__name__ in functions


def test_both_sides_of_a_guard_in_a_run_by_hand() -> None:
    model = fixed_model("repaired", setup([(0, 2), (4, 6)], 8, slots=4, budget=4, drafts=1))
    conditions = conditions_of(model.world)

    def of_guard(*actions: str) -> list[bool]:
        with counted(conditions) as sides:
            run(model, *actions)
        return [side for condition, side in conditions.untaken(sides.taken) if condition.function == "confirmed_guard"]

    assert of_guard("arrive(request=r0)", "schedule()") == [True, False]
    assert of_guard("arrive(request=r0)", "schedule()", "accept()") == [False]
    assert of_guard("arrive(request=r0)", "schedule()", "schedule()", "accept()", "accept()") == [False]


def test_a_rule_of_ones_own_is_counted_with_what_it_calls_and_ours_in_its_place_is_not(tmp_path: Path) -> None:
    module = module_of(
        "from outlives.model import lifetime\n"
        "from outlives.model.book import find\n"
        "def small(x):\n    return x < 100\n"
        "def never_called(x):\n    return x < 7\n"
        "def advance(c, count):\n    if small(count):\n        return lifetime.advance(c, count)\n    return c\n"
        "def roll_back(c, rejected, stale):\n    return c._replace(computed=c.computed - rejected)\n",
        tmp_path,
    )
    own = world()
    rules = replace(own.rules, advance=module.advance, roll_back=module.roll_back, preempt=partial(len))
    conditions = conditions_of(replace(own, rules=rules))
    keys = [condition.key for condition in conditions.each]
    assert [key for key in keys if key.startswith("rules_of_mine")] == [
        "rules_of_mine.advance: small(count)",
        "rules_of_mine.small: x < 100",
    ]
    assert not [key for key in keys if key.startswith("lifetime.roll_back")]
    assert conditions.not_counted == ("rule preempt",), "it is no Python function"
    functions = [function for function, _ in conditions.functions]
    assert lifetime.advance in functions, "which the own rule calls"


def test_a_function_whose_source_is_not_at_hand_is_named() -> None:
    mutant = mutants("book")[0]
    with planted(mutant):
        assert f"book.{mutant.function}" in conditions_of(world()).not_counted


# --- counting changes nothing -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["0.11.0", "repaired"])
def test_a_walk_is_the_same_with_and_without(profile: str) -> None:
    configuration = Configuration(profile=profile)
    asked = configuration.world()
    plain = list(random_walk(subject_model(configuration, asked), 1_500, 3))
    with counted(conditions_of(asked)) as sides:
        walk = random_walk(subject_model(configuration, asked), 1_500, 3)
        same = [next(walk) for _ in range(700)]
        sides.ease()
        same += walk
    assert same == plain
    assert sides.taken.bit_count() > 250


def test_probes_are_not_left_in_functions_that_are_not_rules() -> None:
    kept = [each for each in vars(lifetime).values() if isinstance(each, FunctionType)]
    codes = [each.__code__ for each in kept]
    with counted(conditions_of(world(guard="confirmed"))):
        assert lifetime.settled.__code__ in codes
        assert lifetime.guard_named.__code__ in codes
    assert [each.__code__ for each in kept] == codes


@pytest.mark.parametrize("seed", ["0", "1"])
def test_conditions_are_in_the_same_order_in_every_process(seed: str) -> None:
    code = (
        "from outlives.invariants.branches import conditions_of\n"
        "from outlives.invariants.configuration import Configuration\n"
        "conditions = conditions_of(Configuration(profile='docs/examples/own_scheduler.py:mine').world())\n"
        "print([condition.key for condition in conditions.each])"
    )
    root = Path(__file__).parents[1]
    environment: dict[str, Any] = {**os.environ, "PYTHONHASHSEED": seed}
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, cwd=root, env=environment, capture_output=True, text=True, check=True)
    here = conditions_of(Configuration(profile=f"{root}/docs/examples/own_scheduler.py:mine").world())
    assert done.stdout.strip() == str([condition.key for condition in here.each])
    assert here.each[-1].key == "own_scheduler.half_confirmed: end - 1 <= c.computed - c.placeholders"
