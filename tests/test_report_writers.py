"""What writers must get right whatever they are given: hostile names, other models, streams, long traces."""

import io
import json
from dataclasses import dataclass, replace
from typing import NamedTuple

import pytest
from outlives.invariants.machine_shrink import Witness, build_trace
from outlives.invariants.report.changes import changes, flat
from outlives.invariants.report.clean import shown, to_ascii
from outlives.invariants.report.content import DataTable, Run, Violation, explain
from outlives.invariants.report.reporter import reporter_for
from outlives.invariants.report.tables import properties_table
from outlives.invariants.verdict import Step, Trace, Verdict
from outlives.model.contract import Action
from outlives.model.profiles import PROFILES
from report_cases import chunk_end, green, row, world
from toy_models import CounterModel

HOSTILE = "[bold red]x[/] \x1b[31mred\x1b]0;title\x07 \u202etfel \r\nnext \ue000 \x9b1m"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def text_of(run: Run, out: io.StringIO | None = None) -> str:
    out = out or io.StringIO()
    reporter_for(out=out, err=io.StringIO()).run(run)
    return out.getvalue()


# --- hostile names --------------------------------------------------------------------------------------------------


def hostile_run() -> Run:
    violation = replace(chunk_end(), replay=f"outlives replay {HOSTILE}", files=(HOSTILE,), setup=HOSTILE)
    result = row(HOSTILE, Verdict.VIOLATED, HOSTILE, note=HOSTILE, engine=HOSTILE)
    return Run(title=HOSTILE, results=(result,), violations=(violation,), not_reached=(HOSTILE,), out=HOSTILE)


def test_hostile_names_are_text_in_a_plain_report() -> None:
    text = text_of(hostile_run())
    assert text.isascii()
    assert {char for char in text if not char.isprintable()} == {"\n"}
    assert "[bold red]x[/] \\x1b[31mred" in text
    assert "\\u202e" in text


def test_hostile_names_are_text_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    text = text_of(hostile_run(), Terminal())
    assert "\x1b[" in text  # our own colours
    for obeyed in ("\x1b[31mred", "\x1b]0;", "\x07", "\u202e", "\r", "\ue000", "\x9b"):
        assert obeyed not in text


def test_hostile_names_are_text_in_json() -> None:
    out = io.StringIO()
    reporter = reporter_for(as_json=True, out=out, err=io.StringIO())
    reporter.run(hostile_run())
    reporter.finish(1)
    assert out.getvalue().isascii()
    assert json.loads(out.getvalue())["title"] == HOSTILE


@pytest.mark.parametrize(
    ("raw", "safe"),
    [("k0", "k0"), ("a\tb", "a\\tb"), ("\x1b", "\\x1b"), ("\u202e", "\\u202e"), ("\ud800", "\\ud800"), ("é", "é")],
)
def test_text_made_safe(raw: str, safe: str) -> None:
    assert shown(raw) == safe


def test_long_text_is_cut_and_says_so() -> None:
    assert shown("x" * 5000, longest=10) == "xxxxx… (4990 characters left out) …xxxxx"


def test_ascii_spells_our_arrows_and_escapes_the_rest() -> None:
    assert to_ascii("0 → 4, é") == "0 -> 4, \\xe9"


# --- any model --------------------------------------------------------------------------------------------------------


def counter_violation() -> Violation:
    model = CounterModel(faulty=True)
    prop = next(prop for prop in model.properties() if prop.name == "BELOW-LIMIT")
    start = next(iter(model.initial_states()))
    actions = (Action.of("add", amount=5),) * 3
    return explain(build_trace(model, prop, Witness(None, start, actions)), model=model, engine="machine")


def test_another_model_shows_actions_and_changed_fields() -> None:
    violation = counter_violation()
    assert [change.words() for change in violation.lines[2].changes] == ["value: 5 → 10"]
    text = text_of(Run(title="t", results=(), violations=(violation,)))
    assert "add(amount=5)   value: 10 -> 15" in text
    assert "BELOW-LIMIT is violated at step 3, add(amount=5): the value is 15, the limit 12." in text


class Pair(NamedTuple):
    left: int
    right: tuple[str, ...]


@dataclass(frozen=True)
class Boxed:
    pair: Pair
    names: frozenset[str]


def test_fields_are_flattened_by_name() -> None:
    state = Boxed(Pair(1, ("a",)), frozenset("zbyaxc"))
    assert flat(state) == {"pair.left": 1, "pair.right": ("a",), "names": list("abcxyz")}
    assert flat(7) == {"state": 7}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ({"a": 1}, {"a": 2}, ["a: 1 → 2"]),
        ({"a": 1, "b": 5}, {"a": 1, "b": 5}, []),
        ({"a": ()}, {"a": ("k0",)}, ["a: none → k0"]),
        ({"a": ("k0", "k1")}, {"a": ("k1", "k2")}, ["a: - k0 + k2"]),
        ({"a": ("k0", "k1")}, {"a": ("k1", "k0")}, ["a: k0 | k1 → k1 | k0"]),
        ({"a": 1}, {"b": 1}, ["b: none → 1", "a: 1 → none"]),
    ],
)
def test_only_what_changed_is_shown(old: dict[str, object], new: dict[str, object], words: list[str]) -> None:
    assert [change.words() for change in changes(old, new)] == words


def test_a_long_trace_is_cut_in_the_terminal_and_whole_in_json() -> None:
    steps = (Step(None, 0), *(Step(Action.of("add"), value) for value in range(1, 101)))
    violation = explain(Trace(steps=steps, property="P", why="too large"))
    text = text_of(Run(title="t", results=(), violations=(violation,)))
    assert "65 more steps, not shown here" in text
    assert [line for line in text.splitlines() if line.startswith(" 100 ")]
    assert len(violation.plain()["steps"]) == 101


# --- streams -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_colour_where_it_is_not_wanted(monkeypatch: pytest.MonkeyPatch, setting: tuple[str, str]) -> None:
    monkeypatch.setenv(*setting)
    assert text_of(green(), Terminal()) == text_of(green())


def test_progress_is_quiet_without_a_terminal() -> None:
    err = io.StringIO()
    reporter = reporter_for(out=io.StringIO(), err=err)
    with reporter.progress(10, "machine") as advance:
        advance(5, "found something")
    assert err.getvalue() == ""


def test_progress_on_a_terminal_shows_safe_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    err = Terminal()
    with reporter_for(as_json=True, out=io.StringIO(), err=err).progress(10, "machine") as advance:
        advance(5, HOSTILE)
    assert "[bold red]x[/] \\x1b[31mred" in err.getvalue()


def test_errors_go_to_standard_error_in_text_and_into_the_object_in_json() -> None:
    out, err = io.StringIO(), io.StringIO()
    reporter_for(out=out, err=err).error("unknown profile 'x\x1b'")
    assert (out.getvalue(), err.getvalue()) == ("", "outlives: unknown profile 'x\\x1b'\n")
    reporter = reporter_for(as_json=True, out=out, err=err)
    reporter.error("unknown profile")
    assert reporter.finish(2) == 2
    data = json.loads(out.getvalue())
    assert (data["error"], data["exit_status"], data["format"]) == ("unknown profile", 2, 1)


# --- runs and tables -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdicts", "vacuous", "status"),
    [
        ((Verdict.PASSED, Verdict.PROVED), (), 0),
        ((Verdict.PASSED,), ("abort",), 4),
        ((Verdict.VIOLATED, Verdict.UNKNOWN), ("abort",), 1),
        ((Verdict.DISAGREE, Verdict.VIOLATED), (), 5),
        ((), (), 4),
    ],
)
def test_the_status_of_a_run(verdicts: tuple[Verdict, ...], vacuous: tuple[str, ...], status: int) -> None:
    results = tuple(row("P", verdict, "c") for verdict in verdicts)
    run = Run(title="t", results=results, vacuous=vacuous)
    assert run.status == status
    assert f"Exit status {status}:" in text_of(run)


def test_every_property_has_a_row() -> None:
    from outlives.invariants.properties import PROPERTY_NAMES, scheduler_properties

    table = properties_table(scheduler_properties(world("repaired")))
    assert tuple(line[0] for line in table.rows) == PROPERTY_NAMES


def test_tables_in_json_keep_their_full_names() -> None:
    from outlives.invariants.report.tables import profiles_tables

    rows = profiles_tables()[0].plain()["rows"]
    assert set(rows[0]) == {"switch", *PROFILES}
    assert DataTable(name="n", title="t", columns=("a",), rows=(("1",),)).plain()["rows"] == [{"a": "1"}]
