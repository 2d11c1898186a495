"""The glossary has a row for every name of the code, and no row for a name that the code has not."""

import re
from pathlib import Path

import pytest
from outlives.invariants.configuration import READERS, Configuration
from outlives.invariants.properties import OF_SUBJECTS, PROPERTY_NAMES
from outlives.invariants.verdict import Verdict
from outlives.model.lifetime import GUARDS
from outlives.model.scenarios import SCENARIOS
from outlives.model.setup import MODE_WORDS
from outlives.model.world import ASSUMPTIONS, ROUTES

PAGE = (Path(__file__).resolve().parent.parent / "docs/glossary.md").read_text(encoding="utf-8")
NAMES = {
    "Actions": set(Configuration(split=True).model().action_table),
    "Routes": set(ROUTES),
    "Assumptions": set(ASSUMPTIONS),
    "Guards": set(GUARDS),
    "Properties": {*PROPERTY_NAMES, *OF_SUBJECTS},
    "Modes and scenarios": {*MODE_WORDS, *SCENARIOS},
    "Verdicts and engines": set(map(str, Verdict)),
}
WORDS = (
    "item", "computed", "placeholders", "confirmed", "in flight", "stale share", "draft", "look-ahead", "guard", "idle",
    "pass", "book", "shelf", "step in flight", "profile", "reader", "declared lowering", "release", "notice",
)  # fmt: skip
"""The words of the protocol; of the others a page could do without."""
HEADS = {"word", "guard"}
"""Heads of tables, which come again."""


def section(title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, title
    return found[1]


@pytest.mark.parametrize("title", NAMES)
def test_a_section_has_exactly_the_names_of_the_code(title: str) -> None:
    rows = re.findall(r"^\| `([^`]+)` \| \S", section(title), re.MULTILINE)
    assert len(rows) == len(set(rows))
    assert set(rows) == NAMES[title]


def test_the_words_of_the_protocol_are_there_once_each() -> None:
    plain = re.findall(r"^\| ([a-z][^`|]*?) \| \S", PAGE, re.MULTILINE)
    assert set(WORDS) <= set(plain)
    twice = {word for word in plain if plain.count(word) > 1}
    assert twice <= HEADS


def test_readers_are_named() -> None:
    (row,) = re.findall(r"^\| reader \| (.*) \|$", PAGE, re.MULTILINE)
    assert all(f"`{each}`" in row for each in READERS)
