"""Requests written by hand to a socket: only the head, half of the body, or more than is allowed.

It does not know any expected value.
"""

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPResponse
from urllib.parse import quote, urlsplit

from crypto.randomness import Stream
from crypto.signing import SigningKey, sign
from protocol.exact import digest
from protocol.messages import signatures as a

PATIENCE = 20.0  # seconds


@contextmanager
def connected(url: str) -> Iterator[socket.socket]:
    parts = urlsplit(url)
    assert parts.hostname
    assert parts.port
    with socket.create_connection((parts.hostname, parts.port), PATIENCE) as line:
        yield line


def head(method: str, target: str, headers: Mapping[str, str], length: int | None = None) -> bytes:
    """The head of a request that announces a body of so many bytes."""
    lines = {"Host": "127.0.0.1"} | ({} if length is None else {"Content-Length": str(length)}) | dict(headers)
    return "\r\n".join([f"{method} {target} HTTP/1.1", *(f"{k}: {v}" for k, v in lines.items()), "", ""]).encode()


def status_of(line: socket.socket) -> tuple[int, str]:
    """Status and body of the answer."""
    answer = HTTPResponse(line)
    answer.begin()
    return answer.status, answer.read().decode()


def answer_to_head(url: str, method: str, target: str, headers: Mapping[str, str], length: int) -> tuple[int, str]:
    """The answer to a request of whose body not a single byte is sent."""
    with connected(url) as line:
        line.sendall(head(method, target, headers, length))
        return status_of(line)


def signed_headers(key: SigningKey, name: str, method: str, target: str, body: bytes, time_ms: int) -> dict[str, str]:
    nonce = Stream.system().take(16).hex()
    text = a.request_text(method, target, digest(body), name, time_ms, nonce)
    return {
        a.PARTY_HEADER: quote(name),
        a.TIME_HEADER: str(time_ms),
        a.NONCE_HEADER: nonce,
        a.DIGEST_HEADER: digest(body),
        a.SIGNATURE_HEADER: sign(key, a.REQUEST, text).hex(),
    }


def is_cut_off(line: socket.socket) -> bool:
    """Whether the other side ends the connection, after whatever it may still say."""
    try:
        while line.recv(1 << 16):
            pass
    except ConnectionError:
        return True
    return True
