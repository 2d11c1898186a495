"""The Markdown writer: what is in it, that names are text whatever they hold, and that it keeps within its size."""

from dataclasses import replace
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt
from outlives.invariants.report.clean import shown
from outlives.invariants.report.content import Run, Violation
from outlives.invariants.report.gfm import Part, cell, fenced, fitted, text
from outlives.invariants.report.markdown import MOST_BYTES, markdown
from outlives.invariants.verdict import Verdict
from report_cases import green, row
from report_files import HOSTILE, LONG, WHOLE, hostile, long_trace


class Page(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.words: list[str] = []
        self.feed(MarkdownIt("commonmark").enable("table").enable("strikethrough").render(page))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)


OURS = {
    "h2",
    "h3",
    "p",
    "strong",
    "em",
    "pre",
    "code",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "br",
    "ol",
    "ul",
    "li",
}
OURS |= {"details", "summary", "span"}


@pytest.mark.parametrize(
    "raw",
    [
        HOSTILE,
        "- item",
        "+ item",
        "=====",
        "12. item",
        "7) item",
        "# heading",
        "> quote",
        "    code",
        "~~~",
        "```",
        "***",
        "| a | b |",
        "<details>",
        "&amp;",
        "[a]: http://x",
        "\\",
        "a\\|b",
    ],
)
def test_any_text_is_shown_as_it_is(raw: str) -> None:
    wanted = " ".join(shown(raw).split())
    paragraph = Page(text(raw))
    assert paragraph.elements <= {"p", "span"}
    assert paragraph.text.strip() == wanted
    in_table = Page(f"| a | b |\n| --- | --- |\n| {cell(raw)} | end |\n")
    assert in_table.elements <= {"table", "thead", "tbody", "tr", "th", "td", "span"}
    assert [word for word in in_table.text.split("\n") if word][2:] == [wanted, "end"]


def test_what_is_looked_for_after_markdown_is_read_is_not_found_in_one_piece() -> None:
    """Mentions, references, shortcodes, formulas and bare addresses are found in the text of one element."""
    for raw in ("@someone", "#12", ":smile:", "$x$", "http://evil.example", "www.evil.example"):
        pieces = Page(text(raw)).words
        assert raw not in [piece.strip() for piece in pieces]
        assert "".join(pieces).strip() == raw


def test_a_code_block_holds_whatever_it_is_given() -> None:
    page = Page(fenced("text", ["````", "```", HOSTILE]))
    assert page.elements == {"pre", "code"}
    assert page.text == f"````\n```\n{shown(HOSTILE)}\n\n"


def test_hostile_names_are_text_everywhere() -> None:
    written = markdown(hostile())
    page = Page(written)
    assert page.elements <= OURS
    assert page.attributes <= {"class", "style", "start"}
    assert {char for char in written if not char.isprintable()} == {"\n"}
    for words in (
        "<script>alert(1)</script>",
        "![i](http://evil.example/i)",
        "\\x1b[31mred",
        "\\u202e",
        "%%{init: {}}%%",
    ):
        assert words in page.text


@pytest.mark.parametrize("name", WHOLE)
def test_the_report_of_a_trace_has_every_part(name: str) -> None:
    run = WHOLE[name]()
    (violation,) = run.violations
    page = Page(markdown(run))
    assert violation.story.headline in page.text
    assert violation.badge in page.text
    for sentence in violation.story.chain:
        assert sentence in page.text
    assert violation.replay in page.text
    assert "sequenceDiagram" in page.text
    for each in violation.analysis.counterfactuals:
        assert each.outcome in page.text
    assert violation.analysis.neighbour is None or violation.analysis.neighbour.words() in page.text
    assert run.results[0].note in page.text
    assert page.elements <= OURS


def test_parts_that_are_empty_are_not_there() -> None:
    page = markdown(Run(title="t", results=(), violations=(long_trace(3),)))
    assert "sequenceDiagram" not in page
    assert "```" not in page
    assert "| 3 | **add(amount=1)** | value: 2 → 3 |" in page
    assert "Nearest" not in page


def test_a_green_run_says_what_it_covers_and_what_not() -> None:
    page = markdown(replace(green(), notes=("said besides",)))
    assert "**Notes**\n\n- said besides\n" in page
    assert page.startswith("## outlives: profile repaired, guard confirmed, A1 to A4 held\n")
    assert "| PROGRESS | exhaustive | exhausted | every state of the scope: 4,512 states" in page
    assert "**Not covered**\n\n- the priority policy\n- several requests that share a key\n" in page
    assert "- action occupy: never taken; raise --strangers" in page
    assert "**Exit status 0:" in page


def test_what_is_not_green_is_marked() -> None:
    run = Run(title="t", results=tuple(row("P", verdict, "c", note="why") for verdict in Verdict), vacuous=("abort",))
    page = markdown(run)
    for verdict in (Verdict.VIOLATED, Verdict.UNKNOWN, Verdict.VACUOUS, Verdict.DISAGREE):
        assert f"| **{verdict}** | c | why |" in page
    assert "**What makes this run vacuous**\n\n- abort\n" in page


# --- size -------------------------------------------------------------------------------------------------------------


def test_a_long_trace_shows_its_beginning_and_its_end() -> None:
    page = markdown(Run(title="t", results=(), violations=(long_trace(2_000),)))
    assert "<summary>The 2000 steps</summary>" in page
    assert "| … | 1881 more steps, not shown here |" in page
    assert "| 2000 | **add(amount=1)** | value: 1999 → 2000 |" in page
    assert len(page) < 20_000


def test_the_page_keeps_within_a_mebibyte_and_says_what_was_cut() -> None:
    (large,) = hostile(LONG).violations
    many: tuple[Violation, ...] = tuple(replace(large, lines=large.lines[:2] * 60) for _ in range(12))
    page = markdown(Run(title="t", results=(), violations=many))
    assert MOST_BYTES // 2 < len(page.encode()) <= MOST_BYTES
    assert "_Left out, for want of room: " in page
    assert page.count("### VIOLATED") == 12  # what happened is the last to go


def test_parts_go_by_rank_and_the_rest_is_cut_at_a_line() -> None:
    parts = [
        Part(name="head", body="x" * 50),
        Part(name="a", body="a" * 100, rank=1),
        Part(name="b", body="b" * 90, rank=2),
    ]
    assert fitted(parts, 1_000) == "\n".join(each.body for each in parts)
    assert fitted(parts, 220) == f"{'x' * 50}\n{'a' * 100}\n_Left out, for want of room: b._\n"
    short = fitted([Part(name="head", body="é\n" * 300)], 100)
    assert len(short.encode()) <= 100
    assert short.endswith("é\n\n_The rest is left out, for want of room._\n")
