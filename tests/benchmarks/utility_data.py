"""The public tables on which utility is measured, and what is asked of a synthetic copy of each.

It does not know any method. The tables are not part of the project: they are looked for in ../shared/data, or where
SUBN_DATA says.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from curator.experiments.evaluation import Evaluation

ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("SUBN_DATA", ROOT.parent / "shared" / "data"))

Task = tuple[tuple[tuple[str, tuple[str, ...]], ...], tuple[str, ...], tuple[int, ...]]  # targets, hidden, ways

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
    source = DATA[data]
    return Evaluation(source.table, synthetic, source.schema, ways, targets, without)
