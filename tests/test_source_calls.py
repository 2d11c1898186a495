"""From where the free method is called, and what else releases: read from the given files, not run."""

from pathlib import Path

from outlives.invariants.source import prove_source
from source_snippets import (
    AFTER_ADVANCE,
    AT_OUTPUT,
    BEFORE_ADVANCE,
    CONFIRMED,
    LOOP,
    judged,
    releasing,
    scheduler,
    write,
)


def test_the_site_of_a_call_is_told_with_its_line(tmp_path: Path) -> None:
    for caller, site in (
        (AFTER_ADVANCE, "after-advance"),
        (BEFORE_ADVANCE, "before-advance"),
        (AT_OUTPUT, "at-output"),
    ):
        text = releasing(CONFIRMED, caller)
        (call,) = judged(tmp_path, text).calls
        assert call.site == site
        assert text.splitlines()[call.line - 1].strip() == "self._free_encoder_inputs(request)"
        assert call.function.startswith("Scheduler.")


def test_a_call_through_other_methods_is_traced_to_its_site(tmp_path: Path) -> None:
    caller = """
    def _done_with(self, request):
        self._free_encoder_inputs(request)

    def _per_request(self, request):
        self._done_with(request)

    def update_from_output(self, output):
        for request in output.requests:
            self._per_request(request)
"""
    found = judged(tmp_path, releasing(CONFIRMED, caller))
    (call,) = found.calls
    assert (call.function, call.site) == ("Scheduler._done_with", "at-output")
    assert call.via == ("Scheduler._per_request", "Scheduler.update_from_output")
    assert found.guard == "confirmed"


def test_methods_that_call_each_other_in_a_ring_have_no_site(tmp_path: Path) -> None:
    caller = """
    def one(self, request):
        self._free_encoder_inputs(request)
        self.two(request)

    def two(self, request):
        self.one(request)
        self.three(request)

    def three(self, request):
        self.two(request)
"""
    (call,) = judged(tmp_path, releasing(CONFIRMED, caller)).calls
    assert (call.function, call.site) == ("Scheduler.one", "elsewhere")


def test_a_method_that_nothing_calls_is_judged_by_its_condition(tmp_path: Path) -> None:
    found = judged(tmp_path, releasing(CONFIRMED, ""))
    assert found.calls == ()
    assert found.guard == "confirmed"
    assert "  no call of it in the given files" in found.lines()


def test_two_sites_leave_the_guard_open(tmp_path: Path) -> None:
    found = judged(tmp_path, releasing("end <= request.num_computed_tokens", AFTER_ADVANCE + AT_OUTPUT))
    assert [call.site for call in found.calls] == ["after-advance", "at-output"]
    assert found.guard is None
    assert set(found.same_condition) == {
        "optimistic-after-advance",
        "optimistic-before-advance",
        "optimistic-at-output",
    }
    both = judged(tmp_path, releasing(CONFIRMED, AFTER_ADVANCE + AT_OUTPUT))
    assert (both.guard, both.same_condition) == (None, ("confirmed",))


def test_a_call_of_a_helper_that_releases_is_listed_where_it_is_outside(tmp_path: Path) -> None:
    body = LOOP.format(condition=CONFIRMED).replace("self.encoder_cache_manager.free_encoder_input", "self._drop")
    helpers = """
    def _drop(self, request, index):
        self.encoder_cache_manager.free_encoder_input(request, index)

    def _impatient(self, request):
        self._drop(request, 0)
"""
    (file,) = prove_source([write(tmp_path, scheduler(body, helpers=helpers))]).files
    assert [(other.function, other.what) for other in file.not_judged] == [
        ("Scheduler._impatient", "calls _drop: one item")
    ]


def test_other_releases_and_overrides_are_listed_as_not_judged(tmp_path: Path) -> None:
    more = """
    def _preempt(self, request):
        self.encoder_cache_manager.free(request)

    def _drop_one(self, request):
        self.encoder_cache_manager.free_encoder_input(request, 0)

    def reset(self):
        self.encoder_cache_manager.reset()
        self.kv_cache_manager.free(1)
"""
    first = write(tmp_path, releasing(CONFIRMED, AT_OUTPUT + more), "scheduler.py")
    text = """
class Late(Scheduler):
    def update_from_output(self, output):
        return super().update_from_output(output)

    def _unrelated(self):
        return 1
"""
    second = write(tmp_path, text, "late.py")
    report = prove_source([first, second])
    told = {(Path(o.file).name, o.function, o.what) for file in report.files for o in file.not_judged}
    assert told == {
        ("scheduler.py", "Scheduler._preempt", "calls the manager's free: every item of a request"),
        ("scheduler.py", "Scheduler._drop_one", "calls free_encoder_input: one item"),
        ("scheduler.py", "Scheduler.reset", "calls the manager's reset: the whole cache"),
        ("late.py", "Late.update_from_output", "overrides Scheduler.update_from_output"),
    }
    lines = first.read_text().splitlines()
    for other in report.files[0].not_judged:
        assert "encoder_cache_manager" in lines[other.line - 1]
    assert report.exit_status == 0


def test_a_call_on_self_is_not_attributed_to_an_unrelated_class(tmp_path: Path) -> None:
    body = """
    def _free_encoder_inputs(self, request):
        for item in list(self.encoder_cache_manager.get_cached_input_ids(request)):
            feature = request.mm_features[item]
            end = feature.mm_position.offset + feature.mm_position.length
            if end <= request.num_computed_tokens - request.num_output_placeholders:
                self.encoder_cache_manager.free_encoder_input(request, item)
"""
    calling = "\n    def update_from_output(self, request):\n        self._free_encoder_inputs(request)\n"
    (tmp_path / "two.py").write_text(f"class A:{body}{calling}\n\nclass B:{body}\n\nclass C(A):\n    pass\n")
    report = prove_source([tmp_path / "two.py"])
    calls = {method.owner: [call.function for call in method.calls] for method in report.methods}
    assert calls == {"A": ["A.update_from_output"], "B": []}
