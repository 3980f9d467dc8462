"""The section [network]: the proxy on the way to the curator, and the organisation's own certificate authorities.

It does not know connections.
"""

import os
import re
import ssl
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from party.errors import SettingsError
from party.home.settings_errors import sentence
from protocol.services.connection import OTHER_PROXY

PROXY_VARIABLE = "SUBN_PARTY_PROXY"
ENVIRONMENT, NO_PROXY = "environment", "none"
_PROXY = re.compile(r"https?://([^\s/@]+@)?(\[[0-9A-Fa-f:.]+\]|[^\s/:\[\]@?#]+)(:\d{1,5})?/?", re.ASCII | re.IGNORECASE)
_LARGEST_BUNDLE = 1 << 22  # bytes


class Network(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    proxy: Annotated[str, Field(repr=False, max_length=1000)] = ENVIRONMENT  # may hold a password
    ca_bundle: Annotated[str, Field(min_length=1)] | None = None

    @field_validator("proxy")
    @classmethod
    def _check_proxy(cls, text: str) -> str:
        if text not in (ENVIRONMENT, NO_PROXY) and not _PROXY.fullmatch(text):
            raise ValueError(OTHER_PROXY)
        return text

    def proxy_to(self, url: str) -> str | None:
        """The URL of the proxy that leads to this address, with its password; None without a proxy."""
        if self.proxy != ENVIRONMENT:
            return None if self.proxy == NO_PROXY else self.proxy
        found, there = getproxies(), urlsplit(url)
        proxy = found.get(there.scheme) or found.get("all")
        if not proxy or proxy_bypass(there.netloc):
            return None
        proxy = proxy if "://" in proxy else f"http://{proxy}"
        if not _PROXY.fullmatch(proxy):
            raise SettingsError(f"HTTPS_PROXY or ALL_PROXY in the environment: {OTHER_PROXY}")
        return proxy

    def bundle(self, folder: Path) -> str:
        """The organisation's certificate authorities, in PEM; empty where none are named."""
        if self.ca_bundle is None:
            return ""
        path = folder / self.ca_bundle
        try:
            with path.open("rb") as file:
                text = file.read(_LARGEST_BUNDLE).decode("ascii")
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
        except OSError as error:  # TLS's errors too
            why = "it holds no certificate in PEM form" if isinstance(error, ssl.SSLError) else error.strerror
            raise SettingsError(f"[network] ca_bundle: {path} cannot be read: {why}") from None
        except ValueError:
            raise SettingsError(f"[network] ca_bundle: {path} is not in PEM form") from None
        return text


def with_proxy_of_environment(found: Network) -> Network:
    """Take the proxy from the environment, where containers are given theirs; `environment` changes nothing."""
    proxy = os.environ.get(PROXY_VARIABLE, ENVIRONMENT)
    try:
        return found if proxy in ("", ENVIRONMENT) else Network.model_validate(found.model_dump() | {"proxy": proxy})
    except ValidationError as error:
        raise SettingsError(f"{PROXY_VARIABLE}: {sentence(error)}") from None
