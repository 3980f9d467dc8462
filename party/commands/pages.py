"""The commands around the data owner's pages: a sign-in address, and the comparison that a page shows too.

It does not know how pages are made or who is signed in.
"""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from party.commands.line import call, curator_of
from party.commands.result import Result
from party.comparison import comparison
from party.errors import Unreachable
from party.home import settings
from party.home.home import open_home
from party.home.layout import Home
from party.home.page_address import Local
from party.home.tokens import TOKEN_FILE, token_of
from protocol.outside_json import read_json

_SECONDS = 10.0


def page(home: Home, _chosen: Any) -> Result:
    local, url = settings.load(home).local, _served_at(home)
    address = local.shown_at(urlsplit(url).port or 0) + _path_from(url, home.path, local)
    where = "" if local.speaks_tls else " on this machine"
    return Result(
        {"address": address},
        [address, f"open this address in a browser{where}; it works once, within ten minutes"],
    )


def compare(home: Home, chosen: Any) -> Result:
    with open_home(home) as opened:
        request = opened.known(chosen.request)
        if not comparison.place_of(opened, request).table.exists():
            comparison.keep_table(
                opened, request, call(curator_of(opened, chosen.seams), lambda line: line.table(request.run))
            )
        found = comparison.compare(opened, request, chosen.guess)
    return Result(found, list(comparison.in_words(found)))


def _served_at(home: Home) -> str:
    try:
        return home.address.read_text(encoding="ascii").strip()
    except OSError:
        raise Unreachable(f"the service of {home.path} is not running: start it with `subn-party serve`") from None


def _path_from(url: str, home: Path, local: Local) -> str:
    """Ask the service for a one-time sign-in path. Whoever can read the home's token may sign in."""
    try:
        answer = httpx.post(
            f"{url}/v1/sign-in",
            headers={"Authorization": f"Bearer {token_of(home)}", "Host": local.names[0]},
            timeout=_SECONDS,
            trust_env=False,
            verify=local.client_context(home),
        )
    except httpx.RequestError as error:
        raise Unreachable(f"{url} does not answer ({type(error).__name__}): start `subn-party serve` again") from None
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        raise Unreachable(f"{url} does not accept this home's {TOKEN_FILE}: another party or program listens there")
    if answer.status_code == httpx.codes.MISDIRECTED_REQUEST:
        raise Unreachable(f"{url} does not know the name {local.names[0]} yet: restart `subn-party serve`")
    if answer.status_code != httpx.codes.OK:
        raise Unreachable(f"{url} answers with status {answer.status_code}: another program may listen there")
    return str(read_json(answer.content)["path"])
