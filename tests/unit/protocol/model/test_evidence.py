"""Hearing: a model holds what is worth most and no more than is bearable, and hears every table once."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.model.evidence import Room, select_evidence
from protocol.model.junction_tree import JunctionTree
from protocol.model.triangulation import TableGraph, cells
from protocol.privacy.mechanisms import PURE
from protocol.tables.domain import Domain
from protocol.tables.marginal import Table

ROOM = Room(1 << 15)
STRONG = np.array([[40.0, 10.0], [10.0, 40.0]])


def size_of(found, sizes):
    return sum(cells(sizes, clique) for clique in JunctionTree.of(sizes, found.cliques).cliques)


def test_no_model_grows_beyond_what_is_bearable():
    count = 26
    tables = [Table(pair, STRONG, 0.1) for pair in combinations(range(count), 2)]
    found = select_evidence(tables, Domain.of_sizes((2,) * count), 100, PURE, ROOM)
    assert count - 1 < len(found.held) < len(tables)
    assert size_of(found, (2,) * count) <= ROOM.numbers


def test_stronger_pairs_of_views_come_first_and_weak_ones_only_where_they_lie_in_a_clique_anyway():
    random, count, rows = np.random.default_rng(2), 6, 10_000
    whole = random.multinomial(rows, np.full(2**count, 0.5**count)).reshape((2,) * count).astype(float)
    for a, b in ((0, 1), (1, 2), (0, 2)):
        index = tuple(slice(None) if v in (a, b) else 0 for v in range(count))
        whole[index] += 2000 * np.eye(2)
    weak = Table(tuple(range(count)), whole, 100.0)
    found = select_evidence([weak], Domain.of_sizes((2,) * count), int(whole.sum()), PURE, ROOM)
    assert {(0, 1), (0, 2), (1, 2)} <= {pair.variables for _, pair in found.held}
    assert any({0, 1, 2} <= set(clique) for clique in found.cliques)
    for pair in combinations(range(count), 2):
        assert (pair in {part.variables for _, part in found.held}) == any(set(pair) <= set(c) for c in found.cliques)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
@settings(deadline=None, max_examples=40)
def test_every_table_is_counted_once_in_each_of_its_variables(seed, views):
    random, count = np.random.default_rng(seed), 5
    domain = Domain.of_sizes((2, 3, 2, 2, 4))
    tables = []
    for _ in range(views):
        variables = tuple(sorted(int(v) for v in random.permutation(count)[: random.integers(1, 5)]))
        tables.append(Table(variables, random.normal(size=domain.shape(variables)) * 100, 1.0))
    found = select_evidence(tables, domain, 1000, PURE, ROOM)
    counted = np.zeros(count)
    for table, times in found.parts(domain):
        for variable in table.variables:
            # In units of what one table with one cell of variance 1 per code would say.
            counted[variable] += times * domain.sizes[variable] / (table.counts.size * table.variance)
    expected = np.zeros(count)
    for table in tables:
        for variable in table.variables:
            expected[variable] += domain.sizes[variable] / table.counts.size
    assert counted == pytest.approx(expected)


def test_growing_ends_where_nothing_fits_any_more(monkeypatch):
    count, tried = 40, []
    joined = TableGraph.joined
    monkeypatch.setattr(TableGraph, "joined", lambda *asked: tried.append(1) or joined(*asked))
    tables = [Table(pair, STRONG, 0.1) for pair in combinations(range(count), 2)]
    found = select_evidence(tables, Domain.of_sizes((2,) * count), 100, PURE, Room(8 * count))
    assert size_of(found, (2,) * count) <= 8 * count
    assert len(tried) < len(tables) / 2


def test_of_too_many_pairs_the_strongest_are_held_whether_they_were_counted_alone_or_in_a_view():
    weak = np.array([[26.0, 24.0], [24.0, 26.0]])
    view = np.zeros((2, 2, 2))
    view[0, 0, 0] = view[1, 1, 1] = 50.0  # over 3, 4 and 5
    tables = [*(Table(pair, weak, 0.1) for pair in combinations(range(5), 2) if pair != (3, 4))]
    tables += [Table((0, 5), STRONG, 0.1), Table((3, 4, 5), view, 0.1)]
    found = select_evidence(tables, Domain.of_sizes((2,) * 6), 100, PURE, Room(24))
    held = {pair.variables for _, pair in found.held}
    assert {(0, 5), (3, 4), (3, 5), (4, 5)} <= held
    assert size_of(found, (2,) * 6) <= 24


def test_pairs_that_one_model_can_hold_are_all_held_however_weak():
    weak = np.full((2, 2), 25.0)
    tables = [Table(pair, weak, 1e4) for pair in ((0, 1), (1, 2), (0, 3))]
    assert len(select_evidence(tables, Domain.of_sizes((2,) * 4), 100, PURE, ROOM).held) == 3
