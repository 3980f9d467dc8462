"""Whatever comes in whatever order, twice, altered, or after a kill: every run ends or waits, and nothing counts twice.

The model knows what the curator has confirmed. The parties are the protocol's own. With so much epsilon that every
noise is zero, the tables of a finished run are the pooled counts, which they would not be had anything been counted
twice, lost, or mixed up between runs.
"""

import hashlib
import json
import tempfile
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from crypto.paillier_secret import SecretKey
from curator.errors import NotAsked, OtherBytes, RunEnded
from protocol.messages.tasks import decode
from tests.support.curator import Desk, OneKey, Outgoing
from tests.support.effort import examples
from tests.support.small_runs import BITS, NO_NOISE, SMALL_BITS, pooled

SECRET = SecretKey.generate(SMALL_BITS)
ROWS = (7, 5, 3)
WAYS = [
    {"noise": "selected", "update": "accumulate"},
    {"noise": "distributed", "update": "accumulate"},
    {"noise": "selected", "method": "guided"},
    {"noise": "selected", "update": "joint"},
    {"noise": "local", "update": "replace", "insiders": 0},
    {"noise": "selected", "method": "privbayes"},
    {"noise": "distributed", "method": "privabn"},
    {"noise": "selected", "method": "jtree"},
    {"noise": "distributed", "method": "dp-ccbn", "degree": 1},
    {"method": "independent"},
]
PARTIES = st.integers(0, 2)


class CuratorMachine(RuleBasedStateMachine):
    runs = Bundle("runs")
    sent = Bundle("sent")

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.accepted: dict[tuple[str, str, str], str] = {}
        self.ended: dict[str, tuple[str, str | None]] = {}
        self.members: dict[str, int] = {}

    @initialize(target=runs, way=st.sampled_from(WAYS), count=st.integers(2, 3))
    def open(self, way, count):
        self.desk = Desk(Path(self.folder.name), rows=ROWS, crypto=OneKey(SECRET))
        return self.begin_run(way, count)

    def teardown(self):
        if hasattr(self, "desk"):
            self.finish_the_rest()
            self.desk.store.close()
        self.folder.cleanup()

    # What can happen

    @precondition(lambda self: len(self.members) < 3)
    @rule(target=runs, way=st.sampled_from(WAYS), count=st.integers(2, 3))
    def begin(self, way, count):
        return self.begin_run(way, count)

    def begin_run(self, way, count):
        names = [party.name for party in self.desk.parties[:count]]
        run = self.desk.run(f"run {len(self.members)}", parties=names, epsilon=str(NO_NOISE), **way)
        self.members[run] = count
        self.desk.clock.advance(1)
        return run

    @rule(target=sent, number=PARTIES, skip=st.booleans())
    def answer(self, number, skip):
        """A party answers what it is asked; its answer is on the way."""
        oldest = min(self.members, default="")
        found = self.desk.orchestrator.inbox(self.desk.parties[number].name, (oldest,) if skip else ())
        return multiple() if found is None else (number, self.desk.parties[number].handle(*found))

    @rule(message=sent, is_worked_out=st.booleans())
    def deliver(self, message, is_worked_out=True):
        """For the first time or again, in any order; what follows may be left for later."""
        number, sent = message
        key = (sent.run, sent.step, self.desk.parties[number].name)
        if key not in self.accepted and sent.run in self.ended:
            with pytest.raises(RunEnded):
                self.desk.deliver(self.desk.parties[number], sent)
            return
        party = self.desk.parties[number]
        self.desk.orchestrator.deliver(sent.run, sent.step, party.name, sent.body, sent.receipt)
        self.accepted[key] = hashlib.sha256(sent.body).hexdigest()
        if is_worked_out:
            self.work_out()

    @rule()
    def work_out(self):
        for run in self.desk.orchestrator.complete_runs():
            self.desk.orchestrator.advance(run)

    @rule(target=sent, order=st.permutations(range(3)), rounds=st.integers(1, 4))
    def everybody_answers(self, order, rounds):
        """A few steps further, each answer twice."""
        delivered = []
        for number in order * rounds:
            found = self.desk.orchestrator.inbox(self.desk.parties[number].name)
            if found is not None:
                message = (number, self.desk.parties[number].handle(*found))
                self.deliver(message)
                self.deliver(message)
                delivered.append(message)
        return multiple(*delivered)

    @rule(message=sent, extra=st.binary(max_size=3))
    def deliver_other_bytes(self, message, extra):
        number, sent = message
        party = self.desk.parties[number]
        if (sent.run, sent.step, party.name) in self.accepted:
            altered = Outgoing(sent.run, sent.step, sent.body + b"x" + extra, sent.receipt)
            with pytest.raises(OtherBytes):
                self.desk.deliver(party, altered)

    @rule(message=sent, number=PARTIES)
    def deliver_as_somebody_else(self, message, number):
        """Another party cannot answer with it: it has answered itself, is not asked, or has not signed it."""
        _, sent = message
        party = self.desk.parties[number]
        before = self.desk.views.receipts(party.name)
        elsewhere = Outgoing(sent.run, "parameters/9", sent.body, sent.receipt)
        if sent.run not in self.ended and number < self.members[sent.run]:
            with pytest.raises(NotAsked):
                self.desk.deliver(party, elsewhere)
        assert self.desk.views.receipts(party.name) == before

    @rule(number=PARTIES)
    def refuse(self, number):
        party = self.desk.parties[number]
        found = self.desk.orchestrator.inbox(party.name)
        if found is None or decode(found[1], "curator").step != "parameters":
            return  # refusals end runs; few enough of them leave runs to finish
        sent = party.refuse(*found)
        if (sent.run, sent.step) not in party.outbox:
            self.desk.deliver(party, sent)
            self.accepted[sent.run, sent.step, party.name] = hashlib.sha256(sent.body).hexdigest()
            self.ended[sent.run] = ("failed", party.name)

    @rule(run=consumes(runs))
    def cancel(self, run):
        if run in self.ended:
            with pytest.raises(RunEnded):
                self.desk.orchestrator.cancel(run)
        else:
            self.desk.orchestrator.cancel(run)
            self.ended[run] = ("cancelled", "operator")

    @rule()
    def kill_and_restart(self):
        before = {party.name: self.desk.orchestrator.inbox(party.name) for party in self.desk.parties}
        self.desk.restart()
        assert {name: self.desk.orchestrator.inbox(name) for name in before} == before

    @rule(seconds=st.integers(1, 1000))
    def time_passes(self, seconds):
        self.desk.clock.advance(seconds)
        self.desk.orchestrator.tick()
        for run in self.members:
            if run not in self.ended and self.desk.views.run(run).state == "finished":
                self.check_result(run)

    # What holds at any time

    @invariant()
    def what_was_confirmed_is_stored_once(self):
        for run in self.members:
            events = [e.data for e in self.desk.views.events(run) if e.kind == "answered"]
            assert Counter((run, e["step"], e["party"]) for e in events) == Counter(
                k for k in self.accepted if k[0] == run
            )
        for party in self.desk.parties if self.members else ():
            stored = {(r.run, r.step, party.name): r.digest for r in self.desk.views.receipts(party.name)}
            assert stored == {key: digest for key, digest in self.accepted.items() if key[2] == party.name}

    @invariant()
    def every_run_waits_for_somebody_or_has_ended(self):
        for run in self.members:
            seen = self.desk.views.run(run)
            if run in self.ended:
                assert (seen.state, seen.culprit, seen.waiting_for) == (*self.ended[run], [])
            elif seen.step is not None:
                asked = [one.party for one in seen.waiting_for]
                assert bool(asked) != (run in self.desk.orchestrator.complete_runs())
                assert all((run, seen.step, party) not in self.accepted for party in asked)

    # What comes out

    def finish_the_rest(self):
        self.work_out()
        for number, party in enumerate(self.desk.parties):
            for sent in list(party.outbox.values()):
                if sent.run not in self.ended:
                    self.deliver((number, sent))
        for _ in range(100):  # more rounds than any run has steps
            for party in self.desk.parties:
                self.desk.answer_one(party)
        self.desk.orchestrator.tick()
        for run in self.members:
            if run not in self.ended:
                self.check_result(run)

    def check_result(self, run):
        assert self.desk.views.run(run).state == "finished"
        self.ended[run] = ("finished", None)
        terms = self.desk.views.terms(run)
        for number, party in enumerate(self.desk.parties[: self.members[run]]):
            charges = [Fraction(r.charge) for r in self.desk.views.receipts(party.name) if r.run == run]
            assert sum(charges, Fraction(0)) == terms.price(number)
        everybody = pooled(BITS, self.desk.codes[: self.members[run]])
        by_rows = {len(own[0]): own for own in [*self.desk.codes[: self.members[run]], everybody]}
        content = json.loads((self.desk.orchestrator.folder(run) / "tables.json").read_text())
        assert content["tables"]
        for one in content["tables"]:
            expected = np.zeros([2] * len(one["variables"]), dtype=int)
            np.add.at(expected, tuple(by_rows[one["rows"]][v] for v in one["variables"]), 1)
            assert one["counts"] == expected.ravel().tolist()


TestCurator = CuratorMachine.TestCase
TestCurator.settings = settings(max_examples=examples(30), stateful_step_count=25, deadline=None)
