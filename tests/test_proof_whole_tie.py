"""The tie over whole scopes: every transition of every state, of two and three requests, is a step of the relation."""

from dataclasses import replace

import pytest
from outlives.invariants.configuration import Configuration
from outlives.invariants.proof.whole_tie import TIED, tie_scope
from outlives.invariants.scope_choice import chosen_scopes
from outlives.invariants.scopes import NAMED_SCOPES

SEVERAL = Configuration(numbers={"requests": (3, 3)})
READERS = {"checked": {}, "true": {"relax": ("A3",), "reader": "true"}, "any": {"relax": ("A3",), "reader": "any"}}


def tied(name, *, rules=None, states=None, **fields):
    """The search of a named scope, with the numbers and the routes that the scope has."""
    configuration = replace(SEVERAL, **fields)
    world = configuration.world()
    initial = chosen_scopes(configuration, [name])[name]
    if rules is not None:
        world = replace(world, rules=replace(world.rules, **rules))
    return tie_scope(world, initial, states=states)


@pytest.mark.parametrize("name", ["rivals", "shared-key", "three-in-line"])
def test_every_transition_of_the_scope_is_a_step_of_the_relation(name):
    found = tied(name)
    assert found.complete
    assert found.traces == {}
    assert next(iter(found.results())).coverage.startswith("every state")
    assert {"rivals": 491, "shared-key": 653, "three-in-line": 196}[name] == found.states


def test_with_readers_anywhere_as_well():
    assert tied("three-in-line", **READERS["any"]).traces == {}


def keeps_what_it_releases(world, setup, held, request, number, item):
    """The book forgets the entry of whoever lets go, though another request holds it."""
    key = setup.requests[number].items[item].key
    kept = tuple(entry for entry in held.entries if entry.key != key)
    return held._replace(entries=kept), request._replace(
        references=tuple(other for other in request.references if other != item)
    )


def test_a_fault_that_needs_two_requests_is_no_step_of_the_relation():
    found = tied("shared-key", rules={"release": keeps_what_it_releases})
    trace = found.traces[TIED]
    assert "in the run and" in trace.why or "refuses" in trace.why


@pytest.mark.campaign
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", [scope.name for scope in NAMED_SCOPES])
def test_every_transition_of_every_named_scope(name, reader):
    if reader != "checked" and not chosen_scopes(replace(SEVERAL, **READERS[reader]), [name]):
        pytest.skip("the scope is about another mode")
    found = tied(name, **READERS[reader])
    assert found.complete
    assert found.traces == {}
