"""Small worlds for tests: setups written as a line, and models fixed to given setups."""

from collections.abc import Iterable, Mapping
from typing import Any

from outlives.invariants.properties import scheduler_properties
from outlives.model.contract import Action, Range, Refusal
from outlives.model.lifetime import guard_named
from outlives.model.profiles import PROFILES
from outlives.model.scheduler import SchedulerModel, initial_state
from outlives.model.setup import RARE_ROUTES, Item, RequestSetup, Scope, Setup, key_name
from outlives.model.state import State
from outlives.model.world import Rules, World


def setup(
    items: Iterable[tuple[int, int]],
    prompt: int,
    *,
    outputs: int = 2,
    slots: int = 8,
    budget: int = 8,
    left_out: tuple[str, ...] = RARE_ROUTES,
    **numbers: int,
) -> Setup:
    """One request with items [start, end) of distinct keys; an item takes as many slots as it has tokens. Rare routes
    are taken only where `left_out` does not name them."""
    made = tuple(Item(start, end - start, key_name(at), end - start) for at, (start, end) in enumerate(items))
    return Setup((RequestSetup(prompt, outputs, made),), slots, budget, left_out=left_out, **numbers)


def world(profile: str = "repaired", *, guard: str | None = None, rules: Rules | None = None, **fields: Any) -> World:
    """The world of a profile; `relaxed` and `closed` may be given as any iterable of names."""
    chosen = PROFILES[profile]
    for name in ("relaxed", "closed"):
        fields[name] = frozenset(fields.get(name, ()))
    return World(
        rules=chosen.rules if rules is None else rules,
        switches=chosen.switches,
        guard=chosen.guard if guard is None else guard_named(guard),
        **fields,
    )


class FixedModel(SchedulerModel):
    """A scheduler model that begins in the given setups and nowhere else."""

    def __init__(self, fixed: World, setups: Iterable[Setup], *, anywhere: bool = False) -> None:
        self.setups = tuple(setups)
        scope = Scope(
            requests=max(len(one.requests) for one in self.setups),
            anywhere=anywhere,
            items=Range(1, max(len(one.requests[0].items) for one in self.setups) or 1),
            drafts=Range(0, max(one.drafts for one in self.setups)),
            depth=Range(1, max(one.depth for one in self.setups)),
            strangers=Range(0, max(one.strangers for one in self.setups)),
        )
        super().__init__(fixed, scope, scheduler_properties(fixed))

    def initial_states(self) -> Iterable[State]:
        return tuple(initial_state(one) for one in self.setups)

    @property
    def setup_table(self) -> Mapping[str, Range]:  # type: ignore[override]
        return {"setup": Range(0, len(self.setups) - 1)}

    def initial_state(self, arguments: Mapping[str, Any]) -> State:
        return initial_state(self.setups[min(len(self.setups) - 1, max(0, int(arguments.get("setup", 0))))])


def fixed(profile: str, *setups: Setup, anywhere: bool = False, **fields: Any) -> FixedModel:
    """A model of that profile over exactly these setups."""
    return FixedModel(world(profile, **fields), setups, anywhere=anywhere)


def action(text: str) -> Action:
    """An action written as it is shown: `reject(accepted=1)`, `schedule()`."""
    name, _, rest = text.partition("(")
    arguments: dict[str, int | str] = {}
    for pair in rest.rstrip(")").split(","):
        if pair.strip():
            key, _, value = pair.strip().partition("=")
            arguments[key] = int(value) if value.lstrip("-").isdigit() else value
    return Action.of(name, **arguments)


def run(model: SchedulerModel, *actions: str) -> State:
    """The state after these actions, none of which may be refused."""
    state = next(iter(model.initial_states()))
    for text in actions:
        after = model.next_state(state, action(text))
        assert not isinstance(after, Refusal), f"{text}: {after.reason}"
        state = after
    return state


def refusal(model: SchedulerModel, state: State, text: str) -> str:
    """Why the action is refused in this state."""
    after = model.next_state(state, action(text))
    assert isinstance(after, Refusal), f"{text} was taken"
    return after.reason


def fair_end(model: SchedulerModel, state: State) -> State:
    """Where the fair run from this state ends."""
    for _ in range(model.fair_bound(state)):
        chosen = model.fair_action(state)
        if chosen is None:
            return state
        after = model.next_state(state, chosen)
        assert not isinstance(after, Refusal)
        state = after
    raise AssertionError("the fair run does not end within its bound")
