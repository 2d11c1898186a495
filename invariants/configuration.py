"""What a run is about, as one plain record: profile, guard, assumptions, routes, scope. It builds the model.

Belongs here: the record, its checks (contradictions, ranges), and its plain form, which every trace carries so that it
replays. The command line fills it in; nothing here reads arguments or prints.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import Any, Literal

from outlives.model.contract import Property, Range
from outlives.model.errors import Contradiction, OutOfRange, UnknownName
from outlives.model.fault import Fault, rules_of
from outlives.model.faults import fault_named
from outlives.model.lifetime import guard_named
from outlives.model.profiles import Profile, profile_named
from outlives.model.scenarios import Scenario, scenario_named
from outlives.model.scheduler import SchedulerModel
from outlives.model.setup import ALL_ROUTES, MODE_WORDS, PLAIN, PLAIN_ROUTES, RARE_ROUTES, Scope, check_scope
from outlives.model.state import State
from outlives.model.world import ASSUMPTIONS, ROUTES, Policy, Reader, Rules, World

from .properties import known_property, scheduler_properties
from .scopes import NAMED_SCOPES
from .userfile import call_named, load_named

__all__ = ["DEFAULT_SCOPE", "READERS", "Configuration"]

READERS: tuple[Reader, ...] = ("checked", "true", "any")
POLICIES: tuple[Policy, ...] = ("fcfs", "priority", "both")
Arrivals = Literal["in-order", "any"]
ARRIVALS: tuple[Arrivals, ...] = ("in-order", "any")

DEFAULT_SCOPE = Scope(
    requests=2,
    shared=Range(0, 1),
    priority=Range(0, 2),
    turns=Range(1, 2),
    by_priority=Range(0, 1),
    encoder_budget=Range(0, 2),
    chunk_cap=Range(0, 2),
    depth=Range(1, 3),
    modes=(PLAIN,) * 5 + tuple(MODE_WORDS),
    routes=tuple(dict.fromkeys((PLAIN_ROUTES, ALL_ROUTES, *RARE_ROUTES, *(each.routes for each in NAMED_SCOPES)))),
)
"""The numbers that the machine draws when nothing is said: small, so that runs are short and corners are met often."""

_PRESETS = tuple(
    (each.name, {**each.numbers, "mode": each.mode, "routes": each.routes})
    for each in NAMED_SCOPES
    for _ in range(each.weight)
)
"""Most of the machine's runs begin with a named scope's numbers: each is there for a corner that draws seldom meet."""

NOT_ENCODER_DECODER = frozenset({"kv-load-failure", "sessions"})
"""Routes that encoder-decoder models do not have: KV connectors are refused with them, and a second turn would begin
its items after the first position."""
_SAY_NOTHING = {
    "encoder_decoder": ("entries that requests share and that become idle", ("PLANNED-ENCODED", "IDLE-EXACT")),
    "synchronous": ("outputs that are promised", ("PLACEHOLDERS-KEPT",)),
    "items_anywhere": ("prompts: items among outputs, which no release has, can hold each other's room", ("PROGRESS",)),
}
"""Field of the configuration -> what it leaves out, and the properties that are about that. (With items among outputs
every guard may be stuck, since it is asked before the output's own tokens count: `outlives table` has the traces.)"""

_MOST = {"requests": (1, 3), "turns": (1, 4), "items": (0, 8), "depth": (1, 8), "drafts": (0, 64)}
"""Numbers that grow the state itself, or the choices at every step: the least and the most that a run can do with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One subject under one set of assumptions. Every field has the name and the words of its option."""

    profile: str = "repaired"
    """A known profile, or `path.py:name` of one."""
    guard: str | None = None
    """None: the profile's own."""
    relax: tuple[str, ...] = ()
    reader: Reader | None = None
    """None: `checked`, or `any` where A3 is relaxed."""
    without: tuple[str, ...] = ()
    scenario: str | None = None
    policy: Policy = "both"
    synchronous: bool = False
    diffusion: bool = False
    encoder_decoder: bool = False
    """Modes: none of them given, each is drawn now and then; otherwise every run is of the given ones."""
    fault: str | None = None
    """A known fault, or `path.py:name` of one: a `Fault`, a subclass of `Rules`, or a function from rules to rules."""
    items_anywhere: bool = False
    split: bool = False
    arrivals: Arrivals = "in-order"
    """`in-order`: requests arrive as they are numbered; `any`: in any order."""
    numbers: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Ranges of the scope that the user gave, by field of `Scope`."""
    properties: tuple[str, ...] = ()
    """Only these properties; empty: all, or the scenario's."""

    def __post_init__(self) -> None:
        _known("assumption", self.relax, ASSUMPTIONS)
        _known("route", self.without, ROUTES)
        if self.reader is not None:
            _known("reader", (self.reader,), READERS)
        _known("policy", (self.policy,), POLICIES)
        _known("order of arrivals", (self.arrivals,), ARRIVALS)
        for name in self.properties:
            known_property(name)
        if self.reader == "checked" and "A3" in self.relax:
            raise Contradiction("--relax A3 and --reader checked contradict: a reader that starts where it was "
                                "checked is what A3 says. Drop one of them.")  # fmt: skip
        if self.scenario is not None:
            scenario = scenario_named(self.scenario)
            if self.items_anywhere:
                raise Contradiction(f"scenario {scenario.name} fixes where its items lie; drop --items-anywhere.")
            if self.numbers:
                names = ", ".join("--" + name.replace("_", "-") for name in self.numbers)
                raise Contradiction(f"scenario {scenario.name} fixes its numbers; drop {names}.")
            if self.mode() != PLAIN:
                modes = ", ".join(f"--{word}" for word in self.mode().split("+"))
                raise Contradiction(f"scenario {scenario.name} is about the usual mode; drop {modes}.")
        self._check_modes()
        if self.guard is not None:
            guard_named(self.guard)
        for name, (low, high) in _MOST.items():
            asked = self.numbers.get(name)
            if asked is not None and asked[1] > high:
                raise OutOfRange(f"--{name}", asked[1], low, high)
            if asked is not None and asked[0] < low and name in ("requests", "turns"):
                raise OutOfRange(f"--{name}", asked[0], low, high)
        check_scope(self.scope())

    def _check_modes(self) -> None:
        """Refuse modes that contradict each other or the numbers."""
        drafts, turns = self.numbers.get("drafts"), self.numbers.get("turns")
        if self.diffusion and drafts is not None and drafts[1] == 0:
            raise Contradiction("--diffusion and --drafts 0 contradict: a diffusion model samples nothing beside its "
                                "drafts, so that no request would ever get an output. Give at least 1.")  # fmt: skip
        if self.encoder_decoder and self.diffusion:
            raise Contradiction("--encoder-decoder and --diffusion contradict: no model is both. Drop one of them.")
        if self.encoder_decoder and self.items_anywhere:
            raise Contradiction("--encoder-decoder and --items-anywhere contradict: such a model reads all its items "
                                "at the first position of the prompt. Drop one of them.")  # fmt: skip
        if turns is not None and turns[0] > 1:
            if self.encoder_decoder:
                raise Contradiction("--encoder-decoder and --turns of more than 1 contradict: a second turn would "
                                    "begin its items after the first position. Let --turns begin at 1.")  # fmt: skip
            if "sessions" in self.without:
                raise Contradiction("--without sessions and --turns of more than 1 contradict: a session is what has "
                                    "more turns. Drop one of them.")  # fmt: skip

    def _check_release(self, profile: Profile) -> None:
        """Refuse modes and turns that the release does not have."""
        turns = self.numbers.get("turns", (1, 1))
        for asked, switch, option, without in (
            (self.diffusion, "diffusion", "diffusion", "knows no diffusion models (released from 0.24.0 on)"),
            (self.encoder_decoder, "encoder_decoder", "encoder-decoder",
             "has no cache manager for such models (released from 0.13.0 on)"),
            (turns[0] > 1, "sessions", "turns of more than 1", "has no sessions (released from 0.15.0 on)"),
        ):  # fmt: skip
            if asked and getattr(profile.switches, switch) == 0:
                raise Contradiction(f"--{option}: profile {self.profile} {without}.")

    @property
    def relaxed(self) -> frozenset[str]:
        """Relaxed assumptions; a reader other than `checked` relaxes A3."""
        relaxed = frozenset(self.relax)
        return relaxed | {"A3"} if self.reader in ("true", "any") else relaxed

    @property
    def worker_reader(self) -> Reader:
        """Where the worker starts to read."""
        if self.reader is not None:
            return self.reader
        return "any" if "A3" in self.relax else "checked"

    def subject(self) -> Profile:
        """The profile, with the rules after the fault and the guard that is asked for."""
        profile = _profile(self.profile)
        fault = self.fault_record()
        if fault is not None:
            profile = fault.planted(profile)
        elif self.fault is not None:
            profile = replace(profile, rules=self._faulty(profile.rules))
        if self.guard is not None:
            profile = replace(profile, guard=guard_named(self.guard))
        return profile

    def fault_record(self) -> Fault | None:
        """The fault as a record: one of the catalogue, or a user's own; None for rules alone, or no fault."""
        if self.fault is None:
            return None
        if not _of_a_file(self.fault):
            return fault_named(self.fault)
        found = load_named(self.fault, "fault")
        return found if isinstance(found, Fault) else None

    def _faulty(self, rules: Rules) -> Rules:
        """The rules with the user's fault in them: what a function makes of them, or a subclass has of its own."""
        assert self.fault is not None
        found = load_named(self.fault, "fault")
        if isinstance(found, type) and issubclass(found, Rules):
            return rules_of(found, self.fault)(rules)
        faulty = call_named(self.fault, "fault", rules)
        if not isinstance(faulty, Rules):
            raise Contradiction(f"fault {self.fault} returned {type(faulty).__name__}, not the Rules it was given.")
        return faulty

    def scenario_record(self) -> Scenario | None:
        """The scenario, if one is chosen."""
        return None if self.scenario is None else scenario_named(self.scenario)

    def scope(self) -> Scope:
        """The numbers that are drawn."""
        scenario = self.scenario_record()
        if scenario is not None:
            return scenario.scope
        changes: dict[str, Any] = {
            name: span[0] if name == "requests" else Range(*span) for name, span in self.numbers.items()
        }
        if self.policy != "both":
            low = int(self.policy == "priority")
            changes["by_priority"] = Range(low, low)
        changes["modes"] = self._modes()
        if "sessions" in self.without:
            changes.setdefault("turns", Range(1, 1))
        return DEFAULT_SCOPE._replace(anywhere=self.items_anywhere, presets=_PRESETS, **changes)

    def mode(self) -> str:
        """The modes that were asked for, joined by `+`; `plain` where none was."""
        return "+".join(word for word, name in MODE_WORDS.items() if getattr(self, name)) or PLAIN

    def _modes(self) -> tuple[str, ...]:
        """The modes that are drawn from: the ones asked for, or all that the numbers allow."""
        if self.mode() != PLAIN:
            return (self.mode(),)
        excluded = set()
        if self.numbers.get("drafts", (0, 1))[1] == 0:
            excluded.add("diffusion")  # nothing would ever be sampled
        if self.items_anywhere:
            excluded.add("encoder-decoder")  # its items are read at the first position
        return tuple(mode for mode in DEFAULT_SCOPE.modes if mode not in excluded)

    def world(self) -> World:
        """The scheduler under its assumptions."""
        profile = self.subject()
        self._check_release(profile)
        scenario = self.scenario_record()
        closed = frozenset(self.without) | (scenario.closed if scenario is not None else frozenset())
        if self.encoder_decoder:
            closed |= NOT_ENCODER_DECODER
        fault = self.fault_record()
        if fault is not None:
            closed |= frozenset(fault.closed)
        return World(
            rules=profile.rules,
            switches=profile.switches,
            guard=profile.guard,
            relaxed=self.relaxed,
            reader=self.worker_reader,
            closed=closed,
            policy=self.policy,
            split=self.split,
            any_arrival=self.arrivals == "any",
        )

    def judged(self, world: World) -> Sequence[Property[State]]:
        """The properties that the run judges."""
        scenario = self.scenario_record()
        names = self.properties or (scenario.properties if scenario is not None else ())
        if not names:
            return tuple(prop for prop in scheduler_properties(world) if prop.name not in self.properties_of_others())
        return tuple(prop for prop in scheduler_properties(world) if prop.name in names)

    def properties_of_others(self) -> dict[str, str]:
        """The properties that say nothing of the modes asked for -> what they are about. Those named are judged."""
        modes = [mode for mode in _SAY_NOTHING if getattr(self, mode)]
        left = {name: _SAY_NOTHING[mode][0] for mode in modes for name in _SAY_NOTHING[mode][1]}
        return {name: about for name, about in left.items() if name not in self.properties}

    def model(self, scope: Scope | None = None) -> SchedulerModel:
        """The model over the configured scope, or over another one."""
        world = self.world()
        return SchedulerModel(world, self.scope() if scope is None else scope, self.judged(world))

    def title(self) -> str:
        """The subject and its assumptions, in one line."""
        world = self.world()
        relaxed = ", ".join(sorted(world.relaxed))
        assumptions = f"A1-A4 less {relaxed}" if relaxed else "A1-A4"
        reader = f", reader {world.reader}" if world.reader != "checked" else ""
        scenario = f", scenario {self.scenario}" if self.scenario else ""
        fault = f", fault {self.fault}" if self.fault else ""
        requests = self.scope().requests
        any_order = ", arriving in any order" if world.any_arrival else ""
        policy = "both policies" if world.policy == "both" else world.policy
        many = f", {requests} requests{any_order}, {policy}" if requests > 1 else ""
        many += f", {self.mode()}" if self.mode() != PLAIN else ""
        return f"profile {self.profile}, guard {world.guard.name}, {assumptions}{reader}{many}{scenario}{fault}"

    def replay_command(self, path: Path) -> str:
        """The command that takes a trace file of this configuration again; a user's files have to be named anew."""
        command = f"outlives replay {quote(str(path))}"
        if ".py:" in self.profile:
            command += f" --profile {quote(self.profile)}"
        if self.fault is not None and ".py:" in self.fault:
            command += f" --fault {quote(self.fault)}"
        return command

    def plain(self) -> dict[str, Any]:
        """The record as JSON values, in a fixed order; `from_plain` reads it back."""
        world = self.world()
        return {
            "profile": self.profile,
            "guard": world.guard.name,
            "relaxed": sorted(self.relaxed),
            "reader": self.worker_reader,
            "without": sorted(world.closed),
            "scenario": self.scenario,
            "policy": self.policy,
            **{name: True for name in MODE_WORDS.values() if getattr(self, name)},
            "fault": self.fault,
            "items_anywhere": self.items_anywhere,
            "split": self.split,
            "arrivals": self.arrivals,
            "numbers": {name: list(span) for name, span in sorted(self.numbers.items())},
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "Configuration":
        """Read back what `plain` wrote. Raises an `OutlivesError` where a name or number does not fit."""
        reader = plain.get("reader", "checked")
        relaxed = tuple(name for name in plain.get("relaxed", ()) if name != "A3" or reader == "checked")
        scenario = plain.get("scenario")
        closed = set(plain.get("without", ()))
        if scenario is not None:
            closed -= scenario_named(scenario).closed
        return cls(
            profile=plain.get("profile", "repaired"),
            guard=plain.get("guard"),
            relax=relaxed,
            reader=reader,
            without=tuple(sorted(closed)),
            scenario=scenario,
            policy=plain.get("policy", "fcfs"),
            **{name: plain.get(name, False) for name in MODE_WORDS.values()},
            fault=plain.get("fault"),
            items_anywhere=plain.get("items_anywhere", False),
            split=plain.get("split", False),
            arrivals=plain.get("arrivals", "in-order"),
            numbers={name: (span[0], span[1]) for name, span in plain.get("numbers", {}).items()},
        )


def _known(kind: str, names: Sequence[str], known: Mapping[str, Any] | Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise UnknownName(kind, name, known)


def _of_a_file(name: str) -> bool:
    """Whether a name is meant as `path.py:name`, and not as one of ours."""
    return ":" in name or name.endswith(".py")


def _profile(name: str) -> Profile:
    if not _of_a_file(name):
        return profile_named(name)
    profile = load_named(name, "profile")
    if not isinstance(profile, Profile):
        raise Contradiction(f"{name} is {type(profile).__name__}, not a Profile of outlives.model.")
    return profile
