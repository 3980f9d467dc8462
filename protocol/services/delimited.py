"""How a file of delimited text is written: its encoding, delimiter, quotes and decimal sign, found out from the file.

It does not know files: the shells hand it bytes. It reads no more of a row than it needs, and keeps nothing of it.

A setting always wins. Without one, the encoding follows from all bytes, and the rest from the header and the first
rows: the delimiter under which the header names most of the expected columns, and the decimal sign that the expected
numbers have. Where a comma in numbers could also divide thousands, nothing is guessed.
"""

import codecs
import csv
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import IO, Any, Literal

from protocol.errors import DataError
from protocol.tables.attributes import quoted

Encoding = Literal["utf-8", "windows-1252", "iso-8859-1", "utf-16"]
Decimal = Literal[".", ","]

ENCODINGS: dict[Encoding, str] = {
    "utf-8": "UTF-8",
    "windows-1252": "Windows-1252",
    "iso-8859-1": "ISO-8859-1 (Latin-1)",
    "utf-16": "UTF-16",
}
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_QUOTES = {'"': "", "'": "single quotes", "": "no quotes"}
LONGEST_LINE = 16 << 20  # characters
_SAMPLE_BYTES = 1 << 18
_SAMPLE_ROWS = 2000
_COMMA_NUMBER = re.compile(r"[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]{1,3})?")
_POINT_NUMBER = re.compile(r"[+-]?[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]{1,3})?")
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+")
_NOT_WINDOWS = frozenset(b"\x81\x8d\x8f\x90\x9d")  # no characters of Windows-1252


@dataclass(frozen=True)
class Dialect:
    """The way in which a file is written."""

    encoding: Encoding = "utf-8"
    delimiter: str = ","
    quote: str = '"'
    decimal: Decimal = "."
    codec: str = "utf-8-sig"  # Python's name of the encoding, which also tells the order of bytes

    def reader(self, lines: Iterable[str]) -> Any:
        """Make a reader of rows, as `csv.reader` does."""
        if not self.quote:
            return csv.reader(lines, delimiter=self.delimiter, quoting=csv.QUOTE_NONE, strict=True)
        return csv.reader(lines, delimiter=self.delimiter, quotechar=self.quote, strict=True)

    def in_words(self) -> str:
        """Say how the file is read: "semicolons, decimal commas, Windows-1252"."""
        decimal = "decimal commas" if self.decimal == "," else "decimal points"
        delimiter = _DELIMITERS.get(self.delimiter, f"the delimiter {quoted(self.delimiter)}")
        return ", ".join(filter(None, (delimiter, decimal, ENCODINGS[self.encoding], _QUOTES.get(self.quote, ""))))


@dataclass(frozen=True)
class Given:
    """What the data owner has said; None where it is to be found out."""

    encoding: Encoding | None = None
    delimiter: str | None = None
    quote: str | None = None
    decimal: Decimal | None = None


def bounded_lines(source: str, file: IO[str]) -> Iterator[str]:
    """Yield the lines of a file. Raises DataError at a line that is too long to be one row."""
    number = 0
    while line := file.readline(LONGEST_LINE):
        number += 1
        check_length(source, number, line)
        yield line


def check_length(source: str, number: int, line: str) -> None:
    """Raise DataError if a line is too long to be one row."""
    if len(line) >= LONGEST_LINE and not line[:LONGEST_LINE].endswith(("\n", "\r")):
        raise DataError(
            f"{source}: line {number} is longer than {LONGEST_LINE:,} characters; a line for each row is expected: "
            "save the file with line breaks"
        )


def dialect_of(
    source: str,
    chunks: Iterable[bytes],
    given: Given,
    columns: Collection[str] = (),
    numbers: Collection[str] | None = (),
) -> Dialect:
    """Find out how a file is written. `columns` are expected in its header, and `numbers` hold numbers (None: any may).

    Raises DataError where the file's encoding is none of those known, or a decimal sign cannot be told.
    """
    remaining = iter(chunks)
    head = _head(remaining)
    encoding, codec = _encoding(head, remaining, given.encoding)
    lines = _sample_lines(head, codec)
    found = Dialect(encoding, given.delimiter or ",", '"' if given.quote is None else given.quote, codec=codec)
    if given.delimiter is None:
        found = replace(found, delimiter=_delimiter(lines, found, columns))
    if given.quote is None:
        found = replace(found, quote=_quote(lines, found))
    return replace(found, decimal=given.decimal or _decimal(source, lines, found, numbers))


def _head(chunks: Iterator[bytes]) -> bytes:
    head = bytearray()
    for chunk in chunks:
        head += chunk
        if len(head) >= _SAMPLE_BYTES:
            break
    return bytes(head)


# Encoding


def _encoding(head: bytes, rest: Iterable[bytes], given: Encoding | None) -> tuple[Encoding, str]:
    wide = _utf_16(head)
    if given == "utf-16" or (given is None and wide):
        return "utf-16", wide or "utf-16-le"
    if given == "utf-8" or (given is None and _is_utf_8(chain([head], rest))):
        return "utf-8", "utf-8-sig"
    if given is not None:
        return given, "cp1252" if given == "windows-1252" else "iso-8859-1"
    # Bytes that are no characters of Windows-1252 occur in the older Latin-1 alone. The sample suffices: both read a
    # letter alike, and differ in signs only.
    return ("iso-8859-1", "iso-8859-1") if _NOT_WINDOWS & {*head} else ("windows-1252", "cp1252")


def _utf_16(head: bytes) -> str:
    """Return the codec if the text is UTF-16: by its mark, or because every other byte of Latin letters is zero."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    even, odd = head[0:2000:2].count(0), head[1:2000:2].count(0)
    half = min(len(head), 2000) // 2
    if half and max(even, odd) > 0.6 * half:
        return "utf-16-be" if even > odd else "utf-16-le"
    return ""


def _is_utf_8(chunks: Iterable[bytes]) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for chunk in chunks:
            decoder.decode(chunk)
        decoder.decode(b"", True)
    except UnicodeDecodeError:
        return False
    return True


def _sample_lines(head: bytes, codec: str) -> list[str]:
    """Return the first lines, without the last one, which may be cut."""
    lines = codecs.getincrementaldecoder(codec)("replace").decode(head).splitlines(keepends=True)
    whole = lines[:-1] if len(lines) > 1 and len(head) >= _SAMPLE_BYTES else lines
    first = next((place for place, line in enumerate(whole) if line.strip("\r\n")), 0)
    return whole[first : first + _SAMPLE_ROWS + 1]


# Delimiter, quotes and decimal sign


def _delimiter(lines: Sequence[str], found: Dialect, columns: Collection[str]) -> str:
    """Return the delimiter under which the header has most of the expected columns or, without any, most columns."""

    def fit(delimiter: str) -> tuple[int, int]:
        header = next(_rows(lines[:1], replace(found, delimiter=delimiter)), [])
        return len({*columns}.intersection(header)), len(header)

    return max(_DELIMITERS, key=fit)


def _quote(lines: Sequence[str], found: Dialect) -> str:
    """Return the sign around fields: double quotes, unless single ones or none explain the rows better."""
    if not any('"' in line for line in lines):
        return "'" if _quoted_lines(lines, found, "'") * 2 > len(lines) else '"'
    is_plain = not _quoted_lines(lines, found, '"') and _fits(lines, replace(found, quote=""))
    return "" if is_plain and not _fits(lines, found) else '"'


def _quoted_lines(lines: Sequence[str], found: Dialect, quote: str) -> int:
    """Count the lines with a field that this sign surrounds."""
    between = re.escape(found.delimiter)
    field = re.compile(rf"(?:^|{between}){quote}[^{quote}]*{quote}(?:{between}|[\r\n]*$)")
    return sum(quote in line and bool(field.search(line)) for line in lines)


def _fits(lines: Sequence[str], dialect: Dialect) -> bool:
    """Whether all rows can be read, and have as many fields as the header."""
    try:
        widths = {len(row) for row in dialect.reader(lines)}
    except csv.Error:
        return False
    return len(widths - {0}) <= 1


def _decimal(source: str, lines: Sequence[str], found: Dialect, numbers: Collection[str] | None) -> Decimal:
    rows = _rows(lines, found)
    header = next(rows, [])
    places = [place for place, name in enumerate(header) if numbers is None or name in numbers]
    commas = points = 0
    doubtful = None
    for row in rows:
        for place in places:
            text = row[place] if place < len(row) else ""
            if "," in text:
                if _THOUSANDS.fullmatch(text):
                    doubtful = header[place]
                elif _COMMA_NUMBER.fullmatch(text):
                    commas += 1
            elif "." in text and _POINT_NUMBER.fullmatch(text):
                points += 1
    if doubtful is not None and not commas and not points:
        raise DataError(
            f"{source}, column {quoted(doubtful)}: commas in numbers may be decimal signs or may divide thousands; "
            'set decimal = "," or decimal = "." in party.toml, or write the numbers with decimal points'
        )
    return "," if commas > points else "."


def _rows(lines: Sequence[str], dialect: Dialect) -> Iterator[list[str]]:
    """Read rows as far as they can be read."""
    try:
        yield from dialect.reader(lines)
    except csv.Error:
        return
