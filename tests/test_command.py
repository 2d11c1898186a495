"""The command's front door: what it understands, what it refuses, and how it says so. No engine runs here."""

import argparse
import re
import resource
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_runs import Run, runner
from outlives.invariants.command import _parser, main
from outlives.model.lifetime import GUARDS
from outlives.model.profiles import PROFILES
from outlives.model.scenarios import SCENARIOS

COMMANDS = ("check", "conform", "prove", "table", "replay", "profiles", "properties", "scenarios", "doctor")
ARGUMENTS = {"replay": ("trace.itf.json",), "check": (), "prove": (), "table": ()}


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(capsys)


# --- help -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_answers_at_once_and_fits_eighty_columns(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    begun = time.process_time()
    with pytest.raises(SystemExit) as stop:
        main([*command.split(), "--help"])
    assert stop.value.code == 0
    assert time.process_time() - begun < 0.3
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert len(text.splitlines()) <= 60
    assert "exit status: 0 good, 1 violated, 2 usage or input" in " ".join(text.split())
    if command:
        assert f"outlives {command}" in text
    else:
        assert all(name in text for name in COMMANDS)


def commands() -> dict[str, argparse.ArgumentParser]:
    (choice,) = [each for each in _parser()._actions if isinstance(each, argparse._SubParsersAction)]
    return dict(choice.choices)


@pytest.mark.parametrize("command", commands())
def test_help_fits_a_screen_and_its_example_is_a_command(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    text = commands()[command].format_help()
    assert len(text.splitlines()) <= 50
    assert max(map(len, text.splitlines())) <= 100
    found = re.search(
        r"^example: outlives (.*?) exit status:", " ".join(text.split()).replace("example:", "\nexample:"), re.M
    )
    assert found is not None
    assert _parser().parse_args(shlex.split(found[1])).command == command
    for action in commands()[command]._actions:
        assert action.option_strings == [] or action.option_strings[-1] in text


@pytest.mark.parametrize("command", ["", *commands()])
def test_a_process_of_its_own_answers_help_at_once(command: str) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [sys.executable, "-m", "outlives.invariants.command", *command.split(), "--help"]
    subprocess.run(words, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.3


@pytest.mark.parametrize("command", ["profiles", "properties", "scenarios", "doctor"])
def test_lists_are_readable_at_a_hundred_columns(command: str, run: Run) -> None:
    said = run(command)
    assert (said.status, said.err) == (0, "")
    assert max(map(len, said.out.splitlines())) <= 100
    assert said.out.isascii()


def test_lists_hold_every_name(run: Run) -> None:
    profiles = run("profiles", "--json").object["tables"]
    assert set(PROFILES) <= {word for table in profiles.values() for row in table["rows"] for word in row}
    assert set(SCENARIOS) <= set(run("scenarios").out.split())
    assert {"GATHER-AFTER-FREE", "PROGRESS", "RELEASE-ONCE"} <= set(run("properties").out.split())


# --- names ------------------------------------------------------------------------------------------------------------

UNKNOWN = (
    (("check", "--profile", "0.24"), "unknown profile '0.24'. Did you mean '0.24.0'? Known: 0.11.0, "),
    (("check", "--profile", ""), "unknown profile ''. Known: 0.11.0, "),
    (("check", "--guard", "confirm"), "unknown guard 'confirm'. Did you mean 'confirmed'? Known: "),
    (("prove", "--guard", "confirm"), "unknown guard 'confirm'. Did you mean 'confirmed'? Known: "),
    (("table", "--guard", "confirm"), "unknown guard 'confirm'. Did you mean 'confirmed'? Known: "),
    (("check", "--relax", "A5"), "unknown assumption 'A5'. Known: A1, A2, A3, A4."),
    (("check", "--relax", "a1"), "unknown assumption 'a1'. Known: A1, A2, A3, A4."),
    (("check", "--reader", "near"), "unknown reader 'near'. Known: checked, true, any."),
    (("check", "--without", "A1"), "unknown route 'A1'. Known: preempt, abort, reset-prefix-cache"),
    (("check", "--policy", "lifo"), "unknown policy 'lifo'. Known: fcfs"),
    (("check", "--scenario", "chunk"), "unknown scenario 'chunk'. Did you mean 'chunk-end'? Known: chunk-end, "),
    (("check", "--engine", "z3"), "unknown engine 'z3'. Known: machine, exhaustive, proof."),
    (("check", "--property", "progress"), "unknown property 'progress'."),
    (("check", "--settings", "fast"), "unknown settings 'fast'. Known: quick, ci, nightly, debug."),
)


@pytest.mark.parametrize(("arguments", "sentence"), UNKNOWN, ids=lambda each: " ".join(each)[:40])
def test_an_unknown_name_lists_the_known_ones(arguments: tuple[str, ...], sentence: str, run: Run) -> None:
    said = run(*arguments)
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith(f"outlives: {sentence}")
    assert len(said.err.splitlines()) == 1
    if "--guard" in arguments:
        assert all(name in said.err for name in GUARDS)


# --- numbers ----------------------------------------------------------------------------------------------------------

NUMBERS = (
    ("--slots", "-1", "slots is -1; it must be at least 0."),
    ("--slots", "5..2", "--slots 5..2: the range ends below its beginning; write 2..5."),
    ("--slots", "1000001", "slots is 1000001; it must be from 0 to 1000000."),
    ("--slots", "9" * 30, f"--slots '{'9' * 30}' is neither a number nor a range LOW..HIGH."),
    ("--slots", "9" * 5000, f"--slots '{'9' * 37}...' is neither a number nor a range LOW..HIGH."),
    *(
        ("--slots", text, f"--slots {text!r} is neither a number nor a range LOW..HIGH.")
        for text in ("", "..", "3..", "..4", "2...4", "2..4..6", "1_0", "+3", " 3", "1.5", "1e3", "0x4", "many")
    ),
    ("--slots", "\u0663", "--slots '\\u0663' is neither a number nor a range LOW..HIGH."),
    ("--depth", "0", "depth is 0; it must be at least 1."),
    ("--depth", "9", "--depth is 9; it must be from 1 to 8."),
    ("--budget", "0", "budget is 0; it must be at least 1."),
    ("--items", "1..1000000", "--items is 1000000; it must be from 0 to 8."),
    ("--drafts", "1000", "--drafts is 1000; it must be from 0 to 64."),
    ("--requests", "4", "--requests is 4; it must be from 1 to 3."),
    ("--requests", "0", "--requests is 0; it must be from 1 to 3."),
    ("--cases", "0", "the number of cases is 0; it must be from 1 to 10000000."),
    ("--cases", "-3", "the number of cases is -3; it must be from 1 to 10000000."),
    ("--cases", "99999999999", "the number of cases is 99999999999; it must be from 1 to 10000000."),
    ("--cases", "x", "argument --cases: invalid int value: 'x' (see outlives check --help)."),
    ("--seed", "1e3", "argument --seed: invalid int value: '1e3' (see outlives check --help)."),
    ("--seed", "", "argument --seed: invalid int value: '' (see outlives check --help)."),
)


@pytest.mark.parametrize(("option", "value", "sentence"), NUMBERS, ids=lambda each: each[:24])
def test_a_number_out_of_range_is_one_sentence(option: str, value: str, sentence: str, run: Run) -> None:
    said = run("check", option, value)
    assert (said.status, said.out, said.err) == (2, "", f"outlives: {sentence}\n")


# --- contradictions ---------------------------------------------------------------------------------------------------

CONTRADICTIONS = (
    (("check", "--relax", "A3", "--reader", "checked"), "--relax A3 and --reader checked contradict"),
    (("check", "--relax", ""), "--relax names no assumption"),
    (("check", "--relax", " , "), "--relax names no assumption"),
    (("check", "--scenario", "gap-one", "--slots", "3"), "scenario gap-one fixes its numbers; drop --slots."),
    (("check", "--scenario", "gap-one", "--items-anywhere"), "scenario gap-one fixes where its items lie"),
    (("prove", "--slots", "3", "--split"), "drop --split, --slots."),
    (("prove", "--scenario", "gap-one"), "drop --scenario."),
    (("prove", "--source", "x.py", "--guard", "confirmed"), "--source judges the files as they are; drop --guard."),
    (("prove", "--source", "x.py", "--look-ahead", "1"), "--source judges the files as they are; drop --look-ahead."),
    (("prove", "--source", "x.py", "--smt2", "d"), "--source judges the files as they are; drop --smt2."),
    (("prove", "--source", "nothing.py"), "nothing.py does not exist."),
    (("check", "--out", ""), "--out names no folder"),
)


@pytest.mark.parametrize(("arguments", "sentence"), CONTRADICTIONS, ids=lambda each: " ".join(each)[:40])
def test_contradictory_options_are_one_sentence(arguments: tuple[str, ...], sentence: str, run: Run) -> None:
    said = run(*arguments)
    assert (said.status, said.out) == (2, "")
    assert sentence in said.err
    assert len(said.err.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [(), ("nonsense",), ("check", "extra"), ("check", "--unknown"), ("check", "--prof", "0.24.0"), ("replay",),
     ("prove", "--source"), ("check", "--slots"), ("table", "--relax", "A1"), ("doctor", "--seed", "1")],
    ids=" ".join,
)  # fmt: skip
def test_what_is_not_understood_is_one_sentence(arguments: tuple[str, ...], run: Run) -> None:
    said = run(*arguments)
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith("outlives: ")
    assert "--help)." in said.err
    assert len(said.err.splitlines()) == 1


# --- JSON -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [("check", "--profile", "0.24"), ("check", "--cases", "x"), ("check", "--fault", "no.py:x"), ("nonsense",),
     ("prove", "--slots", "3"), ("prove", "--source", "no.py"), ("table", "--guard", "no"), ("table", "--out", ""),
     ("replay", "no.itf.json"), ("replay",), ("profiles", "extra")],
    ids=" ".join,
)  # fmt: skip
def test_an_error_is_one_json_object_too(arguments: tuple[str, ...], run: Run) -> None:
    said = run(*arguments, "--json")
    assert (said.status, said.err) == (2, "")
    assert said.object["exit_status"] == 2
    assert said.object["format"] == 1
    assert said.object["error"]


@pytest.mark.parametrize("command", ["profiles", "properties", "scenarios", "doctor"])
def test_lists_are_one_json_object(command: str, run: Run) -> None:
    said = run(command, "--json")
    assert (said.status, said.err) == (0, "")
    assert said.object["exit_status"] == 0
    assert all(table["rows"] for table in said.object["tables"].values())


# --- folders ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["check", "table"])
@pytest.mark.parametrize("place", ["/proc/outlives", "file", "file/below", "x" * 300, "nul\0byte"])
def test_an_unwritable_folder_is_said_before_work_starts(command: str, place: str, run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    begun = time.process_time()
    said = run(command, "--out", place)
    assert time.process_time() - begun < 1.5
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith("outlives: cannot write to ")
    assert said.err.endswith("Choose another folder with --out.\n")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_folder_of_proof_texts_that_is_there_already_is_refused_at_once(run: Run, tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    begun = time.process_time()
    said = run("prove", "--smt2", "texts")
    assert time.process_time() - begun < 1.5
    assert (said.status, said.out) == (2, "")
    assert "--smt2 texts is there already; nothing is overwritten" in said.err


# --- replay -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [("empty", b""), ("text", b"hello"), ("list", b"[]"), ("number", b"1"), ("object", b"{}"), ("null", b"null"),
     ("cut", b'{"#meta": {"format": "ITF"'), ("bytes", bytes(range(256))), ("deep", b"[" * 200_000),
     ("huge", b'{"a": ' + b"9" * 10_000 + b"}"), ("nan", b'{"states": [NaN]}'),
     ("other", b'{"vars": ["x"], "states": [{"x": 1}]}')],
)  # fmt: skip
def test_a_file_that_is_no_trace_is_one_sentence(name: str, content: bytes, run: Run, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.itf.json"
    path.write_bytes(content)
    said = run("replay", path)
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith("outlives: ")
    assert len(said.err.splitlines()) == 1
    assert len(said.err) < 500
    assert path.read_bytes() == content


@pytest.mark.parametrize("place", ["nothing.itf.json", ".", "/dev/null"])
def test_a_trace_that_is_no_file_is_one_sentence(place: str, run: Run) -> None:
    said = run("replay", place)
    assert (said.status, said.out) == (2, "")
    assert len(said.err.splitlines()) == 1
