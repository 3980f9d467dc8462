from itertools import combinations, islice, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.network.limits import Limits
from protocol.network.parent_sets import count_parent_sets, maximal_sets, parent_sets, search_space
from protocol.tables.domain import Domain, Variable


def domain_with_levels(sizes, coarser):
    """Base variables of these sizes; `coarser[base]` lists the sizes of its generalisations, falling."""
    variables = [Variable(f"v{i}", size, i) for i, size in enumerate(sizes)]
    for base, levels in enumerate(coarser):
        for size in levels:
            groups = tuple(min(code, size - 1) for code in range(sizes[base]))
            variables.append(Variable(f"v{base}/{size}", size, base, groups))
    return Domain(tuple(variables))


def plain_parent_sets(domain, child, placed, limits):
    """By definition: every admitted choice of levels that no other admitted choice refines or extends."""
    levels = {base: list(reversed(domain.variants[base])) for base in placed}  # 0 is out, then from coarse to fine
    choices = list(product(*(range(len(levels[base]) + 1) for base in placed)))
    sets = {
        choice: tuple(sorted(levels[base][level - 1] for base, level in zip(placed, choice, strict=True) if level))
        for choice in choices
    }
    admitted = [choice for choice in choices if limits.admits(domain, child, sets[choice])]

    def beaten(choice):
        return any(other != choice and all(a >= b for a, b in zip(other, choice, strict=True)) for other in admitted)

    return sorted(sets[choice] for choice in admitted if not beaten(choice))


def test_binary_variables_have_all_subsets_of_the_degree():
    domain = Domain.of_sizes([2] * 6)
    assert parent_sets(domain, 5, [3, 0, 1], Limits(degree=2)) == [(0, 1), (0, 3), (1, 3)]
    assert parent_sets(domain, 5, [3, 0], Limits(degree=4)) == [(0, 3)]
    assert parent_sets(domain, 5, [], Limits(degree=4)) == [()]
    assert parent_sets(domain, 5, [3, 0], Limits(degree=0)) == [()]


def test_cells_by_hand():
    domain = Domain.of_sizes([3, 2, 5, 4])
    # Room for 24 / 4 = 6 cells: {0, 1} fits, {2} leaves no room.
    assert parent_sets(domain, 3, [0, 1, 2], Limits(cells=24)) == [(0, 1), (2,)]
    assert parent_sets(domain, 3, [0, 1, 2], Limits(cells=24, degree=1)) == [(0,), (1,), (2,)]


def test_a_child_that_is_too_large_alone_is_modelled_alone():
    domain = domain_with_levels([9, 4], [[], [2]])
    assert parent_sets(domain, 0, [1], Limits(cells=8)) == [()]
    assert parent_sets(Domain.of_sizes([9, 4]), 0, [1], Limits(cells=8)) == [()]


def test_a_generalised_parent_stands_in_where_the_full_one_does_not_fit():
    domain = domain_with_levels([2, 8, 4], [[], [4, 2], [2]])  # 3 = v1/4, 4 = v1/2, 5 = v2/2
    assert parent_sets(domain, 0, [1, 2], Limits(cells=16)) == [(1,), (2, 4), (3, 5)]
    assert parent_sets(domain, 0, [1, 2], Limits(cells=16, degree=1)) == [(1,), (2,)]
    assert parent_sets(domain, 0, [1, 2], Limits(degree=2)) == [(1, 2)]


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_the_search_equals_the_definition(data):
    sizes = data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=5))
    falling = st.lists(st.integers(1, 6), max_size=2, unique=True).map(lambda levels: sorted(levels, reverse=True))
    coarser = [[level for level in data.draw(falling) if level < size] for size in sizes]
    domain = domain_with_levels(sizes, coarser)
    placed = list(range(1, len(sizes)))
    limits = Limits(cells=data.draw(st.none() | st.integers(1, 300)), degree=data.draw(st.none() | st.integers(0, 5)))
    expected = plain_parent_sets(domain, 0, placed, limits)
    assert parent_sets(domain, 0, placed, limits) == expected
    assert count_parent_sets(domain, 0, placed, limits, 10**6) == len(expected)
    assert count_parent_sets(domain, 0, placed, limits, 2) == min(2, len(expected))


@pytest.mark.parametrize("limits", [Limits(degree=3), Limits(cells=16), Limits(cells=17, degree=9)])
def test_uniform_sets_are_counted_without_being_built(limits):
    domain = Domain.of_sizes([2] * 200)
    assert count_parent_sets(domain, 0, range(1, 200), limits, 10**9) == 199 * 198 * 197 // 6


def test_the_search_starts_to_find_at_once_among_200_variables():
    domain = Domain.of_sizes([2, *(2 + i % 16 for i in range(199))])
    placed, limits = range(1, 200), Limits(cells=4000)
    found = list(islice(maximal_sets(*search_space(domain, 0, placed, limits)), 2000))
    assert len(set(found)) == 2000
    for parents in found[::100]:
        room = 4000 // domain.cells((0, *parents))
        assert room >= 1
        assert all(domain.sizes[v] > room for v in placed if v not in parents)
    assert count_parent_sets(domain, 0, placed, limits, 2000) == 2000


def test_every_set_appears_once():
    domain = Domain.of_sizes([2, 3, 4, 5, 6, 7, 8, 9])
    found = parent_sets(domain, 0, range(1, 8), Limits(cells=150))
    assert len(found) == len(set(found))
    assert not any(set(one) < set(other) for one, other in combinations(found, 2))


@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=9), st.integers(1, 200), st.none() | st.integers(0, 6))
def test_sets_counted_by_sizes_are_as_many_as_are_found(sizes, cells, degree):
    domain, limits = Domain.of_sizes([2, *sizes]), Limits(cells=cells, degree=degree)
    placed = range(1, len(sizes) + 1)
    assert count_parent_sets(domain, 0, placed, limits, 10**9) == len(parent_sets(domain, 0, placed, limits))


def test_a_million_sets_are_counted_without_being_built():
    domain = Domain.of_sizes([2, *[2, 3] * 100])
    assert count_parent_sets(domain, 0, range(1, 201), Limits(cells=2000), 10**15) > 10**6
