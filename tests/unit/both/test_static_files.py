"""The pages of both shells look and work alike: each has its own copy of what they share."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", ["htmx.min.js", "pages.js", "style.css"])
def test_the_copies_are_equal(name: str) -> None:
    ours, theirs = (ROOT / shell / "pages/static" / name for shell in ("curator", "party"))
    assert ours.read_bytes() == theirs.read_bytes()
