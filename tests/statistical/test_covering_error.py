"""Measured error of reconstructed pair tables against the prediction.

False-alarm rate 1e-6 a test: the mean of 3,000 measured errors, each a sum over hundreds of cells, is compared with
the prediction at six of its own standard errors (a normal tail of 2e-9; the rest is allowance for its skewness and for
the standard error being estimated).
"""

from fractions import Fraction

import numpy as np
import pytest

from protocol.network.mutual_information import pair_tables
from protocol.tables.domain import Domain
from protocol.tables.marginal import Table
from protocol.views.cover import cover, direct_pairs
from tests.support.effort import mostly_exhaustive

SIZES = (4, 2, 3, 2, 2, 6, 2, 3, 2, 2)
REPEATS = 3000
FALSE_ALARM_DEVIATIONS = 6


@pytest.mark.parametrize("epsilon", mostly_exhaustive([Fraction(1, 5), Fraction(8)], {0}))
@pytest.mark.parametrize("kind", ["equal", "cube-root", "pairs"])
def test_measured_error_is_the_predicted_one(kind: str, epsilon: Fraction) -> None:
    domain = Domain.of_sizes(SIZES)
    found = direct_pairs(SIZES, "equal") if kind == "pairs" else cover(SIZES, "expected-error", kind)
    generator = np.random.default_rng()
    noisy = [
        _noise(generator, budget / 2, domain.shape(view))  # sensitivity 2
        for view, budget in zip(found.views, found.budgets(epsilon), strict=True)
    ]
    errors = np.zeros(REPEATS)
    for repeat in range(REPEATS):
        tables = [Table(view, noise[repeat]) for view, noise in zip(found.views, noisy, strict=True)]
        errors[repeat] = sum((pair.counts**2).sum() for pair in pair_tables(found, tables, domain).values())
    predicted = found.expected_squared_error(epsilon)
    allowed = FALSE_ALARM_DEVIATIONS * errors.std(ddof=1) / np.sqrt(REPEATS)
    assert abs(errors.mean() - predicted) < allowed
    assert allowed < 0.1 * predicted  # or the test could not see a wrong factor


def _noise(generator: np.random.Generator, rate: Fraction, shape: tuple[int, ...]) -> np.ndarray:
    """Discrete Laplace as a difference of geometric variables: numpy's own, apart from the sampler of crypto."""
    success = -np.expm1(-float(rate))
    return generator.geometric(success, (REPEATS, *shape)) - generator.geometric(success, (REPEATS, *shape))
