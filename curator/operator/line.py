"""A connection to the curator for one command: its address, key and CA, from options or the environment.

It does not know any command.
"""

import argparse
import os
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curator.home.tls import client_context
from protocol.errors import OperatorError

if TYPE_CHECKING:
    from curator.operator.client import CuratorClient

DEFAULT_URL = "https://127.0.0.1:8460"

Command = Callable[["CuratorClient", argparse.Namespace], int]


def action(actions: Any, name: str, text: str, run: Command) -> Any:
    parser = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    return command(parser, run)


def command(parser: argparse.ArgumentParser, run: Command) -> argparse.ArgumentParser:
    parser.add_argument("--url", metavar="URL", help=f"the curator (SUBN_URL, or {DEFAULT_URL})")
    parser.add_argument("--key-file", type=Path, metavar="F", help="file with the operator's key (SUBN_KEY_FILE)")
    parser.add_argument("--ca-file", type=Path, metavar="F", help="the curator's tls/ca.pem (SUBN_CA_FILE)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=lambda chosen: _with_client(chosen, run))
    return parser


def _with_client(chosen: argparse.Namespace, run: Command) -> int:
    url = chosen.url or os.environ.get("SUBN_URL") or DEFAULT_URL
    key_file = chosen.key_file or os.environ.get("SUBN_KEY_FILE")
    if not key_file:
        raise OperatorError("no operator key: give --key-file or SUBN_KEY_FILE (subn-curator init printed the key)")
    key = key_in(key_file)
    from curator.operator.client import CuratorClient  # imports httpx, for which no help should wait

    with CuratorClient(url, key, ca=ca_in(chosen.ca_file or os.environ.get("SUBN_CA_FILE"))) as client:
        return run(client, chosen)


def key_in(file: Path | str) -> str:
    """Return the operator's key that a file holds."""
    key = Path(file).read_text(encoding="utf-8", errors="replace").strip()
    if not key.isascii() or not key.isprintable() or not key:
        raise OperatorError(f"{file} holds no operator key: one line of letters and digits is expected")
    return key


def ca_in(file: Path | str | None) -> str:
    """Return the text of the CA's certificate, or an empty text to trust the machine's own CAs."""
    if not file:
        return ""
    try:
        text = Path(file).read_text(encoding="utf-8")
        client_context(text or "none")  # an empty text would mean the machine's own CAs
    except (ssl.SSLError, ValueError):
        raise OperatorError(f"{file} holds no certificate: the curator's tls/ca.pem is expected") from None
    return text
