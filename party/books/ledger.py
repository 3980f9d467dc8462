"""The ledger: a permanent record of a party's requests, decisions, answers and costs.

It does not know how a price is computed, what an answer means, or how an answer travels.

Costs are privacy: exact fractions, kept as text. The effect of every function is durable when it returns, and happens
in whole or not at all. The amount set aside is not stored: it is the price of an active run minus the cost of its
answers. Answers are only ever added; triggers refuse everything else.
"""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from sqlite3 import Connection
from typing import Literal

from party.books.database import Database
from party.books.ledger_tables import (
    APPLICATION,
    MIGRATIONS,
    Amounts,
    Entry,
    Request,
    State,
    StoredReply,
    find_entries,
    find_plan,
    find_reply,
    find_request,
    is_recovered,
    known_answers,
    known_request,
    requests_in,
    reserved_on,
    spent_on,
)
from party.errors import AnsweredOtherwise, BudgetExhausted, LedgerError
from party.logs import utc_now
from protocol.errors import CURATOR, OutOfTurn
from protocol.exact import canonical_json, digest
from protocol.messages.http import SentReceipt

__all__ = ["REFUSAL", "Entry", "Ledger", "Request", "State", "StoredReply", "utc_now"]

REFUSAL = "refusal"  # the mechanism of an answer that refuses
_RESTORED = "the ledger was restored from a time before this run's last answer"


class Ledger:
    """The ledger in one database. Only tests look into `database`."""

    def __init__(self, database: Database, now: Callable[[], str]) -> None:
        self.database = database
        self._now = now

    @classmethod
    def open(cls, path: Path, now: Callable[[], str] = utc_now) -> "Ledger":
        return cls(Database(path, APPLICATION, MIGRATIONS), now)

    def close(self) -> None:
        self.database.close()

    # Requests

    def ask(
        self,
        run: str,
        *,
        plan_hash: str,
        dataset: str | None,
        plan: str,
        schema_text: str,
        price: Fraction,
        delta: Fraction = Fraction(0),
        verdict: Literal["accept", "ask", "refuse"],
        reasons: Sequence[str],
    ) -> Request:
        """Note an invitation and the policy's verdict. If the invitation is repeated, the first verdict stands."""
        with self.database.transaction() as db:
            known = find_request(db, run) or find_plan(db, plan_hash)
            if known is not None and (known.run, known.plan_hash) != (run, plan_hash):
                raise AnsweredOtherwise(CURATOR, f"invites to {known.run!r} again, as {run!r} or with another plan")
            if known is None:
                if is_recovered(db, plan_hash):
                    # Privacy: its steps were answered once, with bytes that are lost; fresh noise must not join them.
                    verdict, reasons = "refuse", [_RESTORED]
                said = canonical_json(list(reasons)).decode()
                state = {"accept": "accepted", "ask": "asked", "refuse": "refused"}[verdict]
                asked = (run, plan_hash, dataset, plan, schema_text, str(price), str(delta), verdict, said)
                db.execute(
                    "INSERT INTO requests (run, plan_hash, dataset, plan, schema_text, price, delta, verdict, reasons,"
                    " state, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (*asked, state, self._now()),
                )
            return known_request(db, run)

    def decide(self, run: str, accept: bool, reason: str = "") -> Request:
        """Note the data owner's decision on a run that has not begun. The policy's refusal cannot be overruled."""
        wanted: State = "accepted" if accept else "refused"
        with self.database.transaction() as db:
            request = known_request(db, run)
            if request.state not in ("asked", "accepted", wanted):
                raise LedgerError(f"{run!r} is {request.state} already: it can no longer be {wanted}")
            if request.state != wanted:
                db.execute("UPDATE requests SET state = ?, reason = ? WHERE run = ?", (wanted, reason, run))
            return known_request(db, run)

    def reserve(self, run: str, total: Fraction, delta_total: Fraction = Fraction(0)) -> Request:
        """Set the run's whole price aside and make it active, if the totals of its data set allow."""
        with self.database.transaction() as db:
            request = known_request(db, run)
            if request.state == "active":
                return request
            if request.state != "accepted" or request.dataset is None:
                raise LedgerError(f"{run!r} is {request.state}: only an accepted run can begin")
            spent, reserved = spent_on(db, request.dataset), reserved_on(db, request.dataset)
            _afford(request, "", request.price, spent[0] + reserved[0], total)
            _afford(request, "a delta of ", request.delta, spent[1] + reserved[1], delta_total)
            db.execute("UPDATE requests SET state = 'active' WHERE run = ?", (run,))
            return known_request(db, run)

    def settle(self, run: str, outcome: str, reason: str = "") -> Request:
        """End a run: the epsilon not spent is free again, the rest stays spent, and its secrets are destroyed."""
        with self.database.transaction() as db:
            if known_request(db, run).state != "ended":
                _end(db, run, outcome, reason)
            settled = known_request(db, run)
        self.database.empty_log()
        return settled

    def request(self, run: str) -> Request | None:
        with self.database.reading() as db:
            return find_request(db, run)

    def request_of_plan(self, plan_hash: str) -> Request | None:
        with self.database.reading() as db:
            return find_plan(db, plan_hash)

    def requests(self, state: State | None = None) -> list[Request]:
        """All requests, or those in one state, in the order in which they came."""
        with self.database.reading() as db:
            return requests_in(db, state)

    # Answers

    def answered(self, run: str, step: str) -> StoredReply | None:
        """The stored answer to a step, to be sent again."""
        with self.database.reading() as db:
            return find_reply(db, run, step)

    def record(
        self,
        run: str,
        step: str,
        *,
        mechanism: str,
        charge: Fraction,
        delta: Fraction = Fraction(0),
        request_digest: str,
        reply: bytes,
        kept: bytes | None,
    ) -> bytes:
        """Charge a step and keep its answer and the party's state in one transaction; return the bytes that may leave.

        Without a state to keep, the run's secrets are destroyed.

        Retry safety: a repeated call returns the first call's bytes. Privacy: noise that is drawn again never leaves.
        """
        with self.database.transaction() as db:
            request = known_request(db, run)
            if (stored := _same_request(db, run, step, request_digest)) is not None:
                return stored.reply
            if request.state != "active":
                raise OutOfTurn(CURATOR, f"asks for {step!r} of {run!r}, which is {request.state}")
            if not 0 <= charge <= request.reserved:
                raise BudgetExhausted(
                    f"{step!r} of {run!r} costs {charge}, but only {request.reserved} of its price is left"
                )
            if not 0 <= delta <= request.reserved_delta:
                raise BudgetExhausted(
                    f"{step!r} of {run!r} costs a delta of {delta}, but only {request.reserved_delta} of it is left"
                )
            self._insert(db, run, step, mechanism, (charge, delta), request_digest, reply)
            db.execute("UPDATE requests SET kept = ? WHERE run = ?", (kept, run))
        if kept is None:
            self.database.empty_log()
        return reply

    def decline(self, run: str, step: str, *, request_digest: str, reply: bytes, reason: str) -> bytes:
        """Keep a refusal as a step's answer and end the run in one transaction; return the bytes that may leave."""
        with self.database.transaction() as db:
            request = known_request(db, run)
            if (stored := _same_request(db, run, step, request_digest)) is not None:
                return stored.reply
            if request.state == "ended":
                raise OutOfTurn(CURATOR, f"asks for {step!r} of {run!r}, which is ended")
            self._insert(db, run, step, REFUSAL, (Fraction(0), Fraction(0)), request_digest, reply)
            _end(db, run, "refused", reason)
        self.database.empty_log()
        return reply

    def kept(self, run: str) -> bytes | None:
        """The party's state between its answers; None before the first one, after the last one and after the run."""
        with self.database.reading() as db:
            row = db.execute("SELECT kept FROM requests WHERE run = ?", (run,)).fetchone()
            return None if row is None else row[0]

    # The account

    def spent(self, dataset: str) -> Fraction:
        return self.spent_amounts(dataset)[0]

    def reserved(self, dataset: str) -> Fraction:
        return self.reserved_amounts(dataset)[0]

    def spent_amounts(self, dataset: str) -> Amounts:
        with self.database.reading() as db:
            return spent_on(db, dataset)

    def reserved_amounts(self, dataset: str) -> Amounts:
        with self.database.reading() as db:
            return reserved_on(db, dataset)

    def entries(self, dataset: str | None = None, run: str | None = None) -> list[Entry]:
        """All answers in the order in which they were given, then those recovered from receipts."""
        with self.database.reading() as db:
            return find_entries(db, dataset, run)

    # Receipts

    def check_against(self, receipts: Iterable[SentReceipt]) -> list[SentReceipt]:
        """Receipts of this party's own key that the ledger lacks: it was set back, or belongs to another party."""
        with self.database.reading() as db:
            known = known_answers(db)
        return [r for r in receipts if (r.plan, r.step, r.digest, r.charge, r.delta) not in known]

    def acknowledge(self, missing: Iterable[SentReceipt], dataset: str) -> None:
        """Charge missing answers to their run's data set, or to `dataset` if the plan is unknown; end those runs.

        A receipt is this party's statement about a plan. The name of its run is the curator's word alone.
        """
        with self.database.transaction() as db:
            for receipt in missing:
                request = find_plan(db, receipt.plan)
                charged = request.dataset if request is not None and request.dataset is not None else dataset
                values = (receipt.run, receipt.plan, receipt.step, charged, str(receipt.charge), str(receipt.delta))
                db.execute(
                    "INSERT INTO recovered (run, plan_hash, step, dataset, charge, delta, reply_digest, at)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                    (*values, receipt.digest, self._now()),
                )
                if request is not None and request.state != "ended":
                    _end(db, request.run, "failed", _RESTORED)
        self.database.empty_log()

    def _insert(
        self, db: Connection, run: str, step: str, mechanism: str, amounts: Amounts, request_digest: str, reply: bytes
    ) -> None:
        charge, delta = map(str, amounts)
        values = (run, step, mechanism, charge, delta, request_digest, digest(reply), reply, self._now())
        db.execute(
            "INSERT INTO answers (run, step, mechanism, charge, delta, request_digest, reply_digest, reply, at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            values,
        )


def _afford(request: Request, what: str, cost: Fraction, committed: Fraction, total: Fraction) -> None:
    if committed + cost > total:
        raise BudgetExhausted(
            f"{request.run!r} costs {what}{cost}, but of the {total} that {request.dataset!r} may spend only "
            f"{max(total - committed, Fraction(0))} is left: ask for a cheaper plan"
        )


def _same_request(db: Connection, run: str, step: str, request_digest: str) -> StoredReply | None:
    stored = find_reply(db, run, step)
    if stored is not None and stored.request_digest != request_digest:
        raise AnsweredOtherwise(CURATOR, f"asks for {step!r} of {run!r} again, but for something else than before")
    return stored


def _end(db: Connection, run: str, outcome: str, reason: str) -> None:
    values = (outcome, reason, run)
    db.execute("UPDATE requests SET state = 'ended', outcome = ?, reason = ?, kept = NULL WHERE run = ?", values)
