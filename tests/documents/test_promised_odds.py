"""Nothing that people read says more about odds than holds: rows may depend on each other, and tell about one person.

The sentences of `protocol.plan.promises` have tests of their own besides.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.documents import ROOT

PLACES = ("README.md", "SECURITY.md", "docs", "examples", "protocol", "crypto", "party", "curator")
_FALSE = r"attacker's (odds|guess|chances)|odds (of|that) an attacker|odds about|odds of being right"
_BEYOND = r"^How far .* is (bounded by no epsilon|not bounded by this factor)"  # says what does not hold
_BOUND = r"factor|chang|may |at most|times"


def documents() -> list[Path]:
    found = [path for place in PLACES for path in [ROOT / place, *(ROOT / place).rglob("*")]]
    return [path for path in found if path.suffix in (".md", ".html", ".ipynb", ".js", ".py")]


def text_of(path: Path) -> str:
    """All that people read of a file: of a module, its texts, each by itself."""
    text = path.read_text(encoding="utf-8")
    return "\n\n".join(texts_in(ast.parse(text))) if path.suffix == ".py" else text


def texts_in(node: ast.AST) -> Iterator[str]:
    """The texts of a module, with a word where a number or another name goes."""
    if isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "NUMBER" for part in node.values)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    else:
        for part in ast.iter_child_nodes(node):
            yield from texts_in(part)


def sentences(text: str) -> list[str]:
    """Sentences, headings, cells and labels, without markup and line breaks."""
    plain = re.sub(r"{{.*?}}", "NUMBER", re.sub(r"{%.*?%}", " ", text))
    parts = re.split(r"<[^>]*>|\n\s*\n|\n[-:#|*]|(?<=[.!?;])\s", plain)
    return [" ".join(part.split()) for part in parts]


def wrong_in(text: str) -> list[str]:
    about = [one for one in sentences(text) if re.search(r"\bodds\b", one, re.I) and not re.search(_BEYOND, one)]
    is_bound = [one for one in about if re.search(_BOUND, one) and "compared with" not in one.lower()]
    return [one for one in about if one in is_bound or re.search(_FALSE, one, re.I)]


def test_odds_are_promised_only_beside_other_values_of_the_same_row() -> None:
    found = {str(path.relative_to(ROOT)): wrong_in(text_of(path)) for path in documents()}
    assert {
        "README.md",
        "protocol/plan/promises.py",
        "protocol/glossary.md",
        "party/pages/templates/dataset.html",
    } <= found.keys()
    assert {path: wrong for path, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(
    "text",
    [
        "With what leaves, an attacker's odds about any one\nperson in your table change by at most a factor 2.72.",
        "<dt>Odds change at most by</dt><dd>× {{ odds }}</dd>",
        "Epsilon: the odds of an attacker's guess about that person change by at most a factor e.",
        "The odds of any statement about one person change by at most a factor 2.72.",
        "This run can change the odds of being right by at most 2.72 times, compared with another run.",
    ],
)
def test_a_sentence_that_says_more_would_be_found(text: str) -> None:
    assert wrong_in(text)


def test_a_sentence_of_a_module_would_be_found() -> None:
    module = ast.parse(
        'def said(n):\n    return f"With this run the odds of being right change "\\\n        f"by at most {n}."'
    )
    assert wrong_in("\n\n".join(texts_in(module)))


def test_what_holds_may_be_said() -> None:
    assert not wrong_in(
        "The odds of any statement about one person's row change by at most a factor 2.72, compared with that row "
        "holding any other values. <dt>Odds compared with other values, at most</dt>"
    )
