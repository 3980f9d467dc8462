"""TLS contexts of the curator's server and of its clients.

It does not know where certificates come from (`curator.home.certificates`).
"""

import ssl
from ipaddress import ip_address
from pathlib import Path


def server_context(server_file: Path) -> ssl.SSLContext:
    """Return a server context for TLS 1.2 or newer. A certificate loaded later is presented to new connections."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(server_file)
    return context


def client_context(ca: str) -> ssl.SSLContext:
    """Return a client context that trusts only this CA, or the machine's own CAs if it is empty."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca:
        context.load_verify_locations(cadata=ca)
    else:
        context.load_default_certs()
    return context


def try_handshake(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> None:
    """Perform, without a network, the handshake of a party that connects to `name`. Raise ssl.SSLError if it fails."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    host = name.replace("*", "any", 1)
    sides = [
        client.wrap_bio(to_client, to_server, server_hostname=_plain(host)),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    while sides:
        for side in tuple(sides):
            try:
                side.do_handshake()
                sides.remove(side)
            except ssl.SSLWantReadError:
                continue


def _plain(host: str) -> str:
    try:
        return str(ip_address(host))
    except ValueError:
        return host
