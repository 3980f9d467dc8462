from protocol.network.limits import Limits
from protocol.tables.domain import Domain

DOMAIN = Domain.of_sizes([2, 3, 5, 7])


def test_without_limits_every_family_is_admitted():
    assert Limits().admits(DOMAIN, 0, (1, 2, 3))


def test_cells_count_the_child():
    assert Limits(cells=30).admits(DOMAIN, 0, (1, 2))
    assert not Limits(cells=29).admits(DOMAIN, 0, (1, 2))


def test_degree_counts_parents():
    assert Limits(degree=2).admits(DOMAIN, 0, (1, 2))
    assert not Limits(degree=1).admits(DOMAIN, 0, (1, 2))


def test_a_variable_alone_is_admitted_however_many_cells_it_has():
    assert Limits(cells=1, degree=0).admits(DOMAIN, 3, ())
