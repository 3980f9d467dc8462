"""Spending over time: the numbers are the ledger's, and the picture stays inside its frame."""

import re
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from party.books.ledger import Entry
from party.pages.timeline import HEIGHT, WIDTH, picture, spendings

NOW = "2026-11-30T00:00:00.000+00:00"


def entry(run: str, day: int, charge: str) -> Entry:
    at = f"2026-11-{day:02}T10:00:00.000+00:00"
    return Entry("patients", run, "p" * 64, f"step-{day}", "own noise", Fraction(charge), "q", "r", 10, at)


def test_spending_is_run_by_run_and_exact() -> None:
    found = spendings([entry("a", 1, "1/3"), entry("b", 2, "1/5"), entry("a", 3, "1/3"), entry("b", 2, "0")])
    assert [(one.run, one.charge, one.spent) for one in found] == [
        ("b", Fraction(1, 5), Fraction(1, 5)),
        ("a", Fraction(2, 3), Fraction(13, 15)),
    ]


def test_nothing_spent_is_no_picture() -> None:
    assert picture([entry("a", 1, "0")], Fraction(1), Fraction(0), NOW) is None


@given(
    st.lists(st.tuples(st.integers(1, 28), st.fractions(0, 5, max_denominator=100)), min_size=1, max_size=20),
    st.fractions(0, 10, max_denominator=100),
    st.fractions(0, 10, max_denominator=100),
)
def test_the_picture_stays_inside_its_frame(
    charges: list[tuple[int, Fraction]], total: Fraction, reserved: Fraction
) -> None:
    found = picture([entry("a", day, str(charge)) for day, charge in charges], total, reserved, NOW)
    if found is None:
        assert not any(charge for _, charge in charges)
        return
    assert all(0 <= float(x) <= WIDTH for x in re.findall(r"H([\d.]+)", found.line))
    heights = [float(y) for y in re.findall(r"V([\d.]+)", found.line)]
    assert heights == sorted(heights, reverse=True)  # what is spent never comes back
    assert all(0 <= y <= HEIGHT for y in (*heights, found.total, found.reserved))
    assert heights[-1] == found.spent
    assert found.reserved <= found.spent
