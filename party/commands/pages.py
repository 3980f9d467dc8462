"""The commands around the data owner's pages: a sign-in address, and the comparison that a page shows too.

It does not know how pages are made or who is signed in.
"""

from pathlib import Path
from typing import Any

import httpx

from party.app import TOKEN_FILE, token_of
from party.commands.line import call, curator_of
from party.commands.result import Said
from party.comparison import comparison as comparing
from party.errors import Unreachable
from party.home import settings
from party.home.home import opened
from party.home.settings import Home

_SECONDS = 10.0


def page(home: Home, _chosen: Any) -> Said:
    url = _served_at(home)
    address = url + _path_from(url, home.path)
    return Said({"address": address}, [address, "open it in a browser on this machine, once, within ten minutes"])


def compare(home: Home, chosen: Any) -> Said:
    with opened(home) as house:
        request = house.known(chosen.request)
        if not comparing.place_of(house, request).table.exists():
            comparing.keep_table(house, request, call(curator_of(house), lambda line: line.table(request.run)))
        found = comparing.compare(house, request, chosen.guess)
    return Said(found, list(comparing.in_words(found)))


def _served_at(home: Home) -> str:
    settings.load(home)  # a home that cannot be served is told first
    try:
        return home.address.read_text(encoding="ascii").strip()
    except OSError:
        raise Unreachable(f"nobody serves {home.path}: start `subn-party serve` first") from None


def _path_from(url: str, home: Path) -> str:
    """Who can read the home's token may sign in; the service makes the ticket, so that it serves once."""
    try:
        answer = httpx.post(
            f"{url}/v1/sign-in",
            headers={"Authorization": f"Bearer {token_of(home)}"},
            timeout=_SECONDS,
            trust_env=False,
        )
    except httpx.RequestError as error:
        raise Unreachable(f"{url} does not answer ({type(error).__name__}): start `subn-party serve` again") from None
    if answer.status_code != httpx.codes.OK:
        raise Unreachable(f"{url} does not know this home's {TOKEN_FILE}: another party, or program, listens there")
    return str(answer.json()["path"])
