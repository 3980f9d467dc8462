"""What the audit log is told of invitations and answers, so that nothing leaves before it is logged.

It does not know how an answer is made. An answer is logged when the ledger has it. What comes to nothing is logged
first; where it goes on without end, not each of it is told.
"""

from collections.abc import Sequence

from party.answering.refusals import MOST_FRUITLESS
from party.books.audit import Fields, tells_of
from party.books.budget import Amounts
from party.books.ledger import Request
from party.books.ledger_tables import REFUSAL, Entry
from party.books.reconciliation import unlogged
from party.home.home import OpenHome
from protocol.services.sparse import is_told


class AuditTrail:
    def __init__(self, opened: OpenHome) -> None:
        self._opened, self._ledger, self._audit = opened, opened.ledger, opened.audit
        # The log may lack entries of the ledger: the process before this one may have been killed.
        self._may_lag = True

    def answered(self, event: str, **fields: str | int) -> None:
        """Log an answer that is in the ledger already."""
        self._may_lag = True
        self._audit.append(event, **fields)
        self._may_lag = False

    def catch_up(self) -> None:
        """Log the answers that a kill or a full disk kept out of the log: nothing leaves before it is logged."""
        if self._may_lag:
            for entry in unlogged(self._opened.home.audit, self._ledger.entries()):
                self._catch_up(entry)
        self._may_lag = False

    def judged(
        self, run: str, plan: str, dataset: str | None, amounts: Amounts, decision: str, reasons: Sequence[str]
    ) -> None:
        if is_told(self._ledger.fruitless() + 1):
            self._tell_verdict(run, plan, dataset, amounts, decision, reasons)

    def joining(self, request: Request) -> None:
        """See to it that a run which is joined was told of, even if too many others came to nothing before."""
        if not tells_of(self._opened.home.audit, "asked", request.run):
            amounts = request.price, request.delta
            decision, reasons = request.verdict, request.reasons
            self._tell_verdict(request.run, request.plan_hash, request.dataset, amounts, decision, reasons)

    def settled(self, request: Request, outcome: str, reason: str) -> None:
        if request.spent:
            self._audit.append("settled", run=request.run, outcome=outcome, reason=reason)
        else:
            self.fruitless("settled", run=request.run, outcome=outcome, reason=reason)

    def fruitless(self, event: str, **fields: str) -> None:
        """Log what came to nothing; where such things follow each other without end, not every one of them."""
        count = self._ledger.note_fruitless()
        row = {"row": count} if count > MOST_FRUITLESS else {}
        if is_told(count):
            self._audit.append(event, **fields, **row)

    def _tell_verdict(
        self, run: str, plan: str, dataset: str | None, amounts: Amounts, decision: str, reasons: Sequence[str]
    ) -> None:
        price, delta = map(str, amounts)
        asked: Fields = {"run": run, "plan": plan, "dataset": dataset or "", "price": price, "delta": delta}
        judged: Fields = {"run": run, "plan": plan, "decision": decision, "reasons": list(reasons)}
        self._audit.append_all(("asked", asked), ("judged", judged))

    def _catch_up(self, entry: Entry) -> None:
        run, step = entry.run, entry.step
        if entry.mechanism == REFUSAL:
            self._audit.append("refused", run=run, step=step, reason=self._opened.known(run).reason)
            return
        what = {"run": run, "step": step, "mechanism": entry.mechanism}
        what |= {"charge": str(entry.charge), "delta": str(entry.delta)}
        reply, size = entry.reply_digest, entry.reply_bytes
        self._audit.append("answered", **what, request=entry.request_digest, reply=reply, bytes=size)
