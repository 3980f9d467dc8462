"""Whatever the network, the tables and the codes: only values are drawn, and only possible cells are kept."""

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from crypto.randomness import Stream
from protocol.model.ancestral_sampling import ConditionalNetwork
from protocol.network.network import Family, Network
from protocol.tables.domain import Domain
from protocol.tables.encoding import Block
from protocol.tables.feasibility import feasible_cells, structural_projection
from protocol.tables.marginal import Table
from tests.support.effort import examples


@st.composite
def encoded_domains(draw: st.DrawFn) -> tuple[Domain, list[Block]]:
    """Attributes of one to three variables of two or three codes each, with any codes valid but none at all."""
    sizes: list[int] = []
    blocks = []
    for width in draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)):
        own = draw(st.lists(st.integers(2, 3), min_size=width, max_size=width))
        cells = int(np.prod(own))
        valid = draw(st.lists(st.booleans(), min_size=cells, max_size=cells).filter(any))
        variables = draw(st.permutations(range(len(sizes), len(sizes) + width)))
        sizes += own
        shape = [sizes[v] for v in variables]
        blocks.append(Block(tuple(variables), np.array(valid).reshape(shape)))
    return Domain.of_sizes(sizes), blocks


@st.composite
def networks(draw: st.DrawFn, domain: Domain) -> Network:
    order = draw(st.permutations(range(domain.count)))
    parents = [draw(st.sets(st.sampled_from(order[:p]), max_size=2)) if p else set() for p in range(len(order))]
    return Network(tuple(Family(x, tuple(sorted(own))) for x, own in zip(order, parents, strict=True)))


def noisy_tables(network: Network, domain: Domain, seed: int) -> list[Table]:
    data = np.random.default_rng(seed)
    return [Table(f.variables, data.integers(-20, 10, domain.shape(f.variables))) for f in network.families]


def is_valid(row: NDArray[np.int64], blocks: list[Block]) -> bool:
    return all(block.valid[tuple(row[list(block.variables)])] for block in blocks)


@settings(deadline=None, max_examples=examples(200))
@given(st.data(), encoded_domains(), st.integers(0, 2**32))
def test_no_row_has_a_code_without_a_value(data: st.DataObject, encoded: tuple[Domain, list[Block]], seed: int) -> None:
    domain, blocks = encoded
    network = data.draw(networks(domain))
    model = ConditionalNetwork.fit(
        network, noisy_tables(network, domain, seed), domain, blocks, data.draw(st.integers(0, 30))
    )
    (columns,) = model.sample(300, Stream.keyed(seed.to_bytes(8, "big")))
    rows = np.stack(columns, axis=1).astype(np.int64)
    assert all(is_valid(row, blocks) for row in np.unique(rows, axis=0))


@settings(deadline=None, max_examples=examples(100))
@given(st.data(), encoded_domains())
def test_possible_cells_are_those_of_valid_rows(data: st.DataObject, encoded: tuple[Domain, list[Block]]) -> None:
    domain, blocks = encoded
    variables = tuple(data.draw(st.permutations(range(domain.count))))[: data.draw(st.integers(1, 4))]
    expected = np.zeros(domain.shape(variables), dtype=bool)
    for row in product(*(range(size) for size in domain.sizes)):
        if is_valid(np.array(row), blocks):
            expected[tuple(row[v] for v in variables)] = True
    feasible = feasible_cells(variables, blocks, domain)
    assert (feasible is None) == bool(expected.all())
    assert feasible is None or feasible.tolist() == expected.tolist()


@settings(deadline=None, max_examples=examples(100))
@given(st.data(), encoded_domains(), st.integers(0, 2**32), st.integers(1, 50))
def test_a_structural_projection_is_a_table_of_possible_rows(
    data: st.DataObject, encoded: tuple[Domain, list[Block]], seed: int, total: int
) -> None:
    domain, blocks = encoded
    for table in noisy_tables(data.draw(networks(domain)), domain, seed):
        counts = structural_projection(table, blocks, domain, total).counts
        feasible = feasible_cells(table.variables, blocks, domain)
        assert counts.min() >= 0
        assert abs(counts.sum() - total) < 1e-9 * total
        assert feasible is None or not counts[~feasible].any()
