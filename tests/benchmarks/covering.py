"""Error of all pair tables, relative to counting every pair directly: our covers against covering designs.

Everything is computed from domain sizes; no data is read. All columns share the budget equally unless they say
cube-root. "PriView-style" is a greedy covering design with views of k variables, k being the most common length in the
prime-power cover beside it; a pair that lies in several views takes their average, weighted by precision, which is the
best that a linear estimate of single pairs can do. "best k" is the same with the k from 2 to 8 that serves it best.
The designs are greedy, as PriView's fallback is; tabulated designs have somewhat fewer views.
"""

import time
from collections import Counter

import numpy as np

from curator.experiments.view_study import averaged_error, covering_design
from protocol.network.mutual_information import mutual_information_matrix, pair_tables
from protocol.tables.domain import Domain
from protocol.tables.marginal import Table
from protocol.views.cover import Cover, cover, direct_pairs

ADULT = (16, 7, 16, 16, 16, 7, 14, 6, 5, 2, 8, 15, 16, 41, 2)
CASES = {
    **{f"{count} binary": (2,) * count for count in (16, 23, 50, 52, 100, 130)},
    "Adult": ADULT,
}


def print_errors() -> None:
    header = ("", "direct", "primes", "powers", "powers", "Algorithm 2", "PriView-style", "PriView-style", "direct")
    budgets = ("", "", "", "", "cube-root", "mended", "same k", "best k", "cube-root")
    for line in (header, budgets):
        print("".join(f"{word:>22}" for word in line))
    for name, sizes in CASES.items():
        pairs = direct_pairs(sizes, "equal")
        powers = cover(sizes, "expected-error", "equal")
        ours = (
            pairs,
            cover(sizes, "expected-error", "equal", primes_only=True),
            powers,
            cover(sizes, "expected-error", "cube-root"),
            cover(sizes, "paper", "equal"),
        )
        k = Counter(map(len, powers.views)).most_common(1)[0][0]
        designs = {size: covering_design(len(sizes), size) for size in {k, *range(2, 9)}}
        errors = {size: averaged_error(sizes, views) for size, views in designs.items()}
        best = min(errors, key=lambda size: errors[size])
        base = pairs.error_factor
        shown = [_relative(found, base) for found in ours]
        shown += [f"{errors[size] / base:.4f} ({len(designs[size])}, k={size})" for size in (k, best)]
        shown.append(_relative(direct_pairs(sizes, "cube-root"), base))
        print("".join(f"{word:>22}" for word in (name, *shown)))
    print("(in brackets: number of views)")


def _relative(found: Cover, base: float) -> str:
    return f"{found.error_factor / base:.4f} ({len(found.views)})"


def print_seconds() -> None:
    generator = np.random.default_rng(1)
    mixed = tuple(int(2**power) for power in generator.uniform(1, 6.6, size=200))
    cases = {**CASES, "200 binary": (2,) * 200, "200 of 2 to 97 values": mixed}
    print(f"\n{'seconds':>24}{'equal':>12}{'cube-root':>12}{'pair tables':>14}{'information':>14}")
    for name, sizes in cases.items():
        start = time.perf_counter()
        found = cover(sizes, "expected-error", "equal")
        equal = time.perf_counter()
        cover(sizes, "expected-error", "cube-root")
        cube_root = time.perf_counter()
        domain = Domain.of_sizes(sizes)
        tables = [Table(view, generator.integers(-50, 200, size=domain.shape(view))) for view in found.views]
        drawn = time.perf_counter()
        pairs = pair_tables(found, tables, domain)
        projected = time.perf_counter()
        mutual_information_matrix(pairs, domain, 10_000)
        seconds = (equal - start, cube_root - equal)
        more_seconds = (projected - drawn, time.perf_counter() - projected)
        print(f"{name:>24}" + "".join(f"{s:12.3f}" for s in seconds) + "".join(f"{s:14.3f}" for s in more_seconds))


def main() -> None:
    print_errors()
    print_seconds()


if __name__ == "__main__":
    main()
