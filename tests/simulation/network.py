"""The network between parties and curator: it loses, delays, repeats and spoils messages as the schedule says.

It does not know what the messages say.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import httpx

from protocol.messages.signatures import CURATOR_SIGNATURE_HEADER, RUN_HEADER
from tests.simulation.effects import Life
from tests.simulation.schedules import Death, Fault, Late, Lost, Rules, Spoilt, Twice

if TYPE_CHECKING:
    from tests.simulation.nodes import PartyNode

_LATENCY = 0.01  # seconds
Kind = TypeVar("Kind")


class Line(httpx.AsyncBaseTransport):
    """One life's line to the curator. A request that is under way arrives, also when its sender has died."""

    def __init__(self, party: "PartyNode", life: Life) -> None:
        self._party, self._life, self._world = party, life, party.world

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        party, world = self._party, self._world
        party.message()
        faults = world.due(party.name, "ask")
        world.note(party.name, "ask")
        rules, death = _first(Rules, faults), _first(Death, faults)
        if rules is not None:
            world.change_rules(party, self._life, rules)
        if death is not None and death.edge == "before":
            self._life.kill(death)
        world.witness.asks(party, request)
        under_way = world.spawn(self._carried(request, faults))
        if death is not None and death.edge == "torn":
            world.outlives(under_way)
            self._life.kill(death)
        answer = await self._patiently(under_way, request.extensions["timeout"]["read"])
        if death is not None:
            self._life.kill(death)
        stream = httpx.ByteStream(answer.content)  # the party reads it piece by piece
        return httpx.Response(answer.status_code, headers=answer.headers, stream=stream)

    async def _patiently(self, under_way: "asyncio.Task[Any]", patience: float) -> httpx.Response:
        try:
            async with asyncio.timeout(patience):
                await asyncio.wait({under_way})
        except TimeoutError:
            raise httpx.ReadTimeout("no answer") from None
        finally:
            if not under_way.done():
                self._world.outlives(under_way)
        found = under_way.result()
        if isinstance(found, httpx.TransportError):
            raise found
        return found

    async def _carried(self, request: httpx.Request, faults: Sequence[Fault]) -> httpx.Response | httpx.TransportError:
        try:
            return await self._exchanged(request, faults)
        except httpx.TransportError as error:
            return error

    async def _exchanged(self, request: httpx.Request, faults: Sequence[Fault]) -> httpx.Response:
        lost, late = _first(Lost, faults), _first(Late, faults)
        again, spoilt = _first(Twice, faults), _first(Spoilt, faults)
        await _pass(late, "request")
        if again is not None:
            self._world.outlives(self._world.spawn(self._repeated(request, again.seconds)))
        await _lose(lost, "request")
        answer = await self._world.curator.serve(request)
        if answer.status_code == httpx.codes.OK and request.url.path == "/v1/inbox":
            self._world.witness.tasked(self._party.name, answer.headers[RUN_HEADER], answer.content)
        await _pass(late, "answer")
        await _lose(lost, "answer")
        return answer if spoilt is None else _spoil(answer, spoilt)

    async def _repeated(self, request: httpx.Request, seconds: float) -> None:
        await asyncio.sleep(seconds)
        try:
            await self._world.curator.serve(request)
        except httpx.TransportError:
            return  # nobody waits for this answer


async def _pass(late: Late | None, leg: str) -> None:
    await asyncio.sleep(_LATENCY + (late.seconds if late is not None and late.leg == leg else 0))


async def _lose(lost: Lost | None, leg: str) -> None:
    if lost is not None and lost.leg == leg:
        if lost.in_silence:
            await asyncio.sleep(1000)  # longer than anybody waits
        raise httpx.ReadError("the connection broke")


def _spoil(answer: httpx.Response, fault: Spoilt) -> httpx.Response:
    status, content, headers = answer.status_code, answer.content, dict(answer.headers)
    if fault.what == "body":
        content = content[:-1] if content else b"{}"
    elif fault.what == "signature":
        headers[CURATOR_SIGNATURE_HEADER.lower()] = "00" * 64
    elif fault.what == "status":
        status = 204 if status == httpx.codes.OK else 200
    else:
        status, content, headers = 502, b"bad gateway", {}
    headers.pop("content-length", None)
    return httpx.Response(status, headers=headers, content=content)


def _first(kind: type[Kind], faults: Sequence[Fault]) -> Kind | None:
    return next((fault for fault in faults if isinstance(fault, kind)), None)
