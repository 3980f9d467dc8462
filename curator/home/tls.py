"""TLS as the curator's server speaks it and as its parties check it.

It does not know where certificates come from (`curator.home.certificates`).
"""

import ssl
from ipaddress import ip_address
from pathlib import Path


def server_context(server_file: Path) -> ssl.SSLContext:
    """TLS 1.2 or newer. A certificate that is loaded into it later is shown to whoever connects from then on."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(server_file)
    return context


def client_context(ca: str) -> ssl.SSLContext:
    """Trusts this CA alone; without one, those that the machine trusts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca:
        context.load_verify_locations(cadata=ca)
    else:
        context.load_default_certs()
    return context


def try_handshake(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> None:
    """What a party goes through that dials `name`, without a network; raises ssl.SSLError as it would."""
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
