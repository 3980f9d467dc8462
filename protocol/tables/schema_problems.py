"""Problems of a schema, each in a sentence that names the attribute and the field, and all of them at once.

It does not know which schemas are good (`protocol.tables.schema`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from protocol.tables.attributes import KINDS, first_duplicate, quoted
from protocol.tables.kinds.attribute import Contradictions
from protocol.tables.kinds.scales import MOST_BINS

MARK = "to be justified from public knowledge"
FILE = "file"
_MOST_TOLD = 100
_LONGEST_SENTENCE = 500  # characters
_MOST_SCALED = 1 << 16  # bins
_MOST_FIELDS = 30  # more than any kind of attribute has
_OF_SCHEMA = -1  # instead of the number of an attribute
_ALL_KINDS = f"{', '.join(KINDS[:-1])} or {KINDS[-1]}"
_WHAT = {
    "missing": "is missing; add it",
    "extra_forbidden": "is not known here; remove it or correct its spelling",
    "string_type": "must be a text in quotes",
    "int_type": "must be a whole number",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
    "tuple_type": "must be a list",
    "too_long": "has more than {max_length:,} entries; leave some out",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "union_tag_not_found": f'field "kind": is missing; write {_ALL_KINDS}',
    "union_tag_invalid": f'field "kind": must be {_ALL_KINDS}',
}

Place = tuple[int, str]  # an attribute, and one of its fields


def overfull(raw: Any) -> str:
    """Say what is too much to be examined: complaints about very many fields, or the edges of very many scales."""
    for place, one in (((), raw), *((("attributes", index), one) for index, one in enumerate(_attributes(raw)))):
        if isinstance(one, Mapping) and len(one) > _MOST_FIELDS:
            what = f"has {len(one):,} fields, and at most {_MOST_FIELDS} are possible; remove some"
            return _sentence(place, raw, what)
    if (bins := sum(map(_scaled_bins, _attributes(raw)))) > _MOST_SCALED:
        what = f"its scales have {bins:,} bins together, and at most {_MOST_SCALED:,} are possible; ask for fewer"
        return _sentence((), raw, what)
    return ""


def _scaled_bins(one: Any) -> int:
    bins = one.get("bins") if isinstance(one, Mapping) and "scale" in one else 0
    return min(bins, MOST_BINS) if isinstance(bins, int) else 0


def unready(raw: Any) -> dict[Place, str]:
    """Find fields that a person has yet to fill in, or that a file has yet to be read for, with a sentence each."""
    found = {}
    for index, attribute in enumerate(_attributes(raw)):
        for field, value in attribute.items() if isinstance(attribute, Mapping) else ():
            what = _unready(value)
            if what:
                found[index, str(field)] = _sentence(("attributes", index, "", str(field)), raw, what)
    return found


def _unready(value: object) -> str:
    if not isinstance(value, Mapping):
        return ""
    if MARK in value:
        return f"is {MARK}; replace the mark by what is known without a look at any row"
    if isinstance(value.get(FILE), str):
        return "names a file, which has not been read; `subn schemas expand` writes the schema with its content"
    return ""


def equal_names(names: Sequence[str]) -> Iterator[str]:
    if (name := first_duplicate(names)) is not None:
        yield f"the name {quoted(name)} is given to two attributes; rename one"


def sentences(
    raw: Any,
    not_ready: Mapping[Place, str],
    error: ValidationError,
    complaints: Callable[[Any], ValidationError | None],
) -> list[str]:
    """State all problems, attribute by attribute. `complaints` checks the schema again without its misspelt fields."""
    found = [(index, what) for (index, _), what in not_ready.items()]
    for one in filter(None, (error, complaints(_without(raw, error)))):
        found += _told(raw, not_ready, one)
    names = [one.get("name") for one in _attributes(raw) if isinstance(one, Mapping)]
    twice = equal_names([name for name in names if isinstance(name, str)])
    found += [(_OF_SCHEMA, f'Schema, field "attributes": {what}.') for what in twice]
    unique = list(dict.fromkeys(what for _, what in sorted(found, key=lambda one: one[0])))
    more = len(unique) - _MOST_TOLD
    return unique[:_MOST_TOLD] + ([f"Schema: {more} more problems."] if more > 0 else [])


def _told(raw: Any, not_ready: Mapping[Place, str], error: ValidationError) -> Iterator[tuple[int, str]]:
    """Yield every complaint with the number of its attribute."""
    for one in error.errors(include_url=False):
        loc = one["loc"]
        index = loc[1] if len(loc) > 1 and isinstance(loc[1], int) else _OF_SCHEMA
        waiting = [field for place, field in not_ready if place == index]
        if len(loc) > 3 and loc[3] in waiting:
            continue
        for what in _whats(one):
            if not any(what.startswith(f'field "{field}"') for field in waiting):
                yield index, _sentence(loc, raw, what)


def _whats(error: ErrorDetails) -> Sequence[str]:
    cause = error.get("ctx", {}).get("error")
    if isinstance(cause, Contradictions):
        return cause.what
    if error["type"] == "value_error":
        return [str(cause)]
    template = _WHAT.get(error["type"])
    return [error["msg"] if template is None else template.format(**error.get("ctx", {}))]


def _without(raw: Any, error: ValidationError) -> Any:
    """Return the schema without the fields that are not known."""
    unknown = {one["loc"] for one in error.errors(include_url=False) if one["type"] == "extra_forbidden"}
    if not unknown or not isinstance(raw, Mapping):
        return raw
    kept = {name: value for name, value in raw.items() if (name,) not in unknown}
    strange = {(loc[1], loc[3]) for loc in unknown if len(loc) == 4}
    kept["attributes"] = [
        {name: value for name, value in one.items() if (index, name) not in strange}
        if isinstance(one, Mapping)
        else one
        for index, one in enumerate(_attributes(raw))
    ]
    return kept


def _sentence(loc: tuple[int | str, ...], raw: Any, what: str) -> str:
    sign = ", " if what.startswith("field") else ": "
    return f"{', '.join(_places(loc, raw))}{sign}{what}"[:_LONGEST_SENTENCE] + "."


def _places(loc: tuple[int | str, ...], raw: Any) -> Iterator[str]:
    yield "Schema"
    field = loc
    if loc[:1] == ("attributes",) and len(loc) > 1:
        yield f"attribute {_name(raw['attributes'], int(loc[1]))}"
        field = loc[3:]  # loc[2] is the kind
    if field:
        yield f'field "{field[0]}"'
    if len(field) > 1:
        yield f"entry {int(field[1]) + 1}" if isinstance(field[1], int) else f"entry {quoted(str(field[1]))}"


def _attributes(raw: Any) -> Sequence[Any]:
    found = raw.get("attributes") if isinstance(raw, Mapping) else None
    return found if isinstance(found, list | tuple) else ()


def _name(attributes: Any, index: int) -> str:
    """The attribute's name, or its number if the name cannot be shown."""
    found = attributes[index].get("name") if isinstance(attributes[index], Mapping) else None
    return quoted(found) if isinstance(found, str) and found.isprintable() and found else f"number {index + 1}"
