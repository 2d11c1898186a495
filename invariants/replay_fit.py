"""Does a trace file fit the model that it names? Its scope, its actions and their arguments, checked before the run.

Belongs here: checks of names and numbers against the model's own tables, each with a sentence that lists what there is.
What a file must be at all is checked where it is read (`outlives.model.itf`, `outlives.model.trace`).
"""

from dataclasses import replace

from outlives.model.contract import ActionTable, Choice, Range
from outlives.model.errors import BadTrace, UnknownName
from outlives.model.itf import quoted
from outlives.model.offers import HIT
from outlives.model.scheduler import SchedulerModel
from outlives.model.setup import MODE_WORDS, Setup, request_name
from outlives.model.trace import Recorded
from outlives.model.world import ASSUMPTIONS, Switches, World

from .configuration import Configuration
from .trace_file import setup_numbers

__all__ = ["check_actions", "check_scope", "vocabulary"]


def check_scope(recorded: Recorded, configuration: Configuration, world: World, setup: Setup) -> None:
    """The file's setup must be one of the file's own scope."""
    if "look-ahead" in world.closed and setup.look_ahead:
        raise BadTrace(
            f"{recorded.where}: route look-ahead is closed, but the setup's look_ahead is {setup.look_ahead}."
        )
    for mode, name in MODE_WORDS.items():
        if getattr(configuration, name) and getattr(setup, name) == 0:
            raise BadTrace(f"{recorded.where} is of mode {mode}, but the setup's {name} is 0.")
    if world.policy == "fcfs" and setup.by_priority == 1:
        raise BadTrace(f"{recorded.where} was made with policy fcfs, but the setup's by_priority is 1.")
    unused = "tail" if configuration.items_anywhere else "prompt"  # of the two, a scope draws one (see `Scope`)
    for name, (low, high) in configuration.numbers.items():
        if name == unused:
            continue
        for number in setup_numbers(setup, name):
            cleared = number == 0 and name in ("look_ahead", "whole_items")  # a closed route, or items anywhere
            alone = number == 1 and name == "turns" and setup.encoder_decoder == 1  # such models have no sessions
            wrong = number != low if name == "requests" else not low <= number <= high
            if wrong and not cleared and not alone:
                raise BadTrace(
                    f"{recorded.where} is from another scope: {name} is {number} in its setup, "
                    f"but {low} to {high} in its scope."
                )


def vocabulary(world: World, setup: Setup) -> ActionTable:
    """Every action with every argument that it can have under any assumption and route, for the setup's requests; and
    what a real prefix cache may have answered."""
    scope = (
        Configuration()
        .scope()
        ._replace(requests=len(setup.requests), drafts=Range(0, 1), strangers=Range(0, 1), items=Range(1, 1))
    )
    table: dict[str, dict[str, Range | Choice]] = {}
    for split in (False, True):
        free = replace(
            world, relaxed=frozenset(ASSUMPTIONS), reader="any", closed=frozenset(), split=split, switches=Switches()
        )
        for name, arguments in SchedulerModel(free, scope).action_table.items():
            table.setdefault(name, {}).update(arguments)
    for name in ("schedule", "resume"):
        table[name].update({f"{HIT}{request_name(number)}": Range(0, 1) for number in range(len(setup.requests))})
    return table


def check_actions(recorded: Recorded, table: ActionTable, keys: set[str]) -> None:
    for place, step in enumerate(recorded.steps):
        action = step.action
        if action is None:
            continue
        at = f"{recorded.where}, state {place}"
        if action.name not in table:
            raise BadTrace(f"{at}: {UnknownName('action', action.name, table)}")
        domains = table[action.name]
        for name, value in action.arguments:
            if name not in domains:
                raise BadTrace(f"{at}: {UnknownName(f'argument of {action.name}', name, domains or ('none',))}")
            _check_value(f"{at}: {name} of {action.name}", domains[name], value, keys if name == "omit" else set())
        for name, domain in domains.items():
            needed = isinstance(domain, Choice) and "none" not in domain.names
            if needed and name not in dict(action.arguments):
                raise BadTrace(f"{at}: {action.name} lacks its argument {name}.")


def _check_value(what: str, domain: Range | Choice, value: int | str, more: set[str]) -> None:
    if isinstance(domain, Range):
        if not isinstance(value, int):
            raise BadTrace(f"{what} must be a whole number, not {quoted(value)}.")
    elif value not in domain.names and value not in more:
        names = ", ".join([*domain.names, *sorted(more - set(domain.names))])
        raise BadTrace(f"{what} is {quoted(value)}, which this trace's setup does not have. It has: {names}.")
