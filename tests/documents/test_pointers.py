"""Every pointer leads somewhere: paths, notes, full names, sections and tests that comments and documents name."""

from pathlib import Path

import pytest

from tests.support.documents import ROOT
from tests.support.pointers import KINDS, Text, texts

TEXTS = {str(text.file.relative_to(ROOT)): text for text in texts()}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_pointer_is_lost(kind) -> None:
    lost = {where: found for where, text in TEXTS.items() if (found := sorted(set(kind(text))))}
    assert lost == {}


@pytest.mark.parametrize(
    ("name", "prose"),
    [
        ("a.md", "[a note](nowhere.md)"),
        ("README.md", "[a section](#that-is-not-there)"),
        ("a.py", "see protocol/nowhere.md"),
        ("a.md", "`tests/documents/test_pointers.py::test_that_is_not_there`"),
        ("a.py", "the argument is in nowhere.md"),
        ("a.py", "docs/protocol.md, section 99"),
        ("a.py", "protocol/papers.md, no. 99"),
        ("a.md", "`protocol.plan.plan.Nothing`"),
        ("a.py", "`answering.handle` of another module"),
        ("a.md", "`test_that_is_not_there`"),
        ("a.py", "It does not know plans (`nowhere`)."),
    ],
)
def test_a_pointer_that_leads_nowhere_is_found(name: str, prose: str) -> None:
    text = Text(Path(ROOT / name), prose)
    assert [pointer for kind in KINDS for pointer in kind(text)]
