"""Files with the coded rows of a run, as they were when this party joined it, kept until the run ends.

It does not know where rows come from (`party.source`).

Privacy: if a row were corrected between two answers of one run, their difference could reveal it. A run therefore goes
on with the rows that it began with, even after a restart.
"""

import json
from collections.abc import Sequence
from hashlib import sha256
from mmap import ACCESS_READ, mmap
from pathlib import Path

import numpy as np

from party.errors import DiskFull, Unreadable
from party.files import whole_file
from protocol.exact import canonical_json
from protocol.tables.domain import Codes
from protocol.tables.schema import Schema

_LONGEST_HEADER = 1 << 10  # bytes


def freeze(folder: Path, plan_hash: str, schema: Schema, codes: Sequence[Codes]) -> None:
    """Write the rows as a whole file, which is on disk when the function returns."""
    header = canonical_json({"schema": schema.hash, "rows": len(codes[0])}) + b"\n"
    checksum = sha256(header)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        with whole_file(_file(folder, plan_hash)) as file:
            file.write(header)
            for attribute, column in zip(schema.attributes, codes, strict=True):
                data = np.ascontiguousarray(column, np.dtype(attribute.code_type).newbyteorder("<")).data
                checksum.update(data)
                file.write(data)
            file.write(checksum.digest())
    except OSError as error:
        raise DiskFull(f"{folder}: the run's rows cannot be written ({error.strerror}); make room there") from error


def thaw(folder: Path, plan_hash: str, schema: Schema) -> list[Codes]:
    """Return the rows as they lie in the file, which is mapped: they need no memory of their own.

    A file that is replaced or removed stays as it is for whoever has mapped it.
    """
    path = _file(folder, plan_hash)
    try:
        with path.open("rb") as file:
            data = memoryview(mmap(file.fileno(), 0, access=ACCESS_READ))
    except OSError as error:
        raise Unreadable(f"{path}: the run's rows cannot be read ({error.strerror}); the run cannot go on") from None
    except ValueError:  # an empty file cannot be mapped
        data = memoryview(b"")
    body, checksum = data[:-32], data[-32:]
    if sha256(body).digest() != checksum:
        raise Unreadable(f"{path}: the run's rows are damaged; the run cannot go on")
    try:
        return _columns(body, schema)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Unreadable(f"{path}: the run's rows are not as this program writes them; the run cannot go on") from None


def _columns(body: memoryview, schema: Schema) -> list[Codes]:
    header = bytes(body[:_LONGEST_HEADER]).partition(b"\n")[0]
    rows, position, codes = json.loads(header)["rows"], len(header) + 1, []
    if rows < 1:
        raise ValueError("expected at least one row")
    for attribute in schema.attributes:
        kind = np.dtype(attribute.code_type).newbyteorder("<")
        codes.append(np.frombuffer(body, kind, rows, position).astype(attribute.code_type, copy=False))
        position += rows * kind.itemsize
    return codes


def forget(folder: Path, plan_hash: str) -> None:
    """Remove the rows of a run that is over."""
    _file(folder, plan_hash).unlink(missing_ok=True)


def _file(folder: Path, plan_hash: str) -> Path:
    return folder / f"{plan_hash}.rows"
