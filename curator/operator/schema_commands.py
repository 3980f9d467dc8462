"""`subn schemas`: the schemas at a curator, and help with writing one on this machine.

It does not know HTTP (`curator.operator.client`), or how a schema is read from its files
(`curator.operator.schema_files`).
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curator.files import PUBLIC, write_file
from curator.operator.line import action
from curator.rendering.output import say
from protocol.text import printable, printable_json

if TYPE_CHECKING:
    from curator.operator.client import CuratorClient


def add_schema_options(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    action(actions, "list", "all schemas", _list)
    action(actions, "add", "publish a schema to the parties", _add).add_argument("file", type=Path, metavar="FILE")
    action(actions, "show", "print a schema", _show).add_argument("hash", metavar="HASH")
    expand = _here(actions, "expand", "write a schema with the lists that it keeps in files of their own", _expand)
    expand.add_argument("file", type=Path, metavar="FILE")
    expand.add_argument("--out", type=Path, metavar="F", help="the file to write (standard output)")


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
    from curator.operator.schema_files import schema_text  # imports numpy, for which no help should wait

    found = client.add_schema(schema_text(chosen.file))
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


def _written(chosen: argparse.Namespace, text: str, about: str) -> int:
    """Write a text to the chosen file, or print it."""
    if chosen.out is None:
        print(printable(text, keep="\n"), end="")
        return 0
    write_file(chosen.out, text, PUBLIC)
    return say(chosen, {}, f"wrote {chosen.out}: {about}")
