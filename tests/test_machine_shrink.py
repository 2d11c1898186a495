"""Shrinking runs by name: what is dropped, what is lowered, where it stops, and what the trace says."""

from pathlib import Path

import pytest
from outlives.invariants.machine_shrink import Witness, build_trace, cut_to_failure, shrink_witness, write_plain_trace
from outlives.model.contract import Action, Property
from outlives.model.errors import Unwritable
from toy_models import CounterModel, LockModel, LockState, SetupCounterModel, Tally, TankModel, TankState


def add(amount: int) -> Action:
    return Action.of("add", amount=amount)


def remove(amount: int) -> Action:
    return Action.of("remove", amount=amount)


REST = Action.of("rest", how="b")


def counter() -> tuple[CounterModel, Property[Tally]]:
    model = CounterModel(faulty=True)
    return model, model.properties()[0]


def test_cutting_drops_refused_actions_and_what_follows_the_failure() -> None:
    model, prop = counter()
    found = Witness(None, Tally(0, 12), (remove(1), add(5), remove(5), remove(1), add(5), add(5), add(4), add(1)))
    cut = cut_to_failure(model, prop, found)
    assert cut is not None
    assert cut.actions == (add(5), remove(5), add(5), add(5), add(4))


def test_cutting_a_run_that_does_not_fail_gives_none() -> None:
    model, prop = counter()
    assert cut_to_failure(model, prop, Witness(None, Tally(0, 12), (add(5), add(5)))) is None


@pytest.mark.parametrize(
    "actions",
    [
        (add(1),) * 13,
        (add(5), remove(5), REST, add(5), add(5), add(4)),
        (add(2), add(2), REST, add(2), remove(1), add(2), add(2), add(2), add(2)),
    ],
)
def test_shrinks_to_three_additions_of_thirteen(actions: tuple[Action, ...]) -> None:
    model, prop = counter()
    small, ended = shrink_witness(model, prop, Witness(None, Tally(0, 12), actions), 5_000)
    assert ended
    assert [action.name for action in small.actions] == ["add"] * 3
    assert sum(int(action.get("amount", 0)) for action in small.actions) == 13


def test_the_same_property_fails_at_the_end_and_not_before() -> None:
    model, prop = counter()
    small, _ = shrink_witness(model, prop, Witness(None, Tally(0, 12), (add(1),) * 13), 5_000)
    trace = build_trace(model, prop, small)
    judged = [prop.holds(step.state, step.action, step.state) for step in trace.steps]
    assert judged == [True] * 3 + [False]
    assert trace.why == "the value is 13, the limit 12"
    assert all(step.refused is None for step in trace.steps)


def test_setup_numbers_that_hang_together_come_down_together() -> None:
    class Together(SetupCounterModel):
        def properties(self):  # type: ignore[no-untyped-def]
            first = super().properties()[0]
            fields = {name: getattr(first, name) for name in first.__dataclass_fields__}
            tied = {**fields, "holds": lambda _before, _action, after: after.limit - after.value != 2}
            return [Property(**tied)]

    model = Together()
    (prop,) = model.properties()
    found = Witness((("limit", 20), ("start", 18)), model.initial_state({"limit": 20, "start": 18}), ())
    small, ended = shrink_witness(model, prop, found, 5_000)
    assert ended
    assert dict(small.setup or ()) == {"limit": 3, "start": 1}


def test_a_small_allowance_is_kept_and_said() -> None:
    calls = 0

    class Counting(CounterModel):
        def next_state(self, state, action):  # type: ignore[no-untyped-def]
            nonlocal calls
            calls += 1
            return super().next_state(state, action)

    model = Counting(faulty=True)
    found = Witness(None, Tally(0, 12), (add(1),) * 13)
    small, ended = shrink_witness(model, model.properties()[0], found, 3)
    assert not ended
    assert calls <= 4 * 13
    assert small.actions == found.actions, "three tries are not enough for anything"


def test_without_a_table_earlier_actions_of_the_same_name_are_simpler() -> None:
    model = LockModel(faulty=True)
    bob, ann = {"client": "bob"}, {"client": "ann"}
    actions = [Action.of(name, **who) for who in (bob, ann) for name in ("ask", "enter")]
    small, _ = shrink_witness(model, model.properties()[0], Witness(None, LockState(), tuple(actions)), 1_000)
    assert len(small.actions) == 4
    assert small.actions == tuple(actions), "the clients could only change places in two actions at once"


def test_progress_shrinks_to_where_the_fair_run_first_fails() -> None:
    model = TankModel(stuck=True)
    fill, jam = Action.of("fill", amount=9), Action.of("jam")
    found = Witness(None, TankState(), (fill, fill, Action.of("drain"), jam, fill))
    small, _ = shrink_witness(model, model.properties()[0], found, 1_000)
    assert [str(action) for action in small.actions] == ["fill(amount=1)", "jam()"]


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    model, prop = counter()
    trace = build_trace(model, prop, Witness(None, Tally(0, 12), (add(5), add(5), add(5))))
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(Unwritable, match="cannot write the trace to"):
        write_plain_trace(trace, tmp_path / "file" / "trace.json")
