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

from party.books import folding, marks
from party.books.account_tables import reserved_on, spent_on, unclaimed_in
from party.books.budget import NOTHING, Account, Amounts, Claims, added
from party.books.database import Database
from party.books.ledger_tables import (
    APPLICATION,
    MIGRATIONS,
    REFUSAL,
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
)
from party.books.marks import Head
from party.errors import AnsweredOtherwise, BudgetExhausted, LedgerError
from party.logs import utc_now
from protocol.errors import CURATOR, OutOfTurn
from protocol.exact import canonical_json, digest
from protocol.messages.http import SentReceipt

__all__ = ["REFUSAL", "Entry", "Ledger", "Request", "State", "StoredReply", "utc_now"]

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
        source: str = "",
        budget: str = "",
        essentials: str = "",
        invitation: str = "",
    ) -> Request:
        """Note an invitation and the policy's verdict. If the invitation is repeated, the first verdict stands.

        Of a refused invitation only the essentials are kept: whoever sends many must not fill the disk.
        """
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
                kept = ("", "") if verdict == "refuse" and essentials else (plan, schema_text)
                asked = (run, plan_hash, dataset, *kept, str(price), str(delta), verdict, said, state, self._now())
                db.execute(
                    "INSERT INTO requests (run, plan_hash, dataset, plan, schema_text, price, delta, verdict, reasons,"
                    " state, at, source, budget, essentials, invitation)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (*asked, source, budget, essentials, invitation),
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

    def reserve(self, run: str, account: Account) -> Request:
        """Set the run's whole price aside and make it active, if the account of its data set allows."""
        with self.database.transaction() as db:
            request = known_request(db, run)
            if request.state == "active":
                return request
            if request.state != "accepted" or request.dataset is None:
                raise LedgerError(f"{run!r} is {request.state}: only an accepted run can begin")
            committed = added(account.before, spent_on(db, account.claims), reserved_on(db, account.claims))
            _afford(run, "", request.price, committed[0], account.limit[0], account.name)
            _afford(run, "a delta of ", request.delta, committed[1], account.limit[1], account.name)
            db.execute("UPDATE requests SET state = 'active' WHERE run = ?", (run,))
            return known_request(db, run)

    def settle(self, run: str, outcome: str, reason: str = "") -> Request:
        """End a run: the epsilon not spent is free again, the rest stays spent, and its secrets are destroyed."""
        with self.database.transaction() as db:
            if known_request(db, run).state != "ended":
                _end(db, run, outcome, reason)
            settled = known_request(db, run)
            folding.fold(db)
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
            if (charge, delta) != NOTHING:
                marks.write(db, "fruitless", 0)
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
            self._insert(db, run, step, REFUSAL, NOTHING, request_digest, reply)
            _end(db, run, "refused", reason)
            folding.fold(db)
        self.database.empty_log()
        return reply

    def kept(self, run: str) -> bytes | None:
        """The party's state between its answers; None before the first one, after the last one and after the run."""
        with self.database.reading() as db:
            row = db.execute("SELECT kept FROM requests WHERE run = ?", (run,)).fetchone()
            return None if row is None else row[0]

    # Accounts

    def spent(self, dataset: str) -> Fraction:
        """The epsilon spent under the name of one data set, whoever shares its account."""
        return self.spent_amounts(Claims(frozenset({dataset})))[0]

    def reserved(self, dataset: str) -> Fraction:
        return self.reserved_amounts(Claims(frozenset({dataset})))[0]

    def spent_amounts(self, claims: Claims) -> Amounts:
        with self.database.reading() as db:
            return spent_on(db, claims)

    def reserved_amounts(self, claims: Claims) -> Amounts:
        with self.database.reading() as db:
            return reserved_on(db, claims)

    def unclaimed(self, claims: Claims) -> dict[str, Amounts]:
        """What was spent or is set aside outside these claims, by the name of the data set that paid."""
        with self.database.reading() as db:
            return unclaimed_in(db, claims)

    def entries(self, claims: Claims | None = None, run: str | None = None) -> list[Entry]:
        """All answers in the order in which they were given, then those recovered from receipts."""
        with self.database.reading() as db:
            return find_entries(db, claims, run)

    # What came to nothing

    def note_fruitless(self) -> int:
        """Count a task or run that came to nothing; return how many there were since the last charge."""
        with self.database.transaction() as db:
            return marks.add(db, "fruitless")

    def fruitless(self) -> int:
        """The number of tasks and runs that came to nothing since the last charge."""
        with self.database.reading() as db:
            return int(marks.read(db, "fruitless") or 0)

    def folded(self) -> int:
        """The number of requests of which not even the essentials are kept."""
        with self.database.reading() as db:
            return int(marks.read(db, "folded") or 0)

    # Beside the audit log

    def log_head(self) -> Head | None:
        """The end of the audit log when it was last written to; None in a ledger that has not been told yet."""
        with self.database.reading() as db:
            return marks.read_head(db)

    def note_log(self, head: Head) -> None:
        with self.database.transaction() as db:
            marks.write_head(db, head)

    def stop(self, reason: str) -> None:
        """Keep the party from serving, through restarts, until `resume`."""
        with self.database.transaction() as db:
            marks.write(db, "stopped", reason)

    def resume(self) -> None:
        with self.database.transaction() as db:
            marks.write(db, "stopped", "")

    def stopped(self) -> str:
        """The reason for which the party must not serve, or nothing."""
        with self.database.reading() as db:
            return marks.read(db, "stopped")

    # Receipts

    def check_against(self, receipts: Iterable[SentReceipt]) -> list[SentReceipt]:
        """Receipts of this party's own key that the ledger lacks: it was set back, or belongs to another party."""
        with self.database.reading() as db:
            known = known_answers(db)
        return [r for r in receipts if (r.plan, r.step, r.digest, r.charge, r.delta) not in known]

    def acknowledge(self, missing: Iterable[SentReceipt], dataset: str, source: str = "", budget: str = "") -> None:
        """Charge missing answers as their run would, or to this data set if the plan is unknown; end those runs.

        A receipt is this party's statement about a plan. The name of its run is the curator's word alone.
        """
        with self.database.transaction() as db:
            for receipt in missing:
                request = find_plan(db, receipt.plan)
                payer = (dataset, source, budget)
                if request is not None and request.dataset is not None:
                    payer = (request.dataset, request.source, request.budget)
                values = (receipt.run, receipt.plan, receipt.step, *payer, str(receipt.charge), str(receipt.delta))
                db.execute(
                    "INSERT INTO recovered"
                    " (run, plan_hash, step, dataset, source, budget, charge, delta, reply_digest, at)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
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


def _afford(run: str, what: str, cost: Fraction, committed: Fraction, limit: Fraction, name: str) -> None:
    if committed + cost > limit:
        raise BudgetExhausted(
            f"{run!r} costs {what}{cost}, but of the {limit} that {name!r} may spend only "
            f"{max(limit - committed, Fraction(0))} is left: ask for a cheaper plan"
        )


def _same_request(db: Connection, run: str, step: str, request_digest: str) -> StoredReply | None:
    stored = find_reply(db, run, step)
    if stored is not None and stored.request_digest != request_digest:
        raise AnsweredOtherwise(CURATOR, f"asks for {step!r} of {run!r} again, but for something else than before")
    return stored


def _end(db: Connection, run: str, outcome: str, reason: str) -> None:
    db.execute(
        "UPDATE requests SET state = 'ended', outcome = ?, reason = ?, kept = NULL WHERE run = ?",
        (outcome, reason, run),
    )
    folding.reduce(db, run)
