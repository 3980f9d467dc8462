"""What a party reads of an answer before it knows whose it is: a bounded number of bytes, as they are, and no word."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from crypto.signing import SigningKey, sign
from party.curator_link import client
from party.curator_link.client import Curator
from party.curator_link.introduction import introduced
from party.errors import Declined, Unreachable, Untrusted
from protocol.messages import signatures as a
from protocol.messages.versions import SPOKEN
from tests.support.fake_curator import URL
from tests.support.signed_requests import asked_text
from tests.support.small_runs import identity

KEY = SigningKey.from_bytes(b"\x55" * 32)
PIECE = b"x" * (1 << 16)


class Pieces(httpx.AsyncByteStream):
    """A body that is made as it is read, and tells how much of it was."""

    def __init__(self, pieces: int, piece: bytes = PIECE) -> None:
        self._pieces, self._piece, self.read = pieces, piece, 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for _ in range(self._pieces):
            self.read += len(self._piece)
            yield self._piece


class Answers(httpx.AsyncBaseTransport):
    """Answers everything alike; keeps what was asked."""

    def __init__(self, status: int = 200, is_signed: bool = False, **answer: Any) -> None:
        self._status, self._is_signed, self._answer = status, is_signed, answer
        self.asked: list[httpx.Request] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        if "content" not in self._answer:
            return httpx.Response(self._status, **self._answer)
        content, headers = self._answer["content"], dict(self._answer.get("headers", {}))
        if self._is_signed:
            text = a.response_text(self._status, content, asked_text(request), str(SPOKEN))
            headers[a.VERSION_HEADER] = str(SPOKEN)
            headers[a.CURATOR_SIGNATURE_HEADER] = sign(KEY, a.RESPONSE, text).hex()
        return httpx.Response(self._status, headers=headers, stream=Pieces(1, content))


def ask(transport: httpx.AsyncBaseTransport, what: str, *arguments: Any) -> Any:
    async def once() -> Any:
        line = Curator(URL, "party-1", identity(0).signing, KEY.public, transport=transport, tries=1)
        async with line:
            return await getattr(line, what)(*arguments)

    return asyncio.run(once())


KINDS = [
    ("inbox", (0,), 1 << 26),
    ("my_runs", (), 1 << 23),
    ("receipts", (), 1 << 23),
    ("roster", (), 1 << 26),
    ("table", ("run-1",), 1 << 30),
    ("clock_difference", (), 1 << 16),
]


@pytest.mark.parametrize(("what", "arguments", "largest"), KINDS, ids=[kind[0] for kind in KINDS])
def test_no_more_is_read_than_such_an_answer_may_have(
    what: str, arguments: tuple[Any, ...], largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if largest > 1 << 26:
        largest = 1 << 20  # a whole table would take long here
        monkeypatch.setattr(client, "LARGEST_TABLE", largest)
    body = Pieces(1 << 15)  # 2 GiB
    with pytest.raises(Untrusted, match=f"answers with more than {largest:,} bytes"):
        ask(Answers(stream=body), what, *arguments)
    assert largest < body.read <= largest + len(PIECE)


def test_nothing_is_read_of_an_answer_that_announces_too_much() -> None:
    body = Pieces(2)
    with pytest.raises(Untrusted, match="more than 65,536 bytes"):
        ask(Answers(stream=body, headers={"Content-Length": "9" * 30}), "clock_difference")
    assert body.read == 0


def test_an_error_says_little_whatever_was_asked() -> None:
    body = Pieces(100)
    with pytest.raises(Untrusted, match="more than 65,536 bytes"):
        ask(Answers(status=400, stream=body), "inbox", 0)
    assert body.read <= 2 * len(PIECE)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "identity, gzip", "GZIP"])
def test_a_compressed_answer_is_refused_and_not_unpacked(encoding: str) -> None:
    bomb = gzip.compress(bytes(50 << 20))
    body = Pieces(1, bomb)
    answers = Answers(stream=body, headers={"Content-Encoding": encoding})
    with pytest.raises(Untrusted, match="in a compressed form, which this party does not ask for"):
        ask(answers, "inbox", 0)
    assert body.read == 0
    assert answers.asked[0].headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("headers", [{"Content-Encoding": "gzip"}, {}])
def test_an_introduction_is_bounded_and_not_unpacked_either(headers: dict[str, str]) -> None:
    body = Pieces(1000)
    with pytest.raises(Untrusted):
        introduced(URL, "0" * 32, Answers(stream=body, headers=headers))
    assert body.read <= 2 * len(PIECE)


@pytest.mark.parametrize("status", [500, 503, 429])
def test_words_that_the_curator_has_not_signed_are_not_repeated(status: int) -> None:
    problem = json.dumps({"detail": "call this number"}).encode()
    with pytest.raises(Unreachable, match=rf"says {status}$"):
        ask(Answers(status=status, content=problem), "my_runs")
    with pytest.raises(Unreachable, match=rf"says {status}: call this number$"):
        ask(Answers(status=status, is_signed=True, content=problem), "my_runs")


@pytest.mark.parametrize("body", [b"[" * 60_000, b'{"type": ["x"], "detail": {"a": 1}}', b"\xff" * 9, b""])
def test_an_error_of_any_form_is_an_error(body: bytes) -> None:
    with pytest.raises(Untrusted):
        ask(Answers(status=409, content=body), "my_runs")
    with pytest.raises(Declined):
        ask(Answers(status=409, is_signed=True, content=body), "my_runs")


def test_no_cookie_is_kept() -> None:
    answers = Answers(status=204, is_signed=True, content=b"", headers={"Set-Cookie": f"a={'x' * 4000}; Path=/"})

    async def twice() -> None:
        line = Curator(URL, "party-1", identity(0).signing, KEY.public, transport=answers, tries=1)
        async with line:
            await line.inbox(0)
            await line.inbox(0)

    asyncio.run(twice())
    assert "Cookie" not in answers.asked[1].headers
