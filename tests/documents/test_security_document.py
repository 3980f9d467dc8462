"""SECURITY.md is complete in its form, and every test that it names is there."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "SECURITY.md").read_text()
THREATS = re.split(r"^## (?=\d)", TEXT, flags=re.MULTILINE)[1:]


def names_in(file: Path) -> set[str]:
    nodes = ast.walk(ast.parse(file.read_text()))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_threats_are_numbered_and_each_says_who_what_which_and_what_remains() -> None:
    assert len(THREATS) > 20
    for number, threat in enumerate(THREATS, start=1):
        assert threat.startswith(f"{number}. "), threat[:60]
        parts = re.findall(r"^- \*\*([^:*]+):\*\*", threat, flags=re.MULTILINE)
        assert parts == ["Who", "What stops it", "Shown by", "What remains"], threat[:60]


def test_every_test_that_is_named_exists() -> None:
    for threat in THREATS:
        named = re.findall(r"`(tests/[^`]+)`", threat.partition("**Shown by:**")[2])
        assert named, threat[:60]
        for one in named:
            file, _, name = one.partition("::")
            assert (ROOT / file).is_file(), one
            assert not name or name in names_in(ROOT / file), one
            assert name or names_in(ROOT / file), f"{one} has no test"


def test_a_test_that_is_not_there_would_be_missed() -> None:
    here = Path(__file__)
    assert "test_every_test_that_is_named_exists" in names_in(here)
    assert "test_that_is_not_there" not in names_in(here)
