"""Words of data dictionaries: types of columns, lists of codes, numbers and ranges.

It does not know the form of any dictionary.
"""

import re
from collections.abc import Mapping, Sequence

from protocol.outside_json import read_json
from protocol.services.schema_draft import DraftKind
from protocol.tables.exact_json import is_number
from protocol.tables.kinds.formats import ISO_DATE, format_of

_KINDS: Mapping[DraftKind, Sequence[str]] = {
    "datetime": ("datetime", "timestamp", "date time", "date and time", "uhrzeit", "zeitstempel", "/zeit", "/time"),
    "date": ("date", "datum", "day"),
    "boolean": ("bool", "logical", "yesno", "yes/no", "truefalse", "binary", "flag", "ja/nein", "logisch"),
    "ordinal": ("ordinal", "ordered", "likert", "scale", "skala"),
    "integer": ("int", "count", "whole", "year", "ganzzahl", "serial"),
    "real": (
        *("real", "float", "double", "decimal", "numeri", "number", "continuous", "money", "currency", "zahl"),
        *("dezimal", "währung"),
    ),
    "categorical": (
        *("categ", "factor", "enum", "code", "nominal", "char", "string", "text", "varchar", "radio", "select"),
        *("kategor", "liste", "zeichen"),
    ),
}
_ITEM = re.compile(r"(?P<code>[^=:,]*)[=:,](?P<label>.*)")
# "M - male", or "1-male": a dash divides a code from its label only if it does so in every item of a list.
_DASHED = re.compile(r"(?P<code>\S+)\s+[-–]\s+(?P<label>\D.*)|(?P<number>[0-9]+)[-–](?P<meaning>[^\W\d].*)")
_SLASHES = re.compile(r"\w+(?: ?/ ?\w+)+")  # yes/no
_END = r"(-?[0-9]+(?:[.,][0-9]+)*|-?\.[0-9]+)"
_RANGE = re.compile(rf"\s*{_END}\s*(?:-|–|to|bis|\.\.)\s*{_END}\s*")
_BOUNDS = re.compile(rf"\s*(?:>=|≥)\s*{_END}\s*(?:and|und|,|;|&)?\s*(?:<=|≤)\s*{_END}\s*")
_SQUARE = re.compile(rf"\s*[\[(]\s*{_END}\s*[;,|]\s*{_END}\s*[\])]\s*")
_CLOSE_DATES = re.compile(r"\s*([0-9]{1,2}\.[0-9]{1,2}\.[0-9]{4})-([0-9]{1,2}\.[0-9]{1,2}\.[0-9]{4})\s*")
_DATES = re.compile(r"\s*(\S*[0-9]\S*)\s*(?:\s-\s|–|\bto\b|\bbis\b|\.\.)\s*(\S*[0-9]\S*)\s*")
_LONGEST_RANGE = 200  # characters
_FORMATS = ("%Y-%m-%d", "%d.%m.%Y", "%Y/%m/%d")  # which cannot be mistaken for another
_YES, _NO = {"yes", "true", "ja", "j", "y", "t", "1", "oui", "si"}, {"no", "false", "nein", "n", "f", "0", "non"}


_EMPTY = {"leer", "empty", "blank"}  # what stands for a cell without text
_UNKNOWN = {
    "unknown",
    "unbekannt",
    "missing",
    "fehlend",
    "keine angabe",
    "not known",
    "not stated",
    "n/a",
    "k. a.",
    "k.a.",
}


def kind_of(word: str) -> DraftKind | None:
    """Return the kind that a type's name stands for."""
    text = word.strip().lower()
    if text == "bit":
        return "boolean"
    return next((kind for kind, parts in _KINDS.items() if any(part in text for part in parts)), None)


def choices(text: str) -> tuple[list[str], dict[str, str]]:
    """Read a list of codes such as "1, male | 2, female" or "m = male; f = female": the codes, and their labels."""
    text = text.strip()
    if text.startswith("["):
        if (found := _json_choices(text)) is not None:
            return found
        text = text[1:-1] if text.endswith("]") else ""
    items = [item for item in map(str.strip, _items(text)) if item]
    dashed = [_DASHED.fullmatch(item) for item in items]
    values, labels = [], {}
    for item, by_dash in zip(items, dashed, strict=True):
        if by_dash and all(dashed):
            code, label = by_dash["code"] or by_dash["number"], by_dash["label"] or by_dash["meaning"]
        else:
            signed = _ITEM.fullmatch(item)
            code, label = (signed["code"], signed["label"]) if signed else (item, "")
        code, label = _unquoted(code.strip()), _unquoted(label.strip())
        if code not in values:
            values.append(code)
        if label:
            labels[code] = label
    return values, labels


def without_missing(values: Sequence[str], labels: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Divide codes into values, and those that stand for a missing one by their label or name."""
    missing = [one for one in values if one.lower() in _EMPTY or labels.get(one, one).lower() in _UNKNOWN]
    return [one for one in values if one not in missing], ["" if one.lower() in _EMPTY else one for one in missing]


def _items(text: str) -> list[str]:
    separator = next((sign for sign in ("|", ";", "\n", " / ") if sign in text), None)
    if separator is None:
        return text.split("/") if _SLASHES.fullmatch(text) else _by_commas(text)
    items = text.split(separator)
    return [one for item in items for one in (item.split("/") if _SLASHES.fullmatch(item.strip()) else [item])]


def _by_commas(text: str) -> list[str]:
    """Split at commas. In "1=a, b, 2=c" only those before a code with its sign divide."""
    if "=" in text or re.search(r"\w:\s", text):
        return re.split(r",(?=[^,=:]+[=:])", text)
    return text.split(",")


def _json_choices(text: str) -> tuple[list[str], dict[str, str]] | None:
    try:
        found = read_json(text)
    except ValueError:
        return None
    return [str(one) for one in found if isinstance(one, str | int | float)], {}


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def range_of(text: str) -> tuple[int | float | None, int | float | None]:
    """Read a range such as "0 - 120", "0,5 bis 300", "[20; 250]" or ">= 10 and <= 70".

    An end such as 500.000, which is half a million to some and five hundred to others, is not read.
    """
    text = text[:_LONGEST_RANGE]
    found = _RANGE.fullmatch(text) or _BOUNDS.fullmatch(text) or _SQUARE.fullmatch(text)
    low, high = (_plain(found[1]), _plain(found[2])) if found else (None, None)
    return (low, high) if low is not None and high is not None else (None, None)


def _plain(text: str) -> int | float | None:
    """Read a number with signs between its thousands or before its decimals; None where a sign may mean both."""
    signs, groups = re.findall("[.,]", text), re.split("[.,]", text)
    if len(signs) == 1 and len(groups[1]) == 3 and groups[0].lstrip("-") not in ("", "0"):
        return None
    if len(signs) > 1:
        decimals = "." + groups.pop() if signs[-1] != signs[0] else ""
        is_grouped = len(set(signs[: len(groups) - 1])) == 1 and all(len(group) == 3 for group in groups[1:])
        return number_in("".join(groups) + decimals) if is_grouped else None
    return number_in(".".join(groups))


def dates_of(text: str) -> tuple[str, str]:
    """Split a range of dates, such as "01.01.2019 - 31.12.2023" or "2019-2023", into its ends as they are written."""
    text = text[:_LONGEST_RANGE]
    found = _DATES.fullmatch(text) or _CLOSE_DATES.fullmatch(text) or _RANGE.fullmatch(text)
    return (found[1], found[2]) if found else ("", "")


def date_in(text: str, form: str | None) -> str | None:
    """Return a date as in ISO 8601: one that is written so, or in this format, or in one that has one meaning only."""
    for one in (*([form] if form else []), *_FORMATS):
        try:
            seconds = format_of(one, with_time="%H" in one).read(text.strip())
        except ValueError:
            continue
        if seconds is not None:
            return ISO_DATE.write(seconds)
    return text.strip() or None


def number_in(text: str) -> int | float | None:
    text = text.strip()
    if not is_number(text) or len(text) > 30:
        return None
    return int(text) if text.lstrip("+-").isdigit() else float(text)


def truths(values: Sequence[str], labels: Mapping[str, str]) -> tuple[list[str], list[str]] | None:
    """Return the texts for true and for false, if these two values are yes and no."""
    if len(values) != 2:
        return None
    meanings = [labels.get(value, value).lower() for value in values]
    if meanings[0] in _NO and meanings[1] in _YES:
        return [values[1]], [values[0]]
    return ([values[0]], [values[1]]) if meanings[0] in _YES and meanings[1] in _NO else None
