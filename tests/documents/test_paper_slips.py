"""Slips of the papers that no other test demonstrates (see protocol/papers.md)."""

from fractions import Fraction

from protocol.network.network import Family, Network, maximal_families
from protocol.tables.domain import Domain


def conditional(child_and_parent: list[tuple[int, int]], child: int, parent: int) -> Fraction:
    with_parent = [row for row in child_and_parent if row[1] == parent]
    return Fraction(with_parent.count((child, parent)), len(with_parent))


def test_one_row_moves_a_conditional_probability_by_one_whatever_the_number_of_rows() -> None:
    """PrivABN adds noise for a sensitivity of 2m/n to conditionals; it should be 1 (no. 11)."""
    others = [(0, 0)] * 9_999
    before = conditional([*others, (0, 1)], child=0, parent=1)
    after = conditional([*others, (1, 1)], child=0, parent=1)
    assert before - after == 1


def test_the_first_families_of_an_updated_network_need_not_nest_in_a_later_one() -> None:
    """The papers count d - k tables because families 1..k nest in family k + 1; after phase 3 they need not (no. 7)."""
    domain = Domain.of_sizes([2, 2, 2, 2])
    k = 2
    network = Network.of([Family(0), Family(1, (0,)), Family(2, (0,)), Family(3, (0,))], domain)
    assert len(maximal_families(network, domain)) == 3 > domain.count - k
