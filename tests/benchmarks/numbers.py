"""Errors of means, standard deviations and quartiles in published tables, and how often the report's ranges hold.

`python -m tests.benchmarks.numbers --seeds 20 [--table cost|messy|adult] [--data ../shared/data]`: repeatable, since
every table, noise and row is drawn from the seed. The first table is made up, the second is that of `subn sample-data
--messy`, and the third are the numbers of Adult with public edges.
"""

import argparse
import csv
import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crypto.randomness import Stream
from curator.experiments.coded_tables import DividedTable
from curator.experiments.messy_data import HEADER, SCHEMA, admissions
from curator.experiments.simulate import ExperimentSettings, prepare, stream_of_seed
from curator.experiments.simulation import simulate
from curator.results.report_figures import analysis
from protocol.run.synthesis import synthetic_codes
from protocol.tables.coding import Coder, labels
from protocol.tables.distance import average_distance
from protocol.tables.schema import Schema

Column = Sequence[str]
FIGURES = ("mean", "deviation", "q1", "median", "q3")
_MEAN, _DEVIATION = 5260.0, 8621.0  # of the made costs
COSTS = {
    "title": "Made costs",
    "attributes": [
        {"name": "cost in equal bins", "kind": "real", "min": 0, "max": 500_000, "bins": 50, "decimals": 2},
        {"name": "cost on a log scale", "kind": "real", "min": 0, "max": 500_000, "bins": 24, "scale": "log",
         "decimals": 2},
        {"name": "age", "kind": "integer", "min": 0, "max": 110, "bins": 22},
        {"name": "days", "kind": "integer", "min": 0, "max": 365, "bins": 14, "scale": "sqrt"},
        {"name": "sex", "kind": "categorical", "values": ["f", "m"]},
        {"name": "ward", "kind": "categorical", "values": ["a", "b", "c", "d", "e", "f"]},
    ],
}  # fmt: skip
ADULT = {
    "title": "Numbers of Adult",
    "attributes": [
        {"name": "age", "kind": "integer", "min": 17, "max": 90, "bins": 16},
        {"name": "fnlwgt", "kind": "integer", "min": 0, "max": 1_500_000, "bins": 24, "scale": "sqrt"},
        {"name": "education-num", "kind": "integer", "min": 1, "max": 16},
        # Hours are told in fives, as everybody knows: each of the usual ones has a bin of its own.
        {"name": "hours-per-week", "kind": "integer",
         "edges": [1, 10, 20, 21, 25, 26, 30, 31, 35, 36, 40, 41, 45, 46, 50, 51, 60, 61, 80, 99]},
        {"name": "sex", "kind": "categorical", "values": ["Female", "Male"]},
        {"name": "income", "kind": "categorical", "values": ["<=50K", ">50K"]},
    ],
}  # fmt: skip


def costs(seed: int, _data: Path) -> tuple[Schema, dict[str, Column]]:
    rows, random = 15_000, np.random.default_rng(seed)
    spread = np.sqrt(np.log(1 + (_DEVIATION / _MEAN) ** 2))
    normal = random.normal(size=(2, rows))
    cost = np.exp(np.log(_MEAN) - spread**2 / 2 + spread * normal).clip(0, 499_999)
    age = np.clip(random.normal(55, 20, rows) + 3 * normal[0], 0, 110).astype(int)
    days = np.clip(random.exponential(6 + normal[0].clip(-2, 4)), 0, 365).astype(int)
    wards = random.choice(list("abcdef"), rows, p=[0.4, 0.3, 0.1, 0.1, 0.06, 0.04])
    columns = [*([f"{value:.2f}" for value in own] for own in cost), age, days, random.choice(["f", "m"], rows), wards]
    schema = Schema.parse(COSTS)
    return schema, {name: [str(value) for value in own] for name, own in zip(schema.names, columns, strict=True)}


def messy(seed: int, _data: Path) -> tuple[Schema, dict[str, Column]]:
    columns: dict[str, list[str]] = {name: [] for name in HEADER}
    stream = Stream.keyed(b"%d" % seed, "messy benchmark")
    for index in range(3):
        found = admissions(index, 5000, stream.child(str(index)))
        for name, own in zip(HEADER, found.texts(".", np.zeros(5000, int)), strict=True):
            columns[name] += own
    schema = Schema.parse(SCHEMA)
    listed = set(SCHEMA["attributes"][4]["values"])
    columns["diagnosis"] = [code if code in listed else "other" for code in columns["diagnosis"]]
    return schema, {name: columns[name] for name in schema.names}


def adult(seed: int, data: Path) -> tuple[Schema, dict[str, Column]]:
    """Return 15,000 rows of Adult, others for every seed."""
    with gzip.open(data / "adult_raw" / "adult_raw.csv.gz", "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    chosen = np.random.default_rng(seed).permutation(len(rows))[:15_000]
    schema = Schema.parse(ADULT)
    return schema, {name: [rows[place][name].strip(" .") for place in chosen] for name in schema.names}


TABLES = {"cost": costs, "messy": messy, "adult": adult}


def measure(name: str, seed: int, method: str, privacy: str, data: Path) -> tuple[float, dict[str, Any]]:
    """Return the error of pairs, and for every number its errors and whether the ranges hold."""
    schema, columns = TABLES[name](seed, data)
    codes = Coder(schema).code(zip(*columns.values(), strict=True))
    stream = stream_of_seed(seed)
    settings = ExperimentSettings("1", 3, method, "sound", "random", {"privacy": privacy})  # type: ignore[arg-type]
    own, terms, identities = prepare(settings, DividedTable(schema, codes, None), stream)
    known = simulate(terms, own, identities, stream, real_crypto=False).state.knowledge
    batches = list(synthetic_codes(terms, known, terms.plan.rows, stream.child("rows")))
    drawn = [np.concatenate(parts) for parts in zip(*batches, strict=True)]
    texts = dict(zip(schema.names, labels(schema, drawn, stream.child("values")), strict=True))
    tally = [np.bincount(column, minlength=size) for column, size in zip(drawn, schema.sizes, strict=True)]
    found = {}
    for one in analysis(terms, known, tally)["numbers"]:
        attribute = schema.attributes[schema.names.index(one["attribute"])]
        if attribute.kind in ("integer", "real"):
            missing = set(attribute.missing)
            real, made = (figures(side[attribute.name], missing) for side in (columns, texts))
            found[attribute.name] = errors(real, made), list(holds(real, one["figures"].values()))
    return average_distance(codes, drawn, schema.sizes, 2), found


def figures(column: Column, missing: set[str]) -> Any:
    values = np.array([float(text) for text in column if text not in missing])
    return np.array([values.mean(), values.std(), *np.quantile(values, (0.25, 0.5, 0.75))])


def errors(real: Any, made: Any) -> Any:
    """Relative errors of mean and deviation, and errors of quartiles as shares of their distance."""
    return (made - real) / np.array([real[0], real[1], *[real[4] - real[2]] * 3])


def holds(real: Any, ranges: Any) -> Iterator[bool]:
    """Whether each range holds the real figure. The report writes six digits."""
    for value, one in zip(real, ranges, strict=True):
        slack = 1e-5 * abs(value)
        yield one["low"] - slack <= value <= one["high"] + slack


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=1001)
    parser.add_argument("--table", choices=TABLES, action="append")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    chosen, _ = parser.parse_known_args()
    held: list[bool] = []
    for name in chosen.table or TABLES:
        for method, privacy in (("recommended", "pure"), ("recommended", "zcdp"), ("dp-subn", "pure")):
            runs = [measure(name, chosen.first + seed, method, privacy, chosen.data) for seed in range(chosen.seeds)]
            print(f"\n{name}, {method}, {privacy}: error of pairs {np.mean([pairs for pairs, _ in runs]):.4f}")
            print(f"{'root mean square error':<24}" + "".join(f"{figure:>10}" for figure in FIGURES) + "   ranges hold")
            for column in runs[0][1]:
                own = np.array([found[column][0] for _, found in runs])
                inside = np.array([found[column][1] for _, found in runs])
                held += inside.ravel().tolist()
                sizes = "".join(f"{100 * value:>8.1f} %" for value in np.sqrt((own**2).mean(axis=0)))
                print(f"{column:<24}{sizes}   {100 * inside.mean():.0f} %", flush=True)
    print(f"\nranges that hold the real figure: {100 * np.mean(held):.1f} % of {len(held)}")


if __name__ == "__main__":
    main()
