"""`outlives explore`: scopes, bounds, checkpoints, statistics and exit codes, as a user meets them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from outlives.invariants.command import main
from outlives.invariants.configuration import Configuration
from outlives.invariants.explore import explore
from outlives.invariants.replay import replay
from outlives.invariants.scope_choice import chosen_scopes
from outlives.invariants.scopes import NAMED_SCOPES
from outlives.model.world import ROUTES
from worlds import FixedModel, world

Out = pytest.CaptureFixture[str]
STUCK = ("--profile", "0.24.0", "--scope", "adjacent-items")
SHUT = [word for route in ROUTES if route != "look-ahead" for word in ("--without", route)]


@pytest.fixture
def command(tmp_path: Path, capsys: Out) -> Any:
    def explored(*options: str) -> tuple[int, dict[str, Any]]:
        status = main(["explore", "--json", "--out", str(tmp_path / "out"), *options])
        return status, json.loads(capsys.readouterr().out)

    return explored


def verdicts(report: dict[str, Any]) -> dict[str, str]:
    return {row["property"]: row["verdict"] for row in report["results"]}


# --- scopes -----------------------------------------------------------------------------------------------------------


@pytest.mark.campaign
def test_every_named_scope_is_seen_whole(command: Any) -> None:
    begun = time.process_time()
    status, report = command()
    assert status == 0
    assert set(verdicts(report).values()) == {"exhausted"}
    assert list(report["provenance"]["states of each scope"]) == [scope.name for scope in NAMED_SCOPES]
    assert all(report["routes"].values()), "each open route is taken in one of them"
    preempting = set(report["routes"]["preempt"])
    assert all(preempting & set(scopes) for scopes in report["routes"].values()), "and beside a preemption"
    assert any(scope.requests == 3 for scope in NAMED_SCOPES)
    chosen = chosen_scopes(Configuration(), [], every_number=False).values()
    assert {state.setup.by_priority for states in chosen for state in states} == {0, 1}
    assert report["vacuous"] == []
    assert time.process_time() - begun < 15


def test_a_scope_by_name_with_the_numbers_given(command: Any) -> None:
    status, report = command("--scope", "three-in-flight", "--depth", "3", "--drafts", "0..1", "--stats")
    assert status == 0
    alone = [
        explore(FixedModel(world(), [state.setup])).states
        for state in chosen_scopes(Configuration(numbers={"depth": (3, 3), "drafts": (0, 1)}), ["three-in-flight"])[
            "three-in-flight"
        ]
    ]
    assert len(alone) == 2
    assert report["statistics"]["three-in-flight"]["states"] == sum(alone)
    assert sum(report["statistics"]["three-in-flight"]["levels"]) == sum(alone)


def test_scopes_that_numbers_make_equal_are_visited_once() -> None:
    numbers = {"items": (1, 1), "drafts": (1, 1), "depth": (2, 2)}
    scopes = chosen_scopes(Configuration(numbers=numbers), [])
    setups = [state.setup for states in scopes.values() for state in states]
    assert len(set(setups)) == len(setups) <= len(NAMED_SCOPES)


def test_a_scenario_is_visited_in_its_small_equivalent(command: Any) -> None:
    status, report = command("--profile", "0.24.0", "--scenario", "gap-one")
    assert status == 1
    assert verdicts(report) == {"GATHER-AFTER-FREE": "exhausted", "PROGRESS": "violated"}
    assert list(report["provenance"]["states of each scope"]) == ["gap-one (small)"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--scope", "tight-cash"), "unknown scope 'tight-cash'. Did you mean 'tight-cache'? Known: tight-cache, many"),
        (("--scenario", "gap-one", "--scope", "tight-cache"), "fixes its numbers; drop --scope"),
        (("--budget", "1..1000", "--slots", "1..1000"), "1,000,000 setups of each scope; at most 10,000 are visited"),
        (("--states", "0"), "the bound on states is 0; it must be at least 1"),
        (("--max-depth", "-1"), "the bound on depth is -1"),
        (("--memory", "0"), "the bound on memory is 0"),
        (("--seconds", "nan"), "the bound on seconds is nan"),
        (("--checkpoint", ""), "--checkpoint names no file"),
        (("--checkpoint", "/proc/none/file", "--scope", "whole-items"), "cannot be written"),
        (("--property", "GATHERS"), "unknown property 'GATHERS'"),
    ],
)
def test_bad_options_are_one_sentence(command: Any, options: tuple[str, ...], words: str) -> None:
    status, report = command(*options)
    assert status == 2
    assert words in report["error"]


# --- what was found ---------------------------------------------------------------------------------------------------


def test_a_violation_is_told_written_and_replays(command: Any) -> None:
    status, report = command(*STUCK)
    assert status == 1
    (violation,) = report["violations"]
    assert violation["property"] == "PROGRESS"
    assert violation["badge"] == "shortest possible"
    assert "stuck at 2 of 6 known tokens" in violation["headline"]
    again = replay(Path(violation["files"][0]))
    assert again.outcome == "violated again"
    assert again.divergence is None
    assert violation["replay"].endswith(violation["files"][0])
    command(*STUCK)
    assert len(list(Path(violation["files"][0]).parent.parent.glob("explore-*/*.itf.json"))) == 2


def test_deadlocks_are_not_ends(command: Any) -> None:
    _, report = command(*STUCK, *SHUT, "--stats")
    told = report["statistics"]["adjacent-items"]
    assert told["deadlocks"] > 0
    assert told["nothing_left_to_do"] > 0
    legend = report["tables"]["ends"]["legend"]
    assert any(
        "adjacent-items: deadlocks, shortest way: arrive(request=r0), resume(request=r0, kept=1)" in line
        for line in legend
    )
    _, sound = command("--scope", "adjacent-items", *SHUT, "--stats")
    assert sound["statistics"]["adjacent-items"]["deadlocks"] == 0
    assert sound["statistics"]["adjacent-items"]["nothing_left_to_do"] > 0


def test_statistics_say_what_fired_and_what_never(command: Any, capsys: Out, tmp_path: Path) -> None:
    _, report = command("--scope", "many-drafts", "--stats")
    told = report["statistics"]["many-drafts"]
    assert sum(told["fired"].values()) == told["transitions"]
    rare = {"continue_session", "fail_kv_load", "reset_encoder_cache", "reset_prefix_cache"}
    assert set(told["never_fired"]) == {"occupy", *rare}, "this scope has no strangers, and leaves rare routes out"
    assert list(report["routes"].values()) == [["many-drafts"]] * 3
    assert told["levels"][0] == 1
    assert told["depth"] == len(told["levels"]) - 1
    assert told["memory"] > 2**20
    assert told["states_per_second"] > 0
    assert main(["explore", "--scope", "many-drafts", "--stats", "--out", str(tmp_path / "text")]) == 0
    text = capsys.readouterr().out
    assert f"{told['states']:,}" in text
    assert "that is no deadlock" in text
    assert " ".join(f"{size:,}" for size in told["levels"]) in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 100


def test_a_scope_is_left_out_where_the_numbers_exclude_what_it_is_about(command: Any) -> None:
    (state,) = chosen_scopes(Configuration(), ["three-in-flight"])["three-in-flight"]
    assert state.setup.depth == 3, "a scope keeps its own number where none is given"
    status, report = command("--scope", "three-in-flight", "--depth", "2")
    assert status == 2
    assert "scope three-in-flight is about depth 3" in report["error"]
    names = list(chosen_scopes(Configuration(numbers={"depth": (3, 3)}), []))
    fitting = [scope.name for scope in NAMED_SCOPES if scope.numbers["depth"] in (2, 3)]
    assert names == fitting, "the others are about another depth"
    assert len(fitting) < len(NAMED_SCOPES)


def test_an_open_route_that_no_scope_takes_is_vacuous(command: Any) -> None:
    status, report = command("--scope", "many-drafts", "--look-ahead", "0")
    assert (status, report["vacuous"]) == (0, [])
    status, report = command("--scope", "many-drafts", "--property", "IDLE-EXACT", "--items", "0")
    assert status == 4
    assert verdicts(report) == {"IDLE-EXACT": "vacuous"}


# --- bounds and checkpoints -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        (("--states", "300"), "stopped by the bound of 300 states"),
        (("--max-depth", "5"), "stopped by the bound of 5 actions at depth 5"),
        (("--memory", "1"), "stopped by the bound of 1 MiB"),
        (("--seconds", "0.01"), "stopped by the bound of 0.01 seconds"),
    ],
)
def test_a_bound_gives_unknown_and_says_how_far(command: Any, bound: tuple[str, ...], words: str) -> None:
    status, report = command("--scope", "tight-cache", *bound)
    assert status == 3
    assert set(verdicts(report).values()) == {"unknown"}
    (line,) = report["not_covered"]
    assert words in line
    assert "states/s; left: at least the" in line


def test_a_scope_that_ends_within_the_bound_is_still_seen_whole(command: Any) -> None:
    status, report = command("--scope", "whole-items", "--scope", "tight-cache", "--states", "900", "--stats")
    assert status == 3
    assert [told["complete"] for told in report["statistics"].values()] == [True, False]
    assert report["results"][0]["coverage"].startswith("every state of 1 of 2 scopes")


def test_a_stopped_search_goes_on_from_its_checkpoint(command: Any, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    _, whole = command("--scope", "tight-cache", "--stats")
    options = ("--scope", "tight-cache", "--checkpoint", str(kept), "--stats")
    assert command(*options, "--states", "500")[0] == 3
    assert kept.exists()
    status, report = command(*options)
    assert status == 0
    assert not kept.exists()
    told, expected = report["statistics"]["tight-cache"], whole["statistics"]["tight-cache"]
    assert told["resumed"] >= 500
    for name in ("states", "transitions", "levels", "fired", "refused", "situations", "broken"):
        assert told[name] == expected[name]


def test_a_checkpoint_of_another_question_is_refused(command: Any, tmp_path: Path) -> None:
    kept = ("--checkpoint", str(tmp_path / "kept"), "--scope", "tight-cache")
    assert command(*kept, "--states", "500")[0] == 3
    status, report = command(*kept, "--guard", "retain")
    assert status == 2
    assert "is refused: it is of another model, scope, engine or version of the source" in report["error"]
    (tmp_path / "kept").write_bytes(b"nothing of ours")
    assert "it is no checkpoint of this program" in command(*kept)[1]["error"]


def test_a_checkpoint_of_a_fault_that_has_changed_since_is_refused(command: Any, tmp_path: Path) -> None:
    fault = tmp_path / "fault.py"
    fault.write_text("def none(rules):\n    return rules\n")
    kept = ("--checkpoint", str(tmp_path / "kept"), "--scope", "tight-cache", "--fault", f"{fault}:none")
    assert command(*kept, "--states", "500")[0] == 3
    fault.write_text("def none(rules):\n    # another\n    return rules\n")
    assert "is refused" in command(*kept)[1]["error"]


def test_several_scopes_have_a_checkpoint_each(command: Any, tmp_path: Path) -> None:
    scopes = ("--scope", "tight-cache", "--scope", "chunk-end")
    assert command(*scopes, "--states", "500", "--checkpoint", str(tmp_path / "kept"))[0] == 3
    assert {path.name for path in tmp_path.glob("kept*")} == {"kept.tight-cache", "kept.chunk-end"}
    assert command(*scopes, "--checkpoint", str(tmp_path / "kept"))[0] == 0
    assert not list(tmp_path.glob("kept*"))


def test_ctrl_c_tells_what_is_known(tmp_path: Path) -> None:
    large = ["--scope", "tight-cache", "--drafts", "0..3", "--slots", "3..9", "--depth", "2..4", "--budget", "2..9"]
    arguments = ["explore", "--json", "--stats", "--out", str(tmp_path / "out"), *large]
    arguments += ["--checkpoint", str(tmp_path / "kept")]
    process = subprocess.Popen(
        [sys.executable, "-m", "outlives.invariants.command", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    deadline = time.monotonic() + 60
    while process.poll() is None and not (tmp_path / "out").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    report = json.loads(out)
    assert report["interrupted"]
    assert report["statistics"]["tight-cache"]["states"] > 100
    assert any("stopped by Ctrl-C" in line for line in report["not_covered"])
    assert "Traceback" not in err


def test_a_rule_that_raises_is_bad_input(command: Any, tmp_path: Path) -> None:
    fault = tmp_path / "fault.py"
    fault.write_text(
        "from dataclasses import replace\n\n"
        "def broken(rules):\n    def advance(c, count):\n        raise ValueError('no')\n"
        "    return replace(rules, advance=advance)\n"
    )
    options = ("--scope", "tight-cache", "--fault", f"{fault}:broken")
    for more, words in (((), "fair run raised"), (("--property", "IDLE-EXACT"), "next_state raised")):
        status, report = command(*options, *more)
        assert status == 2
        assert f"{fault}, line 5: " in report["error"]
        assert f"{words} ValueError: no " in report["error"]
