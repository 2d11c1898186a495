"""Making text safe to show: names come from users' files and traces, and may hold anything.

Belongs here: replacing what a terminal would obey or a reader could not see. Markup needs no escaping because the
writers never parse any: they build `rich.text.Text`.
"""

import unicodedata
from typing import Final

__all__ = ["ARROWS", "shown", "to_ascii"]

_OBEYED: Final = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
"""Unicode categories shown as escapes: control and format characters (terminal escapes, right-to-left overrides)."""
_LONGEST: Final = 2_000
ARROWS: Final = {"→": "->", "≤": "<=", "…": "...", "–": "-", "·": "."}
"""Our own characters, and what stands for them in plain ASCII."""


def shown(text: object, longest: int = _LONGEST) -> str:
    """The text as one line of visible characters; control and direction characters become escapes like `\\x1b`.

    Longer text than `longest` is cut in the middle, and says by how much.
    """
    raw = str(text)
    if len(raw) > longest:
        cut = len(raw) - longest
        raw = f"{raw[: longest // 2]}… ({cut} characters left out) …{raw[len(raw) - longest // 2 :]}"
    if raw.isascii() and raw.isprintable():
        return raw
    return "".join(_escape(char) if unicodedata.category(char) in _OBEYED else char for char in raw)


def to_ascii(text: str) -> str:
    """The same text in ASCII: our arrows spelled out, anything else as an escape."""
    if text.isascii():
        return text
    for char, plain in ARROWS.items():
        text = text.replace(char, plain)
    return "".join(char if char.isascii() else _escape(char) for char in text)


def _escape(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")
