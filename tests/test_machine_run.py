"""The machine engine over small models: verdicts, counts, what is written when, and interruption."""

import json
from pathlib import Path

import pytest
from outlives.invariants.configuration import Configuration
from outlives.invariants.machine import MachineInterrupted, MachineProgress, MachineRun, machine_profile, run_machine
from outlives.invariants.machine_settings import MachineSettings
from outlives.invariants.verdict import Result, Trace, Verdict
from outlives.model.errors import UnknownName
from toy_models import CounterModel, LockModel, SetupCounterModel, TankModel

QUICK = machine_profile("quick")


def result(run: MachineRun, name: str) -> Result:
    return next(each for each in run.results if each.property == name)


def trace(run: MachineRun, name: str) -> Trace:
    found = result(run, name).trace
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(10))
def test_finds_and_shrinks_to_the_shortest(seed: int) -> None:
    run = run_machine(CounterModel(faulty=True), settings=QUICK, seed=seed)
    assert result(run, "BELOW-LIMIT").verdict is Verdict.VIOLATED
    assert len(trace(run, "BELOW-LIMIT").actions) == 3, "three additions of at most five pass a limit of twelve"
    assert sum(action.get("amount", 0) for action in trace(run, "BELOW-LIMIT").actions) == 13
    assert [str(action) for action in trace(run, "SMALL-STEPS").actions] == ["add(amount=5)"]


@pytest.mark.parametrize("seed", range(10))
def test_finds_a_violation_without_an_action_table(seed: int) -> None:
    run = run_machine(LockModel(faulty=True), settings=QUICK, seed=seed)
    assert [action.name for action in trace(run, "ONE-INSIDE").actions] in (
        ["ask", "enter", "ask", "enter"],
        ["ask", "ask", "enter", "enter"],
    )


def test_setup_numbers_are_drawn_and_lowered() -> None:
    run = run_machine(SetupCounterModel(), settings=QUICK, seed=3)
    shown = trace(run, "BELOW-LIMIT")
    assert shown.shrink["setup"] == {"limit": 3, "start": 0}
    assert len(shown.actions) == 1
    assert shown.steps[0].state.limit == 3
    assert shown.shrink["final_numbers"]["limit"] <= shown.shrink["found_numbers"]["limit"]


def test_sound_models_pass_with_what_was_covered() -> None:
    run = run_machine(LockModel(faulty=False), settings=QUICK)
    only = result(run, "ONE-INSIDE")
    assert only.verdict is Verdict.PASSED
    assert only.engine == "machine"
    assert only.coverage == f"{run.cases:,} runs, {run.taken:,} steps"
    assert only.details["situations"] == run.situations["ONE-INSIDE"] > 0
    assert run.cases >= QUICK.cases
    assert run.never_fired == ()
    assert run.refused["enter"]["taken"] > 0
    assert sum(run.fired.values()) == run.taken


def test_a_situation_that_never_arose_is_vacuous() -> None:
    run = run_machine(CounterModel(faulty=False), settings=QUICK)
    huge = result(run, "NEVER-HUGE")
    assert huge.verdict is Verdict.VACUOUS
    assert "the value reached a million" in huge.note
    assert result(run, "BELOW-LIMIT").verdict is Verdict.PASSED


def test_each_property_gets_its_own_verdict_and_share() -> None:
    run = run_machine(CounterModel(faulty=True), settings=QUICK)
    assert [each.verdict for each in run.results] == [Verdict.VIOLATED, Verdict.VIOLATED, Verdict.VACUOUS]
    assert run.rounds == 3
    assert result(run, "NEVER-HUGE").details["cases"] >= QUICK.cases


def test_first_only_leaves_the_others_unknown() -> None:
    run = run_machine(CounterModel(faulty=True), settings=QUICK.changed(first_only=True))
    assert sorted(each.verdict for each in run.results) == [Verdict.UNKNOWN, Verdict.UNKNOWN, Verdict.VIOLATED]
    assert run.rounds == 1


def test_only_the_named_properties_are_judged() -> None:
    run = run_machine(CounterModel(faulty=True), settings=QUICK, properties=["SMALL-STEPS"])
    assert [each.property for each in run.results] == ["SMALL-STEPS"]
    with pytest.raises(UnknownName, match="BELOW-LIMIT"):
        run_machine(CounterModel(faulty=True), settings=QUICK, properties=["BELOW"])


def test_an_action_that_never_fired_is_listed() -> None:
    class NoRest(CounterModel):
        def next_state(self, state, action):  # type: ignore[no-untyped-def]
            from outlives.model.contract import Refusal

            return Refusal("never") if action.name == "rest" else super().next_state(state, action)

    run = run_machine(NoRest(faulty=False), settings=QUICK)
    assert run.never_fired == ("rest",)
    assert set(run.refused["rest"]) == {"never"}


def test_the_boundary_is_not_gone_past() -> None:
    class Bounded(CounterModel):
        def within(self, state):  # type: ignore[no-untyped-def]
            return state.value < 10

    seen = []

    class Watching(Bounded):
        def next_state(self, state, action):  # type: ignore[no-untyped-def]
            seen.append(state.value)
            return super().next_state(state, action)

    run = run_machine(Watching(faulty=False), settings=QUICK)
    assert run.outside > 0
    assert max(seen) < 10
    assert result(run, "BELOW-LIMIT").verdict is Verdict.PASSED


# --- what is written, and when --------------------------------------------------------------------------------------


def test_the_trace_as_found_is_written_before_shrinking(tmp_path: Path) -> None:
    order: list[str] = []

    class Watched(CounterModel):
        def next_state(self, state, action):  # type: ignore[no-untyped-def]
            order.append("action")
            return super().next_state(state, action)

    lengths = []

    def write(found: Trace, path: Path) -> None:
        order.append(path.name)
        lengths.append(len(found.actions))

    run = run_machine(Watched(faulty=True), settings=QUICK, out=tmp_path, write_trace=write, properties=["BELOW-LIMIT"])
    assert order.count("machine-BELOW-LIMIT-unshrunk.json") == 1
    shrunk = trace(run, "BELOW-LIMIT")
    assert lengths == [shrunk.shrink["found_length"]]
    assert lengths[0] > shrunk.shrink["final_length"] == 3
    after = order[order.index("machine-BELOW-LIMIT-unshrunk.json") :]
    assert after.count("action") > lengths[0], "the tries of the shrinker come after the writing"


def test_the_plain_file_has_setup_and_actions_by_name(tmp_path: Path) -> None:
    run_machine(SetupCounterModel(), settings=QUICK, out=tmp_path / "run", properties=["BELOW-LIMIT"])
    content = json.loads((tmp_path / "run" / "machine-BELOW-LIMIT-unshrunk.json").read_text())
    assert set(content["setup"]) == {"limit", "start"}
    assert all(set(action) == {"name", "arguments"} for action in content["actions"])
    assert content["actions"][-1]["name"] == "add"
    assert "the limit" in content["why"]


def test_how_it_shrank_is_told() -> None:
    shown = trace(run_machine(CounterModel(faulty=True), settings=QUICK), "BELOW-LIMIT").shrink
    assert shown["final_length"] <= shown["found_length"]
    assert shown["final_numbers"]["sum of arguments"] == 13
    assert shown["seconds"] >= 0


def test_counts_do_not_include_replays() -> None:
    run = run_machine(CounterModel(faulty=True), settings=QUICK.changed(first_only=True))
    assert run.cases == run.results[0].details["cases"]
    assert sum(run.fired.values()) == run.taken <= run.calls


# --- progress -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_a_stuck_model_is_found_with_the_shortest_way_there(seed: int) -> None:
    shown = trace(run_machine(TankModel(stuck=True), settings=QUICK, seed=seed), "EMPTIES")
    assert sorted(str(action) for action in shown.actions) == ["fill(amount=1)", "jam()"]
    assert shown.shrink["fair_from"] == 2
    assert shown.why == "the level stays at 1"


def test_progress_is_judged_where_a_case_ends() -> None:
    chosen = QUICK.changed(fair_every=0, steps=2)
    run = run_machine(TankModel(stuck=True), settings=chosen, seed=1)
    assert result(run, "EMPTIES").verdict is Verdict.VIOLATED


def test_the_fair_run_that_never_ends_is_part_of_the_trace() -> None:
    shown = trace(run_machine(TankModel(slow=True), settings=QUICK, seed=1), "EMPTIES")
    own, fair = shown.actions[: shown.shrink["fair_from"]], shown.actions[shown.shrink["fair_from"] :]
    assert [str(action) for action in own] == ["fill(amount=1)"]
    assert [str(action) for action in fair] == ["fill(amount=2)", "drain()", "drain()"]


def test_progress_of_a_sound_model_passes() -> None:
    only = result(run_machine(TankModel(), settings=QUICK), "EMPTIES")
    assert only.verdict is Verdict.PASSED
    assert only.details["situations"] > 0


# --- interruption, progress, database -------------------------------------------------------------------------------


def test_interrupting_keeps_what_is_known() -> None:
    def stop(at: MachineProgress) -> None:
        if at.cases >= 25:
            raise KeyboardInterrupt

    with pytest.raises(MachineInterrupted) as caught:
        run_machine(CounterModel(faulty=False), settings=QUICK, progress=stop)
    partial = caught.value.partial
    assert partial.interrupted
    assert 25 <= partial.cases < QUICK.cases
    assert {each.verdict for each in partial.results} == {Verdict.UNKNOWN}
    assert partial.results[0].details["steps"] == partial.taken > 0


def test_interrupting_while_shrinking_keeps_the_trace_as_found() -> None:
    def stop(at: MachineProgress) -> None:
        if "making the trace smaller" in at.text:
            raise KeyboardInterrupt

    with pytest.raises(MachineInterrupted) as caught:
        run_machine(CounterModel(faulty=True), settings=QUICK, progress=stop)
    violated = [each for each in caught.value.partial.results if each.verdict is Verdict.VIOLATED]
    assert len(violated) == 1
    assert violated[0].trace is not None
    assert violated[0].trace.shortest == "as found, not shrunk"


def test_the_database_brings_a_violation_back_first(tmp_path: Path) -> None:
    chosen = QUICK.changed(cases=300, database=tmp_path / "db", first_only=True)
    model = Configuration(profile="0.33.0").model()
    first = run_machine(model, settings=chosen, seed=1, properties=["RELEASE-ONCE"])
    assert first.cases > 1
    again = run_machine(model, settings=chosen, seed=1, properties=["RELEASE-ONCE"])
    assert again.cases == 1
    assert trace(again, "RELEASE-ONCE").shrink["found_length"] == trace(first, "RELEASE-ONCE").shrink["found_length"]


def test_debug_says_what_it_does() -> None:
    lines: list[str] = []
    chosen = machine_profile("debug").changed(cases=3, steps=3)
    run_machine(CounterModel(faulty=False), settings=chosen, progress=lambda at: lines.append(at.text))
    assert any("state.add(amount=" in line for line in lines)


def test_same_seed_same_run_other_seed_other_run() -> None:
    def counts(seed: int) -> tuple[object, ...]:
        run = run_machine(TankModel(), settings=MachineSettings(name="t", cases=20, steps=15), seed=seed)
        return run.fired, run.refused, run.situations, run.calls

    assert counts(5) == counts(5)
    assert counts(5) != counts(6)
