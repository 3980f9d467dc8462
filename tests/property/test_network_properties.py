"""The best network inside a frontier against an exhaustive search, and the tables that networks need."""

from itertools import combinations, product
from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.network.limits import Limits
from protocol.network.network import Family, Network, best_network, family_table, maximal_families, maximal_parent_sets
from protocol.tables.domain import Domain, Variable, Variables
from protocol.tables.marginal import Table
from tests.support.effort import examples

# Variable 0 is the child; 5 and 6 generalise 3, of four codes, and 4, of three.
DOMAIN = Domain(
    (
        *(Variable(f"v{i}", size, i) for i, size in enumerate([2, 2, 3, 4, 3])),
        Variable("v3'", 2, 3, (0, 0, 1, 1)),
        Variable("v4'", 2, 4, (0, 1, 1)),
    )
)
limit = st.builds(Limits, st.none() | st.integers(1, 80), st.none() | st.integers(0, 4))


def generalisations(parent: int) -> list[int]:
    return [v for v in DOMAIN.variants[DOMAIN.base(parent)] if DOMAIN.sizes[v] <= DOMAIN.sizes[parent]]


def parent_sets(parents: Variables) -> list[Variables]:
    """Every subset of the parents at every level."""
    subsets = [subset for size in range(len(parents) + 1) for subset in combinations(parents, size)]
    return [tuple(sorted(levels)) for subset in subsets for levels in product(*map(generalisations, subset))]


def says_more(larger: Variables, smaller: Variables) -> bool:
    return larger != smaller and all(any(v in generalisations(w) for w in larger) for v in smaller)


frontier_parents = (
    st.sets(st.sampled_from([1, 2, 3, 4, 5, 6]))
    .map(sorted)
    .map(tuple)
    .filter(lambda parents: len({DOMAIN.base(p) for p in parents}) == len(parents))
)


@settings(deadline=None, max_examples=examples(150))
@given(frontier_parents, limit)
def test_candidates_are_the_maximal_admitted_parent_sets(parents: Variables, limits: Limits) -> None:
    admitted = [own for own in parent_sets(parents) if limits.admits(DOMAIN, 0, own)]
    maximal = [own for own in admitted if not any(says_more(other, own) for other in admitted)]
    found = maximal_parent_sets(Family(0, parents), limits, DOMAIN)
    assert len(found) == len(set(found))
    assert set(found) == set(maximal)


def information(table: Table, parents: Variables) -> float:
    joint = table.project((0, *parents), DOMAIN).counts.reshape(2, -1)
    whole = joint.sum()
    return sum(
        float(joint[x, y]) / whole * log2(joint[x, y] * whole / joint[x].sum() / joint[:, y].sum())
        for x, y in np.argwhere(joint)
    )


@settings(deadline=None, max_examples=examples(75))
@given(frontier_parents, limit, st.integers(0, 2**32))
def test_no_admitted_parent_set_tells_more_than_the_best(parents: Variables, limits: Limits, seed: int) -> None:
    frontier = Network.of([Family(0, parents), *map(Family, range(1, 5))], DOMAIN)
    counts = np.random.default_rng(seed).integers(0, 9, DOMAIN.shape((0, *parents))) + 1
    table = Table((0, *parents), counts)
    best = best_network(frontier, {0: table}, {0: float(counts.sum())}, limits, DOMAIN)
    admitted = [own for own in parent_sets(parents) if limits.admits(DOMAIN, 0, own)]
    assert best.parents_of(0) in admitted
    most = max(information(table, own) for own in admitted)
    assert information(table, best.parents_of(0)) == pytest.approx(most, abs=1e-9)


@st.composite
def networks(draw: st.DrawFn) -> Network:
    order = draw(st.permutations(range(5)))
    families = []
    for place, child in enumerate(order):
        bases = draw(st.sets(st.sampled_from(order[:place]), max_size=3)) if place else set()
        parents = sorted(draw(st.sampled_from(DOMAIN.variants[base])) for base in bases)
        families.append(Family(child, tuple(parents)))
    return Network.of(draw(st.permutations(families)), DOMAIN)


@settings(deadline=None, max_examples=examples(150))
@given(networks())
def test_parents_come_before_their_children(network: Network) -> None:
    placed: set[int] = set()
    for family in network.families:
        assert {DOMAIN.base(parent) for parent in family.parents} <= placed
        placed.add(family.child)
    assert placed == set(range(5))


@settings(deadline=None, max_examples=examples(100))
@given(networks(), st.integers(0, 2**32))
def test_the_maximal_families_answer_every_family_and_none_is_idle(network: Network, seed: int) -> None:
    rows = np.random.default_rng(seed).integers(0, 9, DOMAIN.shape(range(5)))
    everything = Table(tuple(range(5)), rows)
    tables = [everything.project(variables, DOMAIN) for variables in maximal_families(network, DOMAIN)]
    for family in network.families:
        expected = everything.project(family.variables, DOMAIN).counts
        assert family_table(family, tables, DOMAIN).counts.tolist() == expected.tolist()
    for index, table in enumerate(tables):
        rest = tables[:index] + tables[index + 1 :]
        assert not any(other.covers(table.variables, DOMAIN) for other in rest)


@settings(deadline=None, max_examples=examples(150))
@given(st.lists(st.sets(st.integers(0, 4), max_size=2), min_size=5, max_size=5))
def test_families_make_a_network_unless_some_path_leads_back(parents: list[set[int]]) -> None:
    families = [Family(child, tuple(sorted(own - {child}))) for child, own in enumerate(parents)]
    edges = np.zeros((5, 5), dtype=np.int64)
    for family in families:
        edges[list(family.parents), family.child] = 1
    leads_back = any(np.trace(np.linalg.matrix_power(edges, length)) for length in range(2, 6))
    if leads_back:
        with pytest.raises(ValueError, match="cycle"):
            Network.of(families, DOMAIN)
    else:
        assert set(Network.of(families, DOMAIN).families) == set(families)
