"""TLS of a party's connections: one pinned CA, or the machine's CAs; version 1.2 or newer.

It does not know what is sent over them.
"""

import ssl


def trusting(ca: str, bundle: str = "") -> ssl.SSLContext:
    """Trust this CA alone (PEM text); without a CA, trust those of the machine and of the organisation's bundle."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca:
        context.load_verify_locations(cadata=ca)
    else:
        context.load_default_certs()
        if bundle:
            context.load_verify_locations(cadata=bundle)
    return context


def trusting_nobody() -> ssl.SSLContext:
    """Accept any certificate, for one request whose answer is checked against the pin."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
