"""Junction trees: sums of products are those of the full table, whatever the tables that are connected."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.model.junction_tree import JunctionTree

SIZES = (2, 3, 2, 4, 2)


@st.composite
def tables(draw):
    pairs = [*itertools.combinations(range(len(SIZES)), 2), (0, 1, 2), (1, 3, 4)]
    return draw(st.lists(st.sampled_from(pairs), max_size=6))


def full_table(tree, potentials):
    logs = np.zeros(SIZES)
    for clique, potential in zip(tree.cliques, potentials, strict=True):
        logs = logs + np.moveaxis(
            potential.reshape(*potential.shape, *(1,) * (len(SIZES) - len(clique))),
            range(len(SIZES)),
            [*clique, *(v for v in range(len(SIZES)) if v not in clique)],
        )
    return np.exp(logs)


@given(tables(), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=80)
def test_marginals_are_those_of_the_whole_distribution(chosen, seed):
    tree = JunctionTree.of(SIZES, chosen)
    random = np.random.default_rng(seed)
    potentials = [random.normal(size=tree.shape(clique)) * 3 for clique in tree.cliques]
    weights = full_table(tree, potentials)
    marginals, logarithm = tree.marginals(potentials)
    assert logarithm == pytest.approx(np.log(weights.sum()), abs=1e-9)
    whole = weights / weights.sum()
    for clique, found in zip(tree.cliques, marginals, strict=True):
        others = tuple(v for v in range(len(SIZES)) if v not in clique)
        in_order = np.transpose(found, np.argsort(clique))
        assert in_order == pytest.approx(whole.sum(axis=others), abs=1e-12)


@given(tables())
@settings(deadline=None, max_examples=80)
def test_every_table_has_a_home_and_every_variable_a_connected_part_of_the_tree(chosen):
    tree = JunctionTree.of(SIZES, chosen)
    assert {v for clique in tree.cliques for v in clique} == set(range(len(SIZES)))
    for table in chosen:
        assert set(table) <= set(tree.cliques[tree.home(table)])
    for place in range(1, len(tree.cliques)):
        earlier = {v for clique in tree.cliques[:place] for v in clique}
        assert set(tree.separators[place]) == set(tree.cliques[place]) & earlier
        assert tree.parents[place] < place
