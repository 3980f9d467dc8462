"""Score M: no changed row moves a gain further than its sensitivity, nor are gains further apart than the span."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.randomness import Stream
from protocol.model.growth import grown_cells
from protocol.model.triangulation import TableGraph
from protocol.picks import by_model
from protocol.picks.by_model import REFERENCE_ROWS, Judge, admissible, gains, sensitivity, span, tree_options
from protocol.tables.counting import Rows
from protocol.tables.domain import Domain
from tests.support.effort import examples, mostly_exhaustive

ROOM = 1 << 15
DOMAIN = Domain.of_sizes((2, 3, 2))
OPTIONS = [(0,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
CELLS = list(itertools.product(range(2), range(3), range(2)))


def rows_of(cells):
    return Rows(DOMAIN, [np.array(column, dtype=np.uint8) for column in zip(*cells, strict=True)])


def reference_of(seed):
    shares = np.random.default_rng(seed).dirichlet(np.full(len(CELLS), 0.3))
    codes = np.random.default_rng(seed + 1).choice(len(CELLS), REFERENCE_ROWS, p=shares)
    return rows_of([CELLS[code] for code in codes])


REFERENCES = [reference_of(seed) for seed in range(3)]
NOISES = (0.0, 0.4, 30.0)


@pytest.mark.parametrize(
    ("reference", "noise"), mostly_exhaustive(itertools.product(range(len(REFERENCES)), NOISES), quick={0, 4, 8})
)
def test_no_neighbour_of_any_small_table_moves_a_score_further_than_its_sensitivity(reference, noise):
    """All tables of three rows, with every other value of one of them."""
    known = {
        cells: gains(rows_of(cells), REFERENCES[reference], OPTIONS, noise)
        for cells in itertools.combinations_with_replacement(CELLS, 3)
    }
    most = 0
    for cells, scores in known.items():
        for place, other in itertools.product(range(3), CELLS):
            neighbour = tuple(sorted((*cells[:place], *cells[place + 1 :], other)))
            most = max(most, int(np.abs(scores - known[neighbour]).max()))
    assert most <= sensitivity(3)
    assert most > sensitivity(3) * 0.4  # the bound is no larger than it has to be


def test_no_neighbour_moves_the_halved_score_of_a_set_without_target_further_than_the_sensitivity():
    """All tables of two rows, with every other value of one of them; the target is the first variable."""
    targeted = {
        cells: Judge(rows_of(cells), REFERENCES[0], 0.4, lambda variables: 0 in variables).scores(OPTIONS)
        for cells in itertools.combinations_with_replacement(CELLS, 2)
    }
    moved = [
        np.abs(scores - targeted[tuple(sorted((kept, other)))])
        for cells, scores in targeted.items()
        for kept, other in itertools.product(cells, CELLS)
    ]
    assert np.max(moved) <= sensitivity(2)
    without = [place for place, option in enumerate(OPTIONS) if len(option) > 1 and 0 not in option]
    assert np.max(moved, axis=0)[without].max() <= sensitivity(2) / 2 + 1


@given(st.lists(st.sampled_from(CELLS), min_size=1, max_size=40), st.sampled_from(CELLS), st.sampled_from(NOISES))
@settings(deadline=None, max_examples=examples(100))
def test_random_tables_keep_sensitivity_and_span(cells, other, noise):
    scores, moved = (gains(rows_of(c), REFERENCES[0], OPTIONS, noise) for c in (cells, [*cells[1:], other]))
    assert np.abs(scores - moved).max() <= sensitivity(len(cells))
    assert scores.max() - scores.min() <= span(len(cells), 12, noise)


def test_measuring_nothing_gains_nothing():
    assert gains(rows_of(CELLS), REFERENCES[0], [(2,), (0,)], 5.0).tolist() == [0, 0]


def test_with_a_large_budget_the_worst_answered_pair_is_picked_and_with_much_noise_none():
    cells = [(a, b, a) for a in range(2) for b in range(3)] * 50  # the first and the last always agree
    uniform = rows_of([CELLS[i % len(CELLS)] for i in range(REFERENCE_ROWS)])
    quiet, loud = (Judge(rows_of(cells), uniform, noise) for noise in (0.1, 500.0))
    for mechanism in ("permute-and-flip", "exponential"):
        assert quiet.pick(OPTIONS, Fraction(100), mechanism, Stream.keyed(b"pick")) == (0, 2)
        assert loud.pick(OPTIONS, Fraction(100), mechanism, Stream.keyed(b"pick")) == (0,)


@pytest.mark.parametrize("noise", NOISES)
def test_a_judge_scores_as_if_every_option_was_new(noise):
    rows = rows_of(CELLS[:5] * 7)
    judge = Judge(rows, REFERENCES[1], noise)
    judge.scores(OPTIONS[1:])
    assert judge.scores(OPTIONS).tolist() == gains(rows, REFERENCES[1], OPTIONS, noise).tolist()


def test_options_of_a_tree_and_of_further_pairs():
    assert tree_options(3, [1]) == [(0,), (0, 1), (2,), (2, 1)]
    assert admissible((2, 3, 2), [(1, 0)], [(0, 1), (0, 2), (1, 2)], ROOM) == [(0, 2), (1, 2)]
    sizes = (200, 200, 200, 2)
    taken = [(0, 1), (1, 2)]  # closing this triangle would take 200^3 numbers
    every = list(itertools.combinations(range(4), 2))
    assert admissible(sizes, [], every, ROOM) == [(0, 3), (1, 3), (2, 3)]
    assert admissible(sizes, taken, every, ROOM) == []
    small = (30, 30, 40, 2)
    assert admissible(small, taken, every, ROOM) == [(0, 3), (1, 3), (2, 3)]


@given(st.lists(st.sampled_from((2, 5, 16, 30)), min_size=4, max_size=10), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=40)
def test_a_pair_has_room_where_the_model_can_grow_or_a_new_one_is_small_enough(sizes, seed):
    every = list(itertools.combinations(range(len(sizes)), 2))
    chosen = np.random.default_rng(seed).permutation(len(every))[: len(sizes) + 2]
    taken = [every[place] for place in chosen]
    graph = TableGraph(sizes, taken)
    grown = grown_cells(graph)
    expected = [pair for pair in every if pair not in taken and min(grown[pair], graph.joined(pair).cells) <= ROOM]
    assert admissible(sizes, taken, every, ROOM) == expected


def test_of_many_pairs_those_that_need_the_least_growth_are_built_anew(monkeypatch):
    monkeypatch.setattr(by_model, "BUILT_ANEW", 5)
    ring = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]  # a chord makes no larger cliques than the model's own
    every = list(itertools.combinations(range(5), 2))
    assert len(admissible((2,) * 5, ring, every, 24)) == 3
    monkeypatch.setattr(by_model, "BUILT_ANEW", 15)
    assert len(admissible((2,) * 5, ring, every, 24)) == 5
