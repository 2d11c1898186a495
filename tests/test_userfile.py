"""A user's own file: whatever it does wrong, at import, when called or in the middle of a run, is one sentence."""

from pathlib import Path

import pytest
from command_runs import Run, runner
from outlives.invariants.userfile import load_named
from outlives.model.errors import BadUserFile

FAULTS = '''"""Faults of every kind."""
import sys
from dataclasses import replace
from outlives.model import worker

three = 3
def none(rules): return None
def raises(rules):
    raise ValueError("boom")
def exits(rules): sys.exit(7)
def recurses(rules): return recurses(rules)
def takes_nothing(): return 3
def same(rules): return rules
def prints(rules):
    print("noise")
    return rules

def _boom(*_):
    raise KeyError("inside")
def _exit(*_): sys.exit(9)
def _deep(*_): return _deep()
def raises_later(rules): return replace(rules, shelve=_boom)
def exits_later(rules): return replace(rules, shelve=_exit)
def recurses_later(rules): return replace(rules, shelve=_deep)
def nonsense_later(rules): return replace(rules, shelve=lambda *_: 17)
def nothing_later(rules): return replace(rules, shelve=None)
class Own(BaseException): pass
def raises_its_own(rules): raise Own("mine")
def _own(*_): raise Own("mine")
def raises_its_own_later(rules): return replace(rules, shelve=_own)
def raises_when_freed(rules):
    def release(*arguments):
        raise RuntimeError("late\\nsecond line \\x1b[31m")
    return replace(rules, release=release)
'''
QUICK = ("check", "--engine", "machine", "--cases", "5")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(FAULTS)
    return runner(capsys)


# --- loading ----------------------------------------------------------------------------------------------------------

FILES = {
    "raises.py": ("x = 1\n1 / 0\n", "raises.py, line 2, raised ZeroDivisionError: division by zero"),
    "syntax.py": ("x = 1\ndef f(:\n", "syntax.py, line 2 is not Python: invalid syntax."),
    "exits.py": ("import sys\nsys.exit(3)\n", "exits.py, line 2, raised SystemExit: 3"),
    "imports.py": ("import nothing_like_this\n", "imports.py, line 1, raised ModuleNotFoundError: No module"),
    "nul.py": ("x = 1\0", "nul.py is not Python: source code string cannot contain null bytes."),
    "empty.py": ("", "empty.py has no 'x'. It defines nothing."),
    "other.py": ("y = _z = 1\n", "other.py has no 'x'. It has: y."),
    "own.py": ("class Own(BaseException): pass\nraise Own('mine')\n", "own.py, line 2, raised Own: mine"),
    "deep.py": ("def f(): f()\nf()\n", "deep.py, line 1, raised RecursionError: maximum recursion depth exceeded"),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("option", ["--fault", "--profile"])
def test_a_file_that_cannot_be_loaded_is_one_sentence(name: str, option: str, run: Run, tmp_path: Path) -> None:
    content, sentence = FILES[name]
    (tmp_path / name).write_text(content)
    said = run("check", option, f"{name}:x")
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith(f"outlives: {option} {name}:x: ")
    assert sentence in said.err
    assert len(said.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ("nothing.py:x", "there is no file nothing.py."),
        ("folder.py:x", "there is no file folder.py."),
        ("mine.py", "write it as path.py:name"),
        ("mine.py:", "write it as path.py:name"),
        ("mine.txt:x", "write it as path.py:name"),
        ("cut-stops-shor", "unknown fault 'cut-stops-shor'. Did you mean 'cut-stops-short'? Known: "),
        ("mine", "unknown fault 'mine'. Known: drafter-window-unseen, "),
        ("", "unknown fault ''. Known: drafter-window-unseen, "),
        ("x" * 400 + ".py:x", "cannot be read: "),
        ("nul\0.py:x", "there is no file nul\\x00.py."),
    ],
)
def test_what_names_no_file_is_one_sentence(where: str, sentence: str, run: Run, tmp_path: Path) -> None:
    (tmp_path / "folder.py").mkdir()
    said = run("check", "--fault", where)
    assert (said.status, said.out) == (2, "")
    assert sentence in said.err
    assert len(said.err.splitlines()) == 1


def test_a_file_is_executed_once_and_again_when_it_changed(tmp_path: Path) -> None:
    path = tmp_path / "counts.py"
    path.write_text("import pathlib\nlog = pathlib.Path(__file__).with_suffix('.log')\n"
                    "log.write_text((log.read_text() if log.exists() else '') + 'x')\nvalue = 1\n")  # fmt: skip
    assert [load_named(f"{path}:value", "fault") for _ in range(3)] == [1, 1, 1]
    assert path.with_suffix(".log").read_text() == "x"
    path.write_text("value = 2000\n")
    assert load_named(f"{path}:value", "fault") == 2000


def test_the_reason_is_kept_for_whoever_imports_it(tmp_path: Path) -> None:
    path = tmp_path / "raises.py"
    path.write_text("1 / 0\n")
    with pytest.raises(BadUserFile) as caught:
        load_named(f"{path}:x", "fault")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


# --- calling ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("three", "--fault mine.py:three is int, not a function."),
        ("none", "fault mine.py:none returned NoneType, not the Rules it was given."),
        ("raises", "--fault mine.py:raises, line 9, raised ValueError: boom"),
        ("exits", "--fault mine.py:exits, line 10, raised SystemExit: 7"),
        ("raises_its_own", "--fault mine.py:raises_its_own, line 28, raised Own: mine"),
        ("recurses", "--fault mine.py:recurses, line 11, raised RecursionError: maximum recursion depth exceeded"),
        ("takes_nothing", "--fault mine.py:takes_nothing raised TypeError: takes_nothing() takes 0 positional"),
    ],
)
def test_a_fault_that_is_none_is_one_sentence(name: str, sentence: str, run: Run, tmp_path: Path) -> None:
    said = run("check", "--fault", f"mine.py:{name}")
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith(f"outlives: {sentence}")
    assert len(said.err.splitlines()) == 1
    assert not (tmp_path / ".outlives").exists(), "found out before work started"


@pytest.mark.parametrize("engine", ["machine", "exhaustive"])
def test_a_rule_that_raises_a_class_of_its_own_is_one_sentence_too(engine: str, run: Run) -> None:
    options = ("--engine", engine, "--workers", "1", "--scenario", "gap-one", "--settings", "quick")
    said = run("check", "--fault", "mine.py:raises_its_own_later", *options)
    assert said.status == 2
    assert "raised Own: mine" in said.err
    assert "Traceback" not in said.err


def test_a_profile_that_is_none_is_one_sentence(run: Run) -> None:
    said = run("check", "--profile", "mine.py:three")
    assert (said.status, said.out) == (2, "")
    assert said.err == "outlives: mine.py:three is int, not a Profile of outlives.model.\n"


def test_what_a_file_prints_is_not_in_the_report(run: Run) -> None:
    said = run(*QUICK, "--fault", "mine.py:prints", "--json")
    assert said.object["exit_status"] == said.status
    assert set(said.err.splitlines()) == {"noise"}


def test_an_own_profile_is_judged_as_the_released_one(run: Run, tmp_path: Path) -> None:
    (tmp_path / "profile.py").write_text("from outlives.model.profiles import PROFILES\nmine = PROFILES['0.20.0']\n")
    said = run(*QUICK, "--scenario", "chunk-end", "--profile", "profile.py:mine")
    assert said.status == 1
    replay = next(line for line in said.out.splitlines() if line.startswith("Replay"))
    assert replay.endswith("--profile profile.py:mine")
    assert run(*replay.split()[2:]).status == 1


# --- in the middle of a run -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["machine", "exhaustive"])
@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("raises_later", "mine.py, line 19: the model"),
        ("recurses_later", "RecursionError"),
        ("nonsense_later", "TypeError"),
        ("nothing_later", "'NoneType' object is not callable"),
        ("exits_later", "mine.py, line 20: the run was ended by what a rule did there: SystemExit: 9."),
        ("raises_when_freed", "late\\nsecond line \\x1b[31m"),
    ],
)
def test_a_rule_that_breaks_in_the_middle_is_one_sentence(engine: str, name: str, sentence: str, run: Run) -> None:
    said = run("check", "--engine", engine, "--cases", "5", "--fault", f"mine.py:{name}")
    assert said.status == 2
    assert sentence in said.err
    assert "Traceback" not in said.err
    assert len(said.err.splitlines()) == 1
    told = run("check", "--engine", engine, "--cases", "5", "--fault", f"mine.py:{name}", "--json")
    assert (told.status, told.object["exit_status"], told.err) == (2, 2, "")
    assert told.object["error"]


LATE = """
from dataclasses import replace
from outlives.model import worker

calls = []

def late(rules):
    def shelve(world, shelf, step):
        calls.append(1)
        if len(calls) > LIMIT:
            raise RuntimeError("late")
        return worker.shelve(world, shelf, step._replace(drop=()))
    return replace(rules, shelve=shelve)
"""


@pytest.mark.parametrize("limit", [40, 80, 120])
def test_whenever_a_rule_breaks_what_was_found_before_is_kept(limit: int, run: Run, tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text(LATE.replace("LIMIT", str(limit)))
    said = run("check", "--engine", "machine", "--cases", "20", "--fault", "late.py:late")
    assert said.status == 2
    assert "late.py, line 11: " in said.err
    assert "RuntimeError" in said.err
    assert len(said.err.splitlines()) == 1
    assert [path for path in (tmp_path / ".outlives").glob("check-0001/*SHELF-AGREES*") if path.stat().st_size]


LEAVES = """import os
from dataclasses import replace


def at_once(rules):
    os._exit(0)


def later(rules):
    def advance(c, count):
        os._exit(0)

    return replace(rules, advance=advance)
"""


@pytest.mark.parametrize("name", ["at_once", "later"])
@pytest.mark.parametrize(
    "command", [("check", "--settings", "quick", "--workers", "1"), ("explore", "--scope", "chunk-end")]
)
def test_a_file_that_ends_the_process_does_not_end_it(
    name: str, command: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "leaves.py"
    path.write_text(LEAVES)
    said = runner(capsys)(*command, "--fault", f"{path}:{name}", "--out", str(tmp_path))
    assert said.status == 2
    assert "RuntimeError: os._exit(0) was called" in said.err


def test_a_file_that_interrupts_is_no_ctrl_c(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pressed.py"
    path.write_text("raise KeyboardInterrupt\n")
    said = runner(capsys)("check", "--fault", f"{path}:fault")
    assert said.status == 2
    assert "pressed.py, line 1, raised KeyboardInterrupt" in said.err
