"""Runs whose pages are checked: a violation with everything that can be said of it, a long one, a hostile one.

Belongs here: data for the tests of the HTML page, no tests.
"""

from dataclasses import replace

from outlives.invariants.report.analysis import Analysis, Counterfactual, Freedom, GuardLine, Neighbour, StepFacts
from outlives.invariants.report.content import DataTable, Run, Violation, explain
from outlives.invariants.report.strip import Strip, StripItem, Window
from outlives.invariants.report.telling import Event, Story
from outlives.invariants.verdict import Step, Trace, Verdict
from outlives.model.contract import Action
from report_cases import roll_back, row

HOSTILE = '<script>window.ran=1</script><img src=x onerror="window.ran=1"> \'"&amp; \x1b[31m \u202etfel'
HOSTILE += "W" * 200
"""Markup, quotes, a terminal escape, a direction override, and a word without an end."""

_JUDGED = ("GATHER-AFTER-FREE", "GATHER-BEFORE-ENCODE", "NO-CRASH", "COUNTERS-SOUND", "PROGRESS", "SLOTS-SOUND")


def full() -> Violation:
    """The roll-back violation with every part filled."""
    violation = roll_back()
    end = 3
    facts = []
    for strip in violation.strips:
        last = strip.step == violation.lines[-1].number
        judged = dict.fromkeys(_JUDGED, "holds") | {"PROGRESS": "not asked"}
        if last:
            judged["GATHER-AFTER-FREE"] = "violated"
        line = GuardLine(request="r0", item=0, guard="optimistic-at-output", inequality=f"{end} <= {strip.computed}",
                         holds=end <= strip.computed, held=strip.items[0].place == "held")  # fmt: skip
        facts.append(StepFacts(step=strip.step, guards=(line,), judged=judged))
    others = (
        Counterfactual(guard="optimistic-at-output", own=True, outcome="violated at step 9", violated=True,
                       differs_at=None, difference="", price=0),
        Counterfactual(guard="confirmed", own=False, outcome="passes", violated=False, differs_at=5,
                       difference="r0 still references item0", price=9),
        Counterfactual(guard="confirmed-lookahead", own=False, outcome="passes", violated=False, differs_at=5,
                       difference="r0 still references item0", price=12),
        Counterfactual(guard="never", own=False, outcome="PROGRESS is violated at step 8", violated=False,
                       differs_at=5, difference="r0 still references item0", price=None),
    )  # fmt: skip
    analysis = Analysis(
        facts=tuple(facts),
        counterfactuals=others,
        freedoms=(
            Freedom(name="step 3, speculate: drafts", value=2, still=(1, 3), tried=(0, 1, 3)),
            Freedom(name="setup: slots", value=4, still=(3, 5, 6), tried=(3, 5, 6)),
        ),
        neighbour=Neighbour(name="step 9, accept: back", old=3, new=1, note="every step is taken"),
        notes=("Arrivals were not varied: there is one request.",),
    )
    shrink = {"found_length": 31, "final_length": 9, "found_numbers": {"slots": 9, "budget": 8},
              "final_numbers": {"slots": 4, "budget": 8}, "seconds": 0.12}  # fmt: skip
    provenance = {
        "versions": {"outlives": "0.1.0", "python": "3.11.2", "z3": "4.13.0"},
        "guard": "optimistic-at-output",
        "relaxed": ["A3"],
        "seed": 0,
        "covered": {"runs": 1200, "steps": 45000},
        "never fired": ["abort", "occupy"],
    }
    return replace(
        violation,
        analysis=analysis,
        shrink=shrink,
        provenance=provenance,
        badge="shortest possible: every run of up to 8 actions was visited",
        replay="outlives replay .outlives/1/gather.itf.json",
        files=(".outlives/1/gather.itf.json", ".outlives/1/test_gather.py", "/elsewhere/notes.txt"),
    )


def run_of(*violations: Violation) -> Run:
    """A run with these violations."""
    rows = [row(each.property, Verdict.VIOLATED, "1,200 runs, 45,000 steps", engine=each.engine or "machine")
            for each in violations]  # fmt: skip
    return Run(
        title="guard optimistic-at-output, A3 relaxed",
        results=(*rows, row("PROGRESS", Verdict.PASSED, "1,200 runs, 45,000 steps")),
        violations=violations,
        not_covered=("the priority policy",),
        not_reached=("action occupy: never taken; raise --strangers",),
        provenance={"outlives": "0.1.0", "seed": 0},
        tables=(guards(),),
        out=".outlives/1",
    )


def guards() -> DataTable:
    """A table of verdicts, with short column names."""
    return DataTable(
        name="guards-by-assumptions",
        title="Guard x assumptions",
        columns=("guard", "A1-A4", "A3 any"),
        heads=("guard", "all", "A3"),
        rows=(("optimistic-at-output", "passed (m)", "UNSAFE 9! (mp)"), ("confirmed", "proved (p)", "proved (p)")),
        legend=("engines: m machine, p proof",),
    )


def long(steps: int = 2_000, requests: int = 1) -> Violation:
    """A trace of this many steps with a strip, guard and properties at each; released half way, needed at the end."""
    lines = (Step(None, 0), *(Step(Action.of("schedule", number=at), at) for at in range(1, steps + 1)))
    violation = explain(Trace(steps=lines, property="GATHER-AFTER-FREE", why="it is gone"))
    middle = steps // 2
    strips, facts = [], []
    for at in range(1, steps + 1):
        for number in range(requests):
            gone = at >= middle
            marks = ("released",) if at == middle else ("missed",) if at == steps else ()
            item = StripItem(0, 3, 9, "k0", "idle" if gone else "held", not gone, marks)
            windows = (Window("target", 8, 12, (0,) if at == steps else ()),)
            strips.append(Strip(at, f"r{number}", "running", 12, 12, 6 + at % 4, 6 - at % 4, (item,), windows))
        line = GuardLine(request="r0", item=0, guard="confirmed", inequality=f"9 <= 12 - {at}", holds=False, held=True)
        facts.append(StepFacts(step=at, guards=(line,), judged=dict.fromkeys(_JUDGED, "holds")))
    story = Story(headline=f"r0's item0 was released at step {middle} and needed at step {steps}", events=(
        Event(kind="released", step=middle, text=f"step {middle} released it", numbers={"end": 9, "short": 3}),
        Event(kind="read", step=steps, text=f"step {steps} needed it"),
    ))  # fmt: skip
    return replace(violation, strips=tuple(strips), analysis=Analysis(facts=tuple(facts)), story=story)


def hostile() -> Run:
    """Hostile text in every place that takes text."""
    name = HOSTILE
    violation = full()
    strips = tuple(
        strip._replace(request=name, status=name, items=tuple(item._replace(key=name) for item in strip.items))
        for strip in violation.strips
    )
    lines = tuple(replace(line, action=name, name=name, changes=tuple(change._replace(name=name, new=name)
                  for change in line.changes)) for line in violation.lines)  # fmt: skip
    events = tuple(replace(event, text=name) for event in violation.story.events)
    analysis = violation.analysis
    hostile_facts = tuple(
        replace(each, guards=tuple(replace(line, request=name, guard=name, inequality=name) for line in each.guards),
                judged={name: "violated", name * 2: name})
        for each in analysis.facts
    )  # fmt: skip
    analysis = Analysis(
        facts=hostile_facts,
        counterfactuals=tuple(replace(each, guard=name, outcome=name, difference=name)
                              for each in analysis.counterfactuals),
        freedoms=(Freedom(name=name, value=name, still=(name,), tried=(name,)),),
        neighbour=Neighbour(name=name, old=name, new=name, note=name),
        notes=(name,),
    )  # fmt: skip
    violation = replace(
        violation, property=name, engine=name, badge=name, setup=name, lines=lines, strips=strips, analysis=analysis,
        story=Story(headline=name, events=events), why=name, replay=name, notes=(name,), outcome=name,
        files=(name, "javascript:alert(1)", f".outlives/1/{name}", ".outlives/1/../../x"),
        provenance={name: {name: name}},
        shrink={"found_length": 31, "final_length": 9, "found_numbers": {name: name}, "final_numbers": {name: 1}},
    )  # fmt: skip
    table = DataTable(
        name=name, title=name, columns=(name, name), heads=(name, "x"), rows=((name, name),), legend=(name,)
    )
    result = row(name, Verdict.VIOLATED, name, engine=name, note=name, not_covered=(name,))
    return Run(title=name, results=(result,), violations=(violation, violation), not_covered=(name,),
               not_reached=(name,), vacuous=(name,), known=(name,), gone=(name,), configuration={name: [name]},
               provenance={name: name},
               out=".outlives/1", tables=(table,))  # fmt: skip
