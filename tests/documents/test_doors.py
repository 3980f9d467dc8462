"""Tests go through doors: none reaches into a private name of another module."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.support.documents import ROOT

STANDARD_LIBRARY = {"_actions", "_SubParsersAction", "_exit"}  # of argparse and os, without a public name
PATCHED = re.compile(r"(?:curator|party|protocol|crypto)\.[\w.]*\._[A-Za-z]\w*")


def is_private(name: object) -> bool:
    return isinstance(name, str) and name.startswith("_") and not name.startswith("__") and name not in STANDARD_LIBRARY


def own_names(parsed: ast.Module) -> set[str]:
    """Names that the module itself defines: functions, classes, variables, fields, and attributes of `self`."""
    found = set()
    for node in ast.walk(parsed):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            found.add(node.attr)
    return found


def reached_into(parsed: ast.Module) -> Iterator[str]:
    """Private names of others that the module uses, by line."""
    own = own_names(parsed)
    for node in ast.walk(parsed):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own:
            yield f"{node.lineno}: {node.attr}"
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.lineno}: {one.name}" for one in node.names if is_private(one.name))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setattr":
            texts = [one.value for one in node.args if isinstance(one, ast.Constant)]
            yield from (f"{node.lineno}: {text}" for text in texts if is_private(text) or PATCHED.fullmatch(str(text)))


def test_no_test_reaches_into_private_names() -> None:
    files = sorted((ROOT / "tests").rglob("*.py"))
    assert len(files) > 100
    found = {str(file.relative_to(ROOT)): [*reached_into(ast.parse(file.read_text("utf-8")))] for file in files}
    assert {name: reached for name, reached in found.items() if reached} == {}


@pytest.mark.parametrize(
    "text",
    [
        "ledger._database.close()",
        "from party.pages.routes import _Guards",
        'monkeypatch.setattr("party.books.database._BUSY", 1)',
        'patch.setattr(module, "_LIMIT", 1)',
    ],
)
def test_a_test_that_does_is_found(text: str) -> None:
    assert [*reached_into(ast.parse(text))]


@pytest.mark.parametrize(
    "text", ["class A:\n    def f(self):\n        self._a = 1\n        other._a", "os._exit(0)", "thing.__class__"]
)
def test_a_test_that_does_not_is_left_alone(text: str) -> None:
    assert not [*reached_into(ast.parse(text))]
