"""Registry of the participants and their offers: operators' keys, one-time codes, parties, offers, and schemas.

It does not know runs or HTTP. Callers have been authenticated before (`curator.accounts.authentication`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from sqlalchemy import Connection, delete, insert, select, update

from crypto.randomness import Stream
from crypto.sealing import check_public
from curator.accounts.offered import drop_offers, keep_offer, keep_schema, schema_text
from curator.clock import Clock
from curator.errors import Conflict, Forbidden, NotFound
from curator.store.run_records import active_runs_with
from curator.store.store import Store
from curator.store.tables import codes, offers, operator_keys, parties, schemas
from protocol.errors import PlanError
from protocol.plan.plan import LONGEST_NAME, Member
from protocol.tables.schema import Schema
from protocol.text import alike

CODE_LIFE_MS = 24 * 3600 * 1000
RESERVED_NAMES = ("curator", "operator", "the parties")  # named as the culprit of an ended run, but not parties
_SECRET_BYTES = 32
_CODE_BYTES = 15
_MOST_NAMED = 10  # offers in a refusal


@dataclass(frozen=True)
class OperatorKey:
    hash: str
    label: str
    created: int


@dataclass(frozen=True)
class PartyRecord:
    name: str
    signing_key: bytes
    exchange_key: bytes
    enrolled: int
    revoked: int | None
    last_seen: int | None
    software: str | None = None  # the version that the party claims to run


@dataclass(frozen=True)
class OfferRecord:
    party: str
    dataset: str
    schema_hash: str
    rows: int
    at: int
    rows_per_person: int | None  # at most, by its person keys; None: not checked


@dataclass(frozen=True)
class SchemaRecord:
    hash: str
    title: str
    attributes: int  # how many


_SCHEMA_COLUMNS = tuple(schemas.c[name] for name in SchemaRecord.__dataclass_fields__)


@dataclass(frozen=True)
class Registry:
    store: Store
    clock: Clock

    def new_operator_key(self, label: str, stream: Stream) -> str:
        """Create a key for an operator. Only its hash is kept, so the key cannot be shown again."""
        key = stream.take(_SECRET_BYTES).hex()
        with self.store.writing() as db:
            db.execute(insert(operator_keys).values(hash=hashed(key), label=label, created=self.clock()))
        return key

    def operator_keys(self) -> list[OperatorKey]:
        with self.store.reading() as db:
            rows = db.execute(select(operator_keys).order_by(operator_keys.c.created, operator_keys.c.hash)).mappings()
            return [OperatorKey(**row) for row in rows]

    def revoke_operator_key(self, label: str) -> None:
        """Revoke all keys with this label."""
        with self.store.writing() as db:
            if not db.execute(delete(operator_keys).where(operator_keys.c.label == label)).rowcount:
                raise NotFound(f"there is no operator's key called {label!r}")

    def new_code(self, name: str, stream: Stream) -> tuple[str, int]:
        """Create a code with which a party of this name may enrol once. Return the code and when it expires."""
        if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable() or name != name.strip():
            raise Forbidden(f"a party's name has 1 to {LONGEST_NAME} printable characters and no space at its ends")
        if name in RESERVED_NAMES:
            raise Forbidden(f"no party can be called {name!r}: the service itself uses this name")
        code, expires = stream.take(_CODE_BYTES).hex(), self.clock() + CODE_LIFE_MS
        with self.store.writing() as db:
            _refuse_known_name(_find_party(db, name))
            db.execute(insert(codes).values(hash=hashed(code), name=name, expires=expires))
        return code, expires

    def names_like(self, name: str) -> list[str]:
        """Names of enrolled parties that a reader could take for this one."""
        return alike(name, [party.name for party in self.parties()])

    def enrol(self, code: str, name: str, signing_key: bytes, exchange_key: bytes) -> PartyRecord:
        """Enrol a party. The caller has proved that it holds the signing key.

        A party that was revoked may enrol anew under its name, with new keys and a new code. What its earlier keys have
        signed stays under the name, so that the data owner of a lost home learns what was spent.

        Retry safety: a party that repeats its request with the same code and keys, because it did not receive the
        answer, gets the same answer again.
        """
        now = self.clock()
        with self.store.writing() as db:
            known = _find_party(db, name)
            if known is not None and _came_with(db, code, known, signing_key, exchange_key):
                return known
            _use_code(db, code, name, now)
            _refuse_known_name(known)
            _refuse_known_key(db, signing_key)
            _refuse_exchange_key(db, exchange_key)
            record = PartyRecord(name, signing_key, exchange_key, now, None, now)
            if known is None:
                db.execute(insert(parties).values(**vars(record)))
            else:
                db.execute(update(parties).where(parties.c.name == name).values(**vars(record)))
                drop_offers(db, name)
        return record

    def rotate(self, name: str, signing_key: bytes, exchange_key: bytes) -> None:
        """Replace a party's keys. The caller has proved that it holds the old and the new signing key."""
        with self.store.writing() as db:
            if _find_party(db, name) is None:
                raise NotFound(f"there is no party called {name!r}")
            _refuse_known_key(db, signing_key)
            _refuse_exchange_key(db, exchange_key)
            busy = active_runs_with(db, name)
            if busy:
                raise Conflict(f"run {busy[0]} still uses the present keys of {name}: wait for its end, or cancel it")
            changed = update(parties).where(parties.c.name == name)
            db.execute(changed.values(signing_key=signing_key, exchange_key=exchange_key))

    def revoke(self, name: str) -> None:
        """Refuse all further requests of this party. `Orchestrator.revoke` also ends its runs."""
        with self.store.writing() as db:
            if _find_party(db, name) is None:
                raise NotFound(f"there is no party called {name!r}")
            db.execute(
                update(parties)
                .where((parties.c.name == name) & parties.c.revoked.is_(None))
                .values(revoked=self.clock())
            )

    def enrolled(self, name: str) -> int:
        """Return when the present holder of this name enrolled. Changed keys leave that time as it is."""
        with self.store.reading() as db:
            found: int = db.execute(select(parties.c.enrolled).where(parties.c.name == name)).scalar_one()
            return found

    def parties(self, limit: int = -1, after: str = "") -> list[PartyRecord]:
        """List parties by name. `after` is the last name of the previous page."""
        query = select(parties).where(parties.c.name > after).order_by(parties.c.name)
        with self.store.reading() as db:
            return [PartyRecord(**row) for row in db.execute(query.limit(limit) if limit >= 0 else query).mappings()]

    def offer(self, party: str, dataset: str, schema: Schema, rows: int, rows_per_person: int | None = None) -> None:
        """Store a party's offer. Beyond the bounds of `curator.accounts.offered`, its oldest offers are dropped."""
        now = self.clock()
        with self.store.writing() as db:
            keep_offer(db, party, dataset, schema, (rows, rows_per_person), now)

    def offers(self) -> list[OfferRecord]:
        with self.store.reading() as db:
            return [
                OfferRecord(**row)
                for row in db.execute(select(offers).order_by(offers.c.party, offers.c.at)).mappings()
            ]

    def add_schema(self, schema: Schema) -> None:
        with self.store.writing() as db:
            keep_schema(db, schema, self.clock(), published=True)

    def schemas(self, limit: int = -1, after: str = "") -> list[SchemaRecord]:
        """List schemas by hash, without their texts. `after` is the last hash of the previous page."""
        query = select(*_SCHEMA_COLUMNS).where(schemas.c.hash > after).order_by(schemas.c.hash)
        with self.store.reading() as db:
            return [SchemaRecord(**row) for row in db.execute(query.limit(limit) if limit >= 0 else query).mappings()]

    def schema_text(self, schema_hash: str) -> str:
        with self.store.reading() as db:
            return schema_text(db, schema_hash)

    def members(self, schema_hash: str, names: Sequence[str] | None) -> list[Member]:
        """Return the parties that offer rows of this schema, in the order of `names`, each with its newest offer."""
        newest = {offer.party: offer for offer in self.offers() if offer.schema_hash == schema_hash}
        known = {record.name: record for record in self.parties()}
        wanted = (
            names if names is not None else [name for name in known if known[name].revoked is None and name in newest]
        )
        if not wanted:
            raise PlanError(_nobody_offers(schema_hash, self.offers(), known))
        for name in wanted:
            if name not in known or known[name].revoked is not None:
                raise PlanError(f"no party {name!r} is enrolled here, or its enrolment was revoked: enrol it first")
            if name not in newest:
                raise PlanError(f"{name} offers no rows of the schema {schema_hash[:12]}...: ask it for an offer")
        return [
            Member(
                name=name,
                rows=newest[name].rows,
                rows_per_person=newest[name].rows_per_person,
                signing_key=known[name].signing_key,
                exchange_key=known[name].exchange_key,
            )
            for name in wanted
        ]


def _nobody_offers(schema_hash: str, found: Sequence[OfferRecord], known: Mapping[str, PartyRecord]) -> str:
    """Say that there is nobody to plan with, and which schemas the parties offer instead."""
    others = [f"{one.party} {one.schema_hash[:12]}..." for one in found if known[one.party].revoked is None]
    offered = "; ".join(others[:_MOST_NAMED]) + ("; and more" if len(others) > _MOST_NAMED else "")
    return (
        f"no party offers rows of the schema {schema_hash[:12]}... (offered: {offered or 'nothing yet'}): wait until "
        "`subn parties list` shows offers of it, then plan again"
    )


def hashed(secret: str) -> str:
    """Return the hash that is stored instead of a key or code, whose entropy is too high to guess it from the hash."""
    return sha256(secret.encode()).hexdigest()


def refuse_changed_members(db: Connection, members: Sequence[Member]) -> None:
    """Refuse members whose keys have changed, because a run begins with its parties' present keys."""
    for member in members:
        record = _find_party(db, member.name)
        keys = None if record is None or record.revoked else (record.signing_key, record.exchange_key)
        if keys != (member.signing_key, member.exchange_key):
            raise PlanError(f"{member.name} changed its keys or was revoked while the run was prepared: ask again")


def _find_party(db: Connection, name: str) -> PartyRecord | None:
    """Return the party, locked until the transaction ends. SQLite needs no lock: it has one writer at a time."""
    row = db.execute(select(parties).where(parties.c.name == name).with_for_update()).mappings().one_or_none()
    return None if row is None else PartyRecord(**row)


def _refuse_known_name(known: PartyRecord | None) -> None:
    if known is not None and known.revoked is None:
        raise Conflict(
            f"there is a party called {known.name!r} already: if its keys are lost, revoke it, then make a code for it"
        )


def _refuse_known_key(db: Connection, signing_key: bytes) -> None:
    if db.execute(select(parties.c.name).where(parties.c.signing_key == signing_key)).first():
        raise Conflict("this signing key already belongs to a party: every party must make its own keys")


def _refuse_exchange_key(db: Connection, exchange_key: bytes) -> None:
    """Privacy: masks and seals made with such a key would be no secret, or another party's."""
    check_public(exchange_key)
    if db.execute(select(parties.c.name).where(parties.c.exchange_key == exchange_key)).first():
        raise Conflict("this exchange key belongs to a party already: every party makes keys of its own")


def _came_with(db: Connection, code: str, party: PartyRecord, signing_key: bytes, exchange_key: bytes) -> bool:
    """Whether the party enrolled with this code and these keys, and has not been revoked."""
    used = select(codes.c.used).where((codes.c.hash == hashed(code)) & (codes.c.name == party.name))
    has_same_keys = (party.signing_key, party.exchange_key) == (signing_key, exchange_key)
    return has_same_keys and party.revoked is None and db.execute(used).scalar_one_or_none() == party.enrolled


def _use_code(db: Connection, code: str, name: str, now: int) -> None:
    row = db.execute(select(codes).where(codes.c.hash == hashed(code))).mappings().one_or_none()
    if row is None or row["name"] != name:
        raise Forbidden(f"this enrolment code is not valid for {name!r}: ask the operator for a code")
    if row["used"] is not None:
        raise Forbidden("this enrolment code has been used: ask the operator for another one")
    if row["expires"] <= now:
        raise Forbidden("this enrolment code has expired: ask the operator for another one")
    db.execute(update(codes).where(codes.c.hash == row["hash"]).values(used=now))
