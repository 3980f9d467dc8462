"""The tables of plan options in the documents are the list of plan options."""

import re
from pathlib import Path

import pytest

from protocol.options import PLAN_OPTIONS, PlanOption

ROOT = Path(__file__).parents[2]


def table(is_basic: bool) -> str:
    """The options as a Markdown table: those that the plan page shows at once, or the others."""
    options = [option for option in PLAN_OPTIONS.values() if option.words.is_basic == is_basic]
    return "\n".join(["| | means | default |", "|---|---|---|", *map(row, options)])


def row(option: PlanOption) -> str:
    means, default = option.meaning, option.words.default
    for choice in option.choices:  # where the sentence explains it
        means = re.sub(rf"(?<![\w`-]){choice}(?=[:,] )", f"`{choice}`", means)
    flag = f"--{option.name.replace('_', '-')}"
    return f"| `{flag}{' ' + option.words.metavar if option.words.metavar else ''}` | {means} | {default} |"


@pytest.mark.parametrize(("document", "is_basic"), [("README.md", True), ("protocol/options.md", False)])
def test_the_table_of_options_is_the_list_of_options(document: str, is_basic: bool) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    found = re.findall(r"<!-- options -->\n(.*?)\n<!-- /options -->", text, re.S)
    assert found == [table(is_basic)], f"put into {document}, between its markers:\n{table(is_basic)}"
