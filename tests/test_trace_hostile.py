"""Trace files that mean harm, or are no trace files: each gives one sentence, and nothing is touched.

Files that are traces but do not fit the model they name are in `test_replay_fit`.
"""

import io
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from outlives.invariants.replay import replay
from outlives.invariants.trace_file import trace_bytes
from outlives.model import itf
from outlives.model.errors import BadTrace, OutlivesError
from outlives.model.itf import MOST_BYTES, MOST_NESTING
from outlives.model.trace import parse_trace, read_trace
from test_trace import STEPS, TEXT
from trace_samples import miss_trace


def _root(change: Callable[[dict[str, Any]], object]) -> bytes:
    root = json.loads(TEXT)
    change(root)
    return json.dumps(root).encode()


def _meta(**members: Any) -> bytes:
    return _root(lambda root: root["#meta"].update(members))


def _state(place: int, **members: Any) -> bytes:
    return _root(lambda root: root["states"][place]["#meta"].update(members))


HOSTILE = {
    "empty": (b"", "is empty"),
    "blank": (b" \n", "is empty"),
    "not JSON": (b"hello", "no JSON"),
    "binary": (bytes(range(256)), "not text in UTF-8"),
    "UTF-16": (TEXT.encode("utf-16"), "not text in UTF-8"),
    "truncated": (TEXT.encode()[:300], "cut off"),
    "two documents": (TEXT.encode() * 2, "no JSON"),
    "an array": (b"[]", "must be an object, not an array"),
    "a string": (b'"x"', "must be an object, not a string"),
    "null": (b"null", "must be an object, not null"),
    "a number": (b"3", "must be an object, not a number"),
    "no states": (b'{"vars": []}', "no 'states'"),
    "no vars": (b'{"states": []}', "no 'vars'"),
    "states no array": (b'{"vars": [], "states": {}}', "'states' must be an array"),
    "vars twice": (b'{"vars": ["a", "a"], "states": [{"a": 1}]}', "distinct names"),
    "vars numbers": (b'{"vars": [1], "states": [{}]}', "distinct names"),
    "vars objects": (b'{"vars": [{}], "states": [{}]}', "distinct names"),
    "no state at all": (b'{"vars": [], "states": []}', "has no state"),
    "state no object": (b'{"vars": [], "states": [1]}', "state 0 must be an object"),
    "unbound variable": (b'{"vars": ["a"], "states": [{"b": 1}]}', "no value for the variable 'a'"),
    "meta no object": (b'{"#meta": 1, "vars": [], "states": [{}]}', "'#meta' must be an object"),
    "another tool's": (b'{"#meta": {"format": "ITF"}, "vars": [], "states": [{}]}', "another tool"),
    "no meta": (b'{"vars": [], "states": [{}]}', "another tool"),
    "too many states": (
        b'{"#meta": {}, "vars": [], "states": [' + b"{}," * 100_000 + b"{}]}",
        "has 100,001 states; at most 100,000",
    ),
    "nested bomb": (b'{"a":' * 200_000 + b"1" + b"}" * 200_000, "too deeply"),
    "nested arrays": (b"[" * 1_000_000, "too deeply"),
    "nested a little": (b'{"a":' * (MOST_NESTING + 1) + b"1" + b"}" * (MOST_NESTING + 1), "too deeply"),
    "huge integer": (b'{"vars": [], "states": [{"a": ' + b"9" * 1_000_000 + b"}]}", "1,000,000 digits"),
    "huge bigint": (
        _root(lambda root: root["states"][1].update(level={"#bigint": "9" * 1_000_000})),
        "state 1, 'level': a number of 1,000,000 digits",
    ),
    "huge fraction": (b'{"a": 1e999}', "too large"),
    "NaN": (b'{"a": NaN}', "NaN is no JSON value"),
    "infinity": (b'{"a": -Infinity}', "no JSON value"),
    "member twice": (b'{"vars": [], "vars": [], "states": []}', "member 'vars' twice"),
    "half a character": (b'{"a": "\\ud800"}', "lone surrogate"),
    "half a character in a name": (b'{"\\udfff": 1}', "lone surrogate"),
    "null value": (_root(lambda root: root["states"][1].update(level=None)), "state 1, 'level'.*no ITF value"),
    "version 2": (_meta(version=2), "format version '2'; this outlives reads version 1"),
    "version true": (_meta(version=True), "format version 'True'"),
    "version text": (_meta(version="1.0"), "format version '1.0'"),
    "version missing": (_root(lambda root: root["#meta"].pop("version")), "format version nothing"),
    "property number": (_meta(property=3), "must name a property"),
    "property missing": (_root(lambda root: root["#meta"].pop("property")), "must name a property"),
    "why number": (_meta(why=3), "'why' in #meta must be a line of text"),
    "why with escapes": (_meta(why="\x1b[2J"), "'why' in #meta must be a line of text"),
    "badge no text": (_meta(shortest=[]), "'shortest' in #meta must be"),
    "shrink no object": (_meta(shrink=[]), "'shrink' in #meta must be an object"),
    "first with action": (_state(0, action="fill"), "the first state is the initial one"),
    "second without": (_state(1, action=None), "state 1: its #meta must name the action.*not nothing"),
    "action number": (_state(1, action=7), "must name the action"),
    "action with escapes": (_state(1, action="\x1b[2J"), "must name the action"),
    "arguments array": (_state(1, arguments=[]), "'arguments' of fill must be an object"),
    "argument list": (_state(1, arguments={"amount": [1]}), "argument amount of fill must be a number or a name"),
    "argument true": (_state(1, arguments={"amount": True}), "argument amount of fill must be a number or a name"),
    "argument fraction": (_state(1, arguments={"amount": 1.5}), "argument amount of fill must be a number or a name"),
    "argument enormous": (
        _state(1, arguments={"amount": 10**50}),
        "argument amount of fill must be a number or a name",
    ),
    "argument nameless": (_state(1, arguments={"": 1}), "cannot have an argument named ''"),
    "refused number": (_state(1, refused=1), "'refused' must be null or the name of a reason"),
    "wrong index": (_state(2, index=7), "state 2: its #meta says that it is number '7'"),
    "state left out": (_root(lambda root: root["states"].pop(1)), "states are missing or out of order"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_gives_one_sentence(tmp_path: Path, name: str) -> None:
    content, words = HOSTILE[name]
    path = tmp_path / "hostile.itf.json"
    path.write_bytes(content)
    with pytest.raises(BadTrace, match=words) as error:
        read_trace(path)
    message = str(error.value)
    assert message.isascii()
    assert message.isprintable()
    assert len(message) < 600
    assert "hostile.itf.json" in message
    assert path.read_bytes() == content


def test_a_file_of_100_megabytes_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.itf.json"
    with open(path, "wb") as file:
        file.truncate(100_000_000)
    with pytest.raises(BadTrace, match=f"has 100,000,000 bytes; traces of up to {MOST_BYTES:,} bytes"):
        read_trace(path)


def test_what_is_no_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadTrace, match="No such file"):
        read_trace(tmp_path / "missing.itf.json")
    with pytest.raises(BadTrace, match="is a folder"):
        read_trace(tmp_path)
    with pytest.raises(BadTrace, match="null byte"):
        read_trace("a\0b")
    with pytest.raises(BadTrace, match="name too long"):
        read_trace("x" * 5000)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadTrace, match="no regular file"):
        read_trace(tmp_path / "pipe")


def test_an_unreadable_file_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = tmp_path / "secret.itf.json"
    path.write_text(TEXT)
    monkeypatch.setattr(itf, "open", forbidden, raising=False)
    with pytest.raises(BadTrace, match=r"cannot read the trace .*secret.itf.json': Permission denied"):
        read_trace(path)


def test_a_file_that_grows_while_it_is_read_is_cut_off_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "growing.itf.json"
    path.write_text(TEXT)
    monkeypatch.setattr(itf, "open", lambda *_: io.BytesIO(b" " * (MOST_BYTES + 5)), raising=False)
    with pytest.raises(BadTrace, match="bytes; traces of up to"):
        read_trace(path)


def test_a_byte_order_mark_is_no_harm() -> None:
    assert parse_trace(b"\xef\xbb\xbf" + TEXT.encode()).steps == STEPS


def test_damaged_files_give_a_run_or_one_sentence() -> None:
    content = trace_bytes(*miss_trace())
    choose = random.Random(5)
    sentences = 0
    for _ in range(400):
        damaged = bytearray(content)
        for _ in range(choose.randint(1, 3)):
            place = choose.randrange(len(damaged))
            damaged[place : place + choose.randint(0, 2)] = choose.choice(
                (b"", b'"', b"{", b"]", b"-1", b"\xff", b",", b"0")
            )
        try:
            replay(parse_trace(bytes(damaged)))
        except OutlivesError:
            sentences += 1
    assert 200 < sentences < 400
