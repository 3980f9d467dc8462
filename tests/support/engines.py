"""Data sets in engines for tests, and the same rows coded and counted here.

It does not know any expected value.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

from party.engines.rows import EngineRows, Frozen
from party.engines.table import EngineTable
from party.home.settings import Dataset
from party.readers.typed import speller_of, typed_batches
from protocol.tables.coding import Coder, gather
from protocol.tables.encoding import Encoding
from protocol.tables.schema import Schema


def in_engine(url: str, query: str = "SELECT * FROM t", **more: Any) -> Dataset:
    given = {"source": url, "query": query, "engine": True, "schema": "schema.json", "epsilon_total": "1"}
    return Dataset.model_validate(given | more)


def duckdb_with(folder: Path, *statements: str) -> str:
    """The URL of a new database after these statements."""
    url = f"duckdb:///{folder}/rows-{len(list(folder.glob('*.duckdb')))}.duckdb"
    change(url, *statements)
    return url


def change(url: str, *statements: str) -> None:
    with duckdb.connect(url.removeprefix("duckdb:///")) as connection:
        for statement in statements:
            connection.execute(statement)


def fetched(url: str, query: str = "SELECT * FROM t") -> tuple[list[str], list[tuple[object, ...]]]:
    with duckdb.connect(url.removeprefix("duckdb:///")) as connection:
        found = connection.execute(query)
        return [name for name, *_ in found.description], found.fetchall()


def coder_here(schema: Schema, header: Sequence[str], **rules: Any) -> Coder:
    coder = Coder(schema, **rules)
    coder.columns(header)
    return coder


def batches_here(schema: Schema, header: Sequence[str], rows: Sequence[Sequence[object]]) -> Any:
    """Rows as the reader of databases gives them to the coder."""
    attributes = {attribute.name: attribute for attribute in schema.attributes}
    return typed_batches(rows, [speller_of(attributes.get(name)) for name in header])


def coded_here(schema: Schema, header: Sequence[str], rows: Sequence[Sequence[object]], **rules: Any) -> list[Any]:
    return gather(schema, coder_here(schema, header, **rules).batches(batches_here(schema, header, rows)))


def rows_there(dataset: Dataset, schema: Schema, rows: int, encoding: Encoding, name: str) -> EngineRows:
    """Rows that an engine has frozen."""
    assert EngineTable(dataset, schema, rows).frozen(name) == rows
    return EngineRows.of(Frozen(dataset, schema, name, rows), encoding)
