"""The certificates in a curator's home: make or take them over, renew and describe them.

It does not know who connects. Parties pin ca.pem. As long as it stays, the server's certificate may change freely.
"""

import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes

from curator.errors import SettingsError
from curator.files import PUBLIC, move, write_file
from curator.home.tls import client_context, server_context, try_handshake
from curator.home.x509 import (
    Pair,
    certificates_in,
    days_left,
    general_name,
    key_in,
    names_of,
    new_ca,
    new_server_certificate,
    utc_now,
)

RENEW_DAYS = 30  # days before a certificate expires
OTHERS_NAMES = (
    "it was not made here: have one with these names issued and run `subn-curator certificate renew --certificate F "
    "--certificate-key F`, or remove the names from SUBN_CURATOR_NAMES"
)
SYSTEM = "system"  # instead of a CA's file: parties' machines trust the certificate without a pinned CA


@dataclass(frozen=True)
class Shown:
    """A description of the certificate that the server presents."""

    names: list[str]
    ends: datetime
    days: int
    ca_ends: datetime | None  # None: a CA that every machine trusts
    ca_days: int | None
    renews_itself: bool


@dataclass(frozen=True)
class Certificates:
    home: Path

    @property
    def folder(self) -> Path:
        return self.home / "tls"

    @property
    def server_file(self) -> Path:
        """Key and chain in one file, so that one rename replaces both."""
        return self.folder / "server.pem"

    @property
    def ca_file(self) -> Path:
        return self.folder / "ca.pem"

    @property
    def ca_key_file(self) -> Path:
        return self.folder / "ca.key"

    @property
    def ca(self) -> str:
        """The CA's PEM text that parties pin, or an empty text if they trust the certificate without it."""
        return self.ca_file.read_text(encoding="ascii") if self.ca_file.exists() else ""

    def make(self, names: Sequence[str], now: datetime | None = None) -> None:
        """Make a CA, unless there is one, and a server certificate under it."""
        for name in names:
            general_name(name)
        if not self.ca_file.exists():
            if self.server_file.exists():
                raise SettingsError(
                    f"{self.server_file} is the organisation's: renew it with --certificate and --certificate-key"
                )
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            made = new_ca(now or utc_now())
            write_file(self.ca_key_file, made.key_pem)  # first: a CA without its key could not be repaired
            write_file(self.ca_file, made.certificate_pem, PUBLIC)
        self.renew(names, now)

    def renew(self, names: Sequence[str] = (), now: datetime | None = None) -> None:
        """Make a new certificate under the same CA, with the same names unless others are given."""
        chosen = list(names) or self.shown(now).names
        made = new_server_certificate(self._own_ca(), chosen, now or utc_now())
        write_file(self.server_file, made.key_pem + made.certificate_pem)

    def lacking(self, names: Sequence[str]) -> list[str]:
        """Return those of the names for which the certificate is not good."""
        known = {name.lower() for name in self.shown().names}
        wanted = {name: str(general_name(name).value) for name in names}
        return [name for name, exact in wanted.items() if not {exact, f"*.{exact.partition('.')[2]}"} & known]

    def add_names(self, names: Sequence[str], now: datetime | None = None) -> list[str]:
        """Renew the certificate if it lacks any of the names and was made here. Return the names that it lacked."""
        added = self.lacking(names)
        if added:
            shown = self.shown(now)
            if not shown.renews_itself:
                raise SettingsError(f"the certificate is not good for {', '.join(added)}; {OTHERS_NAMES}")
            self.renew([*shown.names, *added], now)
        return added

    def install(self, certificate: Path, key: Path, ca: str | None, now: datetime | None = None) -> None:
        """Take the organisation's certificate if parties will trust it. `ca`: a file, `SYSTEM`, or None to keep it."""
        chain, secret = _text(certificate), _text(key)
        trusted = self.ca if ca is None else "" if ca == SYSTEM else _text(Path(ca))
        leaf = certificates_in(chain, str(certificate))[0]
        if ca not in (None, SYSTEM):
            certificates_in(trusted, str(ca))
        if key_in(secret, str(key)).public_key() != leaf.public_key():
            raise SettingsError(
                f"{key} is not the key of {certificate}: give a certificate and a key that belong together"
            )
        if days_left(leaf, now or utc_now()) < 0:
            raise SettingsError(f"{certificate} expired on {leaf.not_valid_after_utc:%Y-%m-%d}: give a newer one")
        if not names_of(leaf):
            raise SettingsError(f"{certificate} names no host (subject alternative name): have one issued that does")
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = self.server_file.with_name("server.pem.new")
        write_file(draft, secret.rstrip() + "\n" + chain)
        try:
            _check_trust(draft, trusted, names_of(leaf), certificate)
            if trusted and trusted != self.ca:
                write_file(self.ca_file, trusted, PUBLIC)
            move(draft, self.server_file)
            if not trusted:
                self.ca_file.unlink(missing_ok=True)
        finally:
            draft.unlink(missing_ok=True)

    def shown(self, now: datetime | None = None) -> Shown:
        leaf, at = self._leaf(), now or utc_now()
        ends = [one.not_valid_after_utc for one in certificates_in(self.ca, str(self.ca_file))] if self.ca else []
        return Shown(
            names=names_of(leaf),
            ends=leaf.not_valid_after_utc,
            days=days_left(leaf, at),
            ca_ends=min(ends, default=None),
            ca_days=(min(ends) - at).days if ends else None,
            renews_itself=self._has_ca_key(),
        )

    def renew_if_due(self, now: datetime | None = None) -> bool:
        """Renew the certificate if it is near its end and the CA's key is here. Return whether it was renewed."""
        found = self.shown(now)
        if not found.renews_itself or found.days >= RENEW_DAYS:
            return False
        self.renew(now=now)
        return True

    def context(self) -> ssl.SSLContext:
        self._leaf()
        return server_context(self.server_file)

    def try_names(self) -> None:
        """Try a handshake for each name, as parties would. Raise ssl.SSLError if one fails."""
        server, client = self.context(), client_context(self.ca)
        for name in names_of(self._leaf()):
            try_handshake(server, client, name)

    def _leaf(self) -> x509.Certificate:
        if not self.server_file.exists():
            raise SettingsError(
                f"{self.server_file} is missing: make a CA and a certificate with `subn-curator certificate renew "
                "--name HOST`, or serve without TLS on this machine alone with --plain-http"
            )
        return certificates_in(_text(self.server_file), str(self.server_file))[0]

    def _has_ca_key(self) -> bool:
        """Whether ca.key is here and belongs to ca.pem, which may hold the organisation's CA instead."""
        if not self.ca or not self.ca_key_file.exists():
            return False
        return self._ca_key().public_key() == certificates_in(self.ca, str(self.ca_file))[0].public_key()

    def _own_ca(self) -> Pair:
        if not self._has_ca_key():
            raise SettingsError(
                f"{self.ca_key_file} with the key of {self.ca_file} is not here: put it back to renew, or give the "
                "organisation's certificate with --certificate and --certificate-key"
            )
        return Pair(certificates_in(self.ca, str(self.ca_file))[0], self._ca_key())

    def _ca_key(self) -> CertificateIssuerPrivateKeyTypes:
        return key_in(_text(self.ca_key_file), str(self.ca_key_file))


def default_names() -> list[str]:
    """Return the curator's names on its own machine, with the machine's host name if it is valid."""
    names = ["localhost", "127.0.0.1", "::1"]
    host = socket.gethostname()
    try:
        general_name(host)
    except SettingsError:
        return names
    return [*names, *([host] if host not in names else [])]


def _check_trust(server_file: Path, ca: str, names: Sequence[str], shown_as: Path) -> None:
    try:
        server, client = server_context(server_file), client_context(ca)
        for name in names:
            try_handshake(server, client, name)
    except ssl.SSLCertVerificationError as error:
        whose = "the CA in --ca-file" if ca else "a CA that this machine trusts"
        raise SettingsError(
            f"parties would refuse {shown_as}: {error.verify_message}. Put the chain up to {whose} into it, or name "
            f"its CA with --ca-file ({SYSTEM!r} if every machine trusts it)"
        ) from None
    except ssl.SSLError as error:
        raise SettingsError(f"{shown_as} cannot be used for TLS: {error.reason or error}") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except UnicodeDecodeError:
        raise SettingsError(f"{path} is not in PEM form: convert it with `openssl x509 -inform der`") from None
