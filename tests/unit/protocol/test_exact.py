from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.exact import allocate, canonical_json, digest, exact, proportional_counts

WEIGHTS = st.lists(st.integers(0, 10**6), min_size=1, max_size=12).filter(any)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.8", Fraction(4, 5)),
        ("4/5", Fraction(4, 5)),
        (" 8/10 ", Fraction(4, 5)),
        (".5", Fraction(1, 2)),
        ("3.", Fraction(3)),
        ("-0.25", Fraction(-1, 4)),
        ("+7", Fraction(7)),
        ("1e-9", Fraction(1, 10**9)),
        ("2.5E-3", Fraction(1, 400)),
        ("1e-49", Fraction(1, 10**49)),
        ("0.1000000000000000055511151231257827", Fraction(1000000000000000055511151231257827, 10**34)),
        (3, Fraction(3)),
        (Fraction(1, 3), Fraction(1, 3)),
    ],
)
def test_exact_numbers_are_read_without_rounding(text, value):
    assert exact(text) == value


# no binary float, no infinity, no large exponent (1e9999999 would fill the memory), no division by zero, no other
# script
EXPONENTS = ["1e-50", "1e-100", "1e9", "1E3", "e-9", "1e-", "1/2e-3"]
INEXACT_TEXTS = ["nan", "inf", *EXPONENTS, "1/0", "1/000", "", ".", "-", "1/2/3", "0.1/2", "1 / 2", "1_0", "½", "٣"]
INEXACT = [0.5, float("nan"), True, None, b"1", [1], np.float64(0.5), "9" * 41, "1/" + "9" * 101]


@pytest.mark.parametrize("value", [*INEXACT_TEXTS, *INEXACT])
def test_everything_else_is_refused(value):
    with pytest.raises(ValueError, match=r'expected an exact number such as "0.8" or "4/5", found'):
        exact(value)


def test_a_refusal_does_not_repeat_a_flood():
    with pytest.raises(ValueError) as refusal:
        exact("x" * 10**6)
    assert len(str(refusal.value)) < 200


def test_shares_are_in_proportion():
    assert allocate(Fraction(1, 3), (1, 2, 0)) == (Fraction(1, 9), Fraction(2, 9), Fraction(0))


@given(st.fractions(0, 100), WEIGHTS)
def test_shares_add_up_exactly(amount, weights):
    assert sum(allocate(amount, weights)) == amount


@pytest.mark.parametrize(
    ("count", "weights", "dealt"),
    [
        (10, (1, 1, 1), (4, 3, 3)),  # a tie goes to the earlier
        (10, (1, 2, 7), (1, 2, 7)),
        (2, (5, 5, 5), (1, 1, 0)),
        (7, (1, 100), (0, 7)),
        (5, (1, 1, 2), (1, 1, 3)),  # 1.25, 1.25, 2.5: the largest remainder first
        (0, (3, 1), (0, 0)),
    ],
)
def test_things_are_dealt_out_by_largest_remainder(count, weights, dealt):
    assert proportional_counts(count, weights) == dealt


@given(st.integers(0, 10**6), WEIGHTS)
def test_dealt_counts_add_up_and_miss_proportion_by_less_than_one(count, weights):
    dealt = proportional_counts(count, weights)
    assert sum(dealt) == count
    assert all(abs(own - Fraction(count * w, sum(weights))) < 1 for own, w in zip(dealt, weights, strict=True))


def test_canonical_json_has_one_spelling():
    assert canonical_json({"b": (1, 2), "a": "é"}) == '{"a":"é","b":[1,2]}'.encode()
    with pytest.raises(ValueError):
        canonical_json(float("nan"))


def test_digest_is_sha256():
    assert digest(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_integers_that_could_not_be_written_again_are_refused():
    assert exact(10**100 - 1) == 10**100 - 1
    for size in (100, 4000, 5000):
        for number in (10**size, -(10**size)):
            with pytest.raises(ValueError):
                exact(number)
