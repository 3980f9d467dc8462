import math
from collections import Counter, defaultdict
from fractions import Fraction
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from crypto.sampling.laplace import laplace_variance
from protocol.errors import PlanError
from protocol.views.cover import Budgets, Cover, Objective, cover, direct_pairs
from protocol.views.galois import is_prime, lines, prime_powers_up_to
from protocol.views.search import (
    Search,
    cell_summand,
    cube_root_summand,
    error_summand,
    least_product,
    least_total,
    usable_columns,
)
from tests.support.effort import mostly_exhaustive

ADULT = (16, 7, 16, 16, 16, 7, 14, 6, 5, 2, 8, 15, 16, 41, 2)
KINDS: list[tuple[Objective, Budgets]] = [
    ("expected-error", "equal"),
    ("expected-error", "cube-root"),
    ("paper", "equal"),
    ("paper", "cube-root"),
]


def times_covered(found: Cover) -> np.ndarray:
    """How many views contain both variables of each pair; on the diagonal, how many contain the variable."""
    member = np.zeros((len(found.views), len(found.domain_sizes)), dtype=np.float32)
    np.add.at(
        member, (np.repeat(np.arange(len(found.views)), list(map(len, found.views))), np.concatenate(found.views)), 1
    )
    return (member.T @ member).astype(int)


def assert_is_cover(found: Cover) -> None:
    covered = times_covered(found)
    np.fill_diagonal(covered, 1)
    assert (covered == 1).all()
    assert all(list(view) == sorted(set(view)) and len(view) > 1 for view in found.views)
    assert len(set(found.views)) == len(found.views) == len(found.weights)
    assert min(found.weights) >= 1


def product_of(found: Cover) -> int:
    return len(found.views) ** 2 * sum(found.summands)


# Multiplicity


@pytest.mark.parametrize(("objective", "budgets"), KINDS)
@pytest.mark.parametrize("block", mostly_exhaustive(range(2, 131, 13), range(5)))
def test_every_pair_is_in_exactly_one_view(block: int, objective: Objective, budgets: Budgets) -> None:
    for count in range(block, min(block + 13, 131)):
        assert_is_cover(cover((2,) * count, objective, budgets))


@pytest.mark.parametrize(("objective", "budgets"), KINDS)
@pytest.mark.parametrize("primes_only", [False, True])
def test_every_pair_is_in_exactly_one_view_of_uneven_variables(
    objective: Objective, budgets: Budgets, primes_only: bool
) -> None:
    generator = np.random.default_rng(7)
    for sizes in (ADULT, (1, 1, 1), *(generator.integers(1, 40, size=count) for count in (2, 3, 9, 33, 60))):
        found = cover([int(size) for size in sizes], objective, budgets, primes_only)
        assert_is_cover(found)
        assert max(found.view_cells) <= 2**20


# The best, against brute force


@cache
def brute_force(count: int, primes_only: bool) -> dict[int, int]:
    """For every number of views the least total of binary summands: the DP over (size, number of views)."""
    if count < 2:
        return {0: 0}
    least: dict[int, int] = defaultdict(lambda: 2**62)
    least[1] = math.comb(count, 2) * 2**count
    least[math.comb(count, 2)] = min(4 * math.comb(count, 2), least[math.comb(count, 2)])
    for n in prime_powers_up_to(count - 1):
        rows = math.ceil(count / n)
        if rows > n or (primes_only and not is_prime(n)):
            continue
        last = count - (rows - 1) * n
        full, short = n * last, n * (n - last) if rows > 2 else 0
        total = full * math.comb(rows, 2) * 2**rows + short * math.comb(rows - 1, 2) * 2 ** (rows - 1)
        options = {full + short: total}
        for row in (*(n,) * (rows - 1), last):
            options = add_all(options, brute_force(row, primes_only))
        for views, value in options.items():
            least[views] = min(least[views], value)
    return dict(least)


def add_all(some: dict[int, int], others: dict[int, int]) -> dict[int, int]:
    least: dict[int, int] = defaultdict(lambda: 2**62)
    for views, total in some.items():
        for more_views, more in others.items():
            least[views + more_views] = min(least[views + more_views], total + more)
    return least


@pytest.mark.parametrize("primes_only", [False, True])
@pytest.mark.parametrize("count", [*range(2, 33), 50, 52])
def test_hull_search_finds_what_the_dp_over_views_finds(count: int, primes_only: bool) -> None:
    table = brute_force(count, primes_only)
    found = cover((2,) * count, "expected-error", "equal", primes_only, largest_view=2**60)
    assert product_of(found) == min(views**2 * total for views, total in table.items())


def plain_totals(search: Search, sizes: tuple[int, ...], limit: int) -> set[tuple[int, int]]:
    """(total, views) of every design whatever, without bounds or memory."""
    found = set()
    cells = math.prod(sizes)
    if len(sizes) == 1:
        return {(0, 0)}
    if cells <= limit:
        found.add((one(search, len(sizes), cells), 1))
    if search.direct_pairs:
        pairs = [one(search, 2, a * b) for a, b in combinations(sizes, 2)]
        found.add((sum(pairs), len(pairs)))
    for n in search.columns:
        if not n < len(sizes) <= n * n:
            continue
        rows = [sizes[start : start + n] for start in range(0, len(sizes), n)]
        views = []
        for line in lines(n, len(rows)).reshape(len(rows), -1).T:
            views.append([row[column] for row, column in zip(rows, line, strict=True) if column < len(row)])
        views = [view for view in views if len(view) > 1]
        if any(math.prod(view) > limit for view in views):
            continue
        sums = {(sum(one(search, len(view), math.prod(view)) for view in views), len(views))}
        for row in rows:
            sums = {(s + t, v + w) for s, v in sums for t, w in plain_totals(search, row, limit)}
        found |= sums
    return found


def one(search: Search, size: int, cells: int) -> int:
    return round(float(search.summand(size, float(cells))))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("limit", [200, 2**20])
def test_bounds_and_memory_lose_nothing_on_uneven_variables(seed: int, limit: int) -> None:
    generator = np.random.default_rng(seed)
    sizes = tuple(sorted((int(2 ** generator.uniform(1, 3.8)) for _ in range(9)), reverse=True))
    columns = usable_columns(len(sizes), False)
    for summand, direct in ((error_summand, True), (cube_root_summand, True), (cell_summand, False)):
        search = Search(summand, columns, direct, limit)
        plain = plain_totals(search, sizes, limit)
        assert least_total(search, sizes).total == min(total for total, _ in plain)
        if direct:
            best = least_product(search, sizes)
            assert best.views**2 * best.total == min(views**2 * total for total, views in plain)


# The construction, by hand


def test_sixteen_binary_variables_are_the_lines_of_a_plane() -> None:
    found = cover((2,) * 16, "expected-error", "equal")
    assert len(found.views) == 20
    assert {len(view) for view in found.views} == {4}
    assert found.cells == 20 * 16
    assert found.error_factor == 20**2 * 20 * 6 * 16


def test_few_variables() -> None:
    assert cover((3, 5), "expected-error", "equal").views == ((0, 1),)
    assert cover((2, 2, 2), "expected-error", "equal").views == ((0, 1, 2),)  # 3 * 8 < 3^2 * 12
    assert cover((10, 10, 10), "expected-error", "equal").views == ((0, 1), (0, 2), (1, 2))  # 3 * 1000 > 3^2 * 300
    assert cover((2, 2), "paper", "equal").weights == (1,)


def test_views_stay_below_the_largest() -> None:
    wide = cover((2,) * 40, "expected-error", "equal", largest_view=8)
    assert max(wide.view_cells) <= 8
    assert_is_cover(wide)
    assert_is_cover(cover((1024,) * 5, "paper", "equal"))


def test_refusals() -> None:
    with pytest.raises(PlanError, match="2000000 cells"):
        cover((3, 1000, 2000, 2), "expected-error", "equal")
    with pytest.raises(PlanError, match="at least two"):
        cover((3,), "expected-error", "equal")


def test_many_uneven_variables() -> None:
    # Costs of wide views overflow floats long before they matter.
    assert_is_cover(cover((100, 90) * 60, "expected-error", "cube-root"))


def test_both_orders_of_sizes_are_tried() -> None:
    sizes = (2,) * 20 + (5,) * 10 + (16,) * 5 + (100,)
    columns = usable_columns(len(sizes), False)
    values = []
    for order in (tuple(sorted(sizes)), tuple(sorted(sizes, reverse=True))):
        design = least_product(Search(error_summand, columns, True, 2**20), order)
        values.append(design.views**2 * design.total)
    assert values[0] < 0.95 * values[1]
    assert product_of(cover(sizes, "expected-error", "equal")) == values[0]


# Budgets and predictions


def test_cube_root_weights_are_exact_integer_roots() -> None:
    found = cover(ADULT, "expected-error", "cube-root")
    for weight, summand in zip(found.weights, found.summands, strict=True):
        assert weight**3 <= summand * 2**48 < (weight + 1) ** 3
    assert direct_pairs((2, 4, 16), "cube-root").weights == (2 * 2**16, 208063, 4 * 2**16)  # of 8, 32, 64


def test_budgets_add_up_to_epsilon_exactly() -> None:
    found = cover(ADULT, "expected-error", "cube-root")
    assert sum(found.budgets(Fraction(1, 5))) == Fraction(1, 5)


def test_prediction_by_hand() -> None:
    pairs = direct_pairs((2, 3, 5), "equal")
    assert pairs.summands == (6, 10, 15)
    assert pairs.error_factor == 9 * 31
    # A third of the budget each, and a histogram has sensitivity 2.
    assert pairs.expected_squared_error(Fraction(3, 5)) == pytest.approx(31 * laplace_variance(Fraction(1, 10)))
    assert pairs.variances(Fraction(3, 5)) == (laplace_variance(Fraction(1, 10)),) * 3


@pytest.mark.parametrize("sizes", [(2,) * 23, (2,) * 52, (2,) * 130, ADULT])
def test_uneven_budgets_win(sizes: tuple[int, ...]) -> None:
    equal, uneven = (cover(sizes, "expected-error", budgets) for budgets in ("equal", "cube-root"))
    assert uneven.error_factor < equal.error_factor < direct_pairs(sizes, "equal").error_factor
    assert uneven.error_factor == pytest.approx(sum(c ** (1 / 3) for c in uneven.summands) ** 3, rel=1e-4)


# What is wrong in the paper (protocol/papers.md)


def crossing_cells(count: int, rows: int, columns: int) -> int:
    """Cells of the columns^2 binary views that cross the rows, views of one variable included: counted one by one."""
    last = count - (rows - 1) * columns
    lengths = np.where(lines(columns, rows)[-1] < last, rows, rows - 1)
    return int((2**lengths).sum())


@pytest.mark.parametrize(("count", "rows", "columns"), [(9, 3, 3), (11, 3, 5), (23, 5, 5), (52, 5, 11), (6, 2, 5)])
def test_equation_6_misprints_a_square(count: int, rows: int, columns: int) -> None:
    printed = 2**rows * (columns * count - columns * rows + 2 * columns**2)
    mended = 2**rows * (columns * count - columns**2 * rows + 2 * columns**2)
    assert mended == 2 * crossing_cells(count, rows, columns)  # a cell's variance is 2 (W / epsilon)^2, so units of 2
    assert printed != mended
    full = count - (rows - 1) * columns
    halved = columns * full * 2**rows + columns * (columns - full) * 2 ** (rows - 1)
    assert halved == crossing_cells(count, rows, columns)


@cache
def algorithm_2(count: int, leaf: int) -> tuple[int, int]:
    """Least cost in the units of the mended equation 6, with leaves at leaf * 2^d, and the cells that it really has."""
    if count < 2:
        return 0, 0
    best = leaf * 2**count, 2**count
    for n in prime_powers_up_to(count - 1):
        rows = math.ceil(count / n)
        if is_prime(n) and rows <= n:
            last = count - (rows - 1) * n
            alone = 2 * n * (n - last) if rows == 2 else 0  # cells of views of one variable, which are not published
            crossing = crossing_cells(count, rows, n) - alone
            parts = [(2 * crossing, crossing), *((rows - 1) * [algorithm_2(n, leaf)]), algorithm_2(last, leaf)]
            best = min(best, (sum(cost for cost, _ in parts), sum(cells for _, cells in parts)))
    return best


@pytest.mark.parametrize("count", range(2, 40))
def test_paper_objective_is_algorithm_2_mended(count: int) -> None:
    cost, cells = algorithm_2(count, leaf=2)
    assert cost == 2 * cells
    assert cover((2,) * count, "paper", "equal").cells == cells


def test_algorithm_2_prints_half_a_leaf() -> None:
    # Six variables in rows of three: 9 pairs across, 4 cells each, and two rows of 8 cells: 52 cells. One view has 64.
    assert algorithm_2(6, leaf=2) == (2 * 52, 52)
    # As printed, the view seems to cost 64 where the crossing pairs alone cost 2 * 36, so more noise is chosen.
    assert algorithm_2(6, leaf=1) == (64, 64)


def test_algorithm_2_forgets_that_views_share_the_budget() -> None:
    for count, ratio in ((23, 2.8), (52, 1.3), (130, 2.5)):
        paper, right = (cover((2,) * count, o, "equal", primes_only=True) for o in ("paper", "expected-error"))
        assert paper.cells < right.cells
        assert len(paper.views) > len(right.views)
        assert paper.error_factor > ratio * right.error_factor


def test_prime_powers_help() -> None:
    primes, powers = (cover((2,) * 52, "expected-error", "equal", primes_only=only) for only in (True, False))
    assert Counter(map(len, powers.views)) == {8: 6, 7: 32, 6: 32, 4: 1}  # 7 rows of 8 columns
    assert product_of(powers) == 71**2 * 159_840
    assert 2.0 < primes.error_factor / powers.error_factor < 2.02
    # Where rows are not covered again, the best prime is 11 (5 rows), and it costs 9.6 times as much.
    one_level = [
        (n * n + rows) ** 2 * (crossing_total(52, rows, n) + (rows - 1) * row_total(n) + row_total(52 - (rows - 1) * n))
        for n in prime_powers_up_to(51)
        if is_prime(n) and (rows := math.ceil(52 / n)) <= n and rows > 2
    ]
    assert 9.6 < min(one_level) / product_of(powers) < 9.7


def crossing_total(count: int, rows: int, columns: int) -> int:
    lengths = np.where(lines(columns, rows)[-1] < count - (rows - 1) * columns, rows, rows - 1)
    return int((lengths * (lengths - 1) // 2 * 2**lengths).sum())


def row_total(count: int) -> int:
    return math.comb(count, 2) * 2**count
