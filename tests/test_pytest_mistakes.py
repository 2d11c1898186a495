"""What a user may do wrong under pytest: values, markers, folders, and a plugin that is not loaded."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from outlives.invariants.pytest_check import Row, fail_apart
from outlives.invariants.pytest_options import made_folder
from plugin_runs import COUNTER, FINE, Runs, marked, pytest_runs


@pytest.fixture
def run(tmp_path: Path) -> Runs:
    return pytest_runs(tmp_path)


MISTAKES = (
    ("pytest.ini", "[pytest]\noutlives_settings = fast\n", "pytest.ini, outlives_settings: unknown settings 'fast'."),
    ("pytest.ini", "[pytest]\noutlives_seed = x\n", "pytest.ini, outlives_seed: "),
    ("pytest.ini", "[pytest]\noutlives_profile = 0.24\n", "pytest.ini, outlives_profile: unknown profile '0.24'. Did"),
    ("pytest.ini", "[pytest]\noutlives_database = nowhere\n", "pytest.ini, outlives_database: there is no folder "),
    ("pytest.ini", "[pytest]\noutlives_artifacts = x\n", "pytest.ini, outlives_artifacts: 'x' is no OWNER/REPOSITORY"),
    ("pytest.ini", "[pytest]\noutlives_formats = pdf\n", "pytest.ini, outlives_formats: unknown format 'pdf'. Known: "),
    ("pytest.ini", "[pytest]\noutlives_known = none.json\n", "pytest.ini, outlives_known: there is no file "),
    (
        "pyproject.toml",
        "[tool.outlives]\nsetings = 3\n",
        "pyproject.toml, line 2, [tool.outlives]: unknown key 'setings'. Did",
    ),
    (
        "pyproject.toml",
        "[tool.outlives]\nseed = true\n",
        "pyproject.toml, line 2, [tool.outlives], seed is True; it must be a ",
    ),
    ("pyproject.toml", '[tool.outlives]\nrelax = "A9"\n', "[tool.outlives], relax: unknown assumption 'A9'."),
    (
        "pyproject.toml",
        '[tool.outlives]\nprofile = "raises.py:x"\n',
        "toml, line 2, [tool.outlives], profile: --profile raises.py:x: raises.py, line 2, raised ZeroDivisionError",
    ),
    ("pytest.ini", "[pytest]\noutlives_profile = raises.py:x\n", "pytest.ini, outlives_profile: --profile "),
    ("pytest.ini", "[pytest]\noutlives_profile = none.py:x\n", "none.py:x: there is no file "),
)


@pytest.mark.parametrize(
    ("name", "text", "sentence"), MISTAKES, ids=lambda each: each.split("\n")[-2] if "\n" in each else None
)
def test_a_wrong_value_ends_pytest_with_file_and_key(
    run: Runs, tmp_path: Path, name: str, text: str, sentence: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "raises.py").write_text("x = 1\n1 / 0\n", encoding="utf-8")
    done = run(file=marked(FINE))
    assert done.status == pytest.ExitCode.USAGE_ERROR, done.out
    (said,) = [line for line in done.out.splitlines() if "outlives: " in line]
    assert sentence in said
    assert "Traceback" not in done.out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ('"0.24.0"', "test_it.py::test_marked: the marker outlives takes named arguments only"),
        ('profle="0.24.0"', "test_it.py::test_marked: unknown argument of the marker outlives 'profle'. Did you mean"),
        ('guard="confirm"', "test_it.py::test_marked: unknown guard 'confirm'. Did you mean 'confirmed'?"),
        ('assume="A1", relax="A2"', "test_it.py::test_marked: assume and relax contradict"),
        ('engines="z3"', "test_it.py::test_marked: unknown engine 'z3'. Known: machine, exhaustive, proof."),
        ("relax=3", "test_it.py::test_marked: "),
    ],
)
def test_a_wrong_marker_ends_pytest_with_the_test(run: Runs, arguments: str, sentence: str) -> None:
    done = run(file=marked(arguments))
    assert done.status == pytest.ExitCode.USAGE_ERROR, done.out
    assert f"ERROR: outlives: {sentence}" in done.out


def test_a_wrong_option_under_xdist_is_one_sentence_too(run: Runs) -> None:
    pytest.importorskip("xdist")
    done = run("-n", "1", "--outlives-settings", "fast", file=marked(FINE))
    assert done.status != 0
    assert "--outlives-settings: unknown settings 'fast'. Known: quick, ci, nightly, debug." in done.out
    assert "INTERNALERROR" not in done.out


@pytest.mark.parametrize("option", ["--outlives-out", "--outlives-report"])
@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_a_folder_that_cannot_be_written_to_ends_pytest_with_its_own_option(
    run: Runs, tmp_path: Path, option: str, workers: tuple[str, ...]
) -> None:
    if workers:
        pytest.importorskip("xdist")
    (tmp_path / "file").write_text("", encoding="utf-8")
    done = run(*workers, option, "file/below", file=marked(FINE))
    assert done.status != 0
    below = "/pytest" if option == "--outlives-out" else ""
    said = f"outlives: cannot write to file/below{below}: Not a directory. Choose another folder with {option}."
    assert said in done.out
    assert "invariants/" not in done.out, "no frames"
    assert "Traceback" not in done.out
    assert "INTERNALERROR" not in done.out


def test_nothing_is_made_where_tests_are_only_listed(run: Runs, tmp_path: Path) -> None:
    done = run("--collect-only", "--outlives-report", "reports", file=marked(FINE))
    assert done.status == pytest.ExitCode.OK
    assert not (tmp_path / ".outlives").exists()
    assert not (tmp_path / "reports").exists()


def test_a_folder_that_is_gone_in_the_middle_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")

    def rows() -> Iterator[Row]:
        yield Row("first", "one is wrong")
        made_folder(tmp_path / "file", "second")

    with pytest.raises(pytest.fail.Exception) as caught:
        fail_apart(rows(), None)
    first, second = str(caught.value).split("\n\n")
    assert first == "one is wrong"
    assert second.startswith(f"outlives: cannot write to {tmp_path}/file/pytest: ")


def test_without_the_plugin_it_is_said_how_to_load_it(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(COUNTER.format(faulty=False), encoding="utf-8")
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:outlives", "-p", "no:cacheprovider", "test_it.py"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    said = "outlives: this pytest has not loaded the plugin of outlives; add -p outlives.invariants.pytest_plugin."
    assert said in done.stdout
    assert "Traceback" not in done.stdout
    assert "_from_ini" not in done.stdout
