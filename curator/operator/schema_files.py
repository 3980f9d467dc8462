"""A schema on disk, with the lists that it keeps in files of their own put in place.

It does not know which schemas are good (`protocol.tables.schema`).

    "values":   {"file": "icd10.csv", "column": "code", "labels": "title"}
    "taxonomy": {"file": "icd10.csv", "column": "code", "groups": ["chapter", "block"]}
    "values":   {"file": "cities.txt"}        one value on each line
    "taxonomy": {"file": "groups.json"}       as it would stand in the schema

Files lie in the schema's folder or below it: a schema of somebody else cannot publish other files of this machine.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from curator.results.csv_files import opened_table
from protocol.errors import DataError, SchemaError
from protocol.outside_json import read_json
from protocol.tables.attributes import quoted
from protocol.tables.exact_json import write_json
from protocol.tables.schema import Schema, read_schema_json
from protocol.tables.schema_problems import FILE

_LARGEST = 16 << 20  # bytes
_FIELDS = {"values": ("column", "labels"), "taxonomy": ("column", "groups")}


def read_schema(path: Path) -> Schema:
    """Read a schema with all its files. Raises SchemaError, or DataError if the schema itself cannot be read."""
    try:
        return Schema.parse(schema_text(path))
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None


def schema_text(path: Path) -> bytes:
    """Return the schema's JSON; without files of its own, the bytes as they are."""
    text = path.read_bytes()
    raw = read_schema_json(text)
    problems: list[str] = []
    changed = False
    for attribute in _attributes(raw):
        for field in _FIELDS:
            found = attribute.get(field)
            if isinstance(found, Mapping) and isinstance(found.get(FILE), str):
                changed = True
                try:
                    attribute.update(_Reference(path.parent, field, found).content())
                except ValueError as error:
                    problems.append(
                        f'Schema, attribute {quoted(str(attribute.get("name")))}, field "{field}": {error}.'
                    )
    if problems:
        raise SchemaError(*problems)
    return write_json(raw).encode() if changed else text


def _attributes(raw: Any) -> Iterator[dict[str, Any]]:
    found = raw.get("attributes") if isinstance(raw, dict) else None
    return (one for one in found if isinstance(one, dict)) if isinstance(found, list) else iter(())


class _Reference:
    """A field that names a file. Every problem is a ValueError that names the file."""

    def __init__(self, folder: Path, field: str, found: Mapping[str, Any]) -> None:
        self._field, self._found, self._name = field, found, str(found[FILE])
        unknown = sorted(set(found) - {FILE, *_FIELDS[field]})
        if unknown:
            raise ValueError(f"{quoted(unknown[0])} is not known beside a file; remove it or correct its spelling")
        self._path = _below(folder, self._name)

    def content(self) -> dict[str, Any]:
        """Return the fields that the file fills."""
        if self._path.suffix == ".json":
            return {self._field: self._json()}
        if self._path.suffix == ".txt" and self._field == "values":
            return {"values": self._lines()}
        return self._taxonomy() if self._field == "taxonomy" else self._values()

    def _json(self) -> Any:
        try:
            return read_json(self._path.read_bytes(), _LARGEST, exact=True)
        except ValueError as error:
            raise ValueError(f"{self._name} is not JSON that can be read: {error}") from None

    def _lines(self) -> list[str]:
        try:
            text = self._path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise ValueError(f"{self._name} is not in UTF-8; save it as UTF-8") from None
        return [line for line in text.splitlines() if line]

    def _values(self) -> dict[str, Any]:
        label = self._found.get("labels")
        rows = list(self._columns([self._found.get("column"), *([label] if label is not None else [])]))
        values = {"values": [row[0] for row in rows]}
        return values if label is None else values | {"labels": {row[0]: row[1] for row in rows if row[1]}}

    def _taxonomy(self) -> dict[str, Any]:
        groups = self._found.get("groups")
        if not isinstance(groups, list) or not groups:
            raise ValueError(f'names no "groups" of {self._name}; list its columns, the widest groups first')
        tree: dict[str, Any] = {}
        for value, *path in self._columns([self._found.get("column"), *groups]):
            _put(tree, [name for name in path if name], value)
        return {"taxonomy": tree}

    def _columns(self, names: list[Any]) -> Iterator[list[str]]:
        """Yield these columns of a table; None stands for its first column."""
        try:
            with opened_table(self._path, [name for name in names if isinstance(name, str)]) as table:
                header = table.header
                wanted = [header[0] if name is None else name for name in names]
                absent = next((name for name in wanted if name not in header), None)
                if absent is not None:
                    raise ValueError(f"{self._name} has no column {quoted(str(absent))}; correct its name")
                places = [header.index(name) for name in wanted]
                for row in table.rows():
                    if len(row) != len(header):
                        raise ValueError(f"{self._name} has a row with {len(row)} instead of {len(header)} fields")
                    yield [row[place] for place in places]
        except DataError:
            raise ValueError(f"{self._name} is not a table that can be read (CSV with a header row)") from None


def _below(folder: Path, name: str) -> Path:
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ValueError(f"{name} lies outside the folder of the schema; copy it there")
    if not path.is_file():
        raise ValueError(f"there is no file {name} in the folder of the schema")
    if path.stat().st_size > _LARGEST:
        raise ValueError(f"{name} is larger than {_LARGEST >> 20} MB; keep only the columns that are needed")
    return path


def _put(tree: dict[str, Any], path: list[str], value: str) -> None:
    """Add a value to its group. A value without a group stays by itself, and is not named."""
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
        if not isinstance(tree, dict):
            raise ValueError(f"the group {quoted(name)} holds values and groups; give every value as many groups")
    if path:
        leaves = tree.setdefault(path[-1], [])
        if not isinstance(leaves, list):
            raise ValueError(f"the group {quoted(path[-1])} holds values and groups; give every value as many groups")
        leaves.append(value)
