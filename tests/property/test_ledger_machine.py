"""Any sequence of asking, reserving, answering, settling and dying leaves a true account.

The model knows only what the ledger has confirmed; the invariants hold after every step.
"""

import hashlib
import tempfile
from fractions import Fraction
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from party.books.ledger import Ledger
from party.errors import AnsweredOtherwise, BudgetExhausted, LedgerError
from protocol.errors import OutOfTurn
from protocol.messages.http import SentReceipt
from tests.support.effort import examples
from tests.support.party import account

TOTAL = Fraction(2)
DATASETS = ("patients", "staff")
STEPS = st.sampled_from(["joining", "correlations", "update/1", "parameters"])
AMOUNTS = st.fractions(min_value=0, max_value=Fraction(3, 2), max_denominator=12)


class LedgerMachine(RuleBasedStateMachine):
    runs = Bundle("runs")

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "ledger.db"
        self.ledger = Ledger.open(self.path)
        self.abandoned = []
        self.state, self.price, self.dataset = {}, {}, {}
        self.charged, self.sent = {}, {}
        self.spent_before = dict.fromkeys(DATASETS, Fraction(0))

    def teardown(self):
        for ledger in [*self.abandoned, self.ledger]:
            ledger.close()
        self.folder.cleanup()

    @rule(
        target=runs,
        price=AMOUNTS,
        dataset=st.sampled_from(DATASETS),
        verdict=st.sampled_from(["accept", "accept", "accept", "ask", "refuse"]),
    )
    def ask(self, price, dataset, verdict):
        run = f"run-{len(self.state)}"
        self._ask(run, price, dataset, verdict)
        self.state[run] = {"accept": "accepted", "ask": "asked", "refuse": "refused"}[verdict]
        self.price[run], self.dataset[run] = price, dataset
        return run

    @rule(run=runs, price=AMOUNTS)
    def ask_again(self, run, price):
        self._ask(run, price, "staff", "accept")

    @rule(run=runs, accept=st.booleans())
    def decide(self, run, accept):
        wanted = "accepted" if accept else "refused"
        if self.state[run] in ("asked", "accepted", wanted):
            self.ledger.decide(run, accept)
            self.state[run] = wanted
        else:
            self._refused(LedgerError, lambda: self.ledger.decide(run, accept))

    @rule(run=runs)
    def reserve(self, run):
        dataset = self.dataset[run]
        room = TOTAL - self.spent_before[dataset] - self._reserved(dataset)
        if self.state[run] == "active" or (self.state[run] == "accepted" and self.price[run] <= room):
            self.ledger.reserve(run, account(TOTAL, dataset=dataset))
            self.state[run] = "active"
        else:
            expected = BudgetExhausted if self.state[run] == "accepted" else LedgerError
            self._refused(expected, lambda: self.ledger.reserve(run, account(TOTAL, dataset=dataset)))

    @rule(run=runs, step=STEPS, charge=AMOUNTS, request=st.sampled_from("pq"), reply=st.binary(max_size=5))
    def record(self, run, step, charge, request, reply):
        def act():
            return self.ledger.record(
                run, step, mechanism="count", charge=charge, request_digest=request, reply=reply, kept=reply
            )

        if (run, step) in self.sent:
            self._again(run, step, request, act)
        elif self.state[run] != "active":
            self._refused(OutOfTurn, act)
        elif charge > self.price[run] - self._spent_by(run):
            self._refused(BudgetExhausted, act)
        else:
            assert act() == reply
            self.charged[run, step], self.sent[run, step] = charge, (request, reply)

    @rule(run=runs, step=STEPS, request=st.sampled_from("pq"))
    def decline(self, run, step, request):
        def act():
            return self.ledger.decline(run, step, request_digest=request, reply=b"no", reason="no")

        if (run, step) in self.sent:
            self._again(run, step, request, act)
        elif self.state[run] == "ended":
            self._refused(OutOfTurn, act)
        else:
            assert act() == b"no"
            self.charged[run, step], self.sent[run, step] = Fraction(0), (request, b"no")
            self.state[run] = "ended"

    @rule(run=runs)
    def settle(self, run):
        self.ledger.settle(run, "finished")
        self.state[run] = "ended"

    @rule()
    def die_and_start_again(self):
        self.abandoned.append(self.ledger)  # a process that is killed closes nothing
        self.ledger = Ledger.open(self.path)

    def _ask(self, run, price, dataset, verdict):
        plan = hashlib.sha256(run.encode()).hexdigest()
        self.ledger.ask(
            run,
            plan_hash=plan,
            dataset=dataset,
            plan="",
            schema_text="",
            price=price,
            verdict=verdict,
            reasons=[],
        )

    def _again(self, run, step, request, act):
        if request == self.sent[run, step][0]:
            assert act() == self.sent[run, step][1]
        else:
            self._refused(AnsweredOtherwise, act)

    def _refused(self, error, act):
        try:
            act()
        except error:
            return
        raise AssertionError(f"{error.__name__} was expected")

    def _spent_by(self, run):
        return sum((charge for (of, _), charge in self.charged.items() if of == run), Fraction(0))

    def _reserved(self, dataset):
        active = [run for run, state in self.state.items() if state == "active" and self.dataset[run] == dataset]
        return sum((self.price[run] - self._spent_by(run) for run in active), Fraction(0))

    @invariant()
    def the_account_is_what_was_confirmed(self):
        for dataset in DATASETS:
            spent = self.ledger.spent(dataset)
            of_this = [run for run in self.state if self.dataset[run] == dataset]
            assert spent == sum((self._spent_by(run) for run in of_this), Fraction(0))
            assert spent >= self.spent_before[dataset]
            assert self.ledger.reserved(dataset) == self._reserved(dataset) >= 0
            assert spent + self.ledger.reserved(dataset) <= TOTAL
            self.spent_before[dataset] = spent

    @invariant()
    def every_step_is_charged_once_and_keeps_its_bytes(self):
        entries = self.ledger.entries()
        assert {(entry.run, entry.step): entry.charge for entry in entries} == self.charged
        assert len(entries) == len(self.charged)
        for (run, step), (request, reply) in self.sent.items():
            stored = self.ledger.answered(run, step)
            assert (stored.request_digest, stored.reply) == (request, reply)

    @invariant()
    def states_are_remembered(self):
        assert {request.run: request.state for request in self.ledger.requests()} == self.state
        assert all(self.ledger.kept(run) is None for run, state in self.state.items() if state == "ended")

    @invariant()
    def no_receipt_is_missing(self):
        signed = [
            SentReceipt(
                run=entry.run,
                plan=entry.plan_hash,
                step=entry.step,
                charge=entry.charge,
                digest=hashlib.sha256(self.sent[entry.run, entry.step][1]).hexdigest(),
                signature="0" * 128,
            )
            for entry in self.ledger.entries()
        ]
        assert self.ledger.check_against(signed) == []


TestLedger = LedgerMachine.TestCase
TestLedger.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)
