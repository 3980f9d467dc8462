"""The repository's documents, and the parts of them that tests execute: sections, fenced blocks, marked passages."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
GUIDES = tuple(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))


def document(name: str) -> str:
    """The text of a document, by its path from the root of the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


def section(text: str, heading: str) -> str:
    """The section under a heading of the second level, up to the next such heading."""
    (found,) = re.findall(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.S | re.M)
    return str(found)


def blocks(text: str, language: str) -> list[str]:
    """All fenced blocks of a language, in their order; there is at least one."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", text, re.S | re.M)
    assert found, f"there is no block of {language!r}"
    return found


def marked(text: str, name: str) -> str:
    """The passage between the comments `<!-- name -->` and `<!-- /name -->`."""
    (found,) = re.findall(rf"^<!-- {name} -->\n(.*?)\n<!-- /{name} -->$", text, re.S | re.M)
    return str(found)
