"""Random scopes of the scheduler: exhaustive search, proof, tie, machine and the split of one action agree on each."""

import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import agreement_cases
import pytest
from agreement_cases import LEAST, MOST, Agreed, agreement, drawn
from outlives.invariants.explore import explore
from outlives.model.state import State

CI_CASES = (9, 15, 22, 24, 34, 35, 36, 37, 39, 49)
VIOLATED_CASES = (15, 22)
CAMPAIGN = 1_050
"""Cases drawn for the campaign; about a fifth have a scope of the wanted size."""


def of(number: int) -> Agreed | None:
    return agreement(drawn(number))


@pytest.mark.parametrize("number", CI_CASES)
def test_every_engine_says_the_same(number: int) -> None:
    agreed = of(number)
    assert agreed is not None
    assert LEAST <= agreed.states <= MOST < agreed.split_states
    assert agreed.disagreements == ()
    assert bool(agreed.violated) == (number in VIOLATED_CASES)


def test_a_case_can_be_drawn_again() -> None:
    assert drawn(15) == drawn(15)
    assert len({drawn(number) for number in range(50)}) == 50


def test_a_proof_of_what_is_violated_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    violated = drawn(22)
    violated = replace(violated, profile="0.33.0")  # a release whose windows are checked
    monkeypatch.setattr(agreement_cases, "_proved", lambda *_: True)
    agreed = agreement(violated)
    assert agreed is not None
    assert "GATHER-AFTER-FREE" in agreed.violated
    assert "case 22: proved, and yet violated" in agreed.disagreements


def test_a_step_outside_the_relation_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement_cases, "untied", lambda world, before, action, after: iter(["strange"]))
    agreed = of(36)
    assert agreed is not None
    assert any(told.endswith("): strange") for told in agreed.disagreements)


def test_a_reduction_that_loses_a_violation_is_told() -> None:
    case = drawn(15)
    found, split = explore(case.model()), explore(case.model(split=True))
    assert list(agreement_cases._reduction(found, split)) == []
    lost = replace(split, traces={})
    assert "split []" in next(agreement_cases._reduction(found, lost))
    (name, trace), *_ = found.traces.items()
    longer = replace(trace, steps=(*trace.steps[:1], *trace.steps[1:] * 2))
    told = list(
        agreement_cases._reduction(
            replace(found, traces={name: longer}), replace(split, traces={name: split.traces[name]})
        )
    )
    assert "and yet" in told[0]


def test_the_machine_s_replay_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    case = drawn(15)
    found = explore(case.model())
    model = case.model()
    plain = model.next_state

    def other(state: State, action):  # type: ignore[no-untyped-def]
        after = plain(state, action)
        return after._replace(omitted=0) if isinstance(after, State) else after

    monkeypatch.setattr(model, "next_state", other)
    assert any("the machine's replay differs at step" in told for told in agreement_cases._replays(model, found))


@pytest.mark.campaign
def test_two_hundred_random_scopes() -> None:
    """At least 200 scopes of at least 1,000 states each, at least 40 of them with a violation, and no disagreement."""
    seen: list[Agreed] = []
    with ProcessPoolExecutor(os.cpu_count() or 1, get_context("spawn")) as pool:
        seen.extend(each for each in pool.map(of, range(CAMPAIGN), chunksize=10) if each is not None)
    violated = Counter(name for each in seen for name in each.violated)
    print(
        f"{len(seen)} scopes, {sum(each.states for each in seen):,} states merged and "
        f"{sum(each.split_states for each in seen):,} split; {sum(bool(each.violated) for each in seen)} with a "
        f"violation ({', '.join(f'{name} {count}' for name, count in sorted(violated.items()))}), "
        f"{sum(each.proved for each in seen)} proved; {sum(each.tied for each in seen):,} steps tied; "
        f"{sum(each.machine for each in seen)} violations met by random runs too; "
        f"{sum(len(each.disagreements) for each in seen)} disagreements"
    )
    assert [told for each in seen for told in each.disagreements] == []
    assert len(seen) >= 200
    assert sum(bool(each.violated) for each in seen) >= 40
    assert all(each.states >= LEAST for each in seen)
