"""Writing traces: what they say, their bytes, where they go, and what is never overwritten."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from outlives.invariants.configuration import Configuration
from outlives.invariants.replay import replay, write_trace
from outlives.invariants.trace_file import describe_state, itf_path, trace_bytes
from outlives.invariants.verdict import Step, Trace
from outlives.model.contract import Refusal
from outlives.model.errors import Unwritable
from outlives.model.scheduler import initial_state
from outlives.model.setup import RARE_ROUTES, RequestSetup, Setup, Turn
from outlives.model.trace import parse_trace
from outlives.model.world import ROUTES
from trace_samples import BEGIN, MISS_WHY, changed_meta, miss_trace, run_trace, stuck_trace
from worlds import action

SESSIONS = Setup((RequestSetup(3, 1, (), turns=(Turn(1, 1),)),), slots=1, budget=4, left_out=())


@pytest.mark.parametrize("name", ["miss", "miss.json", "miss.itf.json"])
def test_a_trace_file_has_the_ending_of_the_format(tmp_path: Path, name: str) -> None:
    assert itf_path(tmp_path / name) == tmp_path / "miss.itf.json"
    assert write_trace(*miss_trace(), tmp_path / "new" / name) == tmp_path / "new" / "miss.itf.json"
    assert os.listdir(tmp_path / "new") == ["miss.itf.json"]


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "miss.itf.json"
    path.write_text("precious")
    with pytest.raises(Unwritable, match="exists already; traces are never overwritten"):
        write_trace(*miss_trace(), path)
    assert path.read_text() == "precious"
    assert os.listdir(tmp_path) == ["miss.itf.json"]


def test_a_file_system_without_links_is_written_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    path = write_trace(*miss_trace(), tmp_path / "miss")
    assert path.read_bytes() == trace_bytes(*miss_trace())
    with pytest.raises(Unwritable, match="exists already"):
        write_trace(*stuck_trace(), path)
    assert path.read_bytes() == trace_bytes(*miss_trace())
    assert os.listdir(tmp_path) == ["miss.itf.json"]


def test_where_nothing_can_be_written_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unwritable, match=r"cannot make the folder .*file: File exists"):
        write_trace(*miss_trace(), tmp_path / "file" / "miss")
    with pytest.raises(Unwritable, match=r"cannot make the folder .*Not a directory"):
        write_trace(*miss_trace(), tmp_path / "file" / "folder" / "miss")
    with pytest.raises(Unwritable, match="null byte"):
        write_trace(*miss_trace(), tmp_path / "a\0b")


def test_a_file_written_anew_keeps_what_others_put_there(tmp_path: Path) -> None:
    recorded = changed_meta(reviewed="yes")
    root = json.loads(write_trace(*miss_trace(), tmp_path / "anew", keep=recorded).read_bytes())
    assert root["#meta"]["reviewed"] == "yes"
    assert root["#meta"]["why"] == MISS_WHY


def test_the_bytes_do_not_depend_on_time_or_on_hashes(tmp_path: Path) -> None:
    code = "import sys; from trace_samples import *; from outlives.invariants.trace_file import trace_bytes; "
    code += "sys.stdout.buffer.write(trace_bytes(*miss_trace()))"
    here = Path(__file__).parent
    contents = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{here}:{os.environ.get('PYTHONPATH', '')}"},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "7")
    }
    assert contents == {trace_bytes(*miss_trace())}
    assert b"1.25" not in trace_bytes(*miss_trace())


def test_what_a_trace_says_about_its_run() -> None:
    meta = json.loads(trace_bytes(*miss_trace()))["#meta"]
    assert meta.pop("outlives")
    assert meta.pop("setup")["requests"] == [
        {
            "prompt": 8,
            "outputs": 2,
            "items": [{"start": 4, "length": 2, "key": "k0", "size": 2}],
            "priority": 0,
            "turns": [],
        }
    ]
    assert meta == {
        "format": "outlives-trace",
        "version": 1,
        "property": "GATHER-AFTER-FREE",
        "why": MISS_WHY,
        "shortest": "shortest possible",
        "shrink": {"found_length": 9, "final_length": 3},
        "profile": "0.17.1",
        "guard": "optimistic-after-advance",
        "relaxed": [],
        "reader": "checked",
        "routes": {"closed": [route for route in sorted(ROUTES) if route != "look-ahead"]},
        "scenario": "chunk-end",
        "policy": "both",
        "fault": None,
        "items_anywhere": False,
        "split": False,
        "arrivals": "in-order",
        "scope": {},
    }


def test_a_number_that_the_scope_does_not_draw_is_no_matter() -> None:
    configuration = Configuration(profile="0.17.1", numbers={"prompt": (1, 3), "slots": (1, 9)})
    trace = run_trace(configuration, "chunk-end", BEGIN, "GATHER-AFTER-FREE")
    assert replay(parse_trace(trace_bytes(trace, configuration))).violated_again


def test_configurations_of_every_kind_come_back() -> None:
    for configuration in (
        Configuration(profile="0.20.0", relax=("A1", "A3"), without=("abort",), numbers={"slots": (1, 9)}),
        Configuration(profile="0.32.0", reader="true", split=True, guard="settled"),
        Configuration(items_anywhere=True, relax=("A2", "A4")),
    ):
        trace = run_trace(configuration, "chunk-end", BEGIN[:2], "GATHER-AFTER-FREE")
        found = replay(parse_trace(trace_bytes(trace, configuration)))
        assert found.configuration is not None
        assert found.configuration.plain() == configuration.plain()
        assert found.divergence is None


SESSION = (
    "arrive(request=r0)",
    "schedule()",
    "accept()",
    "reset_prefix_cache()",
    "resume(request=r0,kept=1)",
    "accept()",
    "continue_session(request=r0)",
    "schedule()",
    "reset_encoder_cache()",
    "accept()",
)
"""A reset of each cache and a second turn, none of them refused."""


def test_turns_routes_modes_and_policy_come_back() -> None:
    configuration = Configuration(policy="priority", synchronous=True, numbers={"turns": (2, 2), "requests": (1, 1)})
    model = configuration.model()
    lengths = {"r0_lead0": 1, "r0_length0": 2, "r0_outputs": 2, "r0_turn1_length": 2}
    state = model.initial_state({**lengths, "budget": 4, "slots": 4, "routes": "all"})
    state = state._replace(setup=state.setup._replace(left_out=("kv-load-failure",)))
    steps = [Step(None, state)]
    for text in SESSION:
        after = model.next_state(steps[-1].state, action(text))
        assert not isinstance(after, Refusal), (text, after)
        steps.append(Step(action(text), after))
    content = trace_bytes(Trace(steps=tuple(steps), property="GATHER-AFTER-FREE", why="as it was"), configuration)
    meta = json.loads(content)["#meta"]
    assert (meta["synchronous"], meta["policy"], meta["scope"]) == (
        True,
        "priority",
        {"requests": [1, 1], "turns": [2, 2]},
    )
    assert meta["setup"]["left_out"] == ["kv-load-failure"]
    again = replay(parse_trace(content), {"synchronous": True, "policy": "priority", "without": ("kv-load-failure",)})
    assert again.divergence is None
    assert [step.state for step in again.trace.steps] == [step.state for step in steps]
    assert again.configuration is not None
    assert again.configuration.plain() == configuration.plain()


def test_every_state_of_a_run_has_the_same_fields() -> None:
    """Also those that only some setups have."""
    names: dict[str, set[str]] = {}
    for setup in (SESSIONS, SESSIONS._replace(requests=(RequestSetup(3, 1, ()),), left_out=RARE_ROUTES)):
        for status in ("absent", "waiting", "running", "paused", "finished"):
            state = initial_state(setup)
            request = state.requests[0]._replace(status=status, turn=1, frames=2)
            shown = describe_state(state._replace(requests=(request,)))
            names.setdefault(str(setup.left_out), set()).add(" ".join(shown["r0"]))
    assert [len(each) for each in names.values()] == [1, 1]
    first, second = (next(iter(each)).split() for each in names.values())
    assert first == [*second, "drop", "discard", "turn", "lost"]
