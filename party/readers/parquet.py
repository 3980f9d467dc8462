"""Rows of a Parquet file, as text.

It does not know what the columns mean.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb

from party.readers.typed import Speller
from protocol.errors import DataError
from protocol.tables.batches import BATCH

_TYPED = ("DATE", "TIMESTAMP", "BOOLEAN")  # a schema says how these are written


def parquet_rows(
    path: Path, wanted: set[str] | None, spelling: Callable[[str], Speller]
) -> Generator[Sequence[str], None, None]:
    """The names of the wanted columns (None: of all), then every row. All other columns stay in the file."""
    if any(character in str(path) for character in "*?["):
        raise DataError(f"{path}: a Parquet file's path must not contain *, ? or [; rename it")
    if not path.is_file():
        raise DataError(f"{path}: cannot be read: there is no such file")
    try:
        with duckdb.connect() as connection:
            connection.execute("SET autoinstall_known_extensions = false")  # nothing is ever downloaded
            connection.execute("SET enable_progress_bar = false")  # commands print JSON
            described = connection.execute("DESCRIBE SELECT * FROM read_parquet(?)", [str(path)]).fetchall()
            types = {name: str(kind) for name, kind, *_ in described if wanted is None or name in wanted}
            yield list(types)
            spellers = {name: spelling(name) for name in types}
            texts = ", ".join(
                _identifier(name) if _is_typed(kind) else f"coalesce(CAST({_identifier(name)} AS VARCHAR), ?)"
                for name, kind in types.items()
            )
            nothing = [spellers[name](None) for name, kind in types.items() if not _is_typed(kind)]
            connection.execute(f"SELECT {texts} FROM read_parquet(?)", [*nothing, str(path)])  # noqa: S608 - quoted
            typed = [(place, spellers[name]) for place, (name, kind) in enumerate(types.items()) if _is_typed(kind)]
            while batch := connection.fetchmany(BATCH):
                yield from _spelled(batch, typed) if typed else batch
    except duckdb.Error as error:
        raise DataError(f"{path}: not a readable Parquet file ({type(error).__name__})") from None


def _is_typed(kind: str) -> bool:
    return kind.startswith(_TYPED)


def _spelled(rows: Sequence[Sequence[object]], typed: Sequence[tuple[int, Speller]]) -> Iterator[Sequence[str]]:
    for row in rows:
        texts: list[Any] = list(row)  # texts but for the typed columns
        for place, spell in typed:
            texts[place] = spell(row[place])
        yield texts


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
