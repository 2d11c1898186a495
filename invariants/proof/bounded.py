"""Bounded checking: a shortest run to a miss, with the smallest numbers, where there is one within the bounds.

Belongs here: unrolling the moves of `pipeline`, the search, and the counterexample as plain values. What it finds is a
fact; what it does not find within the bounds says nothing.
"""

from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Final

import z3

from .extract import Extractor, leaves, rebuilt
from .lemmas import initial
from .life import Flight, Terms
from .pipeline import EMPTY_RUN, MOVES, Run, begins, misses
from .pipeline_routes import ROUTE_MOVES, risky_routes

__all__ = ["MOST_MOVES", "SEARCH_BUDGET", "Counterexample", "Move", "Searched", "search"]

MOST_MOVES: Final = 8
"""Moves before the read."""
SEARCH_BUDGET: Final = 300_000_000
"""Z3 resource units for a whole search."""


@dataclass(frozen=True, slots=True)
class Move:
    """One abstract action, and the run after it."""

    name: str
    """resume, dispatch, output, preempt, evict, or one of `ROUTE_MOVES`."""
    number: int
    """The prefix hit of a resume, the drafts of a dispatch, the accepted drafts of an output, the valid positions of a
    failed load, the prompt of a later turn; 0 otherwise."""
    encoded: int
    """0: the step's planned encode was left out (A4 relaxed)."""
    after: Run

    @property
    def tokens(self) -> int:
        """Tokens of the step that a resume or a dispatch built; 0 for the others."""
        return self.after.tokens if self.name in ("resume", "dispatch", "go-on") else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """A run that ends where the oldest step in flight reads the item and the key is not on the shelf."""

    start: int
    end: int
    prompt: int
    budget: int
    most_drafts: int
    depth: int
    """Steps in flight at most."""
    moves: tuple[Move, ...]
    reader: Flight
    """The step that reads, as it stands when it executes."""
    back: int
    """How many positions below the scheduler's start it begins to read (reader `any`; 0 for the others)."""

    def __len__(self) -> int:
        return len(self.moves) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """What a search came to."""

    found: Counterexample | None
    searched: int
    """No shorter run than this many moves before the read exists within the bounds."""
    rlimit: int
    seconds: float
    exhausted: bool
    """The budget ran out before the bound on moves was reached."""


class _Unrolled:
    """The moves as formulas, one copy of the state per step."""

    def __init__(self, terms: Terms, routes: frozenset[str]) -> None:
        extractor = Extractor(terms, EMPTY_RUN)
        self.terms = terms
        self.context = extractor.context
        self.moves = [extractor.transition(name, phases) for name, phases in MOVES.items() if _open(terms, name)]
        self.moves += [
            extractor.transition(name, phases) for name, (route, phases) in ROUTE_MOVES.items() if route in routes
        ]
        self.symbols = {path: value.term for path, value in leaves(extractor.state).items()}
        self.begin = z3.And(
            extractor.formula("begins", begins),
            extractor.formula("initial", lambda terms, run: initial(terms, run.life)),
        )
        self.bad = extractor.formula("misses", misses)
        self.move = self._one_move()

    def copy(self, step: int, name: str) -> Any:
        """The symbol of that name after `step` moves (for a choice: of the move that follows)."""
        return z3.Int(f"{name}@{step}", self.context)

    def at(self, step: int, formula: Any) -> Any:
        """The formula, said of the state after `step` moves, the choices of the next move, and the state after it."""
        pairs = [(term, self.copy(step, path)) for path, term in self.symbols.items()]
        pairs += [(z3.Int(name, self.context), self.copy(step, name)) for name in _CHOICES]
        pairs += [(self._next(path), self.copy(step + 1, path)) for path in self.symbols]
        return z3.substitute(formula, *pairs)

    def _next(self, path: str) -> Any:
        return z3.Int(f"{path}'", self.context)

    def _one_move(self) -> Any:
        """What holds between a state and the next one."""
        which = z3.Int("?move", self.context)
        facts = [which >= 0, which < len(self.moves)]
        facts += [z3.Implies(which == index, move.enabled) for index, move in enumerate(self.moves)]
        for name in _CHOICES[1:]:
            takers = [which == index for index, move in enumerate(self.moves) if name[1:] in move.choices]
            facts.append(z3.Or(*takers, z3.Int(name, self.context) == 0))
        afters = [{before.decl().name(): after for before, after in move.after} for move in self.moves]
        for path, term in self.symbols.items():
            value = term
            for index, after in enumerate(afters):
                if path in after:
                    value = z3.If(which == index, after[path], value)
            facts.append(self._next(path) == value)
        return z3.And(facts)


_CHOICES: Final = ("?move", "?number", "?encoded")


def _open(terms: Terms, move: str) -> bool:
    return move != "preempt" or "preempt" not in terms.assumed.closed


def search(
    terms: Terms,
    *,
    depth: int = 2,
    most_moves: int = MOST_MOVES,
    budget: int = SEARCH_BUDGET,
    routes: frozenset[str] | None = None,
) -> Searched:
    """Look for a shortest run to a miss with at most `depth` steps in flight (2 or 3); among the shortest, one with
    the smallest item end, prompt and item start, then the fewest drafts and the smallest budget.

    `routes`: the rare routes that a run may take; None: those that do not do what the theorem needs of them.
    """
    begun = perf_counter()
    # Who may resume beside stale outputs is a matter of the run here.
    terms = replace(terms, assumed=replace(terms.assumed, early_resume=1))
    unrolled = _Unrolled(terms, risky_routes(terms.assumed) if routes is None else routes)
    solver = z3.SolverFor("QF_LIA", ctx=unrolled.context)
    solver.set("ctrl_c", False)  # the solver would take Ctrl-C for itself, and the run would go on
    solver.set("random_seed", 0)
    solver.add(unrolled.at(0, unrolled.begin), unrolled.copy(0, "depth") == depth)
    spent = 0
    for moves in range(most_moves + 1):
        if moves > 0:
            solver.add(unrolled.at(moves - 1, unrolled.move))
        solver.set("rlimit", max(1, budget - spent))
        solver.push()
        solver.add(unrolled.at(moves, unrolled.bad))
        answer = solver.check()
        spent = _spent(solver)
        if answer == z3.unknown:
            return Searched(found=None, searched=moves, rlimit=spent, seconds=perf_counter() - begun, exhausted=True)
        if answer == z3.sat:
            found = _read_off(unrolled, moves, _smallest(unrolled, solver, moves))
            seconds = perf_counter() - begun
            return Searched(found=found, searched=moves, rlimit=_spent(solver), seconds=seconds, exhausted=False)
        solver.pop()
    seconds = perf_counter() - begun
    return Searched(found=None, searched=most_moves, rlimit=spent, seconds=seconds, exhausted=False)


def _spent(solver: z3.Solver) -> int:
    return int(dict(list(solver.statistics())).get("rlimit count", 0))


def _smallest(unrolled: _Unrolled, solver: z3.Solver, moves: int) -> z3.ModelRef:
    """Lower the numbers one after the other, each as far as the ones before it allow."""
    model = solver.model()
    goals = [unrolled.copy(0, name) for name in ("life.end", "life.prompt", "life.start", "most_drafts")]
    goals.append(z3.Sum([unrolled.copy(step, "?number") for step in range(moves)]) if moves else None)
    goals.append(unrolled.copy(0, "budget"))
    for goal in goals:
        if goal is None:
            continue
        best = model.eval(goal, model_completion=True).as_long()
        low = 0
        while low < best:
            middle = (low + best) // 2
            solver.push()
            solver.add(goal <= middle)
            if solver.check() == z3.sat:
                model = solver.model()
                best = model.eval(goal, model_completion=True).as_long()
            else:
                low = middle + 1
            solver.pop()
        solver.add(goal <= best)
    return model


def _read_off(unrolled: _Unrolled, count: int, model: z3.ModelRef) -> Counterexample:
    def number(step: int, name: str) -> int:
        value: int = model.eval(unrolled.copy(step, name), model_completion=True).as_long()
        return value

    def state(step: int) -> Run:
        run: Run = rebuilt(EMPTY_RUN, lambda path: number(step, path))
        return run

    moves = []
    for step in range(count):
        move = unrolled.moves[number(step, "?move")]
        encoded = 0 if state(step + 1).life.omitted > state(step).life.omitted else 1
        moves.append(Move(move.name, number(step, "?number"), encoded, state(step + 1)))
    begin, end = state(0), state(count)
    reader = end.first.flight
    back = 0
    if unrolled.terms.assumed.reader == "any":
        back = max(0, reader.start - (begin.life.end - 1))
    return Counterexample(
        start=begin.life.start,
        end=begin.life.end,
        prompt=begin.life.prompt,
        budget=begin.budget,
        most_drafts=begin.most_drafts,
        depth=begin.depth,
        moves=tuple(moves),
        reader=reader,
        back=back,
    )
