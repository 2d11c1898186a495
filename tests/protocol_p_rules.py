"""The rules of the benchmark protocol P, as pure functions over small values.

Belongs here: the records, what happens to them, and the numbers of a scope. The model of them is in `protocol_p.py`.

What concerns one request alone stands in its column: its record, and its entry in each step in flight. What requests
share is the book (references and freeable hashes) and the pipe (the worker, and what each step tells it). An action of
one request reads its column and the book. A pass, or a completion, has to decide for all requests at once; it reads
of each column only what the decision depends on (`need`, `head`, `want`), and every column then takes its own part.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

Item = tuple[int, int, int]
"""Offset, length, hash."""


class Record(NamedTuple):
    """What the scheduler knows of one request. Status: N(ew), W(aiting), R(unning), P(reempted), F(inished)."""

    st: str
    c: int = 0
    p: int = 0
    o: int = 0
    d: int = 0


class Entry(NamedTuple):
    """One request's part of a step. k = -1: a chunk that samples nothing."""

    start: int
    n: int
    k: int
    stale: int = 0


class Column(NamedTuple):
    """One request: its record, and its part of each step in flight, the oldest first."""

    record: Record
    entries: tuple[Entry | None, ...] = ()


class Book(NamedTuple):
    """The items that each request references, and the freeable hashes, oldest first."""

    refs: tuple[frozenset[int], ...]
    fifo: tuple[int, ...] = ()


class Load(NamedTuple):
    """What a step tells the worker to hold, and to drop first."""

    enc: frozenset[int]
    drop: frozenset[int]


class Pipe(NamedTuple):
    """The hashes that the worker holds (or that it crashed), and the steps in flight, the oldest first."""

    worker: frozenset[int] | str = frozenset()
    steps: tuple[Load, ...] = ()


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


CRASHED = "crashed"
FINISHED = Record("F")


# --- rules over the book ------------------------------------------------------------------------------------------


def referenced(scope: Scope, refs: Sequence[frozenset[int]]) -> set[int]:
    """The hashes that some request references."""
    return {items[i][2] for items, mine in zip(scope.items, refs, strict=True) for i in mine}


def unref(scope: Scope, book: Book, r: int, items: Iterable[int]) -> Book:
    """Request r drops these items, in order; a hash that nobody references any more joins the fifo."""
    refs, fifo = list(book.refs), book.fifo
    for i in items:
        if i in refs[r]:
            refs[r] -= {i}
            h = scope.items[r][i][2]
            if h not in referenced(scope, refs):
                fifo = (*fifo, h)
    return Book(tuple(refs), fifo)


def unref_all(scope: Scope, book: Book, r: int) -> Book:
    """Request r drops every item."""
    return unref(scope, book, r, range(len(scope.items[r])))


# --- rules over one column ----------------------------------------------------------------------------------------


def corrected(entries: Iterable[Entry | None], by: int) -> tuple[Entry | None, ...]:
    """The live windows start so much lower."""
    return tuple(
        entry if entry is None or entry.stale else entry._replace(start=max(0, entry.start - by)) for entry in entries
    )


def stale(entries: Iterable[Entry | None]) -> tuple[Entry | None, ...]:
    """Nobody waits for these any more."""
    return tuple(entry and entry._replace(stale=1) for entry in entries)


def arrive(_scope: Scope, column: Column) -> Column:
    """The request is waiting."""
    return column._replace(record=column.record._replace(st="W"))


def finish(_scope: Scope, column: Column) -> Column:
    """The request is over."""
    return Column(FINISHED, stale(column.entries))


def preempt(scope: Scope, column: Column) -> Column:
    """The request loses what it computed, save a kept prefix."""
    record = column.record
    kept = scope.kept if record.c - record.p >= scope.kept else 0
    return Column(record._replace(st="P", c=kept, p=0, d=0), stale(column.entries))


def known(scope: Scope, record: Record) -> int:
    """The tokens that the scheduler counts on: the prompt, outputs, and those in flight."""
    return scope.prompt + record.o + record.p


def take(scope: Scope, column: Column, n: int) -> Column:
    """The request's part of a new step of n tokens; none where n is 0."""
    (_, c, p, o, d), entries = column
    if n == 0:
        return Column(column.record, (*entries, None))
    k = max(-1, c + n - known(scope, column.record))
    if k >= 0:
        p, d = p + 1 + k, 1
    return Column(Record("R", c + n, p, o, d), (*entries, Entry(c, n, k)))


def settle(scope: Scope, column: Column, a: int | None) -> Column:
    """The output of the oldest step, a drafts of it accepted; None where there was nothing to accept."""
    record, (entry, *later) = column
    if a is None or entry is None:
        return Column(record, tuple(later))
    back = entry.k - a
    if entry.stale:
        return Column(record._replace(c=max(0, record.c - back)), corrected(later, back))
    if record.o + a + 1 >= scope.outputs:
        return finish(scope, Column(record, tuple(later)))
    record = record._replace(c=record.c - back, p=record.p - entry.k - 1, o=record.o + a + 1)
    return Column(record, corrected(later, back))


# --- what decisions depend on -------------------------------------------------------------------------------------


class Need(NamedTuple):
    """What a request asks of a pass: tokens, and how far ahead each item begins (None: not within these tokens)."""

    running: bool
    n: int
    ahead: tuple[int | None, ...]


Head = tuple[tuple[int | None, tuple[int, ...]], ...]
"""Of the oldest step's output: how many drafts may be accepted (None: nothing to choose), and the items each frees."""
NOTHING: Head = ((None, ()),)


def need(scope: Scope, column: Column, r: int) -> Need | None:
    """What request r asks of the next pass; None where it is to get nothing."""
    st, c, p, _, d = record = column.record
    n = min(scope.budget, known(scope, record) + d * scope.drafts - c)
    if st in "NF" or n <= 0 or (p > 0 and c - p + 2 >= scope.prompt + scope.outputs):
        return None
    ahead = (max(0, off - c) if off < c + n and off + length > c else None for off, length, _ in scope.items[r])
    return Need(st == "R", n, tuple(ahead))


def head(scope: Scope, column: Column, r: int) -> Head:
    """What the output of the oldest step may be for request r."""
    record, entries = column
    entry = entries[0] if entries else None
    if entry is None or record.st == "F":
        return NOTHING
    if entry.stale:
        free = scope.fault == "bad_stale" and record.c > 0 and entry.k >= 0
        return tuple((a, ()) for a in range(entry.k + 1)) if free else NOTHING
    choices = range(entry.k + 1) if entry.k >= 0 else (None,)
    return tuple((a, freed(scope, settle(scope, column, a).record, r)) for a in choices)


def freed(scope: Scope, after: Record, r: int) -> tuple[int, ...]:
    """The items of request r that a live output frees, with this record after it."""
    limit = after.c if scope.fault == "bad_rule" else after.c - after.p
    return tuple(i for i, (off, length, _) in enumerate(scope.items[r]) if after.st == "F" or off + length <= limit)


def want(scope: Scope, column: Column, r: int) -> frozenset[int]:
    """The hashes that the oldest step reads for request r, finished or not."""
    entry = column.entries[0] if column.entries else None
    if entry is None:
        return frozenset()
    end = entry.start + entry.n
    return frozenset(h for off, length, h in scope.items[r] if off < end and off + length > entry.start)


# --- rules over all requests --------------------------------------------------------------------------------------


def schedule(scope: Scope, book: Book, needs: Sequence[Need | None]) -> tuple[Book, tuple[int, ...], Load] | None:
    """One pass: running requests by number, then the others: tokens for each. None where nobody gets any."""
    refs, fifo = list(book.refs), list(book.fifo)
    given, budget = [0] * len(needs), scope.budget
    enc, drop = set(), set()
    asking = [(not each.running, r, each) for r, each in enumerate(needs) if each is not None]
    for _, r, each in sorted(asking):
        n = min(budget, each.n)
        for i, ((_, _, h), ahead) in enumerate(zip(scope.items[r], each.ahead, strict=True)):
            if ahead is None or ahead >= n or i in refs[r]:
                continue
            if h in fifo:
                fifo.remove(h)
            else:
                held = referenced(scope, refs)
                if h not in held:
                    if len(held) + len(fifo) >= scope.slots:
                        if not fifo:
                            n = ahead
                            break
                        drop.add(fifo.pop(0))
                    enc.add(h)
            refs[r] |= {i}
        given[r] = n
        budget -= n
    if not any(given):
        return None
    return Book(tuple(refs), tuple(fifo)), tuple(given), Load(frozenset(enc), frozenset(drop))


def outputs(scope: Scope, book: Book, heads: Sequence[Head]) -> Iterator[tuple[tuple[int | None, ...], Book]]:
    """Every output that the oldest step may have: the drafts accepted of each request, and the book after it."""
    for chosen in product(*heads):
        yield tuple(a for a, _ in chosen), release(scope, book, [items for _, items in chosen])


def release(scope: Scope, book: Book, freed: Sequence[Iterable[int]]) -> Book:
    """Every request drops its items of these."""
    for r, items in enumerate(freed):
        book = unref(scope, book, r, items)
    return book


# --- rules over the pipe ------------------------------------------------------------------------------------------


def send(pipe: Pipe, load: Load) -> Pipe:
    """One more step in flight."""
    return Pipe(pipe.worker, (*pipe.steps, load))


def execute(pipe: Pipe) -> Pipe:
    """The oldest step reaches the worker."""
    load, *later = pipe.steps
    return Pipe((frozenset(pipe.worker) - load.drop) | load.enc, tuple(later))


def finds_all(pipe: Pipe, wants: Sequence[frozenset[int]]) -> bool:
    """Whether the worker, told so by the oldest step, holds what that reads."""
    return execute(pipe).worker >= frozenset().union(*wants)  # type: ignore[operator]
