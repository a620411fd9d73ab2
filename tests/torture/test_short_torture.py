"""A short form of `make torture`: the seed is printed, and a failure tells the story of the request."""

from __future__ import annotations

import os
import random
import sys

import pytest

from tests.torture.actors import Notes
from tests.torture.ordeal import Ordeal
from tests.torture.site import site
from tests.torture.verdict import examine

KILLS = 30
KILLS_OF_SEVERAL = 20
SEEDS = random.SystemRandom()


@pytest.fixture
def place():
    with site("/var/tmp") as made:
        yield made


async def tortured(place, kills, seed):
    ordeal = Ordeal(place, seed, kills, lambda line: print(line, file=sys.stderr))
    return ordeal, await ordeal.run()


@pytest.mark.daemon
@pytest.mark.timeout(300)
async def test_thirty_kills_under_load_lose_double_and_let_through_nothing(place):
    seed = SEEDS.randrange(2**32)
    ordeal, found = await tortured(place, KILLS, seed)
    assert not found.faults, f"seed {seed}\n{found.told()}\n{ordeal.log()}"
    assert ordeal.notes.answers
    assert found.seen["marks"] > 0


@pytest.mark.daemon
@pytest.mark.timeout(300)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can answer as several people")
async def test_twenty_kills_under_load_start_nothing_that_fewer_than_two_people_allowed():
    seed = SEEDS.randrange(2**32)
    with site("/var/tmp", required=2) as place:
        ordeal, found = await tortured(place, KILLS_OF_SEVERAL, seed)
        assert not found.faults, f"seed {seed}\n{found.told()}\n{ordeal.log()}"
        assert found.seen["agreed by several"] > 0
        assert found.seen["vetoed"] > 0
        # The judge is tried itself: asked for three, it finds every start that two allowed.
        place.required = 3
        words = (await examine(place, ordeal.notes, at_the_end=True)).told()
    assert "and 3 people must agree" in words


@pytest.mark.daemon
async def test_what_is_wrong_is_found(place):
    """The judge is tried itself: a mark too many, an answer that is not kept, an outcome told otherwise."""
    ordeal, found = await tortured(place, 1, 1)
    assert not found.faults
    notes = ordeal.notes
    answered = next(iter(notes.answers))
    notes.answers[answered] = "deny" if notes.answers[answered].startswith("allow") else "allow-once"
    told = next(iter(notes.outcomes))
    notes.outcomes[told] = "interrupted" if notes.outcomes[told] != "interrupted" else "finished"
    notes.known.add("never-heard-of")
    word = next(iter(place.marks()), "main-1-1")
    with (place.work / "marks").open("a") as marks:
        marks.write(f"{word}\nstray\n" * 9)
    words = (await examine(place, notes, at_the_end=True)).told()
    for expected in ("was accepted, kept is", "was told as", "is gone", "times and was started"):
        assert expected in words
    assert "stray ran 9 times" in words


def test_two_answers_for_one_request_contradict_each_other():
    notes = Notes()
    notes.accepted("a", "deny")
    assert not notes.contradictions
    notes.accepted("a", "deny")
    assert notes.contradictions == ["a: deny was accepted after deny"]
