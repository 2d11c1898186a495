"""The path-forking executor: every path once, exceptions as outcomes, and loud refusals of what would be wrong."""

from typing import NamedTuple

import pytest
import z3
from outlives.invariants.proof.executor import (
    ANYTHING,
    NotSymbolic,
    Number,
    TooManyPaths,
    Truth,
    execute,
    symbol,
    term_of,
)
from outlives.model import lifetime


class Pair(NamedTuple):
    low: int
    high: int


@pytest.fixture
def context():
    return z3.Context()


def valid(context, claim):
    solver = z3.Solver(ctx=context)
    solver.add(z3.Not(claim))
    return solver.check() == z3.unsat


def test_each_feasible_path_is_one_outcome_true_first(context):
    x, y = symbol("x", context), symbol("y", context)

    def clamp(x, y):
        if x < 0:
            return 0
        if x > y:
            return y
        return x

    paths = execute(clamp, x, y, context=context)
    assert [repr(o.value) for o in paths] == ["0", "<Number y>", "<Number x>"]


def test_an_impossible_branch_is_cut_by_the_assumptions(context):
    x = symbol("x", context)
    paths = execute(lambda x: "low" if x < 5 else "high", x, context=context, assume=[x > 7])
    assert [o.value for o in paths] == ["high"]
    assert paths.outcomes[0].decisions[0].forced


def test_the_second_asking_of_one_question_does_not_fork(context):
    x = symbol("x", context)
    paths = execute(lambda x: (x < 5, 1 if x < 5 else 0, 1 if x < 5 else 0), x, context=context)
    assert [o.value[1:] for o in paths] == [(1, 1), (0, 0)]


def test_constant_terms_are_plain_values_again(context):
    x = symbol("x", context)
    assert type(x - x + 3) is int
    assert x - x + 3 == 3
    assert (x < x) is False
    assert (x + 1 == x + 1) is True


def test_arithmetic_means_what_it_means_for_ints(context):
    x = symbol("x", context)
    solver = z3.Solver(ctx=context)
    for value in (-7, -1, 0, 5):
        solver.push()
        solver.add(x.term == value)
        for made, right in (
            (3 - x, 3 - value),
            (-x * 2 + 1, -value * 2 + 1),
            (x // 3, value // 3),
            (x % 3, value % 3),
        ):
            solver.push()
            solver.add(term_of(made, context) != right)
            assert solver.check() == z3.unsat
            solver.pop()
        solver.pop()


def test_min_max_and_or_not_abs_fork(context):
    x, y = symbol("x", context), symbol("y", context)
    assert len(execute(lambda: max(x, y), context=context).outcomes) == 2
    assert len(execute(lambda: 1 if x < 0 and y < 0 else 0, context=context).outcomes) == 3
    assert len(execute(lambda: not x < y, context=context).outcomes) == 2
    assert valid(context, execute(lambda: abs(x), context=context).merge().term >= 0)


def test_merging_rebuilds_named_tuples_field_by_field(context):
    x, y = symbol("x", context), symbol("y", context)
    merged = execute(lambda: Pair(x, y) if x < y else Pair(y, x), context=context).merge()
    assert type(merged) is Pair
    assert valid(context, merged.low.term <= merged.high.term)
    assert valid(context, merged.low.term + merged.high.term == x.term + y.term)


def test_merging_an_equal_field_gives_it_back_plain(context):
    x = symbol("x", context)
    assert execute(lambda: Pair(1, 2) if x < 0 else Pair(1, 3), context=context).merge().low == 1


def test_merge_selects_and_ignores_paths(context):
    x = symbol("x", context)

    def refuse_negative():
        if x < 0:
            raise ValueError("negative")
        return x

    paths = execute(refuse_negative, context=context)
    assert [type(o.error) for o in paths] == [ValueError, type(None)]
    raised = paths.merge(lambda o: o.error is not None)
    assert valid(context, raised.term == (x.term < 0))
    assert repr(paths.merge(lambda o: ANYTHING if o.error else o.value)) == "<Number x>"
    with pytest.raises(NotSymbolic, match="ValueError: negative"):
        paths.merge()


def test_merging_different_shapes_is_an_error(context):
    x = symbol("x", context)
    with pytest.raises(NotSymbolic, match="different shapes"):
        execute(lambda: (1, 2) if x < 0 else 3, context=context).merge()


def test_side_effects_belong_to_their_path(context):
    x = symbol("x", context)

    def with_stub():
        calls = []

        class Cache:
            def free(self, what):
                calls.append(what)

        cache = Cache()
        for end in (3, 5):
            if end <= x:
                cache.free(end)
        return tuple(calls)

    paths = execute(with_stub, context=context)
    assert [o.value for o in paths] == [(3, 5), (3,), ()]


def test_the_paths_exclude_each_other_and_cover_everything(context):
    numbers = [symbol(name, context) for name in lifetime.Counters._fields]
    rejected = symbol("rejected", context)
    paths = execute(lambda: lifetime.roll_back(lifetime.Counters(*numbers), rejected, 0), context=context)
    assert len(paths.outcomes) == 4
    conditions = [o.condition for o in paths]
    assert valid(context, z3.Or(*conditions))
    assert valid(context, z3.PbLe([(c, 1) for c in conditions], 1))


@pytest.mark.parametrize(
    "misuse",
    [
        lambda x: range(x),
        lambda x: (1, 2, 3)[x],
        lambda x: {x: 1},
        lambda x: x in {1, 2},
        lambda x: int(x),
        lambda x: float(x),
        lambda x: f"{x}",
        lambda x: str(x),
        lambda x: list(x),
        lambda x: isinstance(x, int),
        lambda x: isinstance(x < 3, bool),
        lambda x: (x < 3) == 1,
        lambda x: (x < 3) == True,  # noqa: E712
        lambda x: (x < 3) + 1,
        lambda x: int(x < 3),
        lambda x: (x < 3) ^ True,
        lambda x: ~(x < 3),
        lambda x: x * x,
        lambda x: x // x,
        lambda x: x // -2,
        lambda x: x / 2,
        lambda x: x == 2.0,
        lambda x: x == "two",
        lambda x: x & 1,
        lambda x: x << 1,
    ],
)
def test_what_would_be_silently_wrong_is_refused(context, misuse):
    x = symbol("x", context)
    with pytest.raises(NotSymbolic):
        execute(misuse, x, context=context)


def test_a_function_that_swallows_exceptions_cannot_hide_a_misuse(context):
    x = symbol("x", context)

    def swallow():
        try:
            return (1, 2)[x]
        except Exception:
            return 0

    with pytest.raises(NotSymbolic, match="index"):
        execute(swallow, context=context)


def test_truth_values_join_without_a_fork(context):
    x = symbol("x", context)
    both = (x > 1) & (x < 4) & True
    assert type(both) is Truth
    assert len(execute(lambda: 1 if both | (x == 9) else 0, context=context).outcomes) == 2


def test_a_truth_outside_an_execution_is_refused(context):
    with pytest.raises(NotSymbolic, match="outside"):
        bool(symbol("x", context) < 1)


def test_comparing_with_none_is_false(context):
    x = symbol("x", context)
    assert (x == None) is False  # noqa: E711
    assert (x != None) is True  # noqa: E711


def test_paths_and_decisions_are_capped(context):
    numbers = [symbol(f"x{i}", context) for i in range(6)]
    with pytest.raises(TooManyPaths, match="more than 20 paths"):
        execute(lambda: [1 if x < 0 else 0 for x in numbers], context=context, max_paths=20)

    def count(x):
        total = 0
        while total < x:
            total += 1
        return total

    with pytest.raises(TooManyPaths, match="unbounded loop"):
        execute(count, numbers[0], context=context, max_decisions=30)


def test_a_function_that_is_not_deterministic_is_refused(context):
    x = symbol("x", context)
    runs = []

    def unstable():
        runs.append(1)
        return 1 if x < len(runs) else 0

    with pytest.raises(NotSymbolic, match="not deterministic"):
        execute(unstable, context=context)


def test_contradicting_assumptions_are_refused(context):
    x = symbol("x", context)
    with pytest.raises(NotSymbolic, match="contradict"):
        execute(lambda: 1 if x < 0 else 0, context=context, assume=[x > 1, x < 1])


def test_the_same_function_gives_the_same_terms_twice():
    def text():
        context = z3.Context()
        numbers = [symbol(name, context) for name in lifetime.Counters._fields]
        merged = execute(
            lambda: lifetime.promise(lifetime.Counters(*numbers), symbol("d", context), 1, 1), context=context
        ).merge()
        return merged[0].placeholders.term.sexpr()

    assert text() == text()
    assert "(ite" in text()


def test_numbers_never_leave_as_text_but_can_be_looked_at(context):
    assert repr(symbol("x", context) + 1) == "<Number (+ 1 x)>"
    assert type(symbol("x", context)) is Number
