"""The extent of the sheets in an Excel or LibreOffice file, measured before a reader makes a table of it.

It does not know files on disk or what cells say: the shells hand it an open file.

A reader holds every cell between the first and the last that is filled. A file of 1 KB whose last cell is filled would
take all memory.
"""

import zlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain
from typing import IO
from xml.parsers.expat import ExpatError, ParserCreate
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from protocol.errors import DataError

MOST_BYTES = 1 << 30  # of all parts, unpacked
_LONGEST_TAG = 1 << 20
_PIECE = 1 << 18
_BEFORE_XML = b"\xef\xbb\xbf \t\r\n"
_LONGEST_COLUMN = 7  # letters; a column of so many is too far away in any case
_ROW, _CELLS = 0, frozenset((*range(1, 12), 62))  # kinds of records
_BEGIN_SHEET = b"\x81\x01\x00"
_BROKEN = (BadZipFile, ExpatError, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)


def check_size(source: str, file: IO[bytes], most_cells: int) -> None:
    """Refuse a file with a sheet that spans too many cells. A file that is no zip (.xls) is not looked at."""
    try:
        with ZipFile(file) as parts:
            left = MOST_BYTES
            for part in parts.infolist():
                pieces = _Pieces(source, parts, part, left)
                rows, columns = _extent(part.filename.lower(), pieces)
                left = pieces.left
                if (cells := rows * columns) > most_cells:
                    raise DataError(
                        f"{source}: a sheet reaches to row {rows:,} and column {columns:,}, which are {cells:,} "
                        f"cells; at most {most_cells:,} are read: delete what stands far away from the table"
                    )
    except _BROKEN as error:
        if source.lower().endswith(".xls") and isinstance(error, BadZipFile):
            return
        what = f"not a readable Excel file ({type(error).__name__})"
        raise DataError(f"{source}: {what}; save it anew as .xlsx") from None


class _Pieces:
    """The unpacked bytes of a part, piece by piece, as long as they are within the limit."""

    def __init__(self, source: str, parts: ZipFile, part: ZipInfo, left: int) -> None:
        self._source, self._parts, self._part, self.left = source, parts, part, left

    def __iter__(self) -> Iterator[bytes]:
        if self._part.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise BadZipFile
        self._part.file_size = self.left + 2 * _PIECE  # all that is there is read, whatever the file says
        with self._parts.open(self._part) as file:
            while piece := file.read(_PIECE):
                self.left -= len(piece)
                if self.left < 0:
                    raise DataError(f"{self._source}: unpacks to more than {MOST_BYTES >> 30} GB; split it")
                yield piece


def _extent(name: str, pieces: Iterable[bytes]) -> tuple[int, int]:
    """Return the last row and the last column that are filled, counted from 1."""
    kept = iter(pieces)
    head = next(kept, b"")
    whole = chain([head], kept)
    if head.lstrip(_BEFORE_XML).startswith(b"<"):  # whatever its name is: the file says which part is a sheet
        return _of_xml(whole)
    if head.startswith(_BEGIN_SHEET) or ("worksheets/" in name and name.endswith(".bin")):
        return _of_records(whole)
    for _ in whole:  # a picture, for example
        pass
    return 0, 0


# .xlsx and .ods


def _of_xml(pieces: Iterable[bytes]) -> tuple[int, int]:
    sheet, parser = _Sheet(), ParserCreate()
    parser.StartElementHandler = sheet.begin
    read = 0
    for piece in pieces:
        read += len(piece)
        parser.Parse(piece)
        if read - parser.CurrentByteIndex > _LONGEST_TAG:
            raise ExpatError
    parser.Parse(b"", True)
    return sheet.rows, sheet.columns


class _Sheet:
    """The place of the last filled cell while a sheet is read. Elements of other parts have no cells."""

    def __init__(self) -> None:
        self.rows = self.columns = 0
        self._row = self._column = 0

    def begin(self, name: str, words: dict[str, str]) -> None:
        local = name.rpartition(":")[2]
        if local == "c":
            place = words.get("r")
            if place is None:
                self._column += 1
            else:
                letters = place.rstrip("0123456789")
                self._row, self._column = int(place[len(letters) :] or 0), _column(letters)
        elif local in ("v", "is"):
            self._fill()
        elif local == "row":
            self._row, self._column = int(words.get("r") or self._row + 1), 0
        elif local in ("table-cell", "covered-table-cell"):
            self._column += int(words.get("table:number-columns-repeated", 1))
            if "office:value-type" in words:
                self._fill()
        elif local == "p":
            self._fill()
        elif local == "table-row":
            self._row, self._column = self._row + int(words.get("table:number-rows-repeated", 1)), 0
        elif local == "table":
            self._row = 0

    def _fill(self) -> None:
        self.rows, self.columns = max(self.rows, self._row), max(self.columns, self._column)


@lru_cache
def _column(letters: str) -> int:
    """Return the number of a column: 1 for A, 28 for AB."""
    number = 0
    for letter in letters[:_LONGEST_COLUMN].upper():
        number = 26 * number + ord(letter) - ord("A") + 1
    return number


# .xlsb


def _of_records(pieces: Iterable[bytes]) -> tuple[int, int]:
    """Read records: a kind of 1 or 2 bytes, a length of 1 to 4, and so many bytes, which begin with a row or column."""
    rows = columns = row = 0
    source = _Bytes(pieces)
    while source.more():
        kind, length = source.number(2), source.number(4)
        found = int.from_bytes(source.take(min(length, 4)), "little")
        source.skip(length - min(length, 4))
        if kind == _ROW:
            row = found + 1
        elif kind in _CELLS:
            rows, columns = max(rows, row), max(columns, found + 1)
    return rows, columns


class _Bytes:
    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces, self._held, self._at = iter(pieces), b"", 0

    def more(self) -> bool:
        """Whether a byte is left."""
        while self._at >= len(self._held):
            self._at -= len(self._held)
            self._held = next(self._pieces, None) or b""
            if not self._held:
                return False
        return True

    def take(self, count: int) -> bytes:
        found = bytearray()
        while len(found) < count:
            if not self.more():
                raise EOFError
            part = self._held[self._at : self._at + count - len(found)]
            self._at += len(part)
            found += part
        return bytes(found)

    def skip(self, count: int) -> None:
        self._at += count

    def number(self, longest: int) -> int:
        """Read a number of 7 bits in each byte, the lowest first; the highest bit says whether another byte follows."""
        found = 0
        for place in range(longest):
            byte = self.take(1)[0]
            found |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                break
        return found
