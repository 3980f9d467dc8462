"""`subn-curator certificate`: make, take over, renew and show the server's certificate.

It does not know how certificates are made (`curator.home.x509`) or kept (`curator.home.certificates`).
"""

import argparse
from pathlib import Path
from typing import Any

from curator.errors import SettingsError
from curator.home.certificates import SYSTEM, Certificates, Shown, default_names
from curator.home.keys import CuratorKeys
from curator.rendering.output import say
from curator.settings import Settings, listed
from protocol.messages.pins import pin_of


def add_certificate_options(parser: Any) -> None:
    parser.add_argument(
        "--name",
        action="append",
        metavar="HOST",
        help="a host name or IP address by which parties and operators reach the server; repeat for more",
    )
    parser.add_argument(
        "--certificate", type=Path, metavar="F", help="the organisation's own certificate, with its chain (PEM)"
    )
    parser.add_argument("--certificate-key", type=Path, metavar="F", help="its key (PEM, without a password)")
    parser.add_argument(
        "--ca-file", metavar="F", help=f"the CA that parties must pin; {SYSTEM!r} if every machine trusts it"
    )


def make_certificates(settings: Settings, chosen: argparse.Namespace) -> Certificates:
    """Make the certificates of a new home, or take over those that were given."""
    certificates = Certificates(settings.home)
    if not _takes_over(certificates, chosen):
        certificates.make(_names(settings, chosen) or default_names())
    return certificates


def renew_certificate(settings: Settings, chosen: argparse.Namespace) -> int:
    certificates, former = Certificates(settings.home), Certificates(settings.home).ca
    if not settings.home.is_dir():
        raise SettingsError(f"{settings.home} is no curator's home: run `subn-curator init --home {settings.home}`")
    if not _takes_over(certificates, chosen):
        names = _names(settings, chosen)
        if certificates.server_file.exists():
            certificates.renew(names)
        else:
            certificates.make(names or default_names())
    shown = certificates.shown()
    lines = [f"valid for {', '.join(shown.names)} until {shown.ends:%Y-%m-%d}; a server uses it within a second"]
    if certificates.ca != former:
        lines.append("its CA has changed: every party must run `subn-party recognise PIN`")
    return say(chosen, _facts(shown) | {"same_ca": certificates.ca == former}, *lines)


def show_certificate(settings: Settings, chosen: argparse.Namespace) -> int:
    certificates = Certificates(settings.home)
    shown = certificates.shown()
    pin = pin_of(CuratorKeys.load(settings.home, settings.master_key).signing.public, certificates.ca)
    ca = "trusted by every machine" if shown.ca_ends is None else f"{shown.ca_ends:%Y-%m-%d}, {shown.ca_days} days"
    words = [
        f"names  {', '.join(shown.names)}",
        f"ends   {shown.ends:%Y-%m-%d}, {shown.days} days{', renews itself' if shown.renews_itself else ''}",
        f"CA     {ca}",
        f"pin    {pin}",
    ]
    return say(chosen, _facts(shown) | {"pin": pin}, *words)


def _takes_over(certificates: Certificates, chosen: argparse.Namespace) -> bool:
    """Install the organisation's own certificate if one was given. Return whether it was."""
    given = [chosen.certificate, chosen.certificate_key]
    if given == [None, None]:
        if chosen.ca_file is not None:
            raise SettingsError(
                "--ca-file works only together with --certificate and --certificate-key: give all three"
            )
        return False
    if None in given:
        raise SettingsError("--certificate and --certificate-key go together: give both")
    if chosen.name:
        raise SettingsError(
            "--name is for certificates made here: leave it out, the organisation's certificate already has its names"
        )
    certificates.install(chosen.certificate, chosen.certificate_key, chosen.ca_file)
    return True


def _names(settings: Settings, chosen: argparse.Namespace) -> list[str]:
    return chosen.name or listed(settings.names)


def _facts(shown: Shown) -> dict[str, Any]:
    return {
        "names": shown.names,
        "ends": shown.ends.isoformat(),
        "days": shown.days,
        "ca_ends": None if shown.ca_ends is None else shown.ca_ends.isoformat(),
        "ca_days": shown.ca_days,
        "renews_itself": shown.renews_itself,
    }
