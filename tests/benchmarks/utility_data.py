"""The public tables on which utility is measured, and what is asked of a synthetic copy of each.

It does not know any method. The tables are not part of the project: they are looked for in ../shared/data, or where
SUBN_DATA says.
"""

import csv
import gzip
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curator.experiments.evaluation import Evaluation

ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("SUBN_DATA", ROOT.parent / "shared" / "data"))

Task = tuple[tuple[tuple[str, tuple[str, ...]], ...], tuple[str, ...], tuple[int, ...]]  # targets, hidden, ways

FINE = "adult-fine"  # Adult as distributed, with numbers in up to 100 bins and without the weights of its survey
_BINS = 100
POST_SECONDARY = ("Assoc-acdm", "Assoc-voc", "Bachelors", "Doctorate", "Masters", "Prof-school")


@dataclass(frozen=True)
class Source:
    table: Path
    schema: Path


DATA = {
    name: Source(FOLDER / name / file, FOLDER / name / "schema.json")
    for name, file in {
        "adult": "adult.csv",
        "nltcs": "nltcs.csv",
        "acs": "acs.csv",
        "retail": "retail_top50.csv",
    }.items()
}


def source_of(data: str) -> Source:
    """The table's files; those of fine-grained Adult are written first."""
    return _fine_adult() if data == FINE else DATA[data]


def _fine_adult() -> Source:
    folder = ROOT / "build" / FINE
    found = Source(folder / "table.csv", folder / "schema.json")
    if not found.table.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with gzip.open(FOLDER / "adult_raw" / "adult_raw.csv.gz", "rt", encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
        known = json.loads((FOLDER / "adult_raw" / "schema.json").read_text())["attributes"]
        columns = {
            name: _binned(one, [row[header.index(name)] for row in rows])
            for one in known
            if (name := one["name"]) != "fnlwgt"
        }
        attributes = [{"name": name, "kind": "categorical", "values": values} for name, (values, _) in columns.items()]
        found.schema.write_text(json.dumps({"title": FINE, "attributes": attributes}), encoding="utf-8")
        with found.table.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(zip(*(cells for _, cells in columns.values()), strict=True))
    return found


def _binned(attribute: dict[str, Any], cells: Sequence[str]) -> tuple[list[str], list[str]]:
    """The categories of a column and its cells: categories of text as they are, numbers by their equal bin."""
    if attribute["kind"] == "categorical":
        return sorted(set(cells)), list(cells)
    least, span = attribute["min"], attribute["max"] - attribute["min"] + 1
    bins = min(_BINS, span)
    return [f"{place}" for place in range(bins)], [f"{(int(cell) - least) * bins // span}" for cell in cells]


def tasks_of(data: str) -> list[Task]:
    """Pairs and triples for all; salary and degree for Adult, whose two columns on education give each other away."""
    if data != "adult":
        return [((), (), (2, 3))]
    return [
        ((("income", ()),), (), (2, 3)),
        ((("education", POST_SECONDARY),), ("education-num",), ()),
    ]


def evaluation_of(
    data: str,
    synthetic: Path,
    targets: tuple[tuple[str, tuple[str, ...]], ...],
    without: tuple[str, ...],
    ways: tuple[int, ...],
) -> Evaluation:
    source = source_of(data)
    return Evaluation(source.table, synthetic, source.schema, ways, targets, without)
