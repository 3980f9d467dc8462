"""A curator's application in one process, with callers that sign as parties do or bring an operator's key.

It does not know any expected value.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from threading import Thread
from typing import Any
from urllib.parse import quote

import httpx
from fastapi import FastAPI

from crypto.randomness import Stream
from crypto.signing import SigningKey, sign
from curator.app import make_app
from curator.server import SecureLine, listening, server_of
from curator.service import Service
from protocol.exact import canonical_json, digest
from protocol.messages import signatures as a
from tests.support.curator import Desk

BASE = "http://curator.example"


@dataclass
class Api:
    """One desk behind HTTP."""

    desk: Desk
    app: FastAPI
    http: httpx.AsyncClient
    operator_key: str
    _nonces: Stream = field(default_factory=lambda: Stream.keyed(b"nonces"))

    async def operator(self, method: str, target: str, **request: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.operator_key}"} | request.pop("headers", {})
        return await self.http.request(method, target, headers=headers, **request)

    async def party(self, number: int, method: str, target: str, body: Any = b"", **changes: Any) -> httpx.Response:
        party = self.desk.parties[number]
        return await self.signed(party.identity.signing, party.name, method, target, body, **changes)

    async def signed(
        self, key: SigningKey, name: str, method: str, target: str, body: Any = b"", **changes: Any
    ) -> httpx.Response:
        """`changes` may set nonce and time_ms, change headers after signing, or send another body or version."""
        content = body if isinstance(body, bytes) else canonical_json(body)
        nonce = changes.get("nonce") or self._nonces.take(16).hex()
        time_ms = changes.get("time_ms", self.desk.clock())
        version = changes.get("signed_version", changes.get("headers", {}).get(a.VERSION_HEADER)) or ""
        signed = digest(content)
        text = a.request_text(method, target, signed, name, time_ms, nonce, version)
        headers = {
            a.PARTY_HEADER: quote(name),
            a.TIME_HEADER: str(time_ms),
            a.NONCE_HEADER: nonce,
            a.DIGEST_HEADER: signed,
            a.SIGNATURE_HEADER: sign(key, a.REQUEST, text).hex(),
            "Content-Type": "application/octet-stream" if isinstance(body, bytes) else "application/json",
        } | changes.get("headers", {})
        headers = {name: value for name, value in headers.items() if value is not None}
        return await self.http.request(method, target, headers=headers, content=changes.get("sent", content))

    async def answer_one(self, number: int, wait: int = 0) -> bool:
        """Fetch a task and deliver the answer, if there is one."""
        found = await self.party(number, "GET", f"/v1/inbox?wait={wait}")
        if found.status_code == 204:
            return False
        assert found.status_code == 200, found.text
        sent = self.desk.parties[number].handle(found.headers[a.RUN_HEADER], found.content)
        answer = await self.deliver(number, sent)
        assert answer.status_code == 204, answer.text
        return True

    async def deliver(self, number: int, sent: Any) -> httpx.Response:
        headers = {a.RECEIPT_HEADER: sent.receipt.hex()}
        target = f"/v1/runs/{sent.run}/outbox/{sent.step}"
        answer = await self.party(number, "PUT", target, sent.body, headers=headers)
        self.desk.orchestrator.advance(sent.run)  # what goes on in the background is over when this returns
        return answer

    async def answer_all(self) -> None:
        while any([await self.answer_one(number) for number in range(len(self.desk.parties))]):
            pass

    async def wait_until(self, run: str, state: str) -> dict[str, Any]:
        for _ in range(500):
            found: dict[str, Any] = (await self.operator("GET", f"/v1/runs/{run}")).json()
            if found["state"] == state:
                return found
            await asyncio.sleep(0.01)
        raise AssertionError(f"the run is {found['state']}, not {state}: {found['reason']}")

    async def create_run(self, key: str = "key", **wishes: Any) -> str:
        usual = {"epsilon": "1", "key_bits": 512, "noise": "distributed", "anyway": True}  # few rows: all is noise
        body = {"schema": self.desk.schema.hash} | usual | wishes
        answer = await self.operator("POST", "/v1/runs", json=body, headers={"Idempotency-Key": key})
        assert answer.status_code in (200, 201), answer.text
        return str(answer.json()["run"])


@asynccontextmanager
async def opened(desk: Desk) -> AsyncIterator[Api]:
    service = Service.of(desk.settings, desk.store, desk.keys, desk.orchestrator, desk.clock)
    app = make_app(service)
    key = service.registry.new_operator_key("tests", Stream.keyed(b"operator's key"))
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url=BASE) as http,
    ):
        yield Api(desk, app, http, key)


def with_api(desk: Desk, story: Callable[[Api], Awaitable[Any]]) -> Any:
    """Run a story against an open application."""

    async def run() -> Any:
        async with opened(desk) as api:
            return await story(api)

    return asyncio.run(run())


@contextmanager
def served(desk: Desk, line: SecureLine | None = None) -> Iterator[tuple[str, str]]:
    """The URL of a real server in a thread, and an operator's key."""
    service = Service.of(desk.settings, desk.store, desk.keys, desk.orchestrator, desk.clock)
    key = service.registry.new_operator_key("served", Stream.system())
    listener = listening("127.0.0.1", 0)
    server = server_of(service, line)
    thread = Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", key
    finally:
        server.should_exit = True
        thread.join()
