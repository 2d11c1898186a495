"""The compiled search gives the record of the Python ones, on every kind of model; it grows, widens, and gives way."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from outlives.invariants.explore import Bounds, breadth_first, interned_search, shortest
from outlives.invariants.explore.components import Branch, Look, Move, Refused
from outlives.model.contract import Action, Property, Refusal
from outlives.model.errors import BadModel
from protocol_p import LARGE, SCOPES, ProtocolP
from random_models import Divided, RandomModel

pytest.importorskip("numba", reason="the compiled search needs numba, the extra outlives[fast]")

from outlives.invariants.explore import compiled, compiled_tables, kernel

TABLE = {
    "s1": (10_158, 31_849, 24, None),
    "s2": (162_842, 632_982, 32, None),
    "s3": (360_268, 1_408_088, 37, None),
    "r2": (10_712, 34_475, 24, 10),
    "t2": (57_479, 192_130, 37, 10),
}
"""Scope -> states, transitions, last depth, actions of the shortest violation; crashes themselves not counted."""


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that begin with two rows, and chunks of five states."""
    monkeypatch.setattr(compiled, "_ROOM", 2)
    monkeypatch.setattr(compiled, "_CHUNK", 5)
    monkeypatch.setattr(compiled, "_COMPARE_EVERY", 2)


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Fields that are as narrow as can be; the answer counts how often they were widened."""
    widened = []
    old = compiled_tables.CompiledTables.widen

    def widen(tables: Any, states: Any) -> None:
        widened.append(len(states))
        old(tables, states)

    monkeypatch.setattr(compiled_tables.CompiledTables, "widen", widen)
    monkeypatch.setattr(compiled_tables, "_MARGINS", (0,))
    monkeypatch.setattr(compiled_tables, "fits", lambda packing: packing.words <= 1)
    return widened


@pytest.mark.parametrize("name", TABLE)
def test_the_benchmark_protocol_has_its_known_counts(name: str) -> None:
    found = interned_search(ProtocolP(SCOPES[name]), compiled=True)
    misses = found.actions["miss"].fired if "miss" in found.actions else 0
    trace = found.traces.get("GATHER")
    depth = None if trace is None else len(trace.actions)
    assert (found.states - found.outside, found.transitions - misses, found.depth, depth) == TABLE[name]
    assert found.details["engine"] == "compiled"
    assert found.details["compiled"] == "from 1 states on"


@pytest.mark.campaign
def test_the_large_scope_has_the_counts_that_spin_has_in_a_hundred_and_fifty_bytes_a_state() -> None:
    found = interned_search(ProtocolP(LARGE), compiled=True)
    assert (found.states, found.transitions, found.depth, found.outside) == (4_245_483, 15_784_215, 39, 0)
    assert found.statistics()["bytes_per_state"] <= 150
    assert found.details["rule_calls"] < 10_000


@pytest.mark.parametrize("name", ["s1", "r2", "t2"])
def test_it_agrees_with_both_python_searches_on_the_benchmark_protocol(name: str) -> None:
    model = ProtocolP(SCOPES[name])
    fast = interned_search(model, compiled=True)
    slow = interned_search(model, compiled=False)
    assert (slow.details["engine"], slow.details["compiled"]) == ("interned", "no: not wanted")
    assert slow.same(fast) == []
    assert slow.details["components"] == fast.details["components"]
    if name == "r2":
        assert breadth_first(model).same(fast) == []


def agree(seeds: range, **options: Any) -> tuple[int, int]:
    """The plain search and the compiled one: how many models have 500 states, and how many of these break something."""
    large = broken = 0
    for seed in seeds:
        model = RandomModel(seed)
        plain, fast = breadth_first(model), interned_search(model, compiled=True, **options)
        assert plain.same(fast) == [], seed
        assert fast.details["engine"] == "compiled"
        if plain.states >= 500:
            large += 1
            broken += bool(plain.traces)
    return large, broken


def test_it_agrees_with_the_plain_search_on_random_models() -> None:
    large, broken = agree(range(24))
    assert large >= 8
    assert broken >= 4


def test_it_agrees_where_moves_share_a_name_and_followers_hear_their_part_of_a_note() -> None:
    for seed in range(12):
        fast = interned_search(Divided(seed), compiled=True)
        assert breadth_first(RandomModel(seed)).same(fast) == [], seed
        assert fast.details["engine"] == "compiled"


@pytest.mark.campaign
def test_it_agrees_with_the_plain_search_on_three_hundred_random_models() -> None:
    large, broken = agree(range(300), width=3)
    assert large >= 100
    assert broken >= 50


@pytest.mark.usefixtures("tiny")
def test_tables_of_two_rows_grow() -> None:
    agree(range(24, 36))
    model = ProtocolP(SCOPES["s1"])
    assert interned_search(model, compiled=False).same(interned_search(model, compiled=True)) == []


def test_fields_widen_where_they_are_and_nothing_is_lost(narrow: list[int]) -> None:
    class Wide(ProtocolP):
        component_bits: Mapping[str, int] = dict.fromkeys(("book", "column0", "column1"), 40)  # type: ignore[assignment]

    model = Wide(SCOPES["s1"])
    found = interned_search(model, compiled=True)
    assert interned_search(model, compiled=False).same(found) == []
    assert found.details["engine"] == "compiled"
    assert len(narrow) >= 10
    assert max(narrow) > 1_000


@pytest.mark.usefixtures("tiny")
def test_random_models_with_fields_that_widen(narrow: list[int]) -> None:
    agree(range(36, 48), width=20)
    assert len(narrow) >= 12


def test_a_state_of_two_words_is_as_good_as_one_of_one() -> None:
    agree(range(48, 56), width=32)
    agree(range(48, 52), width=30)


def test_a_state_that_does_not_fit_stays_in_python_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_tables, "fits", lambda packing: False)
    model = ProtocolP(SCOPES["s1"])
    found = interned_search(model, compiled=True)
    assert interned_search(model, compiled=False).same(found) == []
    assert found.details["engine"] == "interned"
    assert found.details["compiled"].startswith("no: a state does not fit 128 bits (values by component: book 1,")


def test_a_state_that_ceases_to_fit_begins_again_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    class Narrow(ProtocolP):
        component_bits: Mapping[str, int] = {}  # type: ignore[assignment]

    monkeypatch.setattr(compiled_tables, "fits", lambda packing: sum(packing.widths.values()) <= 30)
    found = interned_search(Narrow(SCOPES["s1"]), compiled=True, width=3)
    assert interned_search(ProtocolP(SCOPES["s1"]), compiled=False).same(found) == []
    assert found.details["engine"] == "interned"
    assert "does not fit" in found.details["compiled"]


def test_states_that_look_alike_in_the_table_are_kept_apart() -> None:
    import numpy as np

    ones = (1 << 64) - 1

    def twin(lo: int, hi: int, other: int) -> int:
        """The low word with which `other` is mixed to the same number as (lo, hi)."""
        first, second = int(kernel._C1), int(kernel._C2)
        mixed = (lo ^ lo >> 32) * first + (hi ^ hi >> 29) * second
        there = (mixed - (other ^ other >> 29) * second) * pow(first, -1, 1 << 64) & ones
        return there ^ there >> 32

    for rows, states in (([(5, 6), (twin(5, 6, 7), 7)], 3), ([(5, 6), (5, 6)], 2)):
        head = np.zeros(kernel.HEAD, np.int64)
        head[kernel.STATES] = 1
        spans = np.array([[0, 2, 0, kernel.GOES_ON]])
        found = (np.array(rows, np.uint64), np.zeros(2, np.int64), spans, np.zeros((1, 1), np.int32))
        space = (
            np.zeros((4, 2), np.uint64),
            np.zeros(4, np.uint32),
            np.zeros(8, np.uint64),
            np.zeros((4, 2), np.uint64),
            np.zeros(1, np.int64),
            np.zeros((4, 4), np.uint64),
        )
        kernel.walk(head, found, np.zeros((1, 3), np.uint64), space, 0, 1, 0)
        assert (head[kernel.STATES], head[kernel.TRANSITIONS], head[kernel.DONE]) == (states, 2, 1)


# --- bounds, and what stops a search ------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", [Bounds(depth=3), Bounds(states=500), Bounds(depth=0), Bounds(states=1)])
def test_bounds_stop_it_at_the_same_state(bounds: Bounds) -> None:
    for seed in range(12):
        model = RandomModel(seed)
        fast = interned_search(model, bounds=bounds, compiled=True)
        assert interned_search(model, bounds=bounds, compiled=False).same(fast) == []
        assert bounds.states == 1 or breadth_first(model, bounds=bounds).same(fast) == []


def test_bounds_on_time_and_memory_are_honoured() -> None:
    model = ProtocolP(SCOPES["s3"])
    for bounds, words in ((Bounds(seconds=0.001), "seconds"), (Bounds(memory=1), "MiB")):
        found = interned_search(model, bounds=bounds, compiled=True)
        assert words in str(found.stopped)
        assert not found.complete
        assert sum(found.levels) == found.states


@pytest.mark.parametrize("fault", ["r2", "t2"])
def test_the_first_violation_stops_it_with_the_same_trace(fault: str) -> None:
    model = ProtocolP(SCOPES[fault])
    fast = interned_search(model, stop_when_found=True, compiled=True)
    assert fast.stopped == "the first violation"
    assert fast.traces["GATHER"] == shortest(model, "GATHER").trace


def test_ctrl_c_leaves_a_record_that_adds_up(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ProtocolP(SCOPES["s1"])
    whole = interned_search(model, compiled=False)
    times = iter(range(1_000))
    real = kernel.walk

    def walk(*arguments: Any) -> None:
        real(*arguments)
        if next(times) == 12:
            raise KeyboardInterrupt

    monkeypatch.setattr(kernel, "walk", walk)
    found = interned_search(model, compiled=True)
    assert (found.interrupted, found.stopped) == (True, "Ctrl-C")
    assert found.states == sum(found.levels)
    assert list(found.levels[:-1]) == list(whole.levels[: len(found.levels) - 1])
    assert sum(count.fired for count in found.actions.values()) == found.transitions


# --- models that are not as they say ------------------------------------------------------------------------------


class Peeping(ProtocolP):
    """A rule that reads more than its move says: what it was asked before."""

    def __init__(self, scope: Any) -> None:
        super().__init__(scope)
        self._last = 0

    def _schedule(self, book: Any, *needs: Any) -> Any:
        self._last += 1
        return iter(()) if self._last % 7 == 0 else super()._schedule(book, *needs)


@pytest.mark.usefixtures("tiny")
def test_a_rule_that_reads_more_than_it_says_is_caught() -> None:
    with pytest.raises(BadModel, match=r"components and next_state disagree on action schedule\(\) in state"):
        interned_search(Peeping(SCOPES["s1"]), compiled=True)


class Changed(RandomModel):
    """A random model whose first move has another rule."""

    def __init__(self, rule: Callable[..., Any]) -> None:
        super().__init__(1)
        self._rule = rule

    def moves(self) -> Sequence[Move]:
        first, *rest = super().moves()
        return [Move(names=first.names, reads=first.reads, rule=self._rule), *rest]


def _raises(*_values: int) -> Any:
    raise ZeroDivisionError("no such number")


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (_raises, "raised ZeroDivisionError: no such number"),
        (lambda *_: [Branch(Action.of("m0"), {}), Branch(Action.of("m0"), {})], "one action twice"),
        (lambda *_: [Branch(Action.of("m0"), {"zz": 1})], "names the component 'zz'"),
    ],
)
def test_bad_rules_are_told_in_words(rule: Callable[..., Any], words: str) -> None:
    with pytest.raises(BadModel) as caught:
        interned_search(Changed(rule), compiled=True)
    assert words in str(caught.value)


class Lattice:
    """Many branches of one state, deadlocks, ends, and a property that looks at everything."""

    components = ("x", "y", "z")

    def initial_states(self) -> Sequence[tuple[int, int, int]]:
        return [(0, 0, 0)]

    def within(self, state: tuple[int, int, int]) -> bool:
        return sum(state) != 37

    def actions(self, state: tuple[int, int, int]) -> Iterator[Action]:
        yield from (one.action for one in self._jump(state[0]))
        yield from (one.action for one in self._step(*state[1:]))

    def next_state(self, state: tuple[int, int, int], action: Action) -> tuple[int, int, int] | Refusal:
        x, y, z = state
        if action.name == "jump":
            return int(action.get("to", 0)), y, z
        return (x, y, z + 1) if z < 9 else (x, y + 1, 0) if y < 9 else Refusal("too-far")

    def properties(self) -> Sequence[Property[tuple[int, int, int]]]:
        def property_(name: str, holds: Callable[..., bool], kind: Any) -> Property[tuple[int, int, int]]:
            return Property(
                name=name,
                phrase=name.lower(),
                holds=holds,
                explain=lambda before, action, after: f"{before} {action} {after}",
                situation=lambda before, action, after: after[0] > before[0],
                situation_phrase="x grew",
                kind=kind,
            )

        return [
            property_("STEPWISE", lambda before, _action, after: before[0] + after[1] != 31, "step"),
            property_("WHOLE", lambda _before, _action, after: after != (30, 4, 2), "state"),
            property_("PART", lambda _before, _action, after: after[2] < 9, "state"),
        ]

    def split(self, state: tuple[int, int, int]) -> tuple[int, int, int]:
        return state

    def join(self, values: tuple[Any, ...]) -> Any:
        return values

    def moves(self) -> Sequence[Move]:
        return [
            Move(names=("jump",), reads=("x",), rule=self._jump),
            Move(names=("step",), reads=("y", "z"), rule=self._step),
        ]

    def looks(self) -> Mapping[str, Look]:
        return {"PART": Look(after=("z",), test_before=("x",), test_after=("x",))}

    def _jump(self, x: int) -> Sequence[Branch]:
        return [Branch(Action.of("jump", to=to), {"x": to}) for to in range(1, 41)] if x == 0 else []

    def _step(self, y: int, z: int) -> Sequence[Any]:
        after = self.next_state((0, y, z), Action.of("step"))
        if isinstance(after, Refusal):
            return [Refused(Action.of("step"), after.reason)]
        return [Branch(Action.of("step"), {"y": after[1], "z": after[2]})]


@pytest.mark.parametrize("small", [False, True])
def test_wide_states_deadlocks_and_properties_of_whole_states(small: bool, request: pytest.FixtureRequest) -> None:
    if small:
        request.getfixturevalue("tiny")
    plain = breadth_first(Lattice())
    assert (plain.states, plain.deadlocks, len(plain.traces)) == (4_100, 39, 3)
    fast = interned_search(Lattice(), compiled=True)
    assert plain.same(fast) == []
    assert fast.details["engine"] == "compiled"
