"""Help texts of the command lines: commands in groups, options, and examples to copy.

It does not know any command.
"""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

Groups = Mapping[str, Sequence[str]]  # names of commands by title
Examples = Sequence[tuple[str, str]]  # the purpose, and the command to type
REST = "more"


class GroupedParser(argparse.ArgumentParser):
    """A parser whose help shows its commands by group; commands that no group names come last."""

    def __init__(self, *, groups: Groups, examples: Examples = (), **settings: Any) -> None:
        super().__init__(**settings)
        self._shown, self._examples = groups, examples

    def add_commands(self) -> Any:
        return self.add_subparsers(required=True, metavar="COMMAND", parser_class=argparse.ArgumentParser)

    def format_help(self) -> str:
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        commands = {str(one.metavar): one for one in self._command_lines()}
        named = {title: [name for name in names if name in commands] for title, names in self._shown.items()}
        rest = [name for name in commands if not any(name in names for names in named.values())]
        for title, names in {**named, REST: rest}.items():
            formatter.start_section(title)
            formatter.add_arguments([commands[name] for name in names])
            formatter.end_section()
        formatter.start_section("options")
        formatter.add_arguments([one for one in self._actions if one.option_strings])
        formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help() + self._example_lines()

    def _command_lines(self) -> Sequence[argparse.Action]:
        found = next(one for one in self._actions if isinstance(one, argparse._SubParsersAction))
        return found._get_subactions()

    def _example_lines(self) -> str:
        if not self._examples:
            return ""
        lines = [line for what, command in self._examples for line in (f"  # {what}", f"  {command}")]
        return "\n".join(["", "examples:", *lines, ""])
