"""Pointers in comments, docstrings and documents: which there are, and whether each leads somewhere.

A pointer is a path, the name of a note, a full dotted name, a section of a document, a test, or a word in backticks.
"""

import ast
import builtins
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from protocol.options import PLAN_OPTIONS
from tests.support.documents import ROOT

PACKAGES = ("crypto", "protocol", "party", "curator")
FOLDERS = (*PACKAGES, "tests", "docs", "examples")
NOT_OURS = {"static", "axe-core", "vectors", "__pycache__"}  # code and notes of others, and test vectors
EXTENSIONS = "md|py|toml|json|csv|html|css|js|txt|pem|db|jsonl|backup|ipynb|yml|png|key|log"
# Words in backticks that name a thing outside of this repository, or a word of the command line.
OUTSIDE = {"pg_dump", "subn", "step", *dir(builtins)}
VALUES = {value for option in PLAN_OPTIONS.values() for value in option.choices}  # modules are named after some


@dataclass(frozen=True)
class Text:
    """What a person reads in one file, and the words that its code knows."""

    file: Path
    prose: str
    words: frozenset[str] = frozenset()
    opening: str = ""  # of code: the docstring of its module

    @property
    def is_code(self) -> bool:
        return self.file.suffix == ".py"


def texts() -> Iterator[Text]:
    files = [*ROOT.glob("*.md"), *(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.*"))]
    for file in sorted(files):
        if file.suffix in (".md", ".py") and not NOT_OURS & set(file.relative_to(ROOT).parts):
            yield code_text(file) if file.suffix == ".py" else document_text(file)


def document_text(file: Path) -> Text:
    return Text(file, re.sub(r"^ *```.*?^ *```$", "", file.read_text(encoding="utf-8"), flags=re.S | re.M))


def code_text(file: Path) -> Text:
    """Docstrings and comments, lines of a paragraph joined; names and parts of strings are the words."""
    source = file.read_text(encoding="utf-8")
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    comments = [token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT]
    nodes = list(ast.walk(ast.parse(source)))
    docstrings = [
        node.body[0].value
        for node in nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and ast.get_docstring(node) is not None
        and isinstance(node.body[0], ast.Expr)
        and isinstance(node.body[0].value, ast.Constant)
    ]
    strings = [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    told = [str(docstring.value) for docstring in docstrings]
    names = {token.string for token in tokens if token.type == tokenize.NAME}
    in_strings = {word for string in strings if string not in told for word in re.findall(r"\w+", string)}
    opening = ast.get_docstring(ast.parse(source)) or ""
    return Text(file, "\n\n".join([*told, "\n".join(comments)]), frozenset(names | in_strings), opening)


# Kinds of pointers: each finds those of a text that lead nowhere.


def lost_links(text: Text) -> Iterator[str]:
    for target in re.findall(r"\]\(([^)\s]+)\)", text.prose) if not text.is_code else ():
        name, _, anchor = target.partition("#")
        if not name.startswith("http"):
            file = (text.file.parent / name).resolve() if name else text.file
            if not file.exists() or (anchor and anchor not in anchors(file)):
                yield target


def lost_paths(text: Text) -> Iterator[str]:
    """Paths from the root of the repository; a test or function may follow after two colons."""
    for path, name in re.findall(rf"(?<![\w/.-])((?:{'|'.join(FOLDERS)})/[\w./*-]*)(?:::(\w+))?", text.prose):
        found = list(ROOT.glob(path.rstrip("./")))
        if not found or (name and name not in defined(found[0])):
            yield f"{path}::{name}" if name else path


def lost_files(text: Text) -> Iterator[str]:
    """Bare names of files: beside the file that names them, or at the root; notes and tests anywhere, if only once."""
    for name in re.findall(r"(?<![\w/.*{}-])(\w+\.(?:md|py))\b", text.prose):
        is_near = (text.file.parent / name).is_file() or (ROOT / name).is_file()
        is_known = name.endswith(".md") or name.startswith("test_")
        if not is_near and not (is_known and len(by_name(name)) == 1):
            yield name


def lost_sections(text: Text) -> Iterator[str]:
    for name, number in re.findall(r"\b([\w/]+\.md),? section (\d+(?:\.\d+)?)", text.prose):
        place = text.file.parent / name
        file = place if place.is_file() else ROOT / name if "/" in name else by_name(name)[0]
        if not re.search(rf"^##+ {re.escape(number)}\.? ", file.read_text(encoding="utf-8"), re.M):
            yield f"{name}, section {number}"


def lost_slips(text: Text) -> Iterator[str]:
    numbers = re.findall(r"^\| (\d+) \|", (ROOT / "protocol/papers.md").read_text(encoding="utf-8"), re.M)
    for number in re.findall(r"papers\.md\)?, no\. (\d+)", text.prose):
        if number not in numbers:
            yield f"papers.md, no. {number}"


def lost_names(text: Text) -> Iterator[str]:
    """Dotted names in backticks: full names of this repository, names that the file knows, or other libraries'."""
    for name in re.findall(r"`([a-z_]\w*(?:\.\w+)+)(?:\([^`]*\))?`", text.prose):
        first, last = name.split(".")[0], name.split(".")[-1]
        if re.fullmatch(EXTENSIONS, last) or first in text.words:
            continue
        if not is_defined(name) if first in (*PACKAGES, "tests") else find_spec(first) is None:
            yield name


def lost_tests(text: Text) -> Iterator[str]:
    for name in re.findall(r"`([Tt]est_?\w+)`", text.prose):
        if not by_name(f"{name}.py") and name not in tests():
            yield name


def lost_words(text: Text) -> Iterator[str]:
    """Single words in backticks, in code: a name or a value that the file itself knows.

    A module's opening says what others do: there another module goes by its full name.
    """
    if not text.is_code:
        return
    for word in re.findall(r"`([a-z_][a-z0-9_]*)`", text.prose):
        if word not in text.words | options() | OUTSIDE | VALUES:
            yield word
    for word in re.findall(r"`([a-z_][a-z0-9_]*)`", text.opening):
        if word in modules() - OUTSIDE - VALUES and word not in defined(text.file):
            yield word


KINDS: tuple[Callable[[Text], Iterator[str]], ...] = (
    lost_links,
    lost_paths,
    lost_files,
    lost_sections,
    lost_slips,
    lost_names,
    lost_tests,
    lost_words,
)


@cache
def by_name(name: str) -> list[Path]:
    found = (file for folder in FOLDERS for file in (ROOT / folder).rglob(name))
    return [file for file in found if not NOT_OURS & set(file.relative_to(ROOT).parts)]


@cache
def anchors(file: Path) -> set[str]:
    """As GitHub makes them from headings."""
    headings = re.findall(r"^#+ (.*)$", document_text(file).prose, re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@cache
def defined(file: Path) -> set[str]:
    """Every name that a module, or a class in it, defines or binds; methods as Class.method too."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    found = set(bound(tree.body))
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            found |= {node.name, *bound(node.body), *(f"{node.name}.{name}" for name in bound(node.body))}
    return found


def bound(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))


def is_defined(name: str) -> bool:
    """Whether a full dotted name is a package, a module, or what a module defines."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        place, rest = ROOT.joinpath(*parts[:length]), ".".join(parts[length:])
        for file in (place.with_suffix(".py"), place / "__init__.py"):
            if file.is_file():
                return not rest or rest in defined(file)
        if place.is_dir() and not rest:
            return True
    return False


@cache
def modules() -> set[str]:
    """The bare names of all modules of the product."""
    return {file.stem for package in PACKAGES for file in (ROOT / package).rglob("*.py")}


@cache
def tests() -> set[str]:
    return {name for file in (ROOT / "tests").rglob("test_*.py") for name in defined(file)}


@cache
def options() -> frozenset[str]:
    """The values that a plan's options may have."""
    return code_text(ROOT / "protocol/plan/plan.py").words
