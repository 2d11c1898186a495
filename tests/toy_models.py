"""Small models with known answers, for the tests of the engines: what each does wrong is said in its docstring.

Belongs here: models only, no tests. All are written against `outlives.model.contract` and nothing else.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from outlives.model.contract import Action, ActionTable, Argument, Choice, Property, Range, Refusal

__all__ = [
    "BrokenModel",
    "CounterModel",
    "FickleModel",
    "ForgetfulModel",
    "LockModel",
    "LockState",
    "MutableModel",
    "Tally",
    "TankModel",
    "TankState",
]


@dataclass(frozen=True, slots=True)
class Tally:
    """A number with a limit that it must not pass."""

    value: int
    limit: int


class CounterModel:
    """Adds and removes. Wrong when `faulty`: the limit is not looked at, so the value can pass it.

    The shortest violation is one `add` for limits below 5, and never needs `remove` or `rest`.
    """

    def __init__(self, *, faulty: bool, limit: int = 12) -> None:
        self.faulty = faulty
        self.limit = limit

    @property
    def action_table(self) -> ActionTable:
        return {"add": {"amount": Range(1, 5)}, "remove": {"amount": Range(1, 5)}, "rest": {"how": Choice(("a", "b"))}}

    def initial_states(self) -> Iterable[Tally]:
        return [Tally(0, self.limit)]

    def actions(self, state: Tally) -> Iterable[Action]:
        for amount in range(1, 6):
            yield Action.of("add", amount=amount)
            yield Action.of("remove", amount=amount)
        yield Action.of("rest", how="a")

    def next_state(self, state: Tally, action: Action) -> Tally | Refusal:
        amount = int(action.get("amount", 0))
        if action.name == "add":
            if not self.faulty and state.value + amount > state.limit:
                return Refusal("limit")
            return replace(state, value=state.value + amount)
        if action.name == "remove":
            return Refusal("empty") if amount > state.value else replace(state, value=state.value - amount)
        return state

    def properties(self) -> Sequence[Property[Tally]]:
        return [
            Property(
                name="BELOW-LIMIT",
                phrase="the value stays at or below the limit",
                holds=lambda _before, _action, after: after.value <= after.limit,
                explain=lambda _before, _action, after: f"the value is {after.value}, the limit {after.limit}",
                situation=lambda _before, action, _after: action is not None and action.name == "add",
                situation_phrase="something was added",
            ),
            Property(
                name="SMALL-STEPS",
                phrase="the value moves by at most four",
                holds=lambda before, _action, after: not self.faulty or abs(after.value - before.value) <= 4,
                explain=lambda before, _action, after: f"the value went from {before.value} to {after.value}",
                situation=lambda before, _action, after: before.value != after.value,
                situation_phrase="the value moved",
                kind="step",
            ),
            Property(
                name="NEVER-HUGE",
                phrase="a huge value is even",
                holds=lambda _before, _action, after: after.value < 10**6 or after.value % 2 == 0,
                explain=lambda _before, _action, after: f"the value is {after.value}",
                situation=lambda _before, _action, after: after.value >= 10**6,
                situation_phrase="the value reached a million",
            ),
        ]

    def within(self, state: Tally) -> bool:
        return state.value <= 200


class SetupCounterModel(CounterModel):
    """The faulty counter whose limit and start are numbers of the setup."""

    def __init__(self) -> None:
        super().__init__(faulty=True)

    @property
    def setup_table(self) -> Mapping[str, Range | Choice]:
        return {"limit": Range(3, 30), "start": Range(0, 20)}

    def initial_state(self, arguments: Mapping[str, Argument]) -> Tally:
        limit = int(arguments["limit"])
        return Tally(min(int(arguments["start"]), limit), limit)


@dataclass(frozen=True, slots=True)
class LockState:
    """Who holds the lock, who believes that they hold it, who waits."""

    inside: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()


class LockModel:
    """Two clients and a lock, without an action table. Wrong when `faulty`: a waiter enters without looking."""

    clients = ("ann", "bob")

    def __init__(self, *, faulty: bool) -> None:
        self.faulty = faulty

    def initial_states(self) -> Iterable[LockState]:
        return [LockState()]

    def actions(self, state: LockState) -> Iterable[Action]:
        for client in self.clients:
            if client in state.inside:
                yield Action.of("leave", client=client)
            elif client in state.waiting:
                yield Action.of("enter", client=client)
            else:
                yield Action.of("ask", client=client)

    def next_state(self, state: LockState, action: Action) -> LockState | Refusal:
        client = str(action.get("client", ""))
        if action.name == "ask" and client not in state.waiting + state.inside:
            return replace(state, waiting=(*state.waiting, client))
        if action.name == "leave" and client in state.inside:
            return replace(state, inside=tuple(name for name in state.inside if name != client))
        if action.name == "enter" and client in state.waiting:
            if state.inside and not self.faulty:
                return Refusal("taken")
            waiting = tuple(name for name in state.waiting if name != client)
            return LockState(inside=(*state.inside, client), waiting=waiting)
        return Refusal("not-now")

    def properties(self) -> Sequence[Property[LockState]]:
        return [
            Property(
                name="ONE-INSIDE",
                phrase="at most one client is inside",
                holds=lambda _before, _action, after: len(after.inside) <= 1,
                explain=lambda _before, _action, after: f"{' and '.join(after.inside)} are inside",
                situation=lambda _before, _action, after: bool(after.inside and after.waiting),
                situation_phrase="a client waited while another was inside",
            )
        ]

    def within(self, state: LockState) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class TankState:
    """A tank to be emptied: how much is in it, and whether its valve is jammed."""

    level: int = 0
    jammed: bool = False


class TankModel:
    """Fill, drain, jam. Wrong when `stuck`: a jammed valve never opens again, so the tank is never emptied.

    Wrong when `slow`: the fair run drains, but fills again each time, and never ends. Shortest start: `fill`, `jam`.
    """

    def __init__(self, *, stuck: bool = False, slow: bool = False) -> None:
        self.stuck = stuck
        self.slow = slow

    @property
    def action_table(self) -> ActionTable:
        return {"fill": {"amount": Range(1, 9)}, "drain": {}, "jam": {}}

    def initial_states(self) -> Iterable[TankState]:
        return [TankState()]

    def actions(self, state: TankState) -> Iterable[Action]:
        return [Action.of("fill", amount=1), Action.of("drain"), Action.of("jam")]

    def next_state(self, state: TankState, action: Action) -> TankState | Refusal:
        if action.name == "fill":
            return replace(state, level=min(20, state.level + int(action.get("amount", 1))))
        if action.name == "jam":
            return Refusal("jammed-already") if state.jammed else replace(state, jammed=True)
        if state.jammed:
            return Refusal("jammed") if self.stuck else replace(state, jammed=False)
        return Refusal("empty") if state.level == 0 else replace(state, level=state.level - 1)

    def properties(self) -> Sequence[Property[TankState]]:
        return [
            Property(
                name="EMPTIES",
                phrase="a tank that is left alone is emptied",
                holds=lambda _before, _action, after: after.level == 0,
                explain=lambda _before, _action, after: f"the level stays at {after.level}",
                situation=lambda before, _action, _after: before.level > 0,
                situation_phrase="there was something to drain",
                kind="progress",
            )
        ]

    def within(self, state: TankState) -> bool:
        return True

    def fair_action(self, state: TankState) -> Action | None:
        if self.slow and state.level == 1:
            return Action.of("fill", amount=2)
        return Action.of("drain") if state.level else None

    def fair_bound(self, state: TankState) -> int:
        return 30


class BrokenModel(CounterModel):
    """A sound counter whose next_state raises once the value is 7 or more."""

    def __init__(self) -> None:
        super().__init__(faulty=False)

    def next_state(self, state: Tally, action: Action) -> Tally | Refusal:
        if state.value >= 7:
            raise ZeroDivisionError("seven is too many")
        return super().next_state(state, action)


class ForgetfulModel(CounterModel):
    """A sound counter whose next_state forgets to return what it made of removing."""

    def next_state(self, state: Tally, action: Action) -> Tally | Refusal:
        after = super().next_state(state, action)
        return None if action.name == "remove" else after  # type: ignore[return-value]


class FickleModel(CounterModel):
    """A sound counter that is not deterministic: every second call adds one more than asked."""

    def __init__(self) -> None:
        super().__init__(faulty=False, limit=150)
        self._calls = 0

    def next_state(self, state: Tally, action: Action) -> Tally | Refusal:
        self._calls += 1
        after = super().next_state(state, action)
        return after if isinstance(after, Refusal) else replace(after, value=after.value + self._calls % 2)


class MutableModel(CounterModel):
    """A counter whose states are lists, which cannot be hashed."""

    def __init__(self) -> None:
        super().__init__(faulty=False)

    def initial_states(self) -> Iterable[Tally]:
        return [[0, self.limit]]  # type: ignore[list-item]
