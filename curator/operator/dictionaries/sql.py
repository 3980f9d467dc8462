"""`CREATE TABLE` statements of SQL, as PostgreSQL, MySQL, SQL Server, Oracle and SQLite write them.

It does not know databases: it reads a text.

Understood are columns with their types, ENUM, CHECK with IN, BETWEEN and comparisons, primary and foreign keys, and
comments behind a column (`--`, `COMMENT '...'`) or in `COMMENT ON COLUMN`. What is not understood is passed over.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from curator.operator.dictionaries.described import Entry, described
from curator.operator.dictionaries.words import number_in
from protocol.errors import DataError
from protocol.services.schema_draft import Column, DraftKind

# Names are short, and no pattern goes over a text twice: an unclosed comment of 600 KB did not end in 40 s.
_NAME = r'(?:"[^"]{1,200}"|`[^`]{1,200}`|\[[^\]]{1,200}\]|[\w$]{1,200})'
_CREATE = re.compile(
    rf"CREATE\s+(?:GLOBAL\s+|LOCAL\s+)?(?:TEMP(?:ORARY)?\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?((?:{_NAME}\.)*{_NAME})\s*\(",
    re.I,
)
_PIECE = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|/\*.*?(?:\*/|\Z)|[(),]|[^'\"(),/-]+|[/-]", re.S)
_COLUMN = re.compile(
    rf"({_NAME})\s+(\w+(?:\s+(?:varying|precision|with(?:out)?\s+time\s+zone))?)\s*(?:\(([^()]*)\))?", re.I
)
_CONSTRAINTS = ("constraint", "primary", "foreign", "unique", "check", "key", "index", "exclude")
_IN = re.compile(rf"({_NAME})\s+IN\s*\(([^()]*)\)", re.I)
_BETWEEN = re.compile(rf"({_NAME})\s+BETWEEN\s+(\S+)\s+AND\s+([^\s()]+)", re.I)
_COMPARED = re.compile(rf"({_NAME})\s*(>=|<=|>|<)\s*(-?[0-9.]+)", re.I)
_COMMENT_ON = re.compile(rf"COMMENT\s+ON\s+COLUMN\s+((?:{_NAME}\.)*)({_NAME})\s+IS\s+'((?:[^']|'')*)'", re.I)
_TEXT = re.compile(r"'((?:[^']|'')*)'")
_SHORT_TEXT = 40
_TYPES: dict[DraftKind, tuple[str, ...]] = {
    "datetime": ("timestamp", "datetime", "datetime2", "smalldatetime", "timestamptz"),
    "date": ("date", "year"),
    "boolean": ("boolean", "bool", "bit"),
    "integer": ("int", "integer", "smallint", "tinyint", "mediumint", "bigint", "int2", "int4", "int8", "serial",
                "bigserial"),
    "real": ("real", "float", "double", "numeric", "decimal", "number", "money", "float4", "float8"),
}  # fmt: skip
_TEXTS = ("text", "clob", "longtext", "mediumtext", "blob", "bytea", "json", "jsonb", "xml", "uuid")


@dataclass
class _Column:
    name: str
    type: str
    size: str
    rest: str
    comment: str = ""
    values: list[str] = field(default_factory=list)
    low: int | float | None = None
    high: int | float | None = None
    is_key: bool = False


def columns_of(source: str, text: str, table: str | None) -> list[Column]:
    tables = {_plain(found[1].split(".")[-1]): found for found in _CREATE.finditer(text)}
    wanted = next(iter(tables)) if table is None and len(tables) == 1 else table
    if wanted not in tables:
        known = ", ".join(tables) or "none"
        raise DataError(f"{source}: the file creates the tables {known}; choose one by --table")
    columns = _columns(list(_parts(text, tables[wanted].end())))
    for found in _COMMENT_ON.finditer(text):
        owner = _plain(found[1].rstrip(".").split(".")[-1]) if found[1] else wanted
        if owner == wanted and _plain(found[2]) in columns:
            columns[_plain(found[2])].comment = found[3].replace("''", "'")
    return [described(_entry(column)) for column in columns.values()]


def _parts(text: str, start: int) -> Iterator[tuple[str, str]]:
    """Yield the parts between the outermost commas of a definition, each with the comment behind it."""
    depth, part, comment = 0, "", ""
    pending: tuple[str, str] | None = None
    for found in _PIECE.finditer(text, start):
        piece = found[0]
        if piece.startswith(("--", "/*")):
            words = piece.strip("-/* \n")
            if pending is not None and not part.strip():
                pending = (pending[0], words)
            else:
                comment = words
            continue
        if piece == "," and depth == 0:
            if pending is not None:
                yield pending
            pending, part, comment = (part, comment), "", ""
            continue
        depth += (piece == "(") - (piece == ")")
        if depth < 0:
            break
        part += piece
    if pending is not None:
        yield pending
    if part.strip():
        yield part, comment


def _columns(parts: list[tuple[str, str]]) -> dict[str, _Column]:
    columns: dict[str, _Column] = {}
    rules = []
    for part, comment in parts:
        words = part.split()
        if words and words[0].lower().rstrip("(") in _CONSTRAINTS:
            rules.append(part)
            continue
        found = _COLUMN.match(part.strip())
        if found:
            name, rest = _plain(found[1]), part.strip()[found.end() :]
            columns[name] = _Column(name, " ".join(found[2].lower().split()), found[3] or "", rest, comment)
            rules.append(rest)
    for rule in rules:
        _apply(rule, columns)
    for column in columns.values():
        lowered = column.rest.lower()
        column.is_key |= "primary key" in lowered or "references" in lowered or " unique" in lowered
        noted = re.search(r"\bcomment\s+'((?:[^']|'')*)'", column.rest, re.I)
        column.comment = noted[1].replace("''", "'") if noted else column.comment
    return columns


def _apply(rule: str, columns: dict[str, _Column]) -> None:
    """Take values, ranges and keys from a rule."""
    for name, listed in _IN.findall(rule):
        if _plain(name) in columns:
            columns[_plain(name)].values = [one.replace("''", "'") for one in _TEXT.findall(listed)] or [
                one.strip() for one in listed.split(",")
            ]
    for name, low, high in _BETWEEN.findall(rule):
        if _plain(name) in columns:
            columns[_plain(name)].low, columns[_plain(name)].high = number_in(low), number_in(high)
    for name, sign, end in _COMPARED.findall(rule):
        if _plain(name) in columns and ">" in sign:
            columns[_plain(name)].low = number_in(end)
        elif _plain(name) in columns:
            columns[_plain(name)].high = number_in(end)
    keys = re.match(r"\s*(?:constraint\s+\S+\s+)?(?:primary|foreign)\s+key\s*\(([^()]*)\)", rule, re.I)
    for name in keys[1].split(",") if keys else ():
        if _plain(name.strip()) in columns:
            columns[_plain(name.strip())].is_key = True


def _entry(column: _Column) -> Entry:
    kind = next((kind for kind, names in _TYPES.items() if column.type.split(" ")[0] in names), None)
    values = column.values or (
        [one.replace("''", "'") for one in _TEXT.findall(column.size)] if column.type == "enum" else []
    )
    length, _, places = column.size.partition(",")
    is_long = not length.strip().isdigit() or int(length) > _SHORT_TEXT
    if kind == "real" and column.type in ("numeric", "decimal", "number") and length.strip() and not places.strip("0 "):
        kind = "integer"
    is_optional = "not null" not in column.rest.lower()
    return Entry(
        name=column.name,
        kind=kind or "categorical",
        description=column.comment,
        values=values,
        missing=[""] if is_optional else [],
        lowest=column.low,
        highest=column.high,
        decimals=int(places) if kind == "real" and places.strip().isdigit() else None,
        is_identifier=column.is_key and not values,
        is_free_text=column.type in _TEXTS or (kind is None and is_long and not values),
    )


def _plain(name: str) -> str:
    return name[1:-1] if name[:1] in '"`[' else name
