"""Files with the coded rows of a run, as they were when this party joined it, kept until the run ends.

It does not know where rows come from (`party.source`).

Privacy: if a row were corrected between two answers of one run, their difference could reveal it. A run therefore goes
on with the rows that it began with, even after a restart.
"""

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np

from party.errors import DiskFull, Unreadable
from party.files import whole_file
from protocol.exact import canonical_json
from protocol.tables.domain import Codes
from protocol.tables.schema import Schema


def freeze(folder: Path, plan_hash: str, schema: Schema, codes: Sequence[Codes]) -> None:
    """Write the rows as a whole file, which is on disk when the function returns."""
    header = canonical_json({"schema": schema.hash, "rows": len(codes[0])}) + b"\n"
    checksum = sha256(header)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        with whole_file(_file(folder, plan_hash)) as file:
            file.write(header)
            for attribute, column in zip(schema.attributes, codes, strict=True):
                data = column.astype(np.dtype(attribute.code_type).newbyteorder("<")).tobytes()
                checksum.update(data)
                file.write(data)
            file.write(checksum.digest())
    except OSError as error:
        raise DiskFull(f"{folder}: the run's rows cannot be written ({error.strerror}); make room there") from error


def thaw(folder: Path, plan_hash: str, schema: Schema) -> list[Codes]:
    path = _file(folder, plan_hash)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Unreadable(f"{path}: the run's rows cannot be read ({error.strerror}); the run cannot go on") from None
    body, checksum = data[:-32], data[-32:]
    if sha256(body).digest() != checksum:
        raise Unreadable(f"{path}: the run's rows are damaged; the run cannot go on")
    try:
        return _columns(body, schema)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Unreadable(f"{path}: the run's rows are not as this program writes them; the run cannot go on") from None


def _columns(body: bytes, schema: Schema) -> list[Codes]:
    header, _, columns = body.partition(b"\n")
    rows, position, codes = json.loads(header)["rows"], 0, []
    if rows < 1:
        raise ValueError("expected at least one row")
    for attribute in schema.attributes:
        kind = np.dtype(attribute.code_type).newbyteorder("<")
        codes.append(np.frombuffer(columns, kind, rows, position).astype(attribute.code_type))
        position += rows * kind.itemsize
    return codes


def forget(folder: Path, plan_hash: str) -> None:
    """Remove the rows of a run that is over."""
    _file(folder, plan_hash).unlink(missing_ok=True)


def _file(folder: Path, plan_hash: str) -> Path:
    return folder / f"{plan_hash}.rows"
