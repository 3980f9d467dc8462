"""Problems and doubts of a schema, all at once: what cannot work, and what a second look should confirm.

It does not know rows, except their number if somebody says it. Doubts are guesses from names and values of the schema;
they refuse nothing.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

from protocol.errors import SchemaError
from protocol.tables.attributes import AttributeBase, Categorical, Listed, Moment, Numeric, quoted
from protocol.tables.exact_json import is_number
from protocol.tables.schema import MOST_ATTRIBUTES, Schema, read_schema_json

_MANY_VALUES = 100
_VERY_MANY = 1000
_LONG_VALUE = 40
_MOST_NAMED = 3
_SMALLEST_LIST = 5

_WORD = re.compile(r"[A-Z]?[a-zäöüß]+|[A-Z]+(?![a-z])|[0-9]+")
_IDENTIFIER = {
    *("id", "ids", "nr", "nbr", "no", "number", "nummer", "key", "mrn", "ssn", "uuid", "guid", "iban", "pid", "eid"),
    *("email", "mail", "phone", "telephone", "tel", "mobile", "fax", "url", "ip", "identifier", "account"),
}
_PERSON = {
    *("name", "names", "surname", "firstname", "lastname", "forename", "vorname", "nachname", "doctor", "physician"),
    *("surgeon", "nurse", "arzt", "author", "user", "username", "employee", "contact"),
}
_FREE_TEXT = {"note", "notes", "comment", "comments", "remark", "remarks", "text", "freetext", "bemerkung", "anamnesis"}
_BIRTH = {"birth", "birthday", "birthdate", "dob", "born", "geburt", "geburtsdatum", "geburtstag"}
_MONEY = {
    "cost",
    "costs",
    "price",
    "charge",
    "charges",
    "amount",
    "income",
    "salary",
    "wage",
    "balance",
    "loan",
    "kosten",
}
_DURATION = {"hours", "hour", "h", "days", "day", "minutes", "min", "los", "duration", "stay", "stunden", "tage"}
_NARROW = 100  # up to which bins of equal width do
_NAMED_PERSON = re.compile(
    r"(?:(?:Dr|Prof|Mr|Mrs|Ms|Herr|Frau)\.? )?[A-Z][a-zäöüß'-]+, ?[A-Z][a-zäöüß'.-]+|(?:Dr|Prof)\..+"
)
_CONTACT = re.compile(r"[^@\s]+@[^@\s]+\.[a-z]+|\+?[0-9][0-9 ()/-]{6,}[0-9]")
_INTERVAL = re.compile(r"[\[(]?-?[0-9]+(?:\.[0-9]+)? ?(?:-|,|;|to|–) ?-?[0-9]+(?:\.[0-9]+)?[\])]?")


@dataclass(frozen=True)
class Lint:
    """The problems and doubts of a schema, a sentence each; the schema itself, if it has no problems."""

    problems: tuple[str, ...]
    doubts: tuple[str, ...]
    schema: Schema | None


def lint(source: str | bytes, rows: int | None = None) -> Lint:
    """Examine a schema. `rows` is the number of rows of all tables together, if it is known."""
    try:
        schema = Schema.parse(source)
    except SchemaError as error:
        return Lint(error.problems, tuple(_doubts_of_the_rest(source, rows)), None)
    return Lint((), tuple(doubts(schema, rows)), schema)


def _doubts_of_the_rest(source: str | bytes, rows: int | None) -> Iterator[str]:
    """Yield the doubts of all attributes of a broken schema that have no problem themselves."""
    try:
        raw = read_schema_json(source)
    except SchemaError:
        return
    attributes = raw.get("attributes") if isinstance(raw, dict) else None
    for one in attributes[:MOST_ATTRIBUTES] if isinstance(attributes, list) else ():
        try:
            alone = Schema.parse({"attributes": [one]})
        except SchemaError:
            continue
        yield from doubts(alone, rows)


def doubts(schema: Schema, rows: int | None = None) -> Iterator[str]:
    for attribute in schema.attributes:
        for doubt in _DOUBTS:
            for what in doubt(attribute, rows):
                yield f"Schema, attribute {quoted(attribute.name)}: {what}."
    yield from _large_pairs(schema, rows)


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def is_name_of_identifier(name: str) -> bool:
    return any(word in _IDENTIFIER for word in _words(name)[-1:])


def _identifier(attribute: AttributeBase, _rows: int | None) -> Iterator[str]:
    is_long = attribute.size > _MANY_VALUES or isinstance(attribute, Numeric)
    if is_name_of_identifier(attribute.name) and is_long and not _is_small(attribute):
        yield (
            "its name is that of an identifier; leave it out, since it describes nobody (a party may name it as "
            "person_key)"
        )


def _is_small(attribute: AttributeBase) -> bool:
    """Whether a number counts something: it begins near zero and ends soon."""
    return isinstance(attribute, Numeric) and attribute.highest - attribute.lowest < _MANY_VALUES


def _people(attribute: AttributeBase, _rows: int | None) -> Iterator[str]:
    if not isinstance(attribute, Listed):
        return
    if _share(attribute.written, _NAMED_PERSON) > 0.3:
        yield "its values look like names of people; a schema is public, so leave the column out"
    elif _share(attribute.written, _CONTACT) > 0.3 and not all(map(is_number, attribute.written)):
        yield "its values look like addresses or telephone numbers; a schema is public, so leave the column out"
    elif {*_words(attribute.name)} & _PERSON and len(attribute.written) > 2:
        yield "its name is that of a column with names of people; leave it out if its values are such names"


def _free_text(attribute: AttributeBase, _rows: int | None) -> Iterator[str]:
    if not isinstance(attribute, Listed):
        return
    long = sum(len(value) > _LONG_VALUE for value in attribute.written)
    by_name = {*_words(attribute.name)} & _FREE_TEXT and len(attribute.written) > _SMALLEST_LIST
    if by_name or (len(attribute.written) > _SMALLEST_LIST and long * 2 > len(attribute.written)):
        yield "it looks like free text, which cannot be counted; leave it out, or list codes instead"


def _many_values(attribute: AttributeBase, rows: int | None) -> Iterator[str]:
    if rows is not None and attribute.size * 2 > rows:
        yield (
            f"it has {attribute.size:,} categories for {rows:,} rows, so that most of them hold one row or none; "
            f"{_coarser(attribute)}"
        )
    elif rows is None and attribute.size > _VERY_MANY:
        yield f"it has {attribute.size:,} categories, most of which noise will hide; {_coarser(attribute)}"


def _coarser(attribute: AttributeBase) -> str:
    if isinstance(attribute, Moment):
        return "choose a coarser resolution"
    if isinstance(attribute, Numeric):
        return "ask for fewer bins"
    return "list the common values and let `other` take the rest, or list groups"


def _alike(attribute: AttributeBase, _rows: int | None) -> Iterator[str]:
    if not isinstance(attribute, Listed):
        return
    seen: dict[str, str] = {}
    for value in attribute.written:
        key = " ".join(value.split()).casefold()
        if key in seen:
            yield f"its values {quoted(seen[key])} and {quoted(value)} differ in case or blanks only; list one of them"
            return
        seen[key] = value


def _order(attribute: AttributeBase, _rows: int | None) -> Iterator[str]:
    if not isinstance(attribute, Categorical) or len(attribute.values) < _SMALLEST_LIST or attribute.taxonomy:
        return
    if all(map(is_number, attribute.values)):
        yield 'all its values are numbers; the kind "integer", "real" or "ordinal" would keep their order'
    elif are_intervals(attribute.values):
        yield 'its values look like intervals; the kind "ordinal" would keep their order'


def _birth(attribute: AttributeBase, _rows: int | None) -> Iterator[str]:
    if not isinstance(attribute, Moment) or not {*_words(attribute.name)} & _BIRTH:
        return
    if attribute.resolution in ("day", "week", "hour") or (attribute.resolution is None and attribute.size > 200):
        yield "days of birth single people out; choose a resolution of years, or an age"


def _skewed(attribute: AttributeBase, _rows: int | None) -> Iterator[str]:
    if not isinstance(attribute, Numeric) or attribute.edges is not None or attribute.scale is not None:
        return
    if not attribute.bins or attribute.lowest < 0 or attribute.find is not None:
        return
    words = {*_words(attribute.name), *(_words(attribute.unit) if "/" not in attribute.unit else ())}
    held = "amounts of money" if words & _MONEY else "lengths of time" if words & _DURATION else None
    if held and attribute.highest > _NARROW:
        yield (
            f"{held} crowd at the lower end, where bins of equal width tell nothing apart; use a scale "
            '("log" or "sqrt") or `edges`'
        )


def _large_pairs(schema: Schema, rows: int | None) -> Iterator[str]:
    if rows is None:
        return
    count = _pairs_above(sorted(schema.sizes), rows)
    if count:
        largest = sorted(schema.attributes, key=lambda one: -one.size)[: _MOST_NAMED + 1]
        pairs = sorted(combinations(largest, 2), key=lambda pair: -prod(one.size for one in pair))
        named = "; ".join(
            f"{quoted(one.name)} with {quoted(other.name)} {one.size * other.size:,}"
            for one, other in pairs[: min(count, _MOST_NAMED)]
        )
        more = f" and {count - _MOST_NAMED:,} pairs more" if count > _MOST_NAMED else ""
        yield (
            f"Schema: tables of some pairs have more cells than there are rows ({rows:,}), so that noise will hide "
            f"most of what they hold: {named}{more}. Fewer or wider categories help."
        )


def _pairs_above(sizes: Sequence[int], limit: int) -> int:
    """Count the pairs of these sizes, in rising order, whose product is above the limit."""
    found, low, high = 0, 0, len(sizes) - 1
    while low < high:
        if sizes[low] * sizes[high] > limit:
            found += high - low
            high -= 1
        else:
            low += 1
    return found


def are_intervals(values: Sequence[str]) -> bool:
    return len(values) >= _SMALLEST_LIST and _share(values, _INTERVAL) > 0.7


def _share(values: Sequence[str], pattern: re.Pattern[str]) -> float:
    return sum(pattern.fullmatch(value) is not None for value in values) / max(1, len(values))


Doubt = Callable[[AttributeBase, int | None], Iterator[str]]
_DOUBTS: tuple[Doubt, ...] = (
    _identifier,
    _people,
    _free_text,
    _many_values,
    _alike,
    _order,
    _birth,
    _skewed,
)
