"""Triangulation: loops get chords, and each elimination adds as few edges as possible."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.model.triangulation import TableGraph


def test_a_ring_gets_a_chord_and_a_tree_none():
    path = [(0, 1), (1, 2), (2, 3)]
    assert TableGraph((2,) * 4, path).cliques() == [(0, 1), (1, 2), (2, 3)]
    ring = TableGraph((2,) * 4, path).joined((0, 3))
    assert sorted(map(len, ring.cliques())) == [3, 3]
    assert ring.cells == 16


@given(st.lists(st.lists(st.integers(0, 11), min_size=2, max_size=3, unique=True), max_size=20))
@settings(deadline=None, max_examples=80)
def test_whoever_is_eliminated_adds_as_few_edges_as_anybody_left(chosen):
    sizes = (2, 3, 4) * 4
    edges = {frozenset(pair) for table in chosen for pair in itertools.combinations(table, 2)}
    left = set(range(len(sizes)))
    for variable, mask in TableGraph(sizes, [tuple(table) for table in chosen]).elimination():
        around = {v: {w for w in left if frozenset((v, w)) in edges} for v in left}
        missing = {v: _pairs_of(around[v]) - edges for v in left}
        assert around[variable] == {v for v in left if mask >> v & 1}
        assert len(missing[variable]) == min(map(len, missing.values()))
        edges |= missing[variable]
        left.remove(variable)
    assert not left


def _pairs_of(variables):
    return {frozenset(pair) for pair in itertools.combinations(variables, 2)}
