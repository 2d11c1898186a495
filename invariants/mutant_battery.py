"""How one mutant is judged: a battery of engines, the cheapest first, until one of them says that something is wrong.

Belongs here: the stages and what each of them takes for a kill. What a mutant is, is in `mutants`; which are run, and
the score, in `mutants_run`.

Theory of operation. `repaired` violates nothing, so whatever an engine reports of it with a mutant planted is a kill.
Rules that only other releases, guards or assumptions reach are judged by what is violated there, and in how many
actions: these sets are facts about the releases (`docs/findings.md`), and a model that has others is not theirs. They
are taken from the model as it is before anything is planted. And the profile of a release that shows anything else than
the release did (`subject.walks`) is not that release's profile any more, whatever its properties say.
"""

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import FrameType
from typing import Any, NamedTuple

from outlives.model.errors import OutlivesError
from outlives.model.faults import FAULTS
from outlives.model.lifetime import GUARDS, WEAKEST
from outlives.model.profiles import PROFILES
from outlives.model.scheduler import initial_state
from outlives.model.state import State

from .configuration import Configuration
from .explore import Bounds, explore
from .mutant_alike import otherwise, taken
from .mutant_told import ended_otherwise
from .mutant_told_runs import TOLD
from .mutants import Mutant, planted
from .price import PRICED, Price, price
from .proof.life import Arithmetic, Assumed, Terms
from .proof.theorem import prove
from .proof.tie import untied
from .scope_choice import Scopes, chosen_scopes
from .subject.walks import WALKS, departure
from .subject.walks_seen import SEEN
from .verdict import Verdict

__all__ = ["OTHERWISE", "STAGES", "Baseline", "Judged", "baseline", "baseline_of", "judge_mutant"]

_STATES = 20_000
_SECONDS = 8
"""Of processor time that one scope or walk may take, of which none needs two; a mutant that takes longer never ends."""
_STAGE_SECONDS = 60
"""The same of a stage without scopes."""
_CASES = 150
_TIE_STEPS = 1_500
_BRIEF = 6
"""So many runs of each walk are taken first: of most mutants that is enough."""
_SMALL = 600
"""States of the scopes in which other releases, guards and assumptions are judged."""
_FIRST = 22
"""So many of the smallest scopes are visited first."""
_GUARD_SCOPES = ("last-chunk", "adjacent-items", "two-at-once", "second-turn")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What became of a mutant."""

    key: str
    line: int
    operator: str
    stage: str = ""
    """Which stage killed it; empty: none."""
    why: str = ""


class _NeverEnds(BaseException):
    """Not an `Exception`: nobody between the rule and the battery may take it for one of the rule's."""


def judge_mutant(mutant: Mutant, expected: "Baseline | None" = None) -> Judged:
    """Run the battery until the first kill; `expected` instead of the whole baseline."""
    expected = expected or baseline()
    said = Judged(key=mutant.key, line=mutant.line, operator=mutant.operator)
    with planted(mutant):
        for name, stage in STAGES.items():
            if name == "proof" and mutant.module != "lifetime":
                continue
            try:
                why = stage(expected)
            except _NeverEnds as error:
                why = str(error)
            except OutlivesError as error:
                why = f"{type(error).__name__}: {error}"
            except Exception as error:  # a rule raised where no engine stands between
                why = f"{type(error).__name__}: {error}"
            if why:
                return Judged(key=mutant.key, line=mutant.line, operator=mutant.operator, stage=name, why=why[:200])
    return said


# --- what is right ----------------------------------------------------------------------------------------------------

Found = dict[str, int]
"""Property -> actions of its shortest violation."""


@dataclass(frozen=True, slots=True)
class _Case:
    """One scope under one configuration."""

    label: str
    configuration: Configuration
    states: tuple[State, ...]

    def visited(self, *, stop: bool = False) -> "_Visited":
        """Stopped at the first property that is found, or not before every state was visited."""
        with _at_most(_SECONDS):
            seen = explore(
                self.configuration.model(),
                bounds=Bounds(states=_STATES),
                initial=self.states,
                stop_when_found=stop,
                compiled=False,
            )
        if seen.interrupted:
            raise KeyboardInterrupt
        return _Visited({name: len(trace.actions) for name, trace in seen.traces.items()}, seen.states)


class _Visited(NamedTuple):
    found: Found
    states: int


@dataclass(frozen=True, slots=True)
class Baseline:
    """What engines say of the model as it is."""

    clean: tuple[_Case, ...]
    """Scopes of `repaired`, in which nothing is violated, the smallest first."""
    recorded: tuple[tuple[_Case, Found], ...]
    """Other configurations, and what is violated in them."""
    proved: tuple[str, ...] = ()
    """Guards whose safety is proved."""
    prices: Mapping[str, Price] = field(default_factory=dict)
    """What guards cost, by guard and scope."""
    walks: Mapping[str, int] = field(default_factory=dict)
    """What random walks show, by what they are about."""


@cache
def baseline() -> Baseline:
    """Taken once a process, before anything is planted."""
    return baseline_of(chosen_scopes(Configuration(), every_number=False))


def baseline_of(scopes: Scopes, *, others: bool = True) -> Baseline:
    """What engines say of these scopes, and of the other configurations."""
    repaired = Configuration()
    sizes = {}
    for name, states in scopes.items():
        case = _Case(name, repaired, tuple(states))
        sizes[case.label] = case.visited(), case
    ordered = [case for _, case in sorted(sizes.values(), key=lambda each: each[0].states)]
    small = [name for name, (seen, _) in sizes.items() if seen.states <= _SMALL]
    if not others:
        return Baseline(tuple(ordered), ())
    recorded = tuple((case, case.visited().found) for case in _others(small))
    proved = tuple(guard for guard, assumed in _THEOREMS if _proved(guard, assumed))
    return Baseline(tuple(ordered), recorded, proved, _prices(), taken())


def _others(small: list[str]) -> Iterator[_Case]:
    for profile in PROFILES:
        if profile != "repaired":
            yield from _cases(f"profile {profile}", Configuration(profile=profile), small)
    for guard in (*GUARDS, *WEAKEST):
        if guard != PROFILES["repaired"].guard.name:
            yield from _cases(f"guard {guard}", Configuration(guard=guard), _GUARD_SCOPES)
    for name, more in (
        ("A1 relaxed", {"relax": ("A1",)}),
        ("A2 relaxed", {"relax": ("A2",)}),
        ("A4 relaxed", {"relax": ("A4",)}),
        ("reader any", {"reader": "any"}),
        ("reader true", {"reader": "true", "split": True}),
        ("split", {"split": True}),
        ("any arrival", {"arrivals": "any"}),
    ):
        yield from _cases(name, Configuration(**more), ("two-at-once", "rivals", "last-chunk"))
    configuration = Configuration(
        reader="true", guard="optimistic-after-advance", items_anywhere=True, numbers={"requests": (1, 1)}
    )
    yield from _cases("reader true, optimistic", configuration, ("many-drafts", "adjacent-items", "chunk-end"))


def _cases(label: str, configuration: Configuration, names: Any) -> Iterator[_Case]:
    every = chosen_scopes(configuration, every_number=False)
    for name in names:
        if name in every:
            yield _Case(f"{label}, {name}", configuration, every[name])


# --- the stages -------------------------------------------------------------------------------------------------------


def _exhaustive(expected: Baseline) -> str:
    return _clean(expected.clean[:_FIRST])


def _larger(expected: Baseline) -> str:
    return _clean(expected.clean[_FIRST:])


def _clean(cases: Sequence[_Case]) -> str:
    for case in cases:
        found = case.visited().found
        if found:
            name = min(found, key=lambda each: found[each])
            return f"{name} in {found[name]} actions, scope {case.label}"
    return ""


def _catalogue(_expected: Baseline) -> str:
    for fault in FAULTS.values():
        assert fault.scope is not None
        configuration = Configuration(fault=fault.name, properties=(fault.breaks,))
        found = _Case(fault.name, configuration, (initial_state(fault.scope),)).visited(stop=True).found
        if found.get(fault.breaks) != fault.actions:
            return f"fault {fault.name} shows in {found.get(fault.breaks, 'no')} actions, not in {fault.actions}"
    return ""


def _releases(_expected: Baseline) -> str:
    for runs in (_BRIEF, None):
        for name, seen in SEEN.items():
            with _at_most(_SECONDS):
                why = departure(WALKS[name], seen[:runs])
            if why:
                return why
    return ""


def _recorded(expected: Baseline) -> str:
    for case, right in expected.recorded:
        found = case.visited().found
        if found != right:
            differ = sorted(name for name in found.keys() | right.keys() if found.get(name) != right.get(name))
            return (
                f"{differ[0]} in {found.get(differ[0], 'no')} actions, not {right.get(differ[0], 'no')}: {case.label}"
            )
    return ""


def _alike(expected: Baseline) -> str:
    with _at_most(_STAGE_SECONDS):
        return otherwise(expected.walks)


def _prices() -> dict[str, Price]:
    """What every guard costs (`outlives table --price`), by guard and scope."""
    prices = {}
    for guard in (*GUARDS.values(), *WEAKEST.values()):
        for scope in PRICED:
            with _at_most(_SECONDS):
                prices[f"guard {guard.name}, {scope.name}"] = price(guard, scope)
    return prices


def _price(expected: Baseline) -> str:
    prices = _prices()
    for each, right in expected.prices.items():
        if prices[each] != right:
            return f"{each}: {prices[each]}, not {right}"
    return ""


def _tie(_expected: Baseline) -> str:
    from .machine import random_walk

    model = Configuration().model()
    with _at_most(_STAGE_SECONDS):
        for before, action, after in random_walk(model, _TIE_STEPS, 0):
            difference = next(untied(model.world, before, action, after), None)
            if difference is not None:
                return f"{action} is no step of the proved relation: {difference}"
    return ""


_THEOREMS = (("confirmed", Assumed(reader="any", anywhere=True)), ("optimistic-at-output", Assumed()))
"""Guard and assumptions under which it is proved."""


def _proved(guard: str, assumed: Assumed) -> bool:
    world = Configuration().world()
    terms = Terms(guard=GUARDS[guard], arithmetic=Arithmetic.of(world.rules), assumed=assumed.behaving(world.switches))
    return prove(terms, until_failure=True).verdict is Verdict.PROVED


def _proof(expected: Baseline) -> str:
    for guard, assumed in _THEOREMS:
        if guard in expected.proved:
            with _at_most(_STAGE_SECONDS):
                if not _proved(guard, assumed):
                    return f"guard {guard} is proved no more"
    return ""


def _machine(_expected: Baseline) -> str:
    from .machine import run_machine
    from .machine_settings import machine_profile

    settings = machine_profile("ci").changed(cases=_CASES, first_only=True, shrink_replays=0)
    with _at_most(_STAGE_SECONDS):
        run = run_machine(Configuration().model(), settings=settings, seed=0)
    for row in run.results:
        if row.verdict is Verdict.VIOLATED and row.trace is not None:
            return f"{row.property} in {len(row.trace.actions)} actions"
    return ""


def _told(_expected: Baseline) -> str:
    for name, told in TOLD.items():
        with _at_most(_SECONDS):
            wrong = next(ended_otherwise(told), "")
        if wrong:
            return f"{wrong}: {name}"
    return ""


OTHERWISE = "otherwise"
STAGES: dict[str, Callable[[Baseline], str]] = {
    "exhaustive": _exhaustive,
    "catalogue": _catalogue,
    "releases": _releases,
    "price": _price,
    "tie": _tie,
    "larger scopes": _larger,
    "recorded": _recorded,
    "proof": _proof,
    "machine": _machine,
    "told": _told,
    OTHERWISE: _alike,
}
"""In the order in which they are asked. The proof runs the functions of `lifetime` alone, and is asked about these. The
last one has no property and no release behind it: there the mutant merely does something else."""


@contextmanager
def _at_most(seconds: int) -> Iterator[None]:
    """Raise in the middle of whatever takes more of this process's time; nothing where there are no such signals."""
    if not hasattr(signal, "ITIMER_PROF"):
        yield
        return

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise _NeverEnds(f"takes more than {seconds} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
