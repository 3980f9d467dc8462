"""Migrations of databases of earlier versions to this version: numbered, forward only, one transaction each.

It does not know rows. A published migration is never changed; a change of the tables is a new migration.
"""

import json
from collections.abc import Callable, Sequence

from sqlalchemy import Connection, Engine, inspect, text

from curator.errors import SettingsError
from curator.store.tables import WRITING

Migration = Callable[[Connection], None]


def _execute(*statements: str) -> Migration:
    def run(db: Connection) -> None:
        binary = "BYTEA" if db.dialect.name == "postgresql" else "BLOB"
        for statement in statements:
            db.execute(text(statement.replace("BYTES", binary)))

    return run


def _describe_schemas(db: Connection) -> None:
    _execute(
        "ALTER TABLE schemas ADD COLUMN attributes BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE schemas ADD COLUMN published BIGINT NOT NULL DEFAULT 1",
    )(db)
    for schema in db.execute(text("SELECT hash, text FROM schemas")).all():
        values = {"hash": schema.hash, "attributes": len(json.loads(schema.text).get("attributes", ()))}
        db.execute(text("UPDATE schemas SET attributes = :attributes WHERE hash = :hash"), values)


MIGRATIONS: tuple[Migration, ...] = (
    # 1: parties, schemas, runs and what is said in them
    _execute(
        "CREATE TABLE operator_keys (hash TEXT PRIMARY KEY, label TEXT NOT NULL, created BIGINT NOT NULL)",
        "CREATE TABLE codes (hash TEXT PRIMARY KEY, name TEXT NOT NULL, expires BIGINT NOT NULL, used BIGINT)",
        "CREATE TABLE parties (name TEXT PRIMARY KEY, signing_key BYTES NOT NULL, exchange_key BYTES NOT NULL,"
        " enrolled BIGINT NOT NULL, revoked BIGINT)",
        "CREATE TABLE schemas (hash TEXT PRIMARY KEY, title TEXT NOT NULL, text TEXT NOT NULL,"
        " created BIGINT NOT NULL)",
        "CREATE TABLE offers (party TEXT NOT NULL REFERENCES parties (name), dataset TEXT NOT NULL,"
        " schema_hash TEXT NOT NULL REFERENCES schemas (hash), rows BIGINT NOT NULL, at BIGINT NOT NULL,"
        " PRIMARY KEY (party, dataset))",
        "CREATE TABLE runs (id TEXT PRIMARY KEY, plan TEXT NOT NULL, plan_hash TEXT NOT NULL,"
        " schema_hash TEXT NOT NULL REFERENCES schemas (hash), idempotency_key TEXT UNIQUE,"
        " request_digest TEXT NOT NULL, state TEXT NOT NULL, step TEXT NOT NULL, culprit TEXT, reason TEXT,"
        " created BIGINT NOT NULL, updated BIGINT NOT NULL, step_started BIGINT NOT NULL, deadline BIGINT,"
        " step_seconds BIGINT NOT NULL, first_variable BIGINT NOT NULL, synthesis_seed BYTES NOT NULL,"
        " public_key BYTES, indicator BYTES, secret BYTES, outputs TEXT)",
        "CREATE TABLE members (party TEXT NOT NULL REFERENCES parties (name),"
        " run TEXT NOT NULL REFERENCES runs (id), PRIMARY KEY (party, run))",
        "CREATE TABLE replies (run TEXT NOT NULL REFERENCES runs (id), step TEXT NOT NULL, party TEXT NOT NULL,"
        " number BIGINT NOT NULL, digest TEXT NOT NULL, size BIGINT NOT NULL, body BYTES, charge TEXT NOT NULL,"
        " receipt BYTES NOT NULL, at BIGINT NOT NULL, PRIMARY KEY (run, step, party))",
        "CREATE TABLE events (run TEXT NOT NULL REFERENCES runs (id), seq BIGINT NOT NULL, at BIGINT NOT NULL,"
        " kind TEXT NOT NULL, data TEXT NOT NULL, PRIMARY KEY (run, seq))",
        "CREATE TABLE nonces (sender TEXT NOT NULL, nonce TEXT NOT NULL, at BIGINT NOT NULL,"
        " PRIMARY KEY (sender, nonce))",
    ),
    # 2: when a party was last seen, and indexes for frequent queries
    _execute(
        "ALTER TABLE parties ADD COLUMN last_seen BIGINT",
        "CREATE INDEX runs_by_state ON runs (state)",
        "CREATE INDEX members_by_run ON members (run)",
        "CREATE INDEX replies_by_party ON replies (party, at)",
        "CREATE INDEX nonces_by_age ON nonces (at)",
    ),
    # 3: operators in browsers, and which software a party runs
    _execute(
        "CREATE TABLE sessions (hash TEXT PRIMARY KEY, operator_key TEXT NOT NULL, expires BIGINT NOT NULL)",
        "ALTER TABLE parties ADD COLUMN software TEXT",
    ),
    # 4: zcdp: what an answer costs in delta, beside its epsilon
    _execute("ALTER TABLE replies ADD COLUMN delta TEXT NOT NULL DEFAULT '0'"),
    # 5: the proof of a run's Paillier modulus
    _execute("ALTER TABLE runs ADD COLUMN modulus_proof BYTES"),
    # 6: how many attributes a schema has, and whether it stays when nobody offers rows of it
    _describe_schemas,
    # 7: answers that parties promise before they send them
    _execute(
        "CREATE TABLE claims (run TEXT NOT NULL REFERENCES runs (id), step TEXT NOT NULL, party TEXT NOT NULL,"
        " digest TEXT NOT NULL, charge TEXT NOT NULL, delta TEXT NOT NULL, receipt BYTES NOT NULL,"
        " at BIGINT NOT NULL, PRIMARY KEY (run, step, party))",
        "CREATE INDEX claims_by_party ON claims (party)",
    ),
    # 8: how many rows of a person an offer holds at most
    _execute("ALTER TABLE offers ADD COLUMN rows_per_person BIGINT"),
    # 9: what a run's curator knows at its present step, so that another version asks the same
    _execute("ALTER TABLE runs ADD COLUMN knowledge BYTES"),
    # 10: which runs are in the totals, so that a restart need not read all of them again
    _execute(
        "ALTER TABLE runs ADD COLUMN counted BIGINT NOT NULL DEFAULT 0",
        "CREATE INDEX runs_by_counted ON runs (counted, state)",
    ),
)


def migrate(engine: Engine, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Bring the database up to date. A database of a later version is refused and not changed."""
    done, last = 0, len(migrations)
    while done < last:
        with engine.connect().execution_options(**{WRITING: True}) as db, db.begin():
            found = _version(db)
            if found > last:
                raise SettingsError(
                    f"the database is of version {found}, this curator knows {last}: "
                    "start a newer curator, or give it another database"
                )
            done = min(found + 1, last)
            if found < last:
                migrations[found](db)
                db.execute(text("UPDATE meta SET value = :number WHERE name = 'version'"), {"number": str(done)})


def _version(db: Connection) -> int:
    if db.dialect.name == "postgresql":
        # Two curators that start at once on a new database would both create the first table.
        db.execute(text("SELECT pg_advisory_xact_lock(5824901)"))
    if not inspect(db).has_table("meta"):
        db.execute(text("CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)"))
        db.execute(text("INSERT INTO meta (name, value) VALUES ('version', '0')"))
    return int(db.execute(text("SELECT value FROM meta WHERE name = 'version'")).scalar_one())
