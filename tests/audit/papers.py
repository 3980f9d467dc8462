"""Mechanisms that papers call private and that are not, as the papers have them (protocol/papers.md, no. 11).

It does not know what is done instead. Nothing here is used outside the tests.
"""

from itertools import combinations
from math import log2

import numpy as np
from numpy.typing import NDArray

from tests.audit.bounds import Scores
from tests.audit.quantity import Quantity, variant

Bits = NDArray[np.uint8]
TRIALS = 4000
CERTAIN = 100.0  # a score beyond every threshold
ROWS = 1000


def noisy_conditionals() -> Quantity:
    """PrivABN: noise of scale 2m / (n e2) on conditional probabilities, where one row alone has a parent's code."""
    generator, scale = np.random.default_rng(), 2 * 2 / ROWS  # m = 2 columns, e2 = 1

    def attack(second: bool) -> Scores:
        published = float(not second) + generator.laplace(0, scale, TRIALS)
        return (np.abs(published) - np.abs(published - 1)) / scale

    return variant(attack)


def greedy_candidates() -> Quantity:
    """PrivABN, Algorithms 2 and 3: parent sets of one column, of which rows decide without noise which are kept."""
    generator = np.random.default_rng()
    # The column equals the first of the others in 30 rows of 40, and the second in 30, or in 31 if a row moved.
    child = np.arange(40, dtype=np.uint8) % 2
    first, second_column = (np.where(np.arange(40) < 30, child, 1 - child) for _ in range(2))

    def attack(second: bool) -> Scores:
        other = second_column.copy()
        if second:
            other[39] = child[39]
        kept: list[list[Bits]] = [[], []]  # the best sets of one and of two columns so far
        for fresh in (first, other):
            for size in (1, 0):
                longer = [*kept[size - 1], fresh] if size else [fresh]
                if len(longer) == size + 1 and _information(child, longer) > _information(child, kept[size]):
                    kept[size] = longer
        weights = np.exp([0.5 * _information(child, own) / _sensitivity(40) for own in kept])
        chosen = generator.choice(2, TRIALS, p=weights / weights.sum())
        told = CERTAIN if kept[0][0] is first else -CERTAIN
        return np.where(chosen == 0, told, 0.0)

    return variant(attack)


def threshold_of_pairs() -> Quantity:
    """JTree, Algorithm 1: which pairs have more information than a threshold, with noise of a single query on each.

    One row holds the only ones. In the first table they stand in the first half of the columns, which makes all pairs
    among these columns as strong as one row can, and in the second table in the second half.
    """
    generator, half = np.random.default_rng(), 8
    moved = _sensitivity(ROWS)
    scale = 2 * moved  # epsilon 1
    columns = np.zeros((2, ROWS, 2 * half), dtype=np.uint8)
    columns[0, 0, :half] = columns[1, 0, half:] = 1
    pairs = list(combinations(range(2 * half), 2))
    strengths = np.array([[_information(table[:, a], [table[:, b]]) for a, b in pairs] for table in columns])
    signs = np.sign(strengths[0] - strengths[1])
    threshold = moved / 2

    def attack(second: bool) -> Scores:
        noise = generator.laplace(0, scale, (TRIALS, len(pairs)))
        above = strengths[int(second)] + noise >= threshold + generator.laplace(0, scale, (TRIALS, 1))
        return np.asarray(above @ signs / (half / 2), dtype=np.float64)

    return variant(attack)


def _information(child: Bits, parents: list[Bits]) -> float:
    """The mutual information of a column and some others, in bits; of none, less than any."""
    if not parents:
        return -1.0
    code = np.zeros(len(child), dtype=np.int64)
    for parent in parents:
        code = 2 * code + parent
    table = np.bincount(2 * code + child, minlength=2 ** (len(parents) + 1)).reshape(-1, 2) / len(child)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    held = table > 0
    return float((table[held] * np.log2(table[held] / expected[held])).sum())


def _sensitivity(rows: int) -> float:
    """Of mutual information, for binary columns (PrivBayes, Lemma 4.1)."""
    return log2(rows) / rows + (rows - 1) / rows * log2(rows / (rows - 1))
