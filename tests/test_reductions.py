"""Reductions of the exhaustive engine are switches: with and without each, the same verdicts and shortest depths."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from outlives.invariants.command import main
from outlives.invariants.configuration import Configuration
from outlives.invariants.explore import Bounds, explore
from outlives.invariants.replay import replay
from outlives.invariants.scope_choice import chosen_scopes
from outlives.model.contract import Action
from outlives.model.errors import UnknownName
from outlives.model.setup import Item, RequestSetup, Setup
from outlives.model.state import State
from outlives.model.world import ROUTES
from worlds import FixedModel, refusal, run, world

# --- the order of arrivals --------------------------------------------------------------------------------------------


def asks(prompt: int, *items: tuple[int, int, str], outputs: int = 1, priority: int = 0) -> RequestSetup:
    """A request with items (start, end, key), each of as many slots as it has tokens."""
    made = tuple(Item(start, end - start, key, end - start) for start, end, key in items)
    return RequestSetup(prompt, outputs, made, priority)


def over(orders: Iterable[tuple[RequestSetup, ...]], numbers: Mapping[str, int], **about: Any) -> FixedModel:
    """The model over these requests in each of these orders."""
    setups = [Setup(requests, **numbers) for requests in orders]
    model = FixedModel(world(**about), setups)
    model.scope = model.scope._replace(requests=len(setups[0].requests))
    model._names = tuple(f"r{number}" for number in range(len(setups[0].requests)))
    return model


def depths(model: FixedModel) -> dict[str, int]:
    """Violated property -> actions of its shortest trace, over every state."""
    found = explore(model, bounds=Bounds(states=200_000))
    assert found.complete
    return {name: len(trace.actions) for name, trace in found.traces.items()}


FEW = tuple(sorted(set(ROUTES) - {"preempt", "abort", "look-ahead"}))
"""Closed, so that every state can be seen."""
NONE = (*FEW, "preempt", "abort")
LATE_FREE = {"profile": "repaired", "guard": "optimistic-after-advance", "reader": "any", "relaxed": ("A3",)}
ARRIVALS: Mapping[str, tuple[tuple[RequestSetup, RequestSetup], Mapping[str, int], Mapping[str, Any], bool]] = {
    "sound, one slot for two keys": (
        (asks(3, (0, 2, "k0")), asks(4, (1, 3, "k1"))),
        {"slots": 2, "budget": 4},
        {"profile": "repaired", "closed": FEW},
        False,
    ),
    "sound, one key": (
        (asks(3, (0, 2, "k0")), asks(5, (1, 3, "k0"), outputs=2)),
        {"slots": 3, "budget": 4},
        {"profile": "repaired", "closed": FEW},
        False,
    ),
    "a look-ahead that is stuck": (
        (asks(3, (1, 2, "k0")), asks(5, (1, 3, "k1"), (3, 5, "k2"))),
        {"slots": 2, "budget": 6, "drafts": 1, "look_ahead": 1},
        {"profile": "0.24.0", "closed": (*FEW, "preempt")},
        True,
    ),
    "an entry freed too early": (
        (asks(3, (0, 2, "k0")), asks(3, (0, 3, "k1"), outputs=3)),
        {"slots": 3, "budget": 2, "drafts": 1},
        {**LATE_FREE, "closed": NONE},
        True,
    ),
    "an eviction that overtakes": (
        (asks(3, (0, 2, "k0")), asks(2)),
        {"slots": 2, "budget": 4},
        {"profile": "repaired", "relaxed": ("A1",), "closed": FEW},
        True,
    ),
}


@pytest.mark.parametrize("name", ARRIVALS)
def test_under_first_come_both_orders_in_turn_are_as_good_as_any_order(name: str) -> None:
    """In-order is sound up to renaming the requests: so each scope is visited in both orders of its setups."""
    (one, other), numbers, about, broken = ARRIVALS[name]
    in_order = depths(over([(one, other), (other, one)], numbers, **about))
    any_order = depths(over([(one, other)], numbers, **about, any_arrival=True))
    assert in_order == any_order
    assert bool(any_order) is broken


def test_one_order_alone_is_not() -> None:
    """What only happens where the second request comes first is not seen in the order of the numbers."""
    (one, other), numbers, about, _ = ARRIVALS["a look-ahead that is stuck"]
    alone = depths(over([(one, other)], numbers, **about))
    assert alone != depths(over([(one, other)], numbers, **about, any_arrival=True))


def test_which_requests_may_arrive() -> None:
    pair = (asks(3), asks(3))
    in_order, any_order = (over([pair], {"slots": 2, "budget": 4}, any_arrival=each) for each in (False, True))
    (start,) = in_order.initial_states()
    second = Action.of("arrive", request="r1")
    assert second not in list(in_order.actions(start))
    assert refusal(in_order, start, str(second)) == "not-its-turn"
    assert second in list(any_order.actions(start))
    state = run(any_order, "arrive(request=r1)", "arrive(request=r0)")
    assert state.waiting == (1, 0)
    assert refusal(any_order, state, str(second)) == "already-arrived"


def test_the_option_and_the_trace_that_names_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--requests", "2", "--scope", "shared-key", "--relax", "A1", "--property", "GATHER-AFTER-FREE"]
    options += [word for route in FEW for word in ("--without", route)]
    seen = {}
    for order in ("in-order", "any"):
        status = main(["explore", *options, "--arrivals", order, "--json", "--stats", "--out", str(tmp_path / order)])
        report = json.loads(capsys.readouterr().out)
        assert status == 1
        assert report["configuration"]["arrivals"] == order
        assert ("arriving in any order" in report["title"]) is (order == "any")
        seen[order] = report["statistics"]["shared-key"]["states"]
        (file,) = report["violations"][0]["files"]
        again = replay(Path(file))
        assert again.outcome == "violated again"
        assert again.configuration is not None
        assert again.configuration.arrivals == order
    assert seen["any"] > seen["in-order"]


def test_bad_orders_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UnknownName, match="unknown order of arrivals 'sorted'"):
        Configuration(arrivals="sorted")  # type: ignore[arg-type]
    assert main(["prove", "--arrivals", "any", "--out", str(tmp_path / "out")]) == 2
    assert "every order of events; drop --arrivals" in capsys.readouterr().err


# --- executing and processing as one action or two --------------------------------------------------------------------


def searched(
    split: bool, name: str, about: Mapping[str, Any]
) -> tuple[int, dict[str, tuple[Action, ...]], list[State]]:
    asked = Configuration(split=split, without=FEW, **about)
    states = chosen_scopes(asked, [name])[name]
    found = explore(asked.model(), initial=states, bounds=Bounds(states=100_000))
    assert found.complete
    ends = [trace.steps[-1].state for trace in found.traces.values()]
    return found.states, {each: trace.actions for each, trace in found.traces.items()}, ends


@pytest.mark.parametrize(
    ("scope", "about", "broken"),
    [
        ("last-chunk", {}, False),
        ("adjacent-items", {"profile": "0.24.0"}, True),
        ("whole-items", {"profile": "0.11.0"}, True),
        ("many-drafts", {"guard": "optimistic-after-advance", "reader": "any"}, True),
    ],
)
def test_one_action_or_two_the_verdicts_are_the_same(scope: str, about: Mapping[str, Any], broken: bool) -> None:
    merged_states, merged, ends = searched(False, scope, about)
    split_states, split, _ = searched(True, scope, about)
    assert split_states > merged_states
    assert set(merged) == set(split)
    assert bool(merged) is broken
    for (name, one), end in zip(merged.items(), ends, strict=True):
        outputs = sum(action.name in ("accept", "reject") for action in one)
        executed = sum(action.name == "execute" for action in split[name])
        # A step that kills the engine is executed and never processed: merged, that is its one action.
        spared = 1 if end.misses else 0
        assert len(split[name]) <= len(one) + outputs - spared
        assert len(split[name]) - executed <= len(one)
