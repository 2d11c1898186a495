"""Judging a lifted method: which guard its condition is, and whether it implies *confirmed*.

Belongs here: the solver questions about one method, and the check of their answers by running the method on plain
numbers. Conditions of guards are the functions of `outlives.model.lifetime`, run by the same executor.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import z3
from outlives.model.lifetime import (
    GUARDS,
    Counters,
    Guard,
    confirmed_guard,
    confirmed_lookahead,
    optimistic,
    retain,
    settled,
)

from ..proof.executor import Number, execute, symbol, term_of
from ..verdict import Verdict
from .stubs import SYMBOLS, end_of, symbols_for
from .symbolic import Method, Release, released_on, releases
from .words import Checker, Condition, condition_of

__all__ = ["Judgement", "Smallest", "encoder_decoder_branch", "judge"]

_BUDGET: Final = 2_000_000
_LOOK_AHEAD: Final = "look-ahead of the guard"
_FROM_SCHEDULER: Final = tuple(item.name for item in SYMBOLS if item.kind in ("scheduler", "switch"))

_WORDS: Final[Mapping[Callable[..., bool], str]] = MappingProxyType(
    {
        optimistic: "once every position of it counts as computed, promised outputs and drafts included",
        confirmed_lookahead: (
            "once it lies wholly below the position that no rejection can take back, "
            "and the drafter's look-ahead ({look_ahead}) has passed it as well"
        ),
        confirmed_guard: "once it lies wholly below the position that no rejection can take back",
        settled: "once it lies wholly below every position that a rejection or a step in flight can still reach",
        retain: "never while the request runs",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Smallest:
    """The smallest numbers at which an item is released that a rejection can still take back."""

    numbers: Mapping[str, int]
    """By name: what the condition reads, and always start, length, end, computed, placeholders and confirmed."""
    item: int
    """Which item of the request: 0, unless the items are not decided alone."""

    @property
    def words(self) -> str:
        """As a sentence with the numbers."""
        n = self.numbers
        other = "" if self.item == 0 else f" (item {self.item} of two)"
        read = [f"{name} {value}" for name, value in n.items() if name not in _ALWAYS_SHOWN]
        also = f", with {', '.join(read)}" if read else ""
        return (
            f"an item{other} at [{n['start']}, {n['end']}) is released at computed {n['computed']} with placeholders "
            f"{n['placeholders']}, though only {n['confirmed']} is confirmed{also}"
        )


_ALWAYS_SHOWN: Final = ("start", "length", "end", "computed", "placeholders", "confirmed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What was found out about the decoder-only condition of one method."""

    condition: str
    words: str
    guards: tuple[str, ...]
    """Guards with this very condition, whatever their call site."""
    look_ahead: str
    """Where the look-ahead in the condition comes from, or "" where there is none."""
    alone: bool | None
    """Whether each item is decided without regard to the others; None where the solver gave up."""
    verdict: Verdict
    smallest: Smallest | None
    why: str
    """Why the verdict is unknown, or the engines disagree."""
    stops_at: int | None


def judge(method: Method) -> Judgement:
    """Judge a method for decoder-only models. Raises `Unjudged` where it cannot be followed."""
    one = releases(method, 1, encoder_decoder=False)
    two = releases(method, 2, encoder_decoder=False)
    condition = condition_of(one, 0)
    alone = _decided_alone(one, two)
    guards, look_ahead = _guards_of(one, condition)
    words = f"an item is released when {condition.formula}"
    if alone is False:
        guards = ()
        words += " (where it is the only one of its request)"
    if guards:
        words = "an item is released " + _WORDS[GUARDS[guards[0]].condition].format(look_ahead=look_ahead)
    verdict, smallest, why = _implication(method, (one, two))
    return Judgement(
        condition=condition.formula,
        words=words,
        guards=guards,
        look_ahead=look_ahead,
        alone=alone,
        verdict=verdict,
        smallest=smallest,
        why=why,
        stops_at=one.stops_at or two.stops_at,
    )


def encoder_decoder_branch(method: Method) -> str:
    """The release condition of the same method for encoder-decoder models, in words. Raises `Unjudged`."""
    return condition_of(releases(method, 1, encoder_decoder=True), 0).formula


def _guard_term(guard: Guard, release: Release, item: int, look_ahead: Number) -> Any:
    """The guard's own condition on the symbols of the run."""
    v = release.values
    counters = Counters(
        computed=v["computed"],
        placeholders=v["placeholders"],
        in_flight=v["in flight"],
        stale=v["stale"],
        known=v["prompt"] + v["outputs"],
    )
    paths = execute(guard.condition, counters, end_of(v, item), look_ahead, context=release.context)
    return term_of(paths.merge(), release.context)


def _guards_of(release: Release, condition: Condition) -> tuple[tuple[str, ...], str]:
    """Names of the guards that mean the same, and the text of the look-ahead with which they do."""
    checker = Checker(release.base)
    look_ahead = symbol(_LOOK_AHEAD, release.context)
    names: list[str] = []
    text = ""
    for guard in GUARDS.values():
        term = _guard_term(guard, release, 0, look_ahead)
        if not _mentions(term, look_ahead.term):
            if checker.same(release.terms[0], term):
                names.append(guard.name)
            continue
        for candidate, written in _look_aheads(release, condition):
            given = z3.substitute(term, (look_ahead.term, candidate))
            if checker.always(candidate >= 0) and checker.same(release.terms[0], given):
                names.append(guard.name)
                text = written
                break
    return tuple(names), text


def _look_aheads(release: Release, condition: Condition) -> list[tuple[Any, str]]:
    """What the look-ahead of a guard may be in this condition: terms of the scheduler's own numbers."""
    read = [name for name in _FROM_SCHEDULER if any(_mentions(a, release.values[name].term) for a in release.atoms)]
    found = [(release.values[name].term, _written(name, 1)) for name in read]
    if condition.linear is not None:
        parts = [(name, factor) for name, factor in condition.linear.items() if name in _FROM_SCHEDULER]
        constant = condition.linear.get("", 0)
        if parts or constant > 0:
            term: Any = z3.IntVal(constant, release.context)
            for name, factor in parts:
                term = term + factor * release.values[name].term
            written = [_written(name, factor) for name, factor in parts] + ([str(constant)] if constant else [])
            found.append((term, " + ".join(written)))
    return found


def _written(name: str, factor: int) -> str:
    if any(item.name == name and item.kind == "switch" for item in SYMBOLS):
        return f"{factor} if {name} else 0"
    return name if factor == 1 else f"{factor} * {name}"


def _mentions(term: Any, wanted: Any) -> bool:
    pending = [term]
    while pending:
        item = pending.pop()
        if item.eq(wanted):
            return True
        pending.extend(item.children())
    return False


def _decided_alone(one: Release, two: Release) -> bool | None:
    """Whether, beside a second item, each one is released exactly when it would be without the other."""
    unknown = False
    for item in range(2):
        renamed = z3.substitute(
            one.terms[0].translate(two.context),
            *[
                (z3.Int(f"{part} 0", two.context), z3.Int(f"{part} {item}", two.context))
                for part in ("start", "length", "embeddings")
            ],
        )
        answer = Checker(two.base).ask(two.terms[item] != renamed)
        if answer == z3.sat:
            return False
        unknown = unknown or answer != z3.unsat
    return None if unknown else True


def _implication(method: Method, found: tuple[Release, ...]) -> tuple[Verdict, Smallest | None, str]:
    """Whether every released item is confirmed, in each of the worlds; else the smallest numbers, run for real."""
    unknown = False
    for release in found:
        items = len(release.terms)
        for item in range(items):
            late = _guard_term(GUARDS["confirmed"], release, item, symbol(_LOOK_AHEAD, release.context))
            early = z3.And(release.terms[item], z3.Not(late))
            answer = Checker(release.base).ask(early)
            if answer == z3.unsat:
                continue
            if answer == z3.sat:
                # Numbers that a scheduler can have are preferred: it never promises more than it counts as computed.
                sane = term_of(release.values["placeholders"] <= release.values["computed"], release.context)
                numbers = _minimised(release, item, z3.And(early, sane)) or _minimised(release, item, early)
                if numbers is not None:
                    return _replayed(method, release, item, numbers)
            unknown = True
    if unknown:
        return Verdict.UNKNOWN, None, "the solver gave up within its budget"
    return Verdict.PROVED, None, ""


def _minimised(release: Release, item: int, early: Any) -> dict[str, int] | None:
    """The least numbers: first the item's end, then each symbol in its order."""
    optimizer = z3.Optimize(ctx=release.context)
    optimizer.set("ctrl_c", False)  # the solver would take Ctrl-C for itself, and the run would go on
    optimizer.set("rlimit", _BUDGET)
    optimizer.add(release.base, early)
    symbols = symbols_for(len(release.terms))
    optimizer.minimize(term_of(end_of(release.values, item), release.context))
    for part in symbols:
        optimizer.minimize(release.values[part.name].term)
    if optimizer.check() != z3.sat:
        return None
    model = optimizer.model()
    return {part.name: model.eval(release.values[part.name].term, model_completion=True).as_long() for part in symbols}


def _replayed(
    method: Method, release: Release, item: int, numbers: Mapping[str, int]
) -> tuple[Verdict, Smallest | None, str]:
    items = len(release.terms)
    shown = {
        "start": numbers[f"start {item}"],
        "length": numbers[f"length {item}"],
        "end": end_of(numbers, item),
        "computed": numbers["computed"],
        "placeholders": numbers["placeholders"],
        "confirmed": numbers["computed"] - numbers["placeholders"],
    }
    for part in symbols_for(items):
        term = release.values[part.name].term
        own = part.name in (f"start {item}", f"length {item}", "computed", "placeholders")
        if not own and any(_mentions(atom, term) for atom in release.atoms):
            shown[part.name] = numbers[part.name]
    smallest = Smallest(numbers=MappingProxyType(shown), item=item)
    released = released_on(method, numbers, items, encoder_decoder=False)
    if item in released and shown["end"] > shown["confirmed"]:
        return Verdict.VIOLATED, smallest, ""
    why = f"the solver says that {smallest.words}; the method itself, run on these numbers, does not"
    return Verdict.DISAGREE, smallest, why
