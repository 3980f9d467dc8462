"""Errors of range counts on `age` and `hours-per-week` of Adult with 100 values each: wavelets beside plain noise.

`python -m tests.benchmarks.ranges [--seeds 5] [--data ../shared/data] [--trees] [--product]`: the root mean square
error of the counts of all ranges of a length, where the whole epsilon counts this column with one share of noise.
`raw` counts are as released, `estimate` is what published rows follow. `--product` counts both columns at once.
`--trees` compares mean variances of all ranges with those of trees of counts, each at its best division of the budget.
"""

import argparse
import csv
import gzip
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream
from protocol.model.ordered_counts import middle, possible_counts
from protocol.privacy.layout import Layout
from protocol.privacy.mechanisms import DEFINITIONS, PrivacyDefinition
from protocol.privacy.noise_modes import full_noise
from protocol.privacy.wavelets import Wavelet, ordered_wavelet
from protocol.tables.domain import Variable
from protocol.tables.marginal import Table, project_to_simplex

Array = NDArray[np.float64]
VALUES = 100
COLUMNS = ("age", "hours-per-week")
LENGTHS = (1, 5, 10, 25, 50)
EPSILONS = ("0.05", "0.2", "0.8", "1.6")
DELTA = Fraction(1, 10**9)
VARIABLE = Variable("column", VALUES, 0, ordered=VALUES)
# What a product of two coefficients changes by, squared, where in each column the old and the new value lie in the same
# half of one node, in its two halves, in two nodes, in one node and none, or in no node.
SAME, HALVES, TWO, ONE, NONE = range(5)
CHANGES = np.array([[0, 4, 2, 1, 0], [4, 0, 2, 1, 0], [2, 2, 2, 1, 0], [1, 1, 1, 1, 0], [0, 0, 0, 0, 0]], float)


def adult(data: Path) -> NDArray[np.int64]:
    """Return the counts of both columns together; ages of 100 and more do not occur."""
    with gzip.open(data / "adult_raw" / "adult_raw.csv.gz", "rt", encoding="utf-8") as file:
        rows = [[int(float(row[name])) for name in COLUMNS] for row in csv.DictReader(file)]
    found = np.zeros((VALUES, VALUES), dtype=np.int64)
    np.add.at(found, tuple(np.array(rows).T), 1)
    return found


def noise(definition: PrivacyDefinition, rates: Sequence[Fraction], cells: Sequence[int], stream: Stream) -> Any:
    return full_noise(definition, Layout(tuple(cells), tuple(rates), 0), stream)


def estimates(counts: NDArray[np.int64], definition: PrivacyDefinition, budget: Fraction, stream: Stream) -> Any:
    """Return the estimates of one column by name, from one release with each kind of noise."""
    rows, wavelet, rate = float(counts.sum()), ordered_wavelet(VALUES, VALUES), definition.rate(budget)
    plain = counts + noise(definition, [rate], [VALUES], stream.child("plain"))
    rates = [definition.rate(budget * share) for share in wavelet.shares(definition)]
    own = wavelet.noise([definition.variance(one) for one in rates])
    coefficients = wavelet.tree.coefficients(counts)
    coefficients = coefficients + noise(definition, rates, wavelet.tree.cells, stream.child("wavelet"))
    inverse = wavelet.tree.counts(rows, coefficients)
    ordered = (Table((0,), plain, definition.variance(rate)), Table((0,), inverse, own.variance, own))
    return {
        "plain raw": plain,
        "plain simplex": project_to_simplex(plain, rows),
        "plain estimate": middle(possible_counts(ordered[0], VARIABLE, rows), VALUES),
        "wavelet raw": inverse,
        "wavelet estimate": middle(possible_counts(ordered[1], VARIABLE, rows), VALUES),
    }


def errors(found: Array, true: NDArray[np.int64]) -> Array:
    """The mean squared errors of ranges of each length, in every axis."""
    strays = found - true
    for axis in range(strays.ndim):
        strays = np.concatenate([0 * strays.take([0], axis), strays.cumsum(axis)], axis)
    squares = []
    for length in LENGTHS:
        ranges = strays
        for axis in range(strays.ndim):
            ranges = ranges.take(range(length, VALUES + 1), axis) - ranges.take(range(VALUES + 1 - length), axis)
        squares.append(np.mean(ranges**2))
    return np.array(squares)


# Both columns at once


class Product:
    """The product of two equal trees, with the rate of each pair of levels; the sum of all is public."""

    def __init__(self, wavelet: Wavelet, definition: PrivacyDefinition) -> None:
        self.tree = wavelet.tree
        self.levels = np.concatenate([[0], 1 + self.tree.by_node(range(len(self.tree.levels)))]).astype(int)
        self.basis = np.column_stack(
            [self.tree.counts(float(k < 0), np.eye(len(self.levels) - 1)[k] * (k >= 0)) for k in range(-1, VALUES - 1)]
        )
        ranges = np.array([self._of_ranges(column) for column in self.basis.T])
        alone = np.bincount(self.levels, ranges)
        self.weights = np.outer(alone, alone)
        roots = self.weights ** (1 / 2 if definition.grows_by_root else 1 / 3)
        roots[0, 0] = 0.0
        self.parts = roots / self._dearest(roots, definition)

    @staticmethod
    def _of_ranges(column: Array) -> float:
        sums = np.concatenate([[0.0], column.cumsum()])
        return float((VALUES + 1) * (sums**2).sum() - sums.sum() ** 2)

    def _dearest(self, roots: Array, definition: PrivacyDefinition) -> float:
        """The most that one row's change costs: half of its squared changes, or of its absolute ones."""
        eye = np.concatenate([np.ones((VALUES, 1)), self.tree.coefficients(np.eye(VALUES))], axis=1)
        kinds = np.array(sorted({self._kinds(eye, *pair) for pair in combinations_with_replacement(range(VALUES), 2)}))
        changes = CHANGES if definition.grows_by_root else np.minimum(CHANGES, 2)
        return max(
            float((roots * changes[np.ix_(one, other)]).sum()) / 2
            for one in kinds for other in kinds
        )  # fmt: skip

    def _kinds(self, eye: Array, one: int, other: int) -> tuple[int, ...]:
        found = []
        for level in range(self.levels.max() + 1):
            a, b = (np.flatnonzero(eye[value] * (self.levels == level)) for value in (one, other))
            if not a.size or not b.size:
                found.append(ONE if a.size or b.size else NONE)
            elif a[0] != b[0]:
                found.append(TWO)
            else:
                found.append(SAME if eye[one, a[0]] == eye[other, b[0]] else HALVES)
        return tuple(found)

    def released(
        self, counts: NDArray[np.int64], definition: PrivacyDefinition, budget: Fraction, stream: Stream
    ) -> Array:
        """The counts that the noisy coefficients tell."""
        coefficients = np.concatenate([counts.sum(0, keepdims=True), self.tree.coefficients(counts.T).T])
        coefficients = np.concatenate([coefficients.sum(1, keepdims=True) * 0, self.tree.coefficients(coefficients)], 1)
        coefficients[:, 0] = np.concatenate([[counts.sum()], self.tree.coefficients(counts.sum(1))])
        noisy = coefficients.astype(float)
        for a in range(len(self.parts)):
            for b in range(len(self.parts)):
                if self.parts[a, b]:
                    places = np.ix_(self.levels == a, self.levels == b)
                    rate = definition.rate(budget * Fraction(self.parts[a, b]).limit_denominator(10**6))
                    size = noisy[places].size
                    noisy[places] += noise(definition, [rate], [size], stream.child(f"{a} {b}")).reshape(
                        noisy[places].shape
                    )
        return np.asarray(self.basis @ noisy @ self.basis.T)


# Trees of counts


def trees(definition: PrivacyDefinition) -> None:
    """Print the mean variance of all ranges as a share of plain noise's."""
    print(f"{'values':>8}{'wavelet':>10}" + "".join(f"{f'tree, {width} wide':>14}" for width in (2, 4, 8, 16)))
    for values in (16, 32, 64, 100, 128):
        shares = [best_tree(values, width, definition) for width in (2, 4, 8, 16)]
        gain = ordered_wavelet(values, values).gain(definition)
        print(f"{values:>8}{gain:>10.2f}" + "".join(f"{share:>14.2f}" for share in shares), flush=True)


def best_tree(values: int, width: int, definition: PrivacyDefinition) -> float:
    """Counts of blocks of `width`, `width`^2, ... values, averaged by generalised least squares."""
    levels, size = [np.eye(values)], width
    while size < values:
        levels.append((np.arange(values) // size == np.arange(-(-values // size))[:, None]).astype(float))
        size *= width
    ranges = np.zeros((values, values))
    for first in range(values):
        for end in range(first + 1, values + 1):
            ranges[first:end, first:end] += 1
    power = 1 if definition.grows_by_root else 2

    def variance(parts: Array) -> float:
        told = 1e6 + sum(part**power * level.T @ level for part, level in zip(parts, levels, strict=True))
        return float((ranges * np.linalg.inv(told)).sum())

    parts, step = np.ones(len(levels)) / len(levels), 0.5
    while step > 1e-2:
        tried = [
            parts * np.where(np.arange(len(parts)) == k, times, 1)
            for k in range(len(parts))
            for times in (1 + step, 1 / (1 + step))
        ]
        best = min((one / one.sum() for one in tried), key=variance)
        parts, step = (best, step) if variance(best) < variance(parts) else (parts, step / 2)
    return variance(parts) / float((ranges * (np.eye(values) - 1 / values)).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--trees", action="store_true")
    parser.add_argument("--product", action="store_true")
    chosen, _ = parser.parse_known_args()
    both = adult(chosen.data)
    for privacy, definition in DEFINITIONS.items():
        if chosen.trees:
            print(f"\n{privacy}: mean variance of all ranges, as a share of plain noise's")
            trees(definition)
            continue
        product = Product(ordered_wavelet(VALUES, VALUES), definition) if chosen.product else None
        for place, name in enumerate(COLUMNS[: 1 if product else 2]):
            counts = both if product else both.sum(axis=1 - place)
            for epsilon in EPSILONS:
                budget, found = definition.budget(Fraction(epsilon), DELTA), dict[str, list[Array]]()
                for seed in range(chosen.seeds):
                    stream = Stream.keyed(b"%d" % seed, f"ranges {privacy} {name} {epsilon}")
                    if product:
                        rate = definition.rate(budget)
                        plain = counts + noise(definition, [rate], [counts.size], stream).reshape(counts.shape)
                        told = {"plain raw": plain, "wavelet raw": product.released(counts, definition, budget, stream)}
                    else:
                        told = estimates(counts, definition, budget, stream)
                    for kind, estimate in told.items():
                        found.setdefault(kind, []).append(errors(estimate, counts))
                print(f"\n{' x '.join(COLUMNS) if product else name}, {privacy}, epsilon {epsilon}; length {LENGTHS}")
                for kind, own in found.items():
                    print(
                        f"{kind:<20}" + "".join(f"{value:>10.1f}" for value in np.sqrt(np.mean(own, axis=0))),
                        flush=True,
                    )


if __name__ == "__main__":
    main()
