"""When a search is handed over to the compiled loops: in its middle, not where it may not be, not when small."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from outlives.invariants.explore import Bounds, Checkpoint, NotInstalled, breadth_first, interned_search
from outlives.invariants.explore.handing_over import HandingOver
from protocol_p import SCOPES, ProtocolP
from random_models import RandomModel

pytest.importorskip("numba", reason="the compiled search needs numba, the extra outlives[fast]")

from outlives.invariants.explore import compiled, jit


def hand_over_after(monkeypatch: pytest.MonkeyPatch, states: int) -> None:
    """As if it were worth while so early, and the machine code were there."""
    monkeypatch.delenv("OUTLIVES_NO_NUMBA", raising=False)
    monkeypatch.setattr("outlives.invariants.explore.handing_over._AFTER", states)
    monkeypatch.setattr(compiled, "kept", lambda: True)


@pytest.mark.parametrize("after", [2, 300, 2_000])
def test_a_search_is_handed_over_in_its_middle(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    hand_over_after(monkeypatch, after)
    for scope in ("s1", "r2"):
        model = ProtocolP(SCOPES[scope])
        found = interned_search(model)
        assert interned_search(model, compiled=False).same(found) == []
        assert found.details["engine"] == "compiled"
        assert int(found.details["compiled"].split()[1].replace(",", "")) in range(after, after + 2_000)
    if after == 300:
        for seed in range(12):
            plain = breadth_first(RandomModel(seed))
            assert plain.same(interned_search(RandomModel(seed))) == []


def test_it_is_not_handed_over_where_it_may_not_be(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hand_over_after(monkeypatch, 300)
    model = ProtocolP(SCOPES["s1"])

    def why(**options: Any) -> tuple[str, str]:
        details = interned_search(model, **options).details
        return details["engine"], details["compiled"]

    assert why(checkpoint=Checkpoint(tmp_path / "kept", "s1")) == ("interned", "no: a checkpoint is kept")
    assert why(checkpoint=Checkpoint(tmp_path / "kept", "s1"), compiled=True)[0] == "interned"
    assert why(bounds=Bounds(states=500)) == ("interned", "no: the bound on states is near")
    assert why(compiled=False) == ("interned", "no: not wanted")
    monkeypatch.setenv("OUTLIVES_NO_NUMBA", "1")
    assert why() == ("interned", "no: OUTLIVES_NO_NUMBA is set")
    assert why(compiled=True)[0] == "compiled"
    monkeypatch.setenv("OUTLIVES_NO_NUMBA", "0")
    assert why()[0] == "compiled"


def test_a_small_search_is_not_worth_it_and_one_yet_to_be_compiled_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OUTLIVES_NO_NUMBA", raising=False)
    assert interned_search(ProtocolP(SCOPES["s1"])).details["compiled"] == "no: the search is small"
    for kept, states in ((True, 25_000), (False, 500_000)):
        monkeypatch.setattr(compiled, "kept", lambda kept=kept: kept)
        handing = HandingOver(None, Bounds(), kept=False)
        assert not handing.due(states - 1)
        assert handing.due(states)


def test_without_numba_python_goes_on_and_insisting_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    hand_over_after(monkeypatch, 300)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    found = interned_search(ProtocolP(SCOPES["s1"]))
    assert (found.details["engine"], found.details["compiled"]) == ("interned", "no: numba is not installed")
    with pytest.raises(NotInstalled, match=r"numba is not installed. Install outlives\[fast\]"):
        interned_search(ProtocolP(SCOPES["s1"]), compiled=True)


FIRST = """
import sys
sys.path.insert(0, {tests!r})
from outlives.invariants.explore import interned_search, shortest
from protocol_p import SCOPES, ProtocolP
assert shortest(ProtocolP(SCOPES["r2"]), "GATHER").trace is not None
interned_search(ProtocolP(SCOPES["s1"]))
print([name for name in ("numba", "numpy", "llvmlite") if name in sys.modules])
"""


def test_a_small_search_imports_nothing_for_it() -> None:
    script = FIRST.format(tests=str(Path(__file__).parent))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_machine_code_is_kept_where_it_can_be_and_done_without_where_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def no_folder(*_arguments: Any, **options: Any) -> Any:
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available for file")
        return lambda: "compiled all the same"

    interned_search(RandomModel(1), compiled=True)
    assert compiled.kept()
    monkeypatch.setattr(jit, "njit", no_folder)
    assert jit.compiled(lambda: "not compiled")() == "compiled all the same"
    monkeypatch.undo()
    script = "from outlives.invariants.explore import compiled; print(compiled.kept())"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "False\n"
