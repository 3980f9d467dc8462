"""Rows of delimited text, in batches: plain blocks of lines are split by columns, and all others row by row.

It does not know files, or what the columns mean. A block of lines is plain if there is only one way to split it; then
pyarrow finds the distinct texts of each column. Python's `csv` module splits all other blocks: those with a quote that
neither begins nor ends a field, a line break inside quotes, a lone carriage return, a zero byte, a very long line, or a
row of another width than the header.
"""

import codecs
import csv
import gzip
import zlib
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from protocol.services import delimited
from protocol.services.delimited import Dialect, check_length
from protocol.tables.batches import Batch, Column, Row

CHUNK = 1 << 16  # bytes that are best read and decoded at once, as processors' caches hold them
BLOCK = 1 << 24  # bytes that are worth one call of pyarrow
UNREADABLE = (UnicodeDecodeError, csv.Error, gzip.BadGzipFile, zlib.error, EOFError)  # what is wrong with a file
_NEWLINE, _RETURN = b"\n\r"
_EMPTY_LINES = (b"\n", b"\r\n")
_BYTES_OF_CHARACTER = 4  # at most


class DelimitedRows:
    """The header of a text and its rows. `wanted` names the columns that are needed (None: all).

    The errors of decoders and of `csv` pass through; `line` tells how many lines were read before.
    """

    def __init__(
        self, source: str, chunks: Iterable[bytes], dialect: Dialect, wanted: Collection[str] | None = None
    ) -> None:
        self._dialect, self._wanted = dialect, wanted
        self._lines = _Lines(source, _in_utf_8(chunks, dialect.codec))

    @cached_property
    def header(self) -> Row:
        """The first row that is not empty; none if there is no row at all."""
        found: Row = next(filter(None, self._dialect.reader(self._lines)), [])
        return found

    @property
    def line(self) -> int:
        return self._lines.number

    def batches(self) -> Iterator[Batch]:
        """Yield all rows below the header."""
        while block := self._lines.block():
            batch = self._by_columns(block) or Batch.of(list(self._by_rows(block)), len(self.header))
            if batch.rows:
                yield batch

    def _by_rows(self, block: bytes) -> Iterator[Row]:
        """Yield the rows that begin in a block. The last one may end in a later block."""
        end = self._lines.number + _line_count(block)
        self._lines.open(block)
        for row in self._dialect.reader(self._lines):
            # Empty lines are left out, because no row of several columns can be one.
            if row or len(self.header) == 1:
                yield row
            if self._lines.number >= end:
                return

    def _by_columns(self, block: bytes) -> Batch | None:
        """Split a plain block; return None if it is not."""
        if not is_plain(block, self._dialect, len(self.header)):
            return None
        wanted = [place for place, name in enumerate(self.header) if self._wanted is None or name in self._wanted]
        batch = _split(block, self._dialect, len(self.header), wanted)
        if batch is not None:
            self._lines.number += _line_count(block)
        return batch


class _Lines:
    """The lines of a text, one by one or in blocks. `number` is the number of the last line that was taken."""

    def __init__(self, source: str, texts: Iterable[bytes]) -> None:
        self._source, self.number = source, 0
        self._blocks = self._divided(texts)
        self._opened: deque[bytes] = deque()

    def block(self) -> bytes:
        """Take the rest of an opened block or the next one, which is empty at the end. Whoever splits it counts."""
        if self._opened:
            rest = b"".join(self._opened)
            self._opened.clear()
            return rest
        return next(filter(None, self._blocks), b"")

    def open(self, block: bytes) -> None:
        """Give a block back, to take its lines one by one."""
        self._opened.extend(block.splitlines(keepends=True))

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while not self._opened:
            self.open(next(self._blocks))
        self.number += 1
        line = self._opened.popleft().decode()
        check_length(self._source, self.number, line)
        return line

    def _divided(self, texts: Iterable[bytes]) -> Iterator[bytes]:
        """Yield blocks of whole lines, also those before an error."""
        parts: list[bytes] = []
        size = 0
        try:
            for text in texts:
                parts.append(text)
                size += len(text)
                # A carriage return at the very end may be half of a line break.
                end = text.rfind(b"\n") + 1 or text.rfind(b"\r", 0, len(text) - 1) + 1
                if end and size >= BLOCK:
                    parts[-1] = text[:end]
                    yield b"".join(parts)
                    parts, size = [text[end:]], len(text) - end
                elif size > BLOCK + _BYTES_OF_CHARACTER * delimited.LONGEST_LINE:
                    before, _, line = b"".join(parts).rpartition(b"\n")
                    check_length(self._source, self.number + 1 + _line_count(before), line.decode())
        except UNREADABLE:
            before, end_of_line, _ = b"".join(parts).rpartition(b"\n")
            yield before + end_of_line
            raise
        yield b"".join(parts)


def _in_utf_8(chunks: Iterable[bytes], codec: str) -> Iterator[bytes]:
    """Yield the text in UTF-8, without a byte order mark, up to the first byte that is none of a text."""
    decoder = codecs.getincrementaldecoder(codec)()
    for chunk in chunks:
        try:
            text = decoder.decode(chunk)
        except UnicodeDecodeError as error:
            kept_from_before = len(error.object) - len(chunk)
            yield decoder.decode(chunk[: max(error.start - kept_from_before, 0)]).encode()
            raise
        yield text.encode()
    yield decoder.decode(b"", True).encode()


def _line_count(block: bytes) -> int:
    return len(block.splitlines()) if _has_lone_return(block) else block.count(b"\n") + (not block.endswith(b"\n"))


def _has_lone_return(block: bytes) -> bool:
    return b"\r" in block and block.count(b"\r") != block.count(b"\r\n")


# Plain blocks


def is_plain(block: bytes, dialect: Dialect, width: int) -> bool:
    signs = dialect.delimiter + dialect.quote
    if not signs.isascii() or len({*signs, "\r", "\n"}) < len(signs) + 2 or b"\0" in block or _has_lone_return(block):
        return False
    if width == 1 and (block.startswith(_EMPTY_LINES) or any(b"\n" + line in block for line in _EMPTY_LINES)):
        return False  # a row of a single column may be empty, and pyarrow leaves such lines out
    if _has_long_line(block, min(csv.field_size_limit(), delimited.LONGEST_LINE) // 2):
        return False
    return not dialect.quote or dialect.quote.encode() not in block or _has_plain_quotes(block, dialect)


def _has_long_line(block: bytes, half: int) -> bool:
    """Whether a line may be as long as two halves: some half of the block has no line break."""
    return any(block.find(b"\n", at, at + half) < 0 for at in range(0, len(block) - half + 1, half))


def _has_plain_quotes(block: bytes, dialect: Dialect) -> bool:
    """Whether every quote begins a field, ends one, or is one of two that stand for one, and no line ends in quotes."""
    data = np.frombuffer(block, np.uint8)
    quotes, newlines = np.flatnonzero(data == ord(dialect.quote)), np.flatnonzero(data == _NEWLINE)
    if quotes.size % 2 or (np.searchsorted(quotes, newlines) % 2).any():
        return False
    between = np.zeros(256, np.bool_)
    between[[ord(dialect.delimiter), _NEWLINE]] = True
    opening, closing = quotes[0::2], quotes[1::2]
    begins = between[data[opening - 1]] | (opening == 0)
    between[_RETURN] = True
    ends = between[data[np.minimum(closing + 1, data.size - 1)]] | (closing == data.size - 1)
    doubled = opening[1:] == closing[:-1] + 1
    begins[1:] |= doubled
    ends[:-1] |= doubled
    return bool(begins.all() and ends.all())


def _split(block: bytes, dialect: Dialect, width: int, wanted: Collection[int]) -> Batch | None:
    """Split a block; return None if a row has another width."""
    import pyarrow as pa  # takes long to import
    import pyarrow.csv

    names = [str(place) for place in range(width)]
    once = pa.dictionary(pa.int32(), pa.string())
    reading = pyarrow.csv.ReadOptions(use_threads=False, column_names=names, block_size=len(block) + 1)
    parsing = pyarrow.csv.ParseOptions(delimiter=dialect.delimiter, quote_char=dialect.quote or False)
    converting = pyarrow.csv.ConvertOptions(
        check_utf8=False,  # it was decoded before
        column_types=dict.fromkeys(names, once),
        include_columns=[names[place] for place in wanted],
    )
    try:
        table = pyarrow.csv.read_csv(pa.py_buffer(block), reading, parsing, converting)
    except pa.ArrowInvalid:
        return None
    return Batch(table.num_rows, {place: column_of(table.column(names[place])) for place in wanted})


def column_of(values: Any) -> Column:
    """Return a chunked array of texts, each of which pyarrow found once."""
    found = values.combine_chunks() if values.num_chunks != 1 else values.chunk(0)
    # pyarrow's own way to numpy imports pandas, if it is installed: a quarter of a second in a party's first run.
    return Column(found.dictionary.to_pylist(), np.from_dlpack(found.indices))
