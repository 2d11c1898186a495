"""The rules of the benchmark protocol P, as pure functions over small values.

Belongs here: the records (the desk, which is what the scheduler knows; a step in flight; the numbers of a scope) and
what happens to them. The model that is made of them is in `protocol_p.py`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

Item = tuple[int, int, int]
"""Offset, length, hash."""
STALE = -1
"""As a correction: the request's entries become stale. A number of 0 or more: their windows start so much lower."""


class Record(NamedTuple):
    """What the scheduler knows of one request. Status: N(ew), W(aiting), R(unning), P(reempted), F(inished)."""

    st: str
    c: int = 0
    p: int = 0
    o: int = 0
    d: int = 0
    refs: frozenset[int] = frozenset()


class Desk(NamedTuple):
    """Everything the scheduler knows, save the steps in flight: the requests, and freeable hashes, oldest first."""

    records: tuple[Record, ...]
    fifo: tuple[int, ...] = ()


class Entry(NamedTuple):
    """One request's part of a step. k = -1: a chunk that samples nothing."""

    start: int
    n: int
    k: int
    stale: int = 0


class Step(NamedTuple):
    """One step in flight."""

    entries: tuple[Entry | None, ...]
    enc: frozenset[int]
    drop: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The numbers of a scope, and which fault it has (`bad_rule`, `bad_stale` or none)."""

    items: tuple[tuple[Item, ...], ...]
    outputs: int
    drafts: int
    depth: int
    prompt: int = 6
    budget: int = 4
    slots: int = 1
    kept: int = 4
    fault: str = ""


FINISHED = Record("F")


# --- rules over the desk ------------------------------------------------------------------------------------------


def referenced(scope: Scope, records: Sequence[Record]) -> set[int]:
    """The hashes that some request references."""
    return {items[i][2] for items, record in zip(scope.items, records, strict=True) for i in record.refs}


def unref(scope: Scope, desk: Desk, r: int, items: Iterable[int]) -> Desk:
    """Request r drops these items, in order; a hash that nobody references any more joins the fifo."""
    for i in items:
        record = desk.records[r]
        if i in record.refs:
            desk = put(desk, r, record._replace(refs=record.refs - {i}))
            h = scope.items[r][i][2]
            if h not in referenced(scope, desk.records):
                desk = desk._replace(fifo=(*desk.fifo, h))
    return desk


def put(desk: Desk, r: int, record: Record) -> Desk:
    """The desk with another record for request r."""
    return desk._replace(records=desk.records[:r] + (record,) + desk.records[r + 1 :])


def finish(scope: Scope, desk: Desk, r: int) -> Desk:
    """The request is over: every reference goes."""
    return put(unref(scope, desk, r, range(len(scope.items[r]))), r, FINISHED)


def preempt(scope: Scope, desk: Desk, r: int) -> Desk:
    """The request loses what it computed, save a kept prefix."""
    desk = unref(scope, desk, r, range(len(scope.items[r])))
    record = desk.records[r]
    kept = scope.kept if record.c - record.p >= scope.kept else 0
    return put(desk, r, record._replace(st="P", c=kept, p=0, d=0))


def schedule(scope: Scope, desk: Desk) -> tuple[Desk, Step] | None:
    """One pass: running requests by number, then the others; None where nobody gets a token."""
    records, fifo = list(desk.records), list(desk.fifo)
    entries: list[Entry | None] = [None] * len(records)
    enc, drop, budget = set(), set(), scope.budget
    order = [r for r, record in enumerate(records) if record.st == "R"]
    order += [r for r, record in enumerate(records) if record.st in "WP"]
    for r in order:
        _, c, p, o, d, refs = records[r]
        if p > 0 and c - p + 2 >= scope.prompt + scope.outputs:
            continue
        known = scope.prompt + o + p
        n = min(budget, known + d * scope.drafts - c)
        if n <= 0:
            continue
        for i, (off, length, h) in enumerate(scope.items[r]):
            if off >= c + n or off + length <= c or i in refs:
                continue
            if h in fifo:
                fifo.remove(h)
            else:
                held = referenced(scope, records)
                if h not in held:
                    if len(held) + len(fifo) >= scope.slots:
                        if not fifo:
                            n = max(0, off - c)
                            break
                        drop.add(fifo.pop(0))
                    enc.add(h)
            refs = refs | {i}
            records[r] = records[r]._replace(refs=refs)
        if n == 0:
            continue
        budget -= n
        k = c + n - known
        if k >= 0:
            p, d = p + 1 + k, 1
        entries[r] = Entry(c, n, max(k, -1))
        records[r] = Record("R", c + n, p, o, d, refs)
    if not any(entries):
        return None
    return Desk(tuple(records), tuple(fifo)), Step(tuple(entries), frozenset(enc), frozenset(drop))


def choices(scope: Scope, desk: Desk, step: Step) -> list[Sequence[int | None]]:
    """Per request, how many drafts may be accepted in this step; None where there is nothing to choose."""
    found: list[Sequence[int | None]] = []
    for entry, record in zip(step.entries, desk.records, strict=True):
        samples = entry is not None and entry.k >= 0 and record.st != "F"
        if samples and entry is not None and entry.stale:
            samples = scope.fault == "bad_stale" and record.c > 0
        found.append(range(entry.k + 1) if samples and entry is not None else (None,))
    return found


def process(scope: Scope, desk: Desk, step: Step, accepted: Sequence[int | None]) -> tuple[Desk, tuple[int, ...]]:
    """The output of a step, and for each request the correction of its later entries."""
    corrections = [0] * len(desk.records)
    for r, (entry, a) in enumerate(zip(step.entries, accepted, strict=True)):
        record = desk.records[r]
        if entry is None or record.st == "F":
            continue
        if entry.stale:
            if a is not None:
                corrections[r] = entry.k - a
                desk = put(desk, r, record._replace(c=max(0, record.c - corrections[r])))
            continue
        if a is not None:
            if record.o + a + 1 >= scope.outputs:
                desk = finish(scope, desk, r)
                corrections[r] = STALE
                continue
            corrections[r] = entry.k - a
            record = record._replace(c=record.c - corrections[r], p=record.p - entry.k - 1, o=record.o + a + 1)
            desk = put(desk, r, record)
        limit = record.c if scope.fault == "bad_rule" else record.c - record.p
        done = [i for i, (off, length, _) in enumerate(scope.items[r]) if off + length <= limit]
        desk = unref(scope, desk, r, done)
    return desk, tuple(corrections)


# --- rules over one step ------------------------------------------------------------------------------------------


def execute(scope: Scope, worker: frozenset[int], step: Step) -> frozenset[int] | None:
    """What the worker holds after this step; None where an entry, stale or not, needs an item that it does not."""
    worker = (worker - step.drop) | step.enc
    for entry, items in zip(step.entries, scope.items, strict=True):
        if entry is not None:
            for off, length, h in items:
                if off < entry.start + entry.n and off + length > entry.start and h not in worker:
                    return None
    return worker


def correct(step: Step, corrections: Sequence[int]) -> Step:
    """A later step after an earlier one was processed, or after requests lost their admission."""
    return step._replace(
        entries=tuple(
            entry
            if entry is None or entry.stale or correction == 0
            else entry._replace(stale=1)
            if correction == STALE
            else entry._replace(start=max(0, entry.start - correction))
            for entry, correction in zip(step.entries, corrections, strict=True)
        )
    )


Due = tuple[int | None, ...] | None


def halve(step: Step) -> tuple[Due, Step]:
    """k of the live entries, and the step without them."""
    due = tuple(None if entry is None or entry.stale else entry.k for entry in step.entries)
    told = tuple(entry if entry is None or entry.stale else entry._replace(k=0) for entry in step.entries)
    return due, step._replace(entries=told)


def whole(due: Due, told: Step | None) -> Step:
    """The step of these two; without `told` its windows are left open, which processing does not read."""
    live = [None if k is None else Entry(0, 0, k) for k in due or ()]
    if told is None:
        return Step(tuple(live), frozenset(), frozenset())
    if due is None:
        return told
    return told._replace(
        entries=tuple(
            other if k is None or other is None else other._replace(k=k)
            for k, other in zip(due, told.entries, strict=True)
        )
    )


def corrected(corrections: tuple[int, ...], due: Due, told: Step | None) -> tuple[Due, Step | None]:
    """`correct`, for the two halves of a step, or of none."""
    return (None, None) if told is None else halve(correct(whole(due, told), corrections))


def only_stale(scope: Scope, r: int) -> tuple[int, ...]:
    """The correction that makes the entries of request r stale."""
    return tuple(STALE if other == r else 0 for other in range(len(scope.items)))
