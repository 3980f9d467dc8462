"""How much of a long test belongs to `make test`, and how much only to `make test-all`.

Two Hypothesis profiles are registered in `tests/conftest.py`: `quick` and `thorough`. What is tried case by case names
its rarer cases `exhaustive`, a mark that `make test` deselects.
"""

from collections.abc import Collection, Iterable
from typing import Any

import pytest
from hypothesis import settings

THOROUGH = 100  # examples of a property that names no number: Hypothesis's own default
QUICK = THOROUGH // 4


def register_profiles() -> None:
    # A change is judged by the same examples each time; a thorough run, and `make fuzz`, look for others.
    settings.register_profile("quick", max_examples=QUICK, derandomize=True)
    settings.register_profile("thorough", max_examples=THOROUGH)


def examples(thorough: int) -> int:
    """As many examples as the profile asks for, where a thorough run takes so many."""
    return max(1, thorough * settings.default.max_examples // THOROUGH)


def is_thorough() -> bool:
    return settings.default.max_examples >= THOROUGH


def mostly_exhaustive(cases: Iterable[Any], quick: Collection[int]) -> list[Any]:
    """Parameters of which only those at the places `quick` are tried in a quick run."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)), marks=() if place in quick else pytest.mark.exhaustive
        )
        for place, case in enumerate(cases)
    ]
