"""Parties and schemas as operators see them: the interface's JSON, built from the registry.

It does not know runs or HTTP.
"""

from collections.abc import Sequence

from crypto.randomness import Stream
from crypto.signing import fingerprint
from curator import interface
from curator.accounts.registry import OfferRecord, PartyRecord, Registry
from curator.clock import moment, moment_or_none
from protocol.messages.pins import joined, pin_of
from protocol.tables.schema import Schema
from protocol.tables.spreadsheets import formulas_in

_MOST_NAMED = 20


def new_code(registry: Registry, introduction: tuple[bytes, str], name: str) -> interface.Code:
    """Make a one-time code, with the pin of the curator's key and CA that the party will be introduced to."""
    secret, expires = registry.new_code(name, Stream.system())
    return interface.Code(
        name=name,
        code=joined(secret, pin_of(*introduction)),
        expires=moment(expires),
        alike=registry.names_like(name),
    )


def party_page(registry: Registry, limit: int, after: str) -> interface.Parties:
    """List parties by name, with their offers. `after` is the last name of the previous page."""
    found, following = interface.split_page(registry.parties(limit + 1, after), limit)
    offers = registry.offers()
    return interface.Parties(
        items=[_party(record, offers) for record in found], next=found[-1].name if following else None
    )


def added_schema(schema: Schema) -> interface.AddedSchema:
    return interface.AddedSchema(
        hash=schema.hash,
        title=schema.title,
        attributes=len(schema.attributes),
        like_formulas=formulas_in(schema)[:_MOST_NAMED],
    )


def schema_page(registry: Registry, limit: int, after: str) -> interface.Schemas:
    """List schemas by hash. `after` is the last hash of the previous page."""
    found, following = interface.split_page(registry.schemas(limit + 1, after), limit)
    items = [interface.SchemaEntry(hash=one.hash, title=one.title, attributes=one.attributes) for one in found]
    return interface.Schemas(items=items, next=found[-1].hash if following else None)


def _party(record: PartyRecord, offers: Sequence[OfferRecord]) -> interface.Party:
    return interface.Party(
        name=record.name,
        signing_key=record.signing_key.hex(),
        exchange_key=record.exchange_key.hex(),
        fingerprint=fingerprint(record.signing_key + record.exchange_key),
        revoked=record.revoked is not None,
        enrolled=moment(record.enrolled),
        last_seen=moment_or_none(record.last_seen),
        software=record.software,
        offers=[
            interface.Offer(
                dataset=offer.dataset,
                schema_hash=offer.schema_hash,
                rows=offer.rows,
                rows_per_person=offer.rows_per_person,
            )
            for offer in offers
            if offer.party == record.name
        ],
    )
