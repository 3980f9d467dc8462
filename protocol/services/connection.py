"""Which addresses may be dialled, and why a connection is refused, in sentences that say what to do.

It does not know sockets: what went wrong is read from the errors that the network layer raised.
"""

import re
from collections.abc import Iterator
from ipaddress import ip_address

from protocol.errors import OperatorError

_URL = re.compile(r"(https?)://(\[[0-9A-Fa-f:.]+\]|[^\s/:\[\]@?#]+)(?::(\d{1,5}))?(/[^\s?#]*)?", re.ASCII)
# OpenSSL's numbers of what can be wrong with a certificate (X509_V_ERR_...).
_NOT_YET_VALID, _EXPIRED = 9, 10
_UNKNOWN_ISSUER = (2, 18, 19, 20, 21, 27)
_WRONG_NAME = (62, 64)


def check_address(url: str) -> None:
    """Privacy: without TLS anybody on the way reads who asks what of whom; on one machine there is no way."""
    found = _URL.fullmatch(url)
    if found is None:
        raise OperatorError(f"{url!r} is no address of a curator: expected https://HOST or https://HOST:PORT")
    if found[1] == "http" and not is_loopback(found[2]):
        raise OperatorError(
            f"{url} would go over the network unencrypted: use https://; http:// is for curators on this machine only"
        )


def is_loopback(host: str) -> bool:
    """Whether this is the machine itself; a name counts only if no name server is asked for it."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def distrust(url: str, error: BaseException) -> str | None:
    """Why TLS refused this address, and what to do; None if `error` is not about that."""
    for cause in _causes(error):
        code = getattr(cause, "verify_code", None)
        if code is not None:
            return f"{url} is not trusted, and nothing was sent: {_about_certificate(code, cause)}"
        if _speaks_no_tls(cause):
            return (
                f"{url} does not speak TLS, and nothing was sent: either no curator answers there, or something on the "
                "way wants the connection unencrypted; check host and port, and ask the operator"
            )
    return None


def hung_up(url: str) -> str:
    """A hint for a plain request that was cut off: a server that expects TLS does just that."""
    return "; if it expects TLS, use https:// in its address" if url.startswith("http://") else ""


def _about_certificate(code: int, error: BaseException) -> str:
    if code in _UNKNOWN_ISSUER:
        return (
            "its certificate is not of the CA that is pinned here: if the curator has a new CA, ask its operator for "
            "the new pin (party: `subn-party recognise PIN`) or the new ca.pem (operator: SUBN_CA_FILE); if it has "
            "none, somebody stands in between"
        )
    if code in _WRONG_NAME:
        return (
            "its certificate is for other names than the one in this address: use an address that the certificate has "
            "(`subn-curator certificate show`), or have the operator run `subn-curator certificate renew --name ...`"
        )
    if code == _EXPIRED:
        return (
            "its certificate, or that of its CA, has expired: the operator runs `subn-curator certificate renew`; if "
            "it has not, set this machine's clock"
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
    """The error and what led to it, as far as Python knows."""
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__cause__ or current.__context__
