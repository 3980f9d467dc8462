"""Bring runs into memory: begin new runs, and rebuild stored runs.

It does not know what happens to them afterwards (`curator.runs.orchestrator`).
"""

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection

from crypto.randomness import KEY_BYTES
from curator.accounts.offered import schema_text
from curator.errors import Conflict, SettingsError, StoreUnavailable
from curator.home.keys import CuratorKeys
from curator.interface import PlanRequest
from curator.runs.held_runs import HeldRuns
from curator.runs.live_run import Answers, LiveRun, Standing, internal, replayed, resumed
from curator.runs.planning import request_digest, stored_terms
from curator.runs.ports import Seams
from curator.settings import Settings
from curator.store import run_records as records
from curator.store.run_records import RunRecord
from curator.store.store import Store
from protocol.errors import PlanError
from protocol.plan.terms import Terms
from protocol.run.curator import RunKeys, begin
from protocol.run.kept_knowledge import knowledge_from_bytes
from protocol.stages.knowledge import Knowledge

GRACE_MS = 15 * 60 * 1000
Row = dict[str, Any]


def run_name(seams: Seams) -> str:
    """Return a new name. Names sort by the time of creation."""
    return f"{seams.clock():012x}-{seams.streams('run').take(4).hex()}"


def run_of_key(store: Store, idempotency_key: str, request: PlanRequest) -> str | None:
    """Return the run that was begun with this key, if there is one. Refuse a key of another request."""
    with store.reading() as db:
        found = records.find_run_by_key(db, idempotency_key)
    if found is not None and found.request_digest != request_digest(request):
        raise Conflict(f"this idempotency key began run {found.id} with another request: use a new key")
    return None if found is None else found.id


def check_keys(store: Store, keys: CuratorKeys) -> None:
    """Refuse other keys: secrets of runs open only under the old master key, and parties know the signing key."""
    expected = {"master key": keys.fingerprint, records.SIGNING_KEY: keys.signing.public.hex()}
    with store.writing() as db:
        for name, value in expected.items():
            if records.remember(db, name, value) != value:
                raise SettingsError(f"the curator's {name} is not the key of this database: restore the original key")


def begun(
    terms: Terms, request: PlanRequest, settings: Settings, keys: CuratorKeys, seams: Seams
) -> tuple[LiveRun, Row]:
    """Return a new run, and the row from which a restart rebuilds it.

    The curator's settings say how long joining and each step may take, unless the request does.
    """
    plan = terms.plan
    stream = seams.streams("curator")
    first_variable = stream.below(terms.domain.count)
    made = seams.crypto.make_keys(plan, stream)
    at = Standing.of(begin(terms, first_variable, made.public if made else None))
    opening = seams.crypto.opening(plan, made.secret if made else None)
    now = seams.clock()  # making the keys of many parties takes seconds, which are not taken from the time to join
    join_seconds = request.join_seconds or settings.join_seconds
    step_seconds = request.step_seconds or settings.step_seconds
    live = LiveRun(plan.run, at, opening, now, now + 1000 * join_seconds, 1000 * step_seconds)
    row = {
        "id": plan.run,
        "plan": plan.model_dump_json(),
        "plan_hash": terms.plan_hash,
        "schema_hash": plan.schema_hash,
        "request_digest": request_digest(request),
        "state": "joining",
        "step": terms.steps[0].name,
        "created": now,
        "updated": now,
        "step_started": now,
        "deadline": live.deadline,
        "step_seconds": step_seconds,
        "first_variable": first_variable,
        "synthesis_seed": seams.streams("synthesis").take(KEY_BYTES),
        "public_key": made.public.public_key if made else None,
        "modulus_proof": made.public.modulus_proof if made else None,
        "indicator": made.public.indicator if made else None,
        "secret": keys.seal(made.secret, plan.run, seams.streams("seal")) if made else None,
    }
    return live, row


def recovered(store: Store, record: RunRecord, keys: CuratorKeys, seams: Seams, held: HeldRuns) -> LiveRun | None:
    """Return a stored run, rebuilt. Hold a run that cannot be rebuilt: it must not stop the others."""
    try:
        live = rebuilt(store.reading, record, keys, seams)
    except StoreUnavailable:
        raise
    except PlanError as error:  # of another version
        held.hold(record.id, str(error))
        return None
    except Exception as error:  # a run that cannot be rebuilt must not stop the others
        held.hold(record.id, internal(error, record.id, seams.streams("reference")).reason or "")
        return None
    with store.writing() as db:
        records.change_run(db, live.run, deadline=live.deadline)
    return live


def rebuilt(reading: Callable[[], Any], record: RunRecord, keys: CuratorKeys, seams: Seams) -> LiveRun:
    """Rebuild a run as it was when its last answer was stored."""
    with reading() as db:
        terms = stored_terms(record.plan, schema_text(db, record.schema_hash), seams.smallest_key)
        at, opening = _replayed(db, record, terms, keys, seams)
    step_ms = 1000 * record.step_seconds
    # No party could answer while the curator was down: grant the missing parties some time after its return.
    soonest = seams.clock() + min(step_ms, GRACE_MS)
    deadline = None if record.deadline is None else max(record.deadline, soonest)
    return LiveRun(record.id, at, opening, record.step_started, deadline, step_ms)


def _replayed(db: Connection, record: RunRecord, terms: Terms, keys: CuratorKeys, seams: Seams) -> tuple[Standing, Any]:
    found = records.find_recovery(db, record.id)
    secret = None if found.secret is None else keys.open(found.secret, record.id)
    opening = seams.crypto.opening(terms.plan, secret)
    public = None
    if found.public_key is not None and found.indicator is not None:
        public = RunKeys(found.public_key, found.modulus_proof or b"", found.indicator)
    numbers = {member.name: number for number, member in enumerate(terms.plan.members)}

    def answers(step: str | None = None) -> Answers:
        return ((numbers[party], body) for party, body in records.bodies_of_run(db, record.id, step))

    start, known = begin(terms, found.first_variable, public), _known(found.knowledge)
    if known is None:
        return replayed(start, answers(), record.step, opening), opening
    joining = terms.steps[0].name
    return resumed(start, answers(joining), record.step, known, answers(record.step), opening), opening


def _known(kept: bytes | None) -> Knowledge | None:
    """Return what was kept with the present step: nothing while parties join, and in stores of earlier versions."""
    try:
        return None if kept is None else knowledge_from_bytes(kept)
    except ValueError:
        return None  # another version's format: the answers, which are kept too, say the same
