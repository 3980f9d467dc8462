"""The curator's tables, and engines for SQLite and PostgreSQL that never lose a confirmed write.

It does not know what the rows mean, or how older databases become this one (`curator.store.migrations`).
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Engine,
    ForeignKey,
    Index,
    LargeBinary,
    MetaData,
    Table,
    Text,
    create_engine,
    event,
)
from sqlalchemy.engine import make_url

BUSY_SECONDS = 30
_CACHE = "cache_size=-500"  # KiB of each connection: what is stored is seldom read again
_KEPT, _MORE = 10, 5  # connections to a file: opening one takes as long as ten requests
WRITING = "subn_writing"  # execution option of connections that will write

metadata = MetaData()


def _needed(name: str, kind: Any, usual: str | None = None) -> Column[Any]:
    return Column(name, kind, nullable=False, server_default=usual)


meta = Table("meta", metadata, Column("name", Text, primary_key=True), _needed("value", Text))

operator_keys = Table(
    "operator_keys",
    metadata,
    Column("hash", Text, primary_key=True),  # SHA-256 of the key: the key itself is not kept
    _needed("label", Text),
    _needed("created", BigInteger),
)

sessions = Table(
    "sessions",
    metadata,
    Column("hash", Text, primary_key=True),  # SHA-256 of the token in an operator's browser
    _needed("operator_key", Text),
    _needed("expires", BigInteger),
)

codes = Table(
    "codes",
    metadata,
    Column("hash", Text, primary_key=True),
    _needed("name", Text),
    _needed("expires", BigInteger),
    Column("used", BigInteger),
)

parties = Table(
    "parties",
    metadata,
    Column("name", Text, primary_key=True),
    _needed("signing_key", LargeBinary),
    _needed("exchange_key", LargeBinary),
    _needed("enrolled", BigInteger),
    Column("revoked", BigInteger),
    Column("last_seen", BigInteger),
    Column("software", Text),  # the version that the party claimed to run when it was last seen
)

schemas = Table(
    "schemas",
    metadata,
    Column("hash", Text, primary_key=True),
    _needed("title", Text),
    _needed("text", Text),
    _needed("created", BigInteger),
    _needed("attributes", BigInteger),  # how many
    _needed("published", BigInteger),  # 1 if an operator added it; 0 if it came with an offer, and goes with the last
)

offers = Table(
    "offers",
    metadata,
    Column("party", ForeignKey("parties.name"), primary_key=True),
    Column("dataset", Text, primary_key=True),
    Column("schema_hash", ForeignKey("schemas.hash"), nullable=False),
    _needed("rows", BigInteger),
    _needed("at", BigInteger),
    Column("rows_per_person", BigInteger),  # at most, by the party's person keys; null if it has none
)

runs = Table(
    "runs",
    metadata,
    Column("id", Text, primary_key=True),  # begins with the time of creation, so that runs sort by age
    _needed("plan", Text),
    _needed("plan_hash", Text),
    Column("schema_hash", ForeignKey("schemas.hash"), nullable=False),
    Column("idempotency_key", Text, unique=True),
    _needed("request_digest", Text),
    _needed("state", Text),
    _needed("step", Text),  # the step that waits for answers; empty when the parties have answered all
    Column("culprit", Text),
    Column("reason", Text),
    _needed("created", BigInteger),
    _needed("updated", BigInteger),
    _needed("step_started", BigInteger),
    Column("deadline", BigInteger),
    _needed("step_seconds", BigInteger),
    # Recovery: from these columns and the stored answers, a run is rebuilt exactly as it was.
    _needed("first_variable", BigInteger),
    _needed("synthesis_seed", LargeBinary),
    Column("public_key", LargeBinary),
    Column("modulus_proof", LargeBinary),  # NULL also in runs that began before there were any
    Column("indicator", LargeBinary),
    Column("secret", LargeBinary),  # sealed under the master key; NULL when the run is over
    Column("knowledge", LargeBinary),  # at the beginning of the present step; NULL while parties join, and at the end
    Column("outputs", Text),  # SHA-256 of every published file, when the run has finished
    _needed("counted", BigInteger, "0"),  # 1 if it is over and in the totals (`curator.operations.run_totals`)
    Index("runs_by_state", "state"),
    Index("runs_by_counted", "counted", "state"),
)

members = Table(
    "members",
    metadata,
    Column("party", ForeignKey("parties.name"), primary_key=True),
    Column("run", ForeignKey("runs.id"), primary_key=True),
    Index("members_by_run", "run"),
)

replies = Table(
    "replies",
    metadata,
    Column("run", ForeignKey("runs.id"), primary_key=True),
    Column("step", Text, primary_key=True),
    Column("party", Text, primary_key=True),
    _needed("number", BigInteger),  # in the order of arrival
    _needed("digest", Text),
    _needed("size", BigInteger),
    Column("body", LargeBinary),  # NULL when the run is over
    _needed("charge", Text),  # epsilon
    _needed("receipt", LargeBinary),
    _needed("at", BigInteger),
    _needed("delta", Text),
    Index("replies_by_party", "party", "at"),
)

claims = Table(
    "claims",  # answers that were promised and have not come
    metadata,
    Column("run", ForeignKey("runs.id"), primary_key=True),
    Column("step", Text, primary_key=True),
    Column("party", Text, primary_key=True),
    _needed("digest", Text),
    _needed("charge", Text),  # epsilon
    _needed("delta", Text),
    _needed("receipt", LargeBinary),
    _needed("at", BigInteger),
    Index("claims_by_party", "party"),
)

events = Table(
    "events",
    metadata,
    Column("run", ForeignKey("runs.id"), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    _needed("at", BigInteger),
    _needed("kind", Text),
    _needed("data", Text),
)

nonces = Table(
    "nonces",
    metadata,
    Column("sender", Text, primary_key=True),
    Column("nonce", Text, primary_key=True),
    _needed("at", BigInteger),
    Index("nonces_by_age", "at"),
)


def make_engine(url: str) -> Engine:
    """Return an engine for `sqlite:///path` or `postgresql://...`."""
    parsed = make_url(url)
    if parsed.drivername == "postgresql":
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() != "sqlite":
        return create_engine(parsed, pool_pre_ping=True, hide_parameters=True)
    engine = create_engine(
        parsed, connect_args={"timeout": BUSY_SECONDS}, hide_parameters=True, pool_size=_KEPT, max_overflow=_MORE
    )
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # transactions begin where `_begin_sqlite` says, not where the driver guesses
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "secure_delete=ON", _CACHE):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that will write takes the lock at once: a transaction that began by reading cannot wait later.
    writing = connection.get_execution_options().get(WRITING)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")
