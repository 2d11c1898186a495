"""The sequence diagram: what stands for what; and, with the mark `mermaid`, what the real Mermaid understands of it."""

import json
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from outlives.invariants.report.clean import shown
from outlives.invariants.report.mermaid import diagram, mermaid_text
from report_files import EVERY, HOSTILE, LONG, hostile, long_trace, recorded

PARSER = Path(__file__).parent / "mermaid" / "parse.mjs"
LETTERS = 45_000


def lines_of(name: str) -> list[str]:
    (violation,) = recorded(name).violations
    return [line.strip() for line in diagram(violation).splitlines()]


def test_release_and_failing_read_are_shaded_and_joined() -> None:
    lines = lines_of("45347-roll-back-a3")
    shaded = [at for at, line in enumerate(lines) if line.startswith("rect ")]
    assert len(shaded) == 2
    first, second = (lines[at : lines.index("end", at)] for at in shaded)
    assert "Note over S: r0 releases item0 k0" in first
    assert "W-xF: r0 target reads [2,4), item0 is not there" in second
    assert lines[-1] == "Note over S,W: let go at step 4, but needed at step 8"


def test_what_goes_between_scheduler_steps_and_worker() -> None:
    lines = lines_of("45347-roll-back-a3")
    wanted = [
        "S->>F: 2. schedule(), dispatches r0[0,2)#59; encode k0",
        "F->>W: 4. accept(), executes r0[0,2)#59; encode k0",
        "Note over W: encodes k0",
        "W-->>F: r0 target reads [0,2)",
        "F-->>S: accept, output of r0[0,2)#59; encode k0",
        "Note over S: 5. evict(count=1)",
        "Note over S: evicts k0",
        "S->>F: 6. schedule(), dispatches r0[3,5) with 1 drafts#59; drop k0",
        "F-)W: evict notice, drop k0",
    ]
    assert [line for line in lines if line in wanted] == wanted


def test_the_fair_run_and_a_standstill_are_told() -> None:
    lines = lines_of("adjacent-0.24.0")
    assert "Note over S,W: from here on the environment leaves the requests alone" in lines
    assert lines[-1] == "Note over S,W: held at step 3, and nothing goes on"


def test_without_a_release_the_failing_step_alone_is_shaded() -> None:
    lines = lines_of("failed-load-placeholders-0.33.0")
    assert sum(line.startswith("rect ") for line in lines) == 1
    assert lines[lines.index("rect rgba(214, 40, 40, 0.18)") + 1].startswith("F->>W: 3. fail_kv_load(")
    assert lines[-1] == "Note over S,W: PLACEHOLDERS-KEPT is violated"


def test_of_a_model_that_is_not_ours_there_is_none() -> None:
    assert diagram(long_trace(3)) == ""


def test_a_long_trace_keeps_its_ends_and_what_is_joined() -> None:
    (violation,) = recorded("45347-roll-back-a3").violations
    last = violation.lines[-1]
    more = tuple(replace(violation.lines[1], number=number) for number in range(9, 2_000))
    text = diagram(replace(violation, lines=(*violation.lines[:-1], last, *more)))
    assert "Note over S,W: 1939 more steps, not shown here" in text
    assert "Note over S,W: let go at step 4, but needed at step 8" in text
    assert len(text) < LETTERS


def test_what_is_joined_is_drawn_however_little_else_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outlives.invariants.report.mermaid._MOST_STEPS", 2)
    lines = lines_of("45347-roll-back-a3")
    assert "Note over S: r0 releases item0 k0" in lines
    assert "Note over S,W: 2 more steps, not shown here" in lines


def many_wide() -> str:
    """The diagram of 60 steps, each with a name in letters that are long as entities."""
    (violation,) = hostile("\U0001d54f" * 200).violations
    more = tuple(replace(violation.lines[1], number=number) for number in range(1, 61))
    return diagram(replace(violation, lines=(violation.lines[0], *more)))


def test_a_diagram_of_many_long_messages_keeps_within_its_letters() -> None:
    assert LETTERS // 4 < len(many_wide()) <= LETTERS
    assert "more steps, not shown here" in many_wide()


def test_text_is_letters_and_numbered_entities() -> None:
    assert mermaid_text("a; b # c %% d") == "a#59; b #35; c #37;#37; d"
    assert "\n" not in mermaid_text(HOSTILE)
    assert len(diagram(hostile(LONG).violations[0])) < LETTERS


# --- the real Mermaid -------------------------------------------------------------------------------------------------


def understood(texts: list[str]) -> list[dict[str, Any]]:
    folder = os.environ.get("OUTLIVES_MERMAID")
    if not folder:
        pytest.skip("OUTLIVES_MERMAID names no folder; tests/mermaid/environment.sh makes one")
    done = subprocess.run(
        ["node", str(PARSER), folder], input=json.dumps(texts), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


@pytest.mark.mermaid
def test_mermaid_reads_every_diagram_as_it_was_meant() -> None:
    names = EVERY
    texts = [diagram(recorded(name).violations[0]) for name in names]
    for name, text, answer in zip(names, texts, understood(texts), strict=True):
        assert answer.get("error") is None, f"{name}: {answer['error']}"
        assert answer["type"] == "sequence"
        assert answer["actors"] == ["scheduler", "steps in flight", "worker"]
        written = [line.strip().partition(": ")[2] for line in text.splitlines() if ": " in line]
        shown_there = [each["text"] for each in answer["messages"] if each["from"]]
        assert shown_there == [re.sub(r"#(\d+);", lambda found: chr(int(found[1])), line) for line in written], name


@pytest.mark.mermaid
def test_mermaid_shows_hostile_names_as_text() -> None:
    raws = [HOSTILE, LONG, "end", "%%{init: {}}%%", "wrap: x", "#35;", "a; participant X", "]]>", "$$x$$", "- x", "+ x"]
    *answers, wide = understood([*(diagram(hostile(raw).violations[0]) for raw in raws), many_wide()])
    assert wide.get("error") is None
    for raw, answer in zip(raws, answers, strict=True):
        assert answer.get("error") is None, f"{raw!r}: {answer['error']}"
        assert answer["actors"] == ["scheduler", "steps in flight", "worker"]
        texts = [each["text"] for each in answer["messages"] if each["from"]]
        assert f"evicts {' '.join(shown(raw).split())}"[:60] in {text[:60] for text in texts}
        assert sum(1 for each in answer["messages"] if each["type"] == 22) == 2  # shaded parts: ours, and no more
