"""The address of the data owner's pages: where they listen, under which names browsers ask, and with which certificate.

It does not know the pages or who may see them.
"""

import os
import ssl
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from party.errors import SettingsError
from party.home.settings_errors import sentence
from protocol.services.connection import is_loopback

HOST_VARIABLE, PORT_VARIABLE, NAMES_VARIABLE = "SUBN_PARTY_HOST", "SUBN_PARTY_PORT", "SUBN_PARTY_NAMES"
OWN_NAMES = ("127.0.0.1", "localhost", "[::1]")
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - where commands ask, not where the pages listen
_LAST_PORT = 65535
_LONGEST_ECHO = 80

# A host name, or an IP address (version 6 in brackets), and perhaps the port that browsers use.
BrowserName = Annotated[
    str,
    Field(max_length=260, pattern=r"^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$"),
]


class Local(BaseModel):
    """The section [local]. Privacy: pages under names that are not this machine's own are served by TLS only."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=_LAST_PORT)] = 8470
    names: Annotated[tuple[BrowserName, ...], Field(min_length=1, max_length=20)] = OWN_NAMES[:1]
    certificate: Annotated[str, Field(min_length=1)] | None = None  # a file in PEM form, with its chain
    certificate_key: Annotated[str, Field(min_length=1)] | None = None  # where it is not in the same file

    @model_validator(mode="after")
    def _refuse_unencrypted_pages(self) -> "Local":
        away = [name for name in self.names if not is_loopback(name_in(name))]
        if away and not self.speaks_tls:
            raise ValueError(
                f"names: browsers elsewhere would read your pages unencrypted under the name {away[0]}: set "
                "`certificate` to your organisation's certificate for that name, or list names of this machine only"
            )
        return self

    @property
    def speaks_tls(self) -> bool:
        return self.certificate is not None

    @property
    def hosts(self) -> frozenset[str]:
        """The names under which the pages answer, without ports. This machine's own are always among them."""
        return frozenset({*OWN_NAMES, *map(name_in, self.names)})

    def asked_at(self, port: int) -> str:
        """The URL by which commands on this machine ask a service that listens at `port`."""
        host = _EVERYWHERE.get(self.host, self.host)
        return f"{self._scheme}://{f'[{host}]' if ':' in host else host}:{port}"

    def shown_at(self, port: int) -> str:
        """The URL that opens in the data owner's browser, when the service listens at `port`."""
        first = self.names[0]
        return f"{self._scheme}://{first if name_in(first) != first.lower() else f'{first}:{port}'}"

    @property
    def _scheme(self) -> str:
        return "https" if self.speaks_tls else "http"

    def server_context(self, folder: Path) -> ssl.SSLContext | None:
        """The TLS of the pages; None without a certificate. Its files are relative to the home's folder."""
        if self.certificate is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        file, key = folder / self.certificate, folder / (self.certificate_key or self.certificate)
        for path in (file, key):
            if not os.access(path, os.R_OK):
                raise SettingsError(f"[local] certificate: {path} cannot be read: put the file there in PEM form")
        try:
            context.load_cert_chain(file, key, password=_no_password)
        except (ssl.SSLError, ValueError):
            raise SettingsError(
                f"[local] certificate: {file} and {key} do not hold a certificate and its key in PEM form, without a "
                "password: have both issued anew, or name the key's file as `certificate_key`"
            ) from None
        return context

    def client_context(self, folder: Path) -> ssl.SSLContext | bool:
        """Trust exactly the certificate of these pages, for commands that ask the service on this machine."""
        if self.certificate is None:
            return False
        context = ssl.create_default_context(cafile=str(folder / self.certificate))
        context.check_hostname = False
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        return context


def with_environment(found: Local) -> Local:
    """Replace host, port and names by those that the environment sets: a container has an address of its own."""
    said: dict[str, Any] = {}
    if host := os.environ.get(HOST_VARIABLE):
        said["host"] = host
    if port := os.environ.get(PORT_VARIABLE):
        said["port"] = _port(port)
    if names := os.environ.get(NAMES_VARIABLE):
        said["names"] = tuple(name.strip() for name in names.split(",") if name.strip())
    try:
        return Local.model_validate(found.model_dump() | said)
    except ValidationError as error:
        raise SettingsError(f"{NAMES_VARIABLE}: {sentence(error)}") from None


def name_in(host: str) -> str:
    """The name in a Host header, without its port."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower()


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > _LAST_PORT:
        raise SettingsError(f"{PORT_VARIABLE}: found {text[:_LONGEST_ECHO]!r}, expected a number up to {_LAST_PORT}")
    return int(text)


def _no_password() -> str:
    """Fail instead of asking on a terminal: a service has none."""
    raise ValueError
