"""Tables on disk: CSV, plain or gzipped.

It does not know schemas: it reads and writes text.
"""

import csv
import gzip
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO, TextIOWrapper
from itertools import chain
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
        for columns in chain([of_one_row(header)], batches):
            output.writelines(csv_pieces(columns))


def of_one_row(texts: Sequence[str]) -> list[TextColumn]:
    return [TextColumn.of_rows([text]) for text in texts]


def csv_pieces(columns: Sequence[TextColumn]) -> Iterator[bytes]:
    """Yield the rows of these columns as CSV. Every text of a column is quoted once, however many rows have it."""
    import pyarrow.compute as pc  # only whoever writes a table waits for it

    is_alone = len(columns) == 1
    joined = _with_neighbours([TextColumn(_quoted(column.texts, is_alone), column.places) for column in columns])
    longest = sum(1 + max(map(len, column.texts), default=0) for column in joined)
    step = max(1, PIECE // longest)
    # Arrow joins the columns of a row. A line break before each row, not after it, joins the rows in its memory.
    joined[0] = TextColumn([f"\n{text}" for text in joined[0].texts], joined[0].places)
    texts, comma = [_arrow_texts(column.texts) for column in joined], _arrow_texts([","])[0]
    for start in range(0, len(columns[0]), step):
        places = [_arrow_numbers(column.places[start : start + step]) for column in joined]
        cells = [own.take(here) for own, here in zip(texts, places, strict=True)]
        rows = pc.binary_join_element_wise(*cells, comma)
        _, ends, text = rows.buffers()
        yield b"".join((memoryview(text)[1 : np.frombuffer(ends, np.int32)[len(rows)]], b"\n"))


def _arrow_texts(texts: Sequence[str]) -> "pa.Array":
    """Return the texts as Arrow holds them. `pyarrow.array` would import pandas where it is installed."""
    import pyarrow as pa

    data = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, data)], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(data), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(data))])


def _arrow_numbers(numbers: NDArray[Any]) -> "pa.Array":
    import pyarrow as pa

    held = pa.py_buffer(np.ascontiguousarray(numbers))
    return pa.Array.from_buffers(pa.from_numpy_dtype(numbers.dtype), len(numbers), [None, held])


def _with_neighbours(columns: Sequence[TextColumn]) -> list[TextColumn]:
    """Join columns of few texts with their neighbours: a text for every combination, so that rows have fewer parts."""
    found = [columns[0]]
    for column in columns[1:]:
        before, count = found[-1], len(column.texts)
        if len(before.texts) * count <= MOST_COMBINED:
            texts = [f"{one},{other}" for one in before.texts for other in column.texts]
            found[-1] = TextColumn(texts, before.places.astype(np.intp) * count + column.places)
        else:
            found.append(column)
    return found


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
