"""Models of one's own, of which nothing is about encoder caches: the tutorial's thirty lines, and a prefix tree."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from outlives.invariants.explore import explore
from outlives.invariants.machine import machine_profile, run_machine
from outlives.invariants.userfile import load_named
from outlives.invariants.verdict import Verdict
from plugin_runs import pytest_runs

ROOT = Path(__file__).resolve().parent.parent
LEASES = ROOT / "docs/examples/lease_cache.py"
RADIX = ROOT / "docs/examples/radix_cache.py"
PAGE = (ROOT / "docs/own-scheduler.md").read_text(encoding="utf-8")

make: Any = load_named(f"{RADIX}:RadixCache", "model")
FAULTS: tuple[str, ...] = load_named(f"{RADIX}:FAULTS", "model")
VIOLATED = {"leaf-only": "LOCKS-COUNT", "unlock-once": "LOCKS-COUNT", "parents-too": "TREE-HANGS-TOGETHER"}


# --- the tutorial -----------------------------------------------------------------------------------------------------


def _blocks(language: str) -> Iterator[str]:
    return iter(re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))


def test_the_tutorial_shows_the_file_and_its_model_has_thirty_lines() -> None:
    source = LEASES.read_text(encoding="utf-8")
    shown = next(block for block in _blocks("python") if "class LeaseCache" in block)
    assert source.partition('"""\n\n')[2].strip() == shown.strip()
    code = [line for line in shown.splitlines() if line.strip() and not line.strip().startswith("#")]
    tree = ast.parse(shown)
    properties = next(
        each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name == "properties"
    )
    assert properties.end_lineno is not None
    beside = properties.end_lineno - properties.lineno + 1
    assert len(code) - beside <= 30


def test_the_tutorials_test_finds_the_bug_that_the_page_shows(tmp_path: Path) -> None:
    (tmp_path / "lease_cache.py").write_text(LEASES.read_text(encoding="utf-8"), encoding="utf-8")
    file = next(block for block in _blocks("python") if "lifetime_machine" in block)
    done = pytest_runs(tmp_path)("-q", file=file)
    assert done.status == 1, done.out
    shown = next(block for block in _blocks("text") if "VIOLATED LEASED-STAYS" in block)
    assert shown.strip() in "\n".join(line.rstrip() for line in done.out.splitlines())


# --- the prefix tree --------------------------------------------------------------------------------------------------


def test_only_the_public_face_is_imported() -> None:
    for file in (LEASES, RADIX):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        imported = [each.module for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)]
        assert {each for each in imported if each and each.startswith("outlives")} == {"outlives.model"}


def test_every_state_of_the_tree_keeps_its_promises() -> None:
    found = explore(make())
    rows = {row.property: row for row in found.results()}
    assert {row.verdict for row in rows.values()} == {Verdict.EXHAUSTED}, rows
    assert found.states > 50


def test_the_machine_agrees() -> None:
    run = run_machine(make(), settings=machine_profile("quick").changed(steps=30))
    assert {row.verdict for row in run.results} == {Verdict.PASSED}, run.results
    assert run.never_fired == ()


@pytest.mark.parametrize("fault", FAULTS)
def test_both_engines_find_each_fault_and_agree_on_the_property(fault: str) -> None:
    searched = {row.property for row in explore(make(fault)).results() if row.verdict is Verdict.VIOLATED}
    drawn = run_machine(make(fault), settings=machine_profile("quick").changed(steps=30))
    assert VIOLATED[fault] in searched
    assert {row.property for row in drawn.results if row.verdict is Verdict.VIOLATED} == searched


def test_a_shortest_trace_is_told_in_the_models_own_words() -> None:
    from outlives.invariants.pytest_check import rendered
    from outlives.invariants.report import explain

    row = next(row for row in explore(make("parents-too")).results() if row.property == "TREE-HANGS-TOGETHER")
    assert row.trace is not None
    assert [action.name for action in row.trace.actions] == ["admit", "finish", "evict"]
    text = rendered(explain(row.trace, model=make(), engine="exhaustive"))
    assert "(0, 1) is cached without its parent" in text
    assert not re.search(r"encoder|computed|placeholder|\bitem", text)
