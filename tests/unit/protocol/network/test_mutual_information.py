import math
from itertools import combinations

import numpy as np
import pytest

from protocol.network.mutual_information import mutual_information, mutual_information_matrix, pair_tables
from protocol.tables.domain import Domain, Variable
from protocol.tables.marginal import Table, project_to_simplex
from protocol.views.cover import cover


def test_mutual_information_by_hand() -> None:
    assert mutual_information(np.array([[5, 0], [0, 5]])) == 1.0
    assert mutual_information(np.eye(8) * 3) == pytest.approx(3.0)
    assert mutual_information(np.array([[2, 4, 6], [1, 2, 3]])) == pytest.approx(0.0, abs=1e-12)
    # H(X) = H(Y) = 0.8113 bits (3/4, 1/4) and H(X, Y) = 1.5 bits (1/2, 1/4, 1/4).
    assert mutual_information(np.array([[2, 1], [1, 0]])) == pytest.approx(2 * (2 - 0.75 * math.log2(3)) - 1.5)


def test_no_information_in_an_empty_table_and_never_less_than_none() -> None:
    assert mutual_information(np.zeros((3, 2))) == 0.0
    generator = np.random.default_rng(3)
    for _ in range(200):
        independent = np.outer(generator.random(5), generator.random(4))
        assert 0.0 <= mutual_information(independent) < 1e-12


@pytest.mark.parametrize("budgets", ["equal", "cube-root"])
def test_pair_tables_of_exact_views_are_the_counts_themselves(budgets: str) -> None:
    sizes = (3, 2, 5, 2, 4, 2, 2, 3, 6)
    rows = np.random.default_rng(1).integers(0, sizes, size=(500, len(sizes)))
    domain = Domain.of_sizes(sizes)
    found = cover(sizes, "expected-error", budgets)
    tables = [Table(view, _count(rows, view, sizes), 7.0) for view in found.views]
    pairs = pair_tables(found, tables, domain)
    assert sorted(pairs) == list(combinations(range(len(sizes)), 2))
    for (i, j), table in pairs.items():
        assert table.variables == (i, j)
        assert (table.counts == _count(rows, (i, j), sizes)).all()
        view = next(v for v in found.views if {i, j} <= set(v))
        assert table.variance == 7.0 * domain.cells(view) / domain.cells((i, j))


def test_one_table_for_every_view() -> None:
    found = cover((2,) * 7, "expected-error", "equal", largest_view=8)
    with pytest.raises(ValueError, match="zip"):
        pair_tables(found, [], Domain.of_sizes((2,) * 7))


def test_matrix_by_hand() -> None:
    domain = Domain.of_sizes((2, 2, 3))
    pairs = {
        (0, 1): Table((0, 1), np.array([[5, 0], [0, 5]])),
        (0, 2): Table((0, 2), np.array([[2, 2, 1], [2, 2, 1]])),
        (1, 2): Table((1, 2), np.array([[6.0, 0, 0], [0, 6.0, -1.0]])),  # projected: 5, 5 and 0
    }
    expected = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert mutual_information_matrix(pairs, domain, 10) == pytest.approx(np.array(expected), abs=1e-12)


def test_matrix_has_one_row_for_each_base_variable() -> None:
    domain = Domain((Variable("a", 4, 0), Variable("b", 2, 1), Variable("a, coarse", 2, 0, (0, 0, 1, 1))))
    matrix = mutual_information_matrix({(0, 1): Table((0, 1), np.ones((4, 2)))}, domain, 8)
    assert matrix.shape == (2, 2)


def test_matrix_is_the_mutual_information_of_each_projected_table() -> None:
    sizes = (2, 3, 2, 5, 3, 2)
    domain = Domain.of_sizes(sizes)
    generator = np.random.default_rng(5)
    pairs = {
        (i, j): Table((i, j), generator.integers(-20, 60, size=(sizes[i], sizes[j])))
        for i, j in combinations(range(len(sizes)), 2)
    }
    matrix = mutual_information_matrix(pairs, domain, 150)
    assert (matrix == matrix.T).all()
    assert (np.diag(matrix) == 0).all()
    for (i, j), table in pairs.items():
        assert matrix[i, j] == pytest.approx(mutual_information(project_to_simplex(table.counts, 150)), abs=1e-12)


def _count(rows: np.ndarray, variables: tuple[int, ...], sizes: tuple[int, ...]) -> np.ndarray:
    counts = np.zeros([sizes[v] for v in variables], dtype=np.int64)
    np.add.at(counts, tuple(rows[:, v] for v in variables), 1)
    return counts
