"""Table of the functions behind the commands. Only the module of the command that is called is imported.

It does not know the command line's words.
"""

from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from party.commands.result import Result
    from party.home.layout import Home

Command = Callable[["Home", Any], "Result"]
Family = Callable[[], Mapping[str, Command]]  # commands of one module by name


def carried_out(family: Family, chosen: Namespace) -> "Result":
    """Run the chosen command of this family and return its result."""
    from party.home.layout import Home

    return family()[chosen.command](Home(Path(chosen.home)), chosen)


def setup() -> Mapping[str, Command]:
    from party.commands import setup

    return {
        "init": setup.init,
        "enrol": setup.enrol,
        "recognise": setup.recognise,
        "peers": setup.peers,
        "trust": setup.trust,
        "offer": setup.offer,
        "rotate": setup.rotate,
    }


def checks() -> Mapping[str, Command]:
    from party.commands import checks

    return {"check": checks.check}


def drafting() -> Mapping[str, Command]:
    from party.commands import drafting

    return {"draft": drafting.draft}


def daily() -> Mapping[str, Command]:
    from party.commands import daily

    return {
        "requests": daily.requests,
        "accept": daily.accept,
        "refuse": daily.refuse,
        "ledger": daily.ledger,
        "audit": daily.audit,
        "export": daily.export,
        "backup": daily.backup,
        "restore": daily.restore,
    }


def serve() -> Mapping[str, Command]:
    from party.commands import serve

    return {"serve": serve.serve}


def start() -> Mapping[str, Command]:
    from party.commands import start

    return {"start": start.start}


def pages() -> Mapping[str, Command]:
    from party.commands import pages

    return {"page": pages.page, "compare": pages.compare}


def doctor() -> Mapping[str, Command]:
    from party.commands import doctor

    return {"doctor": doctor.doctor}


def ready() -> Mapping[str, Command]:
    from party.commands import ready

    return {"ready": ready.ready}
