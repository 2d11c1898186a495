"""What decides an obligation: Z3 in a context of its own, cvc5 from SMT-LIB2 text; their budgets and seeds.

Belongs here: one query and its answers (`Solved`, `Decision`), what the answers of several solvers to it come to
(`agreed`), and which solvers there are. What is asked is in `theorem`, `weakest` and `price_progress`.

Z3 runs on the terms. cvc5 reads the text that Z3 writes of the same terms, so that a fault in the one's reading of them
is not repeated by the other. Both are bounded in resource units of their own, never in seconds: an answer does not
depend on load, and every run gives the same one.

Each query has a context of its own, and Z3 begins one by filling two tables of 8.5 MB. What that costs is the C
library's choice: where it gives the freed tables back to the system after every query, the next query faults them in
again page by page, which takes longer than solving. `fresh_context` sees to it that they are kept.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from time import perf_counter
from types import MappingProxyType
from typing import Any, Final

import z3
from outlives.model.errors import Contradiction, UnknownName

__all__ = ["BUDGET", "BUDGETS", "SOLVERS", "Decision", "Solved", "Tally", "agreed", "decide", "decide_text"]
__all__ += ["default_solvers", "fresh_context", "has_cvc5", "missing_solvers", "most_spent", "solve", "solvers_named"]
__all__ += ["spent_on"]

BUDGETS: Final[Mapping[str, int]] = MappingProxyType({"z3": 200_000, "cvc5": 150_000})
"""Resource units per obligation, by solver: at least ten times what the costliest one needs."""
BUDGET: Final = BUDGETS["z3"]
"""Z3's."""
SOLVERS: Final = tuple(BUDGETS)
"""The solvers, the one that the proof cannot do without first."""

_KEPT: Final = 31 << 20
"""Bytes: glibc keeps freed memory below twice the largest block that it ever mapped and unmapped, up to 32 MB."""
_LOGIC: Final = "(set-logic QF_LIA)\n"
_MISSING: Final = {"cvc5": "cvc5 is not installed (pip install 'outlives[cvc5]')"}


@dataclass(frozen=True, slots=True)
class Solved:
    """One answer of Z3."""

    answer: str
    """`unsat`, `sat` or `unknown`."""
    rlimit: int
    """Resource units spent."""
    seconds: float
    reason: str = ""
    values: Mapping[str, int] = field(default_factory=dict)
    """Where sat: the numbers, by field (and `?choice`)."""
    smt2: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """One answer of one solver under one seed."""

    solver: str
    seed: int
    answer: str
    """`unsat`, `sat` or `unknown`."""
    spent: int
    """Resource units, of the solver's own kind."""
    seconds: float
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.solver}, seed {self.seed}: {self.answer}{f' ({self.reason})' if self.reason else ''}"


def fresh_context() -> Any:
    """A new context of Z3, whose memory stays with this process when it is freed."""
    _keep_freed_memory()
    return z3.Context()


@cache
def _keep_freed_memory() -> None:
    """Once for a process: glibc learns from a freed block how much to keep. Elsewhere it is a block that is freed."""
    bytes(_KEPT)  # zeros that nobody wrote: no page of it is ever touched


def solve(formulas: Iterable[Any], budget: int = BUDGET, *, seed: int = 0, text: bool = False) -> Solved:
    """Are these formulas satisfiable together? By Z3, in a fresh context, with this seed."""
    begun = perf_counter()
    context = fresh_context()
    solver = z3.SimpleSolver(ctx=context)
    solver.set("ctrl_c", False)  # the solver would take Ctrl-C for itself, and the run would go on
    solver.set("random_seed", seed)
    solver.set("rlimit", budget)
    solver.add(*(formula.translate(context) for formula in formulas))
    smt2 = _LOGIC + solver.to_smt2() if text else ""
    answer = str(solver.check())
    spent = {key: value for key, value in solver.statistics()}.get("rlimit count", 0)  # noqa: C416
    values: dict[str, int] = {}
    if answer == "sat":
        model = solver.model()
        values = {name.name(): model[name].as_long() for name in model.decls() if z3.is_int_value(model[name])}
        values = dict(sorted(values.items()))
    reason = ""
    if answer == "unknown":
        reason = f"the resource limit of {budget} was reached" if spent >= budget else solver.reason_unknown()
    return Solved(answer, int(spent), perf_counter() - begun, reason, values, smt2)


def decide_text(smt2: str, budget: int = BUDGETS["cvc5"], *, seed: int = 0) -> Decision:
    """What cvc5 says of a text with one `check-sat`. Anything but `sat` and `unsat` is `unknown`, with its reason."""
    import cvc5

    begun = perf_counter()
    solver = cvc5.Solver(cvc5.TermManager())
    for option, value in (("rlimit", budget), ("seed", seed), ("sat-random-seed", seed)):
        solver.setOption(option, str(value))
    said: list[str] = []
    try:
        parser = cvc5.InputParser(solver)
        parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, smt2, "obligation")
        names = parser.getSymbolManager()
        while not (command := parser.nextCommand()).isNull():
            said += str(command.invoke(solver, names)).split()
    except RuntimeError as error:  # it cannot read the text, or gives up: no answer, and the report says why
        said = [f"unknown: {error}"]
    spent = int(solver.getStatistics()["resource::resourceUnitsUsed"]["value"])
    answer = said[0] if said and said[0] in ("sat", "unsat") else "unknown"
    reason = ""
    if answer == "unknown":
        reached = f"the resource limit of {budget} was reached"
        reason = reached if spent >= budget else " ".join(said) or "it said nothing"
    return Decision("cvc5", seed, answer, spent, perf_counter() - begun, reason)


def decide(
    formulas: Iterable[Any],
    solvers: Sequence[str] = ("z3",),
    seeds: Sequence[int] = (0,),
    budget: int = BUDGET,
    *,
    text: bool = False,
) -> tuple[Solved, tuple[Decision, ...]]:
    """Z3's answer under the first seed; then its answers under the other seeds, and those of cvc5 under each of them
    where it is one of the solvers. The budget is Z3's; cvc5 has its own."""
    formulas = list(formulas)
    solved = solve(formulas, budget, seed=seeds[0], text=text or "cvc5" in solvers)
    others = []
    for seed in seeds[1:]:
        again = solve(formulas, budget, seed=seed)
        others.append(Decision("z3", seed, again.answer, again.rlimit, again.seconds, again.reason))
    if "cvc5" in solvers:
        others += [decide_text(solved.smt2, BUDGETS["cvc5"], seed=seed) for seed in seeds]
    return solved, tuple(others)


def agreed(solved: Solved, others: Sequence[Decision] = ()) -> str:
    """What all answers come to: `unsat` or `sat` where they are alike, `contradicted` where two of them contradict each
    other, else `unknown`."""
    answers = {solved.answer, *(each.answer for each in others)}
    if {"sat", "unsat"} <= answers:
        return "contradicted"
    return solved.answer if len(answers) == 1 else "unknown"


@dataclass(frozen=True, slots=True)
class Tally:
    """What several questions came to: plain values, so that it travels between processes."""

    asked: int = 0
    """How many questions, each put to every solver."""
    spent: Mapping[str, int] = field(default_factory=dict)
    """The most resource units that one of them took, by solver."""
    costly: tuple[str, ...] = ()
    """Those that took more than a tenth of a budget, by name."""
    differing: tuple[str, ...] = ()
    """Those that were not answered alike by all, by name."""

    def plus(self, *others: "Tally") -> "Tally":
        """All together."""
        every = (self, *others)
        return Tally(
            sum(each.asked for each in every),
            most_spent(*(each.spent for each in every)),
            tuple(name for each in every for name in each.costly),
            tuple(name for each in every for name in each.differing),
        )

    @classmethod
    def of(cls, name: str, solved: Solved, others: Sequence[Decision]) -> "Tally":
        """Of one question."""
        spent = spent_on(solved, others)
        costly = any(units * 10 > BUDGETS[solver] for solver, units in spent.items())
        differs = any(each.answer != solved.answer for each in others)
        return cls(1, spent, (name,) * costly, (name,) * differs)


def spent_on(solved: Solved, others: Sequence[Decision]) -> dict[str, int]:
    """The most resource units of one answer to a question, by solver."""
    return most_spent({"z3": solved.rlimit}, *({each.solver: each.spent} for each in others))


def most_spent(*counts: Mapping[str, int]) -> dict[str, int]:
    """The most resource units, by solver."""
    most: dict[str, int] = {}
    for each in counts:
        for solver, units in each.items():
            most[solver] = max(most.get(solver, 0), units)
    return most


@cache
def has_cvc5() -> bool:
    """Whether cvc5 can be loaded."""
    try:
        return find_spec("cvc5") is not None
    except (ImportError, ValueError):
        return False


def default_solvers() -> tuple[str, ...]:
    """Every solver that is installed."""
    return tuple(name for name in SOLVERS if name != "cvc5" or has_cvc5())


def missing_solvers(solvers: Iterable[str]) -> tuple[str, ...]:
    """What is to be said of solvers that were left out because they are not there, a sentence each."""
    left = [name for name in SOLVERS if name not in set(solvers)]
    return tuple(_MISSING[name] for name in left if name in _MISSING and not has_cvc5())


def solvers_named(text: str) -> tuple[str, ...]:
    """`z3,cvc5` as names, Z3 first: its terms are what the text is written from. Raises `UnknownName` for another name
    and `Contradiction` where Z3 is left out or one that is named is not installed."""
    asked = [part.strip() for part in text.split(",") if part.strip()]
    for name in asked:
        if name not in SOLVERS:
            raise UnknownName("solver", name, SOLVERS)
    if "z3" not in asked:
        raise Contradiction("--solvers: z3 writes the obligations, and cannot be left out; write z3 or z3,cvc5.")
    if "cvc5" in asked and not has_cvc5():
        raise Contradiction(f"--solvers {text}: {_MISSING['cvc5']}.")
    return tuple(name for name in SOLVERS if name in asked)
