"""A party that is killed after every answer, and goes on from what it kept, takes part in the same run."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from crypto.randomness import Stream
from party.answering.saved_state import Kept, from_bytes, to_bytes
from party.errors import Unreadable
from protocol.messages.tasks import Count
from protocol.stages.party_state import PartyState
from tests.support.small_runs import SEARCHED, Driver, identity, random_codes, terms_of

ROWS = (30, 20, 10)


class Forgetful(Driver):
    """After every answer, each party is what its kept bytes make of it."""

    def __init__(self, *args, **settings):
        super().__init__(*args, **settings)
        self.keys, self.restarts = {}, 0

    def answer(self, party, task):
        reply = super().answer(party, task)
        if isinstance(task, Count) and task.keys is not None:
            self.keys[party] = task.keys
        kept = to_bytes(Kept(self.parties[party], self.keys.get(party)))
        found = from_bytes(kept, self.terms, party, identity(party), Stream.system())
        assert to_bytes(found) == kept
        self.parties[party], self.keys[party] = found.state, found.keys
        self.restarts += 1
        return reply


@pytest.mark.parametrize(
    "wishes",
    [
        {"noise": "selected"},
        {"noise": "distributed"},
        {"noise": "local", "update": "replace", "insiders": 0},
        {"noise": "selected", "update": "replace", "insiders": 0},
        {"method": "privbayes", "noise": "selected"},
        {"method": "privabn", "noise": "distributed"},
        {"method": "jtree", "noise": "selected"},
        {"method": "independent"},
        {"method": "guided", "edges": Fraction(1, 10), "schema": SEARCHED},
    ],
)
def test_a_run_survives_a_restart_of_every_party_after_every_answer(small_secret, wishes):
    terms = terms_of(epsilon=50, **wishes)
    run = Forgetful(terms, random_codes(terms.agreed, ROWS), small_secret).finish()
    assert run.state.step is None
    assert run.restarts >= 2 * len(ROWS)
    assert run.state.knowledge.released or run.state.knowledge.models


@pytest.fixture
def state():
    terms = terms_of(epsilon=50, noise="local", update="replace", insiders=0)
    run = Driver(terms, random_codes(terms.schema, ROWS)).run_to("update/2")
    return run.parties[0]


def thawed(data, state, **settings):
    return from_bytes(data, state.terms, state.me, state.identity, Stream.system(), **settings)


def test_everything_that_cannot_be_worked_out_again_is_kept(state):
    assert state.noise
    found = thawed(to_bytes(Kept(state)), state).state
    assert (found.answered, found.share, found.me) == (state.answered, state.share, 0)
    assert found.due == state.due
    assert (found.run_key.to_bytes(), found.run_keys) == (state.run_key.to_bytes(), state.run_keys)
    assert len(found.run_keys) == len(ROWS)
    assert found.noise.keys() == state.noise.keys()
    assert all(np.array_equal(found.noise[table], state.noise[table]) for table in state.noise)


def test_an_experiment_s_sums_are_taken_as_they_are(state):
    sums = object()
    assert thawed(to_bytes(Kept(state)), state, sums=sums).state.sums is sums


def test_a_state_of_another_plan_or_version_is_refused(state):
    data = to_bytes(Kept(state))
    other = replace(state, terms=terms_of(noise="local"))
    with pytest.raises(Unreadable, match="of another plan or program version"):
        thawed(data, other)
    with pytest.raises(Unreadable, match="of another plan or program version"):
        thawed(json.dumps(json.loads(data) | {"version": 1}).encode(), state)


@pytest.mark.parametrize(
    "change",
    [
        {"share": "!"},
        {"run_key": ""},
        {"run_keys": None},
        {"keys": {}},
        {"noise": [1]},
        {"noise": [[[1], "AAAA"]]},
        {"answered": None},
        {"answered": "x"},
    ],
)
def test_a_damaged_state_is_refused_without_repeating_it(state, change):
    data = json.dumps(json.loads(to_bytes(Kept(state))) | change).encode()
    for damaged in (data, to_bytes(Kept(state))[:-2], b"[]"):
        with pytest.raises(Unreadable, match=r"^the state kept of this run is damaged; the run cannot go on$"):
            thawed(damaged, state)


def test_nothing_secret_prints(state):
    kept = Kept(replace(state, share=b"secret share of the group"))
    assert "secret" not in repr(kept)
    assert isinstance(kept.state, PartyState)
