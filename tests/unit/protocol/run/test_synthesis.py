from fractions import Fraction

import numpy as np
import pytest

from crypto.randomness import Stream
from protocol.run.synthesis import synthetic_codes
from protocol.tables.distance import average_distance
from tests.support.small_runs import MIXED, NO_NOISE, Driver, pooled, random_codes, terms_of

ROWS = (600, 300)


def synthetic(method, rows, encoding="native", epsilon=NO_NOISE):
    wishes = {"split": (epsilon / 2, epsilon / 2)} if method != "dp-subn" else {}
    terms = terms_of(MIXED, ROWS, epsilon, method=method, noise="local", encoding=encoding, **wishes)
    run = Driver(terms, random_codes(MIXED, ROWS), clear=True).finish()
    batches = synthetic_codes(terms, run.state.knowledge, rows, Stream.keyed(b"synthesis"))
    return [np.concatenate(column) for column in zip(*batches, strict=True)]


@pytest.mark.parametrize("method", ["dp-subn", "privbayes", "privabn", "jtree", "dp-ccbn", "independent"])
@pytest.mark.parametrize("encoding", ["native", "binary", "gray", "hierarchical"])
def test_without_noise_synthetic_rows_look_like_the_real_ones(method, encoding):
    real = pooled(MIXED, random_codes(MIXED, ROWS))
    made = synthetic(method, 20_000, encoding)
    # Families that grow parent by parent miss what only several bits of Gray code together tell.
    most = 0.07 if (method, encoding) == ("privabn", "gray") else 0.05
    assert average_distance(real, made, MIXED.sizes, 2) < most


@pytest.mark.parametrize("rows", [1, 2, 7, 1000])
@pytest.mark.parametrize("method", ["dp-subn", "independent"])
def test_any_number_of_rows_can_be_drawn(method, rows):
    assert [len(column) for column in synthetic(method, rows)] == [rows] * 5


def test_heavy_noise_still_gives_values_of_the_schema():
    for encoding in ("native", "binary", "gray"):
        made = synthetic("dp-subn", 500, encoding, Fraction(1, 1000))
        assert all(column.max() < size for column, size in zip(made, MIXED.sizes, strict=True))
