"""Runs for the tests of the writers: recorded traces with all that is said of them, and hostile names everywhere.

Belongs here: the runs, no tests.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from outlives.invariants.explained import explain_file
from outlives.invariants.report.analysis import Analysis, Counterfactual, Freedom, GuardLine, Neighbour, StepFacts
from outlives.invariants.report.changes import Change
from outlives.invariants.report.content import DataTable, Line, Run, Violation
from outlives.invariants.report.story import Event, Story
from outlives.invariants.report.strip import Strip, StripItem, Window
from outlives.invariants.verdict import Verdict
from outlives.model.contract import Action
from outlives.model.trace import RecordedStep, trace_text
from report_cases import row

ROOT = Path(__file__).parent.parent
FOLDER = Path("tests/regressions")

HOSTILE = (
    "[bold]x[/] <script>alert(1)</script> <img src=x onerror=alert(1)> ![i](http://evil.example/i) "
    "[l](http://evil.example) `code` ``` | a | b \"quoted\" 'single' \\ \\\\ %% comment %%{init: {}}%% ; end # heading "
    "#35; &amp; &#60; ]]> <!-- --> @someone #12 :smile: $x$ www.evil.example a@b.example *bold* _it_ ~~no~~ "
    "\"\"\" ''' {x} {{y}} {0} %s \x1b[31mred\x1b]0;title\x07 \u202etfel \u200b \r\nnext\n\n# block\n- item\nend\n"
    "    rect rgb(1,2,3) \ue000 \x9b1m \ufffe \ud800 é"
)
"""Whatever some format would obey."""
LONG = "very long " * 2_000


@cache
def recorded(name: str) -> Run:
    """The report of a recorded trace, as the command makes it in the root of the repository."""
    (path,) = (ROOT / FOLDER).glob(f"????-??-??-{name}.itf.json")
    run = explain_file(path)
    shown = f"{FOLDER.as_posix()}/{path.name}"

    def short(violation: Violation) -> Violation:
        return replace(violation, files=(shown,), replay=violation.replay.replace(str(path), shown))

    return replace(run, violations=tuple(map(short, run.violations)))


def hostile(text: str = HOSTILE) -> Run:
    """A run in which every name and sentence is this text."""
    strip = Strip(
        step=1,
        request=text,
        status=text,
        known=8,
        computed=6,
        confirmed=4,
        in_flight=2,
        items=(
            StripItem(0, 1, 3, text, "held", True, ("planned", "encoded", "released", "evicted", "dropped", "missed")),
        ),
        windows=(Window(text, 1, 4, (0,)),),
    )
    violation = Violation(
        property=text,
        engine=text,
        story=Story(
            headline=text,
            events=(Event(kind="released", step=1, text=text), Event(kind="read", step=2, text=text)),
        ),
        badge=text,
        setup=text,
        lines=(
            _line(0, text, ()),
            _line(1, text, (Change(text, text, (text, text)), Change("steps", (), (text,)))),
            _line(2, text, (Change("steps", (text,), ()),), name="accept"),
            replace(_line(3, text, ()), refused=text),
        ),
        shrink={"found_length": 3, "final_length": 2, "found_numbers": {text: 3}, "final_numbers": {text: 2}},
        why=text,
        replay=text,
        files=(text,),
        strips=(strip, strip._replace(step=2), strip._replace(step=3)),
        analysis=Analysis(
            facts=(
                StepFacts(
                    step=1,
                    guards=(GuardLine(request=text, item=0, guard=text, inequality=text, holds=False, held=True),),
                    judged={text: "violated", "P": text},
                ),
            ),
            counterfactuals=(
                Counterfactual(
                    guard=text, own=True, outcome=text, violated=True, differs_at=1, difference=text, price=1
                ),
            ),
            freedoms=(Freedom(name=text, value=text, still=(text,), tried=(text, "x")),),
            neighbour=Neighbour(name=text, old=text, new=text, note=text),
            notes=(text,),
        ),
        notes=(text,),
        provenance={text: text, "nested": {text: [text]}},
        itf=hostile_file(text),
    )
    return Run(
        title=text,
        results=(
            row(text, Verdict.VIOLATED, text, note=text, engine=text),
            *(row(text, verdict, text, note=text, engine="e") for verdict in Verdict),
            row(text, Verdict.VIOLATED, text, known=text),
        ),
        violations=(violation,),
        not_covered=(text,),
        not_reached=(text,),
        notes=(text,),
        vacuous=(text,),
        configuration={text: text, "profile": text},
        provenance={text: text},
        out=text,
        known=(text,),
        gone=(text,),
        tables=(DataTable(name=text, title=text, columns=(text,), rows=((text,),), legend=(text,)),),
    )


def _line(number: int, text: str, changed: tuple[Change, ...], name: str | None = None) -> Line:
    named = text if name is None else name
    return Line(
        number=number, action=text, name=named, arguments={text: text}, changes=changed, refused=None, fair=False
    )


def hostile_file(text: str) -> str:
    """A trace file that is read: names are a printable line of at most 100 letters, values are anything."""
    text = text.replace("\ud800", "")  # half a character is in no file that is read
    name = "".join(char for char in text if char.isprintable())[:100]
    start: dict[str, Any] = {"a": text, text: (text, 1)}
    steps = [
        RecordedStep(None, None, start),
        RecordedStep(Action(name, ((name, name), ("count", 1))), None, {**start, "a": {"inner": text}}),
        RecordedStep(Action("accept", (("class", 1),)), name, {**start, "a": {"inner": text}}),
    ]
    meta = {"property": name, "profile": text, "guard": text, "reader": text, "fault": text, "relaxed": [text]}
    meta |= {"routes": {"closed": [text]}, "setup": {text: text, "requests": [{"items": [{"key": text}]}]}}
    return trace_text({**meta, "subject": {"vllm": text, "options": f"--scheduler-cls {text}"}}, steps)


def long_trace(steps: int) -> Violation:
    """A trace of so many steps of a model that is not ours, each with a change."""
    lines = [_line(0, "start", ())]
    lines += [
        _line(number, "add(amount=1)", (Change("value", number - 1, number),), "add") for number in range(1, steps + 1)
    ]
    return Violation(
        property="BELOW-LIMIT",
        engine="machine",
        story=Story(headline="the value is too large", events=(Event(kind="violated", step=steps, text="it is"),)),
        badge="shrunk",
        setup="",
        lines=tuple(lines),
        shrink={},
        why="too large",
    )


EVERY = tuple(sorted(path.name[11:].removesuffix(".itf.json") for path in (ROOT / FOLDER).glob("*.itf.json")))
"""Every recorded trace, without its date."""

WHOLE: dict[str, Callable[[], Run]] = {
    "chunk-end": lambda: recorded("chunk-end-0.17.1"),
    "adjacent": lambda: recorded("adjacent-0.24.0"),
    "roll-back": lambda: recorded("45347-roll-back-a3"),
    "withdrawn": lambda: recorded("withdrawn-encode-0.33.0"),
}
"""Whole reports: a read of what was never encoded, no progress, a reader that goes back, two requests by priority."""
