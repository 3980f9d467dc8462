"""Visits of diabetics from the raw file to published tables, with several rows of a person at a party and at several.

`python -m tests.benchmarks.visits [--data ../shared/data] [--seeds 3]`: real processes and HTTP. Three hospitals share
the patients of the public table by chance, and one patient in ten is at two of them. The schema is
`tests/benchmarks/visits.json`, drafted by `subn-party draft` and finished from what is published about the table.
"""

import argparse
import csv
import io
import json
import tempfile
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from protocol.plan.plan import Plan
from protocol.run.agreement import agree
from protocol.run.manifest import verify_manifest
from protocol.tables.attributes import Numeric
from protocol.tables.coding import Coder
from protocol.tables.distance import average_distance
from protocol.tables.schema import Schema
from tests.end_to_end.cluster import RULES, Cluster, cluster

NAMES = ("North", "South", "West")
SCHEMA = Schema.parse((Path(__file__).parent / "visits.json").read_bytes())
KEY = "patient_nbr"
_AT_TWO = 0.1  # of the patients
# What party.toml says, and what the plan asks for.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "one visit of each patient at random": (f'person_key = "{KEY}"\nrows_per_person = 1', {}),
    "r = 3": (f'person_key = "{KEY}"\nrows_per_person = 3', {}),
    "r = 3, m = 2": (f'person_key = "{KEY}"\nrows_per_person = 3', {"parties_per_person": 2}),
}


def read(data: Path) -> tuple[list[str], list[list[str]]]:
    with (data / "diabetes_visits" / "visits.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return header, rows


def divided(header: Sequence[str], rows: Sequence[list[str]], seed: int) -> list[list[list[str]]]:
    """The visits of each hospital. A patient has one hospital, or one of two at each visit."""
    random, place = np.random.default_rng(seed), header.index(KEY)
    homes = {
        key: random.permutation(3)[: 1 + (random.random() < _AT_TWO)] for key in sorted({row[place] for row in rows})
    }
    parties: list[list[list[str]]] = [[], [], []]
    for row in rows:
        parties[random.choice(homes[row[place]])].append(row)
    return parties


def set_up(home: Cluster, header: Sequence[str], parties: Sequence[list[list[str]]], more: str) -> list[str]:
    """Start three hospitals; return what `subn-party check` says of each."""
    home.add(*NAMES)
    for name, rows in zip(NAMES, parties, strict=True):
        site = home.sites[name]
        with (site.home / "patients.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *rows])
        settings = site.home / "party.toml"
        home.write_settings(site, RULES)
        settings.write_text(settings.read_text().replace("\n\n[policy]", f"\n{more}\n\n[policy]", 1))
    home.acquaint(*NAMES)
    said = [home.sites[name].shell("check").stdout.splitlines()[0] for name in NAMES]
    home.enrol(*NAMES)
    home.serve(*NAMES)
    return said


def measure(data: Path, more: str, wishes: dict[str, Any], privacy: str, seed: int) -> dict[str, Any]:
    header, rows = read(data)
    with tempfile.TemporaryDirectory() as folder, cluster(Path(folder) / "cluster", SCHEMA) as home:
        said = set_up(home, header, divided(header, rows, seed), more)
        asked = {"epsilon": "1", "noise": None, "privacy": privacy, **wishes}
        asked = {name: value for name, value in asked.items() if value is not None}
        body = {"schema": SCHEMA.hash, "parties": list(NAMES), "anyway": True, **asked}
        planned = home.http.post("/v1/plans", json=body).json()
        begun = home.http.post("/v1/runs", json=body, headers={"Idempotency-Key": f"{seed}"}).json()
        run = begun["run"]
        home.until(run, "finished", patience=600)
        manifest = verify_manifest(home.get(run, "manifest.json"), {}, bytes.fromhex(home.public))
        ledgers = {name: ledger_of(home, name, run) for name in NAMES}
        released = json.loads(home.get(run, "tables.json"))["tables"]
        table = list(csv.reader(io.StringIO(home.get(run, "table.csv").decode())))
    return {
        "check": said,
        "planned": planned["price"],
        "ledgers": ledgers,
        "exact": prices(manifest.plan),
        "rows": manifest.plan.total_rows,
        "per person": (manifest.plan.rows_per_person, manifest.plan.parties_per_person),
        "method": manifest.plan.method,
        "deviation": {one["step"]: one["variance"] ** 0.5 for one in released},
        **errors(header, rows, table),
    }


def ledger_of(home: Cluster, name: str, run: str) -> str:
    entries = [one for one in home.sites[name].cli("ledger")["entries"] if one["run"] == run]
    return str(sum((Fraction(one["charge"]) for one in entries), Fraction(0)))


def prices(plan: Plan) -> dict[str, str]:
    terms = agree(plan, SCHEMA)
    return {member.name: str(terms.price(place)) for place, member in enumerate(plan.members)}


def errors(header: Sequence[str], rows: Sequence[list[str]], table: list[list[str]]) -> dict[str, Any]:
    """Distances of single columns and of pairs from all visits, and the largest errors of means and deviations."""
    real = [[row[header.index(name)] for name in SCHEMA.names] for row in rows]
    coder = Coder(SCHEMA)
    one, other = coder.code(real), coder.code(table[1:])
    figures = {}
    for place, attribute in enumerate(SCHEMA.attributes):
        if isinstance(attribute, Numeric):
            own, made = (np.array([float(row[place]) for row in side]) for side in (real, table[1:]))
            figures[attribute.name] = (made.mean() / own.mean() - 1, made.std() / own.std() - 1)
    ways = {f"{ways}-way": average_distance(one, other, SCHEMA.sizes, ways) for ways in (1, 2)}
    return {**ways, "figures": figures}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--seeds", type=int, default=1)
    chosen, _ = parser.parse_known_args()
    for name, (more, wishes) in CASES.items():
        for privacy in ("pure", "zcdp"):
            found = [measure(chosen.data, more, wishes, privacy, seed) for seed in range(1, chosen.seeds + 1)]
            print(
                f"\n{name}, {privacy}: {found[0]['method']}, {found[0]['rows']:,} rows; {'; '.join(found[0]['check'])}"
            )
            alike = all(one["planned"] == one["ledgers"] == one["exact"] for one in found)
            print(f"prices {found[0]['exact']}; plan, ledgers and terms agree: {alike}")
            deviations = found[0]["deviation"]
            print("noise per count: " + ", ".join(f"{step} {size:.1f}" for step, size in deviations.items()))
            ways = ", ".join(f"{way} {np.mean([one[way] for one in found]):.4f}" for way in ("1-way", "2-way"))
            print(f"distance from all visits: {ways}")
            for column in found[0]["figures"]:
                sizes = np.sqrt(np.mean([np.square(one["figures"][column]) for one in found], axis=0))
                print(f"  {column:<22} mean {100 * sizes[0]:5.1f} %, deviation {100 * sizes[1]:5.1f} %", flush=True)


if __name__ == "__main__":
    main()
