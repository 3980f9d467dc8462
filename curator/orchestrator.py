"""Runs from their beginning to their end: answers in, tasks out, every step of the state machine in one transaction.

It does not know HTTP or asyncio (`relay`); its functions may be called from any thread.

The order of effects: same bytes for a step, same answer; other bytes, refused; else the pure state machine says what
follows, and answer, state and events are stored together. Only then memory follows, so that a kill at any instant
leaves what `recover` rebuilds.
"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from threading import Lock

from sqlalchemy import Connection

from crypto.errors import CryptoError
from crypto.paillier import SMALLEST_BITS
from crypto.randomness import KEY_BYTES, Stream
from crypto.signing import verify
from curator import run_records as records
from curator.directory import Directory, schema_text
from curator.errors import Conflict, Forbidden, NotFound, OtherBytes, RunEnded, SettingsError, StoreUnavailable
from curator.keys import CuratorKeys
from curator.live_run import Ending, LiveRun, Pause, Standing, internal, judged, replayed
from curator.planning import request_digest, stored_terms, terms_for
from curator.publication import publish, stage_costs
from curator.run_crypto import PaillierCrypto, RunCrypto
from curator.run_records import ReplyRecord, RunRecord
from curator.settings import Clock, Settings, system_clock
from curator.store import Store
from curator.wire import PlanRequest
from protocol.authentication import RECEIPT, receipt_text
from protocol.errors import MalformedMessage
from protocol.messages import Refusal, decode
from protocol.run import RunKeys, begin
from protocol.schedule import Step
from protocol.terms import Terms

OPERATOR = "operator"
_DRAFT = "draft"
GRACE_MS = 15 * 60 * 1000
_log = logging.getLogger("curator.run")
Streams = Callable[[str], Stream]


def system_streams(_purpose: str) -> Stream:
    return Stream.system()


@dataclass(frozen=True)
class Seams:
    """What tests replace: time, randomness (a stream for every purpose), the cryptography, the smallest key."""

    clock: Clock = system_clock
    streams: Streams = system_streams
    crypto: RunCrypto = field(default_factory=PaillierCrypto)
    smallest_key: int = SMALLEST_BITS


class Orchestrator:
    """Call `recover` first. `changed`, if set, is called with a run's name after everything that happened to it."""

    def __init__(self, store: Store, keys: CuratorKeys, settings: Settings, seams: Seams | None = None) -> None:
        self._store, self._keys, self._settings = store, keys, settings
        self._seams = seams or Seams()
        self.directory = Directory(store, self._seams.clock)
        self.changed: Callable[[str], None] = lambda _run: None
        self._live: dict[str, LiveRun] = {}
        self._creating = Lock()

    # Operators

    def plan(self, request: PlanRequest, run: str = _DRAFT) -> Terms:
        """The terms that a run of this request would have; nothing is kept."""
        schema = self.directory.schema(request.schema_hash)
        members = self.directory.members(request.schema_hash, request.parties)
        return terms_for(run, request, schema, members, self._seams.smallest_key)

    def create_run(self, request: PlanRequest, idempotency_key: str) -> tuple[str, bool]:
        """The run of this key, and whether it is new. The same key with another request is refused."""
        with self._creating:
            found = self._run_of_key(idempotency_key, request)
            return (found, False) if found is not None else (self._create(request, idempotency_key), True)

    def cancel(self, run: str, reason: str | None = None) -> None:
        self._end_now(run, Ending("cancelled", OPERATOR, reason or "cancelled by the operator"))

    def revoke(self, party: str) -> None:
        """The party is not listened to any more, and its runs fail."""
        self.directory.revoke(party)
        for live in self._runs_in_memory():
            if party in live.names:
                self._end_revoked(live, party)

    def folder(self, run: str) -> Path:
        """Where the published files of a finished run are."""
        return self._settings.home / "runs" / run

    # Parties

    def inbox(self, party: str, skip: tuple[str, ...] = ()) -> tuple[str, bytes] | None:
        """The run and the bytes of the oldest task that this party has not answered."""
        for live in sorted(self._runs_in_memory(), key=lambda live: (live.since, live.run)):
            question = None if live.run in skip else live.question_for(party)
            if question is not None:
                return live.run, question
        return None

    def deliver(self, run: str, step: str, party: str, body: bytes, receipt: bytes) -> None:
        """Take a party's answer. Retry safety: the same bytes may come any number of times, after a crash too."""
        if self._has(run, step, party, body):
            return
        live = self._active(run)
        with live.lock:
            if not self._has(run, step, party, body):
                self._take(live, step, party, body, receipt)
        self.changed(run)

    # Time

    def tick(self) -> None:
        """What time brings: deadlines, results of complete runs, another try of what a full disk held up."""
        for live in self._runs_in_memory():
            # A run whose lock is held is at work; its time comes with the next tick.
            if live.lock.acquire(blocking=False):
                try:
                    self._tend(live)
                finally:
                    live.lock.release()

    def recover(self) -> None:
        """Rebuild all runs that have not ended, as they were; refuses keys that are not those of the store."""
        self._check_keys()
        with self._store.reading() as db:
            active = records.active_runs(db)
        revoked = {party.name for party in self.directory.parties() if party.revoked is not None}
        for record in active:
            live = self._recovered(record)
            for party in revoked.intersection(live.names if live else ()):
                assert live is not None
                self._end_revoked(live, party)

    # Creating

    def _run_of_key(self, idempotency_key: str, request: PlanRequest) -> str | None:
        with self._store.reading() as db:
            found = records.find_run_by_key(db, idempotency_key)
        if found is not None and found.request_digest != request_digest(request):
            raise Conflict(f"this idempotency key began run {found.id} with another request: use a new key")
        return None if found is None else found.id

    def _create(self, request: PlanRequest, idempotency_key: str) -> str:
        now, seams = self._seams.clock(), self._seams
        # Names sort by the time of creation.
        run = f"{now:012x}-{seams.streams('run').take(4).hex()}"
        terms = self.plan(request, run)
        stream = seams.streams("curator")
        first_variable = stream.below(terms.domain.count)
        made = seams.crypto.make_keys(terms.plan, stream)
        at = Standing.of(begin(terms, first_variable, made.public if made else None))
        opening = seams.crypto.opening(terms.plan, made.secret if made else None)
        deadline = now + 1000 * (request.join_seconds or self._settings.join_seconds)
        step_seconds = request.step_seconds or self._settings.step_seconds
        live = LiveRun(run, at, opening, now, deadline, 1000 * step_seconds)
        with self._store.writing() as db:
            records.add_run(
                db,
                {
                    "id": run,
                    "plan": terms.plan.model_dump_json(),
                    "plan_hash": terms.plan_hash,
                    "schema_hash": terms.schema.hash,
                    "idempotency_key": idempotency_key,
                    "request_digest": request_digest(request),
                    "state": "joining",
                    "step": terms.steps[0].name,
                    "created": now,
                    "updated": now,
                    "step_started": now,
                    "deadline": deadline,
                    "step_seconds": step_seconds,
                    "first_variable": first_variable,
                    "synthesis_seed": seams.streams("synthesis").take(KEY_BYTES),
                    "public_key": made.public.public_key if made else None,
                    "indicator": made.public.indicator if made else None,
                    "secret": self._keys.seal(made.secret, run, seams.streams("seal")) if made else None,
                },
            )
            records.add_event(db, run, now, "created", plan=terms.plan_hash, parties=list(live.names))
            records.add_event(db, run, now, "step", **at.amounts)
        self._live[run] = live
        self.changed(run)
        return run

    # Taking answers

    def _has(self, run: str, step: str, party: str, body: bytes) -> bool:
        with self._store.reading() as db:
            found = records.find_reply(db, run, step, party)
        digest = sha256(body).hexdigest()
        if found is not None and found.digest != digest:
            raise OtherBytes(
                f"{party} has answered {step!r} with other bytes: SHA-256 {found.digest} was accepted, this is {digest}"
            )
        return found is not None

    def _active(self, run: str) -> LiveRun:
        live = self._live.get(run)
        if live is not None and not live.ended:
            return live
        with self._store.reading() as db:
            found = records.find_run(db, run)
        if found is None:
            raise NotFound(f"there is no run {run!r}")
        raise RunEnded(f"run {run} has ended: {found.state}{f' ({found.reason})' if found.reason else ''}")

    def _take(self, live: LiveRun, step: str, party: str, body: bytes, receipt: bytes) -> None:
        """Judge one answer and store what follows; the caller holds the run's lock."""
        if live.ended:
            self._active(live.run)
        if party not in live.names:
            raise NotFound(f"there is no run {live.run!r} of {party}")
        number, due = live.expect(party, step)
        charge = _charge(due, number, party, body)
        _check_receipt(live.at.state.terms, number, due, charge, body, receipt)
        outcome = judged(live, number, due, body, self._seams.streams("reference"))
        now = self._seams.clock()
        record = ReplyRecord(live.run, step, party, sha256(body).hexdigest(), len(body), str(charge), receipt, now)
        with self._writing(live) as db:
            records.add_reply(db, record, body)
            records.add_event(db, live.run, now, "answered", step=step, party=party, bytes=len(body))
            if isinstance(outcome, Ending):
                _end(db, live.run, outcome, now)
            else:
                _move(db, live, outcome, now)
        if isinstance(outcome, Ending):
            self._forget(live)
        else:
            live.move_to(outcome, now)

    # Time

    def _tend(self, live: LiveRun) -> None:
        now = self._seams.clock()
        try:
            if live.ended:
                return
            if live.step is None:
                self._finish(live)
            elif live.pause is not None:
                self._resume(live, now)
            elif live.deadline is not None and now >= live.deadline:
                self._end(live, _too_late(live))
        except (StoreUnavailable, OSError) as error:
            self._hold_up(live, error)

    def _finish(self, live: LiveRun) -> None:
        """Publish a complete run. Retry safety: from the same answers and the same seed come the same files."""
        now, terms = self._seams.clock(), live.at.state.terms
        with self._store.reading() as db:
            seed = records.find_recovery(db, live.run).synthesis_seed
            replies, events = records.replies_of_run(db, live.run), records.events_after(db, live.run)
        try:
            costs = stage_costs(terms, replies, events, now)
            outputs = publish(self.folder(live.run), live.at.state, replies, costs, seed, self._keys.signing, now)
        except OSError:
            raise
        except Exception as error:
            self._end(live, internal(error, live.run, self._seams.streams("reference")))
        else:
            self._end(live, Ending("finished", None, None), outputs)

    def _hold_up(self, live: LiveRun, error: Exception) -> None:
        """The run waits, with all that was stored, until the store or the disk takes more."""
        if live.pause is None:
            live.pause = Pause(self._seams.clock(), _trouble(error))
            _log.warning("run %s pauses: %s", live.run, live.pause.reason)
        if not live.pause.noted:
            with suppress(StoreUnavailable):
                with self._store.writing() as db:
                    _note_pause(db, live.run, live.pause)
                live.pause.noted = True
                self.changed(live.run)

    def _resume(self, live: LiveRun, now: int) -> None:
        assert live.pause is not None
        # Nobody could answer meanwhile: the deadline moves by as much.
        deadline = None if live.deadline is None else live.deadline + now - live.pause.since
        with self._store.writing() as db:
            _note_resumption(db, live, now)
            records.change_run(db, live.run, deadline=deadline, updated=now)
        live.pause, live.deadline = None, deadline
        self.changed(live.run)

    # Ending

    def _end_now(self, run: str, ending: Ending) -> None:
        live = self._active(run)
        with live.lock:
            if live.ended:
                self._active(run)
            self._end(live, ending)

    def _end(self, live: LiveRun, ending: Ending, outputs: Mapping[str, str] | None = None) -> None:
        """The caller holds the run's lock."""
        now = self._seams.clock()
        with self._store.writing() as db:
            if live.pause is not None:
                _note_resumption(db, live, now)
            _end(db, live.run, ending, now, outputs)
        self._forget(live)
        self.changed(live.run)

    def _end_revoked(self, live: LiveRun, party: str) -> None:
        with live.lock:
            if not live.ended:
                self._end(live, Ending("failed", party, f"{party} was revoked by the operator"))

    def _forget(self, live: LiveRun) -> None:
        live.ended = True
        self._live.pop(live.run, None)

    # Recovery

    def _recovered(self, record: RunRecord) -> LiveRun | None:
        """The run as it was; it fails if it cannot be worked out again."""
        try:
            live = self._rebuilt(record)
        except StoreUnavailable:
            raise
        except Exception as error:
            ending = internal(error, record.id, self._seams.streams("reference"))
            with self._store.writing() as db:
                _end(db, record.id, ending, self._seams.clock())
            return None
        self._live[record.id] = live
        return live

    def _rebuilt(self, record: RunRecord) -> LiveRun:
        with self._store.reading() as db:
            found = records.find_recovery(db, record.id)
            terms = stored_terms(record.plan, schema_text(db, record.schema_hash), self._seams.smallest_key)
            secret = None if found.secret is None else self._keys.open(found.secret, record.id)
            opening = self._seams.crypto.opening(terms.plan, secret)
            keys = None
            if found.public_key is not None and found.indicator is not None:
                keys = RunKeys(found.public_key, found.indicator)
            numbers = {member.name: number for number, member in enumerate(terms.plan.members)}
            answers = ((numbers[party], body) for party, body in records.bodies_of_run(db, record.id))
            at = replayed(begin(terms, found.first_variable, keys), answers, opening)
        step_ms = 1000 * record.step_seconds
        # Nobody could answer while the curator was away: whoever is waited for gets some time after its return.
        soonest = self._seams.clock() + min(step_ms, GRACE_MS)
        deadline = None if record.deadline is None else max(record.deadline, soonest)
        return LiveRun(record.id, at, opening, record.step_started, deadline, step_ms)

    def _check_keys(self) -> None:
        """Secrets of runs open under the master key they were sealed with; parties know the signing key."""
        expected = {"master key": self._keys.fingerprint, "signing key": self._keys.signing.public.hex()}
        with self._store.writing() as db:
            for name, value in expected.items():
                if records.remember(db, name, value) != value:
                    raise SettingsError(
                        f"the curator's {name} is not the one that this database was made with: give it back its own"
                    )

    def _runs_in_memory(self) -> list[LiveRun]:
        return list(self._live.values())

    @contextmanager
    def _writing(self, live: LiveRun) -> Iterator[Connection]:
        """A transaction of one run, which pauses where the store takes nothing more."""
        try:
            with self._store.writing() as db:
                yield db
        except StoreUnavailable as error:
            self._hold_up(live, error)
            raise


def _charge(step: Step, number: int, party: str, body: bytes) -> Fraction:
    """What the answer costs: a refusal nothing."""
    try:
        return Fraction(0) if isinstance(decode(body, party), Refusal) else step.charge(number)
    except MalformedMessage:
        return step.charge(number)


def _check_receipt(terms: Terms, number: int, step: Step, charge: Fraction, body: bytes, receipt: bytes) -> None:
    member = terms.plan.members[number]
    text = receipt_text(terms.plan_hash, step.name, charge, body)
    try:
        verify(member.signing_key, RECEIPT, text, receipt)
    except CryptoError as error:
        raise Forbidden(
            f"{member.name}'s receipt for {step.name!r} does not fit: expected its signature under these bytes and the "
            f"charge {charge}: {error}"
        ) from error


def _too_late(live: LiveRun) -> Ending:
    assert live.step is not None
    names = ", ".join(live.missing)
    return Ending("timed_out", names, f"no answer to {live.step.name!r} before its deadline from {names}")


def _trouble(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"results cannot be written: {error.strerror or type(error).__name__}"
    return str(error)


def _move(db: Connection, live: LiveRun, following: Standing, now: int) -> None:
    """Store where the run stands after an answer."""
    if following.state.position == live.at.state.position:
        records.change_run(db, live.run, updated=now)
        return
    step = following.state.step
    deadline = None if step is None else now + live.step_ms
    name = "" if step is None else step.name
    records.change_run(db, live.run, state="running", step=name, step_started=now, deadline=deadline, updated=now)
    records.add_event(db, live.run, now, "step", **following.amounts)


def _end(db: Connection, run: str, ending: Ending, now: int, outputs: Mapping[str, str] | None = None) -> None:
    """Store the end, and destroy what only a run that goes on needs."""
    records.drop_bodies(db, run)
    records.change_run(
        db,
        run,
        **vars(ending),
        secret=None,
        deadline=None,
        updated=now,
        outputs=None if outputs is None else json.dumps(outputs),
    )
    records.add_event(db, run, now, "ended", **vars(ending))


def _note_pause(db: Connection, run: str, pause: Pause) -> None:
    records.add_event(db, run, pause.since, "paused", reason=pause.reason)


def _note_resumption(db: Connection, live: LiveRun, now: int) -> None:
    assert live.pause is not None
    if not live.pause.noted:
        _note_pause(db, live.run, live.pause)
    records.add_event(db, live.run, now, "resumed", seconds=(now - live.pause.since) / 1000)
