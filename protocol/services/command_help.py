"""Help texts of the command lines: commands in groups, options, and examples to copy.

It does not know any command.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Groups = Mapping[str, Sequence[str]]  # names of commands by title
Examples = Sequence[tuple[str, str]]  # the purpose, and the command to type
REST = "more"


class _ShowVersion(argparse.Action):
    """Looks the version up when it is asked for: most commands need not wait for that."""

    def __call__(self, parser: argparse.ArgumentParser, *_found: object) -> None:
        from importlib.metadata import version

        print(f"{parser.prog} {version('dp-subn')}")
        parser.exit()


class CommandParser(argparse.ArgumentParser):
    """The parser of one command. `add_options` adds its options and what carries it out, once the command is chosen.

    So a program's start does not wait for what other commands import.
    """

    def __init__(self, *, add_options: "AddOptions | None" = None, **settings: Any) -> None:
        super().__init__(**settings)
        self._add_options = add_options

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._complete()
        return super().parse_known_args(args, namespace)

    def format_help(self) -> str:
        self._complete()
        return super().format_help()

    def _complete(self) -> None:
        add_options, self._add_options = self._add_options, None
        if add_options is not None:
            add_options(self)


AddOptions = Callable[[CommandParser], None]


class GroupedParser(argparse.ArgumentParser):
    """A parser whose help shows its commands by group; commands that no group names come last."""

    def __init__(self, *, groups: Groups, examples: Examples = (), **settings: Any) -> None:
        super().__init__(**settings)
        self.add_argument("--version", action=_ShowVersion, nargs=0, help="show program's version number and exit")
        self.groups, self.examples = groups, examples

    def add_commands(self) -> Any:
        return self.add_subparsers(required=True, metavar="COMMAND", parser_class=CommandParser)

    def format_help(self) -> str:
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        commands = {str(one.metavar): one for one in self._command_lines()}
        named = {title: [name for name in names if name in commands] for title, names in self.groups.items()}
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
        if not self.examples:
            return ""
        lines = [line for what, command in self.examples for line in (f"  # {what}", f"  {command}")]
        return "\n".join(["", "examples:", *lines, ""])
