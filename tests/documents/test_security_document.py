"""SECURITY.md is complete in its form, and every test that it names is there."""

import ast
import re
from pathlib import Path

from tests.support.documents import section

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "SECURITY.md").read_text()
ATTACKS = "What two attacks on the first version found, and the tests that keep it mended"
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


def existing_tests_in(text: str) -> list[str]:
    """Paths of tests, each with the name of a test if one is named; every one exists."""
    named = re.findall(r"`(tests/[^`]+)`", text)
    for one in named:
        file, _, name = one.partition("::")
        assert (ROOT / file).is_file(), one
        assert not name or name in names_in(ROOT / file), one
        assert name or names_in(ROOT / file), f"{one} has no test"
    return named


def test_every_test_that_is_named_exists() -> None:
    for threat in THREATS:
        assert existing_tests_in(threat.partition("**Shown by:**")[2]), threat[:60]


def test_everything_that_the_attacks_found_has_a_test_of_its_own() -> None:
    rows = re.findall(r"^\| (?!what was found|---|\*\*)(.+) \| (.+) \|$", section(TEXT, ATTACKS), re.MULTILINE)
    assert len(rows) > 70
    named = [existing_tests_in(test) for _, test in rows]
    assert all(len(tests) == 1 and "::" in tests[0] for tests in named)
    assert len({tests[0] for tests in named}) == len({what for what, _ in rows}) == len(rows)


def test_a_test_that_is_not_there_would_be_missed() -> None:
    here = Path(__file__)
    assert "test_every_test_that_is_named_exists" in names_in(here)
    assert "test_that_is_not_there" not in names_in(here)
