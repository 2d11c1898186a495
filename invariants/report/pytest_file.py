"""The pytest writer: a test file that takes a trace again, with the values that it recorded written in.

Belongs here: how the file looks. It imports `outlives.invariants.playback`, which does the work, and is made of the
trace's file (`Violation.itf`), as everything is that replays. Names from a trace stand in it as Python literals alone,
so that they are text whatever they hold; in the head, which is for people, nothing can end the string around it.
"""

import textwrap
from collections.abc import Iterator, Mapping
from keyword import iskeyword
from typing import Any, Final

from outlives.model.contract import Action
from outlives.model.itf import Unserializable
from outlives.model.profiles import PROFILES
from outlives.model.setup import Item, RequestSetup, Setup, Turn
from outlives.model.trace import Recorded, parse_trace

from ..subject.live import ALIKE, CACHING, on_or_off
from .changes import changes, flat
from .clean import shown, to_ascii
from .content import Run, Violation
from .writers import NotOneTrace, one_violation

__all__ = ["pytest_file"]

_WIDTH: Final = 116
_HEAD: Final = 600
"""Letters of the headline in the head of the file."""

_TESTS: Final = """
def playback() -> Playback:
    try:
        return Playback(
            property=PROPERTY,
            setup=SETUP,
            profile=PROFILE,
            guard=GUARD,
            subject=SUBJECT,
            options=OPTIONS,{more}
        )
    except NotAsked as reason:
        pytest.skip(str(reason))


def test_the_run_goes_as_recorded() -> None:
    run = playback()
    if run.title != RECORDED_ON:
        pytest.skip(f"the values below are of {{RECORDED_ON}}, and this is {{run.title}}")
    assert run.values == START
    for number, (action, expected) in enumerate(STEPS, start=1):
        assert run.take(action) == expected, f"step {{number}}, {{action}}"


def test_the_property_holds() -> None:
    run = playback()
    for action, _ in STEPS:
        run.take(action)
    found = run.judge()
    assert found.holds, found.why
    if not found.asked:
        pytest.skip(f"never put to the test: no step at which {{found.situation}}")
"""


def pytest_file(run: Run) -> str:
    """The one trace of the run as a pytest file.

    Raises `NotOneTrace` where the run has none or several, or where the trace is of a model that is not ours.
    """
    violation = one_violation(run, "pytest")
    recorded = parse_trace(violation.itf.encode("utf-8"), "the trace")
    meta = recorded.meta
    if not isinstance(meta.get("profile"), str) or not isinstance(meta.get("setup"), dict):
        raise NotOneTrace(
            "format pytest is of traces of our model and of vLLM: this one names no profile and no setup. In a test of "
            "your own, replay_on takes it again on your model."
        )
    parts = [_head(violation), *_constants(recorded), f"START = {_laid_out(_start(recorded))}", ""]
    parts += ["STEPS = (", *_steps(recorded), ")", "", _TESTS.format(more=_more(recorded))]
    return "\n".join(parts)


# --- the head and the constants ---------------------------------------------------------------------------------------


def _head(violation: Violation) -> str:
    said = to_ascii(shown(violation.story.headline, _HEAD)).replace("\\", "\\\\").replace('"', "'")
    lines = [
        *textwrap.wrap(said, _WIDTH, break_on_hyphens=False),
        "",
        "Made by outlives from a trace. The second test fails where it happened; run it as it is, or with",
        "  OUTLIVES_PROFILE=repaired  the same actions under another profile (or path.py:name, which is executed)",
        "  OUTLIVES_GUARD=confirmed   and under another guard",
        "  OUTLIVES_SUBJECT=vllm      on the vLLM that is installed here",
    ]
    imports = "import os\n\nimport pytest\nfrom outlives.invariants.playback import Action, NotAsked, Playback\n"
    return '"""' + "\n".join(lines) + '\n"""\n\n' + imports


def _constants(recorded: Recorded) -> Iterator[str]:
    meta = recorded.meta
    profile, guard = str(meta["profile"]), meta.get("guard")
    own = PROFILES[profile].guard.name if profile in PROFILES else None
    of_vllm = isinstance(meta.get("subject"), dict) and recorded.property_name != ALIKE.name
    values_of = f"vLLM {meta['subject'].get('vllm')}" if of_vllm else f"profile {profile}, guard {guard}"
    if of_vllm and _named_option(meta, "--scheduler-cls"):
        values_of += f" ({_named_option(meta, '--scheduler-cls')})"
    subject = "vllm" if isinstance(meta.get("subject"), dict) else "model"
    yield f"PROPERTY = {_literal(recorded.property_name)}"
    yield f'PROFILE = os.environ.get("OUTLIVES_PROFILE", {_literal(profile)})'
    if guard in (None, own):
        yield 'GUARD = os.environ.get("OUTLIVES_GUARD")  # None: the profile\'s own'
    else:
        yield f'GUARD = os.environ.get("OUTLIVES_GUARD", {_literal(guard)})'
    yield f'SUBJECT = os.environ.get("OUTLIVES_SUBJECT", {_literal(subject)})'
    yield f"RECORDED_ON = {_literal(values_of)}"
    yield f"OPTIONS = {_laid_out(_options(meta))}"
    yield f"SETUP = {_laid_out(_setup(meta))}"


def _options(meta: Mapping[str, Any]) -> dict[str, Any]:
    """What differs from a plain configuration, by field of it. The scope is not needed: the setup is one of it."""
    reader = meta.get("reader", "checked")
    routes = meta.get("routes")
    closed = routes.get("closed", []) if isinstance(routes, dict) else []
    options: dict[str, Any] = {
        "relax": [name for name in meta.get("relaxed", ()) if name != "A3" or reader == "checked"],
        "reader": None if reader == "checked" else reader,
        "without": list(closed),
        "fault": meta.get("fault"),
        "split": meta.get("split", False),
        "arrivals": None if meta.get("arrivals", "in-order") == "in-order" else meta["arrivals"],
    }
    return {name: value for name, value in options.items() if value}


def _setup(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers that are not what they are by default."""
    setup = dict(meta["setup"])
    if meta.get("policy") == "priority":
        setup["by_priority"] = 1  # files from before the setup said so
    told: dict[str, Any] = _told(setup, Setup)
    return told


_INSIDE: Final[Mapping[str, type[Any]]] = {"requests": RequestSetup, "items": Item, "turns": Turn}


def _told(plain: Any, record: type[Any]) -> Any:
    if not isinstance(plain, dict):
        return plain
    defaults = record._field_defaults
    told: dict[str, Any] = {}
    for name, value in plain.items():
        if name in _INSIDE and isinstance(value, list):
            value = [_told(each, _INSIDE[name]) for each in value]
        default = defaults.get(name)
        if name not in defaults or value != (list(default) if isinstance(default, tuple) else default):
            told[name] = value
    return told


def _more(recorded: Recorded) -> str:
    """Arguments that only some traces need."""
    fair_from = recorded.shrink.get("fair_from")
    more: dict[str, Any] = {"fair_from": fair_from if type(fair_from) is int else None}
    for name in ("scheduler_cls", "vllm_config"):
        more[name] = _named_option(recorded.meta, f"--{name.replace('_', '-')}")
    about = recorded.meta.get("subject")
    if isinstance(about, dict) and about.get(CACHING) == on_or_off(True):
        more[CACHING] = True
    lines = [f"\n            {name}={_literal(value)}," for name, value in more.items() if value is not None]
    return "".join(lines)


def _named_option(meta: Mapping[str, Any], option: str) -> str | None:
    """The value of an option of the real scheduler that the trace is of."""
    subject = meta.get("subject")
    words = str(subject.get("options", "")).split() if isinstance(subject, dict) else []
    at = words.index(option) if option in words else len(words)
    return words[at + 1] if at + 1 < len(words) else None


# --- the steps --------------------------------------------------------------------------------------------------------


def _start(recorded: Recorded) -> dict[str, Any]:
    return flat(recorded.steps[0].values)


def _steps(recorded: Recorded) -> Iterator[str]:
    before = recorded.steps[0]
    for step in recorded.steps[1:]:
        assert step.action is not None  # `parse_trace` saw to it
        if step.refused is None:
            changed = {each.name: each.new for each in changes(before.values, step.values)}
            yield _step(step.action, changed)
        else:
            yield f"    ({_action(step.action)}, {_literal(step.refused)}),"
        before = step


def _step(action: Action, changed: Mapping[str, Any]) -> str:
    line = f"    ({_action(action)}, {_literal(changed)}),"
    if len(line) <= _WIDTH:
        return line
    return f"    (\n        {_action(action)},\n        {_laid_out(changed, 8)},\n    ),"


def _action(action: Action) -> str:
    """As one would write it; where a name is no name of Python's, the same value in another way."""
    if all(name.isidentifier() and name.isascii() and not iskeyword(name) for name, _ in action.arguments):
        arguments = [f"{name}={_literal(value)}" for name, value in action.arguments]
        return f"Action.of({', '.join([_literal(action.name), *arguments])})"
    return f"Action({_literal(action.name)}, {_literal(action.arguments)})"


def _laid_out(value: Any, indent: int = 0, before: int = 12) -> str:
    """The literal; a member a line where it is too long for one. `before` letters stand before it in its line."""
    line = _literal(value)
    if indent + before + len(line) <= _WIDTH or not isinstance(value, Mapping | list | tuple) or not value:
        return line
    inside = " " * (indent + 4)
    if isinstance(value, Mapping):
        named = ((f"{_literal(name)}: ", member) for name, member in value.items())
        members = [f"{name}{_laid_out(member, indent + 4, len(name))}" for name, member in named]
    else:
        members = [_laid_out(member, indent + 4, 0) for member in value]
    begin, end = "{}" if isinstance(value, Mapping) else "[]" if isinstance(value, list) else "()"
    return "\n".join([begin, *(f"{inside}{member}," for member in members), f"{' ' * indent}{end}"])


def _literal(value: Any) -> str:
    """A literal of Python that is this value, in ASCII, with double quotes where that needs no escape."""
    if isinstance(value, str):
        text = ascii(value)
        return f'"{text[1:-1]}"' if text[0] == "'" and '"' not in text and "\\" not in text else text
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_literal(name)}: {_literal(member)}' for name, member in value.items())}}}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_literal, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    if isinstance(value, frozenset | set):
        return f"frozenset({_literal(sorted(value, key=repr))})" if value else "frozenset()"
    return ascii(value.text if isinstance(value, Unserializable) else str(value))
