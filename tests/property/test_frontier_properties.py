"""The fast CSFC against a slow transcription of Algorithm 1, and what holds of every frontier."""

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from protocol.network.frontier import search_frontier
from protocol.network.limits import Limits
from protocol.network.network import Family, Network
from protocol.tables.domain import Domain, Variable
from tests.support.effort import examples

Parents = dict[int, set[int]]


def algorithm_1(network: Parents, information: list[list[int]], degree: int) -> Parents:
    """The paper's pseudocode line by line; `information` in whole numbers, so that no comparison is rounded."""
    parents = {x: set(own) for x, own in network.items()}
    queue = sorted(combinations(parents, 2), key=lambda q: (-information[q[0]][q[1]], q))
    while queue:
        x, y = queue.pop(0)
        edge = None
        if y not in parents[x] and x not in parents[y]:
            if len(parents[x]) < degree and len(parents[y]) < degree:
                if x in ancestors(parents, y):
                    edge = (x, y)
                elif y in ancestors(parents, x):
                    edge = (y, x)
                else:
                    product_x = sparsity(parents, x, degree) * impact(parents, x, y, information)
                    product_y = sparsity(parents, y, degree) * impact(parents, y, x, information)
                    edge = (y, x) if product_x >= product_y else (x, y)
            elif len(parents[x]) < degree and y in ancestors(parents, x):
                edge = (y, x)
            elif len(parents[y]) < degree and x in ancestors(parents, y):
                edge = (x, y)
            if edge is not None:
                parents[edge[1]].add(edge[0])
    return parents


def ancestors(parents: Parents, x: int) -> set[int]:
    return {x}.union(*(ancestors(parents, parent) for parent in parents[x]))


def sparsity(parents: Parents, x: int, degree: int) -> int:
    own = ancestors(parents, x)
    return degree * len(own) - sum(len(parents[other]) for other in own)


def impact(parents: Parents, x: int, y: int, information: list[list[int]]) -> int:
    descendants = [other for other in parents if y in ancestors(parents, other)]
    everything = sum(information[a][b] for a in ancestors(parents, x) for b in descendants)
    return everything - information[x][y]


@st.composite
def start_networks(draw: st.DrawFn, largest: int = 9) -> tuple[Parents, int]:
    """A network of random order and the largest number of parents in it."""
    order = draw(st.permutations(range(draw(st.integers(2, largest)))))
    degree = draw(st.integers(0, 3))
    parents = {
        x: draw(st.sets(st.sampled_from(order[:place]), max_size=degree)) if place else set()
        for place, x in enumerate(order)
    }
    return dict(sorted(parents.items())), degree


def informations(count: int) -> st.SearchStrategy[list[list[int]]]:
    """Symmetric, with many equal values."""
    pairs = st.lists(st.integers(0, 12), min_size=count * count, max_size=count * count)
    return pairs.map(lambda flat: [[flat[min(i, j) * count + max(i, j)] for j in range(count)] for i in range(count)])


def as_network(parents: Parents, domain: Domain) -> Network:
    return Network.of((Family(x, tuple(sorted(own))) for x, own in parents.items()), domain)


def matrix(information: list[list[int]]) -> NDArray[np.float64]:
    return np.array(information) / 16  # sums of these are exact


@settings(deadline=None, max_examples=examples(200))
@given(st.data())
def test_the_frontier_is_that_of_algorithm_1(data: st.DataObject) -> None:
    parents, k = data.draw(start_networks())
    information = data.draw(informations(len(parents)))
    degree = data.draw(st.integers(k, k + 4))
    domain = Domain.of_sizes([2] * len(parents))
    frontier = search_frontier(as_network(parents, domain), matrix(information), Limits(degree=degree), domain)
    assert {x: set(frontier.parents_of(x)) for x in parents} == algorithm_1(parents, information, degree)


@st.composite
def general_domains(draw: st.DrawFn, count: int) -> Domain:
    """Sizes 2 to 5; some variables have a generalisation to two codes."""
    sizes = draw(st.lists(st.integers(2, 5), min_size=count, max_size=count))
    variables = [Variable(f"v{i}", size, i) for i, size in enumerate(sizes)]
    for base in draw(st.sets(st.integers(0, count - 1))):
        if sizes[base] > 2:
            groups = tuple(int(code > 0) for code in range(sizes[base]))
            variables.append(Variable(f"v{base}'", 2, base, groups))
    return Domain(tuple(variables))


@settings(deadline=None, max_examples=examples(200))
@given(st.data())
def test_every_frontier_keeps_the_network_and_the_limits_and_is_full(data: st.DataObject) -> None:
    parents, k = data.draw(start_networks())
    domain = data.draw(general_domains(len(parents)))
    network = as_network(parents, domain)
    cells = max([domain.cells(family.variables) for family in network.families if family.parents], default=2)
    extra = st.integers(cells, 4 * cells)
    limits = data.draw(st.builds(Limits, extra, st.none()) | st.builds(Limits, extra, st.integers(k, k + 2)))
    frontier = search_frontier(network, matrix(data.draw(informations(len(parents)))), limits, domain)

    assert Network.of(frontier.families, domain) == frontier  # ordered, and hence without a cycle
    assert [family.child for family in sorted(frontier.families, key=lambda f: f.child)] == list(range(len(parents)))
    assert set(network.edges()) <= set(frontier.edges())
    assert all(limits.admits(domain, family.child, family.parents) for family in frontier.families)

    def has_room(child: int, parent: int) -> bool:
        own = frontier.parents_of(child)
        return any(limits.admits(domain, child, (*own, variant)) for variant in domain.variants[parent])

    linked = {frozenset((domain.base(parent), child)) for parent, child in frontier.edges()}
    for x, y in combinations(parents, 2):
        assert frozenset((x, y)) in linked or not (has_room(x, y) and has_room(y, x))
