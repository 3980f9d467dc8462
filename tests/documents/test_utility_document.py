"""The document of `make bench-utility`: what it says follows from the results."""

from typing import Any

import pytest

from curator.experiments.sweep.figures import means
from tests.benchmarks.utility import (
    CCBN,
    CENTRAL,
    CLASSIFIED,
    GUIDED,
    INDEPENDENT,
    PAPER,
    SUBN,
    ZCDP_TRUSTING,
    Book,
    document,
)


def records(errors: dict[str, float], epsilon: str = "0.8") -> list[dict[str, Any]]:
    """Two runs of each method, a hundredth apart."""
    return [
        {
            "data": "adult",
            "options": {"epsilon": epsilon, "parties": "3", "method": label},
            "seed": seed,
            "label": label,
            "outcome": {"measured": {"2-way": error + seed / 100}, "bytes": 1234567, "seconds": 1.0},
        }
        for label, error in errors.items()
        for seed in (0, 1)
    ]


def text(*found: dict[str, Any]) -> str:
    return "\n".join(document(Book(means(found)), found))


def test_errors_stand_with_their_standard_error_and_number_of_runs():
    assert "| adult | 0.8 | 0.1050 ± 0.0050 |" in text(*records({INDEPENDENT: 0.1, GUIDED: 0.04}))


@pytest.mark.parametrize(
    ("paper", "others"),
    [(0.3, "1.97 to 1.97 (0 of 1) | 2.90 to 2.90 (0 of 1)"), (0.02, "0.16 to 0.16 (1 of 1) | 0.24 to 0.24 (1 of 1)")],
)
def test_the_papers_claim_is_counted(paper, others):
    said = text(*records({INDEPENDENT: 0.15, CCBN: 0.1, PAPER: paper}))
    assert f"| {PAPER} | adult | {others} |" in said


def test_a_lever_is_compared_with_the_whole():
    said = text(*records({SUBN: 0.045, "without luck": 0.095}))
    assert "| without luck | 0.1000 ± 0.0050 (2.00) |" in said


def test_predictions_stand_beside_what_was_measured_and_what_is_not_predicted_is_counted():
    found = records({GUIDED: 0.045, CCBN: 0.095, PAPER: 0.3})
    for one in found:
        if one["label"] != PAPER:
            one["outcome"]["predicted"] = 0.06 if one["label"] == GUIDED else 0.2
    said = text(*found)
    assert f"| adult | {GUIDED} | 1 | 1.20 to 1.20 | 0 | 0 |" in said
    assert f"| adult | {CCBN} | 1 | 2.00 to 2.00 | 1 | 0 |" in said
    assert f"| adult | {PAPER} | 1 |  | 0 | 1 |" in said
    assert "Within 1.5: 1 of 2 settings with a prediction; the worst is 2.00. Not predicted: 1 of 3." in said


def test_methods_that_see_all_rows_stand_beside_ours():
    said = text(*records({GUIDED: 0.045, ZCDP_TRUSTING: 0.0251}))
    assert "| adult | 0.8 | 0.0500 ± 0.0050 |  |  | 0.0301 ± 0.0050 |  | 0.0256 | 0.0391 | 0.0526 | 1.18 |" in said
    assert "## Beside methods that see all rows" not in text(*records({GUIDED: 0.3}, epsilon="0.7"))


def test_each_classifier_has_a_table_of_its_own_and_no_error_counts_twice():
    classified = records({GUIDED: 0.1})
    for one in classified:
        one["data"] = CLASSIFIED
        wrong = {"wrong about income": 0.25, "wrong about income by gradient boosting": 0.125}
        one["outcome"]["measured"] = {"2-way": 0.5} | wrong
    said = text(*records({GUIDED: 0.045}), *classified)
    assert f"By linear SVM:\n| about | epsilon | {GUIDED} |" in said.replace("\n\n", "\n")
    assert "| income | 0.8 | 0.2500 ± 0.0000 |" in said
    assert "| income | 0.8 | 0.1250 ± 0.0000 |" in said
    assert "0.5000" not in said


def test_refusals_are_told():
    refused = records({PAPER: 0.1})[0] | {"outcome": {"refused": "it costs too much"}}
    assert "- it costs too much" in text(*records({INDEPENDENT: 0.1}), refused)


def test_methods_that_were_not_run_have_no_column():
    said = text(*records({INDEPENDENT: 0.1, CENTRAL["mst"]: 0.05}))
    assert f"| data | epsilon | {INDEPENDENT} | {CENTRAL['mst']} |" in said
    assert CENTRAL["aim"] not in said
