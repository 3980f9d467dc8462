"""Figures of numbers and dates: by hand, with ranges that hold the real ones, recommended where these are narrow."""

import numpy as np
import pytest

from crypto.randomness import Stream
from curator.results.number_figures import number_figures
from protocol.tables.attributes import Attribute
from protocol.tables.marginal import Table
from protocol.tables.schema import Schema

ROWS = 20_000


def attribute_of(**fields) -> Attribute:
    return Schema.parse({"attributes": [{"name": "x", **fields}]}).attributes[0]


def figures_of(attribute: Attribute, counts, deviation: float = 5.0, seed: int = 1):
    counts = np.asarray(counts)
    noise = np.random.default_rng(seed).normal(0, deviation, len(counts)).round()
    table = Table((0,), counts + noise, deviation**2)
    return number_figures(attribute, counts, table, int(counts.sum()))


def test_figures_of_single_values_are_exact():
    attribute = attribute_of(kind="integer", min=10, max=14, unit="days")
    found = figures_of(attribute, [100, 200, 400, 200, 100])
    told = {name: one["value"] for name, one in found["figures"].items()}
    spread = round(float(np.sqrt((4 * 200 + 400) / 1000)), 5)
    assert told == {
        "mean": 12.0, "deviation": pytest.approx(spread, abs=1e-5), "first_quartile": 11.0, "median": 12.0,
        "third_quartile": 13.0,
    }  # fmt: skip
    assert (found["attribute"], found["unit"]) == ("x", "days")


def test_figures_of_wide_bins_are_those_of_values_drawn_from_them():
    attribute = attribute_of(kind="real", edges=[0, 10, 20, 50, 100], decimals=2)
    counts = np.array([12_000, 5000, 2000, 1000])
    texts = attribute.texts(np.repeat(np.arange(4), counts), Stream.keyed(b"values"))
    values = np.array([float(text) for text in texts])
    found = {name: one["value"] for name, one in figures_of(attribute, counts)["figures"].items()}
    assert found["mean"] == pytest.approx(values.mean(), rel=0.02)
    assert found["deviation"] == pytest.approx(values.std(), rel=0.02)
    quartiles = [found["first_quartile"], found["median"], found["third_quartile"]]
    assert quartiles == pytest.approx(np.quantile(values, (0.25, 0.5, 0.75)), rel=0.03)


def test_ranges_hold_the_real_figures_and_widen_with_noise():
    """A bell of twenty bins in 20 tables. It is narrower than every listed shape, so that some ranges fail."""
    attribute = attribute_of(kind="real", min=0, max=100, bins=20)
    counts = np.round(ROWS * np.exp(-((np.arange(20) - 9.5) ** 2) / 18) / 7.52).astype(int)
    widths, inside = [], 0
    for seed in range(20):
        mean = figures_of(attribute, counts, 30.0, seed)["figures"]["mean"]
        inside += mean["low"] <= 50 <= mean["high"]
        widths.append(mean["high"] - mean["low"])
    assert inside >= 15
    narrow = figures_of(attribute, counts, 1.0)["figures"]["mean"]
    assert narrow["high"] - narrow["low"] < np.median(widths)


def test_only_figures_with_a_small_error_are_recommended():
    attribute = attribute_of(kind="real", min=0, max=500_000, bins=50)
    counts = np.array([1300, 130, 30, 12, 5, 3, *[0] * 44])
    assert figures_of(attribute, counts, 60.0)["good_for"] == []
    fine = attribute_of(kind="integer", min=0, max=19)
    assert figures_of(fine, np.full(20, 1000), 2.0)["good_for"] == ["mean", "standard deviation", "quartiles"]


def test_dates_are_written_as_in_the_table_and_their_spread_in_days():
    attribute = attribute_of(kind="date", min="2019", max="2022", resolution="month", format="%d.%m.%Y")
    found = figures_of(attribute, np.full(48, 400))["figures"]
    assert found["mean"]["value"][3:] in ("12.2020", "01.2021")
    assert found["deviation"]["value"] == pytest.approx(1461 / np.sqrt(12), rel=0.02)


def test_missing_values_are_left_out():
    attribute = attribute_of(kind="integer", min=0, max=9, missing=[""])
    found = figures_of(attribute, [*[100] * 10, 50_000])
    assert found["figures"]["mean"]["value"] == 4.5


def test_a_column_without_a_table_or_rows_has_no_figures():
    attribute = attribute_of(kind="integer", min=0, max=3, missing=[""])
    assert number_figures(attribute, np.full(5, 9), None, 45)["figures"] is None
    nobody = number_figures(attribute, np.array([0, 0, 0, 0, 9]), Table((0,), np.array([0, 0, 0, 0, 9]), 1.0), 9)
    assert nobody["figures"] is None
