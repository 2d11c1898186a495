"""The stored table guard x assumptions: every cell is there, it agrees with what is judged, and green runs show it."""

import json

import pytest
from command_runs import Run, runner
from outlives.invariants.proof.cells import COLUMNS, ROWS, cell
from outlives.invariants.report.stored_table import row_words, stored_tables
from outlives.invariants.trace_file import installed_version
from outlives.invariants.verdict import Verdict
from outlives.model.lifetime import guard_named


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(capsys)


def test_it_has_every_guard_and_every_column() -> None:
    prompt, anywhere = stored_tables()
    for table in (prompt, anywhere):
        assert tuple(row[0] for row in table.rows) == tuple(ROWS)
        assert table.columns == ("guard", *(column.name for column in COLUMNS))
        assert f"with version {installed_version('outlives')}; not judged in this run" in table.title
        assert all(all(row) for row in table.rows)
    assert "inside the prompt" in prompt.title
    assert "anywhere" in anywhere.title


@pytest.mark.parametrize(("guard", "column"), [("confirmed", 0), ("confirmed", 2), ("settled", 2)])
def test_a_proved_cell_is_a_safe_one_in_it(guard: str, column: int) -> None:
    assert cell(guard_named(guard), COLUMNS[column], anywhere=True).verdict is Verdict.PROVED
    row = next(row for row in stored_tables()[1].rows if row[0] == guard)
    assert row[1 + column].split()[0] == "proved"


def test_words_for_one_guard() -> None:
    words = row_words("confirmed")
    assert words.startswith("guard confirmed under each assumption relaxed, as outlives table judged it with version ")
    assert "A1-A4 proved" in words
    assert row_words("my-own-guard") == ""


def test_a_green_run_shows_it_and_others_do_not(run: Run) -> None:
    green = ("check", "--scenario", "gap-one", "--settings", "quick")
    page = run(*green, "--format", "markdown")
    assert page.status == 0
    assert "not judged in this run" in page.out
    assert "optimistic-at-output" in page.out
    assert "guard confirmed under each assumption relaxed" in " ".join(run(*green).out.split())
    assert "not judged in this run" not in run(*green, "--engine", "machine").out
    violated = run("check", "--profile", "0.24.0", "--scenario", "gap-one", "--settings", "quick", "--json")
    assert violated.status == 1
    assert "not judged in this run" not in json.dumps(violated.object)
