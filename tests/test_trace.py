"""Trace files: the ITF encoding, canonical bytes, an independent reader, exact setups.

Hostile files are in `test_trace_hostile`, replays in `test_replay`.
"""

import json
from typing import Any

import itf_py  # type: ignore[import-untyped]
import pytest
from outlives.invariants.trace_file import trace_bytes
from outlives.model.contract import Action
from outlives.model.errors import BadTrace
from outlives.model.itf import Unserializable, value_from_itf, value_to_itf
from outlives.model.setup import RARE_ROUTES, Item, RequestSetup, Setup, Turn
from outlives.model.trace import (
    RecordedStep,
    parse_trace,
    setup_from_plain,
    setup_to_plain,
    trace_text,
)
from trace_samples import miss_trace

SETUP = Setup(
    requests=(
        RequestSetup(8, 2, (Item(4, 2, "k0", 2), Item(6, 1, "k1", 1)), 2),
        RequestSetup(3, 1, (), turns=(Turn(4, 2, (Item(1, 2, "k0", 2),)),)),
    ),
    slots=4,
    budget=5,
    encoder_budget=6,
    chunk_cap=3,
    drafts=2,
    look_ahead=1,
    depth=3,
    whole_items=1,
    strangers=2,
    by_priority=1,
    synchronous=1,
    left_out=("kv-load-failure",),
)
PLAIN: dict[str, Any] = {
    "requests": [
        {
            "prompt": 8,
            "outputs": 2,
            "items": [
                {"start": 4, "length": 2, "key": "k0", "size": 2},
                {"start": 6, "length": 1, "key": "k1", "size": 1},
            ],
            "priority": 2,
            "turns": [],
        },
        {
            "prompt": 3,
            "outputs": 1,
            "items": [],
            "priority": 0,
            "turns": [
                {"prompt": 4, "outputs": 2, "items": [{"start": 1, "length": 2, "key": "k0", "size": 2}]},
            ],
        },
    ],
    "slots": 4,
    "budget": 5,
    "encoder_budget": 6,
    "chunk_cap": 3,
    "drafts": 2,
    "look_ahead": 1,
    "depth": 3,
    "whole_items": 1,
    "strangers": 2,
    "by_priority": 1,
    "synchronous": 1,
    "diffusion": 0,
    "encoder_decoder": 0,
    "left_out": ["kv-load-failure"],
}
OLD_NUMBERS = {*PLAIN} - {"by_priority", "synchronous", "diffusion", "encoder_decoder", "left_out"}

# --- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expression"),
    [
        (5, {"#bigint": "5"}),
        (-12, {"#bigint": "-12"}),
        (10**30, {"#bigint": "1" + "0" * 30}),
        (True, True),
        ("k0", "k0"),
        ((), {"#tup": []}),
        ((1, "a"), {"#tup": [{"#bigint": "1"}, "a"]}),
        ([False], [False]),
        (frozenset({"b", "a"}), {"#set": ["a", "b"]}),
        ({"free": 1}, {"free": {"#bigint": "1"}}),
        ({"a b": 1}, {"#map": [["a b", {"#bigint": "1"}]]}),
        ({3: "x"}, {"#map": [[{"#bigint": "3"}, "x"]]}),
        ({"tag": "x", "value": "y"}, {"#map": [["tag", "x"], ["value", "y"]]}),
        ({"class": 1}, {"#map": [["class", {"#bigint": "1"}]]}),
        (Unserializable("1.5"), {"#unserializable": "1.5"}),
    ],
)
def test_a_value_has_one_itf_form_and_comes_back(value: Any, expression: Any) -> None:
    assert value_to_itf(value) == expression
    back = value_from_itf(expression, "here")
    assert back == value
    assert type(back) is type(value)


def test_a_number_that_is_not_whole_is_written_as_text() -> None:
    assert value_to_itf(1.5) == {"#unserializable": "1.5"}


@pytest.mark.parametrize(
    ("expression", "word"),
    [
        (None, "no ITF value"),
        (1.5, "no ITF value"),
        ({"#bigint": "1x"}, "no whole number"),
        ({"#bigint": "٣"}, "no whole number"),
        ({"#bigint": 5}, "wrong content"),
        ({"#bigint": "9" * 5000}, "5,000 digits"),
        ({"#bigint": "1", "more": 1}, "no other member"),
        ({"#tup": "a"}, "wrong content"),
        ({"#map": [["a"]]}, "no pair"),
        ({"#map": [[{"a": "b"}, "c"]]}, "cannot be a key"),
        ({"#set": [["a"]]}, "cannot be a key"),
        ({"#new": []}, "no ITF value"),
    ],
)
def test_what_is_no_itf_value_is_refused(expression: Any, word: str) -> None:
    with pytest.raises(BadTrace, match=word):
        value_from_itf(expression, "here")


# --- the file ---------------------------------------------------------------------------------------------------------

STEPS = (
    RecordedStep(None, None, {"level": 0, "names": ()}),
    RecordedStep(Action.of("fill", amount=2), None, {"level": 2, "names": ("é",)}),
    RecordedStep(Action.of("drain"), "closed", {"level": 2, "names": ("é",)}),
)
TEXT = """{
"#meta": {
  "format": "outlives-trace",
  "version": 1,
  "property": "LOW",
  "why": "too much"
},
"vars": ["level", "names"],
"states": [
  {"#meta": {"index": 0, "action": null, "arguments": {}, "refused": null}, "level": {"#bigint": "0"}, \
"names": {"#tup": []}},
  {"#meta": {"index": 1, "action": "fill", "arguments": {"amount": 2}, "refused": null}, "level": {"#bigint": "2"}, \
"names": {"#tup": ["\\u00e9"]}},
  {"#meta": {"index": 2, "action": "drain", "arguments": {}, "refused": "closed"}, "level": {"#bigint": "2"}, \
"names": {"#tup": ["\\u00e9"]}}
]
}
"""
META = {"property": "LOW", "why": "too much"}


def test_the_bytes_of_a_trace() -> None:
    assert trace_text(META, STEPS) == TEXT


def test_a_file_comes_back_as_it_was_written() -> None:
    recorded = parse_trace(TEXT.encode())
    assert recorded.steps == STEPS
    assert recorded.property_name == "LOW"
    assert recorded.why == "too much"
    assert recorded.text() == TEXT


def test_unknown_members_are_kept_when_a_file_is_written_anew() -> None:
    root = json.loads(TEXT)
    root["loop"] = 1
    root["remark"] = {"of": "ours"}
    root["#meta"]["reviewed"] = "yes"
    root["states"][1]["#meta"]["seen"] = True
    root["states"][2]["extra"] = "x"
    recorded = parse_trace(json.dumps(root).encode())
    assert json.loads(recorded.text()) == root
    again = json.loads(trace_text({**META, "why": "far too much"}, STEPS, keep=recorded.root))
    assert again["#meta"].pop("why") == "far too much"
    assert root["#meta"].pop("why") == "too much"
    assert again == root


def test_members_of_states_are_not_kept_where_there_are_fewer_states() -> None:
    root = json.loads(TEXT)
    root["states"][1]["#meta"]["seen"] = True
    again = json.loads(trace_text(META, STEPS[:2], keep=parse_trace(json.dumps(root).encode()).root))
    assert len(again["states"]) == 2
    assert "seen" not in again["states"][1]["#meta"]


def test_an_independent_reader_understands_a_trace_of_ours() -> None:
    trace, configuration = miss_trace()
    read = itf_py.trace_from_json(json.loads(trace_bytes(trace, configuration)))
    assert read.vars == ["r0", "book", "steps", "shelf", "misses"]
    assert read.meta["property"] == "GATHER-AFTER-FREE"
    assert [state.meta["action"] for state in read.states] == [None, "arrive", "schedule", "accept"]
    last = read.states[-1].values
    assert last["r0"].computed == 4
    assert last["r0"].status == "running"
    assert last["book"].free == 4
    assert last["misses"] == ("r0 item0 draft [1,5)",)


# --- the setup --------------------------------------------------------------------------------------------------------


def test_a_setup_is_stored_exactly() -> None:
    assert setup_to_plain(SETUP) == PLAIN
    assert setup_from_plain(json.loads(json.dumps(PLAIN)), "here") == SETUP


def test_a_number_with_a_default_may_be_missing() -> None:
    plain = {name: value for name, value in PLAIN.items() if name != "strangers"}
    assert setup_from_plain(plain, "here") == SETUP._replace(strangers=0)


def test_a_file_from_before_turns_modes_and_rare_routes_has_none_of_them() -> None:
    old = {name: value for name, value in PLAIN.items() if name in OLD_NUMBERS}
    old["requests"] = [{name: value for name, value in asked.items() if name != "turns"} for asked in PLAIN["requests"]]
    requests = tuple(asked._replace(turns=()) for asked in SETUP.requests)
    read = setup_from_plain(old, "here")
    assert read == SETUP._replace(requests=requests, by_priority=0, synchronous=0, left_out=RARE_ROUTES)
    assert len(RARE_ROUTES) == 4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"slots": -1}, "slots must be a whole number from 0 to 1,000,000"),
        ({"slots": 10**9}, "slots must be a whole number"),
        ({"slots": True}, "slots must be a whole number"),
        ({"slots": "4"}, "slots must be a whole number"),
        ({"slots": None}, "not nothing"),
        ({"budget": 0}, "budget must be a whole number from 1"),
        ({"depth": 5000}, "depth must be a whole number from 1 to 1,000"),
        ({"whole_items": 2}, "whole_items must be a whole number from 0 to 1"),
        ({"synchronous": 2}, "synchronous must be a whole number from 0 to 1"),
        ({"encoder_decoder": "yes"}, "encoder_decoder must be a whole number from 0 to 1"),
        ({"by_priority": -1}, "by_priority must be a whole number from 0 to 1"),
        ({"left_out": "sessions"}, "left_out must be a list of 0 to 4"),
        ({"left_out": ["preempt"]}, "unknown route 'preempt'.*Known: reset-prefix-cache"),
        ({"left_out": [["sessions"]]}, "unknown route"),
        ({"requests": [{"prompt": 3, "outputs": 1, "items": [], "turns": 2}]}, "turns of .*r0 must be a list"),
        ({"requests": [{"prompt": 3, "outputs": 1, "items": [], "turns": [{"prompt": 2}]}]}, "turn 1 lacks outputs"),
        (
            {
                "requests": [
                    {
                        "prompt": 3,
                        "outputs": 1,
                        "items": [{"start": 0, "length": 3, "key": "k0", "size": 3}],
                        "turns": PLAIN["requests"][1]["turns"],
                    }
                ]
            },
            r"r0, turn 1, item0 \[1,3\) takes 2 slots, but its key took 3",
        ),
        ({"requests": []}, "requests must be a list of 1 to 100"),
        ({"requests": [1]}, "r0 must be an object"),
        ({"requests": [{"prompt": 3, "outputs": 1}]}, "lacks items"),
        ({"requests": [{"prompt": 900_000, "outputs": 1, "items": []}]}, "needs 300,001 passes"),
        ({"requests": [{"prompt": 3, "outputs": 1, "items": [PLAIN["requests"][0]["items"][1]] * 2}]}, "begins before"),
        (
            {"requests": [{"prompt": 3, "outputs": 1, "items": [{**PLAIN["requests"][0]["items"][0], "size": 3}]}]},
            "size",
        ),
        (
            {
                "requests": [
                    {"prompt": 3, "outputs": 1, "items": [{**PLAIN["requests"][0]["items"][0], "key": "\x1b[2J"}]}
                ]
            },
            "key must be a short name",
        ),
        (
            {
                "requests": [
                    PLAIN["requests"][0],
                    {"prompt": 3, "outputs": 1, "items": [{"start": 0, "length": 3, "key": "k0", "size": 3}]},
                ]
            },
            "takes 3 slots, but its key took 2",
        ),
    ],
)
def test_a_setup_that_makes_no_sense_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(BadTrace, match=words):
        setup_from_plain({**PLAIN, **change}, "here")


def test_a_setup_without_slots_is_refused() -> None:
    with pytest.raises(BadTrace, match="lacks slots"):
        setup_from_plain({name: value for name, value in PLAIN.items() if name != "slots"}, "here")
