"""Where a search stops by itself or by Ctrl-C, and what it says about the rest."""

from collections.abc import Callable
from typing import Any

import pytest
from outlives.invariants.explore import Checkpoint, Progress, breadth_first, interned_search
from outlives.invariants.explore.bounds import remaining, resident_bytes
from outlives.invariants.verdict import Verdict
from protocol_p import SCOPES, ProtocolP


def _interrupting(level: int) -> Callable[[Progress], None]:
    def listen(line: Progress) -> None:
        if line.level == level:
            raise KeyboardInterrupt

    return listen


@pytest.mark.parametrize("search", [breadth_first, interned_search])
def test_ctrl_c_says_what_is_known_and_the_checkpoint_goes_on(search: Any, tmp_path: Any) -> None:
    model = ProtocolP(SCOPES["r2"])
    kept = Checkpoint(tmp_path / "kept", "r2")
    found = search(model, listener=_interrupting(11), checkpoint=kept)
    assert found.interrupted
    assert found.stopped == "Ctrl-C"
    assert found.searched == 12
    assert found.results()[0].verdict is Verdict.VIOLATED
    later = search(model, checkpoint=kept)
    assert not later.interrupted
    assert later.same(search(model)) == []
    assert later.details["resumed"] == found.states


def test_the_estimate_is_a_floor_while_levels_grow_and_a_figure_once_they_shrink() -> None:
    assert remaining([1, 2], 30, 100.0) == "at least the 30 states that wait; too early for an estimate"
    growing = remaining([1, 10, 20, 40, 80], 70, 100.0)
    assert growing.startswith("at least the 70 states that wait; the last levels grow by a factor of 2.00 each")
    shrinking = remaining([10, 800, 400, 200, 100], 50, 10.0)
    assert shrinking == (
        "at least the 50 states that wait; if the last levels' factor of 0.50 holds, about 100 states more, "
        "10 s at 10 states/s"
    )


def test_resident_memory_is_seen_to_grow() -> None:
    before = resident_bytes()
    block = bytearray(b"x" * (64 << 20))
    assert resident_bytes() - before > 32 << 20
    assert len(block) == 64 << 20
