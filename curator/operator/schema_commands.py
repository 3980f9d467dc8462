"""`subn schemas`: the schemas at a curator, and help with writing one on this machine.

It does not know HTTP (`curator.operator.client`), or how a schema is read from its files
(`curator.operator.schema_files`). What takes long to import is imported by the action that needs it.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curator.files import PUBLIC, write_file
from curator.operator.line import action
from curator.rendering.output import say
from protocol.errors import SchemaError
from protocol.text import printable, printable_json

if TYPE_CHECKING:
    from curator.operator.client import CuratorClient

_UNUSABLE = 2


def add_schema_options(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    action(actions, "list", "all schemas", _list)
    action(actions, "add", "publish a schema to the parties", _add).add_argument("file", type=Path, metavar="FILE")
    action(actions, "show", "print a schema", _show).add_argument("hash", metavar="HASH")
    expand = _here(actions, "expand", "write a schema with the lists that it keeps in files of their own", _expand)
    expand.add_argument("file", type=Path, metavar="FILE")
    expand.add_argument("--out", type=Path, metavar="F", help="the file to write (standard output)")
    _add_draft(actions)
    _add_lint(actions)
    compare = _here(actions, "compare", "show how two schemas differ, attribute by attribute", _compare)
    compare.add_argument("file", type=Path, metavar="FILE")
    compare.add_argument("other", type=Path, metavar="OTHER")


def _add_draft(actions: Any) -> None:
    draft = _here(actions, "draft", "draft a schema from a data dictionary, for a person to finish", _draft)
    draft.description = (
        "Draft a schema from a data dictionary: CSV or Excel with a row for each column (also REDCap's), a "
        "Frictionless Table Schema or Data Package (.json), or CREATE TABLE (.sql). Values and ranges that the "
        "dictionary does not tell are marked as to be justified from public knowledge; a schema with such a mark is "
        "refused."
    )
    draft.add_argument("file", type=Path, metavar="DICTIONARY")
    draft.add_argument("--table", metavar="NAME", help="the table or sheet, if there are several")
    draft.add_argument("--title", metavar="TEXT", help="the table's title (the file's name)")
    draft.add_argument("--out", type=Path, metavar="F", help="the file to write (standard output)")


def _add_lint(actions: Any) -> None:
    lint = _here(actions, "lint", "tell all problems and doubts of a schema at once", _lint)
    lint.add_argument("file", type=Path, metavar="FILE")
    lint.add_argument("--rows", type=int, metavar="N", help="how many rows all tables have together")
    lint.epilog = "Exit codes: 0 no problem, 2 problems."


def _here(actions: Any, name: str, text: str, run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
    """Add an action that needs no curator."""
    parser: argparse.ArgumentParser = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    parser.set_defaults(run=run, json=False)
    return parser


def _list(client: "CuratorClient", chosen: argparse.Namespace) -> int:
    schemas = client.schemas()
    lines = [f"{found['hash']}  {found['title']} ({found['attributes']} attributes)" for found in schemas]
    return say(chosen, schemas, *(lines or ["no schema yet: subn schemas add FILE"]))


def _add(client: "CuratorClient", chosen: argparse.Namespace) -> int:
    from curator.operator.schema_files import schema_text
    from protocol.services.schema_lint import lint

    text = schema_text(chosen.file)
    found = client.add_schema(text)
    for doubt in lint(text).doubts:
        print(printable(f"careful: {doubt}"), file=sys.stderr)
    careful = [
        f"careful: a spreadsheet takes {text!r} for a formula; `subn get --spreadsheet-safe` writes a copy for it"
        for text in found["like_formulas"]
    ]
    return say(chosen, found, found["hash"], *careful)


def _show(client: "CuratorClient", chosen: argparse.Namespace) -> int:
    print(printable_json(client.schema(chosen.hash), indent=1))
    return 0


def _expand(chosen: argparse.Namespace) -> int:
    from curator.operator.schema_files import read_schema

    schema = read_schema(chosen.file)
    return _written(chosen, schema.to_json() + "\n", f"schema {schema.hash}")


def _draft(chosen: argparse.Namespace) -> int:
    from curator.operator.dictionaries.files import read_dictionary
    from protocol.services.schema_draft import draft, summary

    found = read_dictionary(chosen.file, chosen.table)
    text = draft(chosen.title or chosen.file.stem, found.columns)
    first, *more = summary(found.columns)
    if found.unread:
        more.append(f"not understood, and not read: the dictionary's {', '.join(found.unread)}")
    if chosen.out is None:
        print("\n".join(map(printable, (first, *more))), file=sys.stderr)
    return _written(chosen, text, "\n".join((first, *more)))


def _lint(chosen: argparse.Namespace) -> int:
    from curator.operator.schema_files import schema_text
    from protocol.services.schema_lint import Lint, lint

    try:
        text = schema_text(chosen.file)
    except SchemaError as error:
        found = Lint(error.problems, (), None)
    else:
        found = lint(text, chosen.rows)
    for kind, told in (("problem", found.problems), ("doubt", found.doubts)):
        for what in told:
            print(printable(f"{kind}: {what}"))
    if found.schema is not None:
        print(printable(f"{len(found.schema.names)} attributes, schema {found.schema.hash}"))
    return _UNUSABLE if found.problems else 0


def _compare(chosen: argparse.Namespace) -> int:
    from curator.operator.schema_files import read_schema
    from protocol.services import schema_words

    one, other = read_schema(chosen.file), read_schema(chosen.other)
    for line in schema_words.lines(one, other):
        if line.how != "same":
            print(printable(f"{line.name}: {line.asked or 'absent'}"))
            print(printable(f"{' ' * len(line.name)}  {line.held or 'absent'}"))
    same = one.hash == other.hash
    print(printable("the schemas are the same" if same else f"{one.hash}\n{other.hash}", keep="\n"))
    return 0 if same else 1


def _written(chosen: argparse.Namespace, text: str, about: str) -> int:
    """Write a text to the chosen file, or print it."""
    if chosen.out is None:
        print(printable(text, keep="\n"), end="")
        return 0
    write_file(chosen.out, text, PUBLIC)
    return say(chosen, {}, *f"wrote {chosen.out}: {about}".splitlines())
