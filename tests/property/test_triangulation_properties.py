"""Triangulation with everything kept that a change leaves alone is the triangulation from scratch, bit for bit."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.model.growth import grown_cells
from protocol.model.junction_tree import JunctionTree
from protocol.model.triangulation import TableGraph
from tests.reference import triangulation_from_scratch as scratch


@st.composite
def graphs(draw):
    sizes = tuple(draw(st.lists(st.sampled_from((1, 2, 2, 3, 4, 5, 40)), min_size=1, max_size=14)))
    variables = st.lists(st.integers(0, len(sizes) - 1), min_size=1, max_size=4, unique=True)
    return sizes, [tuple(table) for table in draw(st.lists(variables, max_size=24))]


@given(graphs(), st.integers(0, 24))
@settings(deadline=None, max_examples=150)
def test_a_graph_that_was_joined_table_by_table_is_triangulated_as_from_scratch(graph, first):
    sizes, tables = graph
    found = TableGraph(sizes, tables[:first])
    for table in tables[first:]:
        found = found.joined(table)
    expected = [(v, sum(1 << w for w in around)) for v, around in scratch.elimination(sizes, tables)]
    assert list(found.elimination()) == expected
    assert found.cliques() == scratch.cliques(sizes, tables)
    assert found.cells == TableGraph(sizes, tables).cells


@given(graphs())
@settings(deadline=None, max_examples=80)
def test_a_graph_is_left_alone_by_what_is_made_of_it(graph):
    sizes, tables = graph
    found = TableGraph(sizes, tables)
    before = list(found.elimination())
    found.joined(tuple(range(len(sizes))))
    assert list(found.elimination()) == before


@given(graphs())
@settings(deadline=None, max_examples=80)
def test_the_tree_is_the_one_whose_neighbours_share_the_most_variables(graph):
    sizes, tables = graph
    found, cliques = JunctionTree.of(sizes, tables), scratch.cliques(sizes, tables)
    order, parents = scratch.spanning_tree(cliques)
    assert [tuple(sorted(clique)) for clique in found.cliques] == [cliques[i] for i in order]
    assert list(found.parents) == parents


@given(graphs())
@settings(deadline=None, max_examples=80)
def test_growth_is_that_of_carrying_a_variable_through_the_tree(graph):
    sizes, tables = graph
    grown, tree = grown_cells(TableGraph(sizes, tables)), JunctionTree.of(sizes, tables)
    for one, other in itertools.combinations(range(len(sizes)), 2):
        assert grown[one, other] == grown[other, one] == scratch.grown_cells(tree, one, other)
