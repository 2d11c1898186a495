"""The loops of the compiled search, for numba: from packed states to the states after them, by tables alone.

Belongs here: what runs once per state, transition or look-up, compiled; all of it, because numba keeps the machine code
of a file for as long as that file does not change. What fills and grows the tables is in `compiled_tables.py`.

Theory of operation. A state is two words of 64 bits. Moves that read the same bits share one row of the hash table
`groups`; the row says where in `parts` their answers stand (an entry's number, a gate's or a property's yes or no).
What followers write stands in the hash table `followers`. An answer that is not there yet is asked for (`misses`),
and its state is put aside (`todo`) until Python has answered. So nothing is ever guessed, and nothing is dropped: where
a table is full the flag of that table in `head` is set, and Python makes it larger before the state is tried again.
"""

from typing import Any

import numpy as np

from .jit import compiled, inlined

__all__ = ["expand", "judge_states", "rehash_followers", "rehash_groups", "reseed", "walk"]

Array = Any
"""Of numpy; numba finds out the rest."""

# what stands where in `head`
STATES, DONE, TRANSITIONS, OUTSIDE, ENDS, DEADLOCKS, DEADLOCK = range(7)
GROUPS, PARTS, FOLLOWERS, MISSES, LOGGED, TODO, ROWS, NEEDED = range(7, 15)
FULL_GROUPS, FULL_PARTS, FULL_FOLLOWERS, FULL_MISSES, FULL_OUT, FULL_STATES, FULL_LOG = range(15, 22)
HEAD = 22
# kinds of answers, in `misses`
GATE, MOVE, FOLLOWER, WITHIN, PROPERTY = range(5)
UNKNOWN, ASKED = -1, -2
"""In `parts`: nobody knows; Python was asked."""
# of a state, in `spans`: where its rows begin, how many there are, how many entries it uses, and what became of it
FIRST, COUNT, USES, FATE = range(4)
GOES_ON, IS_OUTSIDE, IS_END, IS_DEADLOCK, IS_OPEN = range(5)
BATCH = 256
"""States whose successors are looked up together, so that the memory answers many questions at a time."""

_U = np.uint64
_ZERO, _ONE = _U(0), _U(1)
_C1, _C2, _C3, _C4 = _U(0x9E3779B97F4A7C15), _U(0xC2B2AE3D27D4EB4F), _U(0x165667B19E3779F9), _U(0xD6E8FEB86659FD93)
_S32, _S29 = _U(32), _U(29)
_LOW = _U(0xFFFFFFFF)
_KEEP, _WATCHED = _U(0xFFFF), _U(0x10000)
WATCHED, NOTE = 16, _U(17)
"""In the third word of a branch: which of `keeps` it keeps, a bit for a branch that properties must see, its note."""
READY = _U(2)
"""In `followers`: the answer is there; 1: Python was asked; 0: an empty row."""


@inlined
def _mix(lo: Any, hi: Any, tag: Any) -> Any:
    """A number that looks random."""
    h = (lo ^ (lo >> _S32)) * _C1 + (hi ^ (hi >> _S29)) * _C2 + tag * _C3
    h ^= h >> _S29
    h *= _C4
    return h ^ (h >> _S32)


@inlined
def _group(head: Array, groups: Array, sizes: Array, masks: Array, g: int, lo: Any, hi: Any, room: int) -> Any:
    """Where the parts of group g begin in this state; -1 where they would need a new row and there is no room."""
    lo &= masks[g, 0]
    hi &= masks[g, 1]
    tag = _U(g) + _ONE
    last = _U(groups.shape[0] - 1)
    row = _mix(lo, hi, tag) & last
    while True:
        there = groups[row, 2]
        if there == tag and groups[row, 0] == lo and groups[row, 1] == hi:
            return np.int64(groups[row, 3])
        if there == _ZERO:
            break
        row = (row + _ONE) & last
    if 10 * head[GROUPS] + 10 > 7 * groups.shape[0]:
        head[FULL_GROUPS] = 1
        return -1
    if head[PARTS] + sizes[g] > room:
        head[FULL_PARTS] = 1
        return -1
    base = head[PARTS]
    head[PARTS] += sizes[g]
    head[GROUPS] += 1
    groups[row, 0], groups[row, 1] = lo, hi
    groups[row, 2], groups[row, 3] = tag, _U(base)
    return np.int64(base)


@compiled
def _ask(
    head: Array, misses: Array, masks: Array, g: int, lo: Any, hi: Any, kind: int, which: int, place: Any, note: Any
) -> bool:
    """Put a question to Python; False where there is no room for it."""
    count = head[MISSES]
    if count >= misses.shape[0]:
        head[FULL_MISSES] = 1
        return False
    misses[count, 0], misses[count, 1], misses[count, 2] = _U(kind), _U(which), _U(place)
    misses[count, 3], misses[count, 4], misses[count, 5] = lo & masks[g, 0], hi & masks[g, 1], note
    head[MISSES] = count + 1
    return True


@inlined
def _follow(head: Array, followers: Array, key: Any) -> Any:
    """The row of what a follower writes, or where it would stand; -1 where there is no room."""
    last = _U(followers.shape[0] - 1)
    h = key * _C1
    row = (h ^ (h >> _S32)) & last
    while True:
        if followers[row, 0] == key or followers[row, 3] == _ZERO:
            break
        row = (row + _ONE) & last
    if followers[row, 3] == _ZERO and 10 * head[FOLLOWERS] + 10 > 7 * followers.shape[0]:
        head[FULL_FOLLOWERS] = 1
        return -1
    return np.int64(row)


@compiled
def expand(head: Array, plans: Any, answers: Any, found: Any, states: Array, first: int, todo: Array) -> None:
    """What follows the states that stand in `todo`, counted from number `first`: their rows in `out` (the state after)
    and `by` (the branch), their `spans`, and the entries that they use. A state with an open question stays in `todo`,
    with the question in `misses`."""
    plan, follower_groups, masks, sizes, eager, bases = plans
    groups, parts, entries, branches, keeps, followers, heard, misses = answers
    out, by, spans, used = found
    room = parts.shape[0]
    rows = head[ROWS]
    count = head[TODO]
    left = 0
    lo_before, hi_before = _ZERO, _ZERO
    for batch in range(0, count, BATCH):
        end = min(batch + BATCH, count)
        # first where the parts of every state's groups begin: looks into the memory that do not wait for each other
        for i in range(batch, end):
            r = i - batch
            lo, hi = states[first + todo[i], 0], states[first + todo[i], 1]
            for g in range(masks.shape[0]):
                base = -1
                if eager[g]:
                    # neighbours share most of their components
                    if i > batch and not ((lo ^ lo_before) & masks[g, 0] | (hi ^ hi_before) & masks[g, 1]):
                        base = bases[r - 1, g]
                    else:
                        base = _group(head, groups, sizes, masks, g, lo, hi, room)
                bases[r, g] = base
            lo_before, hi_before = lo, hi
        # then the entries of every state
        for i in range(batch, end):
            at = todo[i]
            lo = states[first + at, 0]
            hi = states[first + at, 1]
            r = i - batch
            missing = False
            uses = 0
            inside = parts[bases[r, 0]] if bases[r, 0] >= 0 else ASKED
            if inside < 0:
                missing = True
                if inside == UNKNOWN and _ask(head, misses, masks, 0, lo, hi, WITHIN, 0, bases[r, 0], _ZERO):
                    parts[bases[r, 0]] = ASKED
            for m in range(plan.shape[0] if inside > 0 else 0):
                entry = -1
                for kind in range(GATE, MOVE + 1):  # the gate, if there is one, and then the move itself
                    g = plan[m, 2 * kind]
                    if g < 0:
                        continue
                    if bases[r, g] < 0:
                        bases[r, g] = _group(head, groups, sizes, masks, g, lo, hi, room)
                    if bases[r, g] < 0:
                        missing = True
                        entry = 0
                        break
                    place = bases[r, g] + plan[m, 2 * kind + 1]
                    entry = parts[place]
                    if entry < 0:
                        missing = True
                        if entry == UNKNOWN and _ask(head, misses, masks, g, lo, hi, kind, m, place, _ZERO):
                            parts[place] = ASKED
                    if entry <= 0:
                        break
                if entry > 0:
                    used[at, uses] = entry
                    uses += 1
            spans[at, USES] = uses
            spans[at, FATE] = IS_OUTSIDE if inside == 0 else IS_OPEN if missing else GOES_ON
        # then what these entries lead to
        for i in range(batch, end):
            at = todo[i]
            lo = states[first + at, 0]
            hi = states[first + at, 1]
            r = i - batch
            missing = spans[at, FATE] == IS_OPEN
            refused = False
            row_first = rows
            for use in range(spans[at, USES]):
                entry = used[at, use]
                if entries[entry, 2]:
                    refused = True
                m = entries[entry, 3]
                f_first = plan[m, 4]
                f_end = f_first + plan[m, 5]
                for b in range(entries[entry, 0], entries[entry, 0] + entries[entry, 1]):
                    about = branches[b, 2]
                    keep = about & _KEEP
                    after_lo = lo & keeps[keep, 0] | branches[b, 0]
                    after_hi = hi & keeps[keep, 1] | branches[b, 1]
                    for f in range(f_first, f_end):
                        g = follower_groups[f]
                        if bases[r, g] < 0:
                            bases[r, g] = _group(head, groups, sizes, masks, g, lo, hi, room)
                        if bases[r, g] < 0:
                            missing = True
                            break
                        note = about >> NOTE
                        key = _U(bases[r, g]) << _S32 | _U(heard[note, f - f_first])
                        row = _follow(head, followers, key)
                        if row < 0:
                            missing = True
                        elif followers[row, 3] == READY:
                            after_lo |= followers[row, 1]
                            after_hi |= followers[row, 2]
                        else:
                            missing = True
                            if followers[row, 3] == _ZERO and _ask(
                                head, misses, masks, g, lo, hi, FOLLOWER, f, row, note
                            ):
                                followers[row, 0] = key
                                followers[row, 3] = _ONE
                                head[FOLLOWERS] += 1
                    if missing:
                        continue
                    if rows >= out.shape[0]:
                        head[FULL_OUT] = 1
                        missing = True
                        continue
                    out[rows, 0] = after_lo
                    out[rows, 1] = after_hi
                    by[rows] = b
                    rows += 1
            if missing:
                rows = row_first
                todo[left] = at
                left += 1
                continue
            if spans[at, FATE] == GOES_ON and rows == row_first:
                spans[at, FATE] = IS_DEADLOCK if refused else IS_END
            spans[at, FIRST] = row_first
            spans[at, COUNT] = rows - row_first
    head[ROWS] = rows
    head[TODO] = left


@compiled
def walk(head: Array, found: Any, branches: Array, space: Any, first: int, end: int, limit: int) -> None:
    """Take the rows of expanded states up to number `end` in order; `spans` begin with number `first`. Stops where a
    table is full (its flag in `head`), and where `limit` states are known (0: no limit)."""
    out, by, spans, used = found
    states, parents, seen, touched, visits, log = space
    last = _U(seen.shape[0] - 1)
    i = head[DONE] - first
    while i < end - first:
        # a batch: whole states, as many as the buffer of looks holds
        j = i
        batch = 0
        while j < end - first and j < i + BATCH and batch + spans[j, COUNT] <= touched.shape[0]:
            batch += spans[j, COUNT]
            j += 1
        if j == i or head[LOGGED] + batch > log.shape[0]:
            head[FULL_LOG] = 1
            return
        known = head[STATES]
        if known + batch > states.shape[0] or 5 * (known + batch) > 3 * seen.shape[0]:
            head[FULL_STATES] = 1
            head[NEEDED] = known + batch
            return
        # three passes, so that each waits for many places of the memory at once
        k = 0
        for at in range(i, j):
            for row in range(spans[at, FIRST], spans[at, FIRST] + spans[at, COUNT]):
                h = _mix(out[row, 0], out[row, 1], _ZERO)
                touched[k, 0] = h
                touched[k, 1] = seen[h & last]
                k += 1
        for k in range(batch):
            there = touched[k, 1]
            if there != _ZERO:
                touched[k, 1] = states[(there & _LOW) - _ONE, 0]
        k = 0
        for at in range(i, j):
            if 0 < limit <= known:
                return
            for row in range(spans[at, FIRST], spans[at, FIRST] + spans[at, COUNT]):
                h = touched[k, 0]
                k += 1
                mark = h >> _S32 << _S32
                slot = h & last
                while True:
                    there = seen[slot]
                    if there == _ZERO:
                        seen[slot] = mark | _U(known + 1)
                        states[known, 0] = out[row, 0]
                        states[known, 1] = out[row, 1]
                        parents[known] = first + at
                        known += 1
                        break
                    if there & ~_LOW == mark:
                        other = (there & _LOW) - _ONE
                        if states[other, 0] == out[row, 0] and states[other, 1] == out[row, 1]:
                            break
                    slot = (slot + _ONE) & last
                if branches[by[row], 2] & _WATCHED:
                    logged = head[LOGGED]
                    log[logged, 0], log[logged, 1] = _U(first + at), _U(by[row])
                    log[logged, 2], log[logged, 3] = out[row, 0], out[row, 1]
                    head[LOGGED] = logged + 1
            for use in range(spans[at, USES]):
                visits[used[at, use]] += 1
            fate = spans[at, FATE]
            if fate == IS_OUTSIDE:
                head[OUTSIDE] += 1
            elif fate == IS_END:
                head[ENDS] += 1
            elif fate == IS_DEADLOCK:
                head[DEADLOCKS] += 1
                if head[DEADLOCK] < 0:
                    head[DEADLOCK] = first + at
            head[TRANSITIONS] += spans[at, COUNT]
            head[STATES] = known
            head[DONE] = first + at + 1
        i = j


@compiled
def judge_states(
    head: Array, plans: Any, answers: Any, states: Array, first: int, g: int, part: int, p: int
) -> tuple[int, int, int]:
    """The property number p, whose answers are this part of group g, in the states from number `first` on: how many
    are open, how many break it, and the first that does (-1: none)."""
    _, _, masks, sizes, _, _ = plans
    groups, parts, _, _, _, _, _, misses = answers
    still = broken = 0
    at = -1
    for number in range(first, head[STATES]):
        lo, hi = states[number, 0], states[number, 1]
        base = _group(head, groups, sizes, masks, g, lo, hi, parts.shape[0])
        answer = parts[base + part] if base >= 0 else ASKED
        if answer < 0:
            still += 1
            if answer == UNKNOWN and _ask(head, misses, masks, g, lo, hi, PROPERTY, p, base + part, _ZERO):
                parts[base + part] = ASKED
        elif answer == 0:
            broken += 1
            if at < 0:
                at = number
    return still, broken, at


@compiled
def reseed(states: Array, count: int, seen: Array) -> None:
    """Put the states into an empty table."""
    last = _U(seen.shape[0] - 1)
    for number in range(count):
        h = _mix(states[number, 0], states[number, 1], _ZERO)
        row = h & last
        while seen[row] != _ZERO:
            row = (row + _ONE) & last
        seen[row] = h >> _S32 << _S32 | _U(number + 1)


@compiled
def rehash_groups(old: Array, new: Array) -> None:
    """Put the rows of one table into an empty one."""
    last = _U(new.shape[0] - 1)
    for at in range(old.shape[0]):
        if old[at, 2] != _ZERO:
            row = _mix(old[at, 0], old[at, 1], old[at, 2]) & last
            while new[row, 2] != _ZERO:
                row = (row + _ONE) & last
            for column in range(4):
                new[row, column] = old[at, column]


@compiled
def rehash_followers(old: Array, new: Array) -> int:
    """Likewise; rows without an answer are left behind. How many rows were put."""
    last = _U(new.shape[0] - 1)
    count = 0
    for at in range(old.shape[0]):
        if old[at, 3] == READY:
            h = old[at, 0] * _C1
            row = (h ^ (h >> _S32)) & last
            while new[row, 3] != _ZERO:
                row = (row + _ONE) & last
            for column in range(4):
                new[row, column] = old[at, column]
            count += 1
    return count
