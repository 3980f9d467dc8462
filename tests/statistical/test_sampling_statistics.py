"""Sampled rows follow the network's distribution; false-alarm rate 1e-6 per test, by chi-square on fresh entropy."""

from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from crypto.randomness import Stream
from protocol.model.ancestral_sampling import ConditionalNetwork
from protocol.network.network import Family, Network
from protocol.tables.domain import Domain, Variable
from protocol.tables.encoding import Block
from protocol.tables.marginal import Table

FALSE_ALARM = 1e-6
ROWS = 400_000


def frequencies(model: ConditionalNetwork, domain: Domain) -> NDArray[np.int64]:
    counts = np.zeros(domain.shape(range(domain.count)), dtype=np.int64)
    for columns in model.sample(ROWS, Stream.system()):
        np.add.at(counts, tuple(columns), 1)
    return counts


def fits(counts: NDArray[np.int64], probabilities: NDArray[np.float64]) -> bool:
    possible = probabilities > 0
    expected = probabilities[possible] * ROWS
    statistic = float(((counts[possible] - expected) ** 2 / expected).sum())
    return not counts[~possible].any() and statistic < chi2.isf(FALSE_ALARM, possible.sum() - 1)


def test_rows_follow_the_product_of_the_conditionals() -> None:
    # A (4 codes) -> B (3) by A's generalisation A', and both -> C (2).
    domain = Domain((Variable("A", 4, 0), Variable("B", 3, 1), Variable("C", 2, 2), Variable("A'", 2, 0, (0, 1, 1, 0))))
    network = Network.of([Family(0), Family(1, (3,)), Family(2, (0, 1))], domain)
    a = np.array([10, 0, 25, 65])
    b = np.array([[10, 5], [20, 40], [0, 25]])  # [B, A']
    c = np.arange(1, 25).reshape(2, 4, 3) % 7 + 1  # [C, A, B]
    tables = [Table((0,), a), Table((1, 3), b), Table((2, 0, 1), c)]
    model = ConditionalNetwork.fit(network, tables, domain, [], 100)
    # The projection to 100 rows moves every cell of a table by the same amount, as long as none falls below zero.
    c = c + (100 - c.sum()) / c.size
    probabilities = np.zeros((4, 3, 2))
    for i, j, k in product(range(4), range(3), range(2)):
        group = (0, 1, 1, 0)[i]
        probabilities[i, j, k] = a[i] / 100 * b[j, group] / b[:, group].sum() * c[k, i, j] / c[:, i, j].sum()
    counts = frequencies(model, domain)
    assert fits(counts, probabilities)
    slightly_off = probabilities * np.linspace(0.95, 1.05, 24).reshape(4, 3, 2)
    assert not fits(counts, slightly_off / slightly_off.sum())


def test_rows_of_restricted_bits_follow_the_renormalised_conditionals() -> None:
    # Five values in three bits, drawn in the order 2, 0, 1 with bit 0 depending on bit 2.
    domain = Domain.of_sizes([2, 2, 2])
    valid = np.zeros((2, 2, 2), dtype=bool)
    valid.reshape(-1)[:5] = True
    network = Network((Family(2), Family(0, (2,)), Family(1)))
    tables = [
        Table((2,), np.array([60, 40])),
        Table((0, 2), np.array([[10, 40], [50, 0]])),  # of 0 given 2; bits 1.1 decode to nothing
        Table((1,), np.array([30, 70])),
    ]
    probabilities = np.zeros((2, 2, 2))
    probabilities[0, :, 0] = 0.6 * (10 / 60) * np.array([0.3, 0.7])
    probabilities[1, 0, 0] = 0.6 * (50 / 60)  # 110 decodes to nothing: bit 1 is 0
    probabilities[0, :, 1] = 0.4 * np.array([0.3, 0.7])  # 1.1 decodes to nothing: bit 0 is 0
    model = ConditionalNetwork.fit(network, tables, domain, [Block((0, 1, 2), valid)], 100)
    counts = frequencies(model, domain)
    assert fits(counts, probabilities)
    slightly_off = probabilities + np.where(probabilities > 0, np.linspace(-0.01, 0.01, 8).reshape(2, 2, 2), 0)
    assert not fits(counts, slightly_off / slightly_off.sum())
