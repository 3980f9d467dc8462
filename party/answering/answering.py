"""Answers of a party to tasks, with their effects in the order on which the party's promise rests.

It does not know how tasks come or how answers leave. Every answer that it returns is in the ledger already.

A task that was answered before gets the same bytes. Another request for an answered step is refused. Any other task is
checked against plan and schedule and priced by the party's own terms. Then the budget is checked and the answer is
computed. One transaction writes charge, bytes and kept state. Only then may anything leave.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from crypto.paillier.public import SMALLEST_BITS
from crypto.randomness import Stream
from party.answering import run_rows, saved_state
from party.answering.audit_trail import AuditTrail
from party.answering.essentials import kept_of
from party.answering.invitation import JOINING, Examined, check_people, examined, loaded, place_in
from party.answering.mistakes import accused_by, no_task_stops_the_party
from party.answering.outgoing import Outgoing, answer_of, refusal_of
from party.answering.refusals import LONGEST_REASON
from party.answering.saved_state import Kept
from party.books.ledger import Request
from party.books.ledger_tables import REFUSAL
from party.errors import AnsweredOtherwise, BudgetExhausted, PolicyRefusal, Unreadable
from party.home.home import OpenHome
from protocol.errors import CURATOR, DataError, MalformedMessage, OutOfTurn, PeerError, PlanError, SubnError
from protocol.exact import digest
from protocol.messages.http import SentReceipt
from protocol.messages.tasks import Count, Invitation, Learn, Place, Refusal, Reply, TakeBack, decode, encode
from protocol.plan.plan import Plan
from protocol.plan.step import Step
from protocol.plan.stored import stored_plan
from protocol.plan.terms import Terms
from protocol.run.agreement import agree
from protocol.run.party import accept, answer, check
from protocol.run.task_cost import task_cost
from protocol.secure_sum.sums import PartySums
from protocol.stages.registry import stage_of
from protocol.tables.any_rows import AnyRows
from protocol.tables.schema import Schema

_UNFIT = "its table cannot be read or does not fit the schema; its data owner finds out why with `subn-party check`"

StepTask = Count | TakeBack | Place | Learn
Sums = Callable[[Plan, int], PartySums]


@dataclass(frozen=True)
class _Joined:
    """A run in which this party takes part, after its last answer."""

    terms: Terms = field(repr=False)
    rows: AnyRows
    kept: Kept = field(repr=False)


class Answering:
    """Answers from one open home. Only tests and experiments set `stream`, `sums` and `smallest_key`."""

    def __init__(
        self,
        opened: OpenHome,
        *,
        stream: Stream | None = None,
        sums: Sums | None = None,
        smallest_key: int = SMALLEST_BITS,
    ) -> None:
        self._opened, self._ledger, self._trail = opened, opened.ledger, AuditTrail(opened)
        self._key = opened.keys.identity.signing
        self._stream = stream or Stream.system()
        self._sums = sums
        self._smallest_key = smallest_key
        self._joined: dict[str, _Joined] = {}

    def handle(self, run: str, data: bytes) -> Outgoing | None:
        """Answer a task that the curator sent under the name `run`; None until the data owner has decided.

        The run that a task belongs to follows from its plan's hash. The name counts only where the plan is unknown.
        """
        self._trail.catch_up()
        try:
            task = decode(data, CURATOR)
            if isinstance(task, Invitation):
                return self._invited(task, data)
            if not isinstance(task, StepTask):
                raise OutOfTurn(CURATOR, f"sent {task.kind!r}, which only parties send")
        except (MalformedMessage, OutOfTurn) as error:
            return self._unread(run, digest(data), error)
        return self._asked(run, task, digest(data))

    def refuse_unread(self, run: str, plan: str, error: PeerError | PlanError) -> Outgoing:
        """Refuse an invitation that cannot be read: the curator named its run and its plan elsewhere."""
        return self._object(run, None, (plan, JOINING), error)

    def decided(self) -> list[Outgoing]:
        """Answer the invitations that the data owner has decided, or that were decided before a kill."""
        self._trail.catch_up()
        waiting = [request for state in ("accepted", "refused", "active") for request in self._ledger.requests(state)]
        answers = [self._answer_invitation(r) for r in waiting if self._ledger.answered(r.run, JOINING) is None]
        return [one for one in answers if one is not None]

    def undelivered(self, receipts: Iterable[SentReceipt], open_runs: Iterable[str]) -> list[Outgoing]:
        """Answers in the ledger for which the curator has no receipt, because a kill kept them from leaving."""
        self._trail.catch_up()
        arrived = {(receipt.plan, receipt.step, receipt.digest) for receipt in receipts}
        return [
            sent
            for run in open_runs
            if (request := self._ledger.request(run)) is not None
            for entry in self._ledger.entries(run=run)
            if (entry.plan_hash, entry.step, entry.reply_digest) not in arrived
            and (request.state != "ended" or entry.mechanism == REFUSAL)
            and (sent := self._stored(request, entry.step)) is not None
        ]

    def settle(self, run: str, outcome: str, reason: str) -> Request:
        """End a run that the curator says is over: free the epsilon set aside, destroy what only the run needed."""
        reason = reason[:LONGEST_REASON]
        self._trail.settled(self._opened.known(run), outcome, reason)
        settled = self._ledger.settle(run, outcome, reason)
        self._forget(settled)
        return settled

    def tidy(self) -> None:
        """Remove rows of runs that a kill ended before they could be removed."""
        active = {request.plan_hash for request in self._ledger.requests("active")}
        run_rows.tidy(self._opened, active)

    # The invitation

    def _invited(self, task: Invitation, data: bytes) -> Outgoing | None:
        run, asked = task.proposal.run, digest(data)
        request, stored, found = self._ledger.request(run), self._ledger.answered(run, JOINING), None
        try:
            if request is None or request.plan_hash != task.plan:
                request, found = self._judged(task, len(data), asked)
            if stored is not None and stored.request_digest != asked:
                raise AnsweredOtherwise(CURATOR, f"invites to {run!r} again, in other words than before")
            return self._answer_invitation(request, found)
        except (AnsweredOtherwise, OutOfTurn) as error:
            return self._object(run, self._ledger.request(run), (task.plan, task.step), error)

    def _judged(self, task: Invitation, size: int, asked: str) -> tuple[Request, Examined]:
        """Judge a new invitation by the policy, log the verdict, then keep it; a kill in between logs it twice.

        What the verdict rests on is returned too: joining at once need not work out the terms and read the table a
        second time. For a run that waits for the data owner, neither is kept.
        """
        found, run, plan = examined(self._opened, task, size, self._smallest_key), task.proposal.run, task.plan
        verdict, amounts = found.verdict, (found.price, found.delta)
        self._trail.judged(run, plan, found.dataset, amounts, verdict.decision, verdict.reasons)
        request = self._ledger.ask(
            run,
            plan_hash=plan,
            dataset=found.dataset,
            plan=task.proposal.model_dump_json(),
            schema_text=task.schema_text,
            price=found.price,
            delta=found.delta,
            verdict=verdict.decision,
            reasons=verdict.reasons,
            essentials=kept_of(task),
            invitation=asked,
            **self._opened.paying(found.dataset),
        )
        return request, found

    def _answer_invitation(self, request: Request, found: Examined | None = None) -> Outgoing | None:
        """Answer an invitation as the ledger says; `found` is given if it has just been examined."""
        stored = self._stored(request, JOINING)
        if stored is not None or request.state == "asked":
            return stored
        if request.state == "ended":
            raise OutOfTurn(CURATOR, f"invites to {request.run!r}, which is over: {request.outcome}")
        asked = request.invitation or digest(encode(_invitation(request)))
        try:
            if request.state == "refused":
                raise PolicyRefusal(_why_refused(request))
            return self._join(request, asked, found)
        except DataError:
            # Privacy: only the data owner may know where a table does not fit; `subn-party check` tells.
            return self._decline(request, JOINING, asked, PolicyRefusal(_UNFIT))
        except (PlanError, PolicyRefusal) as error:
            return self._decline(request, JOINING, asked, error)

    def _join(self, request: Request, asked: str, found: Examined | None) -> Outgoing:
        """Set the whole price aside and freeze the rows, then accept."""
        terms, table = (found.terms, found.table) if found is not None else (None, None)
        terms, dataset = terms or self._terms(request), request.dataset or ""
        self._trail.joining(request)
        me = place_in(self._opened, terms.plan)
        check_people(self._opened, dataset, terms, me)
        if table is None:
            _, table = loaded(self._opened, dataset, terms.agreed)
        self._ledger.reserve(request.run, self._opened.account_of(dataset))
        rows = run_rows.begin(self._opened, dataset, terms, table)
        state, acceptance = accept(terms, me, self._opened.keys.identity, rows, self._stream, self._sums_of(terms, me))
        return self._record(request, asked, "joining", _Joined(terms, rows, Kept(state)), terms.steps[0], acceptance)

    # Every other task

    def _asked(self, run: str, task: StepTask, asked: str) -> Outgoing:
        request = self._ledger.request_of_plan(task.plan)
        run = run if request is None else request.run
        stored = None if request is None else self._ledger.answered(run, task.step)
        try:
            if request is None or (request.state == "ended" and stored is None):
                raise OutOfTurn(CURATOR, f"asks for {task.step!r} of {run!r}, in which this party takes no part")
            if stored is not None and stored.request_digest != asked:
                raise AnsweredOtherwise(CURATOR, f"asks for {task.step!r} of {run!r} again, but for something else")
        except PeerError as error:
            return self._object(run, request, (task.plan, task.step), error)
        try:
            return self._stored(request, task.step) or self._answer(request, task, asked)
        except (PeerError, PlanError, PolicyRefusal) as error:
            return self._decline(request, task.step, asked, error)

    def _answer(self, request: Request, task: StepTask, asked: str) -> Outgoing:
        joined = self._taken_up(request)
        state, terms = joined.kept.state, joined.terms
        with no_task_stops_the_party(task.step):
            checked = check(state, task)
        step = checked.step
        if step.charge(state.me) > request.reserved:
            raise BudgetExhausted(
                f"{step.name!r} costs {step.charge(state.me)}, {request.reserved} is set aside for it"
            )
        with no_task_stops_the_party(task.step):
            state, reply = answer(state, checked, joined.rows, self._stream)
        keys = task.keys if isinstance(task, Count) and task.keys is not None else joined.kept.keys
        following = _Joined(terms, joined.rows, Kept(state, keys))
        mechanism = stage_of(terms, step).mechanism(terms.plan, task)
        sent = self._record(request, asked, mechanism, following, step, reply)
        return replace(sent, ciphertexts=task_cost(terms, step, task).ciphertexts)

    def _taken_up(self, request: Request) -> _Joined:
        """Return the run from memory, or restore it as the process before this one left it."""
        if request.run not in self._joined:
            kept = self._ledger.kept(request.run)
            if request.state != "active":
                raise OutOfTurn(CURATOR, f"asks before {request.run!r} has been joined: it is {request.state}")
            if kept is None:
                raise PolicyRefusal("this party cannot go on: the run's secrets went with its last answer or a restore")
            terms = self._terms(request)
            me, own = place_in(self._opened, terms.plan), self._opened.keys.identity
            try:
                rows = run_rows.resume(self._opened, terms)
                found = saved_state.from_bytes(kept, terms, me, own, self._stream, self._sums_of(terms, me))
            except Unreadable as error:
                raise PolicyRefusal("this party cannot go on: the state that it kept of the run is damaged") from error
            self._joined[request.run] = _Joined(terms, rows, found)
        return self._joined[request.run]

    def _unread(self, run: str, asked: str, error: PeerError) -> Outgoing:
        """Refuse bytes that are no task, as the step that is due in the run that the curator signed with them.

        Raise the error where the ledger knows no such run, or nothing of it is due.
        """
        request = self._ledger.request(run)
        if request is not None and request.state not in ("active", "ended"):
            return self._decline(request, JOINING, asked, error)
        due = self._taken_up(request).kept.state.due if request is not None and request.state == "active" else None
        if request is None or due is None:
            raise error
        return self._decline(request, due.name, asked, error)

    # What leaves

    def _record(
        self, request: Request, asked: str, mechanism: str, joined: _Joined, step: Step, reply: Reply
    ) -> Outgoing:
        """Record charge, bytes and state in one transaction; only then change the state in memory."""
        run, me = request.run, joined.kept.state.me
        charge, delta = step.charge(me), step.delta(me)
        is_last = joined.kept.state.due is None
        # Privacy: with the last answer, what the masks of this run were made with is destroyed.
        kept = None if is_last else saved_state.to_bytes(joined.kept)
        data = self._ledger.record(
            run,
            step.name,
            mechanism=mechanism,
            charge=charge,
            delta=delta,
            request_digest=asked,
            reply=encode(reply),
            kept=kept,
        )
        if is_last:
            self._joined.pop(run, None)
        else:
            self._joined[run] = joined
        what = {"run": run, "step": step.name, "mechanism": mechanism, "charge": str(charge), "delta": str(delta)}
        self._trail.answered("answered", **what, request=asked, reply=digest(data), bytes=len(data))
        return answer_of(self._key, run, request.plan_hash, step.name, (charge, delta), data)

    def _decline(self, request: Request, step: str, asked: str, error: SubnError) -> Outgoing:
        """Refuse as the step's answer, which ends the run.

        A refused invitation is logged first: nothing of it was charged. Any other refusal is logged when it is in the
        ledger, as answers are.
        """
        reason = str(error)[:LONGEST_REASON]
        refusal = encode(Refusal(plan=request.plan_hash, step=step, reason=reason, culprit=accused_by(error)))
        if step == JOINING:
            self._trail.fruitless("refused", run=request.run, step=step, reason=reason)
        elif not request.spent:
            self._ledger.note_fruitless()
        data = self._ledger.decline(request.run, step, request_digest=asked, reply=refusal, reason=reason)
        if step != JOINING:
            self._trail.answered("refused", run=request.run, step=step, reason=reason)
        self._forget(request)
        return refusal_of(self._key, request.run, request.plan_hash, step, data)

    def _object(self, run: str, request: Request | None, place: tuple[str, str], error: SubnError) -> Outgoing:
        """Refuse a task that has no place in a step: another task for an answered step, or for a run not joined.

        `place` is the plan's hash and the step. It ends the run of `request`, if there is one.
        """
        reason, (plan, step) = str(error)[:LONGEST_REASON], place
        self._trail.fruitless("refused", run=run, step=step, reason=reason)
        if request is not None:
            self._ledger.settle(run, "refused", reason)
            self._forget(request)
        return refusal_of(self._key, run, plan, step, encode(Refusal(plan=plan, step=step, reason=reason)))

    def _stored(self, request: Request, step: str) -> Outgoing | None:
        """The answer that this step has in the ledger, byte for byte."""
        stored = self._ledger.answered(request.run, step)
        if stored is None:
            return None
        entries = [entry for entry in self._ledger.entries(run=request.run) if entry.step == step]
        if any(entry.mechanism == REFUSAL for entry in entries):
            return refusal_of(self._key, request.run, request.plan_hash, step, stored.reply)
        charged = max((entry.charge, entry.delta) for entry in entries)
        again = answer_of(self._key, request.run, request.plan_hash, step, charged, stored.reply)
        return replace(again, kind="repeat")

    # Helpers

    def _terms(self, request: Request) -> Terms:
        return agree(_plan(request), Schema.parse(request.schema_text), self._smallest_key)

    def _sums_of(self, terms: Terms, me: int) -> PartySums | None:
        return self._sums(terms.plan, me) if self._sums is not None else None

    def _forget(self, request: Request) -> None:
        self._joined.pop(request.run, None)
        run_rows.forget(self._opened, request.plan_hash)


def _plan(request: Request) -> Plan:
    return stored_plan(request.plan)


def _invitation(request: Request) -> Invitation:
    return Invitation(plan=request.plan_hash, step=JOINING, proposal=_plan(request), schema_text=request.schema_text)


def _why_refused(request: Request) -> str:
    if request.verdict == "refuse":
        return "; ".join(request.reasons)
    return request.reason or "the data owner does not want to take part"
