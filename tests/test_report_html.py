"""The HTML page as text: its bytes, its structure, hostile names, the cap, and what is left out where nothing is known.

Golden pages hold the body of a page: style and script have files of their own. `OUTLIVES_UPDATE_GOLDEN=1 pytest
tests/test_report_html.py` writes them anew. What a browser makes of the page is in `test_report_browser`.
"""

import base64
import hashlib
import re
import time
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise

import pytest
from outlives.invariants.report.content import DataTable, Run, Violation
from outlives.invariants.report.html import html
from outlives.invariants.report.html_cut import LEVELS, MOST_BYTES, Gap, Limits, kept
from outlives.invariants.report.html_markup import Markup, tag, text
from outlives.invariants.report.html_view import view_of
from outlives.invariants.report.strip import Strip, StripItem, Window
from outlives.invariants.verdict import Verdict
from report_cases import adjacent, chunk_end, green, row
from report_pages import full, hostile, long, run_of
from test_report_golden import GOLDEN, UPDATE
from test_report_writers import counter_violation

VOID = {"meta", "link", "br"}


class Parsed(HTMLParser):
    """The elements of a page, and its text; fails where tags do not close in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1:] not in (["style"], ["script"]):
            self.text.append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def of_class(self, name: str) -> list[dict[str, str | None]]:
        return [each for _, each in self.elements if name in (each.get("class") or "").split()]


def asset(name: str) -> str:
    return (files("outlives.invariants.report") / "assets" / name).read_text(encoding="utf-8")


def body(page: str) -> str:
    """The page without style and script, an element a line where that changes nothing."""
    for name in ("report.css", "report.js"):
        page = page.replace(asset(name), name)
        page = page.replace(base64.b64encode(hashlib.sha256(asset(name).encode()).digest()).decode(), name)
    return re.sub(r"(</?(?:tr|section|article|figure|svg|header|li|div|h\d)[ >])", r"\n\1", page)


# --- golden pages -----------------------------------------------------------------------------------------------------

CASES: dict[str, Callable[[], Run]] = {
    "full.html": lambda: run_of(full()),
    "chunk-end.html": lambda: run_of(chunk_end()),
    "green.html": green,
}


@pytest.mark.parametrize("name", CASES)
def test_page_is_the_golden_one(name: str) -> None:
    page = body(html(CASES[name]()))
    path = GOLDEN / name
    if UPDATE:
        path.write_text(page, encoding="utf-8")
    assert page == path.read_text(encoding="utf-8"), f"{name} changed; OUTLIVES_UPDATE_GOLDEN=1 writes it anew"


def test_the_same_run_gives_the_same_bytes() -> None:
    assert html(run_of(full(), adjacent())) == html(run_of(full(), adjacent()))


def test_a_page_of_twelve_steps_is_written_at_once() -> None:
    run = run_of(long(12))
    begin = time.process_time()
    html(run)
    assert time.process_time() - begin < 0.5


# --- structure --------------------------------------------------------------------------------------------------------


def test_style_and_script_are_allowed_by_their_hashes_and_all_else_is_not() -> None:
    page = html(run_of(full()))
    policy = next(each["content"] for each in Parsed(page).named("meta") if each.get("http-equiv"))
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    for name, element, rule in (("report.css", "style", "style-src"), ("report.js", "script", "script-src")):
        inside = re.findall(rf"<{element}>(.*?)</{element}>", page, re.DOTALL)
        assert inside == [asset(name)]
        digest = base64.b64encode(hashlib.sha256(inside[0].encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"


@pytest.mark.parametrize("make", [lambda: run_of(full(), chunk_end()), hostile, green])
def test_nothing_is_loaded_and_nothing_is_styled_or_scripted_inline(make: Callable[[], Run]) -> None:
    parsed = Parsed(html(make()))
    for name, attributes in parsed.elements:
        assert name not in ("img", "iframe", "object", "embed", "base", "form", "use", "image")
        assert not [each for each in attributes if each == "style" or each.startswith("on") or each == "src"]
        target = attributes.get("href")
        assert target is None or target.startswith(("#", "./", "data:image/svg+xml,"))


def test_identifiers_are_there_once_and_what_refers_to_them_finds_them() -> None:
    parsed = Parsed(html(run_of(full(), chunk_end(), long())))
    found = [each["id"] for _, each in parsed.elements if each.get("id")]
    assert len(found) == len(set(found))
    for _, attributes in parsed.elements:
        target = attributes.get("href") or ""
        wanted = [target[1:]] if target.startswith("#") else []
        wanted += (attributes.get("aria-labelledby") or "").split()
        wanted += [go] if (go := attributes.get("data-go") or "").startswith("v") else []
        assert set(wanted) <= set(found)


def test_every_drawing_has_a_name() -> None:
    page = html(run_of(full(), adjacent()))
    for opening, inside in re.findall(r"<svg([^>]*role=\"img\"[^>]*)>(.{0,60})", page):
        assert "aria-labelledby" in opening or inside.startswith("<title")
    for icon in Parsed(page).of_class("icon"):
        assert icon["aria-label"]


def test_the_first_screen_says_what_happened() -> None:
    page = html(run_of(full()))
    start = page.index("<main")
    order = [
        page.index(words, start)
        for words in ("was released at step 5 by guard", 'class="stage"', 'class="panel selected"', "Because")
    ]
    assert order == sorted(order)
    selected = page[page.index('class="panel selected"') :]
    assert "Step 9 of 9" in selected[:200]
    drawn = selected[: selected.index("</figure>")]
    assert "step 5: released, 3 short of confirmed" in drawn
    assert "target reads [1,5), 2 missing" in drawn
    assert "computed 8" in drawn
    assert "confirmed 4" in drawn


def test_the_release_is_joined_to_the_read() -> None:
    page = html(run_of(full()))
    parsed = Parsed(page)
    rows = {each["data-step"]: each["class"] for each in parsed.named("tr") if each.get("data-step")}
    kinds = {"5": "cause", "6": "between", "8": "between", "9": "selected end"}
    assert {step: rows[step] for step in kinds} == kinds
    assert rows["4"] == ""
    assert "released → needed" in "".join(parsed.text)
    assert page.count('class="join" marker-end') == 2  # on the time line, and in the strip of the failing step


def test_every_part_is_there() -> None:
    said = " ".join("".join(Parsed(html(run_of(full()))).text).split())
    for words in (
        "shortest possible: every run of up to 8 actions was visited",
        "r0.computed4 → 8",  # a changed field, old and new
        "3 <= 4 true",  # the guard with its numbers
        "r0 still references item0",  # a counterfactual
        "step 9, accept: back 3 → 1 (every step is taken)",
        "setup: slots 4: fails alike with any (tried: 3 to 6)",
        "found with 31 actions, shrunk to 9 in 0.12 s; numbers: slots 9 → 4",
        "outlives replay .outlives/1/gather.itf.json",
        "abort, occupy",  # never fired
        "Exit status 1.",
        "the priority policy",
        "raise --strangers",
        "UNSAFE 9! (mp)",
    ):
        assert words.replace(" ", "") in said.replace(" ", "")


@pytest.mark.parametrize(
    ("file", "link"),
    [
        (".outlives/1/gather.itf.json", "./gather.itf.json"),
        (".outlives/1/deep/a b.py", "./deep/a%20b.py"),
        (".outlives/1/javascript:x", "./javascript%3Ax"),
        ("javascript:x", None),
        ("/elsewhere/notes.txt", None),
        (".outlives/1/../../notes.txt", None),
        (".outlives/1//host/x", "./host/x"),
    ],
)
def test_files_beside_the_page_are_links(file: str, link: str | None) -> None:
    parsed = Parsed(html(run_of(replace(chunk_end(), files=(file,)))))
    found = [each["href"] for each in parsed.named("a") if (each.get("href") or "").startswith("./")]
    assert found == ([] if link is None else [link])


# --- what is not there is not shown -----------------------------------------------------------------------------------


def test_another_model_has_a_page_without_strips() -> None:
    page = html(run_of(counter_violation()))
    parsed = Parsed(page)
    assert not parsed.of_class("strip")
    assert not parsed.of_class("legend")
    assert "the value is 15, the limit 12" in page
    assert "add(amount=5)" in page
    assert [each for each in parsed.of_class("panel") if "selected" in (each["class"] or "")]
    assert not parsed.of_class("h-guard")
    assert "Where it comes from" not in page


def test_a_violation_without_steps_has_a_page() -> None:
    bare = Violation(property="P", engine="", story=chunk_end().story, badge="", setup="", lines=(), shrink={}, why="")
    assert "was never encoded" in html(run_of(bare))


def test_a_trace_that_passes_is_not_told_as_a_failure() -> None:
    page = html(Run(title="t", results=(), violations=(replace(full(), outcome="passes", notes=("as recorded",)),)))
    parsed = Parsed(page)
    assert parsed.of_class("violation")[0]["class"] == "violation green"
    assert "PASSES" in page
    assert "as recorded" in page
    assert not [each for each in parsed.of_class("stop") if "end" in (each["class"] or "").split()]


def test_a_green_page_says_what_it_covers_and_what_not() -> None:
    said = "".join(Parsed(html(green())).text)
    order = [said.index(words) for words in ("Nothing is violated", "every state of the scope", "Not covered", "seed")]
    assert order == sorted(order)


@pytest.mark.parametrize(("verdict", "kind"), [(Verdict.VACUOUS, "amber"), (Verdict.DISAGREE, "red")])
def test_a_verdict_that_is_not_green_is_not_shown_as_green(verdict: Verdict, kind: str) -> None:
    page = html(Run(title="t", results=(row("P", verdict, "c", note="raise it"),)))
    assert [each["class"] for each in Parsed(page).of_class("overall")] == [f"overall {kind}"]
    assert [each["class"] for each in Parsed(page).of_class("chip")] == [f"chip {kind}"] * 3
    assert "raise it" in page


def test_many_results_are_shown_at_a_glance_first() -> None:
    results = tuple(row(f"P{at}", Verdict.PASSED, "c", engine=engine) for at in range(4) for engine in ("a", "b"))
    parsed = Parsed(html(Run(title="t", results=results)))
    assert len(parsed.of_class("matrix")) == 1
    assert len(parsed.of_class("results")) == 2  # the part, and the table of all rows


# --- hostile names ----------------------------------------------------------------------------------------------------


def test_hostile_names_are_text() -> None:
    page = html(hostile())
    parsed = Parsed(page)
    assert page.count("<script") == 1
    assert len(parsed.named("script")) == 1
    assert not {char for char in page if not char.isprintable()} - {"\n"}
    assert "\u202e" not in page
    assert "<img src=x" in "".join(parsed.text)


@pytest.mark.parametrize("raw", ["<b>", "a\"b'c", "&amp;", "\x1b[31m", "\u202e", "\ud800", "</script>"])
def test_text_and_attributes_are_escaped(raw: str) -> None:
    made = tag("p", raw, title=raw)
    parsed = Parsed(made)
    assert [name for name, _ in parsed.elements] == ["p"]
    assert parsed.text == [parsed.elements[0][1]["title"]]
    assert made.isascii()


def test_markup_made_here_is_not_escaped_again_and_long_text_is_cut() -> None:
    assert tag("p", tag("b", "<"), [Markup("<br>"), None, 3]) == "<p><b>&lt;</b><br>3</p>"
    assert len(text("x" * 5_000)) < 700


# --- the cap ----------------------------------------------------------------------------------------------------------


def test_a_long_trace_keeps_its_ends_and_its_cause_and_says_what_was_cut() -> None:
    page = html(run_of(long(2_000)))
    assert len(page.encode()) <= MOST_BYTES
    steps = [int(each["data-step"] or 0) for each in Parsed(page).named("tr") if each.get("data-step")]
    assert steps[:3] == [0, 1, 2]
    assert steps[-3:] == [1_998, 1_999, 2_000]
    assert 1_000 in steps
    shown = "steps 40 to 999 are not shown here: 960 steps; the .itf.json file has all of them"
    assert shown in page


@pytest.mark.parametrize("limits", LEVELS)
def test_shown_steps_and_gaps_cover_the_trace(limits: Limits) -> None:
    shown = kept(long(2_000), limits)
    spans = [(each.first, each.last) if isinstance(each, Gap) else (each, each) for each in shown]
    assert (spans[0][0], spans[-1][1]) == (0, 2_000)
    assert all(before[1] + 1 == after[0] for before, after in pairwise(spans))
    assert all(each.last > each.first for each in shown if isinstance(each, Gap))


@pytest.mark.parametrize("limits", LEVELS)
def test_a_gap_of_one_step_is_shown_instead(limits: Limits) -> None:
    violation = long(limits.first + limits.last)
    apart = replace(violation, story=replace(violation.story, events=()))
    assert kept(apart, limits) == tuple(range(limits.first + limits.last + 1))


def test_no_run_makes_a_page_above_the_cap() -> None:
    wide = "<" * 5_000
    item = StripItem(0, 0, 9, wide, "held", True, ("released",) * 3)
    strips = tuple(
        Strip(step, f"r{number}", wide, 9, 9, 3, 6, (item,) * 50, (Window("target", 0, 9, (0,)),) * 3)
        for step in range(1, 12)
        for number in range(10)
    )
    worst = replace(full(), strips=strips, setup=wide, why=wide, notes=(wide,) * 300, files=(wide,) * 300)
    lines = tuple(replace(line, action=wide, refused=wide) for line in worst.lines)
    deep: object = [wide] * 99
    for _ in range(3):
        deep = {f"{at}{wide}": deep for at in range(99)}
    worst = replace(worst, lines=lines, provenance=deep)  # type: ignore[arg-type]
    table = DataTable(name="t", title=wide, columns=(wide,) * 70, rows=((wide,) * 70,) * 300, legend=(wide,) * 300)
    results = tuple(row(f"{wide}{at}", Verdict.PASSED, wide, note=wide) for at in range(300))
    run = Run(title=wide, results=results, violations=(worst,) * 20, tables=(table,) * 9, provenance={wide: deep},
              configuration={wide: deep}, not_covered=(wide,) * 300, not_reached=(wide,) * 300)  # fmt: skip
    page = html(run)
    assert len(page.encode()) <= MOST_BYTES
    assert "not shown" in page


# --- the scale of the strips ------------------------------------------------------------------------------------------


def far(low: int, high: int, known: int) -> Violation:
    item = StripItem(0, low, high, "k0", "held", True, ("missed",))
    strip = Strip(9, "r0", "running", known, high, high - 2, 2, (item,), (Window("target", low, high, (0,)),))
    return replace(full(), strips=(strip,))


@pytest.mark.parametrize(
    ("low", "high", "known", "shown"),
    [
        (4, 8, 12, (0, 12)),
        (20, 24, 40, (0, 40)),
        (4_000, 4_010, 8_192, (3_996, 4_014)),
        (100, 7_000, 8_192, (0, 8_192)),
    ],
)
def test_strips_show_everything_or_what_matters(low: int, high: int, known: int, shown: tuple[int, int]) -> None:
    view = view_of(far(low, high, known))
    assert (view.low, view.high) == shown
    assert len(view.labels) <= 13
    assert (view.words == "") == (shown == (0, known))
    assert view.at(0) == 0
    assert view.at(known) == 100


# --- colours ----------------------------------------------------------------------------------------------------------


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, lime, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * lime + 0.0722 * blue


FRONTS = ("ink", "soft", "link", "red", "green", "amber", "flag")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(
    ("front", "back"),
    [(front, back) for back in ("paper", "raised") for front in FRONTS]
    + [(name, f"{name}-soft") for name in ("red", "green", "amber")]
    + [("flag", "amber-soft"), ("draft", "paper"), ("confirmed", "paper"), ("soft", "faint")],
)  # fmt: skip
def test_text_stands_out_from_what_is_behind_it(dark: bool, front: str, back: str) -> None:
    blocks = re.findall(r":root \{(.*?)\}", asset("report.css"), re.DOTALL)
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", blocks[1 if dark else 0]))
    low, high = sorted(luminance(colours[name]) for name in (front, back))
    assert (high + 0.05) / (low + 0.05) >= 4.5
