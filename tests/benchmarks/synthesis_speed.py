"""How long the curator's own work takes: the search frontier of 200 variables, and drawing rows from a network."""

from collections.abc import Iterator
from time import perf_counter

import numpy as np

from crypto.randomness import Stream
from protocol.model.ancestral_sampling import ConditionalNetwork
from protocol.model.estimation import GraphicalModel
from protocol.model.junction_tree import JunctionTree
from protocol.model.systematic_sampling import draw_rows
from protocol.network.frontier import search_frontier
from protocol.network.limits import Limits
from protocol.network.network import Family, Network
from protocol.tables.domain import Domain
from protocol.tables.marginal import Table
from tests.benchmarks.ratio import Ratio, seconds


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


def chain_model(count: int, size: int) -> GraphicalModel:
    tree = JunctionTree.of((size,) * count, [(x, x + 1) for x in range(count - 1)])
    random = np.random.default_rng(0)
    return GraphicalModel(tree, tuple(tree.marginals([random.normal(size=tree.shape(c)) for c in tree.cliques])[0]))


def independently(rows: int, count: int, size: int) -> None:
    """Draw columns that do not depend on each other, as simply as numpy can."""
    random, ladder = np.random.default_rng(0), np.linspace(0, 1, size + 1)[1:-1]
    for _ in range(count):
        np.searchsorted(ladder, random.random(rows)).astype(np.uint8)


def ratios() -> Iterator[Ratio]:
    rows, count, size = 500_000, 15, 16
    model, domain = chain_model(count, size), Domain.of_sizes([size] * count)
    network, data = chain(count, 2, domain), np.random.default_rng(0)
    tables = [Table(f.variables, data.integers(0, 100, domain.shape(f.variables))) for f in network.families]
    fitted = ConditionalNetwork.fit(network, tables, domain, [], rows)
    independent = seconds(lambda: independently(rows, count, size))
    for name, drawn in (("a model", lambda: draw_rows(model, rows, Stream.system())),
                        ("a network", lambda: fitted.sample(rows, Stream.system()))):  # fmt: skip
        ours = seconds(lambda: [None for _ in drawn()])  # noqa: B023
        yield Ratio(f"{rows:,} rows of {count} drawn from {name}", "numpy, independent columns", ours, independent)


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
