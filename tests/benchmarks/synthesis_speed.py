"""How long the curator's own work takes: the search frontier of 200 variables, and drawing rows from a network."""

from time import perf_counter

import numpy as np

from crypto.randomness import Stream
from protocol.model.ancestral_sampling import ConditionalNetwork
from protocol.network.frontier import search_frontier
from protocol.network.limits import Limits
from protocol.network.network import Family, Network
from protocol.tables.domain import Domain
from protocol.tables.marginal import Table


def chain(count: int, degree: int, domain: Domain) -> Network:
    return Network.of([Family(x, tuple(range(max(0, x - degree), x))) for x in range(count)], domain)


def frontier_seconds(count: int, limits: Limits) -> float:
    domain = Domain.of_sizes([2] * count)
    information = np.random.default_rng(0).random((count, count))
    empty = chain(count, 0, domain)
    start = perf_counter()
    search_frontier(empty, information + information.T, limits, domain)
    return perf_counter() - start


def sampling_seconds(count: int, size: int, degree: int, rows: int) -> float:
    domain = Domain.of_sizes([size] * count)
    network = chain(count, degree, domain)
    data = np.random.default_rng(0)
    tables = [Table(f.variables, data.integers(0, 100, domain.shape(f.variables))) for f in network.families]
    start = perf_counter()
    for _ in ConditionalNetwork.fit(network, tables, domain, [], rows).sample(rows, Stream.system()):
        pass
    return perf_counter() - start


def main() -> None:
    print("search frontier            seconds")
    for limits in (Limits(degree=4), Limits(degree=8), Limits(cells=64)):
        print(
            f"  200 variables, {limits.degree or limits.cells} {'parents' if limits.degree else 'cells':8}"
            f" {frontier_seconds(200, limits):7.3f}"
        )
    print("rows       variables  codes  parents  seconds")
    for rows, count, size, degree in (
        (45_222, 15, 16, 2),
        (45_222, 52, 2, 4),
        (45_222, 15, 100, 1),
        (10**6, 15, 16, 2),
    ):
        print(f"{rows:9}  {count:9}  {size:5}  {degree:7}  {sampling_seconds(count, size, degree, rows):7.3f}")


if __name__ == "__main__":
    main()
