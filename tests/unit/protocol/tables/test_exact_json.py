from decimal import Decimal
from fractions import Fraction

import pytest

from protocol.tables.exact_json import decimal_text, fixed_point, is_number, number_of, write_json


@pytest.mark.parametrize("text", ["0", "-1", "+1.", ".5", "12.50", "1e3", "-1.5E-12", "007"])
def test_numbers_as_people_write_them(text):
    assert is_number(text)
    Fraction(text)


@pytest.mark.parametrize(
    "text", ["", ".", "nan", "inf", "1_000", " 1", "1 ", "1,5", "0x1", "1e", "1e1000", "١", "1/2", "--1", "9" * 301]
)
def test_what_is_no_number(text):
    assert not is_number(text)


def test_fixed_point_keeps_the_sign_of_values_below_one():
    assert [fixed_point(units, 2) for units in (-5, -105, 0, 7, 250)] == ["-0.05", "-1.05", "0.00", "0.07", "2.50"]
    assert fixed_point(-12, 0) == "-12"


def test_decimal_text_is_the_shortest():
    assert [decimal_text(Fraction(text)) for text in ("10.50", "-0.125", "100", "0")] == ["10.5", "-0.125", "100", "0"]


def test_canonical_json():
    value = {"b": [Fraction(1, 2), 3], "a": {"ü": "\n", "d": Fraction(7)}}
    assert write_json(value) == '{"a":{"d":7,"ü":"\\n"},"b":[0.5,3]}'


def test_the_zero_with_any_sign_is_zero():
    assert number_of(-0.0) == number_of(Decimal("-0")) == 0
