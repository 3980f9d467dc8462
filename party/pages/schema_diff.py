"""The requested schema, and the data set of this party that it is compared with (`protocol.services.schema_words`).

It does not know rows: both sides are public schemas.
"""

from collections.abc import Mapping

from party.books.ledger import Request
from party.errors import SettingsError
from party.home.home import OpenHome
from party.home.settings import schema_of
from party.views import schema_in
from protocol.tables.schema import Schema


def asked_schema(request: Request) -> Schema | None:
    return schema_in(request.schema_text)


def held_for(opened: OpenHome, dataset: str | None, asked: Schema) -> tuple[str, Schema] | None:
    """The data set of the request, or else the data set that shares most attribute names."""
    schemas = _readable_schemas(opened)
    if dataset is not None and dataset in schemas:
        return dataset, schemas[dataset]
    common = {name: len({*schema.names} & {*asked.names}) for name, schema in schemas.items()}
    best = max(common, key=lambda name: common[name], default=None)
    return (best, schemas[best]) if best is not None and common[best] else None


def _readable_schemas(opened: OpenHome) -> Mapping[str, Schema]:
    found = {}
    for name, dataset in opened.settings.datasets.items():
        try:
            found[name] = schema_of(opened.home, name, dataset)
        except SettingsError:
            continue
    return found
