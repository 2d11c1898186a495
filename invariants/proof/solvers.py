"""What decides an obligation: Z3 in a context of its own, cvc5 from SMT-LIB2 text; their budgets and seeds.

Belongs here: one query and its answer (`Solved`, `Decision`), and which solvers there are. What is asked is in
`theorem`; what several answers add up to as well.

Z3 runs on the terms. cvc5 reads the text that Z3 writes of the same terms, so that a fault in the one's reading of them
is not repeated by the other. Both are bounded in resource units of their own, never in seconds: an answer does not
depend on load, and every run gives the same one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from time import perf_counter
from types import MappingProxyType
from typing import Any, Final

import z3
from outlives.model.errors import Contradiction, UnknownName

__all__ = ["BUDGET", "BUDGETS", "SOLVERS", "Decision", "Solved", "decide_text", "default_solvers", "has_cvc5"]
__all__ += ["missing_solvers", "solve", "solvers_named"]

BUDGETS: Final[Mapping[str, int]] = MappingProxyType({"z3": 200_000, "cvc5": 150_000})
"""Resource units per obligation, by solver: at least ten times what the costliest one needs."""
BUDGET: Final = BUDGETS["z3"]
"""Z3's."""
SOLVERS: Final = tuple(BUDGETS)
"""The solvers, the one that the proof cannot do without first."""

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


def solve(formulas: Iterable[Any], budget: int = BUDGET, *, seed: int = 0, text: bool = False) -> Solved:
    """Are these formulas satisfiable together? By Z3, in a fresh context, with this seed."""
    begun = perf_counter()
    context = z3.Context()
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
