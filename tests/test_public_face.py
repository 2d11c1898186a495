"""`outlives.model` is what a model of one's own is written with: its names, and what a type checker makes of them."""

import subprocess
import sys
from pathlib import Path

import outlives.model
import pytest
from outlives.invariants import testing
from outlives.model import contract, errors

ROOT = Path(__file__).resolve().parent.parent
TYPED = """
from collections.abc import Iterator, Sequence
from outlives.model import Action, Model, Property, Refusal

class Count:
    def initial_states(self) -> Sequence[int]:
        return [0]
    def actions(self, state: int) -> Iterator[Action]:
        yield Action.of("more", by=1)
    def next_state(self, state: int, action: Action) -> {answer}:
        return state + 1 if state < 3 else Refusal("full")
    def properties(self) -> Sequence[Property[int]]:
        return [Property(
            name="SMALL", phrase="it is small", holds=lambda before, action, after: after < 4,
            explain=lambda before, action, after: f"it is {{after}}",
            situation=lambda before, action, after: True, situation_phrase="it is there",
        )]
    def within(self, state: int) -> bool:
        return True

model: Model[int] = Count()
"""


def test_the_public_names_are_those_of_the_contract() -> None:
    assert set(outlives.model.__all__) == {*contract.__all__, "OutlivesError"}
    for name in outlives.model.__all__:
        assert getattr(outlives.model, name) is getattr(contract if name != "OutlivesError" else errors, name)


def test_what_a_test_file_needs_is_in_one_place() -> None:
    assert set(testing.__all__) >= {"lifetime_machine", "Subject", "Observation", "Configuration", "SubjectChoice"}
    for name in testing.__all__:
        assert hasattr(testing, name)


@pytest.mark.parametrize(("answer", "status"), [("int | Refusal", 0), ("int | Refusal | None", 1)])
def test_a_strict_type_checker_takes_a_model_for_one(answer: str, status: int, tmp_path: Path) -> None:
    (tmp_path / "outlives").mkdir()
    for room in ("model", "invariants"):
        (tmp_path / "outlives" / room).symlink_to(ROOT / room)
    (tmp_path / "mine.py").write_text(TYPED.format(answer=answer), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--namespace-packages", "--explicit-package-bases", "mine.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    if status:
        assert 'has type "Count"' in done.stdout
        assert "next_state" in done.stdout
