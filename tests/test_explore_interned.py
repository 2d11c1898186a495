"""The fast search gives the record of the plain one: on the benchmark protocol, on random models, on bad ones."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from outlives.invariants.explore import Bounds, breadth_first, interned_search
from outlives.invariants.explore.components import Branch, Follower, Look, Move
from outlives.invariants.verdict import Verdict
from outlives.model.contract import Action
from outlives.model.errors import BadModel
from protocol_p import SCOPES, ProtocolP
from random_models import Divided, RandomModel
from toy_models import CounterModel

TABLE = {
    "s1": (10_158, 31_849, 24, None),
    "s2": (162_842, 632_982, 32, None),
    "s3": (360_268, 1_408_088, 37, None),
    "r2": (10_712, 34_475, 24, 10),
    "t2": (57_479, 192_130, 37, 10),
}
"""Scope -> states, transitions, last depth, actions of the shortest violation; crashes themselves not counted."""


@pytest.mark.parametrize("name", TABLE)
def test_the_benchmark_protocol_has_its_known_counts(name: str) -> None:
    found = interned_search(ProtocolP(SCOPES[name]))
    misses = found.actions["miss"].fired if "miss" in found.actions else 0
    crashed = found.outside
    trace = found.traces.get("GATHER")
    shortest = None if trace is None else len(trace.actions)
    assert (found.states - crashed, found.transitions - misses, found.depth, shortest) == TABLE[name]
    verdict = found.results()[0].verdict
    assert verdict is (Verdict.EXHAUSTED if shortest is None else Verdict.VIOLATED)


@pytest.mark.parametrize("name", ["s1", "r2"])
def test_plain_and_interned_agree_on_the_benchmark_protocol(name: str) -> None:
    model = ProtocolP(SCOPES[name])
    assert breadth_first(model).same(interned_search(model)) == []


def agree(seeds: range) -> tuple[int, int]:
    """Both engines on these random models: how many have 1,000 states, and how many of those break a property."""
    large = broken = 0
    for seed in seeds:
        model = RandomModel(seed)
        plain, fast = breadth_first(model), interned_search(model, width=3)
        assert plain.same(fast) == [], seed
        if plain.states >= 1_000:
            large += 1
            broken += bool(plain.traces)
    return large, broken


def test_plain_and_interned_agree_on_random_models() -> None:
    large, broken = agree(range(24))
    assert large >= 8
    assert broken >= 4


@pytest.mark.campaign
def test_plain_and_interned_agree_on_two_hundred_random_models_of_a_thousand_states() -> None:
    large, broken = agree(range(520))
    assert large >= 80
    assert broken >= 40


def test_moves_may_share_a_name_and_followers_hear_their_part_of_a_note() -> None:
    for seed in range(12):
        assert breadth_first(RandomModel(seed)).same(interned_search(Divided(seed))) == [], seed


@pytest.mark.parametrize("bounds", [Bounds(depth=3), Bounds(states=500), Bounds(depth=0)])
def test_bounds_stop_both_at_the_same_state(bounds: Bounds) -> None:
    for seed in range(12):
        model = RandomModel(seed)
        assert breadth_first(model, bounds=bounds).same(interned_search(model, bounds=bounds)) == []


def test_fields_that_are_too_narrow_widen() -> None:
    class Hinted(ProtocolP):
        component_bits: Mapping[str, int] = {}  # type: ignore[assignment]

    narrow = interned_search(Hinted(SCOPES["s1"]), width=1)
    assert narrow.states == TABLE["s1"][0]


def test_the_statistics_say_what_a_state_costs() -> None:
    said = interned_search(ProtocolP(SCOPES["s1"])).statistics()
    assert list(said)[:6] == ["complete", "stopped", "left", "states", "transitions", "depth"]
    assert said["fired"]["complete"] == said["situations"]["GATHER"] == 10_896
    assert said["refused"] == {"schedule": {"nothing-scheduled": 269}}
    assert (said["components"]["column0"], said["components"]["column1"]) == (396, 604)
    assert 0 <= said["bytes_per_state"] < 3_000
    assert said["states_per_second"] > 500
    assert sum(said["levels"]) == said["states"]


def test_choosing_properties_and_a_model_without_components() -> None:
    found = interned_search(RandomModel(3), properties=["STEP"])
    assert [result.property for result in found.results()] == ["STEP"]
    with pytest.raises(BadModel, match="shows no components"):
        interned_search(CounterModel(faulty=False))


# --- bad models ---------------------------------------------------------------------------------------------------


class Peeping(ProtocolP):
    """A rule that reads more than its move says: pre-emption looks at what the last completion left behind."""

    def __init__(self, scope: Any) -> None:
        super().__init__(scope)
        self._last = 0

    def _schedule(self, book: Any, *needs: Any) -> Any:
        self._last += 1
        if self._last % 7 == 0:
            return iter(())
        return super()._schedule(book, *needs)


def test_a_rule_that_reads_more_than_it_says_is_caught() -> None:
    with pytest.raises(BadModel, match=r"components and next_state disagree on action schedule\(\) in state"):
        interned_search(Peeping(SCOPES["s2"]))


class Changed(RandomModel):
    """A random model with one thing changed, given as a function of its moves."""

    def __init__(self, change: Any) -> None:
        super().__init__(1)
        self._change = change

    def moves(self) -> Sequence[Move]:
        return self._change(super().moves())


def _raise(*_values: int) -> Any:
    raise ZeroDivisionError("no such number")


def _first(**changes: Any) -> Any:
    def change(moves: Sequence[Move]) -> Sequence[Move]:
        move = moves[0]
        fields = {name: getattr(move, name) for name in ("names", "reads", "rule", "followers", "gate")}
        return [Move(**{**fields, **changes}), *moves[1:]]

    return change


def _hears(place: int) -> Follower:
    return Follower(reads=("a",), writes=("a",), rule=lambda _note, a: (a,), hears=place)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_first(reads=("a", "zz")), "names the component 'zz'"),
        (_first(names=("m0", "m1")), "interleave"),
        (_first(rule=lambda *_: [Branch(Action.of("m0"), {})], followers=(_hears(0),)), "hears place 0 of its move's"),
        (
            _first(rule=lambda *_: [Branch(Action.of("m0"), {}, (7,))], followers=(_hears(1),)),
            "there is none in (7,)",
        ),
        (_first(rule=_raise), "raised ZeroDivisionError: no such number"),
        (_first(names=("m0", "m3")), "interleave"),
        (_first(names=()), "names no action"),
        (_first(rule=lambda *_: [Branch(Action.of("other"), {})]), "gave the action other()"),
        (_first(rule=lambda *_: [Branch(Action.of("m0"), {}), Branch(Action.of("m0"), {})]), "one action twice"),
    ],
)
def test_bad_moves_are_told_in_words(change: Any, words: str) -> None:
    with pytest.raises(BadModel) as caught:
        interned_search(Changed(change))
    assert words in str(caught.value)


@pytest.mark.parametrize("compiled", [False, True])
def test_moves_of_one_name_in_the_wrong_order_are_told(compiled: bool) -> None:
    if compiled:
        pytest.importorskip("numba", reason="the compiled search needs numba, the extra outlives[fast]")

    class Backwards(Divided):
        backwards = True

    with pytest.raises(BadModel, match=r"moves interleave: m\d\(to=\d\) of a later move is not after m\d\(to=\d\)"):
        interned_search(Backwards(1), compiled=compiled)


def test_a_look_at_nothing_known_is_told() -> None:
    class Looking(RandomModel):
        def looks(self) -> Mapping[str, Look]:
            return {"SATTE": Look()}

    with pytest.raises(BadModel, match="'SATTE', which is no property"):
        interned_search(Looking(1))
