"""The fair run: how it ends, and that remembering ends changes no answer."""

import pytest
from outlives.invariants.fair import FairEnd, FairJudge, fair_run, progress_holds
from outlives.model.contract import Action, Refusal
from outlives.model.errors import BadModel
from toy_models import CounterModel, TankModel, TankState


@pytest.mark.parametrize(
    ("model", "start", "actions", "end", "reason"),
    [
        (TankModel(), TankState(3), 3, TankState(0), FairEnd.DONE),
        (TankModel(), TankState(0), 0, TankState(0), FairEnd.DONE),
        (TankModel(), TankState(2, jammed=True), 3, TankState(0), FairEnd.DONE),
        (TankModel(stuck=True), TankState(2, jammed=True), 0, TankState(2, jammed=True), FairEnd.REFUSED),
        (TankModel(slow=True), TankState(2), 3, TankState(2), FairEnd.REPEATS),
    ],
)
def test_ends(model: TankModel, start: TankState, actions: int, end: TankState, reason: FairEnd) -> None:
    run = fair_run(model, start)
    assert (len(run.actions), run.end, run.reason) == (actions, end, reason)
    assert len(run.states) == len(run.actions)


class Short(TankModel):
    """A tank whose fair run must end within as many actions as `bound` says."""

    def __init__(self, bound: int) -> None:
        super().__init__()
        self.bound = bound

    def fair_bound(self, state: TankState) -> int:
        return self.bound


def test_the_bound_is_kept() -> None:
    assert fair_run(Short(4), TankState(4)).reason is FairEnd.DONE
    late = fair_run(Short(4), TankState(5))
    assert (late.reason, late.end, len(late.actions)) == (FairEnd.BOUND, TankState(1), 4)


@pytest.mark.parametrize("model", [TankModel(), TankModel(stuck=True), TankModel(slow=True), Short(4)])
def test_remembered_ends_are_the_ends(model: TankModel) -> None:
    states = [TankState(level, jammed) for level in (9, 5, 7, 1, 0, 4, 6) for jammed in (False, True)]
    judge = FairJudge(model)
    for state in states + states:
        assert judge.end(state) == fair_run(model, state).end, state


def test_a_remembered_end_does_not_widen_a_states_own_bound() -> None:
    class Uneven(TankModel):
        def fair_bound(self, state: TankState) -> int:
            return 30 if state.level == 9 else 2

    judge = FairJudge(Uneven())
    assert judge.end(TankState(9)) == TankState(0)
    assert judge.end(TankState(5)) == TankState(3)


def test_remembering_saves_actions() -> None:
    calls = 0

    class Counting(TankModel):
        def next_state(self, state: TankState, action: Action) -> TankState | Refusal:
            nonlocal calls
            calls += 1
            return super().next_state(state, action)

    judge = FairJudge(Counting())
    judge.end(TankState(9))
    assert calls == 9
    judge.end(TankState(8))
    judge.end(TankState(9))
    assert calls == 9
    judge.end(TankState(9, jammed=True))
    assert calls == 10, "only the way to a state that is known"


def test_progress_of_a_state() -> None:
    model = TankModel(stuck=True)
    (prop,) = model.properties()
    assert progress_holds(model, prop, TankState(4))
    assert not progress_holds(model, prop, TankState(4, jammed=True))


def test_a_model_without_a_fair_run_is_told() -> None:
    with pytest.raises(BadModel, match="fair_action and fair_bound"):
        fair_run(CounterModel(faulty=False), CounterModel(faulty=False).initial_states()[0])  # type: ignore[index]
