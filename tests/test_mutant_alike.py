"""Whether a mutant does anything else at all: what is different is found, what is said to be the same is the same."""

import pytest
from outlives.invariants.mutant_alike import CONFIGURATIONS, otherwise, taken
from outlives.invariants.mutants import mutant_named, planted
from outlives.invariants.mutants_equivalent import EQUIVALENT


@pytest.fixture(scope="module")
def right() -> dict[str, int]:
    return taken()


def test_the_model_as_it_is_goes_the_same_way_again(right: dict[str, int]) -> None:
    assert otherwise(right) == ""
    assert set(CONFIGURATIONS) < set(right)


@pytest.mark.parametrize(
    ("key", "where"),
    [
        ("worker.shift_readers: part.rejected + rejected -> rejected", "reader true"),
        (
            "book._held: setup.encoder_decoder == 1 and world.switches.credit_once == 0 -> "
            "world.switches.credit_once == 0",
            "a failed admission, references by key",
        ),
        ("batch._dispatch: omit in encode and omitted == 0 -> omit in encode", "two encodes left out"),
    ],
)
def test_a_difference_is_found_where_it_is(key: str, where: str, right: dict[str, int]) -> None:
    with planted(mutant_named(key)):
        assert where in otherwise(right)


@pytest.mark.parametrize("key", list(EQUIVALENT)[::12])
def test_what_is_said_to_be_equivalent_goes_the_same_way(key: str, right: dict[str, int]) -> None:
    with planted(mutant_named(key)):
        assert otherwise(right) == ""


@pytest.mark.campaign
@pytest.mark.parametrize("key", EQUIVALENT)
def test_each_that_is_said_to_be_equivalent_goes_the_same_way(key: str, right: dict[str, int]) -> None:
    with planted(mutant_named(key)):
        assert otherwise(right) == ""
