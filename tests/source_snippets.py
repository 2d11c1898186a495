"""Small scheduler files of our own invention, for the tests of the source judge."""

from pathlib import Path

from outlives.invariants.source import MethodReport, SourceReport, prove_source

LOOP = """
        held = self.encoder_cache_manager.get_cached_input_ids(request)
        for index in sorted(held):
            place = request.mm_features[index].mm_position
            end = place.offset + place.length
            if {condition}:
                self.encoder_cache_manager.free_encoder_input(request, index)
"""
"""A body that releases each item under one condition over `end`, `place` and `request`."""

AT_OUTPUT = """
    def update_from_output(self, output):
        for request in output.requests:
            request.num_computed_tokens -= output.rejected
            self._free_encoder_inputs(request)
"""
AFTER_ADVANCE = """
    def _update_after_schedule(self, step):
        for request in step.requests:
            request.num_computed_tokens += step.tokens
            self._free_encoder_inputs(request)
"""
BEFORE_ADVANCE = """
    def _update_after_schedule(self, step):
        for request in step.requests:
            self._free_encoder_inputs(request)
            request.num_computed_tokens += step.tokens
"""

CONFIRMED = "end <= request.num_computed_tokens - request.num_output_placeholders"


def scheduler(body: str, caller: str = AT_OUTPUT, *, before: str = "", helpers: str = "") -> str:
    """A file with one class: its free method with that body, one caller, and more methods."""
    return f"{before}\nclass Scheduler:\n    def _free_encoder_inputs(self, request):{body}\n{helpers}{caller}"


def releasing(condition: str, caller: str = AT_OUTPUT, **more: str) -> str:
    """A file whose scheduler releases an item under that condition."""
    return scheduler(LOOP.format(condition=condition), caller, **more)


def write(folder: Path, text: str, name: str = "scheduler.py") -> Path:
    """The file with that text in the folder."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def judged(folder: Path, text: str) -> MethodReport:
    """The one method of a file with that text."""
    report: SourceReport = prove_source([write(folder, text)])
    assert len(report.methods) == 1
    return report.methods[0]
