"""The curator's settings, from environment variables SUBN_CURATOR_*, each with a working default.

It does not know how they are used.
"""

import os
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from curator.errors import SettingsError
from protocol.services.connection import is_loopback

PREFIX = "SUBN_CURATOR_"
LONGEST_WAIT = 365 * 24 * 3600  # seconds
_LONGEST_ECHO = 100  # characters of a setting

Seconds = Annotated[int, Field(ge=1, le=LONGEST_WAIT)]


class Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    home: Path = Path("curator-home")
    database_url: str = ""  # default, and `sqlite`: a SQLite file in the home directory
    master_key: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$", repr=False)] = ""  # default: a file in the home
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8460
    names: str = ""  # host names and IP addresses of a certificate to be made, with commas between them
    plain_http: bool = False  # without TLS, on this machine only
    behind_proxy: str = ""  # addresses or networks of the proxy that terminates TLS, with commas between them
    join_seconds: Seconds = 7 * 24 * 3600  # for all parties to join, unless the run says otherwise
    step_seconds: Seconds = 24 * 3600  # for all answers to one step, unless the run says otherwise
    largest_body: Annotated[int, Field(ge=1 << 16, le=1 << 34)] = 256 << 20  # bytes of one answer
    tick_seconds: Annotated[float, Field(gt=0, le=60)] = 1.0  # seconds between two checks of deadlines

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ, **overriding: object) -> "Settings":
        """Read the settings from the environment. `overriding` holds the command line's options, None if not given."""
        found: dict[str, object] = {
            name.removeprefix(PREFIX).lower(): value for name, value in environment.items() if name.startswith(PREFIX)
        }
        found |= {name: value for name, value in overriding.items() if value is not None}
        try:
            return cls.model_validate(found)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            place = ".".join(map(str, first["loc"])).upper()[:_LONGEST_ECHO]
            name = f"{PREFIX}{place}: " if place else ""
            what = first["msg"].removeprefix("Value error, ")
            raise SettingsError(f"{name}{what}; correct the setting or remove it") from None

    @field_validator("database_url")
    @classmethod
    def _name_the_default(cls, text: str) -> str:
        return "" if text == "sqlite" else text

    @field_validator("behind_proxy")
    @classmethod
    def _check_proxies(cls, text: str) -> str:
        for part in listed(text):
            try:
                ip_network(part)
            except ValueError:  # whose words repeat all of the text
                raise ValueError(
                    f"{part[:_LONGEST_ECHO]!r} is no address and no network: expected for instance 10.1.2.3, or "
                    "10.1.2.0/24, whose host bits are zero"
                ) from None
        return text

    @model_validator(mode="after")
    def _keep_plain_http_at_home(self) -> "Settings":
        if self.plain_http and self.behind_proxy:
            raise ValueError("plain_http and behind_proxy exclude each other: choose one of them")
        if self.plain_http and not is_loopback(self.host):
            raise ValueError(
                "plain_http would send everything over the network unencrypted from "
                f"{self.host[:_LONGEST_ECHO]}: serve with TLS, or behind a proxy (--behind-proxy), or listen at "
                "127.0.0.1"
            )
        return self

    @property
    def speaks_tls(self) -> bool:
        return not (self.plain_http or self.behind_proxy)

    @property
    def proxies(self) -> list[IPv4Network | IPv6Network]:
        return [ip_network(part) for part in listed(self.behind_proxy)]

    @property
    def store_url(self) -> str:
        return self.database_url or f"sqlite:///{self.home.absolute() / 'curator.db'}"


def listed(text: str) -> list[str]:
    """Return the parts of a comma-separated text."""
    return [part.strip() for part in text.split(",") if part.strip()]
