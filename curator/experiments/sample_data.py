"""Made-up patient records of several hospitals for trying the system out: correlated, uneven, partly missing.

It does not know any real person: every value comes from the formulas below and a stream of random words.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crypto.randomness import Stream
from curator.results.csv_files import write_table
from protocol.tables.text_column import TextColumn

Numbers = Any  # a vector of numbers, one per row

DIAGNOSES = (
    "heart failure", "heart attack", "stroke", "pneumonia", "asthma", "hip fracture", "appendicitis", "birth",
    "cancer", "sepsis",
)  # fmt: skip
_DIAGNOSIS_AT = {  # probability of each diagnosis at 20, 50 and 80 years
    20: (0.01, 0.01, 0.01, 0.08, 0.18, 0.02, 0.26, 0.34, 0.04, 0.05),
    50: (0.10, 0.15, 0.10, 0.12, 0.10, 0.05, 0.10, 0.01, 0.20, 0.07),
    80: (0.22, 0.12, 0.18, 0.16, 0.03, 0.14, 0.01, 0.00, 0.08, 0.06),
}
_DAYS = (7, 5, 9, 7, 3, 11, 3, 3, 8, 12)
_DEADLINESS = (0.09, 0.08, 0.13, 0.08, 0.005, 0.05, 0.002, 0.0005, 0.10, 0.22)

SCHEMA: dict[str, Any] = {
    "title": "Made-up hospital admissions",
    "attributes": [
        {"name": "age", "kind": "integer", "min": 0, "max": 104, "bins": 21},
        {"name": "sex", "kind": "categorical", "values": ["female", "male"]},
        {
            "name": "region",
            "kind": "categorical",
            "values": ["coast", "city centre", "suburb", "valley", "mountains"],
            "taxonomy": {"urban": ["city centre", "suburb"], "rural": ["coast", "valley", "mountains"]},
        },
        {
            "name": "diagnosis",
            "kind": "categorical",
            "values": list(DIAGNOSES),
            "taxonomy": {
                "circulation": ["heart failure", "heart attack", "stroke"],
                "breathing": ["pneumonia", "asthma"],
                "other": ["hip fracture", "appendicitis", "birth", "cancer", "sepsis"],
            },
        },
        {"name": "bmi", "kind": "real", "min": 12, "max": 60, "bins": 12, "missing": [""]},
        {"name": "smoker", "kind": "categorical", "values": ["never", "former", "current"], "missing": [""]},
        {"name": "systolic", "kind": "integer", "min": 70, "max": 229, "bins": 16, "missing": [""]},
        {"name": "diabetes", "kind": "categorical", "values": ["no", "type 1", "type 2"]},
        {"name": "hypertension", "kind": "categorical", "values": ["no", "yes"]},
        {"name": "insurance", "kind": "categorical", "values": ["public", "private", "none"]},
        {"name": "admission", "kind": "categorical", "values": ["planned", "emergency", "transfer"]},
        {"name": "days", "kind": "integer", "min": 0, "max": 59, "bins": 12},
        {"name": "outcome", "kind": "ordinal", "values": ["home", "rehabilitation", "nursing home", "died"]},
        {"name": "readmitted", "kind": "categorical", "values": ["no", "yes"]},
    ],
}
HEADER = tuple(attribute["name"] for attribute in SCHEMA["attributes"])


def hospital(index: int, rows: int, stream: Stream) -> list[list[str]]:
    """Return the columns of one hospital. Hospitals differ in their patients' age, region and insurance."""
    draw = Draw(rows, stream)
    age = np.clip(draw.normal(48 + 9 * np.sin(index), 24), 0, 104).astype(int)
    is_male = draw.chance(0.48)
    region = draw.one_of(_turned((0.30, 0.25, 0.20, 0.15, 0.10), index))
    diagnosis = draw.by_row(_diagnosis_shares(age, is_male))
    bmi = np.clip(draw.normal(22 + 0.12 * age - 0.0009 * age**2, 4.5), 12, 60)
    smoker = draw.by_row(_smoking_shares(age, is_male))
    systolic = np.clip(draw.normal(98 + 0.55 * age + 0.7 * (bmi - 24), 13), 70, 229).astype(int)
    diabetes = np.where(draw.chance(0.006), 1, 2 * draw.chance(_sigmoid(-6.4 + 0.045 * age + 0.12 * (bmi - 24))))
    hypertension = draw.chance(_sigmoid((systolic - 139) / 7))
    insurance = draw.one_of(_turned((0.72, 0.22, 0.06), index % 2))
    admission = draw.by_row(_admission_shares(diagnosis))
    days = np.clip(draw.exponential(np.array(_DAYS)[diagnosis] * (0.6 + age / 100)), 0, 59).astype(int)
    outcome = _outcomes(draw, diagnosis, age)
    readmitted = draw.chance(_sigmoid(-2.6 + 0.5 * (diabetes > 0) + 0.7 * (diagnosis == 0) + 0.4 * (outcome == 2)))
    readmitted &= outcome != 3
    columns: Sequence[tuple[str, Numbers, float]] = (
        ("age", age, 0),
        ("sex", is_male, 0),
        ("region", region, 0),
        ("diagnosis", diagnosis, 0),
        ("bmi", bmi, 0.08 + 0.04 * (index % 3)),
        ("smoker", smoker, 0.05),
        ("systolic", systolic, 0.03),
        ("diabetes", diabetes, 0),
        ("hypertension", hypertension, 0),
        ("insurance", insurance, 0),
        ("admission", admission, 0),
        ("days", days, 0),
        ("outcome", outcome, 0),
        ("readmitted", readmitted, 0),
    )
    return [_texts(name, values, draw.chance(missing)) for name, values, missing in columns]


class Draw:
    """Vectors of random numbers, one per row."""

    def __init__(self, rows: int, stream: Stream) -> None:
        self._rows, self._stream = rows, stream

    def uniform(self) -> Numbers:
        return (self._stream.words64(self._rows) >> np.uint64(11)).astype(np.float64) / 2.0**53

    def chance(self, probability: Any) -> Numbers:
        return (self.uniform() < probability).astype(int)

    def normal(self, mean: Any, deviation: float) -> Numbers:
        return mean + deviation * np.sqrt(-2 * np.log1p(-self.uniform())) * np.cos(2 * np.pi * self.uniform())

    def exponential(self, mean: Any) -> Numbers:
        return -mean * np.log1p(-self.uniform())

    def one_of(self, shares: Sequence[float]) -> Numbers:
        return self.by_row(np.tile(np.array(shares), (self._rows, 1)))

    def by_row(self, shares: Numbers) -> Numbers:
        """Draw a code for each row, with that row's probabilities."""
        steps = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)[:, :-1]
        return (self.uniform()[:, None] >= steps).sum(axis=1)


def _turned(shares: Sequence[float], places: int) -> list[float]:
    return [shares[(i + places) % len(shares)] for i in range(len(shares))]


def _sigmoid(x: Numbers) -> Numbers:
    return 1 / (1 + np.exp(-x))


def _diagnosis_shares(age: Numbers, is_male: Numbers) -> Numbers:
    known = sorted(_DIAGNOSIS_AT)
    table = np.array([_DIAGNOSIS_AT[a] for a in known])
    shares = np.stack([np.interp(age, known, column) for column in table.T], axis=1)
    birth = DIAGNOSES.index("birth")
    shares[(is_male == 1) | (age < 16) | (age > 50), birth] = 0
    return shares


def _smoking_shares(age: Numbers, is_male: Numbers) -> Numbers:
    adult = age >= 16
    former = np.where(adult, np.clip((age - 20) / 160, 0.01, 0.4), 0)
    current = np.where(adult, 0.17 + 0.07 * is_male - 0.0012 * age, 0)
    return np.stack([1 - former - current, former, current], axis=1)


def _admission_shares(diagnosis: Numbers) -> Numbers:
    emergency = np.array((0.7, 0.9, 0.92, 0.75, 0.6, 0.9, 0.85, 0.3, 0.2, 0.85))[diagnosis]
    transfer = np.array((0.1, 0.07, 0.06, 0.05, 0.02, 0.05, 0.02, 0.01, 0.08, 0.12))[diagnosis]
    return np.stack([np.clip(1 - emergency - transfer, 0, 1), emergency, transfer], axis=1)


def _outcomes(draw: Draw, diagnosis: Numbers, age: Numbers) -> Numbers:
    died = np.array(_DEADLINESS)[diagnosis] * np.clip(age / 60, 0.2, 1.8)
    nursing = np.clip((age - 65) / 120, 0, 0.25)
    rehabilitation = np.array((0.08, 0.15, 0.35, 0.03, 0.01, 0.45, 0.01, 0.0, 0.08, 0.12))[diagnosis]
    return draw.by_row(np.stack([1 - died - nursing - rehabilitation, rehabilitation, nursing, died], axis=1).clip(0))


def _texts(name: str, values: Numbers, missing: Numbers) -> list[str]:
    attribute = next(a for a in SCHEMA["attributes"] if a["name"] == name)
    if "values" in attribute:
        texts = [attribute["values"][int(value)] for value in values]
    elif attribute["kind"] == "integer":
        texts = [str(int(value)) for value in values]
    else:
        texts = [f"{value:.1f}" for value in values]
    return ["" if gone else text for text, gone in zip(texts, missing, strict=True)]


def all_hospitals(count: int, rows: int, stream: Stream) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield the name and the columns of each hospital."""
    for index in range(count):
        yield f"hospital-{index + 1}", hospital(index, rows, stream.child(f"hospital {index}"))


def write_sample(out: Path, parties: int, rows: int, seed: int) -> None:
    """Write a schema, one table for each hospital, and one table of all."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "schema.json").write_text(json.dumps(SCHEMA, indent=1) + "\n", encoding="utf-8")
    pooled = []
    for name, texts in all_hospitals(parties, rows, Stream.keyed(b"%d" % seed, "sample data")):
        columns = [TextColumn.of_rows(column) for column in texts]
        write_table(out / f"{name}.csv", HEADER, [columns])
        pooled.append([TextColumn.of_rows([name] * rows), *columns])
    write_table(out / "all.csv", ["hospital", *HEADER], pooled)
