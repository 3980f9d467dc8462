"""What a tuned plan pays for follows from public numbers, and changes where it should."""

from fractions import Fraction
from time import process_time

import pytest

from crypto.sampling.laplace import polya_bound
from protocol.plan.tuning import pair_error, tuned
from protocol.privacy.mechanisms import PURE, ZCDP

MANY_CODES = (16, 7, 16, 16, 14, 6, 5, 2, 15, 41, 2)
BITS = (2,) * 16
ROWS = (15_000, 15_000, 15_000)


@pytest.mark.parametrize(
    ("sizes", "epsilon", "views", "has_rounds"),
    [
        (BITS, "0.8", "pairs", False),
        (BITS, "0.01", "single", False),
        (MANY_CODES, "0.1", "single", False),
        (MANY_CODES, "1.6", "single", True),
    ],
)
def test_small_pairs_are_counted_and_large_ones_picked_with_rounds_when_the_budget_bears_them(
    sizes, epsilon, views, has_rounds
):
    found = tuned("guided", sizes, ROWS, Fraction(epsilon), PURE, 1)
    assert found.views == views
    assert bool(found.shares[2]) == (sum(found.further) > 0) == has_rounds
    assert found.shares[3] > 0
    assert sum(found.further) <= len(sizes)


def test_a_larger_budget_or_less_noise_lowers_the_expected_error_of_pairs():
    half, whole = (pair_error(BITS, 45_000, Fraction(e), PURE, 1.5) for e in ("0.4", "0.8"))
    assert half == pytest.approx(2 * whole, rel=0.01)
    assert pair_error(BITS, 45_000, Fraction("0.8"), PURE, 1) == pytest.approx(whole / 1.5**0.5)
    assert pair_error(MANY_CODES, 45_000, Fraction(1), PURE, 1) == 1


def test_one_variable_needs_no_network():
    for method in ("guided", "dp-subn"):
        assert tuned(method, (5,), (10, 10), Fraction(1), PURE, 1).further == (0, 0)


@pytest.mark.parametrize(("variables", "rows", "epsilon"), [(50, 10**6, "0.05"), (16, 10**5, "0.05"), (23, 10**5, "3")])
def test_the_last_pass_gets_little_beside_views_but_noise_that_can_be_drawn(variables, rows, epsilon):
    found = tuned("guided", (2,) * variables, (rows, rows), Fraction(epsilon), PURE, 1)
    assert found.views == "pairs"
    share = Fraction(found.shares[3], sum(found.shares))
    assert share <= Fraction(1, 5)
    rate = PURE.rate(Fraction(epsilon) * share / variables)
    assert polya_bound(rate, 1) > 0  # refuses rates that are too small
    assert share == Fraction(1, 100) or rate < Fraction(1, 10_000)


def test_with_gaussian_noise_the_last_pass_gets_a_hundredth():
    found = tuned("guided", (2,) * 16, (10**5,), Fraction(1, 1000), ZCDP, 0)
    assert (found.views, found.shares) == ("pairs", (99, 0, 0, 1))


# The five phases of DP-SUBN


@pytest.mark.parametrize("parties", [1, 3, 10])
@pytest.mark.parametrize(("sizes", "epsilon", "views"), [(BITS, "0.8", "pairs"), (MANY_CODES, "0.8", "halves")])
@pytest.mark.parametrize("definition", [PURE, ZCDP])
def test_every_phase_gets_a_part_and_every_table_alike(parties, sizes, epsilon, views, definition):
    budget = Fraction(epsilon) if definition is PURE else Fraction(1, 100)
    found = tuned("dp-subn", sizes, (45_000 // parties,) * parties, budget, definition, min(1, parties - 1))
    assert found.views == views
    assert all(share > 0 for share in found.shares)
    assert sum(found.split(budget)) == budget
    assert len(found.further) == parties
    last = next(own for own in reversed(found.further) if own)
    tables = sum(found.further) + (len(sizes) - 1 if views == "halves" else 0)
    assert found.shares[3] <= sum(found.shares) * Fraction(last, tables)


@pytest.mark.parametrize("parties", [2, 10])
@pytest.mark.parametrize(("variables", "epsilon"), [(50, "0.2"), (16, "0.1"), (23, "3")])
def test_noise_beside_views_can_be_drawn(parties, variables, epsilon):
    found = tuned("dp-subn", (2,) * variables, (10**6 // parties,) * parties, Fraction(epsilon), PURE, 1)
    assert found.views == "pairs"
    _, _, _, parameters = found.split(Fraction(epsilon))
    assert polya_bound(PURE.rate(parameters), parties - 1) > 0  # refuses rates that are too small
    assert found.shares[0] / sum(found.shares) >= Fraction(9, 10)


@pytest.mark.parametrize("columns", [401, 2000])
def test_very_many_columns_take_no_long_search(columns):
    """1,000 columns took 24 s and 1.9 GB, whoever asked for the plan."""
    began = process_time()
    assert tuned("guided", (2,) * columns, ROWS, Fraction(1), PURE, 1).views == "single"
    assert process_time() - began < 1
