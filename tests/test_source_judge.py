"""What the source judge says about conditions: which guard each one is, whether it implies confirmed, the numbers."""

import json
import random
from pathlib import Path

import pytest
import z3
from outlives.invariants.source import PROPERTY, prove_source
from outlives.invariants.source.classes import ClassIndex
from outlives.invariants.source.files import gather
from outlives.invariants.source.sandbox import Programs
from outlives.invariants.source.stubs import symbols_for
from outlives.invariants.source.symbolic import Method, released_on, releases
from outlives.invariants.verdict import Verdict
from source_snippets import AFTER_ADVANCE, BEFORE_ADVANCE, CONFIRMED, LOOP, judged, releasing, scheduler, write

C, P, F = "request.num_computed_tokens", "request.num_output_placeholders", "request.num_in_flight_tokens"


@pytest.mark.parametrize(
    ("condition", "caller", "guard", "formula"),
    [
        (f"end <= {C}", AFTER_ADVANCE, "optimistic-after-advance", "end <= computed"),
        (f"end <= {C}", BEFORE_ADVANCE, "optimistic-before-advance", "end <= computed"),
        (f"not end > {C}", None, "optimistic-at-output", "end <= computed"),
        (CONFIRMED, None, "confirmed", "end <= computed - placeholders"),
        (f"{C} - end >= {P}", None, "confirmed", "end <= computed - placeholders"),
        (
            f"end + self.num_prefill_lookahead <= {C} - {P}",
            None,
            "confirmed-lookahead",
            "end + num_prefill_lookahead <= computed - placeholders",
        ),
        (
            f"end + (1 if self.use_eagle else 0) <= {C} - {P}",
            None,
            "confirmed-lookahead",
            "end + (1 if use_eagle) <= computed - placeholders",
        ),
        (f"end + 2 <= {C} - {P}", None, "confirmed-lookahead", "end + 2 <= computed - placeholders"),
        (f"end <= {C} - max({P}, {F})", None, "settled", None),
        ("False", None, "retain", "never"),
    ],
)
def test_a_condition_is_the_guard_that_means_the_same(
    tmp_path: Path, condition: str, caller: str | None, guard: str, formula: str | None
) -> None:
    found = judged(tmp_path, releasing(condition, caller) if caller else releasing(condition))
    assert found.guard == guard
    assert formula is None or found.condition == formula
    assert found.verdict is (Verdict.VIOLATED if guard.startswith("optimistic") else Verdict.PROVED)


def test_a_condition_at_another_place_is_named_but_is_not_that_guard(tmp_path: Path) -> None:
    found = judged(tmp_path, releasing(CONFIRMED, AFTER_ADVANCE))
    assert found.guard is None
    assert found.same_condition == ("confirmed",)
    assert found.implies_confirmed is True
    assert "asked at another place" in found.guard_words


@pytest.mark.parametrize(
    ("condition", "numbers"),
    [
        (f"end <= {C}", {"end": 1, "computed": 1, "placeholders": 1, "confirmed": 0}),
        (f"end + 3 <= {C}", {"end": 1, "computed": 4, "placeholders": 4, "confirmed": 0}),
        (f"end <= {C} - {P} + 2", {"end": 1, "computed": 0, "placeholders": 0, "confirmed": 0}),
        (f"end <= {C} - {F}", {"end": 1, "computed": 1, "placeholders": 1, "confirmed": 0, "in flight": 0}),
        (
            f"end <= {C} and (place.length >= 4 or request.num_preemptions >= 2)",
            {"end": 1, "computed": 1, "placeholders": 1, "confirmed": 0, "preemptions": 2},
        ),
        (
            f"end <= {C} and (end >= 4 or {C} >= 9)",
            {"end": 1, "computed": 9, "placeholders": 9, "confirmed": 0},
        ),
        (
            f"end <= {C} and {P} != 1 and request.num_output_tokens >= 20 - {C} and {C} != 7",
            {"end": 1, "computed": 2, "placeholders": 2, "confirmed": 0, "outputs": 18},
        ),
        (
            f"end <= {C} - 5 or end < {P} - 3",
            {"end": 1, "computed": 5, "placeholders": 5, "confirmed": 0},
        ),
        (
            f"end <= {C} and {C} % 3 == 2 and ({P} > 4 or {C} > 10)",
            {"end": 1, "computed": 5, "placeholders": 5, "confirmed": 0},
        ),
        (f"{P} > {C} + 2", {"end": 1, "computed": 0, "placeholders": 3, "confirmed": -3}),
        (f"place.offset >= 5 and end <= {C}", {"start": 5, "end": 6, "computed": 6, "placeholders": 1}),
    ],
)
def test_a_condition_that_frees_too_early_has_smallest_numbers(
    tmp_path: Path, condition: str, numbers: dict[str, int]
) -> None:
    found = judged(tmp_path, releasing(condition))
    assert found.verdict is Verdict.VIOLATED
    assert found.guard is None or found.guard == "optimistic-at-output"
    assert found.smallest is not None
    assert {name: found.smallest.numbers[name] for name in numbers} == numbers
    assert str(numbers["placeholders"]) in found.result().note


def test_no_guard_of_the_table_is_said_and_the_condition_is_written_out(tmp_path: Path) -> None:
    found = judged(tmp_path, releasing(f"{CONFIRMED} and {F} <= 4"))
    assert found.guard is None
    assert found.same_condition == ()
    assert found.condition == "end <= computed - placeholders and in flight <= 4"
    assert found.guard_words == "no guard of the table"
    assert found.implies_confirmed is True


def test_the_encoder_decoder_branch_is_a_line_of_its_own(tmp_path: Path) -> None:
    found = judged(tmp_path, releasing(f"self.is_encoder_decoder and {C} > 0 or {CONFIRMED}"))
    assert found.condition == "end <= computed - placeholders"
    assert found.verdict is Verdict.PROVED
    assert found.encoder_decoder.startswith("computed >= 1")


def test_something_unknown_in_the_encoder_decoder_branch_alone_leaves_the_verdict(tmp_path: Path) -> None:
    found = judged(tmp_path, releasing(f"(self.is_encoder_decoder and self.mystery) or {CONFIRMED}"))
    assert found.verdict is Verdict.PROVED
    assert "self.mystery" in found.encoder_decoder


def test_helpers_of_the_class_are_followed_and_a_connector_may_be_there_or_not(tmp_path: Path) -> None:
    body = LOOP.format(condition=CONFIRMED).replace("self.encoder_cache_manager.free_encoder_input", "self._drop")
    helper = """
    def _drop(self, request, index, *, quiet=True):
        self.encoder_cache_manager.free_encoder_input(request, input_id=index)
        if self.ec_connector is not None:
            self.ec_connector.update_state_after_free(request, index)
        logger.debug("dropped %d", index)
"""
    found = judged(tmp_path, scheduler(body, helpers=helper))
    assert (found.guard, found.verdict) == ("confirmed", Verdict.PROVED)


def test_an_inherited_helper_and_super_are_found_in_another_given_file(tmp_path: Path) -> None:
    base = write(tmp_path, releasing(CONFIRMED), "base.py")
    text = """
class Patient(base.Scheduler):
    def _free_encoder_inputs(self, request):
        if request.num_in_flight_tokens == 0:
            super()._free_encoder_inputs(request)
"""
    derived = write(tmp_path, text, "derived.py")
    report = prove_source([base, derived])
    assert [method.owner for method in report.methods] == ["Scheduler", "Patient"]
    assert report.methods[1].condition == "in flight = 0 and end <= computed - placeholders"
    assert report.exit_status == 0
    alone = prove_source([derived])
    assert alone.exit_status == 3
    assert "super()._free_encoder_inputs" in alone.methods[0].problem


def test_items_that_are_not_decided_alone_are_judged_together(tmp_path: Path) -> None:
    body = """
        first = request.mm_features[0].mm_position
        if first.offset + first.length <= request.num_computed_tokens - request.num_output_placeholders:
            self.encoder_cache_manager.free(request)
"""
    found = judged(tmp_path, scheduler(body))
    assert found.alone is False
    assert found.guard is None
    assert found.verdict is Verdict.VIOLATED
    assert found.smallest is not None
    assert found.smallest.item == 1
    assert found.smallest.numbers["end"] > found.smallest.numbers["confirmed"]


def test_stopping_at_the_first_item_that_must_stay_is_still_deciding_alone(tmp_path: Path) -> None:
    body = LOOP.format(condition=CONFIRMED) + "            else:\n                break\n"
    assert judged(tmp_path, scheduler(body)).alone is True


def test_an_assertion_of_the_method_is_a_reservation(tmp_path: Path) -> None:
    found = judged(tmp_path, scheduler(f"\n        assert {P} == 0" + LOOP.format(condition=f"end <= {C}")))
    assert found.verdict is Verdict.PROVED
    assert found.same_condition == (
        "optimistic-after-advance",
        "optimistic-before-advance",
        "optimistic-at-output",
        "confirmed",
    )
    assert found.problem_line == 4
    assert "raises for some numbers" in found.problem


def test_constants_of_module_and_class_are_known(tmp_path: Path) -> None:
    text = releasing(f"end + AHEAD + self.MORE <= {C} - {P}", before="AHEAD = 2", helpers="\n    MORE = 1\n")
    assert judged(tmp_path, text).condition == "end + 3 <= computed - placeholders"


@pytest.mark.parametrize(
    "condition",
    [
        f"end + (1 if self.use_eagle else 0) <= {C} - {P}",
        f"end <= {C} - max({P}, {F})",
        f"(end % 3 == 0 or {P} * 2 < end // 2) and end <= {C}",
    ],
)
def test_the_symbolic_condition_agrees_with_the_method_run_on_plain_numbers(tmp_path: Path, condition: str) -> None:
    (group,) = gather([write(tmp_path, releasing(condition))])
    index = ClassIndex(group)
    cls = next(index.with_method("_free_encoder_inputs"))
    method = Method(index, cls, cls.methods["_free_encoder_inputs"], Programs())
    found = releases(method, 2, encoder_decoder=False)
    rng = random.Random(7)
    seen = set()
    for _ in range(150):
        numbers = {item.name: rng.randint(item.low, 6 if item.kind != "switch" else 1) for item in symbols_for(2)}
        numbers["computed"] = rng.randint(0, 25)
        numbers["start 1"] = numbers["start 0"] + numbers["length 0"] + rng.randint(0, 2)
        plain = released_on(method, numbers, 2, encoder_decoder=False)
        pairs = [(found.values[name].term, z3.IntVal(value, found.context)) for name, value in numbers.items()]
        symbolic = {i for i in range(2) if z3.is_true(z3.simplify(z3.substitute(found.terms[i], *pairs)))}
        assert symbolic == plain
        seen.add(plain)
    assert len(seen) >= 3


def test_where_the_method_does_not_do_what_the_solver_says_the_engines_disagree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outlives.invariants.source.judge.released_on", lambda *_, **__: frozenset())
    report = prove_source([write(tmp_path, releasing(f"end <= {C}"))])
    assert report.methods[0].verdict is Verdict.DISAGREE
    assert "run on these numbers, does not" in report.methods[0].problem
    assert report.exit_status == 5


def test_a_solver_that_gives_up_is_unknown_and_never_green(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outlives.invariants.source.words._BUDGET", 1)
    report = prove_source([write(tmp_path, releasing(CONFIRMED))])
    assert report.methods[0].verdict is Verdict.UNKNOWN
    assert report.methods[0].guard is None
    assert "gave up" in report.methods[0].problem
    assert report.exit_status == 3


def test_the_report_is_plain_values_and_lines(tmp_path: Path) -> None:
    path = write(tmp_path, releasing(f"end <= {C}"))
    report = prove_source([path])
    data = json.loads(json.dumps(report.as_data()))
    assert data["files"][0]["verdict"] == "violated"
    method = data["files"][0]["methods"][0]
    assert method["smallest"] == {
        "start": 0,
        "length": 1,
        "end": 1,
        "computed": 1,
        "placeholders": 1,
        "confirmed": 0,
    }
    assert method["calls"][0]["site"] == "at-output"
    (result,) = report.results
    assert json.loads(json.dumps(dict(result.details))) == method
    assert (result.engine, result.property, result.verdict) == ("source", PROPERTY, Verdict.VIOLATED)
    text = "\n".join(report.lines())
    assert f"{path}:3 Scheduler._free_encoder_inputs" in text
    assert "an item at [0, 1) is released at computed 1 with placeholders 1, though only 0 is confirmed" in text
