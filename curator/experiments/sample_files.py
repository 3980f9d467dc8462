"""The made-up hospitals on disk: a schema, one table each, and one table of all.

It does not know what the records say.
"""

import json
from pathlib import Path

from crypto.randomness import Stream
from curator.experiments.sample_data import HEADER, SCHEMA, all_hospitals
from curator.results.csv_files import write_table


def write_sample(out: Path, parties: int, rows: int, seed: int) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "schema.json").write_text(json.dumps(SCHEMA, indent=1) + "\n", encoding="utf-8")
    pooled = []
    for name, columns in all_hospitals(parties, rows, Stream.keyed(b"%d" % seed, "sample data")):
        write_table(out / f"{name}.csv", HEADER, [columns])
        pooled.append([[name] * rows, *columns])
    write_table(out / "all.csv", ["hospital", *HEADER], pooled)
