"""Mutants of the model's rules: what is made, that one takes its function's place and no longer, and what kills it."""

from collections import Counter
from dataclasses import replace

import pytest
from command_runs import Run, runner
from outlives.invariants import mutant_battery, mutants_run
from outlives.invariants.configuration import Configuration
from outlives.invariants.mutant_battery import Baseline, Judged, baseline_of, judge_mutant
from outlives.invariants.mutants import MODULES, Mutant, mutant_named, mutants, planted
from outlives.invariants.mutants_equivalent import EQUIVALENT
from outlives.invariants.scope_choice import chosen_scopes
from outlives.model import lifetime, scheduler
from outlives.model.errors import Contradiction
from outlives.model.lifetime import Counters
from outlives.model.profiles import RELEASED_RULES

ALL = [each for module in MODULES for each in mutants(module)]
ADVANCE = "lifetime.advance: c.computed + count -> c.computed"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)  # type: ignore[arg-type]
    return runner(capsys)


def test_there_are_many_of_every_kind_and_in_every_room() -> None:
    assert len(ALL) >= 300
    kinds = Counter(each.operator for each in ALL)
    assert min(kinds.values()) >= 4
    assert set(kinds) >= {"comparison", "dropped term", "skipped update", "swapped updates", "index", "bound", "choice"}
    assert {each.module for each in ALL} == set(MODULES)


def test_each_has_a_name_of_its_own_without_a_line() -> None:
    assert len({each.key for each in ALL}) == len(ALL)
    assert mutant_named(ADVANCE).operator == "dropped term"
    with pytest.raises(
        Contradiction, match=r"there is no mutant 'lifetime.advance: c.computed . count -> computed'."
    ) as no:
        mutant_named("lifetime.advance: c.computed + count -> computed")
    assert f"Did you mean {ADVANCE!r}?" in str(no.value)
    assert len(str(no.value)) < 400
    with pytest.raises(Contradiction, match="the module one of lifetime, book, gate, batch, output, worker"):
        mutant_named("nowhere.advance: count -> 2 * count")


def test_one_is_in_the_place_of_its_function_and_no_longer() -> None:
    c = Counters(1, 0, 0, 0, 5)
    with planted(mutant_named(ADVANCE)):
        assert RELEASED_RULES.advance(c, 2).computed == lifetime.advance(c, 2).computed == 1
    assert RELEASED_RULES.advance(c, 2).computed == 3


def test_it_reaches_who_imported_the_function_by_name() -> None:
    key = "batch.run_pass: len(state.steps) >= state.setup.depth -> len(state.steps) > state.setup.depth"
    original = scheduler.run_pass.__code__
    with planted(mutant_named(key)):
        assert scheduler.run_pass.__code__ is not original
    assert scheduler.run_pass.__code__ is original


def test_each_one_compiles_and_differs() -> None:
    for each in ALL:
        with planted(each):
            pass
        assert each.before != each.after


def test_every_survivor_that_is_explained_is_a_mutant() -> None:
    assert set(EQUIVALENT) <= {each.key for each in ALL}
    assert all(len(why) > 20 for why in EQUIVALENT.values())


@pytest.fixture(scope="module")
def small() -> Baseline:
    scopes = chosen_scopes(Configuration(), ("two-at-once", "rivals", "second-turn"), every_number=False)
    return replace(baseline_of(scopes, others=False), prices=mutant_battery._prices())


@pytest.mark.parametrize(
    ("key", "stage"),
    [
        (ADVANCE, "exhaustive"),
        ("book.allocate: book.free - size -> book.free", "exhaustive"),
        ("lifetime.wanted: c.known + drafts + c.placeholders -> c.known + drafts", ""),
    ],
)
def test_the_battery_kills_or_does_not(key: str, stage: str, small: Baseline, monkeypatch: pytest.MonkeyPatch) -> None:
    stages = {name: stage for name, stage in mutant_battery.STAGES.items() if name in ("exhaustive", "catalogue")}
    monkeypatch.setattr(mutant_battery, "STAGES", stages)
    assert judge_mutant(mutant_named(key), small).stage == stage


@pytest.mark.parametrize(
    ("key", "stage", "why"),
    [
        ("batch._grant: work.encoder_budget -= slots -> pass", "releases", "is not what the release showed"),
        (
            "lifetime.true_window: end <= c.computed - drafts -> end < c.computed - drafts",
            "price",
            "A3 true, anywhere: Price(",
        ),
    ],
)
def test_what_violates_nothing_is_killed_by_a_release_or_a_price(
    key: str, stage: str, why: str, small: Baseline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutant_battery, "STAGES", {stage: mutant_battery.STAGES[stage]})
    judged = judge_mutant(mutant_named(key), small)
    assert judged.stage == stage
    assert why in judged.why


def test_the_model_as_it_is_survives_what_is_asked_of_every_mutant(small: Baseline) -> None:
    for name in ("exhaustive", "catalogue", "price"):  # the walks are in test_walks
        assert mutant_battery.STAGES[name](small) == ""


def test_what_never_ends_is_killed_though_the_model_takes_exceptions_for_a_rules_own(
    monkeypatch: pytest.MonkeyPatch, small: Baseline
) -> None:
    stages = {name: stage for name, stage in mutant_battery.STAGES.items() if name == "releases"}
    monkeypatch.setattr(mutant_battery, "STAGES", stages)
    monkeypatch.setattr(mutant_battery, "_SECONDS", 1)
    judged = judge_mutant(mutant_named("book.make_room: book = world.rules.evict_oldest(world, book) -> pass"), small)
    assert (judged.stage, judged.why) == ("releases", "takes more than 1 s")


def test_what_never_ends_is_killed(monkeypatch: pytest.MonkeyPatch, small: Baseline) -> None:
    def forever(*_: object, **__: object) -> None:
        while True:
            pass

    monkeypatch.setattr(mutant_battery, "explore", forever)
    monkeypatch.setattr(mutant_battery, "_SECONDS", 1)
    judged = judge_mutant(mutant_named(ADVANCE), small)
    assert (judged.stage, judged.why) == ("exhaustive", "takes more than 1 s")


def _judged(stage: str) -> object:
    def judge(mutant: Mutant) -> Judged:
        return Judged(key=mutant.key, line=mutant.line, operator=mutant.operator, stage=stage)

    return judge


@pytest.mark.parametrize(
    ("stage", "known", "status", "said"),
    [
        ("tie", {}, 0, "1 of 1 mutants are killed (100.0%)"),
        ("", {}, 1, "0 of 1 mutants are killed"),
        ("", {ADVANCE: "it is"}, 0, "Of 1 of 1 survivors it is said why"),
        ("tie", {ADVANCE: "it is"}, 1, f"Said to be equivalent, and killed: {ADVANCE}"),
        ("tie", {"book.find: a -> b": "it was"}, 1, "no mutant any more: book.find: a -> b"),
    ],
)
def test_the_score_and_the_status(
    stage: str, known: dict[str, str], status: int, said: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutants_run, "judge_mutant", _judged(stage))
    monkeypatch.setattr(mutants_run, "EQUIVALENT", known)
    done = run("faults", "--mutant", ADVANCE, "--workers", "1", "--json")
    assert done.status == status
    assert any(said in line for line in done.object["notes"])
    (row,) = done.object["mutants"]["judged"]
    assert row["killed_by"] == (stage or None)
    assert row["place"].startswith("model/lifetime.py:")


def test_mutants_have_a_battery_of_their_own(run: Run) -> None:
    assert run("faults", "--mutants", "--seeds", "3").status == 2
    assert run("faults", "--mutants", "--every", "0").status == 2
    assert run("faults", "--mutant", "book.find: a -> b").status == 2


@pytest.mark.campaign
def test_at_least_95_of_100_mutants_are_killed_and_the_rest_explained(run: Run) -> None:
    """About an hour and a half of one processor."""
    done = run("faults", "--mutants", "--json")
    judged = done.object["mutants"]["judged"]
    by_stage = Counter(row["killed_by"] for row in judged)
    print(len(judged), dict(by_stage))
    assert done.status == 0
    assert len(judged) >= 300
    assert by_stage[None] <= len(judged) * 0.05
