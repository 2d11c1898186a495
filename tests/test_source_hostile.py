"""Hostile and careless methods: nothing outside the stubs is reached, and every run ends."""

import time
from pathlib import Path

import pytest
from outlives.invariants.verdict import Verdict
from source_snippets import judged, scheduler

ESCAPES = {
    "import": "import os",
    "import from": "from os import system",
    "import call": "__import__('os')",
    "open": "open('{file}', 'w')",
    "exec": "exec('x = 1')",
    "eval": "eval('1')",
    "getattr": "getattr(request, '__class__')",
    "class": "request.__class__",
    "globals": "self._free_encoder_inputs.__globals__",
    "code": "self.encoder_cache_manager.free_encoder_input.function",
    "stub internals": "request.attributes",
    "list class": "[].__class__",
    "list sort": "[2, 1].sort()",
    "format": "'{{0.__class__}}'.format(request)",
    "format percent": "'%1000000000d' % 1",
    "lambda": "(lambda: 1)()",
    "global": "global logger",
    "nested function": "def inner():\n            pass",
    "nested class": "class Inner:\n            pass",
    "try": "try:\n            pass\n        finally:\n            pass",
    "with": "with request:\n            pass",
    "delete": "del request",
    "yield": "yield 1",
    "write to request": "request.num_computed_tokens = 0",
    "write to self": "self.num_prefill_lookahead += 1",
    "private global": "__builtins__",
    "walrus to a private name": "(__x := 1)",
    "call of a number": "(1)()",
    "star call": "len(*[[1]])",
    "dict unpacking": "len(**{{}})",
    "match": "match 1:\n            case _:\n                pass",
    "complex": "1j",
    "bytes": "b'x'",
    "hook by name": "[x for x in range(3) if read(x, 'y')]",
}


@pytest.mark.parametrize("name", ESCAPES)
def test_nothing_but_stubs_is_in_reach(tmp_path: Path, name: str) -> None:
    target = tmp_path / "written"
    found = judged(tmp_path, scheduler("\n        " + ESCAPES[name].format(file=target) + "\n"))
    assert found.verdict is Verdict.UNKNOWN
    assert found.problem_line == 4
    assert not target.exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("class", "the private attribute __class__"),
        ("call of a number", "calls something that the stubs do not know"),
        ("write to request", "changes something outside itself"),
        ("write to self", "changes something outside itself"),
        ("open", "the global name open"),
    ],
)
def test_what_is_refused_is_named(tmp_path: Path, name: str, said: str) -> None:
    assert said in judged(tmp_path, scheduler("\n        " + ESCAPES[name] + "\n")).problem


@pytest.mark.parametrize("name", ["class", "import", "lambda", "private global"])
def test_what_is_never_allowed_is_refused_even_where_no_path_leads(tmp_path: Path, name: str) -> None:
    found = judged(tmp_path, scheduler("\n        return\n        " + ESCAPES[name] + "\n"))
    assert found.verdict is Verdict.UNKNOWN
    assert found.problem_line == 5


BOMBS = {
    "endless loop": "while True:\n            pass",
    "endless loop over a growing list": "xs = [1]\n        for x in xs:\n            xs.append(x)",
    "endless recursion": "self._free_encoder_inputs(request)",
    "recursion with many calls": "[self._free_encoder_inputs(request) for _ in range(9)]",
    "doubling list": "xs = [1]\n        while True:\n            xs = xs + xs",
    "nested list compared": (
        "a = [1]\n        b = [1]\n        for _ in range(60):\n            a = [a, a]\n            b = [b, b]\n"
        "        a == b"
    ),
    "nested tuple hashed": "t = (1, 2)\n        for _ in range(60):\n            t = (t, t)\n        {t: 1}",
    "list in itself": "a = []\n        a.append(a)\n        a == a",
    "huge product": "x = 9\n        while True:\n            x = x * x",
    "huge range": "range(1000000000)",
    "huge repetition": "[0] * 1000000000",
    "huge text": "x = 'a'\n        while True:\n            x = x + x",
    "too many decisions": "while request.num_computed_tokens > self.num_spec_tokens * 2:\n            x = 1",
    "too many paths": "\n        ".join(f"if request.num_computed_tokens > {n}: pass" for n in range(400)),
    "deep expression": "x = " + "-" * 900 + "1",
    "too large": "xs = [" + ", ".join(["1"] * 9000) + "]",
    "divergence": "x = request.num_computed_tokens\n        while x > 0:\n            x = x - 1",
    "nested loops": (
        "for a in range(4000):\n            for b in range(4000):\n                for c in range(4000):\n"
        "                    pass"
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_every_run_ends_soon_and_says_where(tmp_path: Path, name: str) -> None:
    started = time.monotonic()
    found = judged(tmp_path, scheduler("\n        " + BOMBS[name] + "\n"))
    assert time.monotonic() - started < 20
    assert found.verdict is Verdict.UNKNOWN
    assert found.problem_line is not None
    assert found.problem_line >= 3


def test_methods_that_call_each_other_without_end_are_stopped_by_their_depth(tmp_path: Path) -> None:
    assert "more than 40 deep" in judged(tmp_path, scheduler("\n        " + BOMBS["endless recursion"] + "\n")).problem


def test_a_hostile_method_that_is_never_reached_is_not_run(tmp_path: Path) -> None:
    helper = "\n    def _other(self):\n        import os\n"
    assert judged(tmp_path, scheduler("\n        return\n", helpers=helper)).verdict is Verdict.PROVED


def test_a_hostile_helper_that_is_reached_is_refused_at_its_line(tmp_path: Path) -> None:
    helper = "\n    def _other(self):\n        import os\n"
    text = scheduler("\n        self._other()\n", helpers=helper)
    found = judged(tmp_path, text)
    assert found.verdict is Verdict.UNKNOWN
    assert text.splitlines()[(found.problem_line or 0) - 1].strip() == "import os"
