"""How hard the Hypothesis machine tries: named profiles, and how they translate into Hypothesis settings.

Belongs here: numbers of cases and steps and what they mean, nothing about models. Why these choices: the explain phase
prints nothing for machines and costs four times the run, so it is off; CI's own Hypothesis profile switches the
database off, so every setting that matters is given here and none is inherited.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis.database import ExampleDatabase
from hypothesis.internal.conjecture import engine, providers
from outlives.model.errors import OutOfRange, UnknownName

from .machine_database import layered_database

__all__ = [
    "MACHINE_PROFILES",
    "MachineSettings",
    "hypothesis_settings",
    "machine_profile",
    "register_profiles",
    "runs_of_their_own",
    "same_draws_everywhere",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSettings:
    """How many runs, how long each, and what is done besides. Raises OutOfRange for numbers without meaning."""

    name: str
    cases: int
    """Runs of the machine, each from an initial state."""
    steps: int
    """Rule calls in each run, refused ones included."""
    fair_every: int = 8
    """Progress is judged at the end of each run and after every so many actions taken (0: at the end only)."""
    go_on: bool = True
    """Where a drawn action is refused, take another one (the model's fair one), so that a run gets somewhere."""
    shrink_replays: int = 20_000
    """How many shorter or smaller runs are tried on a violation, at most."""
    first_only: bool = False
    """Stop at the first violated property; the others are then `unknown`."""
    use_target: bool = False
    """Let Hypothesis climb towards runs that reach more situations. Off: it then keeps to the surroundings of one run,
    and other modes and routes are hardly met (docs/decisions.md)."""
    verbose: bool = False
    """Hand every rule call to the progress callback as a line of text."""
    database: Path | None = None
    """Folder where Hypothesis keeps failing runs to try them first the next time; None: nothing is kept."""
    artifacts: str | None = None
    """`OWNER/REPOSITORY` on GitHub whose jobs upload their database: read beside `database`, never written, so that
    what failed there is tried first here (`machine_database`)."""
    observe: Path | None = None
    """Folder where Hypothesis's observations are written, one line of JSON for each case (`machine_database`)."""

    def __post_init__(self) -> None:
        for what, value, low, high in (
            ("the number of cases", self.cases, 1, 10_000_000),
            ("the number of steps", self.steps, 1, 1_000),
            ("fair_every", self.fair_every, 0, 1_000),
            ("shrink_replays", self.shrink_replays, 0, 10_000_000),
        ):
            if not low <= value <= high:
                raise OutOfRange(what, value, low, high)

    def words(self) -> str:
        """The budgets of a run: `1,500 runs of up to 40 actions, 20,000 tries of shrinking`."""
        return f"{self.cases:,} runs of up to {self.steps} actions, {self.shrink_replays:,} tries of shrinking"

    def changed(self, **changes: object) -> "MachineSettings":
        """The same settings with some fields replaced."""
        return replace(self, **changes)  # type: ignore[arg-type]


MACHINE_PROFILES: Mapping[str, MachineSettings] = {
    "quick": MachineSettings(name="quick", cases=50, steps=20),
    "ci": MachineSettings(name="ci", cases=1_500, steps=40),
    "nightly": MachineSettings(name="nightly", cases=20_000, steps=80),
    "debug": MachineSettings(name="debug", cases=20, steps=20, verbose=True),
}
"""`quick` before a commit, `ci` on each change, `nightly` when there is time, `debug` to watch the machine."""


def machine_profile(name: str) -> MachineSettings:
    """The settings of this name. Raises UnknownName."""
    if name not in MACHINE_PROFILES:
        raise UnknownName("settings", name, MACHINE_PROFILES)
    return MACHINE_PROFILES[name]


def hypothesis_settings(
    chosen: MachineSettings, *, shrink: bool = False, database: ExampleDatabase | None = None
) -> settings:
    """These settings as Hypothesis takes them, with this database or the one that they name.

    `shrink` switches Hypothesis's own shrinking on; our engine shrinks the trace itself (see `machine_shrink`).
    """
    phases = [Phase.reuse, Phase.generate]
    if chosen.use_target:
        phases.append(Phase.target)
    if shrink:
        phases.append(Phase.shrink)
    return settings(
        max_examples=chosen.cases,
        stateful_step_count=chosen.steps,
        deadline=None,
        derandomize=False,
        database=database or layered_database(chosen.database, chosen.artifacts),
        print_blob=True,
        report_multiple_bugs=False,
        phases=phases,
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.debug if chosen.verbose else Verbosity.normal,
    )


def register_profiles() -> None:
    """Make the profiles known to Hypothesis as `outlives-quick`, `outlives-ci`, ...: for machines of one's own, by
    `--hypothesis-profile outlives-ci` or `settings.load_profile`. These shrink as Hypothesis does, and keep its
    database where it keeps it (CI's own profile would switch it off)."""
    for name, chosen in MACHINE_PROFILES.items():
        made = hypothesis_settings(chosen, shrink=True)
        settings.register_profile(f"outlives-{name}", made, database=settings.get_profile("default").database)


@contextmanager
def runs_of_their_own() -> Iterator[None]:
    """Keep Hypothesis from following each run with five that repeat parts of it.

    Such copies are for the same value met in several places, which actions bring about by themselves; with them five of
    six runs resemble another, and corners are met by so much fewer. There is no setting for it; a Hypothesis without
    this name draws as it pleases.
    """
    name = "generate_mutations_from"
    runner = engine.ConjectureRunner
    mutate = getattr(runner, name, None)
    if mutate is None:
        yield
        return
    setattr(runner, name, lambda *_: None)
    try:
        yield
    finally:
        setattr(runner, name, mutate)


@contextmanager
def same_draws_everywhere() -> Iterator[None]:
    """Keep Hypothesis from mixing numbers out of the loaded source files into what it draws.

    It collects the constants of every module that is not installed, so that the same seed would draw otherwise from a
    clone than from an installed package, and it keeps them in the current folder. There is no setting for it; a
    Hypothesis without these names draws as it pleases.
    """
    name = "_get_local_constants"
    collect = getattr(providers, name, None)
    cache: Any = getattr(getattr(providers, "CONSTANTS_CACHE", None), "cache", None)
    if collect is None or not hasattr(cache, "clear"):
        yield
        return
    nothing = type(collect())()
    setattr(providers, name, lambda: nothing)
    cache.clear()
    try:
        yield
    finally:
        setattr(providers, name, collect)
        cache.clear()
