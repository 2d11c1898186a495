"""What must hold of the scheduler, as values. Each is checked, counted and reported on its own.

Belongs here: one `Property` per invariant of the cache's lifetime, its phrase, and the situation without which a run
says nothing about it. The predicates are in `judge_cache` and `judge_requests`; how they are checked is the engines'.
"""

from collections.abc import Callable

from outlives.model.contract import Action, Property
from outlives.model.errors import UnknownName
from outlives.model.profiles import PROFILES, RELEASED_RULES
from outlives.model.state import State
from outlives.model.world import World

from .judge_cache import (
    drained_with_shelf,
    has_entries,
    has_idle,
    has_references,
    idle,
    left_over,
    missed,
    nothing_missed,
    planned,
    planned_encoded,
    quiet,
    read_an_item,
    references,
    released,
    released_twice,
    shelf_differs,
    slots,
    why_unencoded,
)
from .judge_requests import (
    all_finished,
    counters_sound,
    monotone,
    output_of_running,
    output_processed,
    placeholders_kept,
    promises,
    someone_unfinished,
    why_counters,
    why_fallen,
    why_stuck,
    why_unkept,
)

__all__ = ["OF_SUBJECTS", "PROPERTY_NAMES", "known_property", "scheduler_properties"]


_LEFT, _ENCODED, _RELEASED = "SITUATION-DISPATCHED", "SITUATION-ENCODED", "SITUATION-RELEASED"
"""Situations that come before those of the properties (`situations`)."""


def _by_text(
    name: str,
    phrase: str,
    wrong: Callable[[State], str],
    situation: Callable[[State, Action | None, State], bool],
    situation_phrase: str,
    towards: tuple[str, ...] = (),
    more: str = "",
) -> Property[State]:
    """A state property given by a function that says what is wrong, or nothing."""
    return Property(
        name=name,
        phrase=phrase,
        holds=lambda _before, _action, after: not wrong(after),
        explain=lambda _before, _action, after: wrong(after),
        situation=situation,
        situation_phrase=situation_phrase,
        towards=towards,
        more=more,
    )


def scheduler_properties(world: World) -> tuple[Property[State], ...]:
    """Every property of the scheduler that `world` describes."""
    return (
        Property(
            name="GATHER-AFTER-FREE",
            phrase="each item that a step reads is on the worker's shelf (tolerated look-ahead aside)",
            holds=nothing_missed,
            explain=lambda _before, _action, after: missed(after),
            situation=read_an_item,
            situation_phrase="a step read an item",
            towards=(_LEFT, _ENCODED),
            more="--items",
        ),
        Property(
            name="PLANNED-ENCODED",
            phrase="whatever the book has is on the shelf, or is encoded by a step in flight",
            holds=planned_encoded,
            explain=why_unencoded,
            situation=planned,
            situation_phrase="a step was told to encode",
            towards=(_LEFT,),
            more="--items",
        ),
        Property(
            name="COUNTERS-SOUND",
            phrase="no counter is negative, and a running request's placeholders do not exceed its computed tokens",
            holds=counters_sound,
            explain=why_counters,
            situation=output_processed,
            situation_phrase="an output was processed",
            towards=(_LEFT,),
        ),
        Property(
            name="PLACEHOLDERS-KEPT",
            phrase="a running request's placeholders are what its live steps in flight have promised",
            holds=placeholders_kept,
            explain=why_unkept,
            situation=promises,
            situation_phrase="a step in flight promised outputs",
            towards=(_LEFT,),
        ),
        Property(
            name="CONFIRMED-MONOTONE",
            phrase="computed - placeholders of a running request never falls, declared lowerings apart",
            holds=monotone,
            explain=why_fallen,
            situation=output_of_running,
            situation_phrase="an output of a running request was processed",
            towards=(_LEFT,),
            kind="step",
        ),
        _by_text(
            "SLOTS-ADD-UP",
            "free, held and strangers' slots are the capacity; reclaimable slots are the free and the idle ones",
            slots,
            has_entries,
            "the book had an entry",
            (_LEFT,),
            "--items",
        ),
        _by_text(
            "REFERENCES-MATCH",
            "the holders of each entry are the requests that still have an unreleased occurrence of its key",
            references,
            has_references,
            "a request referenced an item",
            (_LEFT, _ENCODED),
            "--items",
        ),
        _by_text(
            "IDLE-EXACT",
            "the idle queue holds exactly the unreferenced entries, each once",
            idle,
            has_idle,
            "an entry was idle",
            (_LEFT, _ENCODED, _RELEASED),
        ),
        _by_text(
            "SHELF-AGREES",
            "with every step executed, the shelf is the book: nothing missing, nothing leaked",
            shelf_differs,
            drained_with_shelf,
            "every step had executed and the shelf was not empty",
            (_LEFT, _ENCODED),
            "--items",
        ),
        _by_text(
            "RELEASE-ONCE",
            "releasing an occurrence twice changes nothing",
            lambda state: released_twice(world, state),
            released,
            "a reference was released",
            (_LEFT, _ENCODED),
        ),
        _by_text(
            "NOTHING-LEFT",
            "once all requests are done and the pipeline is empty, nothing is referenced, promised or held",
            left_over,
            lambda _before, _action, after: quiet(after),
            "all requests were done and the pipeline was empty",
            (_LEFT, "SITUATION-PROCESSED"),
        ),
        Property(
            name="PROGRESS",
            phrase="left alone by the environment, every request finishes",
            holds=all_finished,
            explain=lambda _before, _action, end: why_stuck(world, end),
            situation=someone_unfinished,
            situation_phrase="a run was left alone while a request was unfinished",
            kind="progress",
        ),
    )


PROPERTY_NAMES = tuple(
    prop.name
    for prop in scheduler_properties(
        World(rules=RELEASED_RULES, switches=PROFILES["repaired"].switches, guard=PROFILES["repaired"].guard)
    )
)


OF_SUBJECTS = ("NO-EXCEPTION",)
"""What is asked of real schedulers besides (`subject.live`)."""


def known_property(name: str) -> str:
    """The name itself; raises `UnknownName` with the known ones."""
    if name not in (*PROPERTY_NAMES, *OF_SUBJECTS):
        raise UnknownName("property", name, (*PROPERTY_NAMES, *OF_SUBJECTS))
    return name
