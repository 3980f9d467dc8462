"""Tables as spreadsheets, databases and hospitals' programs write them are read alike, and how is said."""

import gzip
import sqlite3
from datetime import date, datetime

import duckdb
import pytest

from party.home.settings import Dataset
from party.readers.typed import speller_of
from party.source import check, load, offending
from protocol.errors import DataError
from protocol.services import delimited
from protocol.tables.schema import Schema
from tests.support.excel import write_excel, write_far_excel

SCHEMA = Schema.parse(
    {
        "attributes": [
            {"name": "Größe", "kind": "real", "min": 1, "max": 2.5, "bins": 3, "missing": ["k.A."]},
            {
                "name": "aufgenommen",
                "kind": "date",
                "min": "2019",
                "max": "2021",
                "resolution": "year",
                "format": "%d.%m.%Y",
            },
            {"name": "raucht", "kind": "boolean", "true": ["ja"], "false": ["nein"], "missing": ["?"]},
            {"name": "stationen", "kind": "integer", "min": 0, "max": 9},
            {"name": "klasse", "kind": "categorical", "values": ["1", "2"]},
            {"name": "um", "kind": "datetime", "min": "2020-01-01", "max": "2020-01-02", "resolution": "hour"},
        ]
    }
)
HEADER = ["nr", "Größe", "aufgenommen", "raucht", "stationen", "klasse", "um"]
ROWS = [
    ["p1", "1,70", "31.12.2019", "ja", "3", "1", "2020-01-01 05:59:59"],
    ["p2", "k.A.", "01.01.2020", "nein", "0", "2", "2020-01-02 00:00:00"],
    ["p3", "2,5", "29.02.2020", "?", "9", "2", "2020-01-01 00:00:00"],
]
CODES = [[1, 3, 2], [0, 1, 1], [1, 0, 2], [3, 0, 9], [0, 1, 1], [5, 24, 0]]


def dataset(source, **settings):
    return Dataset.model_validate({"source": source, "schema": "s.json", "epsilon_total": "1"} | settings)


def text_of(delimiter=";", quote="", decimal=",", end="\n", rows=ROWS):
    lines = [[field if at != 1 else field.replace(",", decimal) for at, field in enumerate(row)] for row in rows]
    return "".join(delimiter.join(f"{quote}{field}{quote}" for field in line) + end for line in [HEADER, *lines])


def read(folder, source="t.csv", **settings):
    found = dataset(source, **settings)
    assert check(folder, found, SCHEMA).problems == ()
    return [column.tolist() for column in load(folder, found, SCHEMA)]


def how(folder, source="t.csv", **settings):
    return check(folder, dataset(source, **settings), SCHEMA).how


@pytest.mark.parametrize(
    ("text", "encoding", "said"),
    [
        (text_of(), "cp1252", "semicolons, decimal commas, Windows-1252"),
        (text_of(), "utf-8", "semicolons, decimal commas, UTF-8"),
        (text_of(), "utf-8-sig", "semicolons, decimal commas, UTF-8"),
        (text_of("\t", decimal="."), "utf-16", "tabs, decimal points, UTF-16"),
        (text_of("\t", decimal="."), "utf-16-le", "tabs, decimal points, UTF-16"),
        (text_of("\t", decimal="."), "utf-16-be", "tabs, decimal points, UTF-16"),
        (text_of(",", '"'), "utf-8", "commas, decimal commas, UTF-8"),
        (text_of(",", '"', "."), "utf-8", "commas, decimal points, UTF-8"),
        (text_of("|", "'"), "cp1252", "bars, decimal commas, Windows-1252, single quotes"),
        (text_of(end="\r\n"), "cp1252", "semicolons, decimal commas, Windows-1252"),
        ("\n" + text_of(end="\n\n"), "utf-8", "semicolons, decimal commas, UTF-8"),
    ],
    ids=lambda value: value if len(value) < 60 else "",
)
def test_the_way_of_writing_is_found_out_and_said(tmp_path, text, encoding, said):
    (tmp_path / "t.csv").write_bytes(text.encode(encoding))
    assert read(tmp_path) == CODES
    assert how(tmp_path) == said


def test_gzipped_text_is_found_out_too(tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text_of().encode("cp1252")))
    assert read(tmp_path, "t.csv.gz") == CODES
    assert how(tmp_path, "t.csv.gz") == "semicolons, decimal commas, Windows-1252"


def test_a_letter_of_windows_far_down_the_file_is_found(tmp_path):
    plain = [["p0", "1,70", "31.12.2019", "ja", "3", "1", "2020-01-01 05:59:59"]] * 9000
    text = text_of(rows=[*plain, ["Müller", *ROWS[0][1:]]]).replace("Größe", "Grosse")
    schema = Schema.parse(SCHEMA.to_json().replace("Größe", "Grosse"))
    assert len(text) > 1 << 18
    (tmp_path / "t.csv").write_bytes(text.encode("cp1252"))
    assert check(tmp_path, dataset("t.csv"), schema).how == "semicolons, decimal commas, Windows-1252"
    assert len(load(tmp_path, dataset("t.csv"), schema)[0]) == 9001


def test_what_the_data_owner_says_is_done(tmp_path):
    (tmp_path / "t.csv").write_bytes(text_of().encode("cp1252"))
    said = {"delimiter": ";", "decimal": ",", "encoding": "windows-1252", "quote": '"'}
    assert read(tmp_path, **said) == CODES
    with pytest.raises(DataError, match=r'the header lacks "Größe".* \(read with commas, decimal points, Windows-1252'):
        load(tmp_path, dataset("t.csv", delimiter=","), SCHEMA)
    with pytest.raises(DataError, match=r'line 2, column "Größe": text where a number is expected'):
        load(tmp_path, dataset("t.csv", decimal="."), SCHEMA)
    with pytest.raises(DataError, match="not a readable CSV file in UTF-8"):
        load(tmp_path, dataset("t.csv", encoding="utf-8"), SCHEMA)


@pytest.mark.parametrize(("encoding", "said"), [("utf-16", "UTF-16"), ("iso-8859-1", "ISO-8859-1 (Latin-1)")])
def test_an_encoding_may_be_said(tmp_path, encoding, said):
    (tmp_path / "t.csv").write_bytes(text_of().encode("utf-16-le" if encoding == "utf-16" else encoding))
    assert read(tmp_path, encoding=encoding) == CODES
    assert how(tmp_path, encoding=encoding).endswith(said)


def test_bytes_that_windows_does_not_know_are_latin(tmp_path):
    (tmp_path / "t.csv").write_bytes(text_of().replace("p3", "p\x81").encode("iso-8859-1"))
    assert how(tmp_path) == "semicolons, decimal commas, ISO-8859-1 (Latin-1)"


THOUSANDS = Schema.parse(
    {"attributes": [{"name": "cost", "kind": "real", "min": 0, "max": 10**6, "bins": 10, "missing": ["-"]}]}
)


def test_a_comma_that_may_divide_thousands_is_asked_about(tmp_path):
    (tmp_path / "t.csv").write_text("nr;cost\n1;1,234\n2;12,500\n3;-\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        load(tmp_path, dataset("t.csv"), THOUSANDS)
    assert str(caught.value).endswith(
        't.csv, column "cost": commas in numbers may be decimal signs or may divide thousands; set decimal = "," or '
        'decimal = "." in party.toml, or write the numbers with decimal points'
    )
    assert load(tmp_path, dataset("t.csv", decimal=","), THOUSANDS)[0].tolist() == [0, 0, 10]
    with pytest.raises(DataError, match='line 2, column "cost": text where a number is expected'):
        load(tmp_path, dataset("t.csv", decimal="."), THOUSANDS)


@pytest.mark.parametrize(
    ("numbers", "read_so"),
    [
        (["1,234", "0,5"], "decimal commas"),
        (["0,500", "0,125"], "decimal commas"),
        (["1,234", "0.5"], "decimal points"),
    ],
)
def test_other_numbers_tell_what_a_comma_is(tmp_path, numbers, read_so):
    (tmp_path / "t.csv").write_text("nr;cost\n" + "".join(f"1;{number}\n" for number in numbers), encoding="utf-8")
    assert read_so in check(tmp_path, dataset("t.csv"), THOUSANDS).how


def test_a_stray_quote_in_a_file_without_quotes_is_a_letter(tmp_path):
    (tmp_path / "t.csv").write_text('cost;note\n1,5;"2" pipe\n2,5;no\n', encoding="utf-8")
    assert check(tmp_path, dataset("t.csv"), THOUSANDS).how == "semicolons, decimal commas, UTF-8, no quotes"
    assert load(tmp_path, dataset("t.csv"), THOUSANDS)[0].tolist() == [0, 0]


def test_a_line_is_the_one_that_an_editor_shows(tmp_path):
    text = 'cost,note\n1,"two\nlines"\n\n2,\nmany,\n3,"\n\n"\nmore,\n'
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=', line 6, column "cost": text where a number'):
        load(tmp_path, dataset("t.csv"), THOUSANDS)
    found = offending(tmp_path, dataset("t.csv"), THOUSANDS, 9)
    assert [(place, cell.text) for place, cell in found] == [("line 6", "many"), ("line 10", "more")]


@pytest.mark.parametrize("opening", [open, gzip.open])
def test_a_file_without_line_breaks_is_refused_before_it_is_held(tmp_path, monkeypatch, opening):
    monkeypatch.setattr(delimited, "LONGEST_LINE", 1 << 12)
    name = "t.csv" if opening is open else "t.csv.gz"
    with opening(tmp_path / name, "wb") as table:
        table.write((";".join(HEADER) + "\n").encode() + b"a;" * (1 << 12))
    with pytest.raises(DataError, match=r"line 2 is longer than 4,096 characters; .* save the file with line breaks"):
        load(tmp_path, dataset(name), SCHEMA)


# Excel


TYPED = [
    ["p1", 1.7, date(2019, 12, 31), "ja", 3, 1, datetime(2020, 1, 1, 5, 59, 59)],
    ["p2", "k.A.", date(2020, 1, 1), False, 0, "2", datetime(2020, 1, 2)],
    ["p3", 2.5, "29.02.2020", None, 9.0, 2.0, datetime(2020, 1, 1)],
]


def test_a_sheet_of_excel_is_read_with_its_types(tmp_path):
    write_excel(tmp_path / "t.xlsx", {"Aufnahmen": [HEADER, *TYPED]})
    assert read(tmp_path, "t.xlsx") == CODES
    assert how(tmp_path, "t.xlsx") == 'sheet "Aufnahmen", whose header is row 1'


def test_another_sheet_may_be_named(tmp_path):
    sheets = {"Deckblatt": [["Bericht"]], "Daten": [[None] * 3, HEADER, *TYPED]}
    write_excel(tmp_path / "t.XLSX", sheets)
    assert read(tmp_path, "t.XLSX", sheet="Daten") == CODES
    assert how(tmp_path, "t.XLSX", sheet="Daten") == 'sheet "Daten", whose header is row 2'
    with pytest.raises(DataError, match=r'the file has no sheet "Tabelle1"; it has "Deckblatt", "Daten"$'):
        load(tmp_path, dataset("t.XLSX", sheet="Tabelle1"), SCHEMA)


def test_the_rows_of_a_sheet_have_its_numbers(tmp_path):
    bad = ["p9", "tall", date(2018, 1, 1), "maybe", 2.5, 3, datetime(2020, 1, 3)]
    write_excel(tmp_path / "t.xlsx", {"A": [HEADER, *TYPED, [None] * 7, bad]}, first_row=4)
    with pytest.raises(DataError, match=', row 9, column "Größe": text where a number is expected'):
        load(tmp_path, dataset("t.xlsx"), SCHEMA)
    found = offending(tmp_path, dataset("t.xlsx"), SCHEMA, 5)
    assert {place for place, _ in found} == {"row 9"}
    assert [(cell.column, cell.text) for _, cell in found] == [
        ("Größe", "tall"),
        ("aufgenommen", "01.01.2018"),
        ("raucht", "maybe"),
        ("stationen", "2.5"),
        ("klasse", "3"),
        ("um", "2020-01-03 00:00:00"),
    ]


def test_a_cell_that_excel_could_not_work_out_is_empty(tmp_path):
    write_excel(tmp_path / "t.xlsx", {"A": [HEADER, ["p1", "#N/A", *TYPED[0][2:]]]})
    assert load(tmp_path, dataset("t.xlsx"), SCHEMA)[0].tolist() == [3]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"no zip", r"not a readable Excel file \(\w+\); save it anew as .xlsx$"),
        (None, "cannot be read: "),
    ],
)
def test_a_file_that_is_no_excel_is_refused(tmp_path, content, what):
    if content is not None:
        (tmp_path / "t.xlsx").write_bytes(content)
    with pytest.raises(DataError, match=what) as caught:
        load(tmp_path, dataset("t.xlsx"), SCHEMA)
    assert "no zip" not in str(caught.value)


def test_a_cell_far_away_is_refused_before_a_table_is_made(tmp_path):
    """1 KB whose last cell is filled ended a serving party at each of its starts."""
    write_far_excel(tmp_path / "t.xlsx", "XFD1048576")
    what = "a sheet reaches to row 1,048,576 and column 16,384, .* delete what stands far away from the table"
    with pytest.raises(DataError, match=what):
        load(tmp_path, dataset("t.xlsx"), SCHEMA)


def test_an_empty_sheet_is_refused(tmp_path):
    write_excel(tmp_path / "t.xlsx", {"A": []})
    with pytest.raises(DataError, match="the sheet is empty; a header row"):
        load(tmp_path, dataset("t.xlsx"), SCHEMA)


# Typed columns of Parquet and databases


def test_typed_columns_of_parquet_are_read_whatever_the_format(tmp_path):
    duckdb.connect().execute(
        f"""COPY (SELECT * FROM (VALUES
            (1.70::DECIMAL(5, 2), DATE '2019-12-31', true, 3::TINYINT, '1', TIMESTAMP '2020-01-01 05:59:59.25'),
            (NULL, DATE '2020-01-01', false, 0, '2', TIMESTAMP '2020-01-02 00:00:00'),
            (2.50, DATE '2020-02-29', NULL, 9, '2', TIMESTAMP '2020-01-01 00:00:00')
        ) t("Größe", aufgenommen, raucht, stationen, klasse, um)) TO '{tmp_path}/t.parquet'"""
    )
    assert read(tmp_path, "t.parquet") == CODES


def test_the_types_of_a_database_are_read_whatever_the_format(tmp_path):
    with sqlite3.connect(tmp_path / "t.db") as db:
        db.execute('CREATE TABLE t (nr, "Größe" REAL, aufgenommen, raucht, stationen REAL, klasse INTEGER, um)')
        rows = [[None if field in ("k.A.", "?") else field.replace("1,70", "1.7") for field in row] for row in ROWS]
        db.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?)", [[*row[:1], *row[1:]] for row in rows])
        db.execute("""UPDATE t SET "Größe" = 2.5 WHERE nr = 'p3'""")
    db.close()
    source = dataset(f"sqlite:///{tmp_path}/t.db", query="SELECT * FROM t")
    assert [column.tolist() for column in load(tmp_path, source, SCHEMA)] == CODES


def test_typed_values_are_spelled_as_the_schema_reads_them():
    spellers = {attribute.name: speller_of(attribute) for attribute in SCHEMA.attributes}
    assert spellers["aufgenommen"](date(2020, 2, 3)) == "03.02.2020"
    assert spellers["aufgenommen"](datetime(2020, 2, 3, 23)) == "03.02.2020"
    assert spellers["um"](date(2020, 2, 3)) == "2020-02-03 00:00:00"
    assert spellers["raucht"](True) == "ja"
    assert spellers["raucht"](None) == "?"
    assert spellers["stationen"](None) == ""
    assert spellers["klasse"](True) == "true"
    assert spellers["klasse"](2.0) == "2"
    assert speller_of(None)(date(2020, 2, 3)) == "2020-02-03"


# Settings


@pytest.mark.parametrize(
    ("source", "settings", "what"),
    [
        ("t.parquet", {"delimiter": ";"}, "delimiter: is for CSV files only; leave it out for this source"),
        ("t.xlsx", {"decimal": ","}, "decimal: is for CSV files only; leave it out for this source"),
        ("sqlite:///t.db", {"query": "x", "encoding": "utf-8"}, "encoding: is for CSV files only"),
        ("t.csv", {"sheet": "A"}, "sheet: is for Excel files only; leave it out for this source"),
        ("t.csv", {"delimiter": ";;"}, "String should have at most 1 character"),
    ],
)
def test_a_setting_of_another_kind_of_source_is_refused(source, settings, what):
    with pytest.raises(ValueError, match=what):
        dataset(source, **settings)
