"""Tables on disk: CSV, plain or gzipped.

It does not know schemas: it reads and writes text.
"""

import csv
import gzip
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO, TextIOWrapper
from itertools import chain, pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curator.files import PUBLIC, whole_file
from protocol.errors import DataError
from protocol.services.delimited import Decimal, Given, dialect_of
from protocol.services.delimited_rows import CHUNK, UNREADABLE, DelimitedRows
from protocol.tables.batches import Batch, Row
from protocol.tables.spreadsheets import as_text
from protocol.tables.text_column import TextColumn

if TYPE_CHECKING:
    import pyarrow as pa

PIECE = 1 << 23  # characters of rows that are made at once, at most
MOST_COMBINED = 1 << 12  # combinations of the texts of neighbouring columns
_SPECIAL = (",", '"', "\n", "\r")


@dataclass(frozen=True)
class OpenedTable:
    header: Row
    batches: Iterator[Batch]
    decimal: Decimal

    def rows(self) -> Iterator[Row]:
        """Yield the rows one by one, with those columns that are read."""
        return chain.from_iterable(batch.in_rows() for batch in self.batches)


@contextmanager
def opened_table(
    path: Path, columns: Collection[str] = (), numbers: Collection[str] = (), wanted: Collection[str] | None = None
) -> Iterator[OpenedTable]:
    """Open a file of delimited text, to read the `wanted` columns (None: all).

    How it is written is found out by the columns that it should have.
    """
    try:
        dialect = dialect_of(str(path), _chunks(path), Given(), columns, numbers)
        rows = DelimitedRows(str(path), _chunks(path), dialect, wanted)
        if not rows.header:
            raise DataError(f"{path}: the file is empty; a header row with the columns' names is expected")
        yield OpenedTable(rows.header, rows.batches(), dialect.decimal)
    except UNREADABLE as error:
        raise DataError(f"{path}: not a readable CSV file ({type(error).__name__})") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None


def _chunks(path: Path) -> Iterator[bytes]:
    opening: Any = gzip.open if path.suffix == ".gz" else open
    with opening(path, "rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk


def write_for_spreadsheets(source: Path, target: Path) -> None:
    """Copy a published table so that a spreadsheet computes nothing: cells like formulas get an apostrophe."""
    with source.open(encoding="utf-8", newline="") as table, whole_file(target, PUBLIC) as output:
        file = TextIOWrapper(output, encoding="utf-8", newline="")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([as_text(cell) for cell in row] for row in csv.reader(table))
        file.detach()  # also writes out the buffered text


def write_table(path: Path, header: Sequence[str], batches: Iterable[Sequence[TextColumn]]) -> None:
    """Write a table from batches of columns. The file appears whole or not at all."""
    with whole_file(path, PUBLIC) as output:
        output.writelines(csv_pieces(chain([of_one_row(header)], batches)))


def of_one_row(texts: Sequence[str]) -> list[TextColumn]:
    return [TextColumn.of_rows([text]) for text in texts]


def csv_pieces(batches: Iterable[Sequence[TextColumn]]) -> Iterator[bytes]:
    """Yield batches of rows as CSV. Texts that batches share are quoted once, however many rows have them."""
    import pyarrow as pa  # only whoever writes a table waits for it

    parts: dict[int, _Part] = {}
    for columns in batches:
        former, groups = parts, _groups(columns)
        parts = {group.start: _part(columns, group, former.get(group.start)) for group in groups}
        if parts != former:
            texts = pa.concat_arrays([part.texts for part in parts.values()])
            firsts = np.cumsum([0, *(len(part.texts) for part in parts.values())])
            step = max(1, PIECE // max(1, sum(part.longest for part in parts.values())))
        for start in range(0, len(columns[0]), step):
            yield _in_order(texts, _places(columns, groups, firsts, slice(start, start + step)))


@dataclass(frozen=True, eq=False)
class _Part:
    """A part of every row: a column, or neighbours of few texts, with a text for every combination of theirs."""

    columns: Sequence[Sequence[str]]
    texts: "pa.StringArray"  # with the sign behind the part
    longest: int  # bytes


def _part(columns: Sequence[TextColumn], group: slice, former: _Part | None) -> _Part:
    own = [column.texts for column in columns[group]]
    if former is not None and former.columns == own:
        return former
    quoted = [_quoted(texts, len(columns) == 1) for texts in own]
    combined = quoted[0] if len(quoted) == 1 else list(map(",".join, product(*quoted)))
    lengths, data = _joined(combined, "\n" if group.stop == len(columns) else ",")
    return _Part(own, _arrow_texts(lengths, data), int(lengths.max(initial=0)))


def _joined(texts: Sequence[str], end: str) -> tuple[NDArray[np.int32], bytes]:
    """Return the bytes of all texts, with the same sign behind each, and how many of them belong to each."""
    joined = end.join([*texts, ""])
    sizes = map(len, texts) if joined.isascii() else (len(text.encode()) for text in texts)
    return np.fromiter(sizes, np.int32, len(texts)) + np.int32(len(end)), joined.encode()


def _arrow_texts(lengths: NDArray[np.int32], data: bytes) -> "pa.StringArray":
    """Return texts as Arrow holds them. `pyarrow.array` would import pandas where that is installed."""
    import pyarrow as pa

    ends = np.concatenate([np.zeros(1, np.int32), np.cumsum(lengths, dtype=np.int32)])
    return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(ends), pa.py_buffer(data))


def _groups(columns: Sequence[TextColumn]) -> list[slice]:
    """Divide the columns into groups of neighbours with few combinations, so that rows have few parts."""
    firsts, combinations = [0], len(columns[0].texts)
    for place, column in enumerate(columns[1:], start=1):
        combinations *= len(column.texts)
        if combinations > MOST_COMBINED:
            firsts.append(place)
            combinations = len(column.texts)
    return [slice(*ends) for ends in pairwise([*firsts, len(columns)])]


def _places(
    columns: Sequence[TextColumn], groups: Sequence[slice], firsts: NDArray[np.intp], rows: slice
) -> NDArray[np.int64]:
    """Return the places of these rows' parts, row after row, in one list of the texts of all parts."""
    found = np.empty((len(columns[0].places[rows]), len(groups)), dtype=np.int64)
    for index, group in enumerate(groups):
        place: Any = 0
        for column in columns[group]:
            place = place * len(column.texts) + column.places[rows].astype(np.int64)
        np.add(place, firsts[index], out=found[:, index])
    return found.ravel()


def _in_order(texts: "pa.StringArray", places: NDArray[np.int64]) -> bytes:
    """Return the texts at these places, one after the other, as they lie in the memory of an Arrow array."""
    import pyarrow as pa

    found = texts.take(pa.Array.from_buffers(pa.int64(), len(places), [None, pa.py_buffer(places)]))
    _, ends, text = found.buffers()
    return bytes(memoryview(text)[: np.frombuffer(ends, np.int32)[len(found)]])


def _quoted(texts: Sequence[str], is_alone: bool) -> Sequence[str]:
    """Quote the texts that need it in a row of CSV, as `csv` does."""
    whole = "".join(texts)
    if not is_alone and not any(special in whole for special in _SPECIAL):
        return texts
    found = []
    for text in texts:
        line = StringIO()
        csv.writer(line, lineterminator="\n").writerow([text] if is_alone else [text, "-"])
        found.append(line.getvalue().removesuffix("\n" if is_alone else ",-\n"))
    return found
