"""Data dictionaries as tables with a row for each column: CSV or Excel, in anybody's words, and REDCap's.

It does not know files: it reads a header and rows.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from curator.operator.dictionaries.described import Dictionary, Entry, described
from curator.operator.dictionaries.words import (
    choices,
    date_in,
    dates_of,
    kind_of,
    number_in,
    range_of,
    without_missing,
)
from protocol.errors import DataError
from protocol.services.schema_draft import DraftKind, Number
from protocol.services.schema_lint import is_name_of_identifier

_HEADERS: Mapping[str, tuple[str, ...]] = {  # what a column of a dictionary may be called, the best name first
    "name": ("variable", "variable name", "name", "field", "field name", "column", "column name", "attribute", "feld",
             "variablenname", "feldname", "spalte", "spaltenname"),
    "type": ("type", "data type", "datatype", "field type", "kind", "datentyp", "typ", "feldtyp"),
    "values": ("values", "allowed values", "permissible values", "valid values", "codes", "coding", "code list",
               "categories", "levels", "choices", "options", "value labels", "domain", "werte", "range or codes",
               "values or range", "ausprägungen", "ausprägung", "kodierung", "codierung", "wertebereich / codes",
               "wertebereich/codes"),
    "description": ("description", "label", "variable label", "definition", "meaning", "title", "beschreibung"),
    "unit": ("unit", "units", "unit of measure", "einheit"),
    "min": ("min", "minimum", "lower", "lower bound", "lower limit", "min value", "minimum value", "from", "von"),
    "max": ("max", "maximum", "upper", "upper bound", "upper limit", "max value", "maximum value", "to", "bis"),
    "range": ("range", "valid range", "value range", "allowed range", "bereich", "wertebereich"),
    "missing": ("missing", "missing value", "missing values", "missing code", "missing codes", "missing value code",
                "missing value codes", "na", "na values", "null", "null value", "null values", "fehlende werte",
                "fehlend", "fehlwert", "fehlwerte"),
    "decimals": ("decimals", "decimal places", "precision"),
    "format": ("format", "date format"),
    "identifier": ("identifier", "identifier?", "phi", "pii"),
}  # fmt: skip
_REDCAP_NAME, _REDCAP_CHOICES = "Variable / Field Name", "Choices, Calculations, OR Slider Labels"
_REDCAP_KIND, _REDCAP_CHECK = "Field Type", "Text Validation Type OR Show Slider Number"
_REDCAP_NO_DATA = ("descriptive", "file", "sql", "calc_text", "signature")
_LONG_FORMAT = re.compile(r"(?=[a-z:./ -]*yyyy)(?:yyyy|mm|dd)(?:[-./ t:]*(?:yyyy|mm|dd|hh|mi|ss))*")
_LONG_DATES = {"yyyy": "%Y", "mm": "%m", "dd": "%d", "hh": "%H", "mi": "%M", "ss": "%S"}

Row = Mapping[str, str]


def columns_of(source: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Dictionary:
    """Read a dictionary. Raises DataError if its header names no column with the columns' names."""
    lines = [dict(zip(header, map(str.strip, row), strict=False)) for row in rows]
    if _REDCAP_NAME in header:
        return Dictionary([described(entry) for line in lines for entry in _of_redcap(line)])
    places = _places(header)
    if "name" not in places:
        raise DataError(
            f"{source}: this is no data dictionary: no column is called variable, name, field or column; give one of "
            "these names to the column that holds the columns' names"
        )
    named = ({part: line.get(place, "") for part, place in places.items()} for line in lines)
    columns = [described(_of_line(line)) for line in named if line["name"]]
    return Dictionary(columns, [name for name in header if name and name not in places.values()])


def _places(header: Sequence[str]) -> dict[str, str]:
    """Find the dictionary's columns by their names, in any case and whatever stands behind in brackets."""
    known = {" ".join(re.sub(r"[\[(].*", "", name).replace("_", " ").lower().split()): name for name in header}
    return {
        part: known[found]
        for part, names in _HEADERS.items()
        if (found := next((name for name in names if name in known), None)) is not None
    }


def _of_line(line: Row) -> Entry:
    line = _sorted_out(line)
    values, labels = choices(line.get("values", ""))
    values, unknown = without_missing(values, labels)
    missing, meanings = choices(line.get("missing", ""))
    kind = kind_of(line.get("type", "")) or ("categorical" if values else None)
    if kind == "boolean" and not values and "/" in line["type"]:
        values, labels = choices(line["type"])  # "Ja/Nein" says how it is written
    form = _format(line.get("format", "")) or _format(line.get("type", ""))
    low, high = _ends(line, form) if kind in ("date", "datetime") else _numeric_ends(line)
    if kind == "ordinal" and not values and isinstance(low, int):
        kind = "integer"  # a scale from 0 to 10
    return Entry(
        name=line["name"],
        kind=kind or ("real" if low is not None else None),
        description=line.get("description", ""),
        unit=line.get("unit", ""),
        values=values,
        labels={**labels, **meanings},
        missing=[*missing, *(one for one in unknown if one not in missing)],
        lowest=low,
        highest=high,
        decimals=_decimals(line),
        format=form,
        is_identifier=line.get("identifier", "").lower() in ("y", "yes", "true", "1", "x")
        or line.get("type", "").lower() in ("id", "identifier", "key", "schlüssel")
        or (is_name_of_identifier(line["name"]) and not values and low is None),
        is_free_text=any(word in line.get("type", "").lower() for word in ("free", "freitext"))
        or line.get("type", "").lower() in ("text", "memo", "notes"),
    )


def _sorted_out(line: Row) -> Row:
    """Put what stands under values or range where it belongs: a range, a list of codes, or a format of dates."""
    told, ranged = line.get("values", ""), line.get("range", "")
    if kind_of(line.get("type", "")) in ("date", "datetime"):
        form = line.get("format", "") or next((text for text in (told, ranged) if _format(text)), "")
        return {**line, "values": "", "range": ranged if dates_of(ranged) != ("", "") else told, "format": form}
    if range_of(told) != (None, None):
        return {**line, "values": "", "range": told}
    if ranged and not told and range_of(ranged) == (None, None):
        line = {**line, "values": ranged, "range": ""}
    return line if _are_codes(line) else {**line, "values": ""}


def _are_codes(line: Row) -> bool:
    """Whether what stands under values is a list: a single text describes it, as "3 digits" or "0-500.000" does."""
    values, labels = choices(line.get("values", ""))
    if labels:
        return True
    is_number = kind_of(line.get("type", "")) in ("integer", "real")
    return len(values) != 1 and not (is_number and any(number_in(value) is None for value in values))


def _numeric_ends(line: Row) -> tuple[Number | None, Number | None]:
    low, high = range_of(line.get("range", ""))
    return (
        number_in(line["min"]) if line.get("min") else low,
        number_in(line["max"]) if line.get("max") else high,
    )


def _ends(line: Row, form: str | None) -> tuple[Number | None, Number | None]:
    """Return the ends of a range of dates, as in ISO 8601."""
    first, last = dates_of(line.get("range", ""))
    low, high = (date_in(line.get(part) or end, form) for part, end in (("min", first), ("max", last)))
    return low, high


def _decimals(line: Row) -> int | None:
    """Return the number of decimals that the dictionary tells, also in a type such as numeric(8,2)."""
    in_type = re.search(r"\([0-9]+ ?[,.] ?([0-9]+)\)", line.get("type", ""))
    found = number_in(line.get("decimals", "") or (in_type[1] if in_type else ""))
    return found if isinstance(found, int) else None


def _format(text: str) -> str | None:
    """Read a format of dates: "%d.%m.%Y", or "DD.MM.YYYY" as spreadsheets write it, also behind other words."""
    if "%" in text:
        return text
    text = text.lower().replace("jjjj", "yyyy").replace("tt.mm", "dd.mm")
    found = _LONG_FORMAT.search(text)
    if found is None:
        return None
    time = re.sub(r"(?<=hh:)mm", "mi", found[0])
    return re.sub("yyyy|mm|dd|hh|mi|ss", lambda part: _LONG_DATES[part[0]], time)


# REDCap


def _of_redcap(line: Row) -> Iterator[Entry]:
    kind, check = line.get(_REDCAP_KIND, "").lower(), line.get(_REDCAP_CHECK, "").lower()
    name = line.get(_REDCAP_NAME, "")
    if not name or kind in _REDCAP_NO_DATA:
        return
    values, labels = choices(line.get(_REDCAP_CHOICES, "")) if kind != "calc" else ([], {})
    label = re.sub("<[^>]*>", " ", line.get("Field Label", ""))
    if kind == "checkbox":
        for value in values:
            text = f"{label}: {labels.get(value, value)}"
            yield Entry(f"{name}___{value.lower()}", "boolean", text, values=["0", "1"], labels={"0": "no", "1": "yes"})
        return
    low, high = (line.get(f"Text Validation {end}", "") for end in ("Min", "Max"))
    drafted = _redcap_kind(kind, check)
    if drafted == "boolean":
        values, labels = ["0", "1"], {"0": "no", "1": "yes"}
    if kind == "slider":
        values, labels = [], {}
    is_date = drafted in ("date", "datetime")
    yield Entry(
        name=name,
        kind=drafted,
        description=label,
        values=values,
        labels=labels,
        missing=[""],
        lowest=(low or None) if is_date else 0 if kind == "slider" else number_in(low),
        highest=(high or None) if is_date else 100 if kind == "slider" else number_in(high),
        decimals=_redcap_decimals(check),
        format=_redcap_format(check) if is_date else None,
        is_identifier=line.get("Identifier?", "").lower() == "y" or name == "record_id",
        is_free_text=kind == "notes" or (kind == "text" and drafted is None),
    )


def _redcap_kind(kind: str, check: str) -> DraftKind | None:
    if kind in ("yesno", "truefalse"):
        return "boolean"
    if kind in ("radio", "dropdown"):
        return "categorical"
    if kind == "slider" or check == "integer":
        return "integer"
    if check.startswith("datetime"):
        return "datetime"
    if check.startswith("date"):
        return "date"
    return "real" if check.startswith("number") or kind == "calc" else None


def _redcap_decimals(check: str) -> int | None:
    found = re.search(r"number_([0-9])dp", check)
    return int(found[1]) if found else None


def _redcap_format(check: str) -> str:
    """Return how an export writes dates: as in ISO 8601, whatever order the form shows."""
    time = "" if not check.startswith("datetime") else " %H:%M:%S" if "seconds" in check else " %H:%M"
    return f"%Y-%m-%d{time}"
