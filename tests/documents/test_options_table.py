"""The table of plan options in the documents is the list of plan options."""

import re
from pathlib import Path

from protocol.options import PLAN_OPTIONS, PlanOption

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def table() -> str:
    """The options as a Markdown table, those first that the plan page shows at once."""
    basic_first = sorted(PLAN_OPTIONS.values(), key=lambda option: not option.words.is_basic)
    return "\n".join(["| | means | default |", "|---|---|---|", *map(row, basic_first)])


def row(option: PlanOption) -> str:
    means, default = option.meaning, option.words.default
    for choice in option.choices:  # a choice that is explained, or that is the default
        means = re.sub(rf"(?<![\w`-]){choice}(?=[:,] )", f"`{choice}`", means)
    flag = f"--{option.name.replace('_', '-')}"
    return f"| `{flag}{' ' + option.words.metavar if option.words.metavar else ''}` | {means} | {default} |"


def test_the_table_of_options_is_the_list_of_options() -> None:
    text = "".join(document.read_text(encoding="utf-8") for document in DOCUMENTS)
    found = re.findall(r"<!-- options -->\n(.*?)\n<!-- /options -->", text, re.S)
    assert found == [table()], f"between <!-- options --> and <!-- /options --> put:\n{table()}"
