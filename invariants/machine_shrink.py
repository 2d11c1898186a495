"""From the run that was found to the trace that is shown: replaying, shrinking and writing runs of any model.

Belongs here: what happens to a violation after it was found. The shrinker works on named actions and setup numbers
rather than on Hypothesis's choices: a try costs only the steps that changed, and its result depends on nothing but the
run (Hypothesis orders some shrinking by labels that differ from process to process).
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from time import perf_counter
from typing import Any, Generic, TypeVar

from outlives.model.contract import Action, Argument, Choice, Model, Property, Range, Refusal, SetupModel, TableModel
from outlives.model.errors import Unwritable

from .fair import FairJudge
from .verdict import Step, Trace

__all__ = ["Witness", "build_trace", "cut_to_failure", "shrink_witness", "shrunk_trace", "write_plain_trace"]

State = TypeVar("State")
Setup = tuple[tuple[str, Argument], ...]
_PAIRS_UP_TO = 24  # actions, or setup numbers: above it pairs are too many to try


@dataclass(frozen=True, slots=True)
class Witness(Generic[State]):
    """A run by names: where it began (setup numbers, if the model has them) and the actions taken."""

    setup: Setup | None
    initial: State
    actions: tuple[Action, ...]

    def numbers(self) -> dict[str, Argument]:
        """The setup's numbers and names, and the sum of all numbers among the actions' arguments."""
        return {**dict(self.setup or ()), "sum of arguments": sum(_numbers(self.actions))}


def _numbers(actions: Sequence[Action]) -> Iterator[int]:
    return (value for action in actions for _, value in action.arguments if isinstance(value, int))


def cut_to_failure(
    model: Model[State], prop: Property[State], witness: Witness[State], fair: FairJudge[State] | None = None
) -> Witness[State] | None:
    """The run without its refused actions and cut where the property first fails; None where it never fails."""
    search = _Shrinker(model, prop, witness, 1, fair)
    return search.best if search.states else None


def shrink_witness(
    model: Model[State], prop: Property[State], witness: Witness[State], replays: int
) -> tuple[Witness[State], bool]:
    """A run with fewer actions and smaller numbers on which the same property still fails.

    Deterministic. Ends when no single deletion, no pair of deletions and no lower number is left to try, or after so
    many replays; the second value says whether it ended by itself.
    """
    search = _Shrinker(model, prop, witness, replays, None)
    ended = bool(search.states) and search.shrink()
    return search.best, ended


class _Shrinker(Generic[State]):
    """The best run so far with the state before each of its actions, and the tries to better it."""

    def __init__(
        self,
        model: Model[State],
        prop: Property[State],
        witness: Witness[State],
        replays: int,
        fair: FairJudge[State] | None,
    ) -> None:
        self.model = model
        self.prop = prop
        self.left = replays + 1
        self.tried: set[tuple[Setup | None, tuple[Action, ...]]] = set()
        self.fair = fair or (FairJudge(model) if prop.kind == "progress" else None)
        self.best = witness
        self.states: list[State] = []
        self._accept(witness.setup, witness.initial, witness.actions, 0)

    def shrink(self) -> bool:
        passes: tuple[Callable[[], bool], ...] = (
            self._delete_chunks,
            self._lower_setup,
            self._lower_arguments,
            self._delete_pairs,
            self._delete_and_raise,
            self._lower_setup_pairs,
        )
        at = 0
        while at < len(passes) and self.left > 0:
            at = 0 if passes[at]() else at + 1
        return self.left > 0

    def _fails(self, before: State, action: Action | None, after: State) -> bool:
        if self.fair is not None:
            return not self.prop.holds(after, None, self.fair.end(after))
        return not self.prop.holds(before, action, after)

    def _size(self, setup: Setup | None, actions: Sequence[Action]) -> tuple[int, int, int]:
        """Fewer actions first, then smaller numbers, then earlier names."""
        numbers = sum(value for _, value in setup or () if isinstance(value, int)) + sum(_numbers(actions))
        return len(actions), numbers, self._name_places(setup, actions)

    def _name_places(self, setup: Setup | None, actions: Sequence[Action]) -> int:
        places = 0
        if isinstance(self.model, SetupModel):
            places += _places(self.model.setup_table, setup or ())
        if isinstance(self.model, TableModel):
            places += sum(_places(self.model.action_table.get(each.name, {}), each.arguments) for each in actions)
        return places

    def _accept(self, setup: Setup | None, initial: State, actions: Sequence[Action], keep: int) -> bool:
        """Replay from the action at `keep` on (the ones before are the best run's own); keep it if better."""
        key = setup, tuple(actions)
        if self.left <= 0 or key in self.tried:
            return False
        self.tried.add(key)
        self.left -= 1
        taken = list(actions[:keep])
        states = self.states[: keep + 1] if keep else [initial]
        state = states[-1]
        failed = keep == 0 and self._fails(initial, None, initial)
        for action in actions[keep:]:
            if failed or not self.model.within(state):
                break
            after = self.model.next_state(state, action)
            if isinstance(after, Refusal):
                continue
            taken.append(action)
            states.append(after)
            failed = self._fails(state, action, after)
            state = after
        if not failed:
            return False
        if self.states and self._size(setup, taken) >= self._size(self.best.setup, self.best.actions):
            return False
        self.best = Witness(setup, initial, tuple(taken))
        self.states = states
        return True

    def _without(self, places: Sequence[int]) -> bool:
        gone = set(places)
        actions = [action for place, action in enumerate(self.best.actions) if place not in gone]
        return self._accept(self.best.setup, self.best.initial, actions, min(gone))

    def _delete_chunks(self) -> bool:
        better = False
        size = max(1, len(self.best.actions) // 2)
        while size:
            end = len(self.best.actions)
            while end > 0:
                start = max(0, end - size)
                better |= end <= len(self.best.actions) and self._without(range(start, end))
                end = min(start, len(self.best.actions))
            size //= 2
        return better

    def _delete_pairs(self) -> bool:
        length = len(self.best.actions)
        return length <= _PAIRS_UP_TO and any(self._without(pair) for pair in combinations(range(length), 2))

    def _delete_and_raise(self) -> bool:
        """One action fewer and another one's number at its highest: a large step may do what several did."""
        length = len(self.best.actions)
        if length > _PAIRS_UP_TO or not isinstance(self.model, TableModel):
            return False
        for place, action in enumerate(self.best.actions):
            domains = self.model.action_table.get(action.name, {})
            for name, value in action.arguments:
                domain = domains.get(name)
                if not isinstance(domain, Range) or not isinstance(value, int) or value >= domain.high:
                    continue
                raised = _but(action, name, domain.high)
                actions = [*self.best.actions[:place], raised, *self.best.actions[place + 1 :]]
                for gone in range(length):
                    left = actions[:gone] + actions[gone + 1 :]
                    if gone != place and self._accept(self.best.setup, self.best.initial, left, min(gone, place)):
                        return True
        return False

    def _with_setup(self, changes: Mapping[str, Argument]) -> bool:
        if self.best.setup is None or not isinstance(self.model, SetupModel):
            return False
        numbers = {**dict(self.best.setup), **changes}
        return self._accept(tuple(numbers.items()), self.model.initial_state(numbers), self.best.actions, 0)

    def _lower_setup(self) -> bool:
        if self.best.setup is None or not isinstance(self.model, SetupModel):
            return False
        better = False
        for name, domain in self.model.setup_table.items():
            while any(self._with_setup({name: value}) for value in _lower(domain, dict(self.best.setup)[name])):
                better = True
        return better

    def _lower_setup_pairs(self) -> bool:
        """Two numbers down together, or one down and one up by less: lengths and offsets often hang together."""
        if self.best.setup is None or not isinstance(self.model, SetupModel):
            return False
        table = {name: domain for name, domain in self.model.setup_table.items() if isinstance(domain, Range)}
        if len(table) > _PAIRS_UP_TO:
            return False
        numbers = {name: value for name, value in self.best.setup if isinstance(value, int)}
        for first, second in combinations([name for name in table if name in numbers], 2):
            for less in (8, 4, 2, 1):
                changed = {first: numbers[first] - less, second: numbers[second] - less}
                inside = all(table[name].low <= value for name, value in changed.items())
                if inside and self._with_setup(changed):
                    return True
        return False

    def _lower_arguments(self) -> bool:
        better = False
        place = 0
        while place < len(self.best.actions):
            if any(self._replaced(place, action) for action in self._simpler(place)):
                better = True
            else:
                place += 1
        return better

    def _replaced(self, place: int, action: Action) -> bool:
        actions = [*self.best.actions[:place], action, *self.best.actions[place + 1 :]]
        return self._accept(self.best.setup, self.best.initial, actions, place)

    def _simpler(self, place: int) -> list[Action]:
        """Actions of the same name with one argument lowered; without a table, those the model offers before it."""
        action = self.best.actions[place]
        if not isinstance(self.model, TableModel):
            offered = [each for each in self.model.actions(self.states[place]) if each.name == action.name]
            return offered[: offered.index(action)] if action in offered else []
        domains = self.model.action_table.get(action.name, {})
        return [
            _but(action, name, value)
            for name, current in action.arguments
            if name in domains
            for value in _lower(domains[name], current)
        ]


def _but(action: Action, name: str, value: Argument) -> Action:
    """The action with one argument changed."""
    return Action(action.name, tuple((each, value if each == name else old) for each, old in action.arguments))


def _lower(domain: Range | Choice, value: Argument) -> list[Argument]:
    """Simpler values than this one, the simplest first, then ever closer ones."""
    if isinstance(domain, Choice):
        return list(domain.names[: domain.names.index(str(value))]) if value in domain.names else []
    if not isinstance(value, int) or value <= domain.low:
        return []
    closer: list[Argument] = []
    gap = value - domain.low
    while gap:
        closer.append(value - gap)
        gap //= 2
    return closer


def _places(table: Mapping[str, Range | Choice], arguments: Sequence[tuple[str, Argument]]) -> int:
    places = 0
    for name, value in arguments:
        domain = table.get(name)
        if isinstance(domain, Choice) and value in domain.names:
            places += domain.names.index(str(value))
    return places


def build_trace(
    model: Model[State],
    prop: Property[State],
    witness: Witness[State],
    *,
    found: Witness[State] | None = None,
    seconds: float = 0.0,
    shortest: str = "shrunk; not proved shortest",
) -> Trace:
    """The run as a trace with its states. For a `progress` property the fair run that fails is appended to it.

    `shrink` carries `setup` (names to values; empty for a model without setup), and `fair_from`, the number of actions
    before the fair run, for progress; with `found`, also how it shrank.
    """
    state = witness.initial
    before, last = state, None
    steps = [Step(None, state)]
    for action in witness.actions:
        after = model.next_state(state, action)
        if isinstance(after, Refusal):
            steps.append(Step(action, state, after.reason))
            continue
        before, last, state = state, action, after
        steps.append(Step(action, state))
    notes: dict[str, Any] = {"setup": dict(witness.setup or ())}
    if prop.kind == "progress":
        fair = FairJudge(model).run(state)
        notes["fair_from"] = len(witness.actions)
        steps.extend(Step(action, after) for action, after in zip(fair.actions, fair.states, strict=True))
        why = prop.explain(state, None, fair.end)
    else:
        why = prop.explain(before, last, state)
    if found is not None:
        notes |= {
            "found_length": len(found.actions),
            "found_actions": dict(sorted(Counter(action.name for action in found.actions).items())),
            "final_length": len(witness.actions),
            "found_numbers": found.numbers(),
            "final_numbers": witness.numbers(),
            "seconds": round(seconds, 3),
        }
    return Trace(steps=tuple(steps), property=prop.name, why=why, shortest=shortest, shrink=notes)


def shrunk_trace(
    model: Model[State], prop: Property[State], witness: Witness[State], replays: int, found: Witness[State]
) -> Trace:
    """Shrink and build in one go, with the seconds it took."""
    began = perf_counter()
    small, ended = shrink_witness(model, prop, witness, replays)
    badge = "shrunk; not proved shortest" if ended else f"shrunk as far as {replays} tries went; not proved shortest"
    return build_trace(model, prop, small, found=found, seconds=perf_counter() - began, shortest=badge)


def write_plain_trace(trace: Trace, path: Path) -> None:
    """Write setup numbers and actions by name as JSON, for a run that may be killed before its report is written.

    Raises Unwritable.
    """
    content = {
        "property": trace.property,
        "why": trace.why,
        "setup": dict(trace.shrink.get("setup", {})),
        "actions": [{"name": action.name, "arguments": dict(action.arguments)} for action in trace.actions],
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise Unwritable(f"cannot write the trace to {path}: {error.strerror or error}.") from error
