"""One run of a central method (AIM, MST, PrivBayes, from the package dpmm) over one table, for comparisons.

It does not know dp-subn: it runs in an environment of its own (requirements.txt beside it).
"""

import argparse
import json
from pathlib import Path
from time import process_time

import pandas as pd
from dpmm.pipelines import AIMPipeline, MSTPipeline, PrivBayesPipeline

METHODS = {"aim": AIMPipeline, "mst": MSTPipeline, "privbayes": PrivBayesPipeline}


def main() -> None:
    chosen = _arguments()
    values = {one["name"]: one["values"] for one in json.loads(chosen.schema.read_text())["attributes"]}
    table = pd.read_csv(chosen.data, dtype=str)[list(values)]
    codes = pd.DataFrame({name: table[name].map({v: i for i, v in enumerate(values[name])}) for name in values})
    started = process_time()
    pipeline = METHODS[chosen.method](
        epsilon=chosen.epsilon, delta=chosen.delta, n_jobs=1, disable_processing=True, proc_epsilon=None
    )
    pipeline.fit(codes, domain={name: len(values[name]) for name in values}, random_state=chosen.seed)
    made = pipeline.generate(n_records=len(codes), random_state=chosen.seed)
    seconds = process_time() - started
    text = pd.DataFrame({name: made[name].astype(int).map(dict(enumerate(values[name]))) for name in values})
    text.to_csv(chosen.out, index=False)
    print(json.dumps({"cpu_seconds": round(seconds, 1)}))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--schema", type=Path, required=True)
    parser.add_argument("--method", choices=METHODS, required=True)
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--delta", type=float, default=1e-9)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    main()
