"""What a run reached: refusals, branches, the order of events; and what a vacuous one says of how far it got."""

from pathlib import Path

import pytest
from command_runs import Run, runner
from outlives.invariants.configuration import Configuration
from outlives.invariants.explore import breadth_first
from outlives.invariants.furthest import Furthest, Met, furthest
from outlives.invariants.jobs import subject_model
from outlives.invariants.machine import random_walk, run_machine
from outlives.invariants.machine_record import Recorder
from outlives.invariants.machine_settings import MachineSettings
from outlives.invariants.reached import added, reach_of
from outlives.invariants.refusal_reasons import refusal_reasons
from outlives.invariants.situations import ROUTE_SITUATIONS, SITUATIONS
from outlives.invariants.verdict import Verdict
from outlives.model.contract import Action, Property
from outlives.model.setup import RARE_ROUTES
from toy_models import CounterModel
from worlds import action, fixed, setup, world

CLOSED = [word for route in RARE_ROUTES for word in ("--without", route)]
OWN = """
from dataclasses import replace
from outlives.model import gate
from outlives.model.profiles import profile_named


def patient(world, setup, book, request, number, computed, count, limit):
    if count > 10_000:
        count = 10_000
    return gate.gate(world, setup, book, request, number, computed, count, limit)


base = profile_named("repaired")
mine = replace(base, name="mine", rules=replace(base.rules, gate=patient))
"""


@pytest.fixture
def run_command(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(capsys)


# --- the order of events ----------------------------------------------------------------------------------------------

ADJACENT = setup([(1, 3), (3, 5)], 6, slots=2, budget=6, drafts=1, look_ahead=1)
ORDERS = {
    "READ-AFTER-EVICTION": "arrive(request=r0) resume(request=r0,kept=1) abort(request=r0) evict(count=1) accept()",
    "ENCODED-AGAIN": "arrive(request=r0) resume(request=r0,kept=1) accept() schedule(short_at=r0) "
    "resume(request=r0,kept=1)",
    "RESUMED-AFTER-EVICTION": "arrive(request=r0) resume(request=r0,kept=3) accept() preempt(request=r0) "
    "resume(request=r0,kept=1)",
    "REJECTED-AFTER-RELEASE": "arrive(request=r0) resume(request=r0,kept=3) accept() schedule() reject(accepted=0)",
}
"""Situation -> a shortest run to it, which the exhaustive engine found; the last action brings it about."""
OTHERWISE = {
    "READ-AFTER-EVICTION": "arrive(request=r0) resume(request=r0,kept=1) abort(request=r0) accept()",
    "ENCODED-AGAIN": "arrive(request=r0) resume(request=r0,kept=1) accept() resume(request=r0,kept=1)",
    "RESUMED-AFTER-EVICTION": "arrive(request=r0) resume(request=r0,kept=3) accept() preempt(request=r0) "
    "resume(request=r0,kept=5)",
    "REJECTED-AFTER-RELEASE": "arrive(request=r0) resume(request=r0,kept=3) accept() schedule() accept()",
}
"""Nearly the same runs without what comes before, or after; refused actions are left out."""


def met(name: str, actions: str) -> list[bool]:
    """Whether the situation arises at each of the actions that are taken."""
    model = fixed("repaired", ADJACENT)
    recorder = Recorder(model, ())
    arises = next(each.situation for each in SITUATIONS if each.name == f"SITUATION-{name}")
    state = next(iter(model.initial_states()))
    found = []
    for text in actions.split():
        taken = action(text)
        after = recorder.take(state, taken, 0)
        if after is not None:
            found.append(arises(state, taken, after))
            state = after
    return found


def test_a_read_after_an_eviction_that_the_worker_was_told_of_by_a_later_step() -> None:
    told = "arrive(request=r0) resume(request=r0,kept=1) abort(request=r0) evict(count=1) schedule() accept()"
    assert met("READ-AFTER-EVICTION", told) == [False] * 5 + [True]


@pytest.mark.parametrize("name", ORDERS)
def test_an_order_of_events_is_seen_when_it_is_complete(name: str) -> None:
    found = met(name, ORDERS[name])
    assert found == [False] * (len(found) - 1) + [True]
    assert not any(met(name, OTHERWISE[name]))


def test_what_leads_to_a_situation_stands_before_it() -> None:
    names = [each.name for each in SITUATIONS]
    assert len(set(names)) == len(names)
    for each in SITUATIONS:
        assert all(names.index(before) < names.index(each.name) for before in each.towards), each.name
    assert {name for routes in ROUTE_SITUATIONS.values() for name in routes} <= set(names)


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_the_reasons_of_an_action_are_those_of_its_handler_and_of_what_it_calls() -> None:
    assert sorted(refusal_reasons(["finish"])) == ["no-output-now", "no-output-yet", "not-running"]
    assert sorted(refusal_reasons(["preempt"])) == ["not-running", "pipeline-full", "route-closed"]
    assert sorted(refusal_reasons(["reject"])) == ["not-executed", "nothing-to-reject", "pipeline-empty"]
    assert refusal_reasons(["evict", "occupy"]) == {"nothing-idle": ("evict",), "no-change": ("occupy",)}
    assert refusal_reasons(["an action that is not ours"]) == {}


def test_no_run_gives_a_reason_that_is_not_listed() -> None:
    model = subject_model(Configuration(), world())
    known = refusal_reasons(tuple(model.action_table))
    recorder = Recorder(model, ())
    for before, _, _ in random_walk(model, 400, 5):
        for name in model.action_table:
            for number in range(3):
                recorder.take(before, Action.of(name, request=f"r{number}"), 0)
    for name, reasons in recorder.refusals().items():
        assert all(name in known[reason] for reason in reasons), name
    assert len({reason for reasons in recorder.refusals().values() for reason in reasons}) > 15


def test_refusals_are_added_up_and_what_is_missing_is_named_with_its_actions() -> None:
    sums = added([{"evict": {"nothing-idle": 2}}, {"evict": {"nothing-idle": 3}, "arrive": {"never-fits": 1}}])
    assert sums == {"arrive": {"never-fits": 1}, "evict": {"nothing-idle": 5}}
    reach = reach_of(world(), ["evict", "occupy"], [sums], [0])
    assert (reach.reasons, reach.of_reasons) == (1, 2)
    assert reach.ungiven == ("no-change (occupy) was never given",)
    assert reach.sides == 0
    assert all(line.endswith(": never asked") for line in reach.untaken)


# --- through the command ----------------------------------------------------------------------------------------------


def test_a_branch_of_ones_own_that_is_never_taken_is_listed(run_command: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN, encoding="utf-8")
    asked = ("check", "--profile", "mine.py:mine", "--engine", "machine", "--cases", "12")
    reach = run_command(*asked, "--json").object["reach"]
    assert "mine.patient: count > 10000 (line 8): never true" in reach["sides_not_taken"]
    assert 0 < reach["sides_taken"] < reach["sides"]
    assert sum("never" in line for line in reach["sides_not_taken"]) == len(reach["sides_not_taken"])
    assert "gate.gate: switches.gate_look_ahead == 1" in reach["conditions_declared"]
    assert reach["refused"]["evict"]["nothing-idle"] > 0
    short = run_command(*asked).out
    line = next(line for line in short.splitlines() if line.startswith("Branches: "))
    assert line.startswith(f"Branches: {reach['sides_taken']} of {reach['sides']} sides taken; refusals: ")
    assert line.endswith("; the rest: --not-reached, --json")
    assert "count > 10000" not in short
    assert "- mine.patient: count > 10000 (line 8): never true" in run_command(*asked, "--not-reached").out


def test_explore_and_check_count_the_same_and_documents_list_it(run_command: Run, tmp_path: Path) -> None:
    asked = ("--scenario", "gap-one", "--profile", "0.33.0", "--json")
    explored = run_command("explore", *asked).object["reach"]
    checked = run_command("check", "--engine", "exhaustive", *asked).object["reach"]
    assert explored == checked
    assert explored["sides_taken"] > 60
    for form in ("markdown", "html"):
        page = run_command("explore", *asked[:-1], "--format", form).out
        assert f"Branches: {explored['sides_taken']} of {explored['sides']} sides taken" in page
        assert "Refusals that were never given" in page


def test_the_counts_are_those_of_the_plain_search_whatever_the_workers(run_command: Run) -> None:
    asked = ("explore", "--scope", "rivals", "--scope", "last-chunk", "--scope", "diffusion", "--json", "--workers")
    one, two = (run_command(*asked, str(workers)).object["reach"] for workers in (1, 2))
    assert one == two


def test_a_proof_alone_reaches_nothing_and_says_nothing(run_command: Run) -> None:
    assert "reach" not in run_command("check", "--engine", "proof", "--json").object


# --- how far a vacuous run got ----------------------------------------------------------------------------------------


def of(name: str, towards: tuple[str, ...] = (), more: str = "") -> Property[int]:
    return Property(
        name=name,
        phrase=name,
        holds=lambda _before, _action, _after: True,
        explain=lambda _before, _action, _after: "",
        situation=lambda _before, _action, _after: True,
        situation_phrase=f"{name.lower()} was met",
        towards=towards,
        more=more,
    )


RELEASE, EVICTION = of("RELEASE"), of("EVICTION", ("RELEASE",), "--items")
READ = of("READ", ("RELEASE", "UNKNOWN", "EVICTION"), "--depth")


@pytest.mark.parametrize(
    ("runs", "words", "more"),
    [
        ([], "release was met in none of 50 runs", ""),
        ([0b001] * 41, "release was met in 41 of 50 runs, eviction was met in none", "--items"),
        ([0b001] * 38 + [0b011] * 3, "release was met in 41 of 50 runs, eviction was met in 3, read was met in none",
         "--depth"),
        ([0b001, 0b010], "release was met in 1 of 50 runs, eviction was met in none", "--items"),
    ],
)  # fmt: skip
def test_best_partial_progress_is_of_runs_that_met_all_of_it(runs: list[int], words: str, more: str) -> None:
    met_together = Met()
    met_together.begin(["RELEASE", "EVICTION", "READ"])
    for each in runs:
        met_together.add(each)
    way = furthest(READ, (RELEASE, EVICTION, READ), met_together.together, of=50)
    assert (way.words(), way.more) == (f"at best: {words}", more)


def test_rounds_with_other_properties_are_added_where_they_judge_the_same() -> None:
    met_together = Met()
    met_together.begin(["RELEASE", "EVICTION"])
    met_together.add(0b11)
    met_together.begin(["EVICTION"])
    met_together.add(0b1)
    assert met_together.together(["RELEASE", "EVICTION"]) == 1
    assert met_together.together(["EVICTION"]) == 2


def test_times_instead_of_runs() -> None:
    way = Furthest((("a step left", 1), ("an entry was evicted", 0)), None, "")
    assert way.words() == "at best: a step left 1 time, an entry was evicted never"
    assert way.note("an entry was evicted", "take a larger scope") == (
        "it never happened that an entry was evicted; at best: a step left 1 time, an entry was evicted never; "
        "take a larger scope"
    )
    assert way.plain()["at_best"][0] == {"situation": "a step left", "times": 1}


def test_any_models_property_may_say_what_comes_before() -> None:
    class Stepwise(CounterModel):
        def properties(self):  # type: ignore[no-untyped-def]
            inside, small, huge = super().properties()
            return (inside, small, Property(**{**_fields(huge), "towards": (inside.name,), "more": "the limit"}))

    model = Stepwise(faulty=False)
    huge = model.properties()[-1]
    seen = run_machine(model, settings=MachineSettings(name="few", cases=20, steps=10))
    row = next(each for each in seen.results if each.property == huge.name)
    assert row.verdict is Verdict.VACUOUS
    assert f"at best: {model.properties()[0].situation_phrase} in " in row.note
    assert row.note.endswith("raise the limit, or raise --cases (now 20) or the steps of a case (now 10: --settings)")
    assert row.details["at_best"][-1]["runs"] == 0
    assert row.details["raise"] == "the limit"


def _fields(prop: Property[int]) -> dict[str, object]:
    return {name: getattr(prop, name) for name in Property.__dataclass_fields__}


def test_too_few_items_are_vacuous_with_how_far_it_got_and_what_to_raise(run_command: Run) -> None:
    said = run_command("check", "--engine", "machine", "--cases", "40", "--items", "0", *CLOSED, "--json")
    assert said.status == 4
    row = next(each for each in said.object["results"] if each["property"] == "GATHER-AFTER-FREE")
    assert row["verdict"] == "vacuous"
    left, encoded = row["details"]["at_best"]
    assert left["runs"] > 20
    assert encoded == {"situation": "a step was told to encode", "runs": 0}
    assert row["details"]["raise"] == "--items"
    assert "a step was told to encode in none; raise --items, or raise --cases (now 40)" in row["note"]


def test_too_few_cases_leave_an_open_route_and_say_how_far_it_got(run_command: Run) -> None:
    said = run_command("check", "--engine", "machine", "--cases", "1", "--json")
    assert said.status == 4
    lines = {line.split()[2]: line for line in said.object["vacuous"]}
    assert any("; at best: " in line for line in lines.values())
    for route, line in lines.items():
        assert f"close it with --without {route}, or " in line
        assert line.endswith("raise --cases (now 1)")


def test_a_scope_without_items_is_vacuous_with_what_every_state_shows(run_command: Run) -> None:
    asked = ("explore", "--scope", "many-drafts", "--property", "IDLE-EXACT", "--items", "0", "--json")
    said = run_command(*asked)
    (row,) = said.object["results"]
    assert (said.status, row["verdict"]) == (4, "vacuous")
    assert row["note"].startswith("it never happened that an entry was idle; at best: a step left with tokens of ")
    assert row["note"].endswith(" times, a step was told to encode never; raise --items, or take a larger scope")


def test_several_scopes_tell_together_how_far_they_got(run_command: Run) -> None:
    def at_best(*scopes: str) -> list[int]:
        named = [word for scope in scopes for word in ("--scope", scope)]
        said = run_command("explore", *named, "--property", "IDLE-EXACT", "--items", "0", "--json")
        (row,) = said.object["results"]
        return [each["times"] for each in row["details"]["at_best"]]

    one, other = at_best("many-drafts"), at_best("chunk-end")
    assert at_best("many-drafts", "chunk-end") == [a + b for a, b in zip(one, other, strict=True)]


def test_what_is_not_reached_alone_makes_nothing_vacuous(run_command: Run) -> None:
    said = run_command("check", "--engine", "machine", "--cases", "40", *CLOSED, "--json")
    assert said.status == 0
    assert said.object["reach"]["sides_not_taken"]
    assert said.object["vacuous"] == []


def test_every_order_of_events_is_met_in_one_small_scope() -> None:
    states = tuple(fixed("repaired", ADJACENT).initial_states())
    found = breadth_first(subject_model(Configuration(), world()), initial=states)
    assert {f"SITUATION-{name}" for name in ORDERS} <= {name for name, times in found.situations.items() if times}
