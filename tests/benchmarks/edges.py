"""Figures of a skewed number and of one far out in its range, in found bins and in public ones.

`python -m tests.benchmarks.edges [--seeds 10]`: 15,000 made-up rows between 0 and 500,000. A third of epsilon 0.3 finds
20 bins among 200 on a square-root scale, and the rest counts them; public bins on a log scale get all of it. Noise is
drawn from the seed. `protocol/stages/edges.md` holds what was measured.
"""

import argparse
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from curator.results.number_figures import FIGURES, number_figures
from protocol.model.bin_edges import bin_starts, even_runs
from protocol.model.ordered_counts import middle, possible_counts
from protocol.tables.attributes import Numeric
from protocol.tables.domain import Variable
from protocol.tables.found_edges import with_edges
from protocol.tables.marginal import Table
from protocol.tables.schema import Schema

ROWS, BINS, CELLS, LARGEST = 15_000, 20, 200, 500_000
FOR_EDGES, FOR_BINS = 0.1, 0.2
Random = np.random.Generator
VALUES: Mapping[str, Callable[[Random], Any]] = {
    "lognormal": lambda random: random.lognormal(8, 1.1, ROWS),
    "normal, far out": lambda random: random.normal(60_000, 3000, ROWS),
}


def schema_of(**fields: Any) -> Schema:
    one = {"name": "x", "kind": "real", "min": 0, "max": LARGEST, "decimals": 2}
    return Schema.parse({"attributes": [one | fields]})


GRID, PUBLIC = schema_of(bins=CELLS, scale="sqrt", find=BINS), schema_of(bins=BINS, scale="log")


def noisy(schema: Schema, values: Any, epsilon: float, random: Random) -> tuple[Table, Variable, Numeric]:
    (attribute,) = schema.attributes
    assert isinstance(attribute, Numeric)
    counts = np.histogram(values, np.array(attribute.cuts, np.float64))[0]
    scale = 2 / epsilon
    noise = np.rint(random.laplace(0, scale, len(counts))).astype(np.int64)
    variable = Variable("x", len(counts), 0, ordered=len(counts))
    return Table((0,), counts + noise, 2 * scale**2), variable, attribute


def found(values: Any, random: Random) -> Schema:
    grid, variable, _ = noisy(GRID, values, FOR_EDGES, random)
    return with_edges(GRID, ((0, bin_starts(grid, variable, BINS, ROWS, GRID.attributes[0].beginnings)),))


def quantiles(values: Any, random: Random) -> Schema:
    """Bins with about as many rows each, and no bins for empty ends."""
    grid, variable, _ = noisy(GRID, values, FOR_EDGES, random)
    estimate = np.rint(middle(possible_counts(grid, variable, ROWS), variable.ordered)).astype(np.int64)
    return with_edges(GRID, ((0, tuple(even_runs(estimate.tolist(), BINS))),))


WAYS: Mapping[str, tuple[Callable[[Any, Random], Schema], float]] = {
    "found": (found, FOR_BINS),
    "quantiles": (quantiles, FOR_BINS),
    "public, log": (lambda _values, _random: PUBLIC, FOR_EDGES + FOR_BINS),
}


def errors(way: str, values: Any, random: Random) -> Any:
    """Relative errors of mean and deviation, and the median's as a share of the distance between the quartiles."""
    make, epsilon = WAYS[way]
    table, variable, attribute = noisy(make(values, random), values, epsilon, random)
    counts = np.rint(middle(possible_counts(table, variable, ROWS), variable.ordered)).astype(np.int64)
    figures = number_figures(attribute, counts, table, ROWS)["figures"]
    made = np.array([figures[name]["value"] for name in ("mean", "deviation", "median")])
    first, median, third = np.quantile(values, (0.25, 0.5, 0.75))
    real, size = np.array([values.mean(), values.std(), median]), np.array([values.mean(), values.std(), third - first])
    return (made - real) / size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    chosen, _ = parser.parse_known_args()
    for name, draw in VALUES.items():
        for way in WAYS:
            randoms = [np.random.default_rng(seed) for seed in range(chosen.seeds)]
            own = np.array([errors(way, draw(random).clip(0, LARGEST - 1), random) for random in randoms])
            sizes = np.sqrt((own**2).mean(axis=0))
            told = ", ".join(
                f"{what} {100 * size:.1f} %" for what, size in zip((*FIGURES[:2], "median"), sizes, strict=True)
            )
            print(f"{name:<18}{way:<14}{told}", flush=True)


if __name__ == "__main__":
    main()
