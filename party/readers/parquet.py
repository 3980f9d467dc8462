"""Rows of a Parquet file, as text.

It does not know what the columns mean.
"""

from collections.abc import Generator, Sequence
from pathlib import Path

import duckdb

from protocol.errors import DataError
from protocol.tables.coding import BATCH


def parquet_rows(path: Path, wanted: set[str]) -> Generator[Sequence[str], None, None]:
    """The names of the wanted columns, then every row."""
    if any(character in str(path) for character in "*?["):
        raise DataError(f"{path}: a Parquet file's path must not contain *, ? or [; rename it")
    if not path.is_file():
        raise DataError(f"{path}: cannot be read: there is no such file")
    try:
        with duckdb.connect() as connection:
            connection.execute("SET autoinstall_known_extensions = false")  # nothing is ever downloaded
            described = connection.execute("DESCRIBE SELECT * FROM read_parquet(?)", [str(path)]).fetchall()
            named = [name for name, *_ in described if name in wanted]  # all else stays in the file
            yield named
            texts = ", ".join(f"coalesce(CAST({_identifier(name)} AS VARCHAR), '')" for name in named)
            connection.execute(f"SELECT {texts} FROM read_parquet(?)", [str(path)])  # noqa: S608 - quoted identifiers
            while batch := connection.fetchmany(BATCH):
                yield from batch
    except duckdb.Error as error:
        raise DataError(f"{path}: not a readable Parquet file ({type(error).__name__})") from None


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
