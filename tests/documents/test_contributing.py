"""CONTRIBUTING.md is complete, and a commit runs what it says."""

import re

import yaml

from tests.support.documents import document, section

CHANGES = (
    "score",
    "method",
    "noise mode",
    "update rule",
    "privacy definition",
    "route with a page",
    "data source",
    "kind of attribute",
    "plan option",
)


def test_a_commit_runs_what_make_check_runs_and_nothing_from_elsewhere() -> None:
    (repository,) = yaml.safe_load(document(".pre-commit-config.yaml"))["repos"]
    assert repository["repo"] == "local"
    (hook,) = repository["hooks"]
    assert (hook["entry"], hook["language"], hook["pass_filenames"]) == ("make check", "system", False)
    assert re.search(r"^check:", document("Makefile"), re.M)


def test_every_common_change_has_its_recipe_with_a_test() -> None:
    recipes = re.split(r"^### ", section(document("CONTRIBUTING.md"), "Nine common changes"), flags=re.M)[1:]
    assert [recipe.split("\n")[0].split(" ", 1)[1] for recipe in recipes] == list(CHANGES)
    assert all("1. `" in recipe and "tests/" in recipe for recipe in recipes)
