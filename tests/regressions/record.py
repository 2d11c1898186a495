"""How the trace files of this folder were made, and how to add one: `python tests/regressions/record.py`.

Belongs here: one line per file that comes from a search or from given actions. A file that is there is left alone,
so that a dated trace stays as it was on its day; what it must come to today is in `expected.toml`.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from outlives.invariants.configuration import Configuration  # noqa: E402
from outlives.invariants.explore import Bounds, breadth_first  # noqa: E402
from outlives.invariants.scope_choice import chosen_scopes  # noqa: E402
from outlives.invariants.table_run import TABLE_SETUPS  # noqa: E402
from outlives.invariants.trace_file import itf_path, write_trace  # noqa: E402
from outlives.invariants.verdict import Step, Trace  # noqa: E402
from outlives.model.contract import Refusal  # noqa: E402
from outlives.model.scenarios import SCENARIOS  # noqa: E402
from outlives.model.scheduler import initial_state  # noqa: E402
from outlives.model.setup import RARE_ROUTES, Item, RequestSetup, Setup, Turn  # noqa: E402
from outlives.model.state import State  # noqa: E402
from worlds import action, setup  # noqa: E402

DATE = "2026-11-30"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One file: what it is about, and either the actions or a search for the shortest violation."""

    name: str
    property: str
    about: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `Configuration`."""
    numbers: tuple[Setup, ...] = ()
    """Setups to begin from; empty: the base numbers of the scenario."""
    actions: tuple[str, ...] = ()
    """Empty: search, level by level, for the shortest violation."""


def _cell(release: str, scenario: str, prop: str) -> Case:
    """A crash or stuck cell of the fixed points, with the scenario's own numbers."""
    about = {"profile": release, "scenario": scenario}
    return Case(name=f"{scenario}-{release}", property=prop, about=about)


def _relaxed(name: str, guard: str, *, anywhere: bool = False, **about: Any) -> Case:
    """A cell of the headline table: a guard under a relaxed assumption, on the setups that the table visits whole."""
    chosen = {"guard": guard, "items_anywhere": anywhere, **about}
    setups = tuple(each._replace(left_out=RARE_ROUTES) for each in TABLE_SETUPS[anywhere])
    return Case(name=name, property=_CRASH, about=chosen, numbers=setups)


def _overtaken(name: str, guard: str) -> Case:
    """Notices overtake steps in flight (A1 relaxed), and references go by the guard alone."""
    about = {"guard": guard, "relax": ("A1",), "without": ("preempt", "abort")}
    return Case(name=name, property=_CRASH, about=about, numbers=_CHUNKED)


def _scope(name: str, release: str, scope: str, prop: str) -> Case:
    """The shortest violation of a release in a named scope."""
    about = {"profile": release}
    (state,) = chosen_scopes(Configuration(**about), (scope,), every_number=False)[scope]
    return Case(name=f"{name}-{release}", property=prop, about=about, numbers=(state.setup,))


def _taken(*routes: str) -> tuple[str, ...]:
    return tuple(route for route in RARE_ROUTES if route not in routes)


_CRASH, _STUCK = "GATHER-AFTER-FREE", "PROGRESS"
_CHUNKED = (setup([(0, 3)], 5, slots=3, budget=2),)
_NO_DRAFTS = setup([(3, 5)], 7, slots=2, budget=1)
_SHORT = setup([(0, 2)], 3, slots=2, budget=4, strangers=2)
_RIVALS = Setup(
    (
        RequestSetup(6, 1, (Item(4, 2, "k0", 2),), priority=1),
        RequestSetup(4, 1, (Item(3, 1, "k1", 1),)),
    ),
    slots=3,
    budget=6,
    chunk_cap=2,
    by_priority=1,
    left_out=RARE_ROUTES,
)
_TURNS = Setup(
    (RequestSetup(1, 1, (Item(0, 1, "k0", 1),), turns=(Turn(1, 1, (Item(0, 1, "k1", 1),)),)),),
    slots=1,
    budget=2,
    left_out=_taken("sessions"),
)
_FULL = Setup(
    tuple(
        RequestSetup(1, 1, (Item(0, 1, f"k{own}", 1),), turns=(Turn(1, 1, (Item(0, 1, f"k{own + 2}", 1),)),))
        for own in range(2)
    ),
    slots=2,
    budget=4,
    left_out=_taken("sessions"),
)
_PADDED = Setup(
    (RequestSetup(1, 1, (Item(0, 1, "k0", 1),), turns=(Turn(1, 1),)),),
    slots=1,
    budget=1,
    drafts=1,
    left_out=_taken("sessions"),
)
_DIFFUSION = Setup(
    (RequestSetup(1, 1, (), turns=(Turn(1, 1),)),),
    slots=1,
    budget=2,
    drafts=1,
    diffusion=1,
    left_out=_taken("sessions"),
)

CASES = (
    _cell("0.11.0", "chunk-end", _CRASH),
    _cell("0.11.0", "adjacent", _CRASH),
    _cell("0.11.0", "gap-one", _CRASH),
    _cell("0.11.0", "whole-items", _CRASH),
    _cell("0.13.0", "chunk-end", _CRASH),
    _cell("0.13.0", "adjacent", _STUCK),
    _cell("0.13.0", "whole-items", _CRASH),
    _cell("0.17.1", "chunk-end", _CRASH),
    _cell("0.17.1", "adjacent", _STUCK),
    _cell("0.24.0", "adjacent", _STUCK),
    _cell("0.24.0", "gap-one", _STUCK),
    Case(
        name="whole-items-stuck-0.33.0",
        property=_STUCK,
        about={"profile": "0.33.0"},
        numbers=(setup([(1, 2)], 2, outputs=1, slots=1, budget=1, look_ahead=1, whole_items=1),),
    ),
    Case(
        name="whole-items-stuck-longer-0.33.0",
        property=_STUCK,
        about={"profile": "0.33.0"},
        numbers=(setup([(1, 3)], 5, slots=2, budget=2, look_ahead=1, whole_items=1),),
    ),
    Case(
        name="whole-items-stuck-at-budget-0.33.0",
        property=_STUCK,
        about={"profile": "0.33.0"},
        numbers=(setup([(64, 96)], 128, slots=64, budget=32, look_ahead=1, whole_items=1),),
    ),
    Case(
        name="placeholders-after-preemption-0.24.0",
        property="PLACEHOLDERS-KEPT",
        about={"profile": "0.24.0"},
        numbers=(setup([(0, 1)], 1, outputs=4, slots=1, budget=2, drafts=1, depth=3),),
    ),
    Case(
        name="counters-after-preemption-0.24.0",
        property="COUNTERS-SOUND",
        about={"profile": "0.24.0"},
        numbers=(setup([(0, 1)], 1, outputs=6, slots=1, budget=4, drafts=3, depth=3),),
    ),
    Case(
        name="withdrawn-encode-0.33.0",
        property=_CRASH,
        about={"profile": "0.33.0", "policy": "priority", "numbers": {"requests": (2, 2)}},
        numbers=(_RIVALS,),
    ),
    Case(
        name="withdrawn-encode-planned-0.33.0",
        property="PLANNED-ENCODED",
        about={"profile": "0.33.0", "policy": "priority", "numbers": {"requests": (2, 2)}},
        numbers=(_RIVALS,),
    ),
    Case(
        name="failed-load-never-ends-0.33.0",
        property=_STUCK,
        about={"profile": "0.33.0"},
        numbers=(setup([(1, 2)], 2, outputs=1, slots=1, budget=2, left_out=_taken("kv-load-failure")),),
    ),
    Case(
        name="failed-load-holds-room-0.33.0",
        property=_STUCK,
        about={"profile": "0.33.0"},
        numbers=(
            setup(
                [(0, 1), (1, 2)],
                3,
                outputs=1,
                slots=1,
                budget=3,
                depth=1,
                synchronous=1,
                left_out=_taken("kv-load-failure"),
            ),
        ),
    ),
    _scope("failed-load-placeholders", "0.33.0", "failed-load", "PLACEHOLDERS-KEPT"),
    _scope("turn-holds-last-item", "0.33.0", "second-turn", _STUCK),
    Case(
        name="turn-holds-last-item-smallest-0.33.0",
        property=_STUCK,
        about={"profile": "0.33.0"},
        numbers=(_TURNS,),
    ),
    Case(
        name="turns-hold-each-other-0.33.0",
        property=_STUCK,
        about={"profile": "0.33.0"},
        numbers=(_FULL,),
    ),
    Case(
        name="padded-over-budget-0.33.0",
        property=_STUCK,
        about={"profile": "0.33.0"},
        numbers=(_PADDED,),
    ),
    Case(
        name="diffusion-session-0.33.0",
        property=_STUCK,
        about={"profile": "0.33.0"},
        numbers=(_DIFFUSION,),
    ),
    _scope("encoder-decoder-slots-abort", "0.33.0", "encoder-decoder", "SLOTS-ADD-UP"),
    Case(
        name="encoder-decoder-slots-0.33.0",
        property="SLOTS-ADD-UP",
        about={"profile": "0.33.0", "without": ("preempt", "abort")},
        numbers=(setup([(0, 2)], 1, outputs=3, slots=2, budget=4, encoder_decoder=1),),
    ),
    _scope("encoder-decoder-released-twice", "0.33.0", "encoder-decoder", "RELEASE-ONCE"),
    _scope("encoder-decoder-shelf", "0.13.0", "encoder-decoder", "SHELF-AGREES"),
    _scope("reset-loses-output", "0.20.0", "reset-beside-stale", _STUCK),
    _scope("reset-second-output", "0.20.0", "reset-beside-stale", "COUNTERS-SOUND"),
    _scope("reset-rejects-anew", "0.24.0", "reset-beside-stale", "CONFIRMED-MONOTONE"),
    _scope("old-output-in-new-turn", "0.27.0", "second-turn", "PLACEHOLDERS-KEPT"),
    _scope("session-lost", "0.32.0", "load-and-turns", _STUCK),
    Case(
        name="repeated-key-0.28.0",
        property="REFERENCES-MATCH",
        about={"profile": "0.28.0"},
        numbers=(
            Setup(
                (RequestSetup(5, 2, (Item(0, 2, "k0", 2), Item(3, 2, "k0", 2))),),
                slots=2,
                budget=3,
                left_out=RARE_ROUTES,
            ),
        ),
    ),
    _overtaken("38907-scheduled-not-executed-a1", "optimistic-after-advance"),
    _overtaken("38907-revision-a1", "optimistic-before-advance"),
    _overtaken("38907-merged-a1", "optimistic-at-output"),
    _overtaken("45347-confirmed-a1", "confirmed"),
    _relaxed("settled-a1", "settled", relax=("A1",)),
    _relaxed("45347-roll-back-a3", "optimistic-at-output", reader="any"),
    _relaxed("45347-roll-back-a3-anywhere", "optimistic-at-output", reader="any", anywhere=True),
    _relaxed("45347-rejected-drafts-a3-true", "optimistic-at-output", reader="true", anywhere=True),
    _relaxed("38907-scheduled-a3", "optimistic-after-advance", reader="any"),
    _relaxed("38907-revision-a3", "optimistic-before-advance", reader="any"),
    _relaxed("38907-revision-padded-a3", "optimistic-before-advance", reader="any"),
    _relaxed("45347-confirmed-a2", "confirmed", relax=("A2",)),
    _relaxed("retain-a2", "retain", relax=("A2",)),
    _relaxed("45347-confirmed-a4", "confirmed", relax=("A4",)),
    _relaxed("retain-a4", "retain", relax=("A4",)),
    Case(
        name="seed-unchanged-without-drafts",
        property=_CRASH,
        numbers=(_NO_DRAFTS,),
        actions=("arrive(request=r0)", *("schedule()", "accept()") * 8),
    ),
    Case(
        name="seed-retained-across-preemption",
        property=_CRASH,
        numbers=(_SHORT,),
        actions=(
            "arrive(request=r0)",
            "schedule()",
            "preempt(request=r0)",
            "accept()",
            "accept()",
            "schedule()",
            "accept()",
        ),
    ),
    Case(
        name="seed-recomputed-after-eviction",
        property=_CRASH,
        numbers=(_SHORT,),
        actions=(
            "arrive(request=r0)",
            "schedule()",
            "preempt(request=r0)",
            "accept()",
            "accept()",
            "occupy(slots=2)",
            "schedule()",
            "accept()",
            "occupy(slots=0)",
            "schedule()",
            "accept()",
        ),
    ),
)
"""Every recorded case, in the order of `expected.toml`."""


def main() -> None:
    """Write the files that are not there yet."""
    for case in CASES:
        path = HERE / f"{DATE}-{case.name}"
        if itf_path(path).exists():
            continue
        configuration = Configuration(**case.about)
        trace = _given(configuration, case) if case.actions else _searched(configuration, case)
        written = write_trace(trace, configuration, path)
        sys.stderr.write(f"{written.name}: {len(trace.actions)} actions, {trace.why}\n")


def _starts(case: Case) -> tuple[State, ...]:
    if case.numbers:
        return tuple(initial_state(numbers) for numbers in case.numbers)
    return (initial_state(SCENARIOS[case.about["scenario"]].scope.setup({"numbers": "base"})),)


def _searched(configuration: Configuration, case: Case) -> Trace:
    found = breadth_first(
        configuration.model(),
        bounds=Bounds(states=500_000),
        properties=(case.property,),
        initial=_starts(case),
        stop_when_found=True,
    )
    trace = next(result.trace for result in found.results() if result.property == case.property)
    if trace is None:
        raise SystemExit(f"{case.name}: no violation of {case.property} in {found.states} states")
    return trace


def _given(configuration: Configuration, case: Case) -> Trace:
    model, (state,) = configuration.model(), _starts(case)
    steps = [Step(None, state)]
    for text in case.actions:
        after = model.next_state(state, action(text))
        if isinstance(after, Refusal):
            raise SystemExit(f"{case.name}: {text} is refused: {after.reason}")
        state = after
        steps.append(Step(action(text), state))
    return Trace(steps=tuple(steps), property=case.property, why="it holds in this run", shortest="given by hand")


if __name__ == "__main__":
    main()
