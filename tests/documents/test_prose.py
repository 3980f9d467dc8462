"""Text and shape of the code: docstrings that stand alone, one class for a name, small folders and functions."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.documents import ROOT

PACKAGES = ("crypto", "protocol", "curator", "party")
MOST_MODULES = 20  # in a folder, not counting the package's own file
MOST_MODULE_LINES = 400
MOST_FUNCTION_LINES = 50

POOR_START = re.compile(r"(of|by|the same|who|where|that|as)\b", re.I)
GOOD_START = re.compile(r"[A-Z`'\"]")

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


@cache
def tree(module: Path) -> ast.Module:
    return ast.parse(module.read_text(encoding="utf-8"))


def stands_alone(docstring: str) -> bool:
    """Whether the first line reads by itself: not from the middle of a thought, and not a fragment."""
    first, *_ = docstring.strip().splitlines() or [""]
    return bool(GOOD_START.match(first)) and not POOR_START.match(first.lstrip("`'\""))


def poor_docstrings(parsed: ast.Module) -> Iterator[str]:
    for node in ast.walk(parsed):
        if isinstance(node, Documented):
            text = ast.get_docstring(node)
            if text is not None and not stands_alone(text):
                yield f"{getattr(node, 'name', 'module')}: {text.splitlines()[0] if text else 'nothing'}"


def long_functions(parsed: ast.Module) -> Iterator[str]:
    for node in ast.walk(parsed):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            lines = (node.end_lineno or node.lineno) - first + 1
            if lines > MOST_FUNCTION_LINES:
                yield f"{node.name}: {lines} lines"


def test_docstrings_stand_alone() -> None:
    poor = {str(module.relative_to(ROOT)): found for module in MODULES if (found := [*poor_docstrings(tree(module))])}
    assert poor == {}


def test_functions_are_short() -> None:
    long = {str(module.relative_to(ROOT)): found for module in MODULES if (found := [*long_functions(tree(module))])}
    assert long == {}


def test_modules_are_short() -> None:
    lines = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {name: count for name, count in lines.items() if count > MOST_MODULE_LINES} == {}


def test_folders_are_small() -> None:
    modules = [path for path in MODULES if path.name != "__init__.py"]
    counts = {str(folder.relative_to(ROOT)): 0 for folder in {path.parent for path in modules}}
    for path in modules:
        counts[str(path.parent.relative_to(ROOT))] += 1
    assert {folder for folder, count in counts.items() if count > MOST_MODULES} == set()


def test_no_two_classes_of_a_package_share_a_name() -> None:
    places: dict[tuple[str, str], list[str]] = {}
    for module in MODULES:
        name = module.relative_to(ROOT)
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.ClassDef):
                places.setdefault((name.parts[0], node.name), []).append(str(name))
    assert {known: found for known, found in places.items() if len(found) > 1} == {}


@pytest.mark.parametrize(
    "poor", ["Of every party.", "The same, later.", "of one", "by name", "who asks", "`as` it is", ""]
)
def test_a_poor_docstring_is_found(poor: str) -> None:
    assert [*poor_docstrings(ast.parse(f'def work():\n    """{poor}"""'))]


@pytest.mark.parametrize("good", ["Offer a table.", "Thesaurus.", "`mask` of a step.", '"1" or "2".', "Assert it."])
def test_a_good_docstring_passes(good: str) -> None:
    assert not [*poor_docstrings(ast.parse(f"def work():\n    '''{good}'''"))]


def test_a_long_function_is_found() -> None:
    body = "\n".join("    pass" for _ in range(MOST_FUNCTION_LINES))
    assert [*long_functions(ast.parse(f"def work():\n{body}"))] == [f"work: {MOST_FUNCTION_LINES + 1} lines"]
