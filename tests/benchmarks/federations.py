"""Errors of federations whose members differ, as ratios to the error where the same rows are dealt out at random.

    python -m tests.benchmarks.federations --table hospitals generated --method dp-subn --seeds 10 --first 1

Runs are kept in build/federations and are not repeated, so delete that folder after the code has changed. Seeds are the
outermost loop: a run that is stopped leaves whole divisions to compare.
"""

import argparse
import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np

from curator.experiments.coded_tables import DividedTable, read_divided
from curator.experiments.sample_data import write_sample
from curator.experiments.simulate import ExperimentSettings, as_published, prepare, stream_of_seed
from curator.experiments.simulation import simulate
from curator.operator.schema_files import read_schema
from protocol.run.synthesis import synthetic_codes
from protocol.tables.distance import average_distance
from tests.benchmarks.made_tables import made_table, two_kinds
from tests.benchmarks.utility_data import FINE, ROOT, source_of

OUT = ROOT / "build" / "federations"
HOSPITALS, GENERATED = "hospitals", "generated"
# 80,000 rows of 50 attributes of two values and of two kinds, and how far the kinds differ.
KINDS = {f"kinds-{strength}": strength for strength in (0.0, 0.1, 0.2, 0.3, 0.4)}
# Attributes by which rows are sorted or dealt out.
ATTRIBUTE = {
    HOSPITALS: "age",
    GENERATED: "a3",
    "adult": "education",
    "nltcs": "grocery shopping",
    "acs": "a19",
    "retail": "item39",
    FINE: "education",
    **dict.fromkeys(KINDS, "a0"),
}
DIVISIONS = ("random", "sorted:{}", "dirichlet:{}:0.1", "dirichlet:{}:0.5", "largest:0.8", "sorted:{},largest:0.8")
OWN = "file:hospital"
_PATIENTS = 12_000
_GENERATED_SEED = 22  # eleven attributes of 2 to 8 categories, 7,300 rows of four hidden kinds
Record = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    table: str
    method: str
    privacy: str
    insiders: int
    parties: int
    epsilon: str
    division: str
    seed: int
    asks: bool = True  # how strongly columns depend, where plans do

    @property
    def key(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


def settings(chosen: argparse.Namespace) -> Iterator[Setting]:
    for seed in range(chosen.first, chosen.first + chosen.seeds):
        for table, method, privacy, parties in product(chosen.table, chosen.method, chosen.privacy, chosen.parties):
            for epsilon, division in product(chosen.epsilon, divisions(table)[: 1 if chosen.random else None]):
                asks = not chosen.silent
                yield Setting(table, method, privacy, chosen.insiders, parties, epsilon, division, seed, asks)


def divisions(table: str) -> list[str]:
    """The divisions of a table; the made-up hospitals also have that of their own patients."""
    found = [division.format(ATTRIBUTE[table]) for division in DIVISIONS]
    return [*found, OWN] if table == HOSPITALS else found


@lru_cache(maxsize=4)
def table_of(table: str, parties: int) -> DividedTable:
    if table == GENERATED:
        return made_table("tuning", _GENERATED_SEED)
    if table in KINDS:
        return two_kinds(50, KINDS[table], 80_000)
    if table == HOSPITALS:
        with TemporaryDirectory() as folder:
            write_sample(Path(folder), parties, _PATIENTS // parties, 1)
            return read_divided(Path(folder) / "all.csv", read_schema(Path(folder) / "schema.json"), "hospital")
    source = source_of(table)
    return read_divided(source.table, read_schema(source.schema), "")


def measured(setting: Setting) -> Record:
    """Run the setting in this process, with the exact noise and without cryptography."""
    started, stream = process_time(), stream_of_seed(setting.seed)
    table = table_of(setting.table, setting.parties if setting.table == HOSPITALS else 0)
    parties = None if setting.division == OWN else setting.parties
    wishes: dict[str, Any] = {"privacy": setting.privacy, "insiders": setting.insiders}
    if not setting.asks:
        wishes["dependence"] = Fraction(0)
    if setting.method == "dp-subn":
        wishes["noise"] = "distributed"
    asked = ExperimentSettings(setting.epsilon, parties, setting.method, "sound", setting.division, wishes)  # type: ignore[arg-type]
    own, terms, identities = prepare(asked, table, stream)
    found = simulate(terms, own, identities, stream, real_crypto=False)
    batches = synthetic_codes(terms, found.state.knowledge, terms.plan.rows, stream.child("synthesis").child("rows"))
    synthetic = [np.concatenate(columns) for columns in zip(*batches, strict=True)]
    schema, real = as_published(found, table.codes)
    error = average_distance(real, synthetic, schema.sizes, 2)
    return {"key": setting.key, "error": error, "seconds": round(process_time() - started, 2)}


def records_of(wanted: Sequence[Setting]) -> dict[str, float]:
    """Return the error by setting, after the runs that are missing."""
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / "runs.jsonl"
    known = {one["key"]: one["error"] for one in map(json.loads, path.open())} if path.exists() else {}
    missing = [setting for setting in wanted if setting.key not in known]
    with path.open("a") as file:
        for done, setting in enumerate(missing, 1):
            record = measured(setting)
            known[record["key"]] = record["error"]
            file.write(json.dumps(record) + "\n")
            file.flush()
            print(f"\r{done} of {len(missing)} runs", end="", file=sys.stderr, flush=True)
    return known


def lines(wanted: Sequence[Setting], known: dict[str, float]) -> Iterator[str]:
    """A line for each table, method, privacy, K and epsilon: the error of random division, and ratios to it."""
    groups: dict[tuple[str, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in wanted:
        if one.key in known:
            group = (one.table, one.method, one.privacy, str(one.parties), one.epsilon)
            groups[group][one.division].append(known[one.key])
    yield "| table | method | privacy | K | epsilon | runs | random | ratio to random of each division |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for group, by_division in groups.items():
        base = by_division.pop("random", [])
        if base:
            told = "; ".join(f"{name} {_ratio(own, base)}" for name, own in by_division.items())
            yield f"| {' | '.join(group)} | {len(base)} | {np.mean(base):.4f} ± {_strays(base):.4f} | {told} |"


def _ratio(own: Sequence[float], base: Sequence[float]) -> str:
    """The ratio of two means, and its standard error."""
    ratio = float(np.mean(own) / np.mean(base))
    relative = math.hypot(_strays(own) / float(np.mean(own)), _strays(base) / float(np.mean(base)))
    return f"{ratio:.3f} ± {ratio * relative:.3f}"


def _strays(found: Sequence[float]) -> float:
    """The standard error of a mean."""
    return float(np.std(found, ddof=1) / math.sqrt(len(found))) if len(found) > 1 else math.nan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", nargs="+", choices=ATTRIBUTE, default=[HOSPITALS, GENERATED])
    parser.add_argument("--method", nargs="+", choices=("dp-subn", "guided"), default=["dp-subn", "guided"])
    parser.add_argument("--privacy", nargs="+", choices=("pure", "zcdp"), default=["pure"])
    parser.add_argument("--parties", nargs="+", type=int, default=[4, 10])
    parser.add_argument("--epsilon", nargs="+", default=["0.2", "0.8", "1.6"])
    parser.add_argument("--insiders", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--random", action="store_true", help="rows dealt out at random alone")
    parser.add_argument("--silent", action="store_true", help="plans that do not ask how strongly columns depend")
    parser.add_argument("--told", action="store_true", help="only what was run before")
    chosen = parser.parse_args()
    wanted = list(settings(chosen))
    known = records_of([] if chosen.told else wanted)
    print("\n".join(lines(wanted, known)))


if __name__ == "__main__":
    main()
