"""Data dictionaries of every usual form become drafts, in which only what nobody has published is left to a person."""

import json
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from curator.operator.dictionaries.files import read_dictionary
from curator.operator.dictionaries.words import choices, date_in, dates_of, kind_of, range_of
from curator.subn import main
from protocol.errors import DataError, SchemaError
from protocol.services.schema_draft import draft, summary
from protocol.tables.schema import Schema
from tests.support.documents import ROOT
from tests.support.excel import write_excel, write_far_excel

REGISTRY = ROOT / "tests" / "vectors" / "dictionaries" / "registry.csv"
MARK = "to be justified from public knowledge"


def drafted(path: Path, table: str | None = None) -> dict[str, dict[str, Any]]:
    raw = json.loads(draft("t", read_dictionary(path, table).columns))
    return {attribute["name"]: attribute for attribute in raw["attributes"]}


def left_out(path: Path) -> list[str]:
    return [line for line in summary(read_dictionary(path).columns) if line.startswith("left out")]


def file(folder: Path, name: str, text: str, encoding: str = "utf-8") -> Path:
    (folder / name).write_bytes(text.encode(encoding))
    return folder / name


# Words


@pytest.mark.parametrize(
    ("text", "values", "labels"),
    [
        ("1, male | 2, female", ["1", "2"], {"1": "male", "2": "female"}),
        ("m=male; f=female", ["m", "f"], {"m": "male", "f": "female"}),
        ("0: no, 1: yes, slightly, 2: yes", ["0", "1", "2"], {"0": "no", "1": "yes, slightly", "2": "yes"}),
        ("low, mid, high", ["low", "mid", "high"], {}),
        ("'a' | 'b'", ["a", "b"], {}),
        ('["x", 2]', ["x", "2"], {}),
        ("1 = one\n2 = two", ["1", "2"], {"1": "one", "2": "two"}),
        ("ja / nein", ["ja", "nein"], {}),
        ("", [], {}),
        ("[broken", [], {}),
        ("[Medicare|Private]", ["Medicare", "Private"], {}),
        ("M - male; F - female", ["M", "F"], {"M": "male", "F": "female"}),
        ("1-White, 2-Black", ["1", "2"], {"1": "White", "2": "Black"}),
        ("I10-I15 | I20-I25", ["I10-I15", "I20-I25"], {}),
        ("0-4 | 5-9", ["0-4", "5-9"], {}),
        ("A - one; B", ["A - one", "B"], {}),
        ("Home / Rehab / Expired", ["Home", "Rehab", "Expired"], {}),
        ("rot/orange/gelb", ["rot", "orange", "gelb"], {}),
        ("j/n; leer = unbekannt", ["j", "n", "leer"], {"leer": "unbekannt"}),
    ],
)
def test_lists_of_codes(text, values, labels):
    assert choices(text) == (values, labels)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Integer", "integer"), ("NUMERIC(8,2)", "real"), ("Date (DD.MM.YYYY)", "date"), ("timestamp", "datetime"),
        ("Factor", "categorical"), ("ordered factor", "ordinal"), ("boolean", "boolean"), ("blob", None), ("", None),
        ("bit", "boolean"), ("64-bit integer", "integer"), ("Kategorie", "categorical"), ("Datum/Uhrzeit", "datetime"),
        ("Kommazahl", "real"), ("numerisch", "real"), ("Skala", "ordinal"), ("Datum/Zeit", "datetime"),
    ],
)  # fmt: skip
def test_names_of_types(text, kind):
    assert kind_of(text) == kind


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("0 - 120", (0, 120)),
        ("0,5 bis 300", (0.5, 300)),
        (">=10 and <=70", (10, 70)),
        ("-1.5 to 3", (-1.5, 3)),
        ("10..20", (10, 20)),
        ("[20;250]", (20, 250)),
        ("0 - 1.000.000", (0, 1_000_000)),
        ("1.234.567,5 bis 2.000.000", (1_234_567.5, 2_000_000)),
        ("0.125 - 0.250", (0.125, 0.25)),
        ("0-500.000", (None, None)),  # half a million, or five hundred
        ("1,000 to 2,000", (None, None)),
        ("many", (None, None)),
    ],
)
def test_ranges(text, ends):
    assert range_of(text) == ends


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("01.01.2019 - 31.12.2023", ("01.01.2019", "31.12.2023")),
        ("2019-01-01 to 2023-12-31", ("2019-01-01", "2023-12-31")),
        ("2019-2023", ("2019", "2023")),
        ("01.01.2022-31.12.2024", ("01.01.2022", "31.12.2024")),
        ("since 2019", ("", "")),
    ],
)
def test_ranges_of_dates(text, ends):
    assert dates_of(text) == ends


@pytest.mark.parametrize(
    ("text", "form", "date"),
    [
        ("31.12.2023", None, "2023-12-31"),
        ("12/31/2023", "%m/%d/%Y", "2023-12-31"),
        ("12/31/2023", None, "12/31/2023"),
        ("2023", "%d.%m.%Y", "2023"),
        ("", None, None),
    ],
)
def test_dates(text, form, date):
    assert date_in(text, form) == date


# Tables


def test_a_registry_of_40_columns_leaves_three_lists_of_codes_to_a_person(tmp_path, capsys):
    """What a new user stuck at: formats in types, ranges of dates, missing codes, lengths of time in equal bins."""
    assert main(["schemas", "draft", str(REGISTRY), "--title", "Admissions", "--out", str(tmp_path / "s.json")]) == 0
    said = capsys.readouterr().out
    assert "38 columns" in said
    assert "3 fields are marked" in said
    assert "left out: pat_id" in said
    text = (tmp_path / "s.json").read_text("utf-8")
    assert main(["schemas", "lint", str(tmp_path / "s.json"), "--rows", "20000"]) == 2
    assert {"los", "icu_hours", "vent_hours", "cost"} == {
        line.split('"')[1] for line in capsys.readouterr().out.splitlines() if line.startswith("doubt")
    }
    schema = Schema.parse(text.replace(f'{{"{MARK}": []}}', '["A", "B"], "other": "other"'))
    found = {attribute.name: attribute for attribute in schema.attributes}
    assert found["adm_date"].model_dump(include={"min", "max", "format"}) == {
        "min": "2019-01-01",
        "max": "2023-12-31",
        "format": "%d.%m.%Y",
    }
    assert [name for name, one in found.items() if one.kind == "boolean"] == ["smoker", "icu", "hypert", "readm30"]
    assert found["weight"].missing == ("-9",)
    assert found["crea"].places == 2


GERMAN = """Variablenname;Beschreibung;Datentyp;Wertebereich;Einheit;Fehlwerte
PatID;Patientennummer;Zeichenkette;;;
Geschlecht;Administratives Geschlecht;Kategorie;m = männlich, w = weiblich, d = divers;;u
Aufnahme;;Datum (TT.MM.JJJJ);01.01.2018 bis 31.12.2023;;
Gewicht;;Kommazahl(5,1);0,5 bis 300;kg;-1
Raucher;;Ja/Nein;;;
Schmerz;Schmerzskala;Skala;0-10;;
"""
ENGLISH = """Field name,Data type,Permissible values,Lower limit,Upper limit,Null value
MRN,varchar(12),,,,
Sex,char(1),M - Male; F - Female; U - Unknown,,,U
Admitted,datetime,MM/DD/YYYY HH:MM,2019-01-01,2023-12-31,
Temp,float,,30,43,999
ICU,bit,"0=No, 1=Yes",,,
BMI,"numeric(4,1)",>=10 and <=70,,,
"""


def test_dictionaries_in_words_at_which_a_new_user_stuck(tmp_path):
    """A range among codes, codes among ranges, a format among values, dashes, and headings that were not known."""
    german = drafted(file(tmp_path, "de.csv", GERMAN, "cp1252"))
    assert list(german) == ["Geschlecht", "Aufnahme", "Gewicht", "Raucher", "Schmerz"]
    assert (german["Geschlecht"]["values"], german["Geschlecht"]["missing"]) == (["m", "w", "d"], ["u"])
    assert (german["Aufnahme"]["format"], german["Aufnahme"]["max"]) == ("%d.%m.%Y", "2023-12-31")
    assert (german["Gewicht"]["min"], german["Gewicht"]["decimals"]) == (0.5, 1)
    assert (german["Raucher"]["true"], german["Raucher"]["false"]) == (["Ja"], ["Nein"])
    assert (german["Schmerz"]["kind"], german["Schmerz"]["max"]) == ("integer", 10)
    english = drafted(file(tmp_path, "en.csv", ENGLISH))
    assert list(english) == ["Sex", "Admitted", "Temp", "ICU", "BMI"]
    assert (english["Sex"]["values"], english["Sex"]["labels"]["F"]) == (["M", "F"], "Female")
    assert (english["Admitted"]["format"], english["Admitted"]["min"]) == ("%m/%d/%Y %H:%M", "2019-01-01")
    assert (english["Temp"]["max"], english["Temp"]["missing"]) == (43, ["999"])
    assert (english["ICU"]["true"], english["BMI"]["max"]) == (["1"], 70)
    assert MARK not in json.dumps([german, english])


OPEN_ENDS = """Variable;Typ;Wertebereich / Codes;Einheit
Kosten;Dezimalzahl;0-500.000;EUR
Puls;Ganzzahl;"[20;250]";1/min
CRP;Dezimalzahl;<0,3 bis 500;mg/l
Ampel;Kategorie;rot/orange/gelb;
Station;Kategorie;3 Ziffern;
Raucher;Boolean;"j/n; leer = unbekannt";
Grad;Ordinal;1: leicht, 2: schwer, 9: unbekannt;
Ankunft;Datum/Zeit;TT.MM.JJJJ HH:MM;
Fallnummer;ID;;
Anamnese;Freitext;;
"""


def test_what_a_dictionary_leaves_open_is_marked_and_not_guessed(tmp_path):
    """A hospital's list, in which half a million became 500, and a description the only category."""
    drafts = drafted(file(tmp_path, "registry.csv", OPEN_ENDS))
    assert list(drafts) == ["Kosten", "Puls", "CRP", "Ampel", "Station", "Raucher", "Grad", "Ankunft"]
    assert {name for name, one in drafts.items() if MARK in json.dumps(one)} == {"Kosten", "CRP", "Station", "Ankunft"}
    assert (drafts["Puls"]["min"], drafts["Puls"]["max"]) == (20, 250)
    assert drafts["Ampel"]["values"] == ["rot", "orange", "gelb"]
    assert (drafts["Raucher"]["true"], drafts["Raucher"]["false"], drafts["Raucher"]["missing"]) == (["j"], ["n"], [""])
    assert (drafts["Grad"]["values"], drafts["Grad"]["missing"]) == (["1", "2"], ["9"])
    assert drafts["Ankunft"]["kind"] == "datetime"


def test_columns_of_the_dictionary_that_are_not_understood_are_named(tmp_path, capsys):
    path = file(tmp_path, "d.csv", "variable,type,source system\nage,integer,SAP\n")
    assert main(["schemas", "draft", str(path)]) == 0
    assert "not read: the dictionary's source system" in capsys.readouterr().err


DICTIONARY = """Variable;Type;Label;Allowed values;Unit;Min;Max;Missing;Format;Identifier
pat_id;integer;Number of the patient;;;;;;;yes
age;integer;Age at admission;;years;0;110;;;
sex;factor;Administrative sex;m=male | f=female | x=other;;;;NA=not asked;;
severity;ordinal;;1=mild | 2=moderate | 3=severe;;;;;;
bmi;numeric;Body mass index;;kg/m2;10;70;-9=refused;;
admitted;date;Day of admission;;;;;;DD.MM.YYYY;
smoker;boolean;;0=no|1=yes;;;;;;
days;integer;Length of stay;0 - 365;days;;;;;
note;free text;What was said;;;;;;;
crp;number;;;mg/l;;;;;
"""


def test_a_table_in_anybody_s_words(tmp_path):
    path = file(tmp_path, "dict.csv", DICTIONARY, "cp1252")
    assert drafted(path) == {
        "age": {
            "name": "age", "kind": "integer", "description": "Age at admission", "min": 0, "max": 110, "bins": 20,
            "unit": "years",
        },
        "sex": {
            "name": "sex", "kind": "categorical", "description": "Administrative sex", "values": ["m", "f", "x"],
            "labels": {"m": "male", "f": "female", "x": "other", "NA": "not asked"}, "missing": ["NA"],
        },
        "severity": {
            "name": "severity", "kind": "ordinal", "values": ["1", "2", "3"],
            "labels": {"1": "mild", "2": "moderate", "3": "severe"},
        },
        "bmi": {
            "name": "bmi", "kind": "real", "description": "Body mass index", "min": 10, "max": 70, "bins": 20,
            "unit": "kg/m2", "missing": ["-9"],
        },
        "admitted": {
            "name": "admitted", "kind": "date", "description": "Day of admission", "min": {MARK: None},
            "max": {MARK: None}, "resolution": "month", "format": "%d.%m.%Y",
        },
        "smoker": {
            "name": "smoker", "kind": "boolean", "true": ["1"], "false": ["0"], "labels": {"0": "no", "1": "yes"},
        },
        "days": {
            "name": "days", "kind": "integer", "description": "Length of stay", "min": 0, "max": 365, "bins": 20,
            "unit": "days",
        },
        "crp": {
            "name": "crp", "kind": "real", "min": {MARK: None}, "max": {MARK: None}, "bins": 20, "unit": "mg/l",
        },
    }  # fmt: skip
    assert left_out(path) == [
        "left out: pat_id (an identifier, which describes nobody)",
        "left out: note (free text, which cannot be counted)",
    ]


def test_excel_holds_the_same_dictionary(tmp_path):
    rows = [line.split(";") for line in DICTIONARY.splitlines()]
    cells = [[float(cell) if cell.isdigit() else cell or None for cell in row] for row in rows]
    write_excel(tmp_path / "dict.xlsx", {"About": [["read me"]], "Variables": [rows[0], *cells[1:]]})
    assert drafted(tmp_path / "dict.xlsx", "Variables") == drafted(file(tmp_path, "dict.csv", DICTIONARY))
    with pytest.raises(DataError, match="this is no data dictionary: no column is called variable"):
        read_dictionary(tmp_path / "dict.xlsx")
    with pytest.raises(DataError, match="the file has the sheets About, Variables; choose one by --table"):
        read_dictionary(tmp_path / "dict.xlsx", "Sheet1")


REDCAP_HEADER = (
    "Variable / Field Name,Form Name,Section Header,Field Type,Field Label,"
    '"Choices, Calculations, OR Slider Labels",Field Note,Text Validation Type OR Show Slider Number,'
    "Text Validation Min,Text Validation Max,Identifier?\n"
)
REDCAP = """\
record_id,demo,,text,Record ID,,,,,,
dob,demo,,text,Date of birth,,,date_dmy,1900-01-01,today,y
visit,demo,,text,Visit,,,date_mdy,2010-01-01,2030-12-31,
sex,demo,,radio,"<b>Sex</b>","0, Female | 1, Male",,,,,
consent,demo,,yesno,Consent?,,,,,,
race,demo,,checkbox,Race,"A, Asian | B, Black",,,,,
weight,demo,,text,Weight (kg),,,number_1dp,2,300,
height,demo,,text,,,,integer,,,
pain,demo,,slider,Pain,None | Some | Worst,,number,,,
comments,demo,,notes,Comments,,,,,,
bmi,demo,,calc,BMI,"round([weight]/[height],1)",,,,,
seen,demo,,text,Seen at,,,datetime_seconds_ymd,,,
title,demo,,descriptive,Hello,,,,,,
"""


def test_redcap_s_dictionary(tmp_path):
    path = file(tmp_path, "redcap.csv", REDCAP_HEADER + REDCAP)
    found = drafted(path)
    assert list(found) == [
        "visit", "sex", "consent", "race___a", "race___b", "weight", "height", "pain", "bmi", "seen",
    ]  # fmt: skip
    assert found["visit"] == {
        "name": "visit", "kind": "date", "description": "Visit", "min": "2010-01-01", "max": "2030-12-31",
        "resolution": "month", "missing": [""],
    }  # fmt: skip
    assert found["sex"]["description"] == "Sex"
    assert (found["sex"]["values"], found["sex"]["labels"]) == (["0", "1"], {"0": "Female", "1": "Male"})
    assert (found["race___b"]["kind"], found["race___b"]["description"]) == ("boolean", "Race: Black")
    assert (found["weight"]["min"], found["weight"]["max"], found["weight"]["decimals"]) == (2, 300, 1)
    assert found["height"]["min"] == {MARK: None}
    assert (found["pain"]["kind"], found["pain"]["min"], found["pain"]["max"]) == ("integer", 0, 100)
    assert found["seen"]["kind"] == "datetime"
    assert [line.split(" ")[2] for line in left_out(path)] == ["record_id", "dob", "comments"]


# Frictionless


TABLE_SCHEMA = {
    "primaryKey": "id",
    "missingValues": ["", "NA"],
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "age", "type": "integer", "title": "Age", "constraints": {"minimum": 0, "maximum": 120}},
        {"name": "ratio", "type": "number", "constraints": {"minimum": 0.5}},
        {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m"]}},
        {"name": "grade", "type": "string", "categories": [{"value": "a", "label": "best"}, {"value": "b"}],
         "categoriesOrdered": True},
        {"name": "ok", "type": "boolean", "trueValues": ["1"], "falseValues": ["0"]},
        {"name": "day", "type": "date", "format": "%d/%m/%Y", "constraints": {"minimum": "2020-01-01"}},
        {"name": "year", "type": "year"},
        {"name": "mail", "type": "string", "format": "email"},
        {"name": "story", "type": "string", "constraints": {"maxLength": 5000}},
        {"name": "where", "type": "geopoint"},
    ],
}  # fmt: skip


def test_a_frictionless_table_schema(tmp_path):
    path = file(tmp_path, "schema.json", json.dumps(TABLE_SCHEMA))
    found = drafted(path)
    assert list(found) == ["age", "ratio", "sex", "grade", "ok", "day", "year"]
    assert (found["age"]["min"], found["age"]["max"], found["age"]["missing"]) == (0, 120, ["", "NA"])
    assert (found["ratio"]["min"], found["ratio"]["max"]) == (0.5, {MARK: None})
    assert (found["grade"]["kind"], found["grade"]["labels"]) == ("ordinal", {"a": "best"})
    assert (found["ok"]["true"], found["ok"]["false"]) == (["1"], ["0"])
    assert (found["day"]["format"], found["day"]["min"]) == ("%d/%m/%Y", "2020-01-01")
    assert (found["year"]["kind"], found["year"]["format"]) == ("date", "%Y")
    assert [line.split(" ")[2] for line in left_out(path)] == ["id", "mail", "story", "where"]


def test_a_data_package_holds_several_tables(tmp_path):
    resources = [{"name": "visits", "schema": TABLE_SCHEMA}, {"name": "labs", "schema": {"fields": [{"name": "crp"}]}}]
    path = file(tmp_path, "datapackage.json", json.dumps({"resources": resources}))
    with pytest.raises(DataError, match="the package has the tables visits, labs; choose one by --table"):
        read_dictionary(path)
    assert list(drafted(path, "visits")) == list(drafted(file(tmp_path, "alone.json", json.dumps(TABLE_SCHEMA))))


# SQL


SQL = """
-- the registry
CREATE TABLE "hospital" (id integer primary key);
CREATE TABLE IF NOT EXISTS public.admission (
  admission_id BIGSERIAL PRIMARY KEY,   -- key, kept
  patient_id   bigint NOT NULL REFERENCES patient (id),
  age          smallint NOT NULL CHECK (age BETWEEN 0 AND 120),  -- at admission, in years
  sex          char(1) NOT NULL CHECK (sex IN ('f', 'm', 'o''')),
  "Höhe"       numeric(5,1), /* in cm */
  cost         decimal(10, 2) CHECK (cost >= 0),
  urgent       boolean,
  ward         ENUM('A','B, C') COMMENT 'the ward, as of the night',
  day          date NOT NULL,
  seen         timestamp with time zone,
  story        text,
  title        varchar(200),
  code         varchar(7),
  visits       number(4),
  CONSTRAINT c CHECK (visits >= 1 AND visits <= 99),
  FOREIGN KEY (ward) REFERENCES ward (id)
);
COMMENT ON COLUMN public.admission.code IS 'ICD-10''s code';
COMMENT ON COLUMN hospital.id IS 'not this';
"""


def test_create_table(tmp_path):
    path = file(tmp_path, "tables.sql", SQL)
    found = drafted(path, "admission")
    assert list(found) == ["age", "sex", "Höhe", "cost", "urgent", "ward", "day", "seen", "code", "visits"]
    assert found["age"] == {
        "name": "age", "kind": "integer", "description": "at admission, in years", "min": 0, "max": 120, "bins": 20,
    }  # fmt: skip
    assert (found["sex"]["values"], "missing" in found["sex"]) == (["f", "m", "o'"], False)
    assert (found["Höhe"]["kind"], found["Höhe"]["decimals"], found["Höhe"]["description"]) == ("real", 1, "in cm")
    assert (found["cost"]["min"], found["cost"]["max"], found["cost"]["missing"]) == (0, {MARK: None}, [""])
    assert found["urgent"]["kind"] == "boolean"
    assert (found["ward"]["values"], found["ward"]["description"]) == (["A", "B, C"], "the ward, as of the night")
    assert (found["day"]["kind"], found["seen"]["kind"]) == ("date", "datetime")
    assert (found["code"]["values"], found["code"]["description"]) == ({MARK: []}, "ICD-10's code")
    assert (found["visits"]["kind"], found["visits"]["min"], found["visits"]["max"]) == ("integer", 1, 99)
    with pytest.raises(DataError, match="the file creates the tables hospital, admission; choose one by --table"):
        read_dictionary(path)


# Commands and refusals


def test_a_draft_is_refused_until_its_marks_are_replaced(tmp_path, capsys):
    path, out = file(tmp_path, "dict.csv", DICTIONARY), tmp_path / "schema.json"
    assert main(["schemas", "draft", str(path), "--title", "Admissions", "--out", str(out)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"wrote {out}: 8 columns"
    assert said[1].startswith("4 fields are marked as to be justified from public knowledge: replace every mark")
    with pytest.raises(SchemaError) as caught:
        Schema.parse(out.read_bytes())
    assert len(caught.value.problems) == 4
    assert all(MARK in problem for problem in caught.value.problems)
    text = out.read_text(encoding="utf-8")
    for place, known in (('"min"', '"2019"'), ('"max"', '"2023"'), ('"min"', "0"), ('"max"', "500")):
        text = text.replace(f'{place}: {{"{MARK}": null}}', f"{place}: {known}", 1)
    assert len(Schema.parse(text).names) == 8


def test_forty_columns_are_drafted_in_a_moment(tmp_path, capsys):
    lines = ["variable,type,min,max,values,unit,label"]
    lines += [f"lab_{number},decimal,0,{number + 10},,mg/l,Laboratory value {number}" for number in range(20)]
    lines += [f'code_{number},factor,,,"0=no|1=yes|2=unknown",,Answer {number}' for number in range(20)]
    path, out = file(tmp_path, "forty.csv", "\n".join(lines)), tmp_path / "s.json"
    assert main(["schemas", "draft", str(path), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"wrote {out}: 40 columns\n"
    assert len(Schema.parse(out.read_bytes()).names) == 40


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("d.csv", "a,b\n1,2\n", "this is no data dictionary: no column is called variable, name, field or column"),
        ("d.csv", "", "the file is empty"),
        ("d.csv", "variable,type\n", "describes 0 columns; 1 to 2000 are expected"),
        ("d.json", "[", "this is not JSON that can be read"),
        ("d.json", "{}", 'this is no Table Schema: a list "fields" of objects with a "name" is expected'),
        ("d.json", '{"fields": [{"name": "a"}], "primaryKey": 5}', '"primaryKey" is no name and no list of names'),
        ("d.json", '{"resources": 5}', '"resources" is no list of tables'),
        ("d.sql", "SELECT 1", "the file creates the tables none; choose one by --table"),
        ("d.sql", "CREATE TABLE t (\n)", "describes 0 columns"),
        ("d.xlsx", "no zip", "not a readable Excel file"),
        ("none.csv", None, "cannot be read: No such file or directory"),
        ("none.sql", None, "cannot be read: No such file or directory"),
    ],
)
def test_what_is_no_dictionary_is_refused(tmp_path, capsys, name, content, what):
    if content is not None:
        file(tmp_path, name, content)
    assert main(["schemas", "draft", str(tmp_path / name)]) == 2
    assert what in capsys.readouterr().err


@pytest.mark.parametrize(
    "more",
    [
        '"constraints": {"maxLength": "x"}',
        '"missingValues": [{"x": 1}]',
        '"constraints": {"minimum": 1e999999, "maximum": -1e999999}',
    ],
)
def test_words_of_other_types_in_a_frictionless_schema_are_passed_over(tmp_path, more):
    path = file(tmp_path, "d.json", f'{{"fields": [{{"name": "a", {more}}}]}}')
    assert [column.name for column in read_dictionary(path).columns] == ["a"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("d.sql", "CREATE TABLE t (a int, " + "/*" * 300_000 + " b int);"),
        ("d.sql", "CREATE TABLE t (a int " + "a" * 100_000 + ",\n b int);"),
        ("d.csv", 'variable,type,values\na,factor,"1' + " " * 120_000 + 'x"\n'),
    ],
)
def test_a_long_text_takes_no_time(tmp_path, name, text):
    path, began = file(tmp_path, name, text), process_time()
    assert read_dictionary(path).columns[0].name == "a"
    assert process_time() - began < 10


@pytest.mark.parametrize("last", ["XFD1048576", "CV1048576"])
def test_a_cell_far_away_is_refused_before_a_table_is_made(tmp_path, last):
    write_far_excel(tmp_path / "d.xlsx", last)
    with pytest.raises(DataError, match="a sheet reaches to row 1,048,576 and column"):
        read_dictionary(tmp_path / "d.xlsx")


def test_a_file_of_rows_is_no_dictionary(tmp_path):
    with (tmp_path / "rows.csv").open("wb") as rows:
        rows.truncate((64 << 20) + 1)
    with pytest.raises(DataError, match="is larger than 64 MB: a data dictionary describes columns, not rows"):
        read_dictionary(tmp_path / "rows.csv")
