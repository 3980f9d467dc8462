"""TLS as a party dials: one pinned CA, or the machine's; version 1.2 or newer.

It does not know what is said over it.
"""

import ssl


def trusting(ca: str) -> ssl.SSLContext:
    """Trusts this CA alone (PEM text); without one, those that the machine trusts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca:
        context.load_verify_locations(cadata=ca)
    else:
        context.load_default_certs()
    return context


def trusting_nobody() -> ssl.SSLContext:
    """For one question whose answer is checked by other means: whoever answers is not known."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
