"""The comparison of benchmarks with their baseline: what it tells, and that the baseline names what is measured."""

import json

import pytest

from tests.benchmarks.__main__ import BASELINE, main, worse
from tests.benchmarks.kernels import KERNELS
from tests.benchmarks.scaling import CURVES

BEFORE = {"ratios": {"drawing": 0.5}, "slopes": {"rows n": 0.9}, "instructions": {"rows drawn": 1_000_000}}


@pytest.mark.parametrize(
    ("kind", "name", "now", "is_worse"),
    [
        ("ratios", "drawing", 0.79, False),
        ("ratios", "drawing", 0.81, True),
        ("slopes", "rows n", 1.09, False),
        ("slopes", "rows n", 1.11, True),
        ("instructions", "rows drawn", 1_029_000, False),
        ("instructions", "rows drawn", 1_031_000, True),
    ],
)
def test_only_what_is_worse_by_more_than_is_allowed_is_told(kind, name, now, is_worse):
    told = worse(BEFORE | {kind: {name: now}}, BEFORE)
    assert bool(told) == is_worse
    assert all(name in line for line in told)


def test_what_is_no_longer_measured_is_told():
    assert "is missing" in worse(BEFORE | {"ratios": {}}, BEFORE)[0]


def test_the_baseline_names_all_kernels_and_curves():
    baseline = json.loads(BASELINE.read_text())
    assert baseline["instructions"].keys() == KERNELS.keys()
    assert baseline["slopes"].keys() == CURVES.keys()


def test_a_slower_kernel_fails_the_comparison(monkeypatch, capsys):
    counts = json.loads(BASELINE.read_text())["instructions"]
    monkeypatch.setattr("tests.benchmarks.__main__.instructions", lambda: counts)
    assert main(["compare-short"]) == 0
    monkeypatch.setattr("tests.benchmarks.__main__.instructions", lambda: counts | {"rows drawn": 10**12})
    assert main(["compare-short"]) == 1
    assert "rows drawn is 1,000,000,000,000" in capsys.readouterr().out
