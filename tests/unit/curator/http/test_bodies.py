"""Bodies are read after their sender is known, within limits of size and time, and parsed in linear time."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from hashlib import sha256
from typing import Annotated, Any, ClassVar

import httpx
import pytest
from fastapi import APIRouter, Body, FastAPI, Request

from curator.errors import Forbidden
from curator.http import bodies
from curator.http.admission import AdmittingRoute
from curator.http.problems import handle_problems
from protocol.messages.signatures import DIGEST_HEADER

STRANGER = {"Who": "a stranger"}
Messages = list[dict[str, Any]]


class HundredBytes(AdmittingRoute):
    largest: ClassVar[int | None] = 100

    async def admit(self, request: Request) -> None:
        if request.headers.get("Who"):
            raise Forbidden("strangers send nothing here")


def make() -> FastAPI:
    app, router = FastAPI(), APIRouter(route_class=HundredBytes)
    handle_problems(app)

    @router.post("/bytes")
    async def count(request: Request) -> int:
        return len(await request.body())

    @router.post("/json")
    async def read(body: Annotated[dict[str, int], Body()]) -> dict[str, int]:
        return body

    app.include_router(router)
    return app


def ask(path: str, **request: Any) -> httpx.Response:
    async def run() -> httpx.Response:
        transport = httpx.ASGITransport(make(), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://curator") as client:
            return await client.post(path, **request)

    return asyncio.run(run())


class Line:
    """One exchange in ASGI itself, since a client of httpx collects a body before it sends it in process."""

    def __init__(self, headers: dict[str, str], piece: Callable[[], Coroutine[Any, Any, bytes]]) -> None:
        self._piece, self.taken, self.sent = piece, 0, list[dict[str, Any]]()
        raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        self._scope = {
            "type": "http", "method": "POST", "path": "/bytes", "raw_path": b"/bytes", "query_string": b"",
            "headers": raw, "http_version": "1.1", "scheme": "http", "server": ("curator", 80), "root_path": "",
        }  # fmt: skip

    async def _receive(self) -> dict[str, Any]:
        self.taken += 1
        return {"type": "http.request", "body": await self._piece(), "more_body": True}

    async def _send(self, message: Any) -> None:
        self.sent.append(message)

    def carry(self) -> tuple[int, str]:
        """Status and detail of the answer."""
        asyncio.run(make()(self._scope, self._receive, self._send))
        return self.sent[0]["status"], json.loads(self.sent[1]["body"])["detail"]


async def thirty() -> bytes:
    return b"x" * 30


@pytest.mark.parametrize(("size", "status"), [(0, 200), (100, 200), (101, 413), (5000, 413)])
def test_a_body_over_the_limit_of_its_route_is_refused_by_its_announced_length(size: int, status: int) -> None:
    assert ask("/bytes", content=b"x" * size).status_code == status


def test_a_body_without_announced_length_is_refused_while_it_is_read() -> None:
    line = Line({}, thirty)
    assert line.carry() == (413, "the body is larger than 100 bytes: send at most that many")
    assert line.taken == 4


@pytest.mark.parametrize("length", ["5000", "100", "²", "-1", "many", "9" * 30])
def test_of_a_stranger_no_byte_is_read_whatever_length_is_announced(length: str) -> None:
    line = Line(STRANGER | {"Content-Length": "100"}, thirty)
    line._scope["headers"][-1] = (b"content-length", length.encode())
    assert line.carry() == (403, "strangers send nothing here")
    assert line.taken == 0


def test_a_length_that_is_no_number_does_not_open_the_gate() -> None:
    assert ask("/bytes", content=b"x" * 200, headers={"Content-Length": "many"}).status_code == 413


def test_a_sender_that_falls_silent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "SILENCE_SECONDS", 0.1)

    async def nothing() -> bytes:
        await asyncio.sleep(60)
        return b""

    line = Line({}, nothing)
    assert line.carry() == (408, "the body did not arrive in time: send it again")
    assert line.taken == 1


def test_a_sender_that_sends_a_byte_now_and_then_is_given_up_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "PATIENCE_SECONDS", 1.0)

    async def trickle() -> bytes:
        await asyncio.sleep(0.05)
        return b"x"

    line = Line({}, trickle)
    assert line.carry()[0] == 408
    assert 1 < line.taken < 25


def test_a_sender_that_goes_away_leaves_no_error_behind(caplog: pytest.LogCaptureFixture) -> None:
    line = Line({}, thirty)

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    line._receive = receive  # type: ignore[method-assign]
    assert line.carry() == (400, "the connection ended before the body: send it again")
    assert caplog.records == []


def test_a_body_that_is_not_the_signed_one_is_refused_at_its_end() -> None:
    signed = {DIGEST_HEADER: sha256(b"as signed").hexdigest()}
    assert ask("/bytes", content=b"as signed", headers=signed).status_code == 200
    answer = ask("/bytes", content=b"otherwise", headers=signed)
    assert answer.status_code == 401
    assert "not the one whose digest is signed" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1, "a": 2}', 'the key "a" is given twice'),
        ('{"a": ' + "9" * 90 + "9" * 11 + "}", "larger than 100 bytes"),
        ("[" * 99, "nested too deeply"),
        ('{"a": NaN}', "NaN is not a number"),
        ('{"a": 1', "delimiter"),
        ('{"a": 1.5}', "body.a"),
    ],
)
def test_json_is_read_as_all_json_of_others(text: str, words: str) -> None:
    answer = ask("/json", content=text, headers={"Content-Type": "application/json"})
    assert answer.status_code in (413, 422)
    assert words in answer.json()["detail"]


def test_good_json_is_read() -> None:
    assert ask("/json", json={"a": 1}).json() == {"a": 1}
