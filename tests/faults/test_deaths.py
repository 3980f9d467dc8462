"""Curator and parties die before and after every effect they have; Hypothesis lets several die in one run.

One process and real files: a death is an exception (`mortals`). Real processes die in `test_kills.py`.
"""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from party.books import audit
from party.books.reconciliation import unlogged
from tests.faults.mortals import CURATOR, Fate, World
from tests.support.curator import OneKey
from tests.support.effort import examples, mostly_exhaustive

ROWS = (30, 20)
# How many moments an undisturbed run of two parties has: the first test holds them to it.
MOMENTS = {CURATOR: 105, "party-1": 45, "party-2": 45}
EACH = [(who, m + 1) for who, count in MOMENTS.items() for m in range(count)]


def live(folder, fate, monkeypatch, rows=ROWS, crypto=None, **wishes):
    """A whole run, with all its checks."""
    world = World(folder, fate, monkeypatch, rows, crypto)
    try:
        run = world.begin(**({"noise": "distributed", "update": "accumulate"} | wishes))
        assert world.work(run) == "finished"
        world.check(run)
    finally:
        world.close()


def test_the_moments_below_are_all_there_are(tmp_path, monkeypatch):
    fate = Fate()
    live(tmp_path, fate, monkeypatch)
    assert fate.seen == MOMENTS


@pytest.mark.parametrize(("who", "moment"), mostly_exhaustive(EACH, range(0, len(EACH), 16)))
def test_one_death(tmp_path, monkeypatch, who, moment):
    fate = Fate((who, moment))
    live(tmp_path, fate, monkeypatch)
    assert fate.died == [who]


@pytest.mark.parametrize("moment", mostly_exhaustive(range(1, 9), range(0, 8, 3)))
def test_a_death_while_refusing(tmp_path, monkeypatch, moment):
    """The refusal arrives with its reason, in the same bytes, and the log tells of it."""
    fate = Fate(("party-1", moment))
    world = World(tmp_path, fate, monkeypatch, ROWS, per_run="0.1")
    try:
        world.parties.pop().ledger.close()  # or it would refuse first
        run = world.begin(noise="distributed")
        assert world.work(run) == "refused"
        assert fate.died == ["party-1"]
        ended = world.desk.views.run(run)
        assert (ended.culprit, ended.reason) == ("party-1", "it costs 1, one run may cost 1/10")
        party = world.parties[0]
        [entry] = party.ledger.entries()
        assert world.sent[run, "joining", "party-1"] == {entry.reply_digest}
        assert (party.ledger.spent("patients"), party.ledger.reserved("patients")) == (0, 0)
        assert audit.verify(party.home.audit) == []
        assert unlogged(party.home.audit, [entry]) == []
        assert {"asked", "judged", "refused"} <= {line["event"] for line in audit.entries(party.home.audit)}
    finally:
        world.close()


deaths = st.tuples(st.sampled_from([CURATOR, "party-1", "party-2", "party-3"]), st.integers(1, 80))


# A failure is told as it was found: to shrink it would take many minutes.
common = settings(deadline=None, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.exhaustive
@settings(common, max_examples=examples(40))
@given(several=st.lists(deaths, min_size=2, max_size=8))
def test_many_deaths_in_one_run(monkeypatch, several):
    with tempfile.TemporaryDirectory() as folder, monkeypatch.context() as patch:
        live(Path(folder), Fate(*several), patch, rows=(30, 20, 10))


@settings(common, max_examples=examples(8))
@given(several=st.lists(deaths, min_size=2, max_size=8))
def test_many_deaths_with_encrypted_sums(monkeypatch, small_secret, several):
    with tempfile.TemporaryDirectory() as folder, monkeypatch.context() as patch:
        live(Path(folder), Fate(*several), patch, (30, 20, 10), OneKey(small_secret), noise="selected")


@pytest.mark.parametrize("every", mostly_exhaustive([1, 2, 3], {1}))
def test_who_dies_again_and_again_still_finishes(tmp_path, monkeypatch, every):
    """No moment may need the one before it in the same process."""
    rhythm = range(every, 200, every + 1)
    fate = Fate(*((who, moment) for who in MOMENTS for moment in rhythm))
    live(tmp_path, fate, monkeypatch)
    assert set(fate.died) == set(MOMENTS)
