"""What every coverage rests on: here, the noise of columns that are counted alone."""

from fractions import Fraction
from statistics import fmean

import pytest

from protocol.forecast.coverage import sizes_of, variances_alone
from protocol.stages.registry import blank_columns
from protocol.tables.schema import Schema
from tests.support.small_runs import terms_of

LONG = 40
SCHEMA = Schema.parse(
    {
        "attributes": [
            {"name": "age", "kind": "integer", "min": 1, "max": LONG},
            {"name": "code", "kind": "categorical", "values": [f"v{number}" for number in range(LONG)]},
        ]
    }
)


def test_columns_of_one_size_with_unlike_noise_are_told_by_their_mean() -> None:
    wishes = {"method": "guided", "split": (Fraction(1, 4),) * 4, "noise_shape": "wavelet", "delta": Fraction(1, 10**6)}
    terms = terms_of(SCHEMA, [500, 500], 1, privacy="zcdp", further=(1, 1), rounds=1, **wishes)
    with_wavelet, plain = (table.variance for table in blank_columns(terms))
    assert with_wavelet != pytest.approx(plain)
    (size,) = set(sizes_of(terms))
    assert variances_alone(terms) == {size: fmean([with_wavelet, plain])}
