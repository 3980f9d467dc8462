"""What the command lines say of themselves: every command once, in its group, and examples that would work."""

import argparse
import shlex

import pytest

from curator import subn as operator_cli
from curator.commands import main as service_cli
from party.commands import main as party_cli
from protocol.services.command_help import GroupedParser

PARSERS = {
    "subn": operator_cli.make_parser(),
    "subn-curator": service_cli.make_parser(),
    "subn-party": party_cli.make_parser(),
}


@pytest.fixture(params=PARSERS)
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> GroupedParser:
    monkeypatch.setenv("COLUMNS", "100")
    return PARSERS[request.param]


def commands(parser: argparse.ArgumentParser) -> list[str]:
    return [
        name for action in parser._actions if isinstance(action, argparse._SubParsersAction) for name in action.choices
    ]


def test_every_command_is_listed_once_with_what_it_does(parser: GroupedParser) -> None:
    lines = parser.format_help().splitlines()
    for name in commands(parser):
        assert len([line for line in lines if line.startswith(f"  {name} ") and len(line.split()) > 1]) == 1, name


def test_groups_name_no_command_twice(parser: GroupedParser) -> None:
    named = [name for names in parser.groups.values() for name in names]
    assert len(named) == len(set(named))
    assert set(named) <= set(commands(parser))


def test_the_examples_are_understood(parser: GroupedParser) -> None:
    assert parser.examples
    for _what, line in parser.examples:
        for command in line.split(" && "):
            program, *words = shlex.split(command)
            assert program == parser.prog
            assert parser.parse_args(words).run


def test_a_command_that_no_group_names_is_shown_too() -> None:
    parser = GroupedParser(prog="x", groups={"first": ["a"]})
    made = parser.add_commands()
    made.add_parser("a", help="does a")
    made.add_parser("b", help="does b")
    text = parser.format_help()
    assert text.index("first:") < text.index("a  ") < text.index("more:") < text.index("does b")
    assert "examples" not in text
