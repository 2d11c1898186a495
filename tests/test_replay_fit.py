"""Trace files that name what does not exist, contradict themselves, or name somebody's Python file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from outlives.invariants import userfile
from outlives.invariants.configuration import Configuration
from outlives.invariants.replay import Replay, replay
from outlives.invariants.trace_file import trace_bytes
from outlives.model.errors import BadModel, BadTrace, BadUserFile, Contradiction
from outlives.model.setup import RARE_ROUTES
from outlives.model.trace import Recorded, parse_trace
from trace_samples import BEGIN, changed, changed_meta, miss_trace, run_trace

# --- names and numbers that do not fit --------------------------------------------------------------------------------


def _action(place: int, name: str, **arguments: Any) -> Any:
    return changed(lambda root: root["states"][place]["#meta"].update(action=name, arguments=arguments))


def _setup(**numbers: Any) -> Any:
    return changed(lambda root: root["#meta"]["setup"].update(numbers))


UNFIT: dict[str, tuple[Callable[[], Recorded], str]] = {
    "unknown action": (lambda: _action(2, "scedule"), r"state 2: unknown action 'scedule'. Did you mean 'schedule'"),
    "unknown argument": (lambda: _action(2, "schedule", now=1), "unknown argument of schedule 'now'.*short_at, omit"),
    "no argument": (lambda: _action(3, "abort"), "state 3: abort lacks its argument request"),
    "request of another scope": (
        lambda: _action(1, "arrive", request="r7"),
        "request of arrive is 'r7', which this trace's setup does not have. It has: r0",
    ),
    "request by number": (lambda: _action(1, "arrive", request=0), "request of arrive is '0'"),
    "number by name": (lambda: _action(2, "evict", count="many"), "count of evict must be a whole number, not 'many'"),
    "key of another scope": (lambda: _action(2, "schedule", omit="k9"), "omit of schedule is 'k9'.*It has: none, k0"),
    "unknown profile": (lambda: changed_meta(profile="9.9"), "the file: unknown profile '9.9'"),
    "profile no name": (lambda: changed_meta(profile=3), "'profile' in #meta must be a name"),
    "no profile": (lambda: changed(lambda root: root["#meta"].pop("profile")), "names no profile"),
    "unknown guard": (lambda: changed_meta(guard="x"), "the file: unknown guard 'x'"),
    "no guard": (lambda: changed_meta(guard=None), "'guard' in #meta must be a name, not nothing"),
    "unknown scenario": (lambda: changed_meta(scenario="x"), "unknown scenario 'x'"),
    "unknown policy": (lambda: changed_meta(policy="x"), "unknown policy 'x'"),
    "unknown reader": (lambda: changed_meta(reader="x"), "unknown reader 'x'"),
    "unknown assumption": (lambda: changed_meta(relaxed=["A9"]), "unknown assumption 'A9'"),
    "A3 against itself": (lambda: changed_meta(relaxed=["A3"]), "the file: --relax A3 and --reader checked contradict"),
    "relaxed no list": (lambda: changed_meta(relaxed="A1"), "relaxed in #meta must be a list of names"),
    "unknown route": (lambda: changed_meta(routes={"closed": ["x"]}), "unknown route 'x'"),
    "routes no object": (lambda: changed_meta(routes=[]), "routes' closed in #meta must be a list"),
    "unknown property": (lambda: changed_meta(property="X"), "unknown property 'X'. Known: GATHER-AFTER-FREE"),
    "split no truth value": (lambda: changed_meta(split=1), "'split' in #meta must be true or false"),
    "mode no truth value": (lambda: changed_meta(diffusion="x"), "'diffusion' in #meta must be true or false"),
    "mode of another setup": (
        lambda: changed_meta(scenario=None, synchronous=True),
        "is of mode synchronous, but the setup's synchronous is 0",
    ),
    "policy of another setup": (
        lambda: changed(
            lambda root: [root["#meta"].update(policy="fcfs"), root["#meta"]["setup"].update(by_priority=1)]
        ),
        "made with policy fcfs, but the setup's by_priority is 1",
    ),
    "turns of another setup": (
        lambda: changed_meta(scenario=None, routes={"closed": []}, scope={"turns": [2, 2]}),
        "from another scope: turns is 1 in its setup, but 2 to 2 in its scope",
    ),
    "two sizes of a key": (
        lambda: _setup(
            requests=[
                {
                    "prompt": 5,
                    "outputs": 1,
                    "items": [
                        {"start": 0, "length": 2, "key": "k0", "size": 2},
                        {"start": 2, "length": 2, "key": "k0", "size": 1},
                    ],
                }
            ]
        ),
        r"r0, item1 \[2,4\) takes 1 slots, but its key took 2 before",
    ),
    "left out what can only be closed": (lambda: _setup(left_out=["preempt"]), "unknown route 'preempt'"),
    "unknown number": (
        lambda: changed_meta(scenario=None, scope={"x": [1, 2]}),
        "no number 'x'. Known: requests, items",
    ),
    "number no range": (lambda: changed_meta(scenario=None, scope={"slots": 4}), r"must be a range \[low, high\]"),
    "number of truth": (
        lambda: changed_meta(scenario=None, scope={"slots": [True, True]}),
        r"must be a range \[low, high\]",
    ),
    "absurd range": (
        lambda: changed_meta(scenario=None, scope={"slots": [1, 10**9]}),
        "slots is 1000000000; it must be",
    ),
    "absurd requests": (lambda: changed_meta(scenario=None, scope={"requests": [10**9] * 2}), "must be a range"),
    "another scope": (
        lambda: changed_meta(scenario=None, scope={"slots": [1, 3]}),
        "is from another scope: slots is 4 in its setup, but 1 to 3 in its scope",
    ),
    "more requests": (
        lambda: changed_meta(scenario=None, scope={"requests": [2, 2]}),
        "from another scope: requests is 1",
    ),
    "scope beside scenario": (lambda: changed_meta(scope={"slots": [1, 9]}), "scenario chunk-end fixes its numbers"),
    "closed look-ahead": (lambda: changed_meta(routes={"closed": ["look-ahead"]}), "route look-ahead is closed"),
    "no setup": (lambda: changed_meta(setup=None), "the setup must be an object"),
    "absurd setup": (lambda: _setup(slots=10**12), "slots must be a whole number from 0 to 1,000,000"),
    "endless setup": (
        lambda: _setup(budget=1, requests=[{"prompt": 10**6, "outputs": 1, "items": []}]),
        "needs 1,000,001 passes",
    ),
}


@pytest.mark.parametrize("name", UNFIT)
def test_a_file_that_does_not_fit_gives_one_sentence(name: str) -> None:
    make, words = UNFIT[name]
    with pytest.raises(BadTrace, match=words) as error:
        replay(make())
    assert str(error.value).startswith("the file")
    assert "\n" not in str(error.value)


def _old(root: dict[str, Any]) -> None:
    """The file as it was written before turns, modes and rare routes."""
    setup = root["#meta"]["setup"]
    for name in ("by_priority", "synchronous", "diffusion", "encoder_decoder", "left_out"):
        del setup[name]
    for asked in setup["requests"]:
        del asked["turns"]
    root["#meta"].update(routes={"closed": ["abort", "preempt"]}, policy="fcfs")
    for state in root["states"]:
        for name in ("drop", "discard"):
            state["r0"].pop(name, None)


def test_a_file_from_before_turns_modes_and_rare_routes_replays() -> None:
    again = replay(changed(_old), {"without": ("sessions", "reset-prefix-cache"), "policy": "fcfs"})
    assert again.violated_again
    assert again.divergence is None
    assert again.trace.steps[0].state.setup.left_out == RARE_ROUTES


def test_the_policy_of_a_file_from_before_is_that_of_its_setup() -> None:
    def by_priority(root: dict[str, Any]) -> None:
        _old(root)
        root["#meta"]["policy"] = "priority"

    assert replay(changed(by_priority)).trace.steps[0].state.setup.by_priority == 1
    assert replay(changed(_old)).trace.steps[0].state.setup.by_priority == 0


_JUNK: tuple[Any, ...] = (None, True, -1, 1.5, "", "x", [], [[]], [None], {}, {"closed": {}}, {"slots": []})


def test_any_member_of_meta_of_any_type_gives_a_result_or_a_sentence() -> None:
    root = json.loads(trace_bytes(*miss_trace()))
    sentences: list[str] = []
    for name in root["#meta"]:
        for value in _JUNK:
            changed = {**root, "#meta": {**root["#meta"], name: value}}
            try:
                answer = replay(parse_trace(json.dumps(changed).encode(), "the file"))
            except (BadTrace, Contradiction) as error:
                sentences.append(str(error))
            else:
                assert isinstance(answer, Replay)
    assert len(sentences) > 100
    assert [sentence for sentence in sentences if not sentence.startswith("the file")] == []


# --- a user's own files -----------------------------------------------------------------------------------------------

USER = """
from dataclasses import replace
from pathlib import Path
from outlives.model.profiles import PROFILES
from outlives.model.lifetime import Guard, GUARDS
Path(__file__).with_name("ran").touch()
mine = replace(PROFILES["0.17.1"], name="mine")
other = replace(PROFILES["0.33.0"], name="mine")
own = replace(mine, guard=replace(mine.guard, name="own-guard"))
def fault(rules):
    return rules
def raising(rules):
    def advance(counters, tokens):
        raise RuntimeError("boom")
    return replace(rules, advance=advance)
"""


def _user_trace(tmp_path: Path, **named: str) -> bytes:
    (tmp_path / "user.py").write_text(USER)
    options: dict[str, Any] = {kind: f"{tmp_path / 'user.py'}:{name}" for kind, name in named.items()}
    configuration = Configuration(**{"profile": "0.17.1", "scenario": "chunk-end", **options})
    trace = run_trace(Configuration(profile="0.17.1", scenario="chunk-end"), "chunk-end", BEGIN, "GATHER-AFTER-FREE")
    content = trace_bytes(trace, configuration)
    (tmp_path / "ran").unlink()
    userfile._loaded.clear()  # as in the process that replays
    return content


@pytest.mark.parametrize("kind", ["profile", "fault"])
def test_a_trace_executes_nobodys_code_unless_it_is_named_again(tmp_path: Path, kind: str) -> None:
    name = {"profile": "mine", "fault": "fault"}[kind]
    recorded = parse_trace(_user_trace(tmp_path, **{kind: name}))
    with pytest.raises(BadTrace, match=f"a Python file. A trace never executes code by itself: give --{kind}"):
        replay(recorded)
    with pytest.raises(Contradiction, match=f"--{kind} "):
        replay(recorded, {kind: f"{tmp_path / 'user.py'}:other"})
    assert not (tmp_path / "ran").exists()
    again = replay(recorded, {kind: f"{tmp_path / 'user.py'}:{name}"})
    assert (tmp_path / "ran").exists()
    assert again.violated_again


def test_the_named_file_may_lie_elsewhere(tmp_path: Path) -> None:
    content = _user_trace(tmp_path, profile="mine")
    (tmp_path / "moved").mkdir()
    (tmp_path / "user.py").rename(tmp_path / "moved" / "user.py")
    assert replay(parse_trace(content), {"profile": f"{tmp_path / 'moved' / 'user.py'}:mine"}).violated_again
    with pytest.raises(BadUserFile, match="there is no file"):
        replay(parse_trace(content), {"profile": f"{tmp_path / 'user.py'}:mine"})


def test_a_profile_with_a_guard_of_its_own_replays_and_must_still_have_it(tmp_path: Path) -> None:
    content = _user_trace(tmp_path, profile="own")
    named = {"profile": f"{tmp_path / 'user.py'}:own"}
    assert replay(parse_trace(content), named).violated_again
    (tmp_path / "user.py").write_text(USER.replace("own-guard", "other-guard"))
    with pytest.raises(Contradiction, match=r"was made with guard own-guard, but .*user.py:own has other-guard now"):
        replay(parse_trace(content), named)


def test_a_fault_that_raises_is_one_sentence(tmp_path: Path) -> None:
    recorded = parse_trace(_user_trace(tmp_path, fault="raising"))
    with pytest.raises(BadModel, match=r"next_state raised \(RuntimeError: boom\), at schedule\(\)"):
        replay(recorded, {"fault": f"{tmp_path / 'user.py'}:raising"})
