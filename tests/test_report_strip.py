"""Token strips: what lies where after each step, and the line of text that shows it."""

import pytest
from outlives.invariants.report.content import Violation
from outlives.invariants.report.strip import Strip, StripItem, Window
from outlives.invariants.report.strip_text import StripScale, marks_words, scale_of, strip_legend, strip_line
from report_cases import adjacent, chunk_end, roll_back


def of(violation: Violation, step: int) -> Strip:
    return next(strip for strip in violation.strips if strip.step == step)


def test_a_release_lies_between_confirmed_and_computed() -> None:
    """The bug of the optimistic guard: item0 ends at 3, computed is 4, and nothing is confirmed when it is asked."""
    strip = of(roll_back(), 5)
    assert (strip.request, strip.computed, strip.confirmed, strip.in_flight) == ("r0", 4, 1, 3)
    (item,) = strip.items
    assert (item.start, item.end, item.key, item.place) == (0, 3, "k0", "idle")
    assert set(item.marks) == {"encoded", "released"}
    assert strip.confirmed < item.end <= strip.computed


def test_each_move_of_an_entry_is_marked_at_its_step() -> None:
    told = roll_back()
    marks = {strip.step: strip.items[0].marks for strip in told.strips if strip.items[0].marks}
    assert marks == {
        2: ("planned", "referenced"),
        5: ("encoded", "released"),
        6: ("evicted",),
        9: ("dropped", "missed"),
    }
    assert [strip.items[0].place for strip in told.strips] == [
        "absent", "held", "held", "held", "idle", "evicted", "absent", "absent", "absent",
    ]  # fmt: skip


def test_windows_are_where_the_workers_rule_looks() -> None:
    """Steps that read and found everything have their windows too; the drafter's is shifted by the look-ahead."""
    assert of(chunk_end(), 3).windows == (Window("target", 0, 4, ()), Window("draft", 1, 5, (0,)))
    assert of(roll_back(), 5).windows == (Window("target", 0, 1, ()),)
    assert of(roll_back(), 8).windows == (Window("target", 1, 4, ()),)
    assert of(roll_back(), 9).windows == (Window("target", 1, 5, (0,)),)


def test_a_request_that_has_not_arrived_has_no_strip() -> None:
    assert min(strip.step for strip in adjacent().strips) == 1


def strip(**changes: object) -> Strip:
    base = Strip(
        step=3, request="r0", status="running", known=8, computed=5, confirmed=3, in_flight=2,
        items=(StripItem(0, 2, 6, "k0", "held", True, ()),), windows=(),
    )  # fmt: skip
    return base._replace(**changes)  # type: ignore[arg-type]


WIDE = StripScale(8, 2, 1)


@pytest.mark.parametrize(
    ("made", "ascii_line", "rich_line"),
    [
        (strip(), "----##:%%%|o....", "────██:▒▒▒|░····"),
        (strip(confirmed=5), "----######|o....", "────██████|░····"),
        (strip(windows=(Window("target", 1, 4, ()),)), "--[-##:%)%|o....", "──[─██:▒)▒|░····"),
        (
            strip(windows=(Window("target", 1, 4, ()), Window("draft", 2, 5, (0,)))),
            "--[-{#:%)%}o....",
            "──[─{█:▒)▒}░····",
        ),
        (
            strip(items=(StripItem(0, 2, 5, "k0", "idle", True, ("released",)),)),
            "----##:%%%R.....",
            "────██:▒▒▒R·····",
        ),
    ],
)
def test_a_line_of_text(made: Strip, ascii_line: str, rich_line: str) -> None:
    assert strip_line(made, WIDE, ascii_only=True) == ascii_line
    assert strip_line(made, WIDE) == rich_line


def test_long_requests_are_drawn_to_scale() -> None:
    """128 tokens, item [64,96): two positions a column; an item shorter than a column is still seen."""
    long = strip(known=128, computed=64, confirmed=64, items=(StripItem(0, 64, 96, "k0", "held", True, ()),))
    scale = scale_of([long])
    assert scale == StripScale(128, 1, 2)
    assert strip_line(long, scale, ascii_only=True) == "-" * 32 + "|" + "o" * 15 + "." * 16
    tiny = strip(known=6_400, computed=0, confirmed=0, items=(StripItem(0, 50, 51, "k0", "held", True, ()),))
    line = strip_line(tiny, scale_of([tiny]), ascii_only=True)
    assert len(line) == 64
    assert line[0] == "o"


def test_words_and_legend_name_what_is_there_and_nothing_else() -> None:
    told = roll_back()
    assert marks_words(of(told, 5)) == "item0 encoded and released; target reads [0,1)"
    assert marks_words(of(told, 9)) == "item0 dropped and missed; target reads [1,5), misses item0"
    assert marks_words(of(chunk_end(), 3)) == "target reads [0,4); drafter reads [1,5), misses item0"
    legend = strip_legend(told.strips, ascii_only=True)
    assert "R released" in legend
    assert "E evicted" in legend
    assert "drafter" not in legend
    assert "drafter" in strip_legend(chunk_end().strips)
    assert "released" not in strip_legend(chunk_end().strips)


def test_a_model_that_is_not_ours_has_no_strips() -> None:
    from outlives.invariants.report.content import explain
    from outlives.invariants.verdict import Step, Trace

    trace = Trace(steps=(Step(None, 3),), property="NO-THREE", why="3 is 3")
    assert explain(trace).strips == ()
