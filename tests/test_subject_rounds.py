"""Rounds of the machine on a real scheduler: when another follows, and several as one answer; no scheduler needed."""

from types import SimpleNamespace

import pytest
from outlives.invariants.known import Known, fingerprint_of
from outlives.invariants.subject_rounds import MOST_ROUNDS, machine_rounds
from outlives.invariants.verdict import Result, Step, Trace, Verdict
from outlives.model.contract import Action

NOTHING = Known(path="known.json", findings=())


def found(why: str) -> Result:
    trace = Trace(steps=(Step(None, 0), Step(Action.of("go"), 1)), property="P", why=why)
    return Result(engine="machine", property="P", verdict=Verdict.VIOLATED, coverage="all", trace=trace)


def passed(name: str) -> Result:
    return Result(engine="machine", property=name, verdict=Verdict.PASSED, coverage="all")


class Machine:
    """Finds the first of these that is not known; each round has one more run than the one before."""

    def __init__(self, *whys: str, interrupted_at: int = 0) -> None:
        self.whys, self.interrupted_at = whys, interrupted_at
        self.rounds: list[int] = []

    def __call__(self, number: int, known: Known | None):
        self.rounds.append(number)
        open_yet = [
            each for each in map(found, self.whys) if fingerprint_of(each.trace) not in (known or NOTHING).findings
        ]
        return SimpleNamespace(
            results=((open_yet or [passed("P")])[0], passed("Q")),
            interrupted=number == self.interrupted_at,
            fired={"go": number},
            situations={},
            cases=number,
        )


def test_without_known_findings_there_is_one_round() -> None:
    machine = Machine("one", "two")
    rounds = machine_rounds(machine, None, None)
    assert (machine.rounds, rounds.complete) == ([1], None)
    assert [row.property for row in rounds.results()] == ["P", "Q"]


def test_rounds_follow_until_nothing_new_is_found() -> None:
    machine = Machine("one", "two", "three")
    rounds = machine_rounds(machine, NOTHING, None)
    assert (machine.rounds, rounds.complete) == ([1, 2, 3, 4], True)
    rows = rounds.results()
    assert [(row.property, row.verdict.name) for row in rows] == [("P", "VIOLATED")] * 3 + [("Q", "PASSED")]
    assert [row.note for row in rows[:3]] == ["", *(f"round {at}, behind what was found before" for at in (2, 3))]
    assert rounds.counts("fired") == {"go": 10}
    assert rounds.total("cases") == 10


def test_what_is_known_from_the_start_needs_no_second_round() -> None:
    known = Known(path="known.json", findings=(fingerprint_of(found("one").trace),))
    machine = Machine("one")
    assert machine_rounds(machine, known, None).complete
    assert machine.rounds == [1]


@pytest.mark.parametrize(("machine", "last"), [
    (Machine("one", "two", interrupted_at=2), 2),
    (Machine(*("x" * length for length in range(1, 40))), MOST_ROUNDS),
])  # fmt: skip
def test_an_interrupted_run_and_one_that_never_ends_are_not_complete(machine: Machine, last: int) -> None:
    assert machine_rounds(machine, NOTHING, None).complete is False
    assert machine.rounds[-1] == last
