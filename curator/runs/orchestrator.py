"""Runs from beginning to end: take answers, give out tasks, store every step of the state machine in one transaction.

It does not know HTTP or asyncio (`curator.runs.relay`). Its functions may be called from any thread.

Order of effects: If a party repeats its answer to a step with the same bytes, it gets the same reply. Other bytes are
refused. A new answer is checked by the pure state machine, then stored with its event and all else that has come for
this run. The result of a complete step may take minutes to compute, as a sum is opened: it has a transaction of its
own (`advance`). Memory is changed last, so `recover` can rebuild the runs after a kill at any instant.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from threading import Lock
from time import perf_counter

from sqlalchemy import Connection

from curator import interface
from curator.accounts.offered import keep_schema
from curator.accounts.registry import Registry, refuse_changed_members
from curator.errors import Displaced, StoreUnavailable
from curator.home.keys import CuratorKeys
from curator.interface import PlanRequest
from curator.memory import give_back
from curator.results.publication import publish, stage_costs
from curator.runs.arrivals import Arrival, Batch, steps_of
from curator.runs.held_runs import HeldRuns
from curator.runs.live_run import (
    Ending,
    LiveRun,
    Pause,
    Standing,
    concluded,
    internal,
    said,
    too_late,
    trouble_of,
)
from curator.runs.planner import Planner
from curator.runs.ports import Seams
from curator.runs.receipts import is_accepted, is_known
from curator.runs.recovery import begun, check_keys, recovered, run_name, run_of_key
from curator.runs.suspects import with_suspects
from curator.runs.transitions import write_beginning, write_end, write_pause, write_resumption, write_step
from curator.runs.views import RunViews
from curator.settings import Settings
from curator.store import run_records as records
from curator.store.store import Store
from curator.store.turns import Queued
from protocol.errors import SubnError
from protocol.plan.terms import Terms

OPERATOR = "operator"


class Orchestrator:
    """All runs of a curator. Call `recover` first. `changed` is called with a run's name after every change to it."""

    def __init__(self, store: Store, keys: CuratorKeys, settings: Settings, seams: Seams | None = None) -> None:
        self._store, self._keys, self.settings = store, keys, settings
        self._seams = seams or Seams()
        self.registry = Registry(store, self._seams.clock)
        self.planner = Planner(self.registry, self._seams)
        self.views = RunViews(store)
        self.changed: Callable[[str], None] = lambda _run: None
        self.worked_out: Callable[[int, float], None] = lambda *_: None  # called after every complete step
        self.live: dict[str, LiveRun] = {}
        self.held = HeldRuns(store, self._seams.clock)
        self._creating = Lock()
        self._failure: tuple[int, StoreUnavailable] | None = None  # of the store, since the last tick

    # What operators do

    def create_run(self, request: PlanRequest, idempotency_key: str) -> tuple[str, bool]:
        """Return the run of this key, and whether it is new. Refuse a known key with another request."""
        found = run_of_key(self._store, idempotency_key, request)
        if found is not None:
            return found, False
        terms = self.planner.plan_to_start(request, run_name(self._seams)).terms
        with self._creating:
            found = run_of_key(self._store, idempotency_key, request)
            return (found, False) if found is not None else (self._create(terms, request, idempotency_key), True)

    def cancel(self, run: str, reason: str | None = None) -> None:
        ending = Ending("cancelled", OPERATOR, reason or "cancelled by the operator")
        if self.held.end(run, ending):
            self.changed(run)
            return
        live = self._active(run)
        with live.lock:
            if live.ended:
                raise self.views.over(run)
            self.end(live, ending)

    def revoke(self, party: str) -> None:
        """Refuse all further requests of this party, and let its runs fail."""
        with self._creating:
            self.registry.revoke(party)
        self._end_runs_of(party)

    def folder(self, run: str) -> Path:
        """Return the folder with the published files of a finished run."""
        return self.settings.home / "runs" / run

    def waiting(self) -> dict[str, int]:
        """Return, for each party with an unanswered task, since when it has been waiting for an answer."""
        found: dict[str, int] = {}
        for live in self._runs_in_memory():
            found |= {party: min(live.since, found.get(party, live.since)) for party in live.missing}
        return found

    def paused(self) -> int:
        """Return the number of runs that the store or a disk holds up."""
        return sum(live.pause is not None for live in self._runs_in_memory())

    def view(self, run: str) -> interface.Run:
        """Return the run as stored, with the reason of a pause even while the pause cannot be stored."""
        found, live = self.views.run(run), self.live.get(run)
        reason = self.held.reasons.get(run) or (live and live.pause and f"paused: {live.pause.reason}")
        return found.model_copy(update={"reason": reason}) if reason else found

    # What parties do

    def inbox(self, party: str, skip: tuple[str, ...] = ()) -> tuple[str, bytes] | None:
        """Return the run and the bytes of the oldest task that this party has not answered."""
        for live in sorted(self._runs_in_memory(), key=lambda live: (live.since, live.run)):
            task = None if live.run in skip else live.task_for(party)
            if task is not None:
                return live.run, task
        return None

    def awaits(self, run: str, step: str, party: str, digest: str, size: int) -> bool:
        """Whether an answer of this digest and size is to be read: False if the run has it already.

        Raise an error for any answer that the run does not wait for, so that none of it is read.
        """
        if is_accepted(self._store, run, step, party, digest):
            return False
        self._active(run, party).check_size(party, step, size, self.settings.largest_body)
        return True

    def deliver(self, run: str, step: str, party: str, body: bytes, receipt: bytes) -> None:
        """Take a party's answer. After a step's last answer, `advance` computes the result of the step.

        Retry safety: a party may deliver the same bytes any number of times, also after a crash.
        """
        self._arrived(run, Arrival(step, party, sha256(body).hexdigest(), receipt, body), is_accepted)
        self.changed(run)

    def promise(self, run: str, step: str, party: str, digest: str, receipt: bytes) -> None:
        """Take a party's word for the bytes that it will send. From then on no others are taken for this step.

        Privacy: if two copies of a party's home answer one step, the second one learns it before its bytes leave.
        """
        self._arrived(run, Arrival(step, party, digest, receipt), is_known)

    def active_runs(self, party: str) -> set[str]:
        """Return the runs in memory in which this party takes part."""
        return {live.run for live in self._runs_in_memory() if party in live.names}

    # Complete steps

    def complete_runs(self) -> list[str]:
        """Return the runs whose current step all parties have answered: `advance` is next."""
        return [live.run for live in self._runs_in_memory() if live.is_complete]

    def advance(self, run: str) -> None:
        """Compute the result of a complete step, and store it. Meanwhile the run can be cancelled."""
        live = self.live.get(run)
        if live is None:
            return
        with live.at_work:
            if live.is_complete:
                began = perf_counter()
                outcome = with_suspects(self._store, live.names, concluded(live, self._seams.streams("reference")))
                self.worked_out(live.at.amounts["ciphertexts"] // len(live.at.tasks), perf_counter() - began)
                with live.lock:
                    self._move(live, outcome)
                self.changed(run)
                give_back()

    # Regular work

    def tick(self) -> None:
        """Enforce deadlines, publish complete runs, and retry whatever the store or a full disk held up.

        Raise Displaced when another process serves the database.
        """
        self._check_alone()
        failure, self._failure = self._failure, None
        for live in self._runs_in_memory():
            # A run whose lock is held is busy; the next tick looks at it again.
            if live.lock.acquire(blocking=False):
                try:
                    if failure is not None and live.pause is None and not live.ended:
                        self._hold_up(live, failure[1], since=failure[0])
                    else:
                        self.tend(live)
                finally:
                    live.lock.release()

    def _check_alone(self) -> None:
        try:
            self._store.check_alone()
        except Displaced:
            raise
        except StoreUnavailable as error:
            self.store_failed(error)

    def store_failed(self, error: StoreUnavailable) -> None:
        """Note that no party can deliver. The next tick pauses all runs, so that no party is blamed for the delay."""
        self._failure = self._failure or (self._seams.clock(), error)

    def recover(self) -> None:
        """Rebuild or hold all runs that have not ended. Refuse keys that do not belong to this store."""
        check_keys(self._store, self._keys)
        with self._store.reading() as db:
            active = records.active_runs(db)
        for record in active:
            live = recovered(self._store, record, self._keys, self._seams, self.held)
            self.live |= {} if live is None else {record.id: live}
        for party in self.registry.parties():
            if party.revoked is not None:
                self._end_runs_of(party.name)

    # Beginning

    def _create(self, terms: Terms, request: PlanRequest, idempotency_key: str) -> str:
        live, row = begun(terms, request, self.settings, self._keys, self._seams)
        with self._store.writing() as db:
            refuse_changed_members(db, terms.plan.members)
            keep_schema(db, terms.agreed, live.since)  # the last offer of it may have gone meanwhile
            write_beginning(db, live, row | {"idempotency_key": idempotency_key})
        self.live[live.run] = live
        said(live.run, "created", parties=list(live.names))
        said(live.run, "step", **live.at.amounts)
        self.changed(live.run)
        return live.run

    # Taking answers

    def _active(self, run: str, party: str | None = None) -> LiveRun:
        """Return a run that has not ended. Raise NotFound if a party is named that takes no part in it."""
        live = self.live.get(run)
        if live is None or party not in (None, *live.names):
            self.views.check_member(run, party)
            self.held.check(run)
            raise self.views.over(run)
        return live

    def _arrived(self, run: str, one: Arrival, has_come: Callable[[Store, str, str, str, str], bool]) -> None:
        """Take what has come for a run, unless it had come before, with all that has come for it meanwhile."""
        live = self.live.get(run)
        if live is None or one.party not in live.names:
            if has_come(self._store, run, one.step, one.party, one.digest):
                return
            live = self._active(run, one.party)
        live.arrivals.shared(one, lambda waiting: self._take(live, waiting))

    def _take(self, live: LiveRun, waiting: Sequence[Queued]) -> None:
        """Check arrivals and store them with their consequences, in one transaction."""
        with live.lock:
            with self._store.reading() as db:
                known = records.answers_known(db, live.run, steps_of(waiting))
            batch, late = Batch(live, known, self._seams.clock()), []
            for one in waiting:
                try:
                    late += [] if batch.add(one.what, self._seams.streams("reference")) else [one]
                except SubnError as error:
                    one.error = error
            if not batch.is_empty:
                self._store_batch(live, batch)
            for one in late:
                one.error = self.views.over(live.run)

    def _store_batch(self, live: LiveRun, batch: Batch) -> None:
        with self._storing(live) as db:
            batch.write(db)
        batch.tell()
        if isinstance(batch.outcome, Ending):
            self._forget(live, batch.outcome)
        else:
            live.move_to(batch.outcome, batch.now)

    def _move(self, live: LiveRun, outcome: Standing | Ending) -> None:
        """Store the result of a step. If the store fails, the result is computed again when the run resumes."""
        if live.ended:
            return
        now = self._seams.clock()
        try:
            with self._storing(live) as db:
                if isinstance(outcome, Ending):
                    write_end(db, live.run, outcome, now)
                else:
                    write_step(db, live, outcome, now)
        except StoreUnavailable:
            return
        if isinstance(outcome, Ending):
            self._forget(live, outcome)
        else:
            live.move_to(outcome, now)

    @contextmanager
    def _storing(self, live: LiveRun) -> Iterator[Connection]:
        """Store a change of this run, and hold the run up if the store fails."""
        try:
            with self._store.writing() as db:
                yield db
        except StoreUnavailable as error:
            self._hold_up(live, error)
            raise

    # Tending

    def tend(self, live: LiveRun) -> None:
        now = self._seams.clock()
        if live.ended or (live.pause is not None and now < live.pause.until):
            return
        try:
            if live.step is None:
                self._finish(live)
            elif live.pause is not None:
                self._resume(live, now)
            elif live.missing and live.deadline is not None and now >= live.deadline:
                self.end(live, too_late(live))
        except (StoreUnavailable, OSError) as error:
            self._hold_up(live, error)

    def _finish(self, live: LiveRun) -> None:
        """Publish a complete run. Retry safety: the same answers and the same seed give the same table."""
        now = self._seams.clock()
        with self._store.reading() as db:
            seed = records.find_recovery(db, live.run).synthesis_seed
            replies, events = records.replies_of_run(db, live.run), records.events_after(db, live.run)
        try:
            costs = stage_costs(replies, events)
            outputs = publish(self.folder(live.run), live.at.state, replies, costs, seed, self._keys.signing, now)
        except OSError:
            raise
        except Exception as error:  # an unforeseen failure ends this run, not the service
            self.end(live, internal(error, live.run, self._seams.streams("reference")))
        else:
            self.end(live, Ending("finished"), outputs)
            give_back()

    def _hold_up(self, live: LiveRun, error: Exception, since: int | None = None) -> None:
        """Pause the run, with everything that was stored, until the store or the disk works again."""
        now = self._seams.clock()
        if live.pause is None:
            live.pause = Pause(now if since is None else since, trouble_of(error))
            said(live.run, "paused", reason=live.pause.reason)
        live.pause.wait_longer(now)
        if not live.pause.noted:
            with suppress(StoreUnavailable):
                with self._store.writing() as db:
                    write_pause(db, live.run, live.pause)
                live.pause.noted = True
                self.changed(live.run)

    def _resume(self, live: LiveRun, now: int) -> None:
        assert live.pause is not None
        # No party could answer during the pause: extend the deadline by its length.
        deadline = None if live.deadline is None else live.deadline + now - live.pause.since
        with self._store.writing() as db:
            write_resumption(db, live, now)
            records.change_run(db, live.run, deadline=deadline, updated=now)
        live.pause, live.deadline = None, deadline
        said(live.run, "resumed")
        self.changed(live.run)

    # Ending

    def end(self, live: LiveRun, ending: Ending, outputs: Mapping[str, str] | None = None) -> None:
        """Store the end of a run. The caller holds the run's lock."""
        now = self._seams.clock()
        with self._store.writing() as db:
            if live.pause is not None:
                write_resumption(db, live, now)
            write_end(db, live.run, ending, now, outputs)
        self._forget(live, ending)
        self.changed(live.run)

    def _end_runs_of(self, party: str) -> None:
        ending = Ending("failed", party, f"{party} was revoked by the operator")
        for run in self.held.of(party):
            self.held.end(run, ending)
        for live in self._runs_in_memory():
            if party in live.names:
                with live.lock:
                    if not live.ended:
                        self.end(live, ending)

    def _forget(self, live: LiveRun, ending: Ending) -> None:
        live.end(ending)
        self.live.pop(live.run, None)

    def _runs_in_memory(self) -> list[LiveRun]:
        return list(self.live.values())
