"""What earlier runs saved is taken again first: whose it is, what is known of it, and what is left alone."""

import json
from pathlib import Path

import pytest
from outlives.invariants.configuration import Configuration
from outlives.invariants.known import read_known
from outlives.invariants.pytest_saved import saved_rows, saved_traces
from plugin_runs import Runs, pytest_runs

STUCK = """
import pytest
from outlives.invariants.testing import Configuration, lifetime_machine

@pytest.mark.outlives(profile="0.24.0", scenario="gap-one", engines="{engine}", settings="quick"{more})
def test_marked():
    pass
{rest}
"""
CLASS = 'TestStuck = lifetime_machine(Configuration(profile="0.24.0", scenario="gap-one"), settings="quick")'
GAP = Configuration(profile="0.24.0", scenario="gap-one")


def stuck(engine: str = "machine", more: str = "", rest: str = "") -> str:
    return STUCK.format(engine=engine, more=more, rest=rest)


@pytest.fixture
def run(tmp_path: Path) -> Runs:
    return pytest_runs(tmp_path)


def test_a_saved_counterexample_that_is_known_does_not_fail_a_test(run: Runs, tmp_path: Path) -> None:
    (tmp_path / "none.json").write_text('{"format": 1, "known": []}', encoding="utf-8")
    assert run("--outlives-known", "none.json", file=stuck(rest=CLASS)).status == 1
    assert len(saved_traces(tmp_path / ".outlives")) == 2
    known = next((tmp_path / ".outlives").rglob("findings.json"))
    (tmp_path / "known.json").write_text(known.read_text(encoding="utf-8"), encoding="utf-8")
    assert json.loads((tmp_path / "known.json").read_text(encoding="utf-8"))["known"]
    done = run("-q", "--outlives-known", "known.json", file=stuck(rest=CLASS))
    assert done.status == 0, done.out
    assert done.out.count("1 saved counterexample replayed") == 2
    assert "violated again" not in done.out
    rows, replayed = saved_rows(tmp_path / ".outlives", GAP, read_known(str(tmp_path / "none.json")))
    assert (len(rows), replayed) == (1, 1), "with nothing known it fails"


def test_what_this_very_run_saved_is_no_other_tests_business(run: Runs, tmp_path: Path) -> None:
    done = run("-q", file=stuck("exhaustive", rest=CLASS))
    assert done.status == 1
    assert len(saved_traces(tmp_path / ".outlives")) == 2
    assert "saved" not in "".join(done.summary())
    assert "[saved " not in done.out
    again = run("-q", file=stuck("exhaustive", rest=CLASS))
    assert again.out.count("SUBFAILED[saved ") == 2, "now each of the two tests takes one: they are alike"


def test_what_a_worker_saved_is_no_other_workers_business(run: Runs, tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    done = run("-q", "-n", "2", file=stuck("exhaustive", rest=f"{CLASS}\nclass TestOther({CLASS[12:]}): pass"))
    assert done.status == 1
    assert len(saved_traces(tmp_path / ".outlives")) == 3
    assert "[saved " not in done.out


def test_a_property_that_is_not_asked_about_is_passed_over(run: Runs, tmp_path: Path) -> None:
    assert run(file=stuck()).status == 1
    done = run(file=stuck(more=', properties="GATHER-AFTER-FREE"'))
    assert done.status == 0, done.out
    assert "replayed" not in "".join(done.summary())


def test_files_that_are_no_traces_are_left_alone(run: Runs, tmp_path: Path) -> None:
    assert run(file=stuck()).status == 1
    out = tmp_path / ".outlives"
    for name, text in {"a": "{", "b": "[]", "c": '{"#meta": {}, "states": []}', "d-unshrunk": "{}"}.items():
        (out / f"{name}.itf.json").write_text(text, encoding="utf-8")
    (out / "gone.itf.json").symlink_to(tmp_path / "nowhere")
    rows, replayed = saved_rows(out, GAP)
    assert (len(rows), replayed) == (1, 1)
    assert saved_rows(tmp_path / "nowhere", GAP) == ([], 0)
