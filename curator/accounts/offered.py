"""Schemas and offers in the store, bounded for each party: every function inside the caller's transaction.

It does not know who may offer. A schema stays while an operator, an offer or a run needs it.
"""

from sqlalchemy import Connection, delete, func, insert, select, update

from curator.errors import NotFound
from curator.store.tables import offers, runs, schemas
from protocol.tables.schema import Schema

MOST_OFFERS = 50  # of one party
LARGEST_OFFERS = 4 << 20  # characters of the schemas of one party's offers


def schema_text(db: Connection, schema_hash: str) -> str:
    found = db.execute(select(schemas.c.text).where(schemas.c.hash == schema_hash)).scalar_one_or_none()
    if found is None:
        raise NotFound(f"there is no schema {schema_hash[:12]}... here: post it first")
    return str(found)


def keep_schema(db: Connection, schema: Schema, now: int, published: bool = False) -> None:
    """Store a schema. One that an operator has published stays even if nobody offers rows of it."""
    known = schemas.c.hash == schema.hash
    if db.execute(select(schemas.c.hash).where(known)).first() is None:
        values = {"hash": schema.hash, "title": schema.title, "text": schema.to_json(), "created": now}
        db.execute(insert(schemas).values(**values, attributes=len(schema.attributes), published=int(published)))
    elif published:
        db.execute(update(schemas).where(known).values(published=1))


def keep_offer(
    db: Connection, party: str, dataset: str, schema: Schema, rows: tuple[int, int | None], now: int
) -> None:
    """Store an offer in the place of the former offer of this data set, and drop what is too much.

    `rows` are the number of rows, and how many of them a person has at most.
    """
    keep_schema(db, schema, now)
    wanted = (offers.c.party == party) & (offers.c.dataset == dataset)
    values = {"schema_hash": schema.hash, "rows": rows[0], "rows_per_person": rows[1], "at": now}
    if not db.execute(update(offers).where(wanted).values(**values)).rowcount:
        db.execute(insert(offers).values(party=party, dataset=dataset, **values))
    _drop_oldest_offers(db, party, dataset)
    _drop_unneeded_schemas(db)


def drop_offers(db: Connection, party: str) -> None:
    """Drop all offers of a party, whose new keys have offered nothing yet."""
    db.execute(delete(offers).where(offers.c.party == party))
    _drop_unneeded_schemas(db)


def _drop_oldest_offers(db: Connection, party: str, newest: str) -> None:
    """Drop the party's oldest offers until the rest keeps the bounds. The newest offer always stays."""
    length = func.length(schemas.c.text).label("length")
    joined = select(offers.c.dataset, offers.c.schema_hash, length).join(schemas)
    found = db.execute(joined.where(offers.c.party == party).order_by(offers.c.at.desc(), offers.c.dataset)).all()
    kept: dict[str, int] = {}
    for place, row in enumerate(sorted(found, key=lambda row: row.dataset != newest)):
        with_it = kept | {row.schema_hash: row.length}
        if place and (place >= MOST_OFFERS or sum(with_it.values()) > LARGEST_OFFERS):
            db.execute(delete(offers).where((offers.c.party == party) & (offers.c.dataset == row.dataset)))
        else:
            kept = with_it


def _drop_unneeded_schemas(db: Connection) -> None:
    needed = select(offers.c.schema_hash).union(select(runs.c.schema_hash))
    db.execute(delete(schemas).where((schemas.c.published == 0) & schemas.c.hash.not_in(needed)))
