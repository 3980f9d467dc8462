"""Slips of the papers that no other test demonstrates (see protocol/papers.md)."""

from fractions import Fraction

import numpy as np

from protocol.network.network import Family, Network, maximal_families
from protocol.tables.counting import Rows
from protocol.tables.domain import Domain


def test_one_row_moves_a_conditional_probability_by_one_whatever_the_number_of_rows() -> None:
    """PrivABN adds noise for a sensitivity of 2m/n to conditionals; it should be 1 (no. 11). Counts move by 2."""
    domain = Domain.of_sizes([2, 2])  # child and parent
    parents = np.array([*[0] * 9_999, 1], np.uint8)
    before, after = (
        Rows(domain, [np.array([*[0] * 9_999, child], np.uint8), parents]).table((0, 1)) for child in (0, 1)
    )
    conditionals = [Fraction(int(table[0, 1]), int(table[:, 1].sum())) for table in (before, after)]
    assert conditionals == [1, 0]
    assert np.abs(after - before).sum() == 2


def test_the_first_families_of_an_updated_network_need_not_nest_in_a_later_one() -> None:
    """The papers count d - k tables because families 1..k nest in family k + 1; after phase 3 they need not (no. 7)."""
    domain = Domain.of_sizes([2, 2, 2, 2])
    k = 2
    network = Network.of([Family(0), Family(1, (0,)), Family(2, (0,)), Family(3, (0,))], domain)
    assert len(maximal_families(network, domain)) == 3 > domain.count - k
