"""One word for one thing: what people read uses the glossary's words and none of those that it rules out."""

import argparse
import re
from collections.abc import Iterator

import pytest

from curator import subn as operator_cli
from curator.commands import main as service_cli
from party.commands import main as party_cli
from party.pages.rendering import glossary
from protocol.services.glossary import terms_in
from tests.support.documents import DOCUMENTS, GUIDES, ROOT, document


def help_texts(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The help of a command and of all its subcommands."""
    yield parser.format_help()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in dict.fromkeys(action.choices.values()):
                yield from help_texts(inner)


def readable() -> dict[str, str]:
    """Everything that people read, by where it stands; markup and code are left out."""
    found = {name: document(name) for name in (*DOCUMENTS, *GUIDES)}
    for folder in ("party/pages", "curator/rendering"):
        for page in sorted((ROOT / folder / "templates").glob("*.html")):
            found[f"{folder}/{page.name}"] = re.sub(
                r"{[{%].*?[%}]}|<[^>]*>", " ", page.read_text(encoding="utf-8"), flags=re.S
            )
    for name, parser in (
        ("subn", operator_cli.make_parser()),
        ("subn-curator", service_cli.make_parser()),
        ("subn-party", party_cli.make_parser()),
    ):
        found[f"{name} --help"] = "\n".join(help_texts(parser))
    found["protocol/plan/promises.py"] = (ROOT / "protocol/plan/promises.py").read_text(encoding="utf-8")
    return {where: re.sub(r"```.*?```|`[^`]*`", " ", text, flags=re.S).lower() for where, text in found.items()}


def test_the_glossary_has_every_word_once_with_its_meaning() -> None:
    terms = glossary()
    names = [term.name for term in terms]
    assert len(names) == len(set(names))
    assert all(term.meaning.endswith(".") for term in terms)
    wanted = "party, curator, operator, data owner, epsilon, budget, insiders, run, step, plan, view, family, receipt"
    assert {*wanted.split(", "), "manifest"} <= set(names)
    entries = (ROOT / "protocol" / "glossary.md").read_text(encoding="utf-8").count("\n**")
    assert len(terms) == entries  # none was skipped because of its form


def test_reading_the_glossary() -> None:
    (first, second) = terms_in("# Words\n\n**data set**\n: A table.\n: Not: dump, heap\n\n**run**\n: One plan.\n")
    assert (first.name, first.meaning, first.others, first.anchor) == (
        "data set",
        "A table.",
        ("dump", "heap"),
        "data-set",
    )
    assert (second.name, second.others) == ("run", ())


@pytest.mark.parametrize(("where", "text"), readable().items(), ids=readable().keys())
def test_no_other_word_is_used(where: str, text: str) -> None:
    for term in glossary():
        for other in term.others:
            found = re.search(rf"\b{re.escape(other)}s?\b", text)
            assert found is None, f"{where} says {other!r}; the word is {term.name!r}"


def test_every_word_of_the_glossary_is_used() -> None:
    everything = " ".join(readable().values())
    for term in glossary():
        for word in term.name.split(", "):
            assert re.search(rf"\b{re.escape(word.removesuffix('y'))}", everything), word  # families, too


def test_the_check_can_fail() -> None:
    with pytest.raises(AssertionError, match="the word is 'party'"):
        test_no_other_word_is_used("somewhere", "every silo answers")


def test_readme_and_pages_lead_to_the_glossary() -> None:
    assert "(protocol/glossary.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
    for page in ("party/pages/templates/parts.html", "curator/rendering/templates/base.html"):
        assert '("/words", "Words")' in (ROOT / page).read_text(encoding="utf-8")
