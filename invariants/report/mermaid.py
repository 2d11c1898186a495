"""A trace as a Mermaid sequence diagram: scheduler, steps in flight and worker, and what goes between them.

Belongs here: which message stands for what, and how any text becomes Mermaid text. The release and the failing read are
shaded and joined by a note. Drawn from the token strips: of a model that is not ours there is no diagram.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from .changes import Change
from .clean import shown
from .content import Line, Violation
from .strip import Strip
from .telling import window

__all__ = ["diagram", "mermaid_text"]

_MOST_STEPS: Final = 60
"""Steps that are drawn; of a longer trace the first, the last and the two that are joined."""
_MOST_LETTERS: Final = 45_000
"""Those who draw such diagrams refuse longer ones (at 50,000 letters)."""
_LONGEST: Final = 160
"""Letters of one message."""
_SHADE: Final = "rgba(214, 40, 40, 0.18)"
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9 .,()\[\]+=/_'!?-]")
_OUTPUTS: Final = ("accept", "reject", "fail_kv_load")
"""Actions that process the oldest output."""
_HEAD: Final = (
    "sequenceDiagram",
    "    participant S as scheduler",
    "    participant F as steps in flight",
    "    participant W as worker",
)


def diagram(violation: Violation) -> str:
    """The diagram's text; empty where there is nothing to draw."""
    if not violation.strips or len(violation.lines) < 2:
        return ""
    most = _MOST_STEPS
    while True:
        text = "\n".join([*_HEAD, *_drawn(violation, most)]) + "\n"
        if len(text) <= _MOST_LETTERS or most <= 2:
            return text
        most //= 2


def mermaid_text(text: str, longest: int = _LONGEST) -> str:
    """The text as Mermaid shows it: whatever could be syntax is written as a numbered entity."""
    clean = " ".join(shown(text, longest).split())
    return _UNSAFE.sub(lambda found: f"#{ord(found.group())};", clean)


def _drawn(violation: Violation, most: int) -> Iterator[str]:
    lines = violation.lines[1:]
    shaded = {event.step for event in violation.story.events if event.kind in _NEEDS} | {*(violation.joined or ())}
    kept = {*shaded, *(line.number for line in (*lines[: most // 2], *lines[-(most - most // 2) :]))}
    strips = {step: tuple(each) for step, each in groupby(violation.strips, key=lambda strip: strip.step)}
    last = 0
    fair = False
    for line in lines:
        if line.number not in kept:
            continue
        if line.number > last + 1:
            yield _note("S,W", f"{line.number - last - 1} more steps, not shown here")
        last = line.number
        if line.fair and not fair:
            fair = True
            yield _note("S,W", "from here on the environment leaves the requests alone")
        messages = list(_step(line, strips.get(line.number, ())))
        if line.number in shaded:
            yield f"    rect {_SHADE}"
            yield from (f"    {message}" for message in messages)
            yield "    end"
        else:
            yield from messages
    if violation.outcome == "violated":
        yield _note("S,W", _ending_words(violation))


_CAUSES: Final = {
    "released": "let go",
    "cleared": "cleared",
    "dropped": "dropped",
    "not-encoded": "left out",
    "held": "held",
}
_NEEDS: Final = {"read": "but needed", "stuck": "and nothing goes on", "violated": "and violated"}


def _ending_words(violation: Violation) -> str:
    """`let go at step 4, but needed at step 8`; without such a pair only that the property is violated."""
    if violation.joined is None:
        return f"{violation.property} is violated"
    cause, need = violation.joined
    events = violation.story.events
    first = next(_CAUSES[each.kind] for each in events if each.step == cause and each.kind in _CAUSES)
    then = next(_NEEDS[each.kind] for each in events if each.step == need and each.kind in _NEEDS)
    return f"{first} at step {cause}, {then}{'' if need == cause else f' at step {need}'}"


def _step(line: Line, strips: Sequence[Strip]) -> Iterator[str]:
    """The messages of one step, in the order in which they happen: read, output, release, dispatch."""
    title = f"{line.number}. {line.action}"
    if line.refused is not None:
        yield _note("S", f"{title}, refused, {line.refused}")
        return
    reads = list(_reads(strips))
    before, after = _steps_in_flight(line)
    done = line.name in _OUTPUTS and not any(missed for _, missed in reads)
    left = after[len(before) - done :] if len(after) > len(before) - done else ()
    if line.name in _OUTPUTS or line.name == "execute" or reads:
        yield from _message("F->>W", f"{title}, executes {before[0]}" if before else title)
        for key in _keys(strips, "dropped"):
            yield from _message("F-)W", f"evict notice, drop {key}")
        for key in _keys(strips, "encoded"):
            yield _note("W", f"encodes {key}")
        for text, missed in reads:
            yield from _message("W-xF" if missed else "W-->>F", text)
    elif not left:
        yield _note("S", title)
    if done and line.name in _OUTPUTS:
        yield from _message("F-->>S", f"{line.name}, output of {before[0]}" if before else line.name)
    for strip in strips:
        for item in strip.items:
            if "released" in item.marks:
                yield _note("S", f"{strip.request} releases item{item.number} {item.key}")
    for key in _keys(strips, "evicted"):
        yield _note("S", f"evicts {key}")
    for step in left:
        yield from _message("S->>F", f"{title}, dispatches {step}")


def _reads(strips: Sequence[Strip]) -> Iterator[tuple[str, bool]]:
    for strip in strips:
        for read in strip.windows:
            name = "drafter" if read.reader == "draft" else read.reader
            text = f"{strip.request} {name} reads {window(read.low, read.high)}"
            missed = " and ".join(f"item{number}" for number in read.missed)
            yield (f"{text}, {missed} is not there" if missed else text), bool(missed)


def _keys(strips: Sequence[Strip], mark: str) -> Iterator[str]:
    """The entries to which the step did this, each once: requests may share one."""
    return iter(dict.fromkeys(item.key for strip in strips for item in strip.items if mark in item.marks))


def _steps_in_flight(line: Line) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Before and after, as their changed field tells; nothing where it did not change."""
    change = next((each for each in line.changes if each.name == "steps"), Change("steps", (), ()))
    return _texts(change.old), _texts(change.new)


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, tuple | list) else ()


def _message(arrow: str, text: str) -> Iterator[str]:
    sender, receiver = arrow[0], arrow[-1]
    yield f"    {sender}{arrow[1:-1]}{receiver}: {mermaid_text(text)}"


def _note(over: str, text: str) -> str:
    return f"    Note over {over}: {mermaid_text(text)}"
