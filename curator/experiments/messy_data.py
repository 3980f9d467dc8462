"""Made-up admissions as hospitals export them: each hospital writes them in its own way, and the truth is known.

It does not know any real person: every value comes from the formulas below and a stream of random words.

A patient has one admission or several, and a few patients were at two hospitals. Ages and costs have decimals, costs
are skewed, days of admission are dates, values are missing under two tokens, and rare diagnoses are on no list. The
files differ: semicolons, decimal commas and Windows-1252; commas, decimal points and UTF-8 with a byte order mark;
Parquet with types. All have columns that no schema names.
"""

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from crypto.randomness import Stream
from curator.experiments.sample_data import Draw
from curator.results.csv_files import write_table
from protocol.tables.text_column import TextColumn

Numbers = Any  # a vector of numbers, one per row

FIRST_DAY, DAYS = date(2019, 1, 1), 4 * 365 + 1
DIAGNOSES: Mapping[str, tuple[str, float, float]] = {  # by code: its title, its share, its mean stay in days
    "A09": ("Gastroenteritis", 0.05, 4), "C34.1": ("Malignant neoplasm of the lung", 0.03, 9),
    "C50.4": ("Malignant neoplasm of the breast", 0.03, 6), "E10.9": ("Type 1 diabetes", 0.02, 5),
    "E11.7": ("Type 2 diabetes with complications", 0.04, 8), "E11.9": ("Type 2 diabetes", 0.05, 5),
    "F10.2": ("Alcohol dependence", 0.05, 11), "F32.1": ("Depressive episode", 0.04, 24),
    "G40.2": ("Epilepsy", 0.03, 5), "I10.0": ("Hypertension", 0.06, 4), "I20.0": ("Angina pectoris", 0.05, 4),
    "I21.4": ("Myocardial infarction", 0.05, 8), "I48.0": ("Atrial fibrillation", 0.05, 4),
    "I50.1": ("Heart failure", 0.08, 10), "I63.5": ("Cerebral infarction", 0.05, 12), "J18.9": ("Pneumonia", 0.07, 9),
    "J44.1": ("COPD", 0.05, 8), "K35.8": ("Appendicitis", 0.04, 4), "K80.1": ("Gallstones", 0.05, 5),
    "M16.1": ("Osteoarthritis of the hip", 0.03, 10), "S72.0": ("Fracture of the femur", 0.04, 14),
}  # fmt: skip
RARE = ("D86.9", "L40.0", "Q21.1", "T78.2")  # on no list: together they have what is left of the shares
WARDS = ("Chirurgie", "Innere Medizin", "Gynäkologie", "Pädiatrie", "Notaufnahme")
SEXES = ("w", "m")
MISSING = ("", "k.A.")
NOTES = ("", "Verlegung geplant", "Rücksprache mit Angehörigen", 'sagt: "geht besser"; Kontrolle')
SCHEMA: dict[str, Any] = {
    "title": "Made-up admissions",
    "attributes": [
        {"name": "age", "kind": "real", "min": 0, "max": 110, "bins": 22, "decimals": 1, "unit": "years",
         "missing": ["", "k.A."], "description": "at admission"},
        {"name": "sex", "kind": "categorical", "values": list(SEXES), "missing": ["", "k.A."],
         "labels": {"w": "female", "m": "male"}},
        {"name": "ward", "kind": "categorical", "values": list(WARDS)},
        {"name": "admitted", "kind": "date", "min": "2019", "max": "2022", "resolution": "month",
         "format": "%d.%m.%Y", "description": "day of admission"},
        {"name": "diagnosis", "kind": "categorical", "values": list(DIAGNOSES), "other": "other",
         "labels": {code: title for code, (title, _, _) in DIAGNOSES.items()}, "taxonomy": {"prefix": [1, 3]},
         "description": "main diagnosis, ICD-10"},
        {"name": "emergency", "kind": "boolean", "true": ["ja"], "false": ["nein"], "missing": ["", "k.A."]},
        {"name": "days", "kind": "integer", "min": 0, "max": 365, "bins": 14, "scale": "sqrt", "unit": "days",
         "description": "length of stay"},
        {"name": "cost", "kind": "real", "min": 0, "max": 500_000, "bins": 24, "scale": "log", "decimals": 2,
         "unit": "euro", "missing": ["", "k.A."], "description": "of the stay"},
    ],
}  # fmt: skip
HEADER = ("patient_id", *(attribute["name"] for attribute in SCHEMA["attributes"]))
_DICTIONARY = """column;type;meaning;codes;unit;minimum;maximum;missing;format;decimals;identifier
patient_id;text;number of the insured;;;;;;;;yes
age;decimal;at admission;;years;0;110;{missing};;1;
sex;code;;w=female | m=male;;;;{missing};;;
ward;code;;{wards};;;;;;;
admitted;date;day of admission;;;2019;2022;;DD.MM.YYYY;;
diagnosis;code;main diagnosis, ICD-10;{diagnoses};;;;;;;
emergency;boolean;;nein=no | ja=yes;;;;{missing};;;
days;integer;length of stay;;days;0;365;;;;
cost;decimal;of the stay;;euro;0;500000;{missing};;2;
Bemerkung;free text;;;;;;;;;
"""


@dataclass(frozen=True)
class Admissions:
    """The admissions of one hospital; a mask says which values are missing."""

    patients: list[str]
    values: Mapping[str, Numbers]
    missing: Mapping[str, Numbers]

    def texts(self, decimal: str, spell_missing: Numbers) -> list[list[str]]:
        """Write the columns, the patients first. `spell_missing` chooses a token for every row."""
        columns = [self.patients]
        for name in HEADER[1:]:
            gone = self.missing.get(name)
            texts = _texts(name, self.values[name], decimal)
            if gone is not None:
                texts = [MISSING[spell_missing[row]] if gone[row] else text for row, text in enumerate(texts)]
            columns.append(texts)
        return columns


def admissions(index: int, rows: int, stream: Stream) -> Admissions:
    """Make up a hospital's admissions. Hospitals differ in their patients' age, wards and costs."""
    draw = Draw(rows, stream)
    patients, first = _patients(draw, index, rows)
    born = np.clip(draw.normal(46 + 7 * index, 23), 0, 100)[first]
    admitted = np.sort((draw.uniform() * DAYS).astype(int))
    age = np.clip(np.round(born + admitted / 365.25, 1), 0, 110)
    shares = np.array([share for _, share, _ in DIAGNOSES.values()])
    weights = np.append(shares, max(0.0, 1 - shares.sum())) * (1 + 0.3 * np.cos(np.arange(len(shares) + 1) + index))
    diagnosis = draw.one_of(list(weights))
    stay = np.array([*(days for _, _, days in DIAGNOSES.values()), 7.0])[diagnosis]
    days = np.clip(draw.exponential(stay * (0.6 + age / 110)), 0, 365).astype(int)
    cost = np.round(np.exp(6.6 + 0.15 * index + draw.normal(0.0, 0.75)) * (1 + days / 2.5), 2)
    return Admissions(
        patients,
        {
            "age": age,
            "sex": draw.chance(0.48)[first],
            "ward": draw.one_of([(0.3, 0.35, 0.1, 0.1, 0.15)[(ward + index) % 5] for ward in range(5)]),
            "admitted": admitted,
            "diagnosis": diagnosis,
            "emergency": draw.chance(0.3 + 0.1 * index),
            "days": days,
            "cost": np.clip(cost, 0, 500_000),
        },
        {
            "age": draw.chance(0.01) == 1,
            "sex": draw.chance(0.02) == 1,
            "emergency": draw.chance(0.05) == 1,
            "cost": draw.chance(0.04) == 1,
        },
    )


def _patients(draw: Draw, index: int, rows: int) -> tuple[list[str], Numbers]:
    """Return the patient of every row, and a row of each patient, which fixes what does not change.

    One patient in about twenty is also a patient of the next hospital.
    """
    person = np.cumsum(draw.chance(0.7))  # a row is that of the person before with probability 0.3
    guest = draw.chance(0.05)[person % rows] == 1
    home = np.where(guest, index + 1, index)
    return [f"K{place:02d}{number:07d}" for place, number in zip(home, person, strict=True)], person % rows


def _texts(name: str, values: Numbers, decimal: str) -> list[str]:
    codes = [*DIAGNOSES, *RARE]
    writers: Mapping[str, Callable[[Any], str]] = {
        "age": lambda value: f"{value:.1f}".replace(".", decimal),
        "cost": lambda value: f"{value:.2f}".replace(".", decimal),
        "days": str,
        "sex": lambda value: SEXES[value],
        "ward": lambda value: WARDS[value],
        "emergency": lambda value: ("nein", "ja")[value],
        "admitted": lambda value: f"{FIRST_DAY + timedelta(days=value):%d.%m.%Y}",
    }
    if name == "diagnosis":
        rare = len(DIAGNOSES)
        return [codes[code + (row % len(RARE)) * (code == rare)] for row, code in enumerate(values.tolist())]
    return [writers[name](value) for value in values.tolist()]


def write_messy(out: Path, parties: int, rows: int, seed: int) -> list[str]:
    """Write a file for each hospital in its own way, a data dictionary, a schema, all rows together, and the truth."""
    out.mkdir(parents=True, exist_ok=True)
    stream = Stream.keyed(b"%d" % seed, "messy data")
    hospitals = [admissions(index, rows, stream.child(f"hospital {index}")) for index in range(parties)]
    names, pooled = [], []
    for index, found in enumerate(hospitals):
        spelling = Draw(rows, stream.child(f"spelling {index}"))
        name = f"hospital-{index + 1}{('.csv', '.csv', '.parquet')[index % 3]}"
        _WRITERS[index % 3](out / name, found, spelling)
        names.append(name)
        texts = [f"hospital-{index + 1}"] * rows, *found.texts(".", np.zeros(rows, int))
        pooled.append([TextColumn.of_rows(column) for column in texts])
    write_table(out / "all.csv", ["hospital", *HEADER], pooled)
    (out / "dictionary.csv").write_bytes(_dictionary().encode("cp1252"))
    for file, content in (("schema.json", SCHEMA), ("truth.json", truth(hospitals))):
        (out / file).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return names


def _as_spreadsheet(path: Path, found: Admissions, draw: Draw) -> None:
    columns = found.texts(",", draw.chance(0.5))
    _write(path, ";", "cp1252", "\r\n", ["Bemerkung", *HEADER], [_notes(draw), *columns])


def _as_program(path: Path, found: Admissions, draw: Draw) -> None:
    columns = dict(zip(HEADER, found.texts(".", np.zeros(len(found.patients), int)), strict=True))
    header = [*reversed(HEADER), "Bemerkung"]
    _write(path, ",", "utf-8-sig", "\n", header, [*(columns[name] for name in reversed(HEADER)), _notes(draw)])


def _as_types(path: Path, found: Admissions, _draw: Draw) -> None:
    """Write Parquet as a data warehouse does: dates, decimals and booleans are typed, and missing values are null."""
    import pyarrow as pa
    import pyarrow.parquet

    columns = dict(zip(HEADER, found.texts(".", np.zeros(len(found.patients), int)), strict=True))
    days = [FIRST_DAY + timedelta(days=day) for day in found.values["admitted"].tolist()]
    typed = {
        "age": pa.array([float(text) if text else None for text in columns["age"]]),
        "admitted": pa.array(days, pa.date32()),
        "emergency": pa.array([{"ja": True, "nein": False}.get(text) for text in columns["emergency"]]),
        "days": pa.array(found.values["days"], pa.int16()),
        "cost": pa.array([text or None for text in columns["cost"]]).cast(pa.decimal128(8, 2)),
    }
    table = {name: typed.get(name, pa.array([text or None for text in texts])) for name, texts in columns.items()}
    pa.parquet.write_table(pa.table(table), path)


def _notes(draw: Draw) -> list[str]:
    return [NOTES[number] for number in draw.one_of([0.6, 0.2, 0.1, 0.1])]


def _write(
    path: Path, delimiter: str, encoding: str, end: str, header: Sequence[str], columns: Sequence[Sequence[str]]
) -> None:
    with path.open("w", encoding=encoding, newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator=end)
        writer.writerow(header)
        writer.writerows(zip(*columns, strict=True))


_WRITERS = (_as_spreadsheet, _as_program, _as_types)


def _dictionary() -> str:
    codes = " | ".join(f"{code}={title}" for code, (title, _, _) in DIAGNOSES.items())
    return _DICTIONARY.format(wards=" | ".join(WARDS), diagnoses=codes, missing="=not recorded | k.A.=not asked")


def truth(hospitals: Sequence[Admissions]) -> dict[str, Any]:
    """Return what is true of all rows together: of numbers their distribution, of categories their shares."""
    people: dict[str, int] = {}
    for hospital in hospitals:
        for patient in hospital.patients:
            people[patient] = people.get(patient, 0) + 1
    columns: dict[str, Any] = {}
    for name in HEADER[1:]:
        values = np.concatenate([hospital.values[name] for hospital in hospitals])
        none = [np.zeros(len(hospital.patients), bool) for hospital in hospitals]
        gone = np.concatenate([one.missing.get(name, empty) for one, empty in zip(hospitals, none, strict=True)])
        present = values[~gone]
        columns[name] = {"missing": float(gone.mean())} | (
            _distribution(present) if name in ("age", "days", "cost") else _shares(name, present)
        )
    return {
        "rows": sum(people.values()),
        "people": len(people),
        "most_rows_of_a_person": max(people.values()),
        "columns": columns,
    }


def _distribution(values: Numbers) -> dict[str, Any]:
    quartiles = [float(quartile) for quartile in np.quantile(values, (0.25, 0.5, 0.75))]
    return {"mean": float(values.mean()), "deviation": float(values.std()), "quartiles": quartiles}


def _shares(name: str, values: Numbers) -> dict[str, Any]:
    listed: Mapping[str, Sequence[str]] = {
        "sex": SEXES,
        "ward": WARDS,
        "emergency": ("nein", "ja"),
        "diagnosis": (*DIAGNOSES, "other"),
    }
    if name == "admitted":
        months = [f"{FIRST_DAY + timedelta(days=int(day)):%Y-%m}" for day in values]
        return {"shares": {month: months.count(month) / len(months) for month in sorted({*months})}}
    counts = np.bincount(values, minlength=len(listed[name]))
    return {"shares": dict(zip(listed[name], (counts / len(values)).tolist(), strict=True))}
