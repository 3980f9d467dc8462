"""Checks of a curator's address, and explanations of refused connections that say what to do.

It does not know sockets: the cause is read from the errors that the network layer raised.
"""

import re
from collections.abc import Iterator
from ipaddress import ip_address

from protocol.errors import OperatorError

_URL = re.compile(r"(https?)://(\[[0-9A-Fa-f:.]+\]|[^\s/:\[\]@?#]+)(?::(\d{1,5}))?(/[^\s?#]*)?", re.ASCII)
_LONGEST_ECHO = 100
# OpenSSL's error numbers for certificates (X509_V_ERR_...).
_NOT_YET_VALID, _EXPIRED = 9, 10
OTHER_PROXY = (
    "expected http://HOST:PORT, or http://NAME:PASSWORD@HOST:PORT with % codes for other characters than letters and "
    "digits; SOCKS proxies are not supported: ask your network's people for the HTTP proxy, which passes CONNECT on"
)
_UNKNOWN_ISSUER = (2, 18, 19, 20, 21, 27)
_WRONG_NAME = (62, 64)


def check_address(url: str) -> None:
    """Refuse an address without TLS, unless it is this machine's own.

    Privacy: without TLS, anybody on the network path reads who asks what of whom. A loopback connection never leaves
    the machine, so there is no such path.
    """
    found = _URL.fullmatch(url)
    if found is None:
        raise OperatorError(f"{url!r} is not the address of a curator: expected https://HOST or https://HOST:PORT")
    if found[1] == "http" and not is_loopback(found[2]):
        raise OperatorError(
            f"{url} would go over the network unencrypted: use https://; http:// is for curators on this machine only"
        )


def is_loopback(host: str) -> bool:
    """Whether the host is this machine itself; `localhost` is the only name that counts, as it needs no name server."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def distrust(url: str, error: BaseException) -> str | None:
    """A sentence about why TLS refused this address and what to do; None if `error` has another cause."""
    for cause in _causes(error):
        code = getattr(cause, "verify_code", None)
        if code is not None:
            return f"{url} is not trusted, and nothing was sent: {_about_certificate(code, cause)}"
        if _speaks_no_tls(cause):
            return (
                f"{url} does not speak TLS, and nothing was sent: either no curator answers there, or a device on the "
                "way expects an unencrypted connection; check host and port, and ask the operator"
            )
    return None


def inspected(url: str, issuer: str) -> str:
    """A sentence about a device of the reader's own organisation that reads TLS: this machine trusts its authority."""
    return (
        f"{url} is not trusted, and nothing was sent: a proxy that reads TLS stands in between. Its certificate is "
        f"from {issuer!r}, which this machine trusts, but which is not the CA that is pinned here: ask your network's "
        "people to pass this address on without TLS inspection. If the curator has taken a new certificate from that "
        "authority, ask its operator for the new pin (party: `subn-party recognise PIN`)"
    )


def no_answer(url: str, error: BaseException) -> str:
    """A sentence about an address that does not answer, or about the proxy that does not lead there."""
    kind, text = type(error).__name__, str(error)
    if kind != "ProxyError":
        return f"{url} does not answer ({kind}: {text})"
    if text.startswith("407"):
        return (
            f"the proxy on the way to {url} asks for a name and a password (status 407): give them in the proxy's "
            "address, as http://NAME:PASSWORD@HOST:PORT, or correct them"
        )
    return (
        f"the proxy on the way to {url} does not lead there ({text[:_LONGEST_ECHO]}): ask your network's people to "
        "allow CONNECT to this host and port"
    )


def hung_up(url: str) -> str:
    """A hint for an unencrypted request that was cut off, as a server that expects TLS does; else nothing."""
    return "; if it expects TLS, use https:// in its address" if url.startswith("http://") else ""


def _about_certificate(code: int, error: BaseException) -> str:
    if code in _UNKNOWN_ISSUER:
        return (
            "its certificate was not issued by the CA that is pinned here: if the curator has a new CA, ask its "
            "operator for the new pin (party: `subn-party recognise PIN`) or the new ca.pem (operator: SUBN_CA_FILE); "
            "if it has no new CA, somebody is intercepting the connection"
        )
    if code in _WRONG_NAME:
        return (
            "its certificate is for other names than the one in this address: use a name that the certificate lists "
            "(`subn-curator certificate show`), or have the operator run `subn-curator certificate renew --name ...`"
        )
    if code == _EXPIRED:
        return (
            "its certificate, or that of its CA, has expired: ask the operator to run `subn-curator certificate "
            "renew`; if neither has expired, set this machine's clock"
        )
    if code == _NOT_YET_VALID:
        return "its certificate is not valid yet: set this machine's clock, or the curator's"
    return f"{getattr(error, 'verify_message', 'its certificate fails a check')}; ask the curator's operator"


def _speaks_no_tls(error: BaseException) -> bool:
    reason = getattr(error, "reason", None)
    return isinstance(reason, str) and reason in (
        "WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNSUPPORTED_PROTOCOL", "TLSV1_ALERT_PROTOCOL_VERSION",
        "HTTP_REQUEST", "UNEXPECTED_MESSAGE", "PACKET_LENGTH_TOO_LONG",
    )  # fmt: skip


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and the chain of errors that led to it."""
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__cause__ or current.__context__
