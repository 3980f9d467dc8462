"""How fast families are counted and scored, on random rows; the scores are compared with those of a plain count.

Run: python -m tests.benchmarks.scoring
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations
from math import comb
from time import perf_counter
from typing import TypeVar

import numpy as np

from crypto.randomness import Stream
from protocol.network.limits import Limits
from protocol.network.parent_sets import candidates
from protocol.picks.by_score import choose
from protocol.picks.scores import Scoring, scoring
from protocol.tables.counting import Rows
from protocol.tables.domain import Domain
from tests.benchmarks.ratio import Ratio, seconds

T = TypeVar("T")
BITS, DEGREE, ROWS = 49, 3, 48_842
ADULT_SIZES, ADULT_ROWS = (16, 7, 16, 16, 16, 7, 14, 6, 5, 2, 8, 15, 16, 41, 2), 15_074
SAMPLE = 200


def ratios() -> Iterator[Ratio]:
    rows, columns = random_rows(ADULT_SIZES, 500_000)
    pairs, wide = list(combinations(range(len(columns)), 2)), [column.astype(np.intp) for column in columns]
    plain = seconds(lambda: [np.bincount(wide[a] * ADULT_SIZES[b] + wide[b]) for a, b in pairs])
    ours = seconds(lambda: Rows(rows.domain, columns).tables(pairs))  # rows keep what they have counted
    yield Ratio(f"{len(pairs)} pairs of 500,000 rows counted", "numpy.bincount", ours, plain)


def main() -> None:
    print_all_families()
    print_picks()
    print_tables()


def print_all_families() -> None:
    rows, columns = random_rows([2] * BITS, ROWS)
    families = comb(BITS, DEGREE + 1) * (DEGREE + 1)
    print(f"All {families:,} families of {BITS} bits with {DEGREE} parents, {ROWS:,} rows, counting included, one core")
    print(
        f"{'score':>6} {'counting s':>11} {'scoring s':>10} {'total s':>8} {'families/s':>11}  equal to a plain count"
    )
    for name in "IFR":
        rule = scoring(name, ROWS, rows.domain)
        sets = np.array(list(combinations(range(BITS), DEGREE + 1)))
        counting, tables = timed(lambda sets=sets: rows.bit_tables(sets))
        scored, scores = timed(lambda rule=rule, tables=tables: scores_of_every_child(rule, tables))
        total = counting + scored
        equal = equals_plain_count(rule, columns, sets, scores)
        print(f"{name:>6} {counting:11.2f} {scored:10.2f} {total:8.2f} {families / total:11,.0f}  {equal}")


def scores_of_every_child(rule: Scoring, tables: np.ndarray) -> np.ndarray:
    """By set, then by which of its variables is the child."""
    as_child = (np.moveaxis(tables, 1 + place, 1).reshape(len(tables), 2, -1) for place in range(DEGREE + 1))
    return np.stack([rule.scores(counts) for counts in as_child], axis=1)


def equals_plain_count(rule: Scoring, columns: list[np.ndarray], sets: np.ndarray, scores: np.ndarray) -> str:
    generator = np.random.default_rng(2)
    right = 0
    for index, place in zip(generator.integers(0, len(sets), SAMPLE), generator.integers(0, 4, SAMPLE), strict=True):
        child, parents = sets[index][place], np.delete(sets[index], place)
        counts = np.zeros((1, 2, 2**DEGREE), dtype=np.int64)
        cell = sum(columns[v].astype(np.int64) << bit for bit, v in enumerate(reversed(parents)))
        np.add.at(counts[0], (columns[child], cell), 1)
        right += int(rule.scores(counts)[0] == scores[index, place])
    return f"{right} of {SAMPLE}"


def print_picks() -> None:
    print("\nAll picks of one party: all variables but the first are placed, one private pick after another")
    print(f"{'variables':>24} {'rows':>7} {'score':>5} {'choice':>17} {'candidates':>10} {'seconds':>8}")
    cases = [
        ("15, native Adult", ADULT_SIZES, ADULT_ROWS, Limits(cells=cells), score, mechanism)
        for cells, score, mechanism in (
            (300, "R", "permute-and-flip"),
            (3000, "R", "permute-and-flip"),
            (3000, "I", "exponential"),
        )
    ]
    cases.append(
        (f"{BITS} bits, {DEGREE} parents", (2,) * BITS, ADULT_ROWS, Limits(degree=DEGREE), "F", "permute-and-flip")
    )
    for title, sizes, count, limits, score, mechanism in cases:
        rows, _ = random_rows(sizes, count)
        seconds, compared = timed(lambda r=rows, li=limits, s=score, m=mechanism: place_all(r, li, s, m))
        print(f"{title:>24} {count:7,} {score:>5} {mechanism:>17} {compared:10,} {seconds:8.2f}")


def place_all(rows: Rows, limits: Limits, score: str, mechanism: str) -> int:
    """How many candidates were compared until every variable had its place."""
    placed, unplaced, compared = [0], list(range(1, rows.domain.count)), 0
    stream = Stream.system()
    while unplaced:
        families = candidates(rows.domain, placed, unplaced, limits)
        child, _ = choose(rows, families, score, Fraction(1, 100), mechanism, stream)
        placed.append(child)
        unplaced.remove(child)
        compared += len(families)
    return compared


def print_tables() -> None:
    print("\nSeconds per table of many rows, 50 tables at once")
    for title, sizes in (("3 bits", (2,) * 10), ("16 x 7 x 16 codes", (16, 7, 16) * 3 + (2,))):
        rows, _ = random_rows(sizes, 4_000_000)
        sets = list(combinations(range(10), 3))[:50]
        seconds, _ = timed(lambda rows=rows, sets=sets: rows.tables(sets))
        print(
            f"{title:>24}: {seconds / len(sets):.4f} at 4 * 10^6 rows, so about {seconds / len(sets) * 25:.3f} at 10^8"
        )


def random_rows(sizes: tuple[int, ...] | list[int], count: int) -> tuple[Rows, list[np.ndarray]]:
    generator = np.random.default_rng(1)
    common = generator.random(count)
    columns = [np.minimum(size * (common + generator.random(count)) / 2, size - 1).astype(np.uint8) for size in sizes]
    return Rows(Domain.of_sizes(sizes), columns), columns


def timed(work: Callable[[], T]) -> tuple[float, T]:
    start = perf_counter()
    result = work()
    return perf_counter() - start, result


if __name__ == "__main__":
    main()
