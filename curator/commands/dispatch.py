"""Functions that carry out commands. Only the module of the chosen command is imported.

It does not know the words of the command line.
"""

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from curator.settings import Settings

Command = Callable[["Settings", Namespace], int]
Family = Callable[[], Mapping[str, Command]]  # commands of one module by name


def carried_out(family: Family, chosen: Namespace) -> int:
    """Carry out the chosen command of this family and return its exit code."""
    from curator.settings import Settings

    names = ("home", "host", "port", "plain_http", "behind_proxy")
    overriding: dict[str, object] = {name: getattr(chosen, name, None) for name in names}
    return family()[chosen.command](Settings.read(os.environ, **overriding), chosen)


def home() -> Mapping[str, Command]:
    from curator.commands import home

    return {
        "init": home.init,
        "rotate": home.rotate,
        "code": home.code,
        "backup": home.backup,
        "restore": home.restore,
        "archive": home.archive,
    }


def operator_key() -> Mapping[str, Command]:
    from curator.commands import home

    return {"add": home.add_key, "list": home.list_keys, "revoke": home.revoke_key}


def certificate() -> Mapping[str, Command]:
    from curator.commands import certificate

    return {"show": certificate.show_certificate, "renew": certificate.renew_certificate}


def certificate_options(parser: ArgumentParser) -> None:
    from curator.commands.certificate import add_certificate_options

    add_certificate_options(parser)


def serve() -> Mapping[str, Command]:
    from curator.commands import serve

    return {"serve": serve.serve}


def ready() -> Mapping[str, Command]:
    from curator.commands import ready

    return {"ready": ready.ready}


def doctor() -> Mapping[str, Command]:
    from curator.commands import doctor

    return {"doctor": doctor.doctor}
