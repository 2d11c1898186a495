"""A fault as a value: what it turns or replaces, what it breaks, and the smallest setup that shows it.

Belongs here: the record, what plants a user's own faulty rules, and setups written in a line. The faults: in `faults`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from .errors import Contradiction, UnknownName
from .lifetime import guard_named
from .profiles import SWITCHES, Profile
from .setup import RARE_ROUTES, Item, RequestSetup, Setup, Turn, key_name, routes_left_out
from .world import Rules

__all__ = ["Fault", "asks", "one_request", "rules_of", "setup_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault. Planted into a profile it gives another profile; `scope` is where it shows first."""

    name: str
    phrase: str
    """The mechanism, in one sentence."""
    breaks: str
    """The property that is violated; of a negative, the one that was said to be."""
    scope: Setup | None = None
    """The smallest setup that shows it: no number of it can be lowered without losing the violation, or making the run
    to it longer. None: not stated; every named scope is then visited."""
    actions: int = 0
    """Of the shortest run to the violation there (for progress: to the state from which nothing gets on); 0: not
    stated."""
    rows: tuple[int, ...] = ()
    source: str = ""
    mended: str = ""
    """The release that mended it."""
    switches: Mapping[str, int] = field(default_factory=dict)
    """Switches of the profile that it turns."""
    guard: str | None = None
    rules: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """Rules that it replaces, by field of `Rules`."""
    beside: Mapping[str, int] = field(default_factory=dict)
    """Switches turned as well, as they were when it was so. With these alone, its property holds in its scope."""
    closed: tuple[str, ...] = ()
    """Routes closed, on which the switches beside it are faults themselves."""
    why_not: str = ""
    """Of a negative: why it is none."""

    def __post_init__(self) -> None:
        for name in (*self.switches, *self.beside):
            if name not in SWITCHES:
                raise UnknownName(f"switch of fault {self.name}", name, SWITCHES)
        known = [each.name for each in fields(Rules)]
        for name in self.rules:
            if name not in known:
                raise UnknownName(f"rule of fault {self.name}", name, known)
        if not (self.switches or self.rules or self.guard is not None):
            raise Contradiction(f"fault {self.name} changes nothing: give it switches, a guard or rules.")

    def planted(self, profile: Profile) -> Profile:
        """The profile with the fault in it."""
        guard = profile.guard if self.guard is None else guard_named(self.guard)
        switches = replace(profile.switches, **{**self.beside, **self.switches})
        return replace(profile, guard=guard, switches=switches, rules=replace(profile.rules, **self.rules))

    def beside_it(self, profile: Profile) -> Profile:
        """The profile as it was beside the fault, and without it: a switch that the profile has so by itself, where
        what else it has makes up for it, is turned the other way."""
        mended = {name: 1 - on for name, on in self.switches.items() if getattr(profile.switches, name) == on}
        return replace(profile, switches=replace(profile.switches, **{**self.beside, **mended}))


def rules_of(found: type[Rules], name: str) -> Callable[[Rules], Rules]:
    """What plants a subclass of `Rules` that has faulty rules as static methods; raises `Contradiction` where it has
    none."""
    own = [each.name for each in fields(Rules) if getattr(found, each.name) is not getattr(Rules, each.name)]
    if not own:
        raise Contradiction(f"fault {name} replaces no rule: it defines none of the names of Rules.")
    return lambda rules: replace(rules, **{rule: getattr(found, rule) for rule in own})


# --- setups, in a line each -------------------------------------------------------------------------------------------


def _items(spans: tuple[tuple[int, int], ...], first_key: int, sizes: int | None, keys: str | None) -> tuple[Item, ...]:
    return tuple(
        Item(start, end - start, keys or key_name(first_key + at), end - start if sizes is None else sizes)
        for at, (start, end) in enumerate(spans)
    )


def asks(
    *spans: tuple[int, int],
    prompt: int,
    outputs: int = 1,
    first_key: int = 0,
    size: int | None = None,
    key: str | None = None,
    turn: tuple[int, int] | None = None,
) -> RequestSetup:
    """A request with items [start, end); a further turn as (prompt, outputs)."""
    turns = () if turn is None else (Turn(*turn),)
    return RequestSetup(prompt, outputs, _items(spans, first_key, size, key), turns=turns)


def one_request(
    *spans: tuple[int, int], prompt: int, outputs: int = 1, slots: int = 1, budget: int = 1, **more: Any
) -> Setup:
    """The setup of one request with items [start, end), each of as many slots as tokens, one step in flight and no rare
    route; further numbers as in `Setup`, `routes` (joined by +) and `turn` besides."""
    asked = asks(
        *spans, prompt=prompt, outputs=outputs, **{k: more.pop(k) for k in ("size", "key", "turn") if k in more}
    )
    return setup_of(asked, slots=slots, budget=budget, **more)


def setup_of(*asked: RequestSetup, slots: int = 1, budget: int = 1, routes: str = "usual", **numbers: int) -> Setup:
    left_out = routes_left_out(routes) if routes != "usual" else RARE_ROUTES
    return Setup(asked, slots, budget, left_out=left_out, **{"depth": 1, **numbers})
